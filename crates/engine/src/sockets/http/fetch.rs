//! Requests whose whole body is wanted: signalling, playlists, files of consent.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use throng_protocol::participant::{ChannelError, HttpVersion, Request, Response};

use super::exchange::{Reply, send};
use super::failure::Progress;
use super::pool::Pool;
use crate::sockets::Dialer;

/// Sends `request`, from local address `source` if given, within the request's own time limit.
pub(crate) async fn fetch(
    dialer: &Arc<Dialer>,
    pool: &Pool,
    source: Option<IpAddr>,
    request: Request,
    body_bytes_max: usize,
) -> Result<Response, ChannelError> {
    let timeout = request.timeout;
    let fetching = async {
        let reply = send(dialer, pool, source, &request, HttpVersion::Negotiated).await?;
        whole(reply, body_bytes_max).await
    };
    tokio::time::timeout(timeout, fetching).await.unwrap_or(Err(ChannelError::Timeout(timeout)))
}

async fn whole(reply: Reply, body_bytes_max: usize) -> Result<Response, ChannelError> {
    let Reply { origin, head, mut body, expected, lease } = reply;
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let at = Progress { received: bytes.len() as u64, expected };
        let piece = piece.map_err(|e| lease.body_failure(&e, &origin, at))?;
        if bytes.len() + piece.len() > body_bytes_max {
            return Err(ChannelError::Protocol(format!("body longer than {body_bytes_max} bytes")));
        }
        bytes.extend_from_slice(&piece);
    }
    Progress { received: bytes.len() as u64, expected }.at_the_end(&origin)?;
    let opening = lease.opening.clone();
    lease.keep_for_long();
    Ok(Response { head, body: bytes, opening })
}

/// A single `GET` outside of any participant, for consent files.
pub(crate) async fn get(
    dialer: &Arc<Dialer>,
    scheme: Scheme,
    authority: &str,
    path: &str,
    timeout: Duration,
    body_bytes_max: usize,
) -> Result<Response, ChannelError> {
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
    let request = uri.and_then(|uri| http::Request::get(uri).body(()));
    let (head, ()) = request.map_err(|e| ChannelError::Protocol(e.to_string()))?.into_parts();
    let request = Request { head, body: Vec::new(), timeout };
    fetch(dialer, &Pool::default(), None, request, body_bytes_max).await
}
