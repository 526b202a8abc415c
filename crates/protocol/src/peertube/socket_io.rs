//! A client of socket.io (protocol 5 over Engine.IO 4): it polls over HTTP first, changes to a
//! WebSocket, and subscribes to a video.
//!
//! ```text
//! GET  /socket.io/?EIO=4&transport=polling          ◀  0{"sid":…,"pingInterval":25000,…}
//! POST …&sid=…   40/live-videos,                    ◀  ok
//! GET  …&sid=…                                      ◀  40/live-videos,{"sid":…}
//! POST …&sid=…   42/live-videos,["subscribe",{"videoId":1}]
//! WebSocket …&transport=websocket&sid=…   2probe    ◀  3probe
//!                                         5         ◀  (the open poll: 6)
//! ```

use std::mem::discriminant;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use throng_observation::Url;

/// The namespace.
const SPACE: &str = "/live-videos,";

/// No server may ask for connections that are given up at once.
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// Longest session id, bytes: each request repeats it. Servers' have 20.
const SID_BYTES_MAX: usize = 256;

/// Packets in one body (Engine.IO 4).
const SEPARATOR: char = '\u{1e}';

/// What the client wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SocketOutput {
    Handshake(Url),
    Poll(Url),
    Post(Url, String),
    Open(Url),
    Send(String),
    Close,
}

/// What the server told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketEvent {
    /// The state of the video has changed to this.
    State(u64),
    /// So many watch.
    Viewers(u64),
    /// The live is over.
    ForceEnd,
    /// The connection is of no use any more.
    Broken,
}

/// The client.
#[derive(Debug)]
pub(super) struct SocketIo {
    base: Url,
    video: u64,
    state: State,
    outputs: Vec<SocketOutput>,
    is_joined: bool,
    is_subscribed: bool,
    counter: u32,
    /// Requests of polling that are not answered.
    open_requests: u32,
    /// The WebSocket works: it is changed to once no request of polling is open.
    is_probed: bool,
    /// After so long without a packet the connection is given up, where the server has said so.
    silence_max: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Idle,
    Shaking,
    /// Polls, and tries the WebSocket.
    Polling {
        sid: String,
    },
    /// All goes over the WebSocket.
    Upgraded,
    Over,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handshake {
    sid: String,
    /// Milliseconds.
    ping_interval: Option<u32>,
    ping_timeout: Option<u32>,
}

impl Handshake {
    /// A ping comes each interval, or the timeout later at the latest.
    fn silence_max(&self) -> Option<Duration> {
        let millis = u64::from(self.ping_interval?) + u64::from(self.ping_timeout?);
        Some(Duration::from_millis(millis).max(SILENCE_MIN))
    }
}

impl SocketIo {
    /// A client for the server of `page` that wants news of `video`.
    pub(super) fn new(page: &Url, video: u64) -> Self {
        let mut base = page.clone();
        base.set_path("/socket.io/");
        base.set_query(None);
        Self {
            base,
            video,
            state: State::Idle,
            outputs: Vec::new(),
            is_joined: false,
            is_subscribed: false,
            counter: 0,
            open_requests: 0,
            is_probed: false,
            silence_max: None,
        }
    }

    pub(super) fn start(&mut self) {
        if matches!(self.state, State::Idle | State::Over) {
            (self.state, self.is_joined, self.is_subscribed) = (State::Shaking, false, false);
            (self.open_requests, self.is_probed) = (0, false);
            let url = self.url("polling", None);
            self.outputs.push(SocketOutput::Handshake(url));
        }
    }

    fn url(&mut self, transport: &str, sid: Option<&str>) -> Url {
        let mut url = self.base.clone();
        url.add_parameter("EIO", "4");
        url.add_parameter("transport", transport);
        if transport == "polling" {
            // Against caches: its length is that of the client's.
            self.counter += 1;
            url.add_parameter("t", &format!("P{:07x}", self.counter));
        } else {
            url.set_scheme(if url.scheme() == "https" { "wss" } else { "ws" });
        }
        if let Some(sid) = sid {
            url.add_parameter("sid", sid);
        }
        url
    }

