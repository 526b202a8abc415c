//! Whether a request is meant for the server. A page of any site can have its name lead to this
//! machine (DNS rebinding) and read what is answered; the browser then names that site. It can also
//! ask without reading the answer, which costs nevertheless.

use std::net::IpAddr;

use hyper::http::uri::Authority;
use hyper::{Request, header};

/// Why a server that listens on `bound` refuses a request; `None` if it is meant for it.
pub(super) fn refusal<B>(request: &Request<B>, bound: &str) -> Option<String> {
    let named = named(request);
    if !named.is_some_and(|named| is_ours(named, bound)) {
        return Some(another(named, bound));
    }
    let help = || "Other web pages may link to this, and not ask for it themselves.\n".to_owned();
    is_of_another_page(request).then(help)
}

/// Whether a page of another site asks, and nobody who follows its link (Fetch Metadata Request
/// Headers; browsers send them to this machine and by https).
fn is_of_another_page<B>(request: &Request<B>) -> bool {
    let said = |name: &str| request.headers().get(name)?.to_str().ok();
    let is_own = matches!(said("sec-fetch-site"), None | Some("same-origin" | "none"));
    let is_followed = said("sec-fetch-mode") == Some("navigate")
        && matches!(said("sec-fetch-dest"), None | Some("document"));
    !is_own && !is_followed
}

/// The host that a request is for, as its client wrote it: HOST or HOST:PORT.
fn named<B>(request: &Request<B>) -> Option<&str> {
    let of_header = || request.headers().get(header::HOST)?.to_str().ok();
    request.uri().authority().map(Authority::as_str).or_else(of_header)
}

/// What is said to who asked for `named`, and what to write instead.
fn another(named: Option<&str>, bound: &str) -> String {
    let is_address = bound.parse::<IpAddr>().is_ok();
    let names = if is_address || bound.is_empty() || bound.eq_ignore_ascii_case("localhost") {
        "IP address or as localhost".to_owned()
    } else {
        format!("IP address, as localhost or as {bound}")
    };
    match named {
        Some(named) => format!(
            "The Host header names another host ({named}). Ask by {names}; to be asked by another \
             name of this machine, throng must listen on it: write {named} as its ADDRESS.\n"
        ),
        None => format!("The Host header names no host. Ask by {names}.\n"),
    }
}

/// Whether `named` (HOST or HOST:PORT) is an address, which no site can have for its name,
/// localhost, or the name that was asked for, `bound`.
fn is_ours(named: &str, bound: &str) -> bool {
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
            assert_eq!(is_ours(named, "loadgen.lan"), expect, "{named}");
        }
    }

    #[test]
    fn the_target_of_a_request_counts_before_its_header_and_one_without_either_is_refused() {
        let host = ("host", "127.0.0.1:9464");
        for (uri, headers, expect) in [
            ("/metrics", &[host][..], true),
            ("/metrics", &[], false),
            ("/metrics", &[("host", "evil.example")], false),
            ("http://evil.example/metrics", &[host], false),
        ] {
            let mut request = Request::builder().uri(uri);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let refusal = refusal(&request.body(()).unwrap(), "127.0.0.1");
            assert_eq!(refusal.is_none(), expect, "{uri}");
        }
    }

    #[test]
    fn who_named_another_host_reads_which_and_what_to_write_instead() {
        let said = |headers: &[(&str, &str)], bound: &str| {
            let mut request = Request::get("/");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            refusal(&request.body(()).unwrap(), bound).unwrap()
        };
        assert_eq!(
            said(&[("host", "gen.lan:7090")], "box"),
            "The Host header names another host (gen.lan:7090). Ask by IP address, as localhost or \
             as box; to be asked by another name of this machine, throng must listen on it: write \
             gen.lan:7090 as its ADDRESS.\n"
        );
        assert_eq!(
            said(&[], "127.0.0.1"),
            "The Host header names no host. Ask by IP address or as localhost.\n"
        );
    }

    #[test]
    fn a_page_of_another_site_leads_here_and_causes_nothing() {
        for (site, mode, dest, expect) in [
            ("none", "navigate", "document", true),
            ("same-origin", "cors", "empty", true),
            ("cross-site", "navigate", "document", true),
            ("same-site", "navigate", "document", true),
            ("cross-site", "navigate", "iframe", false),
            ("cross-site", "no-cors", "image", false),
            ("same-site", "no-cors", "image", false),
            ("cross-site", "cors", "empty", false),
        ] {
            let request = Request::get("/")
                .header("host", "127.0.0.1")
                .header("sec-fetch-site", site)
                .header("sec-fetch-mode", mode)
                .header("sec-fetch-dest", dest);
            let refusal = refusal(&request.body(()).unwrap(), "127.0.0.1");
            assert_eq!(refusal.is_none(), expect, "{site} {mode} {dest}");
        }
    }
}
