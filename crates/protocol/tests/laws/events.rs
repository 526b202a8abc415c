//! Event streams: the parser against a plain reading of the standard, and a member whose server
//! sends any bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_observation::{Observation, Url};
use throng_protocol::chat::event_stream::{EventParser, StreamEvent};
use throng_protocol::chat::template::TemplateConfig;
use throng_protocol::chat::{Config, Member, Protocol, RoomLog};
use throng_protocol::participant::{
    DownloadEvent, FetchId, Input, Opening, Output, Participant, Request,
};
use throng_protocol::webrtc::{ParticipantOptions, StepTimeouts};
use throng_scenario::{ChatConfig, Scenario};

/// Requests of one input beyond which it would flood the server.
const REQUESTS_MAX: usize = 300;

/// The events are those that the standard says, in whatever pieces the bytes come; and a member
/// ends at most once, posts a bounded number of requests, and its deadlines are not in the past.
pub(crate) fn events(bytes: &[u8]) {
    let whole = parsed(bytes, bytes.len().max(1));
    for size in [1, 3, 7] {
        assert_eq!(parsed(bytes, size), whole, "in pieces of {size}");
    }
    assert_eq!(whole, plainly(bytes));
    assert!(
        whole.0.iter().all(|event| !event.name.is_empty() && !event.name.contains(['\r', '\n']))
    );
    if let Some(mut fixture) = Fixture::new() {
        fixture.play(bytes);
    }
}

fn parsed(bytes: &[u8], size: usize) -> (Vec<StreamEvent>, String) {
    let mut parser = EventParser::new(String::new());
    let mut events = Vec::new();
    for piece in bytes.chunks(size) {
        match parser.feed(piece) {
            Ok(more) => events.extend(more),
            Err(_) => return Default::default(),
        }
    }
    (events, parser.last_event_id().to_owned())
}

/// The same on the whole text at once. Events of a megabyte are out of reach of the fuzzer.
fn plainly(bytes: &[u8]) -> (Vec<StreamEvent>, String) {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (mut events, mut last, mut id) = (Vec::new(), String::new(), String::new());
    let (mut name, mut data) = (String::new(), Vec::new());
    let Some((complete, _)) = text.rsplit_once('\n') else { return (events, last) };
    for line in complete.split('\n') {
        if line.is_empty() {
            last.clone_from(&id);
            if !data.is_empty() {
                let name = if name.is_empty() { "message".to_owned() } else { name.clone() };
                events.push(StreamEvent { name, data: data.join("\n") });
            }
            (name, data) = (String::new(), Vec::new());
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "event" => name = value,
            "data" => data.push(value),
            "id" if !value.contains('\0') => id = value,
            _ => {}
        }
    }
    (events, last)
}

struct Fixture {
    member: Member,
    now: Instant,
    /// The stream, and the requests that are not answered.
    stream: Option<FetchId>,
    posts: Vec<FetchId>,
}

