//! A participant that makes one request and counts the responses, and the servers for it.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_observation::{
    Failure, FailureReason, MediaKind, Observation, Outcome, Phase, RefusedDestination,
    TrackCounters, TrackId, TrackInterval,
};
use throng_protocol::participant::{
    Channel, FetchId, Input, Message, Open, Output, Participant, Request, Transmit,
};
use tokio::io::{AsyncRead, AsyncWrite};

/// The participant's request.
#[derive(Clone, Debug)]
pub(crate) enum EchoTask {
    /// Send a datagram here each 10 ms, and expect it back.
    Datagrams(SocketAddr),
    /// The same, with [`ASTRAY`] datagrams to a second address, as if the server had named it.
    Astray(SocketAddr, SocketAddr),
    /// As `Datagrams`, and never sign off.
    Mute(SocketAddr),
    /// As `Datagrams`, and panic on the nth response: as it is delivered, or as outputs are drained
    /// after it.
    Panic(SocketAddr, u64, Panics),
    /// Open it, send a text, expect it back.
    WebSocket(String),
    /// Fetch it.
    Fetch(String),
}

/// Where a participant panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panics {
    Handling,
    Polling,
}

pub(crate) struct Echo {
    ask: EchoTask,
    outputs: std::collections::VecDeque<Output>,
    next: Instant,
    sent: Option<Instant>,
    received: u64,
    interval: u64,
    closes: Option<Instant>,
    over: bool,
}

const CHANNEL: Channel = Channel(3);

/// Datagrams to the second address.
pub(crate) const ASTRAY: u32 = 1500;

impl Echo {
    pub(crate) fn new(ask: EchoTask) -> Self {
        let next = Instant::now() + Duration::from_secs(3600);
        Self {
            ask,
            outputs: Default::default(),
            next,
            sent: None,
            received: 0,
            interval: 0,
            closes: None,
            over: false,
        }
    }

    fn panics(&self, here: Panics) {
        if let EchoTask::Panic(_, nth, place) = self.ask {
            assert!(
                self.received < nth || place != here,
                "packet {} was one too many",
                self.received
            );
        }
    }

    fn end(&mut self, outcome: Outcome) {
        if !std::mem::replace(&mut self.over, true) {
            self.outputs.push_back(Output::Ended(outcome));
        }
    }

    fn ping(&mut self, now: Instant) {
        let to = match self.ask {
            EchoTask::Datagrams(to)
            | EchoTask::Mute(to)
            | EchoTask::Astray(to, _)
            | EchoTask::Panic(to, ..) => to,
            _ => return,
        };
        self.sent.get_or_insert(now);
        self.next = now + Duration::from_millis(10);
        self.outputs
            .push_back(Output::Send(CHANNEL, Transmit { to, from: None, bytes: b"ping".to_vec() }));
    }

    fn close_interval(&mut self, now: Instant) {
        self.closes = Some(now + Duration::from_secs(1));
        let received = std::mem::take(&mut self.interval);
        let counters = TrackCounters {
            packets_original: received,
            wire_bytes: received * 32,
            active_us: 1_000_000,
            ..TrackCounters::default()
        };
        self.outputs.push_back(Output::Observed(Observation::Interval(Box::new(TrackInterval {
            track: TrackId(0),
            kind: MediaKind::Audio,
            ended_at: now,
            counters,
            jitter_us: None,
            relative_delay_us: vec![],
            absolute_delay_us: vec![],
            capture_basis: None,
            oven_rtc_tester_delay_us: None,
            source_fps: None,
            frames_due_us: 1_000_000,
            first_frame_awaited_since: None,
            picture_lines: None,
            missing: None,
        }))));
    }
}

