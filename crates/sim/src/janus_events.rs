//! Receiver of Janus's event handler: a web server that keeps every event that `sampleevh` posts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::namespace::Namespace;
use crate::support::SimError;

/// How often the listener checks whether to end.
const LOOKS_EACH: Duration = Duration::from_millis(20);
/// Longest post accepted, bytes.
const POST_MAX: usize = 16 << 20;

/// Event types (`events/eventhandler.h` of Janus): of plugins, and of peer connections.
const PLUGIN: u64 = 64;
const WEBRTC: u64 = 16;

/// Events as they come; the listener ends when this is dropped.
#[derive(Debug)]
pub struct JanusEvents {
    address: SocketAddr,
    kept: Arc<Mutex<Vec<Value>>>,
    is_over: Arc<AtomicBool>,
}

impl JanusEvents {
    /// Listens on a free port of the namespace's loopback.
    ///
    /// # Errors
    /// When there is none.
    pub fn listen(namespace: &Namespace) -> Result<Self, SimError> {
        let listener = namespace.enter(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))??;
        listener.set_nonblocking(true)?;
        let events =
            Self { address: listener.local_addr()?, kept: Arc::default(), is_over: Arc::default() };
        let (kept, is_over) = (Arc::clone(&events.kept), Arc::clone(&events.is_over));
        std::thread::spawn(move || {
            while !is_over.load(Relaxed) {
                let Ok((stream, _)) = listener.accept() else {
                    std::thread::sleep(LOOKS_EACH);
                    continue;
                };
                let kept = Arc::clone(&kept);
                // Ends when Janus closes the connection.
                std::thread::spawn(move || while keep_post(&stream, &kept).is_some() {});
            }
        });
        Ok(events)
    }

    /// The URL for Janus's configuration (`backend`).
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Number of VideoRoom events with this name.
    #[must_use]
    pub fn of_room(&self, name: &str) -> usize {
        self.count(|event| event["type"] == PLUGIN && event["event"]["data"]["event"] == name)
    }

    /// How many peer connections came up.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.count(|event| event["type"] == WEBRTC && event["event"]["connection"] == "webrtcup")
    }

    fn count(&self, is_it: impl Fn(&Value) -> bool) -> usize {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter(|event| is_it(event))
            .count()
    }
}

impl Drop for JanusEvents {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
    }
}

/// Takes one post and answers it; `None` at the end of the connection, or when it is no post.
fn keep_post(stream: &TcpStream, kept: &Mutex<Vec<Value>>) -> Option<()> {
    stream.set_nonblocking(false).ok()?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok().filter(|length| *length <= POST_MAX)?;
        }
        if name.eq_ignore_ascii_case("expect") {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    match serde_json::from_slice(&body).ok()? {
        Value::Array(events) => kept.extend(events),
        event => kept.push(event),
    }
    drop(kept);
    writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()
}
