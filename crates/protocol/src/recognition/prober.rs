//! The participant that asks a server one protocol after the other.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use http::header::ACCEPT;
use throng_observation::Outcome;

use super::{Answer, Found, Given, Kind, ProbeRequest, Turn, rtsp};
use crate::participant::{
    Channel, ChannelError, Demand, DownloadEvent, FetchId, HttpVersion, Input, Message, NEVER,
    Open, Opening, Output, Participant, Request, StreamPeer, Transmit,
};

/// How long the driver may take to connect: less than a request, so that one without an answer in
/// time is known to have reached somebody.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(4);

/// How long each request may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The beginning of a body that is read, bytes: manifests and answers of APIs are shorter.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// Messages of a WebSocket that are heard, and bytes of RTSP.
const MESSAGES_MAX: usize = 16;
const RTSP_BYTES_MAX: usize = 64 * 1024;

/// Requests in a row that found nobody before no more are made: the server is not there.
const UNREACHED_MAX: u8 = 2;

/// What was asked, and what the server said.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The protocol that was looked for.
    pub kind: &'static str,
    /// The request, secrets hidden.
    pub asked: String,
    /// The answer, in words of which some are the server's.
    pub answered: String,
    /// The protocol, if the answer is of it.
    pub found: Option<Found>,
}

/// Asks until a protocol is found, and tells each request with its answer. It observes nothing.
pub struct Prober {
    given: Given,
    kinds: VecDeque<&'static Kind>,
    tell: Sender<Tried>,
    asking: Option<Box<Asking>>,
    /// Of the request in progress, whose channel and fetch have it.
    number: u16,
    /// Requests in a row that found nobody, until the first that did.
    unreached: Option<u8>,
    outputs: VecDeque<Output>,
}

/// A request in progress.
struct Asking {
    kind: &'static Kind,
    /// What the first request told; this one asks for more.
    found: Option<Found>,
    ask: ProbeRequest,
    by: Instant,
    received: Received,
}

/// What arrived so far.
#[derive(Default)]
struct Received {
    head: Option<Box<http::response::Parts>>,
    /// Of the body, or of RTSP.
    bytes: Vec<u8>,
    /// The body has ended.
    is_whole: bool,
    is_open: bool,
    subprotocol: Option<String>,
    heard: Vec<String>,
}

impl Prober {
    /// Tells what it tries to the receiver of `tell`.
    #[must_use]
    pub fn new(given: Given, tell: Sender<Tried>) -> Self {
        Self {
            kinds: given.kinds().into(),
            given,
            tell,
            asking: None,
            number: 0,
            unreached: Some(0),
            outputs: VecDeque::new(),
        }
    }

    /// Asks the next kind, if there is one.
    fn next(&mut self, now: Instant) {
        let is_there = self.unreached.is_none_or(|count| count < UNREACHED_MAX);
        match self.kinds.pop_front().filter(|_| is_there) {
            Some(kind) => self.ask(now, kind, None, (kind.ask)(&self.given)),
            None => self.end(),
        }
    }

    fn end(&mut self) {
        self.asking = None;
        self.kinds.clear();
        self.outputs.push_back(Output::Ended(Outcome::Completed));
    }

    fn ask(&mut self, now: Instant, kind: &'static Kind, found: Option<Found>, ask: ProbeRequest) {
        self.number = self.number.wrapping_add(1);
        let (channel, fetch) = (self.channel(), self.fetch());
        let begun = match &ask {
            ProbeRequest::Http { .. } => request(&ask).map(|request| {
                let deliver = Demand::Deliver(BODY_BYTES_MAX as u64);
                self.outputs.push_back(Output::Download(fetch, request, HttpVersion::Negotiated));
                self.outputs.push_back(Output::Demand(fetch, deliver));
            }),
            ProbeRequest::WebSocket { url, protocol, .. } => {
                let protocols = protocol.iter().map(|name| (*name).to_owned()).collect();
                let open = Open::WebSocket { url: url.clone(), protocols, headers: Vec::new() };
                self.outputs.push_back(Output::Open(channel, open));
                Ok(())
            }
            ProbeRequest::Rtsp { place: (host, port), is_secure, .. } => {
                let tls = is_secure.then(|| host.clone());
                let to = StreamPeer::Host { host: host.clone(), port: *port };
                self.outputs.push_back(Output::Open(channel, Open::Stream { to, tls }));
                Ok(())
            }
        };
        let (by, received) = (now + ANSWER_WITHIN, Received::default());
        self.asking = Some(Box::new(Asking { kind, found, ask, by, received }));
        if let Err(why) = begun {
            self.answered(now, why);
        }
    }

