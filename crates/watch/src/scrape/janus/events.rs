//! Counts the events that Janus posts (`janus.eventhandler.sampleevh`), such as state changes of
//! its peer connections.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;
use throng_observation::RunTime;
use throng_observation::host::Unit;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::background::BackgroundThread;
use crate::reading::{Clock, Reading, ReadingWriter};
use crate::scrape::AddressCheck;

/// Maximum size of a body, bytes: Janus groups events.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Maximum number of concurrent connections: Janus has one or a few.
const CONNECTIONS_MAX: usize = 16;
/// Time limit for headers, and for a body.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of distinct event names.
const KINDS_MAX: usize = 200;

/// Counts events by name.
///
/// Series, with labels `endpoint` and `event`: `janus.events` (a second). The name consists of the
/// event's type and its state: `session_created`, `handle_attached`, `ice_failed`,
/// `dtls_connected`, `webrtc_webrtcup`, `webrtc_hangup`, `media_slow_link`, `plugin_videoroom`, …
#[derive(Debug)]
pub struct EventCounter {
    endpoint: String,
    since: RunTime,
    counts: BTreeMap<String, u64>,
}

impl EventCounter {
    /// A counter, starting now.
    #[must_use]
    pub fn new(endpoint: impl Into<String>, now: RunTime) -> Self {
        Self { endpoint: endpoint.into(), since: now, counts: BTreeMap::new() }
    }

    /// Processes a posted body: an event, or an array of events. `false` if it is neither.
    pub fn read(&mut self, body: &[u8]) -> bool {
        let Ok(body) = serde_json::from_slice::<Json>(body) else { return false };
        match &body {
            Json::Array(events) => events.iter().for_each(|event| self.count(event)),
            Json::Object(_) => self.count(&body),
            _ => return false,
        }
        true
    }

    fn count(&mut self, event: &Json) {
        let name = name_of(event);
        let known = self.counts.contains_key(&name) || self.counts.len() < KINDS_MAX;
        let name = if known { name } else { "other".to_owned() };
        *self.counts.entry(name).or_default() += 1;
    }

    /// The rates since the last call. Call it about once a second.
    pub fn tick(&mut self, now: RunTime) -> Vec<Reading> {
        let seconds = now.millis_since(self.since) / 1e3;
        if seconds <= 0.0 {
            return Vec::new();
        }
        self.since = now;
        let rate = |(event, count): (&String, &mut u64)| {
            let labels = [("endpoint", self.endpoint.as_str()), ("event", event)];
            let rate = std::mem::take(count) as f64 / seconds;
            Reading::value("janus.events", Unit::PerSecond, &labels, rate)
        };
        self.counts.iter_mut().map(rate).collect()
    }
}

/// Types and subtypes follow Janus's documentation, "Event Handlers".
fn name_of(event: &Json) -> String {
    let body = &event["event"];
    // With combine_media_stats the event of media statistics is an array.
    let body = if body.is_array() { &body[0] } else { body };
    let (kind, word) = match event["type"].as_u64() {
        Some(1) => ("session", &body["name"]),
        Some(2) => ("handle", &body["name"]),
        Some(4) => ("external", &Json::Null),
        Some(8) => ("jsep", &body["owner"]),
        Some(16) if body["ice"].is_string() => ("ice", &body["ice"]),
        Some(16) if body["dtls"].is_string() => ("dtls", &body["dtls"]),
        Some(16) if body["connection"].is_string() => ("webrtc", &body["connection"]),
        Some(16) => ("webrtc", &Json::Null),
        Some(32) if event["subtype"] == 1 => {
            return if body["receiving"] == true { "media_receiving" } else { "media_silent" }
                .into();
        }
        Some(32) if event["subtype"] == 2 => return "media_slow_link".into(),
        Some(32) => return "media_statistics".into(),
        Some(64) => ("plugin", &body["plugin"]),
        Some(128) => ("transport", &body["data"]["event"]),
        Some(256) => ("core", &body["status"]),
        _ => return "other".into(),
    };
    let word = word.as_str().unwrap_or_default();
    let word = word.strip_prefix("janus.plugin.").unwrap_or(word);
    let letters = word.chars().filter(char::is_ascii_alphanumeric).take(30);
    let word: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    if word.is_empty() { kind.to_owned() } else { format!("{kind}_{word}") }
}

