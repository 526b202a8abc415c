//! Message exchanges of adapters with servers, without sockets; tests advance the time.

mod janus;
mod ome;
mod videoroom;
mod whep;
mod whip;

use std::time::{Duration, Instant};

use throng_observation::FailureReason;

use super::{SignalInput, SignalOutput, Signalling};
use crate::participant::{ChannelError, Message, Opening};

/// A minimal valid description.
const SDP: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=setup:actpass\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:v\r\na=ice-ufrag:uf\r\na=ice-pwd:pw\r\n";

/// An adapter with its clock.
struct Fixture {
    adapter: Box<dyn Signalling>,
    now: Instant,
}

impl Fixture {
    fn new(adapter: impl Signalling + 'static) -> Self {
        Self { adapter: Box::new(adapter), now: Instant::now() }
    }

    /// Passes an input and returns the outputs, each as one line.
    fn tell(&mut self, input: SignalInput<'_>) -> Vec<String> {
        self.adapter.handle(self.now, input);
        std::iter::from_fn(|| self.adapter.poll_output()).map(|output| line(&output)).collect()
    }

    fn receives(&mut self, text: &str) -> Vec<String> {
        self.tell(SignalInput::Message(&Message::Text(text.into())))
    }

    fn open(&mut self, subprotocol: Option<&str>) -> Vec<String> {
        let mut lines = self.tell(SignalInput::Start);
        let opening = Opening { subprotocol: subprotocol.map(Into::into), ..Opening::default() };
        lines.extend(self.tell(SignalInput::Opened(&opening)));
        lines
    }

    /// Advances time to the next deadline, which must have this reason.
    fn wait_for(&mut self, why: &str) -> Vec<String> {
        let (at, said) = self.adapter.next_timeout().expect("a deadline");
        assert_eq!(said, why);
        assert!(at > self.now && at < self.now + Duration::from_secs(60));
        self.now = at;
        self.tell(SignalInput::Timeout)
    }
}

fn line(output: &SignalOutput) -> String {
    match output {
        SignalOutput::Open(open) => format!("open {open:?}"),
        SignalOutput::Signal(Message::Text(text)) => format!("say {text}"),
        SignalOutput::Signal(other) => format!("say {other:?}"),
        SignalOutput::Close => "close".into(),
        SignalOutput::Fetch(id, request) => {
            let head = &request.head;
            let header = |name: &str| {
                head.headers.get(name).map(|v| format!(" {name}={}", v.to_str().unwrap()))
            };
            let headers =
                ["authorization", "if-match", "content-type"].into_iter().filter_map(header);
            let body = if request.body.is_empty() { "" } else { " +body" };
            format!(
                "fetch {} {} {}{}{body}",
                id.0,
                head.method,
                head.uri,
                headers.collect::<String>()
            )
        }
        SignalOutput::Reached(_) => "reached".into(),
        SignalOutput::WantOffer => "want offer".into(),
        SignalOutput::RemoteOffer(_) => "offer".into(),
        SignalOutput::RemoteAnswer(_) => "answer".into(),
        SignalOutput::RemoteCandidate(candidate) => candidate.clone(),
        SignalOutput::Relay(relay) => {
            format!("relay {} {} {}", relay.url, relay.username, relay.credential.expose())
        }
        SignalOutput::Refused(what, address) => format!("refused {what:?} {address}"),
        SignalOutput::Anomaly(what) => format!("anomaly {what}"),
        SignalOutput::Failed(failure) => format!("failed {failure}"),
        SignalOutput::Goodbye => "goodbye".into(),
    }
}

/// Asserts that the only line is a failure with this reason and text.
fn failed(lines: &[String], reason: &FailureReason, says: &str) {
    let last = lines.last().expect("an output");
    assert!(last.starts_with(&format!("failed {}: ", reason.key())), "{lines:?}");
    assert!(last.contains(says), "{last} does not say {says}");
}

/// Closed or refused connections have the same meaning for all WebSocket adapters: a connection
/// that did not open fails with the step that failed, one that breaks after it was open fails as
/// closed signalling.
fn closes_are_named(mut asked: impl FnMut() -> Fixture, mut opened: impl FnMut() -> Fixture) {
    for (error, before, after) in [
        (ChannelError::Status(401, String::new()), FailureReason::HttpStatus(401), None),
        (ChannelError::Status(503, String::new()), FailureReason::HttpStatus(503), None),
        (
            ChannelError::Tls("expired".into()),
            FailureReason::Tls,
            Some(FailureReason::SignallingClosed),
        ),
        (
            ChannelError::Tcp("reset".into()),
            FailureReason::Tcp,
            Some(FailureReason::SignallingClosed),
        ),
        (
            ChannelError::ClosedByPeer(Some(1001.into())),
            FailureReason::SignallingClosed,
            Some(FailureReason::SignallingClosed),
        ),
        (
            ChannelError::Protocol("frame".into()),
            FailureReason::Protocol,
            Some(FailureReason::Protocol),
        ),
        (
            ChannelError::Generator("memory".into()),
            FailureReason::Generator,
            Some(FailureReason::Generator),
        ),
    ] {
        failed(&asked().tell(SignalInput::Closed(error.clone())), &before, "");
        if let Some(after) = after {
            failed(&opened().tell(SignalInput::Closed(error)), &after, "");
        }
    }
    let mut over = opened();
    over.tell(SignalInput::Closed(ChannelError::ClosedByPeer(None)));
    assert!(over.adapter.next_timeout().is_none(), "nothing is awaited any more");
    assert_eq!(over.tell(SignalInput::Leave), ["goodbye"]);
    assert!(over.receives("{}").is_empty());
}
