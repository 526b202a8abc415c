//! Reads `player` of a `[crowd]`: how viewers of recordings play.

use std::time::Duration;

use super::fields::{Fields, Reader};
use super::tree::{Span, Value};
use super::{har, http, peers};
use crate::http::CredentialsPolicy;
use crate::peers::PeerConfig;
use crate::playback::{AtEnd, PlaybackPosition, UserHabits};
use crate::player::{LivePolicy, MediaFormat, NORMAL_SCALE_MILLI, PlayerConfig, RenditionPolicy};
use crate::scenario::Scenario;
use crate::target::{Carriage, Part};
use crate::units;

/// Shortest buffer: below it a player could not hide the gap between two requests.
const BUFFER_MIN: Duration = Duration::from_millis(500);
/// Longest buffer.
const BUFFER_MAX: Duration = Duration::from_secs(3_600);
/// Shortest mean time between actions of the user.
const EVERY_MIN: Duration = Duration::from_secs(1);

const EXAMPLE: &str = "a table such as { buffer = \"30s\", position = \"random\" }";

/// The player of a cohort; `None` if its table has none.
pub(super) fn player(reader: &mut Reader, cohort: &mut Fields<'_>) -> Option<PlayerConfig> {
    let path = cohort.path_of("player");
    let node = cohort.get("player")?;
    let mut fields = reader.table(node, &path, EXAMPLE)?;
    let default = PlayerConfig::default();
    let format = reader.named::<MediaFormat>(&mut fields, "format");
    let versions = http::versions(reader, &mut fields);
    let headers = http::headers(reader, &mut fields);
    let page = http::page(reader, &mut fields, &headers);
    let recorded_page = har::recorded_page(reader, &mut fields);
    let credentials = reader.named::<CredentialsPolicy>(&mut fields, "credentials");
    let rendition = reader.named::<RenditionPolicy>(&mut fields, "rendition");
    let position = position(reader, &mut fields);
    let scale_milli = scale(reader, &mut fields);
    let live = live(reader, &mut fields);
    let peers = peers::peers(reader, &mut fields);
    let mut time = |reader: &mut Reader, key: &'static str, example: &str| {
        reader.quantity(&mut fields, key, example, units::duration)
    };
    let config = PlayerConfig {
        format: format.unwrap_or_default(),
        http: versions,
        headers,
        page,
        recorded_page,
        credentials: credentials.unwrap_or_default(),
        buffer: time(reader, "buffer", "30s").unwrap_or(default.buffer),
        start: time(reader, "start", "1s").unwrap_or(default.start),
        position: position.unwrap_or(default.position),
        habits: UserHabits {
            seek_every: time(reader, "seek_every", "60s"),
            pause_every: time(reader, "pause_every", "120s"),
            pause_for: time(reader, "pause_for", "10s").unwrap_or(default.habits.pause_for),
        },
        scale_milli,
        patience: time(reader, "patience", "30s"),
        at_end: match reader.boolean(&mut fields, "repeat") {
            Some(false) => AtEnd::Leave,
            Some(true) | None => AtEnd::Repeat,
        },
        rendition: rendition.unwrap_or_default(),
        live,
        peers,
        seed: reader.integer(&mut fields, "seed", 0, crate::keys::SEED_MAX).unwrap_or(default.seed),
    };
    check(reader, &mut fields, &config);
    reader.finish(&fields);
    Some(config)
}

/// How live streams are followed.
fn live(reader: &mut Reader, fields: &mut Fields<'_>) -> LivePolicy {
    let default = LivePolicy::default();
    let live = LivePolicy {
        latency: reader.quantity(fields, "latency", "20s", units::duration),
        segments_behind: None,
        latency_max: reader.quantity(fields, "latency_max", "60s", units::duration),
        low_latency: reader.boolean(fields, "low_latency").unwrap_or(default.low_latency),
        preload_hints: reader.boolean(fields, "preload_hints").unwrap_or(default.preload_hints),
        catch_up_milli: catch_up(reader, fields),
    };
    if let (Some(latency), Some(latency_max)) = (live.latency, live.latency_max)
        && latency_max <= latency
    {
        let message = format!("`{}` is not longer than latency", fields.path_of("latency_max"));
        reader.fail(
            fields.span_of("latency_max"),
            message,
            "write a longer latency_max, or a shorter latency",
        );
    }
    if live.latency.is_some_and(|latency| latency.is_zero()) {
        let message =
            format!("`{}` is 0: what is not there yet cannot be played", fields.path_of("latency"));
        reader.fail(fields.span_of("latency"), message, "write latency = \"20s\", or remove it");
    }
    live
}

