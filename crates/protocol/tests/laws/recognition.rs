//! Recognition: a server that answers whatever it likes to who asks which protocol it has.

use std::sync::mpsc::channel;
use std::time::Instant;

use throng_protocol::participant::{
    DownloadEvent, Input, Message, Open, Opening, Output, Participant,
};
use throng_protocol::recognition::{Given, Prober};
use throng_scenario::Target;

/// Requests and messages beyond which it would flood the server.
const SENT_MAX: usize = 200;

/// The answers are separated by zero bytes; the lines of one are messages of a WebSocket. Whatever
/// they are, the prober ends after a bounded number of requests, and what it finds is a target.
pub(crate) fn recognition(bytes: &[u8]) {
    for url in ["h:8554/a/b", "http://h/w/x", "ws://h/", "xmpp+ws://h/x?room=a@b.h"] {
        if let Ok(given) = Given::parse(url) {
            play(given, bytes);
        }
    }
}

fn play(given: Given, bytes: &[u8]) {
    let (tell, told) = channel();
    let mut answers = bytes.split(|byte| *byte == 0);
    let (mut prober, mut now, mut sent) = (Prober::new(given, tell), Instant::now(), 0);
    prober.handle(now, Input::Start { intended_at: now });
    loop {
        sent += 1;
        assert!(sent < SENT_MAX, "it asks without end");
        match prober.poll_output(now) {
            Output::Ended(_) => break,
            Output::Timeout(at, why) => {
                assert!(at >= now, "{why}: its deadline has passed");
                now = at;
                prober.handle(now, Input::Timeout);
            }
            Output::Download(fetch, ..) => {
                let (head, ()) = http::Response::new(()).into_parts();
                let (head, opening) = (Box::new(head), Box::new(Opening::default()));
                let body = answers.next().unwrap_or_default();
                for event in [
                    DownloadEvent::Head { head, opening },
                    DownloadEvent::Body(body),
                    DownloadEvent::Finished(Ok(())),
                ] {
                    prober.handle(now, Input::Download { fetch, event });
                }
            }
            Output::Open(channel, open) => {
                let subprotocol = match &open {
                    Open::WebSocket { protocols, .. } => protocols.first().cloned(),
                    _ => None,
                };
                let opening = Opening { subprotocol, ..Opening::default() };
                prober.handle(now, Input::Opened { channel, opening });
                let answer = answers.next().unwrap_or_default();
                if matches!(open, Open::Stream { .. }) {
                    prober.handle(now, Input::Bytes { channel, bytes: answer });
                    continue;
                }
                for line in answer.split(|byte| *byte == b'\n').take(50) {
                    let text = String::from_utf8_lossy(line).into_owned();
                    prober.handle(now, Input::Message { channel, message: Message::Text(text) });
                }
            }
            _ => {}
        }
    }
    for tried in told.try_iter() {
        if let Some(found) = tried.found {
            let target = Target::parse(&found.url);
            assert!(target.is_ok_and(|target| target.protocol() == found.protocol), "{found:?}");
        }
    }
}
