//! Checks `player` of a `[crowd]` against the target.

use super::fields::Reader;
use super::tree::Span;
use crate::peers::PeerConfig;
use crate::player::{NORMAL_SCALE_MILLI, PlayerConfig};
use crate::scenario::Scenario;
use crate::target::{Carriage, Part};

/// Keys that RTSP has nothing for.
const HTTP_KEYS: &str = "format, http, headers, page, credentials, har, buffer, start, patience, \
                         rendition, screen, p2p and what is for live streams";

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
        let screen = |text: &str| read(FILE, text).unwrap().screen_lines;
        assert_eq!((screen(r#"screen = "360p""#), screen("")), (Some(360), None));
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
        let page = page.as_ref().map(|page| page.in_clear().as_str());
        assert_eq!(page, Some("https://www.example.com/watch?v=1"));
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
    fn a_page_is_stored_without_what_may_be_a_secret_of_its_query_and_asked_for_again() {
        let page = "https://a.example/watch?v=1&jwt=hunter2";
        let text = format!(
            "[target]\nurl = \"{FILE}\"\n[crowd]\nsize = 3\nplayer = {{ page = \"{page}\" }}\n"
        );
        let stored = Scenario::parse(&text).unwrap().to_toml();
        assert!(stored.contains("https://a.example/watch?v=1&jwt=…\""), "{stored}");
        assert_eq!(Scenario::parse_stored(&stored).unwrap().to_toml(), stored);
        let error = Scenario::parse(&stored).unwrap_err().to_string();
        assert!(error.contains("player.page` was redacted when"), "{error}");
        for escaped in ["%E2%80%A6", "%e2%80%a6"] {
            let error = Scenario::parse(&stored.replace('…', escaped)).unwrap_err().to_string();
            assert!(error.contains("player.page` was redacted when"), "{error}");
        }
        let braced = text.replace("jwt=hunter2", "jwt={hunter2}&ctx={'sid':'hunter2'}");
        let stored = Scenario::parse(&braced).unwrap().to_toml();
        assert!(stored.contains("https://a.example/watch?v=1&jwt=…&ctx=…\""), "{stored}");
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
            (RTSP, r#"screen = "360p""#, "have no effect on RTSP"),
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