/// The fastest playback, in thousandths of the normal speed.
fn catch_up(reader: &mut Reader, fields: &mut Fields<'_>) -> u32 {
    let path = fields.path_of("catch_up");
    let usual = LivePolicy::default().catch_up_milli;
    let Some(node) = fields.get("catch_up") else { return usual };
    let number = match node.value {
        Value::Integer(value) => value as f64,
        Value::Float(value) => value,
        _ => f64::NAN,
    };
    if (1.0..=2.0).contains(&number) {
        return (number * 1e3).round() as u32;
    }
    reader.fail(node.span, format!("`{path}` is not a speed from 1 to 2"), "write catch_up = 1.5");
    usual
}

fn position(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<PlaybackPosition> {
    let path = fields.path_of("position");
    let node = fields.get("position")?;
    let text = reader.text(node, &path, "\"random\", or a time such as \"90s\"")?;
    if text == "random" {
        return Some(PlaybackPosition::Random);
    }
    match units::duration(&text) {
        Ok(time) => Some(PlaybackPosition::At(time)),
        Err(error) => {
            reader.fail(
                node.span,
                format!("`{path}`: {error}"),
                "write position = \"random\", or a time such as \"90s\"",
            );
            None
        }
    }
}

/// The speed asked of the server, in thousandths of the normal one.
fn scale(reader: &mut Reader, fields: &mut Fields<'_>) -> i32 {
    let path = fields.path_of("scale");
    let Some(node) = fields.get("scale") else { return NORMAL_SCALE_MILLI };
    let number = match node.value {
        Value::Integer(value) => value as f64,
        Value::Float(value) => value,
        _ => f64::NAN,
    };
    if number.is_finite() && (0.001..=1_000.0).contains(&number.abs()) {
        return (number * 1e3).round() as i32;
    }
    let message = format!("`{path}` is not a speed such as 2, 0.5 or -1");
    reader.fail(node.span, message, "write scale = 2.0");
    NORMAL_SCALE_MILLI
}

/// Checks the values against each other.
fn check(reader: &mut Reader, fields: &mut Fields<'_>, config: &PlayerConfig) {
    if !(BUFFER_MIN..=BUFFER_MAX).contains(&config.buffer) {
        let message = format!("`{}` must be from 0.5 s to 1 h", fields.path_of("buffer"));
        reader.fail(fields.span_of("buffer"), message, "write buffer = \"30s\"");
    }
    if config.start > config.buffer {
        let message = format!(
            "`{}` is longer than the buffer: playback would never begin",
            fields.path_of("start")
        );
        let span = fields.span_of("start").or(fields.span_of("buffer"));
        reader.fail(span, message, "write a shorter start, or a longer buffer");
    }
    for (key, every) in
        [("seek_every", config.habits.seek_every), ("pause_every", config.habits.pause_every)]
    {
        if every.is_some_and(|every| every < EVERY_MIN) {
            let message = format!("`{}` is less than 1 s", fields.path_of(key));
            reader.fail(fields.span_of(key), message, format!("write {key} = \"60s\""));
        }
    }
    if config.habits.pause_every.is_none()
        && let Some(span) = fields.span_of("pause_for")
    {
        let message =
            format!("`{}` has no effect without pause_every", fields.path_of("pause_for"));
        reader.fail(span, message, "add pause_every = \"120s\", or remove it");
    }
}

/// Keys that RTSP has nothing for.
const HTTP_KEYS: &str = "format, http, headers, page, credentials, har, buffer, start, patience, \
                         rendition, p2p and what is for live streams";

/// A player needs recordings as the target.
pub(super) fn check_target(reader: &mut Reader, scenario: &Scenario, spans: &[Option<Span>]) {
    let protocol = scenario.target.protocol();
    for (cohort, span) in scenario.crowd.iter().zip(spans) {
        let (Some(role), Some(span)) = (&cohort.role, *span) else { continue };
        let player = &role.player;
        // What RTSP has of a player.
        let of_rtsp = PlayerConfig {
            position: player.position,
            habits: player.habits,
            scale_milli: player.scale_milli,
            at_end: player.at_end,
            seed: player.seed,
            ..PlayerConfig::default()
        };
        let (message, help) = match (protocol.part(), protocol.carriage()) {
            (_, Carriage::Http) if player.scale_milli != NORMAL_SCALE_MILLI => {
                ("`player.scale` has no effect: HTTP servers do not play".to_owned(), "remove it")
            }
            (Part::Watch, Carriage::Rtsp) if *player != of_rtsp => (
                format!("`player`: {HTTP_KEYS} have no effect on RTSP, where the server paces"),
                "remove them",
            ),
            // A page of PeerTube names its tracker.
            (Part::Watch, Carriage::Http)
                if player.peers.as_ref().is_some_and(has_channels_for_nobody) =>
            {
                let message = "`player.p2p.data_channels` has no effect without tracker: \
                               browsers are found by it";
                (message.to_owned(), "add tracker = \"wss://HOST/tracker/socket\", or remove it")
            }
            (_, Carriage::Http) | (Part::Watch, Carriage::Rtsp) => continue,
            (_, Carriage::WebRtc | Carriage::Rtsp | Carriage::Ingest | Carriage::Nothing) => {
                let name = protocol.name();
                (
                    format!("`player` has no effect: {name} plays no recordings"),
                    "remove it, or use http(s)://HOST/FILE or rtsp(s)://HOST/FILE as the target",
                )
            }
        };
        reader.fail(span, message, help);
    }
}

/// Whether there are data channels, and nothing by which others are found.
fn has_channels_for_nobody(peers: &PeerConfig) -> bool {
    peers.has_any_channels() && peers.tracker.is_none()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::playback::{AtEnd, PlaybackPosition};
    use crate::read::read_cohort;
    use crate::{CredentialsPolicy, HttpVersionPolicy, PlayerConfig, Scenario, TokenSource};

    fn read(url: &str, player: &str) -> Result<PlayerConfig, String> {
        let scenario = read_cohort(url, &format!("player = {{ {player} }}"))?;
        Ok(scenario.crowd[0].role.clone().map(|role| role.player).unwrap_or_default())
    }

    const FILE: &str = "http://127.0.0.1/a.mp4";
    const RTSP: &str = "rtsp://127.0.0.1/a";

    #[test]
    fn players_are_read_and_written_again() {
        let player = read(
            FILE,
            r#"http = "3", buffer = "20s", start = "500ms", position = "random", seek_every = "60s",
               patience = "5s", repeat = false, seed = 7"#
                .replace('\n', " ")
                .as_str(),
        )
        .unwrap();
        assert_eq!(
            (player.http.only(), player.buffer),
            (Some(HttpVersionPolicy::Http3), Duration::from_secs(20))
        );
        assert_eq!((player.position, player.at_end), (PlaybackPosition::Random, AtEnd::Leave));
        assert_eq!(player.habits.seek_every, Some(Duration::from_secs(60)));
        assert_eq!(read(FILE, "").unwrap(), PlayerConfig::default());
        let live = read(
            FILE,
            r#"latency = "20s", latency_max = "1m", low_latency = false, catch_up = 1.5"#,
        )
        .unwrap()
        .live;
        assert_eq!((live.latency, live.catch_up_milli), (Some(Duration::from_secs(20)), 1_500));
        assert!(!live.low_latency && !live.preload_hints);
        let scaled =
            read(RTSP, r#"scale = -1.5, position = "30s", pause_every = "10s", pause_for = "2s""#);
        assert_eq!(scaled.unwrap().scale_milli, -1_500);
    }

    #[test]
    fn what_is_said_of_requests_is_read_and_written_again_without_its_secrets() {
        let mixed =
            read(FILE, r#"http = { "3" = 41, "2" = 51.5, "1.1" = 8, browser = 0 }"#).unwrap().http;
        let entries: Vec<_> = mixed.entries().collect();
        use HttpVersionPolicy::{Http1, Http2, Http3};
        assert_eq!(entries, [(Http1, 8_000), (Http2, 51_500), (Http3, 41_000)]);
        assert_eq!(
            read(FILE, r#"http = "browser""#).unwrap().http.only(),
            Some(HttpVersionPolicy::Browser)
        );
        let headers = read(FILE, r#"headers = { X-Session = "env:SESSION" }"#).unwrap().headers;
        assert_eq!(headers, [("X-Session".into(), TokenSource::Environment("SESSION".into()))]);
        let page = read(FILE, r#"page = "https://www.Example.com:443/watch?v=1""#).unwrap().page;
        assert_eq!(page.as_ref().map(url::Url::as_str), Some("https://www.example.com/watch?v=1"));
        assert_eq!(read(FILE, "").unwrap().credentials, CredentialsPolicy::SameOrigin);
        for policy in [CredentialsPolicy::Include, CredentialsPolicy::Omit] {
            let player = read(FILE, &format!("credentials = \"{}\"", policy.name())).unwrap();
            assert_eq!(player.credentials, policy);
        }
        let text = format!(
            "[target]\nurl = \"{FILE}\"\n[crowd]\nsize = 3\nplayer = {{ headers = {{ X-Key = \"hunter2\" }} }}\n"
        );
        let stored = Scenario::parse(&text).unwrap().to_toml();
        assert!(!stored.contains("hunter2") && stored.contains("X-Key"), "{stored}");
        assert!(Scenario::parse_stored(&stored).is_ok());
        assert!(!format!("{:?}", Scenario::parse(&text).unwrap()).contains("hunter2"));
    }

    #[test]
    fn a_recorded_page_is_read_and_written_again() {
        let page = r#"har = "watch.har", warm = 0.3, warm_age = "1h", origins = { "https://A.example:443" = "http://127.0.0.1:81/" }"#;
        let page = read(FILE, page).unwrap().recorded_page.unwrap();
        assert_eq!((page.har.as_str(), page.warm_milli), ("watch.har", 300));
        assert_eq!(page.warm_age, Duration::from_secs(3_600));
        let rule = &page.origins[0];
        assert_eq!(
            (rule.recorded.as_str(), rule.requested.as_str()),
            ("https://a.example", "http://127.0.0.1:81")
        );
        let cold = read(FILE, r#"har = "a.har", warm = 0, warm_age = "1h""#).unwrap();
        assert_eq!(cold.recorded_page.unwrap().warm_milli, 0);
    }

    #[test]
    fn what_has_no_effect_or_no_sense_is_an_error() {
        for (url, player, expect) in [
            (FILE, "scale = 2", "`player.scale` has no effect"),
            (RTSP, r#"buffer = "5s""#, "have no effect on RTSP"),
            ("whep+http://127.0.0.1/w", r#"buffer = "5s""#, "WHEP plays no recordings"),
            (FILE, r#"buffer = "1s", start = "2s""#, "longer than the buffer"),
            (FILE, r#"buffer = "1ms""#, "from 0.5 s to 1 h"),
            (FILE, r#"pause_for = "1s""#, "no effect without pause_every"),
            (FILE, r#"seek_every = "10ms""#, "less than 1 s"),
            (FILE, r#"http = "4""#, "not one of"),
            (FILE, r#"http = { "4" = 1 }"#, "unknown version `4` in `crowd.player.http`"),
            (FILE, r#"http = { "3" = -1 }"#, "is not a weight"),
            (FILE, r#"http = { "3" = 0 }"#, "no weight above 0"),
            (FILE, "http = {}", "no weight above 0"),
            (FILE, r#"headers = "a""#, "is not a table"),
            (FILE, r#"headers = { "X Y" = "a" }"#, "not the name of a header"),
            (FILE, r#"headers = { Host = "b" }"#, "throng sets this header itself"),
            (FILE, r#"headers = { X-A = "a\nb" }"#, "not printable ASCII"),
            (RTSP, r#"headers = { X-A = "b" }"#, "have no effect on RTSP"),
            (FILE, r#"credentials = "all""#, "not one of"),
            (FILE, "page = 1", "`crowd.player.page` is not text"),
            (FILE, r#"page = "www.example.com""#, "`crowd.player.page` is not a URL"),
            (FILE, r#"page = "file:///watch.html""#, "is not the URL of a page of http or https"),
            (
                FILE,
                r#"page = "https://a.example/#player""#,
                "has a fragment, which browsers do not send",
            ),
            (FILE, r#"page = "https://me:hush@a.example/""#, "has a user name or password"),
            (
                FILE,
                r#"page = "http://a/", headers = { Referer = "http://b/" }"#,
                "`Referer` is sent for",
            ),
            (RTSP, r#"page = "http://a/""#, "have no effect on RTSP"),
            (RTSP, r#"credentials = "omit""#, "have no effect on RTSP"),
            (RTSP, "scale = 0", "not a speed"),
            (FILE, r#"position = "later""#, "player.position"),
            (FILE, r#"latency = "20s", latency_max = "10s""#, "not longer than latency"),
            (FILE, r#"latency = "0s""#, "is 0"),
            (FILE, "catch_up = 3", "not a speed from 1 to 2"),
            (RTSP, "low_latency = false", "have no effect on RTSP"),
            (RTSP, r#"har = "a.har""#, "have no effect on RTSP"),
            (FILE, "har = ''", "`crowd.player.har` is empty"),
            (FILE, "warm = 0.5", "`crowd.player.warm` has no effect without har"),
            (FILE, r#"warm_age = "1h""#, "has no effect without har"),
            (FILE, r#"har = "a.har", warm_age = "1h""#, "has no effect without warm"),
            (FILE, r#"har = "a.har", warm = 1.1"#, "is not a share from 0 to 1"),
            (FILE, r#"har = "a.har", warm = "30%""#, "is not a share from 0 to 1"),
            (
                FILE,
                r#"har = "a.har", origins = { "ftp://a" = "http://b" }"#,
                "`ftp://a` is not an origin",
            ),
            (
                FILE,
                r#"har = "a.har", origins = { "http://a" = "http://b/c" }"#,
                "`http://b/c` is not an origin",
            ),
            (FILE, r#"har = "a.har", origins = { "http://a" = 1 }"#, "is not an origin"),
            (FILE, r#"har = "a.har", origins = ["http://a"]"#, "is not a table"),
        ] {
            let error = read(url, player).unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
    }
}