impl Fixture {
    fn new() -> Option<Self> {
        let file = r#"
[target]
url = "chat+http://127.0.0.1/events"
[crowd]
size = 1
[crowd.chat.template]
join = [{ send = "NICK {nick}", expect = "welcome" }, "JOIN {room}"]
say = "{text}"
pong = { on = "ping:", send = "pong{rest}" }
keep_alive = { every = "3s", send = "alive" }
nick_taken = "taken"
refused = ["ERROR ", "HTTP 403"]
kicked = "kick: {nick}"
leave = "bye"
replay = true
[run]
duration = "20s"
"#;
        let template = Scenario::parse(file).ok()?.crowd.first()?.role.clone()?.chat.template?;
        let config = Config {
            url: Url::parse("http://127.0.0.1/events").ok()?,
            protocol: Protocol::Template(TemplateConfig {
                template: Arc::new(template),
                nick: "ada".to_owned(),
                number: 1,
                token: None,
                answer_within: Duration::from_secs(10),
                has_event_stream: true,
            }),
            chat: ChatConfig { every: Some(Duration::from_secs(2)), ..ChatConfig::default() },
            mark: "k3f9".to_owned(),
            log: RoomLog::default(),
            rename: None,
            speech_seed: 1,
        };
        let now = Instant::now();
        let options = ParticipantOptions {
            may_reach: Arc::new(|_, to| to.ip().is_loopback()),
            clock: WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 },
            toward: None,
            seed: 1,
            timeouts: StepTimeouts::default(),
            is_tapped: false,
            relay_only: false,
            stun: None,
            turn: None,
        };
        let mut fixture =
            Self { member: Member::new(config, options), now, stream: None, posts: Vec::new() };
        fixture.input(Input::Start { intended_at: now })?;
        Some(fixture)
    }

    /// Each piece is a part of the stream, of an answer, or its status; the first byte of it says
    /// which.
    fn play(&mut self, bytes: &[u8]) -> Option<()> {
        for piece in bytes.chunks(32) {
            self.now += Duration::from_millis(500);
            let first = piece.first().copied().unwrap_or_default();
            let post = self.posts.first().copied();
            match (first % 8, self.stream, post) {
                (0, Some(fetch), _) => {
                    let event = DownloadEvent::Finished(Ok(()));
                    self.input(Input::Download { fetch, event })?;
                    self.now += Duration::from_secs(4);
                    self.input(Input::Timeout)?;
                }
                (1 | 2, _, Some(fetch)) => {
                    self.posts.remove(0);
                    let status = [200, 204, 303, 403, 409, 500][usize::from(first) % 6];
                    self.head(fetch, status)?;
                    self.input(Input::Download { fetch, event: DownloadEvent::Body(piece) })?;
                    self.input(Input::Download { fetch, event: DownloadEvent::Finished(Ok(())) })?;
                }
                (3, Some(fetch), _) => {
                    self.head(fetch, [200, 204, 302, 503][usize::from(first) % 4])?;
                }
                (_, Some(fetch), _) => {
                    self.head(fetch, 200)?;
                    self.input(Input::Download { fetch, event: DownloadEvent::Body(piece) })?;
                }
                (_, None, _) => self.input(Input::Timeout)?,
            }
        }
        self.input(Input::Leave { others_follow: false })?;
        self.now += Duration::from_secs(60);
        assert!(self.input(Input::Timeout).is_none(), "it does not leave");
        None
    }

    fn head(&mut self, fetch: FetchId, status: u16) -> Option<()> {
        let response = http::Response::builder().status(status);
        let response =
            response.header("content-type", "text/event-stream").header("location", "/again");
        let (head, ()) = response.body(()).ok()?.into_parts();
        let event =
            DownloadEvent::Head { head: Box::new(head), opening: Box::new(Opening::default()) };
        self.input(Input::Download { fetch, event })
    }

    /// `None` when it has ended.
    fn input(&mut self, input: Input<'_>) -> Option<()> {
        self.member.handle(self.now, input);
        let mut requests = 0;
        loop {
            match self.member.poll_output(self.now) {
                Output::Download(fetch, request, _) => {
                    requests += 1;
                    assert!(requests < REQUESTS_MAX, "a flood of requests");
                    self.asked(fetch, &request);
                }
                Output::Cancel(fetch) => {
                    self.stream.take_if(|stream| *stream == fetch);
                    self.posts.retain(|post| *post != fetch);
                }
                Output::Observed(Observation::ProtocolAnomaly { detail, .. }) => {
                    assert!(detail.len() < 4_000, "a long detail: {detail}");
                }
                Output::Ended(_) => return None,
                Output::Timeout(at, why) => {
                    assert!(at > self.now, "a deadline in the past: {why}");
                    return Some(());
                }
                _ => {}
            }
        }
    }

    fn asked(&mut self, fetch: FetchId, request: &Request) {
        assert_eq!(request.head.uri.host(), Some("127.0.0.1"));
        if request.head.method == http::Method::GET {
            self.stream = Some(fetch);
        } else {
            self.posts.push(fetch);
        }
    }
}
