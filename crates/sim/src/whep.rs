//! A WHEP endpoint that misbehaves in one chosen way, over plain HTTP/1.1; each request is kept for
//! the test to read.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The largest request body taken in.
const BODY_BYTES_MAX: usize = 1 << 20;

/// What the endpoint does with a POST. PATCH gets 204 and DELETE 200 unless said otherwise.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// 201 with this answer.
    Answer(String),
    /// 201 with this answer and no `Location`.
    AnswerWithoutLocation(String),
    /// 201 with this answer; PATCH gets 405.
    AnswerWithoutTrickle(String),
    /// 406 with this offer of the server's own.
    CounterOffer(String),
    /// This status, with these header lines and body.
    Status(u16, Vec<(String, String)>, String),
    /// 307 to this URL.
    Redirect(String),
    /// Accept the connection, read the request, say nothing.
    Silent,
    /// 201 with a body that is no session description.
    Garbage,
    /// 201 that promises a body and closes in the middle of it.
    CloseMidBody,
    /// Close without a response.
    Close,
}

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// Method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Header names in lower case, and values, in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: String,
}

impl ReceivedRequest {
    /// The value of a header (name in lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// A running endpoint; it ends when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    done: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts on a free port of `ip`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When no port can be bound.
    pub fn start(ip: Ipv4Addr, behaviour: Behaviour) -> std::io::Result<Self> {
        let listener = TcpListener::bind((ip, 0))?;
        let address = listener.local_addr()?;
        let (seen, done): (Arc<Mutex<Vec<ReceivedRequest>>>, Arc<AtomicBool>) = Default::default();
        let (kept, ended) = (seen.clone(), done.clone());
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (behaviour, kept, ended) = (behaviour.clone(), kept.clone(), ended.clone());
                std::thread::spawn(move || serve(&stream, &behaviour, &kept, &ended));
            }
        });
        Ok(Self { address, seen, done, accepting: Some(accepting) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests that came, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let (Ok(_), Some(accepting)) = (woken, self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

fn serve(
    stream: &TcpStream,
    behaviour: &Behaviour,
    seen: &Mutex<Vec<ReceivedRequest>>,
    done: &AtomicBool,
) {
    let mut reader = BufReader::new(stream);
    // One connection may carry several requests; an idle one is dropped with its client.
    while let Some(request) = read(&mut reader) {
        let method = request.method.clone();
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let sdp = ("Content-Type", "application/sdp");
        let session = [sdp, ("Location", "/session/1"), ("ETag", "\"one\"")];
        let response = match (method.as_str(), behaviour) {
            ("PATCH", Behaviour::AnswerWithoutTrickle(_)) => response(405, &[], ""),
            ("PATCH", _) => response(204, &[], ""),
            ("DELETE", _) => response(200, &[], ""),
            (_, Behaviour::Answer(answer) | Behaviour::AnswerWithoutTrickle(answer)) => {
                response(201, &session, answer)
            }
            (_, Behaviour::AnswerWithoutLocation(answer)) => response(201, &[sdp], answer),
            (_, Behaviour::CounterOffer(offer)) => response(406, &session, offer),
            (_, Behaviour::Status(status, headers, body)) => {
                let headers: Vec<_> =
                    headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                response(*status, &headers, body)
            }
            (_, Behaviour::Redirect(to)) => response(307, &[("Location", to)], ""),
            (_, Behaviour::Garbage) => {
                response(201, &session, "<html>not a session description</html>")
            }
            (_, Behaviour::CloseMidBody) => {
                let cut = "HTTP/1.1 201 Created\r\nContent-Type: \
                           application/sdp\r\nContent-Length: 900\r\n\r\nv=0\r\n";
                let _ = reader.into_inner().write_all(cut.as_bytes());
                return;
            }
            (_, Behaviour::Close) => return,
            (_, Behaviour::Silent) => {
                while !done.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(50));
                }
                return;
            }
        };
        let mut out = stream;
        if out.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\n", body.len());
    if status == 204 {
        // RFC 9110 §8.6: no Content-Length with 204.
        text = format!("HTTP/1.1 {status} -\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text + "\r\n" + body
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_whitespace();
    let mut seen = ReceivedRequest {
        method: words.next()?.to_owned(),
        target: words.next()?.to_owned(),
        ..ReceivedRequest::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        seen.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length: usize =
        seen.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length.min(BODY_BYTES_MAX)];
    reader.read_exact(&mut body).ok()?;
    seen.body = String::from_utf8_lossy(&body).into_owned();
    Some(seen)
}
