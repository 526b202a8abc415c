//! HTTP fetches: HTTP/1.1, or HTTP/2 by ALPN, with connections kept for the next fetch of the same participant.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Uri, Version};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use throng_protocol::participant::{ChannelError, Opening, Request, Response};

use super::{Dialer, Host};

/// Most idle connections per participant.
const IDLE_MAX: usize = 4;

/// The idle connections of one participant.
#[derive(Clone, Default)]
pub(crate) struct Pool {
    idle: Arc<Mutex<Vec<Idle>>>,
}

struct Idle {
    origin: Origin,
    connection: Connection,
    /// Addresses only on reuse: the connection was not opened for this fetch.
    opening: Opening,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    secure: bool,
    host: Host,
    port: u16,
}

enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Sends `request`, from local address `source` if given, within the request's own time limit.
pub(crate) async fn fetch(
    dialer: &Dialer,
    pool: &Pool,
    source: Option<IpAddr>,
    request: Request,
    body_bytes_max: usize,
) -> Result<Response, ChannelError> {
    let timeout = request.timeout;
    tokio::time::timeout(timeout, fetch_without_timeout(dialer, pool, source, request, body_bytes_max))
        .await
        .unwrap_or(Err(ChannelError::Timeout(timeout)))
}

async fn fetch_without_timeout(
    dialer: &Dialer,
    pool: &Pool,
    source: Option<IpAddr>,
    request: Request,
    body_bytes_max: usize,
) -> Result<Response, ChannelError> {
    let origin = Origin::of(&request.head.uri)?;
    // The server may have just closed a kept connection; then a new one is tried.
    if let Some(mut idle) = pool.take(&origin) {
        let again = copy(&request);
        match exchange(&mut idle, &origin, request, body_bytes_max).await {
            Err(Exchange::NotSent(_)) => {
                return fresh(dialer, pool, source, origin, again, body_bytes_max).await;
            }
            result => return finish(pool, idle, result),
        }
    }
    fresh(dialer, pool, source, origin, request, body_bytes_max).await
}

async fn fresh(
    dialer: &Dialer,
    pool: &Pool,
    source: Option<IpAddr>,
    origin: Origin,
    request: Request,
    body_bytes_max: usize,
) -> Result<Response, ChannelError> {
    let (connection, opening) = connect(dialer, source, &origin).await?;
    let mut connection = Idle { origin: origin.clone(), connection, opening };
    let result = exchange(&mut connection, &origin, request, body_bytes_max).await;
    finish(pool, connection, result)
}

fn finish(pool: &Pool, mut used: Idle, result: Result<Response, Exchange>) -> Result<Response, ChannelError> {
    match result {
        Ok(response) => {
            used.opening =
                Opening { local: used.opening.local, remote: used.opening.remote, ..Opening::default() };
            pool.give(used);
            Ok(response)
        }
        Err(Exchange::NotSent(error) | Exchange::Failed(error)) => Err(error),
    }
}

fn copy(request: &Request) -> Request {
    Request { head: request.head.clone(), body: request.body.clone(), timeout: request.timeout }
}

impl Pool {
    fn take(&self, origin: &Origin) -> Option<Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|kept| !kept.connection.is_closed());
        let at = idle.iter().position(|kept| kept.origin == *origin)?;
        Some(idle.swap_remove(at))
    }

    fn give(&self, connection: Idle) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.connection.is_closed() {
            idle.push(connection);
        }
    }
}

impl Origin {
    fn of(uri: &Uri) -> Result<Self, ChannelError> {
        let odd = || ChannelError::Protocol(format!("`{uri}` is not an absolute http: or https: URL"));
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(odd()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).map(Host::parse).ok_or_else(odd)?;
        Ok(Self { secure, host, port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }) })
    }
}

async fn connect(
    dialer: &Dialer,
    source: Option<IpAddr>,
    origin: &Origin,
) -> Result<(Connection, Opening), ChannelError> {
    let tls = origin.secure.then_some((&dialer.tls_http, &origin.host));
    let (pipe, opening) = dialer.dial(source, &origin.host, origin.port, tls).await?;
    let broken = |e: hyper::Error| ChannelError::Protocol(format!("HTTP: {e}"));
    let connection = if pipe.speaks_http2() {
        let (sender, driver) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(pipe)).await.map_err(broken)?;
        tokio::spawn(driver);
        Connection::Http2(sender)
    } else {
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(16 * 1024)
            .handshake(TokioIo::new(pipe))
            .await
            .map_err(broken)?;
        tokio::spawn(driver);
        Connection::Http1(sender)
    };
    Ok((connection, opening))
}

