//! What of a session description the browser may act on: only candidates at addresses that the consent guard allows.

use std::net::IpAddr;

/// `text` (a session description, or one candidate) without the candidates that `may_reach` refuses, and how many those
/// were. A candidate that is named by a host (mDNS, or a name of RFC 8839 section 5.1) has no address to judge: refused.
pub(super) fn admitted(text: &str, may_reach: &dyn Fn(IpAddr) -> bool) -> (String, u32) {
    let (mut kept, mut refused) = (String::with_capacity(text.len()), 0);
    for line in text.split_inclusive('\n') {
        let candidate = line.trim_end().trim_start_matches("a=").strip_prefix("candidate:");
        match candidate {
            Some(candidate) if !is_allowed(candidate, may_reach) => refused += 1,
            _ => kept.push_str(line),
        }
    }
    (kept, refused)
}

/// RFC 8839 section 5.1: `foundation component transport priority address port …`.
fn is_allowed(candidate: &str, may_reach: &dyn Fn(IpAddr) -> bool) -> bool {
    let address = candidate.split_ascii_whitespace().nth(4).and_then(|address| address.parse().ok());
    address.is_some_and(|address: IpAddr| may_reach(address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_candidates_at_allowed_addresses_are_left() {
        let loopback = |address: IpAddr| address.is_loopback();
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
            ("a=candidate:\n", "", 1),
        ] {
            assert_eq!(admitted(text, &loopback), (expect.to_owned(), refused), "{text}");
        }
    }
}
