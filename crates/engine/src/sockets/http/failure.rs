//! What went wrong between a request and the end of its body, in words that name the server's act.

use std::error::Error;
use std::io;

use throng_protocol::participant::ChannelError;

use super::origin::Origin;

/// How much of a body had arrived when it broke.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) received: u64,
    /// `Content-Length`, if there was one.
    pub(super) expected: Option<u64>,
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.expected {
            Some(expected) => write!(f, "after {} of {expected} bytes of the body", self.received),
            None => write!(f, "after {} bytes of the body", self.received),
        }
    }
}

/// The failure of a request that got no response.
pub(super) fn of_request(error: &hyper::Error, origin: &Origin) -> ChannelError {
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return ChannelError::Unanswered;
    }
    if error.is_parse() {
        return ChannelError::Protocol(format!("HTTP from {origin}: {}", chain(error)));
    }
    if let Some(error) = source::<h2::Error>(error) {
        return of_http2(error, origin, "before a response");
    }
    ChannelError::Tcp(format!("{origin}: {}", chain(error)))
}

/// The failure of a body that broke.
pub(super) fn of_body(
    error: &(dyn Error + 'static),
    origin: &Origin,
    at: Progress,
) -> ChannelError {
    if let Some(error) = source::<h2::Error>(error)
        && !error.get_io().is_some_and(is_end)
    {
        return of_http2(error, origin, &at.to_string());
    }
    let io = source::<io::Error>(error).or_else(|| source::<h2::Error>(error)?.get_io());
    match io {
        Some(io) if is_end(io) => ended(origin, at),
        // The decoder of chunks reports malformed ones so.
        Some(io)
            if matches!(io.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) =>
        {
            ChannelError::Protocol(format!("HTTP from {origin}, {at}: {}", chain(error)))
        }
        Some(io) => ChannelError::Tcp(format!("{origin}, {at}: {io}")),
        None => ChannelError::Protocol(format!("HTTP from {origin}, {at}: {}", chain(error))),
    }
}

impl Progress {
    /// Checks a body that has ended regularly.
    pub(super) fn at_the_end(self, origin: &Origin) -> Result<(), ChannelError> {
        match self.expected {
            Some(expected) if self.received < expected => Err(ended(origin, self)),
            Some(expected) if self.received > expected => Err(longer(origin, expected)),
            _ => Ok(()),
        }
    }
}

/// The failure of a body that is longer than its head said.
pub(super) fn longer(origin: &Origin, expected: u64) -> ChannelError {
    ChannelError::Protocol(format!(
        "{origin} sent more than the {expected} bytes of Content-Length"
    ))
}

/// The failure of a body that ended before it was complete.
fn ended(origin: &Origin, at: Progress) -> ChannelError {
    match at {
        Progress { received, expected: Some(expected) } => {
            ChannelError::Truncated { received, expected }
        }
        at => ChannelError::Tcp(format!("{origin} closed the connection {at}, before its end")),
    }
}

/// How a server of HTTP/2 says that it did not process a request (RFC 9113 section 8.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goodbye {
    /// It refused the stream; the connection goes on.
    Stream,
    /// It takes no more requests on the connection (GOAWAY). What it had begun to process may have
    /// been cut off as well.
    Connection,
}

/// The goodbye that failed a request, if one did.
pub(super) fn goodbye(error: &hyper::Error) -> Option<Goodbye> {
    let error = source::<h2::Error>(error).filter(|error| error.is_remote())?;
    match error.reason() {
        _ if error.is_go_away() => Some(Goodbye::Connection),
        Some(h2::Reason::REFUSED_STREAM) => Some(Goodbye::Stream),
        _ => None,
    }
}

/// Whether the server closed the connection. h2 calls that a broken pipe.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe)
}

fn of_http2(error: &h2::Error, origin: &Origin, when: &str) -> ChannelError {
    if let Some(io) = error.get_io() {
        return ChannelError::Tcp(format!("{origin}, {when}: {io}"));
    }
    let reason =
        error.reason().map_or_else(|| error.to_string(), |reason| reason.description().to_owned());
    if error.is_library() && error.is_reset() && error.reason() == Some(h2::Reason::PROTOCOL_ERROR)
    {
        // The library compares the length with Content-Length, and says no more than this (RFC 9113
        // section 8.1.1).
        let what = "a malformed message, such as a body of another length than Content-Length";
        return ChannelError::Protocol(format!("HTTP/2: {origin} sent {what}, {when}"));
    }
    let act = match (error.is_go_away(), error.is_reset(), error.is_remote()) {
        (true, _, true) => "closed the connection (GOAWAY)",
        (_, true, true) => "reset the stream (RST_STREAM)",
        _ => "broke the protocol",
    };
    ChannelError::Protocol(format!("HTTP/2: {origin} {act} {when}: {reason}"))
}

/// The first error of type `E` among `error` and its sources.
fn source<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    sources(error).find_map(|error| error.downcast_ref())
}

/// The words of an error and its sources.
fn chain(error: &(dyn Error + 'static)) -> String {
    sources(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
