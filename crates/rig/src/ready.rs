//! When a server is ready: it accepts connections, answers a request, or says so.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use regex::Regex;

/// How long one attempt may take.
const ATTEMPT_MAX: Duration = Duration::from_millis(500);
/// Of an answer only the status line is read; of a log, its first part.
const ANSWER_BYTES_MAX: u64 = 256;
const LOG_BYTES_MAX: u64 = 4 << 20;

/// What to wait for, and how long.
#[derive(Clone, Debug)]
pub struct Readiness {
    /// The sign.
    pub sign: Sign,
    /// How long it may take.
    pub within: Duration,
}

/// The sign that a server is ready.
#[derive(Clone, Debug)]
pub enum Sign {
    /// It accepts connections on this TCP port of 127.0.0.1.
    Port(u16),
    /// GET of `path` at this host and port is answered with a status below 400.
    Http {
        /// `HOST:PORT`.
        authority: String,
        /// Path and query.
        path: String,
    },
    /// Its output has a line that matches.
    Line(Regex),
}

impl Sign {
    /// Whether it is there; `log` is the server's output.
    #[must_use]
    pub fn is_there(&self, log: &Path) -> bool {
        match self {
            Self::Port(port) => connects(SocketAddr::from((Ipv4Addr::LOCALHOST, *port))).is_some(),
            Self::Http { authority, path } => {
                answers(authority, path).is_some_and(|status| status < 400)
            }
            Self::Line(pattern) => {
                let mut text = Vec::new();
                let read = std::fs::File::open(log)
                    .and_then(|file| file.take(LOG_BYTES_MAX).read_to_end(&mut text));
                read.is_ok()
                    && String::from_utf8_lossy(&text).lines().any(|line| pattern.is_match(line))
            }
        }
    }

    /// The TCP port that must be free before the server starts.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Port(port) => Some(*port),
            Self::Http { authority, .. } => authority.rsplit(':').next()?.parse().ok(),
            Self::Line(_) => None,
        }
    }
}

impl std::fmt::Display for Sign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Port(port) => write!(f, "port {port} accepts connections"),
            Self::Http { authority, path } => write!(f, "http://{authority}{path} answers"),
            Self::Line(pattern) => write!(f, "a line of its output matches `{pattern}`"),
        }
    }
}

/// A pattern for [`Sign::Line`].
///
/// # Errors
/// In words, if it is no regular expression, or too large a one.
pub fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

/// Whether nothing listens on `port` of this machine.
pub(crate) fn is_free(port: u16) -> bool {
    // A connection tells of a listener on any address; the bind tells of one that accepts nothing.
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    connects(address).is_none() && TcpListener::bind(address).is_ok()
}

fn connects(address: SocketAddr) -> Option<TcpStream> {
    TcpStream::connect_timeout(&address, ATTEMPT_MAX).ok()
}

/// The status of a GET.
fn answers(authority: &str, path: &str) -> Option<u16> {
    let mut stream = connects(authority.to_socket_addrs().ok()?.next()?)?;
    stream.set_read_timeout(Some(ATTEMPT_MAX)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // An answer that is cut off by the time limit is judged by what came.
    let _ = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
    status(&String::from_utf8_lossy(&answer))
}

fn status(answer: &str) -> Option<u16> {
    let mut words = answer.lines().next()?.split_whitespace();
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    words.next()?.parse().ok().filter(|status| (100..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_from_whatever_answers() {
        for (answer, expect) in [
            ("HTTP/1.1 200 OK\r\n", Some(200)),
            ("HTTP/1.0 404\r\n", Some(404)),
            ("RTSP/1.0 200 OK", None),
            ("HTTP/1.1 abc", None),
            ("HTTP/1.1 99999", None),
            ("", None),
        ] {
            assert_eq!(status(answer), expect, "{answer}");
        }
    }
}
