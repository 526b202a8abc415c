//! The prober against servers that a test plays.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use http::StatusCode;

use super::*;
use crate::participant::{
    Channel, ChannelError, DownloadEvent, FetchId, Input, Message, Open, Opening, Output,
    Participant, Request,
};

/// A response: in `head` the status and the lines of its fields.
pub(super) fn http(head: &str, body: &str) -> Answer {
    let parts = parts(head);
    let (body, is_whole) = (body.into(), true);
    Answer::Http { status: parts.status, headers: parts.headers, body, is_whole }
}

/// The same of which more was sent than is read.
pub(super) fn cut(answer: Answer) -> Answer {
    match answer {
        Answer::Http { status, headers, body, .. } => {
            Answer::Http { status, headers, body, is_whole: false }
        }
        Answer::WebSocket { .. } | Answer::Rtsp { .. } | Answer::Nothing(_) => answer,
    }
}

fn parts(head: &str) -> http::response::Parts {
    let mut lines = head.lines();
    let status: u16 = lines.next().unwrap().parse().unwrap();
    let mut response = http::Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
        response = response.header(name, value);
    }
    response.body(()).unwrap().into_parts().0
}

/// What a kind reads from the first answer.
pub(super) fn read_by(kind: &Kind, url: &str, answer: &Answer) -> Option<Found> {
    Some((kind.read)(&Given::parse(url).unwrap(), answer)?.0)
}

/// A prober, its time, and what it told.
struct Fixture {
    prober: Prober,
    now: Instant,
    told: Receiver<Tried>,
}

impl Fixture {
    fn new(url: &str) -> Self {
        let (tell, told) = channel();
        let mut fixture = Self {
            prober: Prober::new(Given::parse(url).unwrap(), tell),
            now: Instant::now(),
            told,
        };
        fixture.prober.handle(fixture.now, Input::Start { intended_at: fixture.now });
        fixture
    }

    fn handle(&mut self, input: Input<'_>) {
        self.prober.handle(self.now, input);
    }

    /// The outputs up to the next deadline, which it returns.
    fn outputs(&mut self) -> (Vec<Output>, Instant) {
        let mut outputs = Vec::new();
        loop {
            match self.prober.poll_output(self.now) {
                Output::Timeout(at, _) => return (outputs, at),
                output => outputs.push(output),
            }
        }
    }

    /// Plays a web server until the prober ends or opens a channel; what was asked.
    fn serve(&mut self, answer: impl Fn(&Request) -> (&'static str, &'static str)) -> Vec<String> {
        let mut asked = Vec::new();
        loop {
            let (outputs, _) = self.outputs();
            let mut downloads = outputs.into_iter().filter_map(|output| match output {
                Output::Download(fetch, request, _) => Some((fetch, request)),
                _ => None,
            });
            let Some((fetch, request)) = downloads.next() else { return asked };
            asked.push(format!("{} {}", request.head.method, request.head.uri.path()));
            let (head, body) = answer(&request);
            let head = Box::new(parts(head));
            let opening = Box::new(Opening::default());
            for event in [
                DownloadEvent::Head { head, opening },
                DownloadEvent::Body(body.as_bytes()),
                DownloadEvent::Finished(Ok(())),
            ] {
                self.handle(Input::Download { fetch, event });
            }
        }
    }

    fn found(&self) -> Option<Found> {
        self.told.try_iter().find_map(|tried| tried.found)
    }
}