    fn channel(&self) -> Channel {
        Channel(self.number)
    }

    fn fetch(&self) -> FetchId {
        FetchId(u32::from(self.number))
    }

    /// The request in progress is over: with what arrived, or because of `why` where that is
    /// nothing.
    fn answered(&mut self, now: Instant, why: ChannelError) {
        let Some(asking) = self.asking.take() else { return };
        let Asking { kind, found, ask, received, .. } = *asking;
        self.outputs.push_back(match ask {
            ProbeRequest::Http { .. } => Output::Cancel(self.fetch()),
            ProbeRequest::WebSocket { .. } | ProbeRequest::Rtsp { .. } => {
                Output::Close(self.channel())
            }
        });
        let answer = received.answer(&ask, why);
        self.count(&answer);
        let (found, further) = match found {
            Some(mut found) => {
                (kind.refine)(&mut found, &self.given, &answer);
                (Some(found), None)
            }
            None => (kind.read)(&self.given, &answer).unzip(),
        };
        let further = further.flatten();
        let told = found.clone().filter(|_| further.is_none());
        let is_found = told.is_some();
        let (asked, answered) = (ask.to_string(), answer.to_string());
        // Nobody may wait for it any more.
        let _ = self.tell.send(Tried { kind: kind.name, asked, answered, found: told });
        match further {
            Some(ask) => self.ask(now, kind, found, ask),
            None if is_found => self.end(),
            None => self.next(now),
        }
    }

    /// Counts requests that found nobody. One that is not sent, is not understood because another
    /// protocol is spoken, or finds somebody who says nothing ([`CONNECT_WITHIN`]) is an answer.
    fn count(&mut self, answer: &Answer) {
        let Some(count) = &mut self.unreached else { return };
        match answer {
            Answer::Nothing(ChannelError::Dns { .. } | ChannelError::NotAllowed(_)) => {
                *count = UNREACHED_MAX;
            }
            Answer::Nothing(ChannelError::Tcp(_)) => *count += 1,
            Answer::Nothing(_)
            | Answer::Http { .. }
            | Answer::WebSocket { .. }
            | Answer::Rtsp { .. } => self.unreached = None,
        }
    }

    fn opened(&mut self, now: Instant, opening: Opening) {
        let channel = self.channel();
        let Some(asking) = &mut self.asking else { return };
        asking.received.is_open = true;
        asking.received.subprotocol = opening.subprotocol;
        if let ProbeRequest::Rtsp { url, .. } = &asking.ask {
            // The address is that of the connection.
            let to = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
            let transmit = Transmit { to, from: None, bytes: rtsp::request(url) };
            self.outputs.push_back(Output::Send(channel, transmit));
        }
        self.go_on(now);
    }

    /// Takes the next turn of a WebSocket's dialogue.
    fn go_on(&mut self, now: Instant) {
        let Some(asking) = &self.asking else { return };
        let ProbeRequest::WebSocket { dialogue, .. } = &asking.ask else { return };
        let turn = dialogue(&asking.received.heard);
        match turn {
            Turn::Say(_) | Turn::Wait if asking.received.heard.len() >= MESSAGES_MAX => {
                self.answered(now, too_long());
            }
            Turn::Say(text) => {
                self.outputs.push_back(Output::Signal(self.channel(), Message::Text(text)));
            }
            Turn::Wait => {}
            Turn::End => self.answered(now, ChannelError::Unanswered),
        }
    }

