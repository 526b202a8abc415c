//! Where a request goes, and by which version of HTTP: connections are kept by both.

use std::fmt;

use http::Uri;
use throng_protocol::participant::{ChannelError, HttpVersion};

use crate::sockets::Host;

/// The origin of a URL (RFC 6454).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) secure: bool,
    pub(super) host: Host,
    pub(super) port: u16,
}

/// Requests with the same key share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) origin: Origin,
    pub(super) version: HttpVersion,
}

impl Origin {
    /// The same host at another port.
    pub(super) fn at(&self, port: u16) -> Self {
        Self { port, ..self.clone() }
    }
}

impl Origin {
    pub(super) fn of(uri: &Uri) -> Result<Self, ChannelError> {
        let odd =
            || ChannelError::Protocol(format!("`{uri}` is not an absolute http: or https: URL"));
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(odd()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).map(Host::parse).ok_or_else(odd)?;
        Ok(Self { secure, host, port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }) })
    }
}

impl fmt::Display for Origin {
    /// Host and port, as messages name a server.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Key {
    pub(super) fn of(uri: &Uri, version: HttpVersion) -> Result<Self, ChannelError> {
        let origin = Origin::of(uri)?;
        if matches!(version, HttpVersion::Http3 | HttpVersion::Alternative(_)) && !origin.secure {
            return Err(ChannelError::Protocol(format!(
                "HTTP/3 is always encrypted: `{uri}` needs https:"
            )));
        }
        Ok(Self { origin, version })
    }

    /// Whether its connections may carry several requests at a time.
    pub(super) fn may_share(&self) -> bool {
        match self.version {
            HttpVersion::Http1 => false,
            // Without TLS nothing is negotiated.
            HttpVersion::Negotiated => self.origin.secure,
            HttpVersion::Http2 | HttpVersion::Http3 | HttpVersion::Alternative(_) => true,
        }
    }

    /// The protocols to offer by ALPN, the preferred one first.
    pub(super) fn alpn(&self) -> &'static [&'static [u8]] {
        match self.version {
            HttpVersion::Negotiated => &[b"h2", b"http/1.1"],
            HttpVersion::Http1 => &[b"http/1.1"],
            HttpVersion::Http2 => &[b"h2"],
            HttpVersion::Http3 | HttpVersion::Alternative(_) => &[b"h3"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_urls_have_an_origin_and_http3_needs_tls() {
        let key = |text: &str, version| Key::of(&text.parse().unwrap(), version);
        for (text, port, secure) in [
            ("http://a.example/x", 80, false),
            ("https://a.example", 443, true),
            ("https://[::1]:8443/", 8443, true),
        ] {
            let key = key(text, HttpVersion::Negotiated).unwrap();
            assert_eq!(
                (key.origin.port, key.origin.secure, key.may_share()),
                (port, secure, secure),
                "{text}"
            );
        }
        for text in ["/x", "ftp://a.example/", "a.example:80"] {
            assert!(
                matches!(key(text, HttpVersion::Http1), Err(ChannelError::Protocol(_))),
                "{text}"
            );
        }
        assert!(matches!(
            key("http://a.example/", HttpVersion::Http3),
            Err(ChannelError::Protocol(_))
        ));
        assert!(key("https://a.example/", HttpVersion::Http3).is_ok_and(|key| key.may_share()));
        assert!(!key("https://a.example/", HttpVersion::Http1).unwrap().may_share());
        assert!(key("http://a.example/", HttpVersion::Http2).unwrap().may_share());
    }
}
