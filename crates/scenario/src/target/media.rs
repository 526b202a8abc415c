//! How media reaches participants: the ICE transport policy, the STUN server, the transport of RTP
//! on RTSP.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use throng_observation::Url;
use url::Host;

use crate::keys::named;

/// The ICE candidates that may be used (W3C `RTCConfiguration.iceTransportPolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum IceTransportPolicy {
    /// All candidates: ICE chooses between the direct path and a relay that the server announces.
    #[default]
    All,
    /// The relay (TURN) alone.
    Relay,
}

named! { IceTransportPolicy: All = "all", Relay = "relay" }

/// The transport of RTP on an RTSP target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtspTransport {
    /// UDP, and TCP where the server refuses UDP, as players do.
    #[default]
    Auto,
    /// UDP.
    Udp,
    /// The RTSP connection itself (interleaved).
    Tcp,
}

named! { RtspTransport: Auto = "auto", Udp = "udp", Tcp = "tcp" }

/// The default port of STUN (RFC 8489 section 18.6).
const STUN_PORT: u16 = 3478;

/// A STUN server (RFC 8489), from a `stun:` URI (RFC 7064).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StunServer {
    /// An IP address, IPv6 without brackets, or a name in lower case.
    host: String,
    port: u16,
}

impl StunServer {
    /// Parses `stun:HOST[:PORT]`.
    #[must_use]
    pub fn parse(uri: &str) -> Option<Self> {
        let (scheme, place) = uri.split_once(':')?;
        let url = Url::parse(&format!("stun://{place}")).ok()?;
        let is_place = !place.contains(['/', '?', '#', '@']);
        let host = match url.host()? {
            Host::Ipv6(ip) => ip.to_string(),
            host => host.to_string().to_ascii_lowercase(),
        };
        let port = url.port().unwrap_or(STUN_PORT);
        let is_stun = scheme.eq_ignore_ascii_case("stun") && is_place;
        (is_stun && !host.is_empty() && port != 0).then_some(Self { host, port })
    }

    /// Its address: its IP address, or `host`, the address of the target's host, for a name.
    #[must_use]
    pub fn address(&self, host: Option<IpAddr>) -> Option<SocketAddr> {
        let ip = self.literal().or(host)?;
        Some(SocketAddr::new(ip.to_canonical(), self.port))
    }

    /// Whether its address is known once the host of `target` is resolved: participants do not
    /// resolve names.
    pub(crate) fn is_resolved_with(&self, target: &Url) -> bool {
        self.literal().is_some()
            || target.host_str().is_some_and(|host| host.eq_ignore_ascii_case(&self.host))
    }

    fn literal(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl fmt::Display for StunServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "stun:[{host}]:{port}")
        } else {
            write!(f, "stun:{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stun_uris_say_host_and_port() {
        let own = IpAddr::from([10, 0, 0, 9]);
        for (uri, address) in [
            ("stun:192.0.2.1", "192.0.2.1:3478"),
            ("STUN:192.0.2.1:19302", "192.0.2.1:19302"),
            ("stun:[2001:db8::1]", "[2001:db8::1]:3478"),
            ("stun:[::ffff:192.0.2.1]:80", "192.0.2.1:80"),
            ("stun:Media.Example:5000", "10.0.0.9:5000"),
        ] {
            let server = StunServer::parse(uri).unwrap_or_else(|| panic!("{uri}"));
            assert_eq!(server.address(Some(own)), address.parse().ok(), "{uri}");
            assert_eq!(StunServer::parse(&server.to_string()), Some(server), "{uri}");
        }
        assert_eq!(StunServer::parse("stun:media.example").unwrap().address(None), None);
        for uri in [
            "",
            "stun",
            "stun:",
            "stun::3478",
            "stuns:h",
            "turn:h",
            "stun:h:0",
            "stun:h:99999",
            "stun:[::1",
        ] {
            assert_eq!(StunServer::parse(uri), None, "{uri}");
        }
        for uri in
            ["stun://h", "stun:u@h", "stun:h/x", "stun:h?transport=udp", "stun:h#x", "stun:ho st"]
        {
            assert_eq!(StunServer::parse(uri), None, "{uri}");
        }
    }
}