impl Participant for Echo {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start { intended_at } => {
                assert!(intended_at <= now);
                self.outputs.push_back(match self.ask.clone() {
                    EchoTask::Datagrams(toward)
                    | EchoTask::Mute(toward)
                    | EchoTask::Astray(toward, _)
                    | EchoTask::Panic(toward, ..) => Output::Open(
                        CHANNEL,
                        Open::Datagrams { toward: vec![toward], otherwise: None, gathers: false },
                    ),
                    EchoTask::WebSocket(url) => {
                        let url = url.parse().unwrap();
                        Output::Open(
                            CHANNEL,
                            Open::WebSocket { url, protocols: vec![], headers: vec![] },
                        )
                    }
                    EchoTask::Fetch(uri) => {
                        let (head, ()) = http::Request::get(uri).body(()).unwrap().into_parts();
                        let timeout = Duration::from_millis(700);
                        Output::Fetch(FetchId(1), Box::new(Request { head, body: vec![], timeout }))
                    }
                });
            }
            Input::Opened { channel, opening } => {
                assert!(channel == CHANNEL && opening.local.is_some());
                if let EchoTask::Astray(_, to) = self.ask {
                    let named = Observation::Refused(RefusedDestination::IceCandidate, to);
                    self.outputs.push_back(Output::Observed(named));
                    let lost = || {
                        Output::Send(CHANNEL, Transmit { to, from: None, bytes: b"lost".to_vec() })
                    };
                    self.outputs.extend((0..ASTRAY).map(|_| lost()));
                }
                if let EchoTask::WebSocket(_) = self.ask {
                    assert!(opening.connected_at.is_some());
                    self.outputs.push_back(Output::Signal(CHANNEL, Message::Text("hello".into())));
                }
                self.ping(now);
            }
            Input::Datagram { channel, arrived_at, bytes, .. } => {
                assert!(channel == CHANNEL && bytes == b"ping");
                // The kernel's arrival time lies between the send and now.
                assert!(self.sent.unwrap() <= arrived_at && arrived_at <= now);
                if self.received == 0 {
                    self.outputs.push_back(Output::Observed(Observation::Reached(
                        Phase::FirstPacket,
                        arrived_at,
                    )));
                    self.closes = Some(now + Duration::from_secs(1));
                }
                self.received += 1;
                self.interval += 1;
                self.panics(Panics::Handling);
            }
            Input::Blocked { .. } => {}
            Input::Message { message, .. } => {
                assert_eq!(message, Message::Text("hello".into()));
                self.end(Outcome::Completed);
            }
            Input::Fetched { result, .. } => match result {
                Ok(response) if response.head.status == 200 => self.end(Outcome::Completed),
                Ok(response) => {
                    let reason = FailureReason::HttpStatus(response.head.status.as_u16());
                    self.end(Outcome::Failed(Failure::new(reason, "fetch")));
                }
                Err(error) => self.end(Outcome::Failed(error.into())),
            },
            Input::Closed { why, .. } => self.end(Outcome::Failed(why.into())),
            Input::Timeout => {
                if self.sent.is_some() && now >= self.next {
                    self.ping(now);
                }
                if self.closes.is_some_and(|at| at <= now) {
                    self.close_interval(now);
                }
            }
            // A participant that was never admitted has nothing to sign off from, and waits.
            Input::Leave { .. }
                if self.sent.is_some() && !matches!(self.ask, EchoTask::Mute(_)) =>
            {
                self.end(Outcome::Completed);
            }
            Input::Leave { .. } | Input::Bytes { .. } | Input::Download { .. } => {}
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Output {
        self.panics(Panics::Polling);
        let next = self.closes.map_or(self.next, |closes| closes.min(self.next));
        self.outputs.pop_front().unwrap_or(Output::Timeout(next, "next ping"))
    }
}

/// Sends every datagram back.
pub(crate) fn udp_echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&bytes[..length], from);
        }
    });
    address
}

/// Accepts connections and sends nothing.
pub(crate) fn silent_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let _held: Vec<_> = listener.incoming().collect();
    });
    address
}

