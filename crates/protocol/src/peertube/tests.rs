//! A visitor and an instance, with the time moved by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use throng_media::manifest::PlaylistCache;
use throng_media::quality::WallClock;
use throng_media::timing::IndexCache;
use throng_observation::{FailureReason, Observation, Outcome};
use throng_scenario::{ChatConfig, HttpVersionPolicy, PeerConfig, PeerPreset, PlayerConfig};

use super::*;
use crate::participant::{
    Channel, ChannelError, DownloadEvent, FetchId, Input, Message, Opening, Output, Participant,
};
use crate::webrtc::ParticipantOptions;
use std::time::{Duration, Instant};

const PAGE: &str = "http://10.0.0.1/w/abc";

/// In place of a status: TLS does not come up.
const NO_TLS: u16 = 0;

/// An instance of these answers, by path.
struct Fixture {
    visitor: Visitor,
    now: Instant,
    answers: BTreeMap<&'static str, (u16, String)>,
    requests: Vec<String>,
    /// Their paths with their queries.
    queries: Vec<String>,
    opened: Vec<String>,
    sent: Vec<(Channel, String)>,
    anomalies: Vec<String>,
    ended: Option<Outcome>,
    deadline: Instant,
}

fn video(state: u32, playlists: &str) -> String {
    format!(
        r#"{{"id":7,"uuid":"u","isLive":true,"state":{{"id":{state},"label":""}},"streamingPlaylists":[{playlists}],
            "trackerUrls":["http://10.0.0.1/tracker/announce","ws://10.0.0.1/tracker/socket"]}}"#
    )
}

const PLAYLIST: &str = r#"{"playlistUrl":"http://10.0.0.1/hls/u/master.m3u8","segmentsSha256Url":"http://10.0.0.1/hls/u/segments-sha256.json"}"#;

const MASTER: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000000\n0.m3u8\n";