impl Connection {
    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

enum Exchange {
    /// The connection was closed before the request: nothing reached the server.
    NotSent(ChannelError),
    Failed(ChannelError),
}

async fn exchange(
    on: &mut Idle,
    origin: &Origin,
    request: Request,
    body_bytes_max: usize,
) -> Result<Response, Exchange> {
    let is_http2 = matches!(on.connection, Connection::Http2(_));
    let request = prepared(request, is_http2).map_err(Exchange::Failed)?;
    let ready = match &mut on.connection {
        Connection::Http1(sender) => sender.ready().await,
        Connection::Http2(sender) => sender.ready().await,
    };
    ready.map_err(|e| Exchange::NotSent(failure(&e, origin)))?;
    let sent = match &mut on.connection {
        Connection::Http1(sender) => sender.send_request(request).await,
        Connection::Http2(sender) => sender.send_request(request).await,
    };
    let response = sent.map_err(|e| match failure(&e, origin) {
        error if e.is_canceled() => Exchange::NotSent(error),
        error => Exchange::Failed(error),
    })?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, body_bytes_max).collect().await.map_err(|e| {
        Exchange::Failed(if e.is::<LengthLimitError>() {
            ChannelError::Protocol(format!("body longer than {body_bytes_max} bytes"))
        } else {
            ChannelError::Protocol(format!("body: {e}"))
        })
    })?;
    Ok(Response { head, body: body.to_bytes().into(), opening: on.opening.clone() })
}

fn failure(error: &hyper::Error, origin: &Origin) -> ChannelError {
    let at = format!("{}:{}", origin.host, origin.port);
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        ChannelError::Unanswered
    } else if error.is_parse() {
        ChannelError::Protocol(format!("HTTP from {at}: {error}"))
    } else {
        ChannelError::Tcp(format!("{at}: {error}"))
    }
}

/// The request as sent: origin form with `Host` (RFC 9112 section 3.2) for HTTP/1.1, absolute form without it for HTTP/2;
/// throng's `User-Agent` unless the participant gave another.
fn prepared(request: Request, is_http2: bool) -> Result<hyper::Request<Full<Bytes>>, ChannelError> {
    let Request { mut head, body, timeout: _ } = request;
    let odd = |what: &str| ChannelError::Protocol(format!("cannot request {}: {what}", head.uri));
    if is_http2 {
        head.version = Version::HTTP_2;
        head.headers.remove(HOST);
    } else {
        head.version = Version::HTTP_11;
        if !head.headers.contains_key(HOST) {
            let host = head.uri.authority().map(Authority::as_str).unwrap_or_default();
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            let host = HeaderValue::from_str(host).map_err(|e| odd(&e.to_string()))?;
            head.headers.insert(HOST, host);
        }
        let path = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        head.uri = Uri::from(path);
    }
    if !head.headers.contains_key(USER_AGENT) {
        head.headers.insert(USER_AGENT, HeaderValue::from_static(super::USER_AGENT));
    }
    // hyper computes the length of the body that it sends.
    head.headers.remove(CONTENT_LENGTH);
    Ok(hyper::Request::from_parts(head, Full::new(Bytes::from(body))))
}

/// A single `GET` outside of any participant, for consent files.
pub(crate) async fn get(
    dialer: &Dialer,
    scheme: Scheme,
    authority: &str,
    path: &str,
    timeout: Duration,
    body_bytes_max: usize,
) -> Result<Response, ChannelError> {
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
    let request = uri.and_then(|uri| hyper::Request::get(uri).body(()));
    let (head, ()) = request.map_err(|e| ChannelError::Protocol(e.to_string()))?.into_parts();
    let request = Request { head, body: Vec::new(), timeout };
    fetch(dialer, &Pool::default(), None, request, body_bytes_max).await
}
