//! Signalling: for any input, an adapter's outputs are bounded and texts fit one line; it requests
//! nothing after a failure, and waits for nothing after its goodbye.

use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use throng_protocol::participant::{FetchId, Message, Opening, Response};
use throng_protocol::signalling::janus::{
    Config as JanusConfig, MountpointId, SessionConfig, Streaming,
};
use throng_protocol::signalling::{SignalInput, SignalOutput, Signalling, ome, whep};

/// A minimal valid description.
pub(super) const SDP: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=setup:actpass\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:v\r\na=ice-ufrag:uf\r\na=ice-pwd:pw\r\n";
const OURS: &str = "candidate:1 1 udp 1 10.0.0.2 9 typ host";
/// The longest reported text with an excerpt of a server's text, bytes: 200 characters and their
/// introduction.
const TOLD_LEN_MAX: usize = 2_000;

/// Janus: one message per line; the line `wait` advances time to the next deadline.
pub(crate) fn janus(bytes: &[u8]) {
    let config = JanusConfig {
        url: "ws://10.0.0.1/".parse().expect("a URL"),
        mountpoint: MountpointId::Number(1),
        pin: None,
        session: SessionConfig::default(),
    };
    converse(Streaming::new(config), Some("janus-protocol"), bytes);
}

/// OvenMediaEngine: like [`janus`].
pub(crate) fn ome(bytes: &[u8]) {
    let config = ome::Config::new("ws://10.0.0.1:3333/app/stream".parse().expect("a URL"));
    converse(ome::Ome::new(config), None, bytes);
}

fn converse(adapter: impl Signalling + 'static, subprotocol: Option<&str>, bytes: &[u8]) {
    let mut fixture = Fixture::new(adapter);
    fixture.tell(SignalInput::Start);
    let opening = Opening { subprotocol: subprotocol.map(Into::into), ..Opening::default() };
    fixture.tell(SignalInput::Opened(&opening));
    for line in bytes.split(|byte| *byte == b'\n').take(50) {
        if line == b"wait" {
            fixture.wait();
            continue;
        }
        fixture
            .tell(SignalInput::Message(&Message::Text(String::from_utf8_lossy(line).into_owned())));
        fixture.answer();
    }
    fixture.leave();
}

/// WHEP: responses separated by zero bytes, each a status line, header fields, an empty line and
/// the body.
pub(crate) fn whep(bytes: &[u8]) {
    let config = whep::Config::new("http://10.0.0.1/whep".parse().expect("a URL"));
    let mut fixture = Fixture::new(whep::Whep::new(config));
    fixture.tell(SignalInput::Start);
    fixture.tell(SignalInput::Offer(SDP.into()));
    for (fetch, response) in bytes.split(|byte| *byte == 0).take(20).enumerate() {
        let response = response_of(response);
        fixture.tell(SignalInput::Fetched(FetchId(fetch as u32), Ok(&response)));
        fixture.answer();
    }
    fixture.leave();
}

pub(super) fn response_of(bytes: &[u8]) -> Response {
    let end = bytes.windows(2).position(|two| two == b"\n\n").map_or(bytes.len(), |at| at + 2);
    let (head, body) = bytes.split_at(end);
    let mut lines = head.split(|byte| *byte == b'\n');
    let status =
        lines.next().and_then(|line| std::str::from_utf8(line).ok()).and_then(|s| s.parse().ok());
    let (mut response, ()) = http::Response::builder()
        .status(status.unwrap_or(201_u16))
        .body(())
        .unwrap_or_default()
        .into_parts();
    for line in lines {
        let Some(at) = line.iter().position(|byte| *byte == b':') else { continue };
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(&line[..at]),
            HeaderValue::from_bytes(line[at + 1..].trim_ascii()),
        ) {
            response.headers.append(name, value);
        }
    }
    Response { head: response, body: body.to_vec(), opening: Opening::default() }
}

/// An adapter, its clock, and whether it has failed or said goodbye.
struct Fixture {
    adapter: Box<dyn Signalling>,
    now: Instant,
    failed: bool,
}

impl Fixture {
    fn new(adapter: impl Signalling + 'static) -> Self {
        Self { adapter: Box::new(adapter), now: Instant::now(), failed: false }
    }

    /// Passes an input and checks the outputs; returns whether the server's description needs an
    /// answer.
    fn tell(&mut self, input: SignalInput<'_>) -> bool {
        let mut wants_answer = false;
        self.adapter.handle(self.now, input);
        for count in 0.. {
            let Some(output) = self.adapter.poll_output() else { break };
            assert!(count < 300, "no end of outputs");
            assert!(!self.failed, "after a failure: {output:?}");
            match &output {
                SignalOutput::Failed(failure) => {
                    check_reported(&failure.detail);
                    self.failed = true;
                }
                SignalOutput::Anomaly(what) => check_reported(what),
                SignalOutput::RemoteOffer(_) => wants_answer = true,
                SignalOutput::RemoteCandidate(candidate) => {
                    assert!(candidate.starts_with("candidate:"));
                }
                SignalOutput::Relay(relay) => assert!(relay.url.starts_with("turn")),
                _ => {}
            }
        }
        if let Some((at, why)) = self.adapter.next_timeout() {
            assert!(!self.failed, "waits for {why} after a failure");
            assert!(at <= self.now + Duration::from_secs(3_600), "{why}");
        }
        wants_answer
    }

    /// What a participant does between two messages.
    fn answer(&mut self) {
        self.tell(SignalInput::Answer(SDP.into()));
        self.tell(SignalInput::Candidate(OURS));
    }

    fn wait(&mut self) {
        if let Some((at, _)) = self.adapter.next_timeout() {
            self.now = self.now.max(at);
            self.tell(SignalInput::Timeout);
        }
    }

    /// Leaves: the goodbye is complete at the latest when the server no longer answers.
    fn leave(mut self) {
        if self.failed {
            return;
        }
        self.tell(SignalInput::CandidatesDone);
        self.tell(SignalInput::Leave);
        for _ in 0..10 {
            self.wait();
        }
        assert!(self.adapter.next_timeout().is_none(), "waits after its goodbye");
    }
}

/// A reported text is one short line.
pub(super) fn check_reported(text: &str) {
    assert!(!text.is_empty() && text.len() < TOLD_LEN_MAX, "{text}");
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
