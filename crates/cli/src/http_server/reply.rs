//! What requests are answered with. Nothing is kept by browsers, and no other site gets any of it.

use http_body_util::{Either, Full};
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::oneshot;

use super::events::{EventStream, Events};

/// The body of an answer.
pub(super) type Body = Either<Full<Bytes>, Events>;

/// An answer of one piece.
pub(super) type Whole = Response<Full<Bytes>>;
/// What makes one.
pub(super) type Make = Box<dyn FnOnce() -> Whole + Send>;

/// An answer.
pub(crate) enum Reply {
    /// Of one piece.
    Whole(Response<Full<Bytes>>),
    /// The same, which takes so long that others are answered meanwhile.
    Later(Make),
    /// Events, as long as the reader looks.
    Events(EventStream),
}

impl From<Response<Full<Bytes>>> for Reply {
    fn from(response: Response<Full<Bytes>>) -> Self {
        Self::Whole(response)
    }
}

/// Whether a request only reads.
pub(crate) fn is_read<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// The answer to a request that does not only read.
pub(crate) fn only_read() -> Response<Full<Bytes>> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Only GET.\n".into());
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

/// A text.
pub(crate) fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    whole(status, "text/plain; charset=utf-8", body.into())
}

/// A page that may do what `policy` allows (Content Security Policy).
pub(crate) fn document(status: StatusCode, body: Bytes, policy: &str) -> Response<Full<Bytes>> {
    let mut response = whole(status, "text/html; charset=utf-8", body);
    // It is of constants and hexadecimal digits.
    if let Ok(policy) = HeaderValue::from_str(policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Something of a kind.
pub(crate) fn whole(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    of_kind(status, kind, Full::new(body))
}

fn of_kind<B>(status: StatusCode, kind: &'static str, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// An answer of one piece, as a connection takes it.
pub(super) fn of_whole(response: Response<Full<Bytes>>) -> Response<Body> {
    response.map(Either::Left)
}

/// An answer of events, and when their reader is gone.
pub(super) fn of_stream(stream: EventStream) -> (Response<Body>, oneshot::Receiver<()>) {
    let EventStream { events, gone } = stream;
    (of_kind(StatusCode::OK, "text/event-stream", Either::Right(events)), gone)
}