    /// The handshake was answered.
    pub(super) fn shaken(&mut self, body: &[u8]) -> Option<SocketEvent> {
        let text = String::from_utf8_lossy(body);
        let handshake =
            text.strip_prefix('0').and_then(|json| serde_json::from_str::<Handshake>(json).ok());
        let is_usable = |handshake: &Handshake| {
            self.state == State::Shaking && handshake.sid.len() <= SID_BYTES_MAX
        };
        let Some(handshake) = handshake.filter(is_usable) else {
            return self.broken();
        };
        self.silence_max = handshake.silence_max();
        let sid = handshake.sid;
        let (post, poll) = (self.url("polling", Some(&sid)), self.url("polling", Some(&sid)));
        let socket = self.url("websocket", Some(&sid));
        self.outputs.push(SocketOutput::Post(post, format!("40{SPACE}")));
        self.outputs.push(SocketOutput::Poll(poll));
        self.open_requests += 2;
        self.outputs.push(SocketOutput::Open(socket));
        self.state = State::Polling { sid };
        None
    }

    /// A poll was answered.
    pub(super) fn polled(&mut self, body: &[u8]) -> Vec<SocketEvent> {
        self.open_requests = self.open_requests.saturating_sub(1);
        let text = String::from_utf8_lossy(body).into_owned();
        // What is no packet is the answer of something else.
        let is_packet = |packet: &str| packet.starts_with(|kind: char| ('0'..='6').contains(&kind));
        if !text.split(SEPARATOR).all(is_packet) {
            return self.broken().into_iter().collect();
        }
        // Of each kind the last: what it says is how it is now, and a body may have a million.
        let mut events: Vec<SocketEvent> = Vec::new();
        for event in text.split(SEPARATOR).filter_map(|packet| self.packet(packet)) {
            events.retain(|other| discriminant(other) != discriminant(&event));
            events.push(event);
        }
        // Once the WebSocket works, nothing is begun by polling; the server ends the open poll.
        if let State::Polling { sid } = &self.state
            && !self.is_probed
        {
            let sid = sid.clone();
            let url = self.url("polling", Some(&sid));
            self.outputs.push(SocketOutput::Poll(url));
            self.open_requests += 1;
        }
        self.upgrade();
        events
    }

    /// A message by polling was answered.
    pub(super) fn posted(&mut self) {
        self.open_requests = self.open_requests.saturating_sub(1);
        self.upgrade();
    }

    /// Changes to the WebSocket when it works and polling has come to rest.
    fn upgrade(&mut self) {
        if self.is_probed && self.open_requests == 0 && matches!(self.state, State::Polling { .. })
        {
            self.state = State::Upgraded;
            self.outputs.push(SocketOutput::Send("5".into()));
            self.subscribe();
        }
    }

    /// The WebSocket is open.
    pub(super) fn opened(&mut self) {
        if matches!(self.state, State::Polling { .. }) {
            self.outputs.push(SocketOutput::Send("2probe".into()));
        }
    }

    /// A message came over the WebSocket.
    pub(super) fn message(&mut self, text: &str) -> Option<SocketEvent> {
        if text == "3probe" {
            self.is_probed = true;
            self.upgrade();
            return None;
        }
        self.packet(text)
    }

    fn packet(&mut self, packet: &str) -> Option<SocketEvent> {
        match packet.as_bytes().first() {
            // A ping.
            Some(b'2') => {
                self.say("3".into());
                None
            }
            Some(b'1') => self.broken(),
            Some(b'4') => self.of_socket_io(packet.get(1..).unwrap_or_default()),
            _ => None,
        }
    }