/// Why the listener cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for events of Janus on {address}: {reason}")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// The error.
    pub reason: std::io::Error,
}

/// Accepts events at an address until it is dropped, and only from addresses that may be contacted.
#[derive(Debug)]
pub struct EventListener {
    address: SocketAddr,
    // Dropped in this order: the thread ends when the sender is gone.
    _stop: watch::Sender<()>,
    _thread: BackgroundThread,
}

impl EventListener {
    /// Listens on `address` (port 0: any) for the posts of sampleevh, whose `backend` names this
    /// address.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn start(
        endpoint: &str,
        address: SocketAddr,
        writer: ReadingWriter,
        clock: &Clock,
        allowed: &AddressCheck,
    ) -> Result<Self, ListenError> {
        let failed = |reason| ListenError { address, reason };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(failed)?;
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = watch::channel(());
        let counter = Arc::new(Mutex::new(EventCounter::new(endpoint, clock())));
        let (clock, allowed) = (clock.clone(), allowed.clone());
        let work = move || {
            let _cost = writer.charge();
            runtime.block_on(async {
                // Fails only for a socket of another kind.
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let taking = tokio::spawn(take(listener, counter.clone(), allowed));
                write(counter, writer, clock, stopped).await;
                taking.abort();
            });
            runtime.shutdown_background();
        };
        let thread = BackgroundThread::spawn("watch-janus-ev", work).map_err(failed)?;
        Ok(Self { address, _stop: stop, _thread: thread })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

type Shared = Arc<Mutex<EventCounter>>;

async fn write(
    counter: Shared,
    mut writer: ReadingWriter,
    clock: Clock,
    mut stopped: watch::Receiver<()>,
) {
    let mut every = tokio::time::interval(Duration::from_secs(1));
    loop {
        let last = tokio::select! {
            _ = stopped.changed() => true,
            _ = every.tick() => false,
        };
        let now = clock();
        let readings = counter.lock().unwrap_or_else(PoisonError::into_inner).tick(now);
        writer.write(now, readings);
        if last {
            return writer.end(now);
        }
    }
}

async fn take(listener: tokio::net::TcpListener, counter: Shared, allowed: AddressCheck) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Such as out of file descriptors: avoid a busy loop.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(permit) = room.clone().try_acquire_owned() else { continue };
        if allowed(from.ip()).is_err() {
            continue;
        }
        let counter = counter.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let service =
                hyper::service::service_fn(move |request| answer(request, counter.clone()));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(hyper_util::rt::TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_headers(32)
                .serve_connection(TokioIo::new(stream), service);
            let _ = connection.await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    counter: Shared,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let status = if request.method() == Method::POST {
        match timeout(PATIENCE, Limited::new(request.into_body(), BODY_BYTES_MAX).collect()).await {
            Ok(Ok(body)) => {
                let read =
                    counter.lock().unwrap_or_else(PoisonError::into_inner).read(&body.to_bytes());
                if read { StatusCode::OK } else { StatusCode::BAD_REQUEST }
            }
            Ok(Err(_)) => StatusCode::PAYLOAD_TOO_LARGE,
            Err(_) => StatusCode::REQUEST_TIMEOUT,
        }
    } else {
        StatusCode::METHOD_NOT_ALLOWED
    };
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(bodies: &[&str]) -> BTreeMap<String, f64> {
        let mut counter = EventCounter::new("e", RunTime(0));
        bodies.iter().for_each(|body| assert!(counter.read(body.as_bytes()), "{body}"));
        let value = |readings| match readings {
            Reading::Value(value) => (value.labels["event"].clone(), value.value),
            Reading::Event(..) => panic!("no event"),
        };
        counter.tick(RunTime(2_000_000)).into_iter().map(value).collect()
    }

    /// Events in the form of Janus 1.1.2, alone and in groups.
    #[test]
    fn events_are_named_by_type_and_state() {
        let got = counts(&[
            r#"[{"type":1,"event":{"name":"created"}},{"type":1,"event":{"name":"created"}},{"type":2,"event":{"name":"attached","plugin":"janus.plugin.streaming"}}]"#,
            r#"{"type":16,"subtype":1,"event":{"ice":"failed","stream_id":1}}"#,
            r#"{"type":16,"subtype":6,"event":{"connection":"webrtcup"}}"#,
            r#"{"type":16,"subtype":6,"event":{"connection":"hangup","reason":"ICE failed"}}"#,
            r#"{"type":32,"subtype":2,"event":{"slow_link":"uplink"}}"#,
            r#"{"type":32,"subtype":3,"event":[{"mid":"a","rtt":0}]}"#,
            r#"{"type":64,"event":{"plugin":"janus.plugin.videoroom","data":{}}}"#,
        ]);
        let expect = [
            ("session_created", 1.0),
            ("handle_attached", 0.5),
            ("ice_failed", 0.5),
            ("webrtc_webrtcup", 0.5),
            ("webrtc_hangup", 0.5),
            ("media_slow_link", 0.5),
            ("media_statistics", 0.5),
            ("plugin_videoroom", 0.5),
        ];
        for (event, rate) in expect {
            assert_eq!(got.get(event), Some(&rate), "{event} in {got:?}");
        }
        assert_eq!(got.len(), expect.len());
    }

    /// The status line of the response to this request.
    fn answer_of(address: SocketAddr, request: &str) -> String {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }

    fn listen(allowed: &AddressCheck) -> (EventListener, crate::RowReceiver) {
        let (rows, receiver) = crate::rows::rows(1_000);
        let writer = ReadingWriter::new(throng_observation::host::HostId(0), rows);
        let clock = crate::reading::clock_from(std::time::Instant::now());
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        (EventListener::start("janus", anywhere, writer, &clock, allowed).unwrap(), receiver)
    }

    #[test]
    fn posted_events_become_series_and_invalid_ones_are_refused() {
        use throng_observation::host::HostRow;
        let (listener, receiver) = listen(&(Arc::new(|_| Ok(())) as AddressCheck));
        let post = |body: &str| {
            let head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length:";
            answer_of(listener.address(), &format!("{head} {}\r\n\r\n{body}", body.len()))
        };
        let event = r#"[{"type":32,"subtype":2,"event":{"slow_link":"uplink"}}]"#;
        assert_eq!(post(event), "HTTP/1.1 200 OK");
        assert_eq!(post("no event"), "HTTP/1.1 400 Bad Request");
        assert_eq!(post(&" ".repeat(BODY_BYTES_MAX + 1)), "HTTP/1.1 413 Payload Too Large");
        let get = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        assert_eq!(answer_of(listener.address(), get), "HTTP/1.1 405 Method Not Allowed");
        drop(listener);
        let slow_link = |row: HostRow| match row {
            HostRow::Series(series) => {
                series.labels.get("event").is_some_and(|event| event == "media_slow_link")
            }
            _ => false,
        };
        assert!(receiver.try_iter().any(slow_link));
    }

    #[test]
    fn posts_from_addresses_that_are_not_allowed_are_refused() {
        let (listener, _receiver) = listen(&(Arc::new(|_| Err("no".into())) as AddressCheck));
        let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(answer_of(listener.address(), post), "");
    }

    #[test]
    fn invalid_events_are_refused_or_other_and_names_are_bounded() {
        let mut counter = EventCounter::new("e", RunTime(0));
        for body in ["", "7", "\"x\"", "[", "nul"] {
            assert!(!counter.read(body.as_bytes()), "{body}");
        }
        for n in 0..3 * KINDS_MAX {
            counter.read(format!(r#"{{"type":1,"event":{{"name":"n{n}"}}}}"#).as_bytes());
        }
        assert_eq!(counter.tick(RunTime(1)).len(), KINDS_MAX + 1);
        assert_eq!(
            counts(&["{}", r#"[[],{"type":-1},{"type":1e99},{"type":16,"event":7}]"#]).len(),
            2
        );
    }
}