impl Fixture {
    fn new(change: impl FnOnce(&mut BTreeMap<&'static str, (u16, String)>)) -> Self {
        Self::of_visitor(true, change)
    }

    /// Of a visitor who has the chat of the page open or closed.
    fn of_visitor(
        has_chat: bool,
        change: impl FnOnce(&mut BTreeMap<&'static str, (u16, String)>),
    ) -> Self {
        let now = Instant::now();
        let ok = |text: &str| (200, text.to_owned());
        let mut answers = BTreeMap::from([
            ("/w/abc", ok(r#"{"serverVersion":"8.2.4","a":"bbbbbbbbbbbbbbbbb"}"#)),
            ("/api/v1/videos/abc", ok(&video(1, PLAYLIST))),
            ("/api/v1/videos/u", ok(&video(1, PLAYLIST))),
            ("/api/v1/videos/live/u", ok(r#"{"latencyMode":1}"#)),
            ("/hls/u/master.m3u8", ok(MASTER)),
            ("/hls/u/0.m3u8", ok("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:1\n")),
            ("/socket.io/", ok(r#"0{"sid":"s"}"#)),
            (
                "/plugins/livechat/router/api/configuration/room/u",
                ok(
                    r#"{"room":"u@room.h","localAnonymousJID":"anon.h","localWebsocketServiceUrl":"/plugins/livechat/ws/xmpp-websocket"}"#,
                ),
            ),
        ]);
        change(&mut answers);
        let player = player::Config {
            url: Url::parse(PAGE).unwrap(),
            http: HttpVersionPolicy::Negotiated,
            player: PlayerConfig {
                peers: Some(PeerConfig::preset(PeerPreset::Lan)),
                ..PlayerConfig::default()
            },
            page: None,
            token: None,
            may_reach: Arc::new(|_, _| true),
            clock: WallClock { at: now, unix_ns: 0 },
            number: 1,
            identity_seed: 0,
            head_timeout: Duration::from_secs(10),
            indexes: IndexCache::default(),
            playlists: PlaylistCache::default(),
            swarms: player::Swarms::default(),
        };
        let make: MakeChat = Box::new(|room| chat::Config {
            url: room.url,
            protocol: chat::Protocol::Xmpp(Box::new(chat::xmpp::XmppConfig {
                domain: room.domain,
                credentials: None,
                room: room.room,
                nick: "a".into(),
                vcards: ChatConfig::default().vcards,
                history_max: 50,
                has_chat_states: false,
                has_management: false,
                answer_within: Duration::from_secs(10),
            })),
            rename: None,
            speech_seed: 1,
            chat: ChatConfig::default(),
            mark: "m".into(),
            log: chat::RoomLog::default(),
        });
        let chat = has_chat.then_some(make);
        let config = Config { page: Url::parse(PAGE).unwrap(), player, chat };
        let mut fixture = Self {
            visitor: Visitor::new(config, ParticipantOptions::for_tests(now)),
            now,
            answers,
            requests: Vec::new(),
            queries: Vec::new(),
            opened: Vec::new(),
            sent: Vec::new(),
            anomalies: Vec::new(),
            ended: None,
            deadline: now,
        };
        fixture.visitor.handle(now, Input::Start { intended_at: now });
        fixture.drain();
        fixture
    }

    fn drain(&mut self) {
        for turn in 0.. {
            assert!(turn < 10_000, "the visitor does not come to rest");
            match self.visitor.poll_output(self.now) {
                Output::Download(fetch, request, _) => {
                    let path = request.head.uri.path().to_owned();
                    self.requests.push(format!("{} {path}", request.head.method));
                    let query = request.head.uri.query().unwrap_or_default();
                    self.queries.push(format!("{path}?{query}"));
                    self.answer(fetch, &path, request.head.method == http::Method::POST);
                }
                Output::Open(channel, crate::participant::Open::WebSocket { url, .. }) => {
                    self.opened.push(url.in_clear().to_string());
                    self.visitor
                        .handle(self.now, Input::Opened { channel, opening: Opening::default() });
                }
                Output::Signal(channel, Message::Text(text)) => self.sent.push((channel, text)),
                Output::Observed(Observation::ProtocolAnomaly { detail, .. }) => {
                    self.anomalies.push(detail.into());
                }
                Output::Ended(outcome) => self.ended = Some(outcome),
                Output::Timeout(at, _) => {
                    self.deadline = at;
                    return;
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, fetch: FetchId, path: &str, is_post: bool) {
        let polls = path == "/socket.io/"
            && self.requests.iter().filter(|seen| *seen == "GET /socket.io/").count() > 1;
        let (status, body) = match self.answers.get(path) {
            _ if is_post => (204, String::new()),
            // The second poll is held open.
            Some(_) if polls => return,
            Some((status, body)) => (*status, body.clone()),
            None => (200, "{}".to_owned()),
        };
        if status == NO_TLS {
            let event = DownloadEvent::Finished(Err(ChannelError::Tls(body)));
            return self.visitor.handle(self.now, Input::Download { fetch, event });
        }
        let (mut head, ()) = http::Response::new(()).into_parts();
        head.status = StatusCode::from_u16(status).unwrap();
        head.headers.insert("content-length", body.len().to_string().parse().unwrap());
        let head = DownloadEvent::Head { head: Box::new(head), opening: Box::default() };
        for event in [head, DownloadEvent::Body(body.as_bytes()), DownloadEvent::Finished(Ok(()))] {
            self.visitor.handle(self.now, Input::Download { fetch, event });
        }
    }

    fn wait(&mut self, lasts: Duration) {
        let end = self.now + lasts;
        while self.deadline < end {
            self.now = self.deadline;
            self.visitor.handle(self.now, Input::Timeout);
            self.drain();
        }
        self.now = end;
    }

    fn asked(&self, request: &str) -> usize {
        self.requests.iter().filter(|seen| *seen == request).count()
    }
}

#[test]
fn the_page_asks_in_its_order_and_the_player_and_the_chat_come_from_what_it_learns() {
    let fixture = Fixture::new(|_| {});
    let first: Vec<&str> = fixture.requests.iter().take(7).map(String::as_str).collect();
    assert_eq!(
        first,
        [
            "GET /w/abc",
            "GET /api/v1/videos/abc",
            "GET /api/v1/videos/abc/captions",
            "GET /api/v1/videos/abc/chapters",
            "GET /api/v1/videos/abc/storyboards",
            "GET /api/v1/player-settings/videos/abc",
            "GET /api/v1/videos/u/comment-threads",
        ]
    );
    for request in ["GET /hls/u/master.m3u8", "POST /api/v1/videos/u/views", "GET /socket.io/"] {
        assert!(fixture.asked(request) > 0, "{request}: {:?}", fixture.requests);
    }
    let urls = ["ws://10.0.0.1/socket.io/", "ws://10.0.0.1/plugins/livechat/ws/xmpp-websocket"];
    for url in urls {
        assert!(
            fixture.opened.iter().any(|opened| opened.starts_with(url)),
            "{url}: {:?}",
            fixture.opened
        );
    }
    let channels: std::collections::BTreeSet<Channel> =
        fixture.sent.iter().map(|(channel, _)| *channel).collect();
    assert_eq!(
        channels.into_iter().collect::<Vec<_>>(),
        [Channel(0), Channel(0x200)],
        "socket.io and the chat"
    );
}

#[test]
fn who_waits_for_the_live_asks_again_when_it_begins() {
    let mut fixture = Fixture::new(|answers| {
        answers.insert("/api/v1/videos/abc", (200, video(4, "")));
    });
    assert_eq!(
        (fixture.asked("GET /hls/u/master.m3u8"), fixture.asked("GET /api/v1/videos/u")),
        (0, 0)
    );
    let began = Message::Text(r#"42/live-videos,["state-change",{"state":1}]"#.into());
    fixture.visitor.handle(fixture.now, Input::Message { channel: Channel(0), message: began });
    fixture.drain();
    assert_eq!(
        (fixture.asked("GET /hls/u/master.m3u8"), fixture.asked("GET /api/v1/videos/u")),
        (1, 1)
    );
    assert_eq!(fixture.asked("GET /api/v1/videos/u/captions"), 1, "all of it");
}

#[test]
fn a_page_of_7_0_searches_for_what_it_recommends_and_lists_only_where_it_finds_nothing() {
    let page = r#"{"serverVersion":"7.0.0","a":"bbbbbbbbbbbbbbbbb"}"#;
    let settings = "GET /api/v1/plugins/peertube-plugin-livechat/public-settings";
    for (found, listed) in [(r#"{"data":[{"id":7},{"id":8}]}"#, 0), (r#"{"data":[{"id":7}]}"#, 1)] {
        let fixture = Fixture::new(|answers| {
            answers.insert("/w/abc", (200, page.into()));
            answers.insert("/api/v1/search/videos", (200, found.into()));
        });
        for (request, times) in [
            ("GET /api/v1/config/", 1),
            ("GET /api/v1/oauth-clients/local", 1),
            ("GET /api/v1/search/videos", 1),
            ("GET /api/v1/videos", listed),
            (settings, 3),
        ] {
            assert_eq!(fixture.asked(request), times, "{request}: {:?}", fixture.requests);
        }
        let search = "/api/v1/search/videos?start=0&count=6&skipCount=true&nsfw=false\
                      &sort=-publishedAt&searchTarget=local";
        assert!(fixture.queries.iter().any(|asked| asked == search), "{:?}", fixture.queries);
    }
    let newer = Fixture::new(|_| {});
    let asked = ["GET /api/v1/search/videos", "GET /api/v1/videos", settings];
    assert_eq!(asked.map(|request| newer.asked(request)), [0, 1, 1]);
}

/// The plugin asks for its settings before it knows whether the video has a chat.
#[test]
fn a_visitor_without_a_chat_asks_for_its_settings_where_the_instance_has_the_plugin() {
    let settings = "GET /api/v1/plugins/peertube-plugin-livechat/public-settings";
    let plugin = r#"{"npmName":"peertube-plugin-livechat"}"#;
    for (registered, times) in [(plugin, 1), ("", 0)] {
        let page =
            format!(r#"{{"serverVersion":"7.0.0","plugin":{{"registered":[{registered}]}}}}"#);
        let fixture = Fixture::of_visitor(false, |answers| {
            answers.insert("/w/abc", (200, page));
        });
        assert_eq!(fixture.asked(settings), times, "{:?}", fixture.requests);
        let is_of_room = |request: &String| request.contains("/plugins/livechat/");
        assert!(!fixture.requests.iter().any(is_of_room), "{:?}", fixture.requests);
    }
}

#[test]
fn a_recording_has_nothing_that_socket_io_could_tell() {
    let recording = video(1, PLAYLIST).replace(r#""isLive":true"#, r#""isLive":false"#);
    let fixture = Fixture::new(|answers| {
        answers.insert("/api/v1/videos/abc", (200, recording.clone()));
    });
    assert_eq!(fixture.asked("GET /socket.io/"), 0, "{:?}", fixture.requests);
    assert!(fixture.asked("GET /hls/u/master.m3u8") > 0, "it plays all the same");
}

#[test]
fn a_page_that_is_not_there_is_a_failure_and_less_than_that_is_not() {
    for (path, reason) in [
        ("/w/abc", FailureReason::HttpStatus(502)),
        ("/api/v1/videos/abc", FailureReason::HttpStatus(502)),
    ] {
        let fixture = Fixture::new(|answers| {
            answers.insert(path, (502, String::new()));
        });
        assert!(
            matches!(&fixture.ended, Some(Outcome::Failed(failure)) if failure.reason == reason),
            "{:?}",
            fixture.ended
        );
    }
    let broken = Fixture::new(|answers| {
        answers.insert("/api/v1/videos/abc", (200, "<html>".into()));
    });
    assert!(
        matches!(&broken.ended, Some(Outcome::Failed(failure)) if failure.reason == FailureReason::Protocol)
    );
    let untrusted = Fixture::new(|answers| {
        answers.insert("/w/abc", (NO_TLS, "an unknown issuer".into()));
    });
    assert!(
        matches!(&untrusted.ended, Some(Outcome::Failed(failure))
            if failure.reason == FailureReason::Tls && failure.detail.contains("an unknown issuer")),
        "{:?}",
        untrusted.ended
    );
    let without_chat = Fixture::new(|answers| {
        answers.insert("/plugins/livechat/router/api/configuration/room/u", (404, String::new()));
    });
    assert!(without_chat.ended.is_none());
    assert!(without_chat.anomalies[0].contains("there is no chat"), "{:?}", without_chat.anomalies);
}

#[test]
fn a_socket_that_breaks_is_made_again_and_leaving_ends_all() {
    let mut fixture = Fixture::new(|_| {});
    let handshakes = fixture.asked("GET /socket.io/");
    // It was in use.
    let probe = Message::Text("3probe".into());
    fixture.visitor.handle(fixture.now, Input::Message { channel: Channel(0), message: probe });
    fixture.drain();
    let why = crate::participant::ChannelError::ClosedByPeer(None);
    fixture.visitor.handle(fixture.now, Input::Closed { channel: Channel(0), why });
    fixture.drain();
    assert_eq!(fixture.asked("GET /socket.io/"), handshakes);
    fixture.wait(Duration::from_secs(2));
    assert!(fixture.asked("GET /socket.io/") > handshakes, "{:?}", fixture.requests);
    fixture.visitor.handle(fixture.now, Input::Leave { others_follow: false });
    fixture.drain();
    assert!(fixture.ended.is_some());
}

#[test]
fn a_socket_that_is_silent_for_interval_and_timeout_is_made_again() {
    let mut fixture = Fixture::new(|answers| {
        answers.insert(
            "/socket.io/",
            (200, r#"0{"sid":"s","pingInterval":25000,"pingTimeout":20000}"#.into()),
        );
    });
    let handshakes = fixture.asked("GET /socket.io/");
    fixture.wait(Duration::from_secs(44));
    assert_eq!(fixture.asked("GET /socket.io/"), handshakes);
    fixture.wait(Duration::from_secs(4));
    assert!(fixture.asked("GET /socket.io/") > handshakes, "{:?}", fixture.requests);
    assert!(
        fixture.anomalies.iter().any(|text| text.contains("no packet in time")),
        "{:?}",
        fixture.anomalies
    );
}

#[test]
fn metrics_are_sent_to_instances_that_want_them_only() {
    let wants = r#"{"serverVersion":"8.2.4","openTelemetry":{"metrics":{"enabled":true,"playbackStatsInterval":10000}}}"#;
    for (page, expect) in [(wants.to_owned(), 2), (wants.replace("true", "false"), 0)] {
        let mut fixture = Fixture::new(|answers| {
            answers.insert("/w/abc", (200, page));
        });
        fixture.wait(Duration::from_millis(20_500));
        assert_eq!(
            fixture.asked("POST /api/v1/metrics/playback"),
            expect,
            "{:?}",
            fixture.requests
        );
    }
}

#[test]
fn swarms_of_9_are_named_by_the_video_and_its_resolution() {
    let segments: String =
        (0..15).map(|number| format!("#EXTINF:4,\n0-{number:06}.ts\n")).collect();
    let playlist = format!(
        "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:0\n{segments}"
    );
    let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000000,RESOLUTION=1280x720\n0.m3u8\n";
    let announced = |version: &str| {
        let mut fixture = Fixture::new(|answers| {
            answers.insert(
                "/w/abc",
                (200, format!(r#"{{"serverVersion":"{version}","a":"bbbbbbbbbbbbbbbbb"}}"#)),
            );
            answers.insert("/hls/u/master.m3u8", (200, master.to_owned()));
            answers.insert("/hls/u/0.m3u8", (200, playlist.clone()));
        });
        fixture.wait(Duration::from_secs(2));
        assert!(
            fixture.opened.iter().any(|url| url == "ws://10.0.0.1/tracker/socket"),
            "{:?}",
            fixture.opened
        );
        let announce = fixture.sent.iter().find(|(_, text)| text.contains("info_hash"));
        let (_, text) = announce.unwrap_or_else(|| panic!("{:?}", fixture.sent));
        let announce: serde_json::Value = serde_json::from_str(text).unwrap();
        announce["info_hash"].as_str().unwrap().to_owned()
    };
    assert_eq!(announced("9.0.0"), "f7a12QLTB0LSt/xfepmP", "sha1 of pt-v2-u-main-default-720");
    assert_ne!(announced("8.2.4"), announced("9.0.0"));
}
