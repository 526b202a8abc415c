//! TURN servers: their URIs (RFC 7065), and the one that a scenario names.

use std::net::{IpAddr, SocketAddr};

use throng_observation::Url;

use super::TokenSource;

/// The TURN server (RFC 8656) that a scenario names, with its long-term credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnServer {
    /// `turn:HOST[:PORT][?transport=udp|tcp]` or `turns:HOST[:PORT]`.
    pub uri: String,
    /// The user name, no secret.
    pub username: String,
    /// The source of the password.
    pub password: TokenSource,
}

/// Why a TURN URI cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnUriError {
    /// Not `turn:HOST[:PORT][?transport=udp|tcp]` or `turns:` alike.
    #[error("not a TURN URI")]
    Malformed,
    /// TURN over DTLS.
    #[error("TURN over DTLS is not supported")]
    Dtls,
}

/// The transport of TURN to its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayTransport {
    /// Datagrams.
    Udp,
    /// A TCP connection.
    Tcp,
    /// TLS on TCP, with this server name.
    Tls(String),
}

impl RelayTransport {
    /// Whether it is a stream, in which frames have to be delimited.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        *self != Self::Udp
    }
}

/// The host of a TURN URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnHost {
    /// A literal address.
    Ip(IpAddr),
    /// A name; participants do not resolve names.
    Name(String),
}

/// The parts of a TURN URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnUri {
    /// The host.
    pub host: TurnHost,
    /// The port; 3478, or 5349 for TLS, when the URI has none.
    pub port: u16,
    /// The transport.
    pub transport: RelayTransport,
}

impl TurnUri {
    /// Reads a TURN URI.
    ///
    /// # Errors
    /// [`TurnUriError`].
    pub fn parse(uri: &str) -> Result<Self, TurnUriError> {
        let (scheme, rest) = uri.trim().split_once(':').ok_or(TurnUriError::Malformed)?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "turn" => false,
            "turns" => true,
            _ => return Err(TurnUriError::Malformed),
        };
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, port) = host_and_port(authority).ok_or(TurnUriError::Malformed)?;
        let transport = query.split('&').find_map(|pair| pair.strip_prefix("transport="));
        let transport = match (secure, transport) {
            (false, None | Some("udp")) => RelayTransport::Udp,
            (false, Some("tcp")) => RelayTransport::Tcp,
            (true, None | Some("tcp")) => RelayTransport::Tls(host.to_owned()),
            (true, Some("udp")) => return Err(TurnUriError::Dtls),
            _ => return Err(TurnUriError::Malformed),
        };
        let port = port.unwrap_or(if secure { 5349 } else { 3478 });
        let host =
            host.parse().map_or_else(|_| TurnHost::Name(host.to_ascii_lowercase()), TurnHost::Ip);
        Ok(Self { host, port, transport })
    }

    /// Whether its address is known when that of the host of `target` is: participants resolve no
    /// names.
    pub(crate) fn is_resolved_with(&self, target: &Url) -> bool {
        match &self.host {
            TurnHost::Ip(_) => true,
            TurnHost::Name(name) => {
                target.host_str().is_some_and(|host| host.eq_ignore_ascii_case(name))
            }
        }
    }

    /// Its address: the literal one, or `named` for a name whose address is known.
    #[must_use]
    pub fn address(&self, named: Option<IpAddr>) -> Option<SocketAddr> {
        let ip = match self.host {
            TurnHost::Ip(ip) => Some(ip),
            TurnHost::Name(_) => named,
        };
        Some(SocketAddr::new(ip?, self.port))
    }
}

/// Host without brackets, and port. `None` for what is neither.
fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (host, after) = bracketed.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || host.len() > 253 || !host.chars().all(named) {
        return None;
    }
    match port {
        None => Some((host, None)),
        Some(port) => Some((host, Some(port.parse().ok().filter(|port| *port != 0)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_uris_say_host_port_and_transport() {
        use RelayTransport::{Tcp, Tls, Udp};
        for (uri, host, port, transport) in [
            ("turn:192.0.2.1", "192.0.2.1", 3478, Udp),
            ("turn:192.0.2.1:80?transport=udp", "192.0.2.1", 80, Udp),
            ("turn:192.0.2.1:3478?transport=tcp", "192.0.2.1", 3478, Tcp),
            ("TURN:Media.Example:9?transport=tcp", "media.example", 9, Tcp),
            ("turn:[2001:db8::1]:5000?transport=tcp", "2001:db8::1", 5000, Tcp),
            ("turn:[2001:db8::1]", "2001:db8::1", 3478, Udp),
            ("turns:media.example", "media.example", 5349, Tls("media.example".into())),
            ("turns:192.0.2.1:443?transport=tcp", "192.0.2.1", 443, Tls("192.0.2.1".into())),
        ] {
            let host = host.parse().map_or_else(|_| TurnHost::Name(host.into()), TurnHost::Ip);
            assert_eq!(TurnUri::parse(uri), Ok(TurnUri { host, port, transport }), "{uri}");
        }
    }

    #[test]
    fn what_is_no_turn_uri_is_refused() {
        for uri in [
            "",
            "turn",
            "turn:",
            "stun:192.0.2.1",
            "turn::3478",
            "turn:host:0",
            "turn:host:99999",
            "turn:host:",
            "turn:[::1",
            "turn:[host]:1",
            "turn:[::1]1",
            "turn:ho st",
            "turn://host",
            "turn:host?transport=sctp",
            "turn:user@host",
        ] {
            assert_eq!(TurnUri::parse(uri), Err(TurnUriError::Malformed), "{uri}");
        }
        assert_eq!(TurnUri::parse("turns:host?transport=udp"), Err(TurnUriError::Dtls));
    }
}
