//! Whether a request is meant for the endpoint. A page of any site can have its name lead to this
//! machine (DNS rebinding) and read what is answered; the browser then names that site.

use std::net::IpAddr;

use hyper::http::uri::Authority;

/// Whether a request to `named` (HOST or HOST:PORT) is meant for an endpoint that listens on
/// `bound`: an address, which no site can have for its name, localhost, or the name that was asked
/// for.
pub(super) fn is_meant(named: &str, bound: &str) -> bool {
    let Ok(authority) = named.parse::<Authority>() else { return false };
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = bare.strip_suffix('.').unwrap_or(bare);
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.eq_ignore_ascii_case(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_another_site_reads_no_figures() {
        for (named, expect) in [
            ("127.0.0.1:9464", true),
            ("192.0.2.7", true),
            ("[::1]:9464", true),
            ("localhost:9464", true),
            ("LocalHost.", true),
            ("loadgen.lan:9464", true),
            ("evil.example:9464", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1@evil.example", false),
            ("loadgen.lan.evil.example", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(is_meant(named, "loadgen.lan"), expect, "{named}");
        }
    }
}
