//! A participant's request as it is sent.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT};
use http::uri::{Authority, PathAndQuery};
use http::{Uri, Version};
use http_body_util::Full;
use throng_protocol::participant::{ChannelError, Request};

use crate::sockets;

/// A request whose body is sent whole.
pub(super) type Sent = http::Request<Full<Bytes>>;

/// The request in the form of `version`: origin form with `Host` (RFC 9112 section 3.2) for
/// HTTP/1.1, absolute form without it for HTTP/2 and HTTP/3, which send its parts as pseudo-header
/// fields (RFC 9113 section 8.3.1, RFC 9114 section 4.3.1). throng's `User-Agent` unless the
/// participant gave another.
pub(super) fn prepared(request: &Request, version: Version) -> Result<Sent, ChannelError> {
    let mut head = request.head.clone();
    let odd =
        |what: &str| ChannelError::Protocol(format!("cannot request {}: {what}", request.head.uri));
    head.version = version;
    let authority = head.uri.authority().map(Authority::as_str).unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_owned();
    let path = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    if version == Version::HTTP_11 {
        if !head.headers.contains_key(HOST) {
            let host = HeaderValue::from_str(&authority).map_err(|e| odd(&e.to_string()))?;
            head.headers.insert(HOST, host);
        }
        head.uri = Uri::from(path);
    } else {
        let scheme = head.uri.scheme_str().unwrap_or_default();
        head.uri = Uri::builder()
            .scheme(scheme)
            .authority(authority)
            .path_and_query(path)
            .build()
            .map_err(|e| odd(&e.to_string()))?;
        head.headers.remove(HOST);
    }
    if !head.headers.contains_key(USER_AGENT) {
        head.headers.insert(USER_AGENT, HeaderValue::from_static(sockets::USER_AGENT));
    }
    // The library computes the length of the body that it sends.
    head.headers.remove(CONTENT_LENGTH);
    Ok(http::Request::from_parts(head, Full::new(Bytes::from(request.body.clone()))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_version_gets_its_form_and_no_password_of_the_url() {
        let head = http::Request::get("https://me:secret@a.example:8443/x?y")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        let request = Request { head, body: vec![], timeout: Duration::ZERO };
        let old = prepared(&request, Version::HTTP_11).unwrap();
        assert_eq!(
            (old.uri(), &old.headers()[HOST]),
            (&Uri::from_static("/x?y"), &HeaderValue::from_static("a.example:8443"))
        );
        for version in [Version::HTTP_2, Version::HTTP_3] {
            let new = prepared(&request, version).unwrap();
            assert_eq!(new.uri(), "https://a.example:8443/x?y");
            assert!(!new.headers().contains_key(HOST) && new.headers().contains_key(USER_AGENT));
        }
    }
}
