//! The tables of the documentation that follow from declarations; `THRONG_WRITE_DOCS=1` writes
//! them.

use super::*;
use crate::arrival::{Burst, Poisson};
use crate::canary::Canary;
use crate::chat::{ChatConfig, ChatHttp, ChatMoment, ChatTemplate, JoinStep, KeepAlive, Pong};
use crate::churn::Reconnect;
use crate::conversation::Conversation;
use crate::objective::{CATALOGUE, MetricEntry, Unit};
use crate::peers::PeerConfig;
use crate::player::PlayerConfig;
use crate::role::publish::PublishTable;
use crate::room::RoomConfig;
use crate::run::{Caps, OutputConfig, RunTimes, Stream};
use crate::scenario::Cohort;
use crate::tap::Tap;
use crate::target::TargetTable;
use crate::watch::{ProfileRequest, WatchTable};

/// The keys of a player that are for live streams, and those that are for requests.
const OF_LIVE: [&str; 5] = ["latency", "latency_max", "low_latency", "preload_hints", "catch_up"];
const OF_REQUESTS: [&str; 8] =
    ["http", "headers", "page", "har", "warm", "warm_age", "origins", "credentials"];

/// The keys of a chat's template that are for server-sent events.
const OF_EVENTS: [&str; 4] = ["stream", "post", "headers", "replay"];

/// All keys of a table.
fn rows<T: Keyed>() -> String {
    rows_of::<T>(|_| true)
}

/// Key, meaning, default, of some keys.
fn rows_of<T: Keyed>(is_one: impl Fn(&str) -> bool) -> String {
    let row = |key: Key| {
        let usual = match (key.usual, key.default) {
            (Usual::Required(_), _) => "required".to_owned(),
            (Usual::StoredSaid(words) | Usual::Said(words), _) => words.to_owned(),
            (Usual::Stored | Usual::LeftOut, Some(value)) => format!("`{value}`"),
            (usual, None) => panic!("`{}` has no value: {usual:?}", key.name),
        };
        format!("| `{}` | {} | {usual} |\n", key.name, key.meaning)
    };
    let keys = all_keys::<T>(&mut SchemaGenerator::default());
    keys.into_iter().filter(|key| is_one(key.name)).map(row).collect()
}

/// Metric, what it is, threshold, population of a quantile, example.
fn row_of_metric(entry: &MetricEntry) -> String {
    let names: Vec<String> = entry.names.iter().map(|name| format!("`{name}`")).collect();
    let threshold = match entry.unit {
        Unit::Ratio => "percentage",
        Unit::Milliseconds => "duration",
        Unit::FramesPerSecond => "frames/s, or share of source",
        Unit::Lines => "size, such as `720p`",
        Unit::Count => "number",
        Unit::OfBitRate => "ratio, or percentage",
    };
    let over = match (entry.quantile, entry.whole) {
        (None, _) => "no quantile".to_owned(),
        (Some(quantile), Some(_)) => format!("{}, or none", quantile.population()),
        (Some(quantile), None) => quantile.population().to_owned(),
    };
    let (names, example) = (names.join(", "), entry.example);
    format!("| {names} | {} | {threshold} | {over} | `{example}` |\n", entry.doc)
}

/// The page with these rows in the first table after `anchor`.
fn with_rows(page: &str, anchor: &str, rows: &str) -> String {
    const HEAD_END: &str = "---|\n";
    let (before, after) = page.split_once(anchor).unwrap_or_else(|| panic!("no {anchor}"));
    let begin = after.find(HEAD_END).expect("a table") + HEAD_END.len();
    let (head, rest) = after.split_at(begin);
    let (_, tail) = rest.split_once("\n\n").expect("a line after the table");
    format!("{before}{anchor}{head}{rows}\n{tail}")
}

#[test]
fn the_tables_of_the_docs_equal_the_declarations() {
    let of_scenario = [
        ("## `[target]`\n", rows::<TargetTable>()),
        ("## `[crowd]`\n", rows::<Cohort>()),
        ("| Key of `burst` |", rows::<Burst>()),
        ("| Key of `poisson` |", rows::<Poisson>()),
        ("| Key of `reconnect` |", rows::<Reconnect>()),
        ("### Published media: `publish`\n", rows::<PublishTable>()),
        ("## `[conversation]`\n", rows::<Conversation>()),
        ("## `[room]`\n", rows::<RoomConfig>()),
        ("## `[run]`\n", rows::<RunTimes>()),
        ("## `[stream]`\n", rows::<Stream>()),
        ("## `[[watch]]`\n", rows::<WatchTable>()),
        ("| Key of `profile` |", rows::<ProfileRequest>()),
        ("## `[tap]`\n", rows::<Tap>()),
        ("## `[canary]`\n", rows::<Canary>()),
        ("## `[output]`\n", rows::<OutputConfig>()),
        ("## `[caps]`\n", rows::<Caps>()),
        ("## Objectives\n", CATALOGUE.iter().map(row_of_metric).collect()),
    ];
    let of_chat = [
        ("| Key of `chat` in `[crowd]` |", rows::<ChatConfig>()),
        ("| Key of a moment |", rows::<ChatMoment>()),
        ("| Key of `template` |", rows_of::<ChatTemplate>(|key| !OF_EVENTS.contains(&key))),
        (
            "| Key of `template` over server-sent events |",
            rows_of::<ChatTemplate>(|key| OF_EVENTS.contains(&key)),
        ),
        ("| Key of a message of `join` |", rows::<JoinStep>()),
        ("| Key of `pong` |", rows::<Pong>()),
        ("| Key of `keep_alive` |", rows::<KeepAlive>()),
        ("| Key of `post` |", rows::<ChatHttp>()),
    ];
    let of_player = |is_one: fn(&str) -> bool| {
        [("| Key of `player` in `[crowd]` |", rows_of::<PlayerConfig>(is_one))]
    };
    for (name, tables) in [
        ("scenario.md", &of_scenario[..]),
        ("chat.md", &of_chat[..]),
        ("peers.md", &[("| Key of `p2p` |", rows::<PeerConfig>())][..]),
        ("http-client.md", &of_player(|key| OF_REQUESTS.contains(&key))[..]),
        ("hls.md", &of_player(|key| OF_LIVE.contains(&key))[..]),
        ("vod.md", &of_player(|key| !OF_REQUESTS.contains(&key) && !OF_LIVE.contains(&key))[..]),
    ] {
        let file = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(&file).unwrap();
        let expect = tables.iter().fold(page, |page, (at, rows)| with_rows(&page, at, rows));
        if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
            std::fs::write(&file, &expect).unwrap();
        }
        let page = std::fs::read_to_string(&file).unwrap();
        assert!(
            page == expect,
            "docs/{name}: write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-scenario tables"
        );
    }
}