pub(crate) fn serve<F, Fut>(each: F) -> SocketAddr
where
    F: Fn(tokio::net::TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(each(stream));
            }
        });
    });
    address
}

/// `/` exists, `/long` is longer than any limit, everything else is missing.
pub(crate) fn http_server() -> SocketAddr {
    serve(|stream| async move {
        let answer = hyper::service::service_fn(
            |request: hyper::Request<hyper::body::Incoming>| async move {
                assert!(request.headers().contains_key("host"));
                assert!(request.headers()["user-agent"].to_str().unwrap().starts_with("throng/"));
                let (status, body) = match request.uri().path() {
                    "/" => (200, vec![b'x'; 10]),
                    "/long" => (200, vec![b'x'; 100_000]),
                    _ => (404, vec![]),
                };
                let body = http_body_util::Full::new(bytes::Bytes::from(body));
                hyper::Response::builder().status(status).body(body)
            },
        );
        let io = hyper_util::rt::TokioIo::new(stream);
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await;
    })
}

/// The clients of a server.
pub(crate) type Peers = Arc<Mutex<Vec<IpAddr>>>;

/// Sends every message back.
pub(crate) fn ws_server() -> SocketAddr {
    ws_server_that_notes(Peers::default())
}

/// The same, and records the addresses of its clients.
pub(crate) fn ws_server_that_notes(peers: Peers) -> SocketAddr {
    serve(move |stream| {
        peers.lock().unwrap().extend(stream.peer_addr().map(|peer| peer.ip()));
        echo_messages(stream)
    })
}

async fn echo_messages(stream: impl AsyncRead + AsyncWrite + Unpin) {
    use futures_util::{SinkExt, StreamExt};
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() && socket.send(message).await.is_err() {
            return;
        }
    }
}

/// Has a proof of consent while it is `there`.
pub(crate) fn consent_server(there: Arc<AtomicBool>) -> SocketAddr {
    serve(move |stream| {
        let there = Arc::clone(&there);
        async move {
            let answer =
                hyper::service::service_fn(|request: hyper::Request<hyper::body::Incoming>| {
                    let is_asked = request.uri().path() == "/.well-known/throng-consent";
                    let is_there = is_asked && there.load(Ordering::SeqCst);
                    async move {
                        let (status, body) =
                            if is_there { (200, "proof = 1\n") } else { (404, "") };
                        let body = http_body_util::Full::new(bytes::Bytes::from(body));
                        hyper::Response::builder().status(status).body(body)
                    }
                });
            let io = hyper_util::rt::TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await;
        }
    })
}

/// Has a certificate of an unknown authority.
pub(crate) fn tls_server() -> SocketAddr {
    let (acceptor, _) = acceptor();
    serve(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let _ = acceptor.accept(stream).await;
        }
    })
}

/// Sends every message back, over TLS; returns the address and the certificate (PEM).
pub(crate) fn tls_ws_server() -> (SocketAddr, Vec<u8>) {
    let (acceptor, pem) = acceptor();
    let address = serve(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                echo_messages(stream).await;
            }
        }
    });
    (address, pem)
}

fn acceptor() -> (tokio_rustls::TlsAcceptor, Vec<u8>) {
    let (config, pem) = certified();
    (tokio_rustls::TlsAcceptor::from(Arc::new(config)), pem)
}

/// The TLS of a server with a certificate of its own (PEM).
pub(crate) fn certified() -> (rustls::ServerConfig, Vec<u8>) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    certified_by(&rcgen::CertificateParams::new(names).unwrap())
}

/// The same for one name, with a certificate that expired at the beginning of a year.
pub(crate) fn certified_as(name: &str, expired: Option<i32>) -> (rustls::ServerConfig, Vec<u8>) {
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    if let Some(year) = expired {
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
    }
    certified_by(&params)
}

fn certified_by(params: &rcgen::CertificateParams) -> (rustls::ServerConfig, Vec<u8>) {
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (config, cert.pem().into_bytes())
}
