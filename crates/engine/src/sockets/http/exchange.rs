//! A request and the head of its response.

use std::net::IpAddr;
use std::sync::Arc;

use http::{Method, StatusCode, Version};
use throng_protocol::participant::{ChannelError, HttpVersion, Request};

use super::body::Body;
use super::failure::{self, Goodbye};
use super::http3::Http3;
use super::origin::{Key, Origin};
use super::pool::{Lease, Leased, Pool, Shared};
use super::request::prepared;
use crate::sockets::Dialer;

/// A response whose body is yet to be read.
pub(super) struct Reply {
    pub(super) origin: Origin,
    pub(super) head: http::response::Parts,
    pub(super) body: Body,
    /// The length that the head announces of the body.
    pub(super) expected: Option<u64>,
    pub(super) lease: Lease,
}

/// How often a request is repeated that the server says it did not process: as by Chromium
/// (`kMaxRetryAttempts` in net/http/http_network_transaction.cc).
const REFUSED_REPEATS: u32 = 2;

/// Why there is no response.
struct Unsent {
    error: ChannelError,
    /// The server did not begin to process the request.
    was_not_processed: bool,
    /// The connection broke, or the server closed it.
    is_broken: bool,
    goodbye: Option<Goodbye>,
}

/// Sends `request`, from local address `source` if given. A kept connection may have been closed by
/// the server in the meantime: then a new one is tried, once, if the request was not processed or
/// may be repeated (RFC 9110 section 9.2.2). A server may also refuse requests on a new connection:
/// they are repeated, on another one where it closes this one.
pub(super) async fn send(
    dialer: &Arc<Dialer>,
    pool: &Pool,
    source: Option<IpAddr>,
    request: &Request,
    version: HttpVersion,
) -> Result<Reply, ChannelError> {
    let key = Key::of(&request.head.uri, version)?;
    let (mut except, mut refused, mut has_broken) = (None, 0, false);
    loop {
        let mut lease = pool.lease(dialer, source, &key, except.as_ref()).await?;
        let failed = match exchange(&mut lease, &key.origin, request).await {
            Ok((head, body)) => {
                let expected = expected_bytes(&request.head.method, &head);
                return Ok(Reply { origin: key.origin, head, body, expected, lease });
            }
            Err(unsent) => unsent,
        };
        let is_repeated = match failed.goodbye {
            Some(_) => {
                refused += 1;
                refused <= REFUSED_REPEATS
            }
            None => lease.is_reused && !std::mem::replace(&mut has_broken, true),
        };
        if !(is_repeated && failed.may_repeat(request)) {
            return Err(failed.error);
        }
        except = (failed.goodbye != Some(Goodbye::Stream)).then(|| lease.failed());
    }
}

async fn exchange(
    on: &mut Lease,
    origin: &Origin,
    request: &Request,
) -> Result<(http::response::Parts, Body), Unsent> {
    let version = match &on.connection {
        Leased::Http1 { .. } => Version::HTTP_11,
        Leased::Shared(Shared::Http2(_)) => Version::HTTP_2,
        Leased::Shared(Shared::Http3(_)) => Version::HTTP_3,
    };
    let odd = |error| Unsent { error, was_not_processed: false, is_broken: false, goodbye: None };
    let request = prepared(request, version).map_err(odd)?;
    let not_ready =
        |e: &hyper::Error| Unsent { was_not_processed: true, ..Unsent::of_hyper(e, origin) };
    let response = match &mut on.connection {
        Leased::Http1 { connection, .. } => {
            connection.sender.ready().await.map_err(|e| not_ready(&e))?;
            connection.sender.send_request(request).await
        }
        Leased::Shared(Shared::Http2(connection)) => {
            let mut sender = connection.sender.clone();
            sender.ready().await.map_err(|e| not_ready(&e))?;
            sender.send_request(request).await
        }
        Leased::Shared(Shared::Http3(connection)) => {
            let response = connection.send(request).await.map_err(|e| Unsent {
                error: connection.failure(&e, origin, "before a response"),
                was_not_processed: Http3::goodbye(&e).is_some(),
                is_broken: connection.is_closed(),
                goodbye: Http3::goodbye(&e),
            })?;
            let (head, stream) = response;
            return Ok((head, Body::Http3(Box::new(stream))));
        }
    };
    let (head, body) = response.map_err(|e| Unsent::of_hyper(&e, origin))?.into_parts();
    Ok((head, Body::Hyper(body)))
}

impl Unsent {
    fn of_hyper(error: &hyper::Error, origin: &Origin) -> Self {
        let (error_words, goodbye) = (failure::of_request(error, origin), failure::goodbye(error));
        let is_broken = !matches!(error_words, ChannelError::Protocol(_)) || goodbye.is_some();
        let was_not_processed = error.is_canceled() || goodbye == Some(Goodbye::Stream);
        Self { error: error_words, was_not_processed, is_broken, goodbye }
    }

    fn may_repeat(&self, request: &Request) -> bool {
        self.was_not_processed || self.is_broken && request.head.method.is_idempotent()
    }
}

/// The length of the body that follows `head`, if the head says so (RFC 9110 section 8.6, RFC 9112
/// section 6.3).
fn expected_bytes(method: &Method, head: &http::response::Parts) -> Option<u64> {
    let has_none = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if method == Method::HEAD || has_none {
        return Some(0);
    }
    if head.headers.contains_key(http::header::TRANSFER_ENCODING) {
        return None;
    }
    head.headers.get(http::header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_the_body_not_of_what_the_head_describes() {
        for (method, status, length, chunked, expect) in [
            (Method::GET, 200, Some("10"), false, Some(10)),
            (Method::GET, 206, Some(" 7 "), false, Some(7)),
            (Method::GET, 200, Some("10"), true, None),
            (Method::GET, 200, Some("ten"), false, None),
            (Method::GET, 200, Some("-1"), false, None),
            (Method::GET, 200, None, false, None),
            (Method::HEAD, 200, Some("10"), false, Some(0)),
            (Method::GET, 304, Some("10"), false, Some(0)),
            (Method::GET, 204, None, false, Some(0)),
        ] {
            let mut response = http::Response::builder().status(status);
            if let Some(length) = length {
                response = response.header("content-length", length);
            }
            if chunked {
                response = response.header("transfer-encoding", "chunked");
            }
            let head = response.body(()).unwrap().into_parts().0;
            assert_eq!(expected_bytes(&method, &head), expect, "{method} {status} {length:?}");
        }
    }
}