    fn message(&mut self, now: Instant, message: Message) {
        let Some(asking) = &mut self.asking else { return };
        asking.received.heard.push(match message {
            Message::Text(text) => text,
            Message::Binary(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        });
        self.go_on(now);
    }

    /// Bytes of RTSP.
    fn bytes(&mut self, now: Instant, bytes: &[u8]) {
        let Some(asking) = &mut self.asking else { return };
        let received = &mut asking.received.bytes;
        received.extend_from_slice(bytes);
        let is_over =
            received.len() > RTSP_BYTES_MAX || !matches!(rtsp::answer(received), Ok(None));
        if is_over {
            self.answered(now, ChannelError::Protocol("this is no RTSP".to_owned()));
        }
    }

    fn download(&mut self, now: Instant, event: DownloadEvent<'_>) {
        let Some(asking) = &mut self.asking else { return };
        match event {
            DownloadEvent::Head { head, .. } => asking.received.head = Some(head),
            DownloadEvent::Body(bytes) => {
                asking.received.bytes.extend_from_slice(bytes);
                if asking.received.bytes.len() >= BODY_BYTES_MAX {
                    self.answered(now, too_long());
                }
            }
            DownloadEvent::Finished(result) => {
                asking.received.is_whole = result.is_ok();
                let why = result.err().unwrap_or(ChannelError::Unanswered);
                self.answered(now, why);
            }
            DownloadEvent::Ignored(_) | DownloadEvent::Transport(_) => {}
        }
    }
}

impl Received {
    fn answer(self, ask: &ProbeRequest, why: ChannelError) -> Answer {
        let Self { head, bytes, is_whole, is_open, subprotocol, heard } = self;
        match (ask, head) {
            (ProbeRequest::Http { .. }, Some(head)) => {
                Answer::Http { status: head.status, headers: head.headers, body: bytes, is_whole }
            }
            (ProbeRequest::WebSocket { .. }, _) if is_open => {
                Answer::WebSocket { protocol: subprotocol, heard }
            }
            (ProbeRequest::Rtsp { .. }, _) if is_open => {
                rtsp::answer(&bytes).ok().flatten().unwrap_or(Answer::Nothing(why))
            }
            (
                ProbeRequest::Http { .. }
                | ProbeRequest::WebSocket { .. }
                | ProbeRequest::Rtsp { .. },
                _,
            ) => Answer::Nothing(why),
        }
    }
}

fn too_long() -> ChannelError {
    ChannelError::Protocol("more was said than is read".to_owned())
}

/// A request by HTTP as the driver takes it.
fn request(ask: &ProbeRequest) -> Result<Box<Request>, ChannelError> {
    let ProbeRequest::Http { method, url } = ask else {
        return Err(ChannelError::Protocol(ask.to_string()));
    };
    let request = Request::builder(method.clone(), url).header(ACCEPT, "*/*");
    let request = request.body(()).map_err(|error| ChannelError::Protocol(error.to_string()))?;
    let (head, ()) = request.into_parts();
    Ok(Box::new(Request { head, body: Vec::new(), timeout: ANSWER_WITHIN }))
}

impl Participant for Prober {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        // What comes late is of a request that is over.
        let is_late = input.channel().is_some_and(|channel| channel != self.channel());
        match input {
            _ if is_late => {}
            Input::Start { .. } => self.next(now),
            Input::Opened { opening, .. } => self.opened(now, opening),
            Input::Message { message, .. } => self.message(now, message),
            Input::Bytes { bytes, .. } => self.bytes(now, bytes),
            Input::Closed { why, .. } => self.answered(now, why),
            Input::Download { fetch, event } if fetch == self.fetch() => self.download(now, event),
            Input::Timeout => {
                if self.asking.as_ref().is_some_and(|asking| asking.by <= now) {
                    self.answered(now, ChannelError::Timeout(ANSWER_WITHIN));
                }
            }
            Input::Leave { .. } => self.end(),
            Input::Download { .. }
            | Input::Datagram { .. }
            | Input::Blocked { .. }
            | Input::Fetched { .. } => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        match &self.asking {
            Some(asking) => Output::Timeout(asking.by, "the server to answer"),
            None => Output::Timeout(now + NEVER, "nothing: it has ended"),
        }
    }
}
