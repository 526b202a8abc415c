//! Every sum of every family takes part in all that is done with its family.

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::*;

/// A family whose sums are 1, 2, 3, …, `times` as often.
fn filled<T: Counters>(times: i64) -> T {
    let mut next = 0;
    let read = T::read(|| {
        next += times;
        Ok::<i64, Infallible>(next)
    });
    read.unwrap()
}

fn sums<T: Counters>(counters: &T) -> Vec<i64> {
    counters.sums().map(|(_, sum)| sum).collect()
}

fn check<T: Counters + PartialEq + std::fmt::Debug + serde::Serialize>() {
    let one: T = filled(1);
    let count = i64::try_from(T::COUNTERS.len()).unwrap();
    assert_eq!(sums(&one), (1..=count).collect::<Vec<_>>());
    let mut two = one;
    two += one;
    assert_eq!(two, filled(2));
    assert_eq!(two.since(&one), one);
    let fields = serde_json::to_value(one).unwrap();
    for (counter, sum) in one.sums() {
        assert_eq!(fields[counter.name].as_i64(), Some(sum), "{}", counter.name);
        assert!(!counter.meaning().starts_with(' ') && counter.meaning().ends_with('.'));
    }
    let heads: BTreeSet<_> = T::COUNTERS.iter().map(Counter::csv).collect();
    assert_eq!((heads.len(), fields.as_object().unwrap().len()), (T::COUNTERS.len(), heads.len()));
}

#[test]
fn each_sum_adds_up_and_has_a_name_of_its_own() {
    check::<TrackCounters>();
    check::<PlaybackCounters>();
    check::<ChatCounters>();
    check::<SentCounters>();
    check::<HttpRequestCounters>();
}

#[test]
fn sums_stay_at_their_largest_value_and_none_is_negative_that_cannot_be() {
    let mut largest = SentCounters { packets_sent: u64::MAX - 1, ..SentCounters::default() };
    largest += SentCounters { packets_sent: 7, ..SentCounters::default() };
    assert_eq!(largest.packets_sent, u64::MAX);
    assert_eq!(largest.sums().next().map(|(_, sum)| sum), Some(i64::MAX));
    let damaged = TrackCounters::read(|| Ok::<i64, Infallible>(-3)).unwrap();
    assert_eq!((damaged.packets_original, damaged.packets_lost), (0, -3));
}

#[test]
fn the_one_sum_that_can_fall_is_that_of_lost_packets() {
    let all = FAMILIES.iter().flat_map(|(_, counters)| *counters);
    let falling: Vec<_> = all.filter(|counter| counter.can_fall).map(|c| c.name).collect();
    assert_eq!(falling, ["packets_lost"]);
}

#[test]
fn times_are_seconds_in_a_csv() {
    let head = |name: &str| {
        let named = |counter: &&Counter| counter.name == name;
        PlaybackCounters::COUNTERS.iter().find(named).map(Counter::csv)
    };
    assert_eq!(head("played_us").as_deref(), Some("played_s"));
    assert_eq!(head("stall_us").as_deref(), Some("stalled_s"));
    assert_eq!(head("requests").as_deref(), Some("requests"));
}

#[test]
fn of_received_tracks_columns_and_charts_are_those_that_are_declared() {
    let columns = TrackCounters::COUNTERS.iter().filter_map(Counter::declared_csv);
    assert_eq!(columns.collect::<Vec<_>>(), ["nack_sent", "repeated_bytes"]);
    let charts = TrackCounters::COUNTERS.iter().filter_map(Counter::chart);
    let expect = [
        ("Freezes", "freezes begun per second"),
        ("Repeats", "payload bytes received again per second"),
    ];
    assert_eq!(charts.collect::<Vec<_>>(), expect);
}

/// The tables of `run.db` that have the sums of a family.
const FAMILIES: [(&str, &[Counter]); 5] = [
    ("`series`, `track`: received tracks", TrackCounters::COUNTERS),
    ("`sent`: tracks that participants send", SentCounters::COUNTERS),
    ("`playback`, `player`: players", PlaybackCounters::COUNTERS),
    ("`http_requests`: requests of players", HttpRequestCounters::COUNTERS),
    ("`chat`: participants of a chat", ChatCounters::COUNTERS),
];

/// So many sums of each family are in the folders of the first version that had it: what comes
/// later says with what (`since`), or those folders count as damaged.
const FIRST: [usize; 5] = [20, 10, 17, 4, 14];

#[test]
fn a_sum_that_came_later_says_with_what() {
    let first = FAMILIES.map(|(_, counters)| counters.iter().filter(|c| !c.came_later()).count());
    assert_eq!(first, FIRST);
}

const HEAD: &str = "# Counters

The sums in `run.db`, by table: what each counts, and its name in a standard. Look one up that a
query or a CSV names.

```
$ sqlite3 RUN/run.db \"SELECT sum(packets_lost), sum(packets_original) FROM series\"
```

A row of a second has the sum over the second; one of `track`, `player` or `http_requests` has the
sum over the run. All add up, over seconds and over rows. Times (`_us`) are microseconds, and in a
CSV seconds (`_s`). The last column says with what a counter came that older folders lack: it reads
as 0 there. What is made of them: [meters.md](meters.md). The other columns:
[run-folder.md](run-folder.md). This page is made from `crates/observation/src/measure`, and a test
keeps the two equal.
";

/// `docs/counters.md`.
fn page() -> String {
    let mut page = String::from(HEAD);
    for (tables, counters) in FAMILIES {
        let columns = "| Counter | Unit | Meaning | Standard | Came with |\n|---|---|---|---|---|";
        page += &format!("\n## {tables}\n\n{columns}\n");
        for counter in counters {
            let unit = match counter.unit {
                SumUnit::Count => "count",
                SumUnit::Bytes => "bytes",
                SumUnit::Microseconds => "µs",
            };
            let name = match counter.declared_csv().filter(|csv| *csv != counter.name) {
                None => format!("`{}`", counter.name),
                Some(csv) => format!("`{}` (CSV: `{csv}`)", counter.name),
            };
            let (meaning, standard, since) = (counter.meaning(), counter.standard, counter.since);
            page += &format!("| {name} | {unit} | {meaning} | {standard} | {since} |\n");
        }
    }
    page
}

#[test]
fn the_page_of_the_docs_equals_the_declarations() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/counters.md");
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        std::fs::write(file, page()).unwrap();
    }
    assert!(
        std::fs::read_to_string(file).unwrap_or_default() == page(),
        "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-observation measure"
    );
}
