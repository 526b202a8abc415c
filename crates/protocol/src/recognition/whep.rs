//! WHEP and WHIP: `OPTIONS` of the endpoint, by which clients ask for ICE servers (RFC 9725 section
//! 4.6) and browsers for permission. It creates no session.

use http::header::{ACCESS_CONTROL_ALLOW_METHODS, ALLOW, HeaderName, LINK, SERVER};
use http::{HeaderMap, Method, StatusCode};
use throng_scenario::Protocol;

use super::answer::field;
use super::{Access, Answer, Found, Given, Kind, ProbeRequest, refines_nothing};
use crate::excerpt::excerpt;

/// What an endpoint takes by POST (RFC 9725 section 4.1).
const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

pub(super) static KIND: Kind = Kind {
    name: "WHEP",
    protocols: &[Protocol::Whep, Protocol::Whip],
    is_asked: Given::may_be_http,
    ask: |given| ProbeRequest::Http { method: Method::OPTIONS, url: given.url().clone() },
    read,
    refine: refines_nothing,
};

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let Answer::Http { status, headers, .. } = answer else { return None };
    let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(status);
    let takes_offers = status.is_success() || *status == StatusCode::METHOD_NOT_ALLOWED;
    let is_named = ["whep", "whip"].iter().any(|name| given.parts().contains(name));
    let is_it = field(headers, ACCEPT_POST).is_some_and(|types| types.contains("application/sdp"))
        || ice_servers(headers) > 0
        || (is_named && (is_refused || (takes_offers && may_post(headers))));
    if !is_it {
        return None;
    }
    let (protocol, url) = given.complete().unwrap_or_else(|| {
        let is_whip = given.parts().contains(&"whip");
        let (protocol, scheme) =
            if is_whip { (Protocol::Whip, "whip+http") } else { (Protocol::Whep, "whep+http") };
        (protocol, given.with(scheme))
    });
    let mut found = Found::new(protocol, url);
    found.server = field(headers, SERVER).map(excerpt);
    let servers = ice_servers(headers);
    found.offers.extend((servers > 0).then(|| format!("announces {servers} ICE servers")));
    if is_refused {
        found.access = Access::Token;
    }
    Some((found, None))
}

fn may_post(headers: &HeaderMap) -> bool {
    let all = [ALLOW, ACCESS_CONTROL_ALLOW_METHODS];
    all.into_iter().any(|name| field(headers, name).is_some_and(|methods| methods.contains("POST")))
}

/// How many ICE servers are announced (RFC 9725 section 4.6).
fn ice_servers(headers: &HeaderMap) -> usize {
    let links = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    links.map(|links| links.matches("ice-server").count()).sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{http, read_by};
    use super::*;

    #[test]
    fn endpoints_are_told_by_what_they_take_and_announce() {
        for (what, url, answer, expect) in [
            (
                "throng stage",
                "http://h:7080/whep",
                "204\naccess-control-allow-methods: POST, OPTIONS\naccept-post: application/sdp",
                Some("whep+http://h:7080/whep"),
            ),
            (
                "MediaMTX",
                "https://h:8889/cam/whep",
                "204\naccess-control-allow-methods: OPTIONS, GET, POST, PATCH, DELETE",
                Some("whep+https://h:8889/cam/whep"),
            ),
            (
                "a server with ICE servers at any path",
                "h:8080/play",
                "200\nlink: <stun:h:3478>; rel=\"ice-server\"",
                Some("whep+http://h:8080/play"),
            ),
            (
                "SRS, to publish",
                "http://h:1985/rtc/v1/whip/?app=live&stream=a",
                "200\nserver: SRS/7.0.121(Kai)\naccess-control-allow-methods: GET, POST, HEAD",
                Some("whip+http://h:1985/rtc/v1/whip/?app=live&stream=a"),
            ),
            ("a web server", "http://h/", "200\nallow: OPTIONS, GET, HEAD, POST", None),
            ("no such endpoint", "http://h/whep", "404", None),
        ] {
            let found = read_by(&KIND, url, &http(answer, ""));
            assert_eq!(found.map(|found| found.url).as_deref(), expect, "{what}");
        }
        let locked = read_by(&KIND, "http://h/cam/whep", &http("401", "")).unwrap();
        assert_eq!(locked.access, Access::Token);
        let named = read_by(&KIND, "whip+http://h/whip", &http("401", "")).unwrap();
        assert_eq!(named.protocol, Protocol::Whip);
    }
}
