//! A server and its clients over sockets, at limits that are soon reached.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use hyper::body::Bytes;

use super::*;
use crate::background::Background;
use crate::http_server::{Reader, stream};

/// How long a client waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Longer than a client waits: what is not to be cut off in a test.
const LONG: Duration = Duration::from_secs(60);

const SHORT: Duration = Duration::from_millis(300);

/// What a test has beside the limit that it is about.
const ROOMY: Limits = Limits {
    waiting_max: 8,
    answers_max: 4,
    long_answers_max: 4,
    streams_max: 4,
    step_lasts: LONG,
    stall_lasts: LONG,
    stall_bytes_min: 1,
    end_lasts: LONG,
    pause: Duration::from_millis(1),
    head_bytes_max: 16 * 1024,
};

/// More than kernels keep for a client that does not read.
const LARGE_BYTES: usize = 32 << 20;

/// `/long` is made until its test says so, `/events` are of a reader, `/large` is a large page.
struct Small {
    made: Arc<Mutex<mpsc::Receiver<()>>>,
    readers: Vec<Reader>,
    /// Whether it keeps the readers at its end, as if they had not read all.
    keeps_readers: bool,
}

impl Site for Small {
    fn answer(&mut self, request: &Request<()>) -> Reply {
        match request.uri().path() {
            "/long" => {
                let made = Arc::clone(&self.made);
                Reply::Later(Box::new(move || {
                    // Until its sender is gone.
                    let _ = made.lock().unwrap().recv();
                    text(StatusCode::OK, "long".into())
                }))
            }
            "/events" => {
                let (reader, events) = stream();
                self.readers.push(reader);
                Reply::Events(events)
            }
            "/large" => text(StatusCode::OK, "x".repeat(LARGE_BYTES)).into(),
            _ => text(StatusCode::OK, "short".into()).into(),
        }
    }

    fn end(&mut self) {
        if !self.keeps_readers {
            for reader in self.readers.drain(..) {
                reader.send(&Bytes::from_static(b"data: the end\n\n"));
            }
        }
    }
}

struct Server {
    address: SocketAddr,
    /// Whoever waits for `/long` gets it when this is dropped.
    unmade: mpsc::Sender<()>,
    background: Background,
}

impl Server {
    fn start(limits: Limits) -> Self {
        Self::start_as(limits, false)
    }

    fn start_as(limits: Limits, keeps_readers: bool) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let (unmade, made) = mpsc::channel();
        let made = Arc::new(Mutex::new(made));
        let site = Small { made, readers: Vec::new(), keeps_readers };
        let answer = move |stopped| run(socket, "127.0.0.1".into(), site, limits, stopped);
        let background = Background::start("test", answer).unwrap();
        Self { address, unmade, background }
    }

    /// A connection on which this was said.
    fn said(&self, words: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(words.as_bytes()).unwrap();
        client
    }

    /// A connection that asked for a path.
    fn asked(&self, path: &str) -> TcpStream {
        self.said(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
    }

    /// A reader of events that has its place.
    fn looking(&self) -> TcpStream {
        let mut client = self.asked("/events");
        let mut status = [0; 12];
        client.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        client
    }
}

/// All that a client gets until the connection ends, in whatever way.
fn rest(mut client: TcpStream) -> String {
    let mut all = Vec::new();
    if let Err(error) = client.read_to_end(&mut all) {
        assert_ne!(error.kind(), ErrorKind::WouldBlock, "it goes on");
    }
    String::from_utf8(all).unwrap()
}

#[track_caller]
fn is_answered(client: TcpStream, status: &str, end: &str) {
    let all = rest(client);
    assert!(all.starts_with(&format!("HTTP/1.1 {status} ")) && all.ends_with(end), "{all}");
}

#[test]
fn who_says_nothing_keeps_nobody_from_an_answer() {
    let server = Server::start(Limits { answers_max: 1, ..ROOMY });
    let _silent = ["", "", "GET / HTTP/1.1\r\nHo"].map(|words| server.said(words));
    is_answered(server.asked("/"), "200", "short");
}

#[test]
fn who_does_not_finish_a_request_is_cut_off() {
    let server = Server::start(Limits { waiting_max: 2, step_lasts: SHORT, ..ROOMY });
    let unfinished = ["", "GET / HTTP/1.1\r\nHo"].map(|words| server.said(words));
    is_answered(server.asked("/"), "200", "short");
    unfinished.into_iter().for_each(|client| assert_eq!(rest(client), ""));
}

#[test]
fn a_head_is_read_up_to_its_limit() {
    let server = Server::start(ROOMY);
    let head = |bytes: usize| {
        let name = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ";
        server.said(&format!("{name}{}\r\n\r\n", "x".repeat(bytes)))
    };
    is_answered(head(15 << 10), "200", "short");
    is_answered(head(20 << 10), "431", "");
}

#[test]
fn answers_that_take_long_wait_for_each_other_and_nobody_for_them() {
    let server = Server::start(Limits { answers_max: 1, long_answers_max: 3, ..ROOMY });
    let long = ["/long"; 3].map(|path| server.asked(path));
    is_answered(server.asked("/"), "200", "short");
    is_answered(server.asked("/long"), "503", "already; ask again later.\n");
    let Server { unmade, background: _background, .. } = server;
    drop(unmade);
    long.into_iter().for_each(|client| is_answered(client, "200", "long"));
}

#[test]
fn readers_of_events_are_few_and_keep_nobody_from_an_answer() {
    let server = Server::start(Limits { answers_max: 1, streams_max: 1, ..ROOMY });
    let reader = server.looking();
    is_answered(server.asked("/events"), "503", "close a page.\n");
    is_answered(server.asked("/"), "200", "short");
    drop(server.background);
    assert!(rest(reader).contains("data: the end\n\n"));
}

#[test]
fn the_end_waits_for_readers_of_events_and_not_for_ever() {
    let server = Server::start_as(Limits { end_lasts: SHORT, ..ROOMY }, true);
    let _reader = server.looking();
    let asked_at = Instant::now();
    drop(server.background);
    let took = asked_at.elapsed();
    assert!(took >= SHORT && took < PATIENCE, "{took:?}");
}

#[test]
fn who_reads_nothing_more_is_cut_off() {
    let server = Server::start(Limits { answers_max: 1, stall_lasts: SHORT, ..ROOMY });
    let stalled = server.asked("/large");
    is_answered(server.asked("/"), "200", "short");
    assert!(rest(stalled).len() < LARGE_BYTES);
}

#[test]
fn who_reads_too_little_is_cut_off() {
    let limits = Limits { stall_lasts: SHORT, stall_bytes_min: LARGE_BYTES, ..ROOMY };
    let server = Server::start(limits);
    let mut slow = server.asked("/large");
    let (mut piece, mut got) = (vec![0; 1 << 20], 0);
    loop {
        // A slow line has no event to wait for.
        std::thread::sleep(SHORT / 6);
        match slow.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => got += bytes,
        }
    }
    assert!(got > 0 && got < LARGE_BYTES, "{got}");
}

/// 2.5 s, longer than anybody may read nothing.
#[test]
fn who_reads_slowly_gets_all() {
    let server = Server::start(Limits { stall_lasts: Duration::from_secs(1), ..ROOMY });
    let mut slow = server.asked("/large");
    let mut piece = vec![0; LARGE_BYTES / 16];
    for _ in 0..16 {
        // A slow line has no event to wait for.
        std::thread::sleep(Duration::from_millis(150));
        slow.read_exact(&mut piece).unwrap();
    }
    assert!(rest(slow).ends_with('x'));
}
