//! LiveKit: `/rtc/validate`, which its clients ask whether their token is taken. Without a token
//! the server refuses in words of its own (`pkg/service/rtcservice.go`).

use http::StatusCode;
use http::header::CONTENT_TYPE;
use throng_scenario::Protocol;

use super::answer::field;
use super::{Access, Answer, Found, Given, Kind, ProbeRequest, refines_nothing};

/// What it says to who has no token (`pkg/rtc/errors.go`, `pkg/service/auth.go`): the whole body,
/// as plain text. Pages of others speak of permissions, too.
const REFUSALS: [&str; 3] =
    ["no permissions to access the room", "permissions denied", "invalid authorization token"];

pub(super) static KIND: Kind = Kind {
    name: "LiveKit",
    protocols: &[Protocol::LiveKit],
    is_asked: |_| true,
    ask: |given| ProbeRequest::get(given.at_path(&path(given))),
    read,
    refine: refines_nothing,
};

/// Below the signalling endpoint; a server may stand below a prefix.
fn path(given: &Given) -> String {
    match given.complete() {
        Some(_) => format!("{}/validate", given.path()),
        None => "/rtc/validate".to_owned(),
    }
}

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let Answer::Http { status, headers, body, .. } = answer else { return None };
    let kind = field(headers, CONTENT_TYPE).unwrap_or_default();
    let said = String::from_utf8_lossy(body);
    let is_refusal = *status == StatusCode::UNAUTHORIZED
        && kind.starts_with("text/plain")
        && REFUSALS.contains(&said.trim());
    let is_welcome = status.is_success() && said.trim() == "success";
    if !is_refusal && !is_welcome {
        return None;
    }
    let complete = given.complete();
    let is_complete = complete.is_some();
    let url = complete.map_or_else(|| given.at("livekit+ws", "/lesson"), |(_, url)| url);
    let mut found = Found::new(Protocol::LiveKit, url);
    found.server = Some("LiveKit".to_owned());
    found.access = Access::ApiKey;
    if !is_complete {
        found.to_name = Some("the room: any name, the server makes it");
    }
    Some((found, None))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{http, read_by};
    use super::*;

    /// What LiveKit answers without a token.
    const HEAD: &str = "401\ncontent-type: text/plain; charset=utf-8";
    const REFUSED: &str = "no permissions to access the room";

    #[test]
    fn its_refusal_is_told_from_those_of_others() {
        let found = |url, head, body| read_by(&KIND, url, &http(head, body));
        let bare = found("http://h:7880", HEAD, REFUSED).unwrap();
        assert_eq!(bare.url, "livekit+ws://h:7880/lesson");
        assert!(bare.to_name.is_some() && bare.access == Access::ApiKey);
        let named = found("livekit+wss://h/room", HEAD, REFUSED).unwrap();
        assert_eq!((named.url.as_str(), named.to_name), ("livekit+wss://h/room", None));
        let page = "401\ncontent-type: text/html";
        for (head, body) in [
            (page, "<html>You have no permissions to access the room</html>"),
            (page, REFUSED),
            ("401\ncontent-type: application/json", r#"{"error":"permission denied"}"#),
            (HEAD, "You have no permission to see this page."),
            ("404\ncontent-type: text/plain", REFUSED),
            ("200", "OK"),
        ] {
            assert!(found("http://h", head, body).is_none(), "{head} {body}");
        }
    }

    #[test]
    fn a_server_below_a_prefix_is_asked_there() {
        let given = Given::parse("livekit+ws://h:1/room?path=/media").unwrap();
        assert_eq!((KIND.ask)(&given).to_string(), "GET http://h:1/media/rtc/validate");
    }
}