#[test]
fn a_playlist_is_found_after_whep_and_asked_whether_it_goes_on() {
    let mut fixture = Fixture::new("http://h/live.m3u8");
    let asked = fixture.serve(|request| match request.head.uri.path() {
        "/live.m3u8" if request.head.method == http::Method::GET => {
            ("200", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n")
        }
        "/a.m3u8" => ("200", "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"),
        _ => ("405", ""),
    });
    assert_eq!(asked, ["OPTIONS /live.m3u8", "GET /live.m3u8", "GET /a.m3u8"]);
    let found = fixture.found().unwrap();
    assert_eq!((found.url.as_str(), found.is_live), ("http://h/live.m3u8", Some(true)));
}

#[test]
fn what_is_given_and_found_is_shown_without_the_secrets_of_its_url() {
    let given = Given::parse("rtsp://me:S3CRET@h/cam?token=S3CRET").unwrap();
    let found = given.named().unwrap();
    assert!(found.url.contains("me:S3CRET@"), "it is for the scenario");
    for shown in [format!("{given:?}"), format!("{found:?}")] {
        assert!(shown.contains("/cam") && !shown.contains("S3CRET"), "{shown}");
    }
}

#[test]
fn what_each_request_got_is_told_where_nothing_is_recognised() {
    let mut fixture = Fixture::new("http://h/");
    let asked = fixture.serve(|_| ("404\nserver: nginx", ""));
    assert_eq!(
        asked,
        ["OPTIONS /", "GET /", "GET /api/v1/config", "GET /api/v1/versions", "GET /rtc/validate"]
    );
    // Janus, XMPP.
    for number in [6, 7] {
        let why = ChannelError::Status(404, String::new());
        fixture.handle(Input::Closed { channel: Channel(number), why });
    }
    let (outputs, _) = fixture.outputs();
    assert!(matches!(outputs.last(), Some(Output::Ended(_))), "{outputs:?}");
    let tried: Vec<Tried> = fixture.told.try_iter().collect();
    assert_eq!(tried.len(), 7);
    assert_eq!(tried[1].asked, "GET http://h/");
    assert_eq!(tried[1].answered, "HTTP 404 Not Found, Server: nginx");
    assert!(tried.iter().all(|tried| tried.found.is_none()));
}

#[test]
fn nobody_is_asked_for_long_who_is_not_there() {
    let mut fixture = Fixture::new("h:1");
    for number in [1, 2] {
        let why = ChannelError::Tcp("refused".into());
        let event = DownloadEvent::Finished(Err(why));
        fixture.handle(Input::Download { fetch: FetchId(number), event });
    }
    assert!(matches!(fixture.outputs().0.last(), Some(Output::Ended(_))));
    // Somebody is there who does not answer: other protocols are asked for.
    let mut silent = Fixture::new("h:1");
    for number in [1, 2] {
        let event = DownloadEvent::Finished(Err(ChannelError::Timeout(CONNECT_WITHIN)));
        silent.handle(Input::Download { fetch: FetchId(number), event });
    }
    let (outputs, _) = silent.outputs();
    assert!(!outputs.iter().any(|output| matches!(output, Output::Ended(_))), "{outputs:?}");
    let mut refused = Fixture::new("h:1");
    let event = DownloadEvent::Finished(Err(ChannelError::NotAllowed("h:1".into())));
    refused.handle(Input::Download { fetch: FetchId(1), event });
    assert!(matches!(refused.outputs().0.last(), Some(Output::Ended(_))));
}

#[test]
fn a_server_that_says_nothing_is_left_after_the_deadline() {
    let mut fixture = Fixture::new("rtsp://h/cam");
    let (outputs, deadline) = fixture.outputs();
    assert!(matches!(&outputs[..], [Output::Open(_, Open::Stream { .. })]), "{outputs:?}");
    let opening = Opening::default();
    fixture.handle(Input::Opened { channel: Channel(1), opening });
    fixture.now = deadline - Duration::from_millis(1);
    fixture.handle(Input::Timeout);
    let (outputs, _) = fixture.outputs();
    assert!(matches!(&outputs[..], [Output::Send(..)]), "{outputs:?}");
    fixture.now = deadline;
    fixture.handle(Input::Timeout);
    let (outputs, _) = fixture.outputs();
    assert!(matches!(&outputs[..], [Output::Close(_), Output::Ended(_)]), "{outputs:?}");
    assert_eq!(fixture.found(), None);
}

#[test]
fn an_answer_in_pieces_is_found_when_it_is_complete() {
    let mut fixture = Fixture::new("rtsp://h/cam");
    fixture.handle(Input::Opened { channel: Channel(1), opening: Opening::default() });
    for bytes in [&b"RTSP/1.0 200 OK\r\nCS"[..], b"eq: 1\r\n\r\n"] {
        assert_eq!(fixture.found(), None);
        fixture.handle(Input::Bytes { channel: Channel(1), bytes });
    }
    assert_eq!(fixture.found().map(|found| found.url).as_deref(), Some("rtsp://h/cam"));
}

#[test]
fn a_dialogue_that_does_not_end_is_given_up() {
    let mut fixture = Fixture::new("janus+ws://h");
    fixture.handle(Input::Opened { channel: Channel(1), opening: Opening::default() });
    let info = r#"{"janus":"server_info","plugins":{"janus.plugin.streaming":{}}}"#;
    let ack = r#"{"janus":"ack"}"#;
    for text in std::iter::once(info).chain([ack; 20]) {
        let message = Message::Text(text.to_owned());
        fixture.handle(Input::Message { channel: Channel(1), message });
    }
    assert_eq!(fixture.found().map(|found| found.protocol), Some(Protocol::Janus));
    assert!(matches!(fixture.outputs().0.last(), Some(Output::Ended(_))));
}
