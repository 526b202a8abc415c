//! Removes ICE candidates at addresses that the consent guard refuses from what a server sends to a
//! browser.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use throng_scenario::IpProtocol;

/// Whether a browser may reach a place, or why not.
pub(super) type MayReach = Arc<dyn Fn(IpProtocol, SocketAddr) -> Result<(), String> + Send + Sync>;

/// `text` (a session description, or one candidate) without the candidates that `may_reach`
/// refuses, and those candidates. A candidate with a name instead of an address (mDNS, or RFC 8839
/// section 5.1) is refused. One from which the server itself connects is left out, and nobody's
/// refusal: browsers connect to none (RFC 6544 section 4.5: its port is 9, whatever it is).
pub(super) fn filter_candidates(
    text: &str,
    may_reach: &dyn Fn(IpProtocol, SocketAddr) -> Result<(), String>,
) -> (String, Vec<String>) {
    let (mut kept, mut refused) = (String::with_capacity(text.len()), Vec::new());
    for line in text.split_inclusive('\n') {
        let candidate = line.trim_end().trim_start_matches("a=").strip_prefix("candidate:");
        if candidate.is_some_and(is_active) {
            continue;
        }
        match candidate.map(|candidate| judge(candidate, may_reach)) {
            Some(Err(why)) => refused.push(why),
            Some(Ok(())) | None => kept.push_str(line),
        }
    }
    (kept, refused)
}

/// Whether it is one of TCP that connects and is not connected to.
fn is_active(candidate: &str) -> bool {
    let mut words = candidate.split_ascii_whitespace();
    let is_tcp = words.nth(2).is_some_and(|transport| transport.eq_ignore_ascii_case("tcp"));
    is_tcp && words.skip_while(|word| *word != "tcptype").nth(1) == Some("active")
}

/// RFC 8839 section 5.1: `foundation component transport priority address port …`, with one blank
/// between fields. A candidate in another form is refused, because this parser and the browser may
/// read different addresses.
fn judge(
    candidate: &str,
    may_reach: &dyn Fn(IpProtocol, SocketAddr) -> Result<(), String>,
) -> Result<(), String> {
    let odd = |c: char| (c.is_whitespace() || c.is_control()) && c != ' ';
    let mut words = candidate.split(' ');
    let mut next = |skipped| words.nth(skipped).unwrap_or_default();
    let (transport, address, port) = (next(2), next(1), next(0));
    if candidate.contains(odd) || candidate.contains("  ") {
        return Err(format!("candidate {address}:{port}: not in the form of RFC 8839"));
    }
    let named = format!("candidate {address}:{port}");
    let address: IpAddr = address.parse().map_err(|_| format!("{named}: it has no address"))?;
    let port: u16 = port.parse().map_err(|_| format!("{named}: it has no port"))?;
    let is_udp = transport.eq_ignore_ascii_case("udp");
    let protocol = if is_udp { IpProtocol::Udp } else { IpProtocol::Tcp };
    may_reach(protocol, SocketAddr::new(address.to_canonical(), port))
        .map_err(|why| format!("{named}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_candidates_at_allowed_addresses_are_left() {
        let loopback = |protocol: IpProtocol, to: SocketAddr| {
            let is_agreed = protocol == IpProtocol::Udp && to.ip().is_loopback() && to.port() == 9;
            if is_agreed { Ok(()) } else { Err("has not agreed".to_owned()) }
        };
        for (text, expect, refused) in [
            ("", "", 0),
            ("v=0\r\nc=IN IP4 8.8.8.8\r\n", "v=0\r\nc=IN IP4 8.8.8.8\r\n", 0),
            (
                "a=mid:0\r\na=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\na=candidate:2 1 udp 1 192.0.2.1 9 typ host\r\na=x\r\n",
                "a=mid:0\r\na=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\na=x\r\n",
                1,
            ),
            ("candidate:1 1 udp 1 ::1 9 typ host", "candidate:1 1 udp 1 ::1 9 typ host", 0),
            (
                "candidate:1 1 udp 1 ::ffff:127.0.0.1 9 typ host",
                "candidate:1 1 udp 1 ::ffff:127.0.0.1 9 typ host",
                0,
            ),
            ("candidate:1 1 udp 1 ab.local 9 typ host", "", 1),
            ("candidate:1 1 udp 1 127.0.0.1 53 typ host", "", 1),
            ("candidate:1 1 udp 1 127.0.0.1 typ host", "", 1),
            ("candidate:1 1 tcp 1 127.0.0.1 9 typ host tcptype passive", "", 1),
            ("a=candidate:1 1 tcp 1 127.0.0.1 9 typ host tcptype active\r\na=x\r\n", "a=x\r\n", 0),
            ("candidate:1 1 TCP 1 192.0.2.1 9 typ host tcptype active ufrag a", "", 0),
            ("candidate:1 1 udp 1 192.0.2.1 9 typ host tcptype active", "", 1),
            (
                "candidate:1 1 UDP 1 127.0.0.1 9 typ host",
                "candidate:1 1 UDP 1 127.0.0.1 9 typ host",
                0,
            ),
            ("a=candidate:\n", "", 1),
            // Two readings of one line.
            ("candidate:a\tb 1 udp 127.0.0.1 192.0.2.1 9 typ host", "", 1),
            ("candidate:1  1 udp 127.0.0.1 192.0.2.1 9 typ host", "", 1),
        ] {
            let (kept, named) = filter_candidates(text, &loopback);
            assert_eq!((kept.as_str(), named.len()), (expect, refused), "{text}");
        }
        let (_, named) =
            filter_candidates("a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n", &loopback);
        assert_eq!(named, ["candidate 192.0.2.1:9: has not agreed"]);
    }
}