    fn of_socket_io(&mut self, packet: &str) -> Option<SocketEvent> {
        let (kind, rest) = packet.split_at_checked(1)?;
        let content = rest.strip_prefix(SPACE).unwrap_or_default();
        match kind {
            "0" => {
                self.is_joined = true;
                self.subscribe();
                None
            }
            "1" | "4" => self.broken(),
            "2" => {
                let event: Vec<Value> = serde_json::from_str(content).ok()?;
                let number = |key: &str| event.get(1)?.get(key)?.as_u64();
                match event.first()?.as_str()? {
                    "state-change" => number("state").map(SocketEvent::State),
                    "views-change" => number("viewers").map(SocketEvent::Viewers),
                    "force-end" => Some(SocketEvent::ForceEnd),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Subscribes once it can.
    fn subscribe(&mut self) {
        let may_say = matches!(self.state, State::Upgraded) || !self.is_probed;
        if self.is_joined && may_say && !std::mem::replace(&mut self.is_subscribed, true) {
            let text = format!("42{SPACE}[\"subscribe\",{{\"videoId\":{}}}]", self.video);
            self.say(text);
        }
    }

    /// Sends a packet by what it has.
    fn say(&mut self, packet: String) {
        match &self.state {
            State::Upgraded => self.outputs.push(SocketOutput::Send(packet)),
            State::Polling { sid } => {
                // As the client does that sends its buffer: in one message.
                if let Some(SocketOutput::Post(_, body)) = self.outputs.last_mut() {
                    body.push(SEPARATOR);
                    body.push_str(&packet);
                    return;
                }
                let sid = sid.clone();
                let url = self.url("polling", Some(&sid));
                self.outputs.push(SocketOutput::Post(url, packet));
                self.open_requests += 1;
            }
            State::Idle | State::Shaking | State::Over => {}
        }
    }

    /// The connection, or what it is made with, is gone.
    pub(super) fn broken(&mut self) -> Option<SocketEvent> {
        if matches!(self.state, State::Idle | State::Over) {
            return None;
        }
        self.state = State::Over;
        self.outputs.push(SocketOutput::Close);
        Some(SocketEvent::Broken)
    }

    /// The WebSocket is gone, or could not be opened: without it the client goes on by polling.
    pub(super) fn closed(&mut self) -> Option<SocketEvent> {
        if matches!(self.state, State::Polling { .. }) && !self.is_probed {
            return None;
        }
        self.broken()
    }

    /// After so long without a packet the connection is given up; `None` while there is none.
    pub(super) fn silence_max(&self) -> Option<Duration> {
        let is_connected = matches!(self.state, State::Polling { .. } | State::Upgraded);
        self.silence_max.filter(|_| is_connected)
    }

    /// Whether it has been connected since it was started.
    pub(super) fn has_joined(&self) -> bool {
        self.is_joined
    }

    /// The page is closed.
    pub(super) fn close(&mut self) {
        self.broken();
    }

    pub(super) fn take_outputs(&mut self) -> Vec<SocketOutput> {
        std::mem::take(&mut self.outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> SocketIo {
        let mut client = SocketIo::new(&Url::parse("https://tube.example/w/a?x=1").unwrap(), 7);
        client.start();
        client
    }

    fn shown(client: &mut SocketIo) -> Vec<String> {
        client.take_outputs().into_iter().map(|output| format!("{output:?}")).collect()
    }

    #[test]
    fn it_polls_upgrades_and_subscribes() {
        let mut client = client();
        let handshake = client.take_outputs().remove(0);
        let SocketOutput::Handshake(url) = handshake else { panic!("{handshake:?}") };
        assert!(
            url.in_clear()
                .as_str()
                .starts_with("https://tube.example/socket.io/?EIO=4&transport=polling&t="),
            "{url}"
        );
        assert_eq!(
            client.shaken(br#"0{"sid":"abc","upgrades":["websocket"],"pingInterval":25000}"#),
            None
        );
        let outputs = shown(&mut client);
        assert!(
            outputs[0].contains("sid=…") && outputs[0].contains("40/live-videos,"),
            "{outputs:?}"
        );
        assert!(outputs[1].starts_with("Poll") && outputs[2].contains("wss"), "{outputs:?}");
        assert_eq!(client.polled(b"40/live-videos,{\"sid\":\"x\"}"), []);
        let outputs = shown(&mut client);
        assert!(outputs[0].starts_with("Post") && outputs[0].contains("subscribe"), "{outputs:?}");
        assert!(outputs[1].starts_with("Poll"), "until the WebSocket is open: {outputs:?}");
        client.opened();
        assert_eq!(client.take_outputs(), [SocketOutput::Send("2probe".into())]);
        assert_eq!(client.message("3probe"), None);
        client.posted();
        client.posted();
        assert_eq!(client.take_outputs(), [], "a poll is open");
        assert_eq!(client.polled(b"6"), []);
        assert_eq!(client.take_outputs(), [SocketOutput::Send("5".into())], "the last poll");
        assert_eq!(client.message("2"), None);
        assert_eq!(client.take_outputs(), [SocketOutput::Send("3".into())]);
        for (text, event) in [
            (
                r#"42/live-videos,["views-change",{"videoId":7,"viewers":3}]"#,
                Some(SocketEvent::Viewers(3)),
            ),
            (r#"42/live-videos,["state-change",{"state":1}]"#, Some(SocketEvent::State(1))),
            (r#"42/live-videos,["force-end"]"#, Some(SocketEvent::ForceEnd)),
            (r#"42/live-videos,["other"]"#, None),
            (r#"42/live-videos,[["#, None),
            ("42", None),
            ("4", None),
            ("", None),
            ("é", None),
            ("41/live-videos,", Some(SocketEvent::Broken)),
            ("42/live-videos,[\"force-end\"]", Some(SocketEvent::ForceEnd)),
        ] {
            assert_eq!(client.message(text), event, "{text}");
        }
    }

    #[test]
    fn without_a_websocket_it_goes_on_by_polling_and_no_packet_breaks_it() {
        let mut client = client();
        client.shaken(br#"0{"sid":"abc"}"#);
        assert_eq!(client.closed(), None, "the upgrade was refused");
        assert_eq!(client.polled(b"40/live-videos,{}"), []);
        assert!(shown(&mut client).iter().any(|output| output.starts_with("Poll")));
        for body in [&b""[..], b"<html>", b"2\x1eno"] {
            let mut client =
                SocketIo { state: State::Polling { sid: "a".into() }, ..self::client() };
            assert_eq!(client.polled(body), [SocketEvent::Broken], "{body:?}");
        }
    }

    #[test]
    fn what_is_no_handshake_breaks_it() {
        let long = format!("0{{\"sid\":\"{}\"}}", "x".repeat(SID_BYTES_MAX + 1));
        for body in [&b""[..], b"<html>", b"0{}", b"0{\"sid\":7}", long.as_bytes()] {
            assert_eq!(client().shaken(body), Some(SocketEvent::Broken));
        }
    }

    #[test]
    fn a_body_of_very_many_packets_makes_one_request_and_one_event_of_a_kind() {
        let mut client = client();
        client.shaken(br#"0{"sid":"abc"}"#);
        client.polled(b"40/live-videos,{\"sid\":\"x\"}");
        client.take_outputs();
        let all = [
            "2",
            r#"42/live-videos,["state-change",{"state":1}]"#,
            r#"42/live-videos,["views-change",{"viewers":3}]"#,
        ];
        let body = vec![all.join("\u{1e}"); 1_000].join("\u{1e}");
        let events = client.polled(body.as_bytes());
        assert_eq!(events, [SocketEvent::State(1), SocketEvent::Viewers(3)]);
        let outputs = client.take_outputs();
        let [SocketOutput::Post(_, said), SocketOutput::Poll(_)] = &outputs[..] else {
            panic!("{outputs:?}")
        };
        assert_eq!(said.split(SEPARATOR).filter(|packet| *packet == "3").count(), 1_000);
    }
}
