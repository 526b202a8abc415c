//! Message exchanges with WHEP endpoints.

use std::sync::Arc;

use super::super::whep::{Config, Whep};
use super::*;
use crate::participant::{FetchId, Response};

const OFFER: &str =
    "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:u\r\na=ice-pwd:p\r\n";
const ANSWER: &str = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=setup:passive\r\n";

fn fixture() -> Fixture {
    fixture_at("http://10.0.0.1/whep/s?secret=1")
}

fn fixture_at(url: &str) -> Fixture {
    let mut config = Config::new(url.parse().unwrap());
    config.token = Some("tok".into());
    config.may_reach = Arc::new(|to| to.host_str().is_some_and(|host| host.starts_with("10.")));
    Fixture::new(Whep::new(config))
}

fn posted() -> Fixture {
    let mut fixture = fixture();
    assert_eq!(fixture.tell(SignalInput::Start), ["want offer"]);
    let post = fixture.tell(SignalInput::Offer(OFFER.into()));
    let expect = "fetch 0 POST http://10.0.0.1/whep/s?secret=1 authorization=Bearer tok content-type=application/sdp +body";
    assert_eq!(post, [expect]);
    fixture
}

fn respond(
    fixture: &mut Fixture,
    fetch: u32,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
) -> Vec<String> {
    let mut response = http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let (head, ()) = response.body(()).unwrap().into_parts();
    let response = Response { head, body: body.as_bytes().to_vec(), opening: Opening::default() };
    fixture.tell(SignalInput::Fetched(FetchId(fetch), Ok(&response)))
}

const SESSION: [(&str, &str); 2] = [("location", "/session/1"), ("etag", "\"one\"")];

fn playing() -> Fixture {
    let mut fixture = posted();
    assert_eq!(respond(&mut fixture, 0, 201, &SESSION, ANSWER), ["reached", "answer"]);
    fixture
}

#[test]
fn a_session_is_posted_trickled_and_deleted() {
    let mut fixture = posted();
    // Candidates found before there is a session are kept, and sent in one request.
    assert!(
        fixture.tell(SignalInput::Candidate("candidate:1 1 udp 1 10.0.0.2 9 typ host")).is_empty()
    );
    assert!(
        fixture.tell(SignalInput::Candidate("candidate:2 1 udp 1 10.0.0.3 9 typ host")).is_empty()
    );
    let lines = respond(&mut fixture, 0, 201, &SESSION, ANSWER);
    let patch = "PATCH http://10.0.0.1/session/1 authorization=Bearer tok if-match=\"one\" \
                 content-type=application/trickle-ice-sdpfrag +body";
    assert_eq!(lines, ["reached".into(), "answer".into(), format!("fetch 1 {patch}")]);
    // One request at a time.
    assert!(
        fixture.tell(SignalInput::Candidate("candidate:3 1 udp 1 10.0.0.4 9 typ host")).is_empty()
    );
    assert!(fixture.tell(SignalInput::CandidatesDone).is_empty());
    assert_eq!(respond(&mut fixture, 1, 204, &[], ""), [format!("fetch 2 {patch}")]);
    assert!(respond(&mut fixture, 2, 204, &[], "").is_empty());
    let leave = fixture.tell(SignalInput::Leave);
    assert_eq!(leave, ["fetch 3 DELETE http://10.0.0.1/session/1 authorization=Bearer tok"]);
    assert_eq!(respond(&mut fixture, 3, 200, &[], ""), ["goodbye"]);
}

#[test]
fn a_server_that_takes_no_candidates_is_no_failure() {
    for (status, expect) in [
        (405, ""),
        (501, ""),
        (422, ""),
        (412, "anomaly WHEP: PATCH with candidates: 412"),
        (404, "anomaly"),
    ] {
        let mut fixture = playing();
        fixture.tell(SignalInput::Candidate("candidate:1 1 udp 1 10.0.0.2 9 typ host"));
        let lines = respond(&mut fixture, 1, status, &[], "").join(" ");
        assert!(
            lines.starts_with(expect) && lines.is_empty() == expect.is_empty(),
            "{status}: {lines}"
        );
        assert!(
            fixture
                .tell(SignalInput::Candidate("candidate:2 1 udp 1 10.0.0.3 9 typ host"))
                .is_empty()
        );
    }
}

#[test]
fn an_offer_of_the_server_is_answered_by_patch() {
    // 406 as in draft 03; 201 with an offer as from servers of older drafts.
    for status in [406, 201] {
        let mut fixture = posted();
        assert_eq!(
            respond(&mut fixture, 0, status, &SESSION, SDP),
            ["reached", "offer"],
            "{status}"
        );
        let patch = fixture.tell(SignalInput::Answer(ANSWER.into()));
        let expect = "fetch 1 PATCH http://10.0.0.1/session/1 authorization=Bearer tok content-type=application/sdp +body";
        assert_eq!(patch, [expect]);
        assert!(respond(&mut fixture, 1, 204, &[], "").is_empty());
        assert!(fixture.tell(SignalInput::Leave)[0].starts_with("fetch 2 DELETE"));
    }
    let mut nowhere = posted();
    failed(
        &respond(&mut nowhere, 0, 406, &[], SDP),
        &FailureReason::Protocol,
        "without a Location",
    );
    let mut refused = posted();
    respond(&mut refused, 0, 406, &SESSION, SDP);
    refused.tell(SignalInput::Answer(ANSWER.into()));
    failed(
        &respond(&mut refused, 1, 400, &[], "bad sdp"),
        &FailureReason::HttpStatus(400),
        "bad sdp",
    );
}

#[test]
fn redirects_are_followed_within_reach_and_not_forever() {
    let mut fixture = posted();
    let moved = respond(&mut fixture, 0, 307, &[("location", "https://10.0.0.9/x")], "");
    // Another origin does not get the token.
    assert_eq!(moved[1], "fetch 1 POST https://10.0.0.9/x content-type=application/sdp +body");
    // Leaving TLS would expose the session.
    let down = respond(&mut fixture, 1, 308, &[("location", "http://10.0.0.9/x")], "");
    assert_eq!(down[0], "refused Redirect 10.0.0.9:80");
    failed(&down, &FailureReason::NotAllowed, "http://10.0.0.9/x");

    let away = respond(&mut posted(), 0, 307, &[("location", "http://192.0.2.7:81/x?token=s")], "");
    assert_eq!(away[1], "refused Redirect 192.0.2.7:81");
    failed(&away, &FailureReason::NotAllowed, "http://192.0.2.7:81/x?token=…, which");
    failed(&respond(&mut posted(), 0, 307, &[], ""), &FailureReason::Protocol, "without Location");
    failed(
        &respond(&mut posted(), 0, 302, &[("location", "/x")], ""),
        &FailureReason::HttpStatus(302),
        "302",
    );

    let mut round = posted();
    for fetch in 0..5 {
        respond(&mut round, fetch, 307, &[("location", "/again")], "");
    }
    failed(
        &respond(&mut round, 5, 307, &[("location", "/again")], ""),
        &FailureReason::Protocol,
        "more than 5",
    );
}

#[test]
fn the_token_goes_to_the_origin_of_the_endpoint_only() {
    for (location, is_own) in [
        ("/session/1", true),
        ("http://10.0.0.1:80/session/1", true),
        ("http://10.0.0.1:8080/session/1", false),
        ("https://10.0.0.1/session/1", false),
        ("http://10.0.0.2/session/1", false),
    ] {
        let mut fixture = posted();
        let headers = [("location", location)];
        assert_eq!(respond(&mut fixture, 0, 201, &headers, ANSWER), ["reached", "answer"]);
        let lines = fixture.tell(SignalInput::Leave);
        assert!(lines[0].contains(" DELETE "), "{lines:?}");
        assert_eq!(lines[0].contains("Bearer tok"), is_own, "{location}: {lines:?}");
        let mut fixture = posted();
        let again = respond(&mut fixture, 0, 307, &headers, "");
        assert!(again[1].contains(" POST "), "{again:?}");
        assert_eq!(again[1].contains("Bearer tok"), is_own, "{location}: {again:?}");
    }
}

#[test]
fn an_endpoint_over_tls_sends_nobody_into_clear_text() {
    let posted = || {
        let mut fixture = fixture_at("https://10.0.0.1/whep/s");
        fixture.tell(SignalInput::Start);
        let post = fixture.tell(SignalInput::Offer(OFFER.into()));
        assert!(post[0].starts_with("fetch 0 POST https://10.0.0.1/"), "{post:?}");
        fixture
    };
    let asks = |lines: &[String]| lines.iter().any(|line| line.starts_with("fetch "));
    for clear in ["http://10.0.0.1/session/1", "http://10.0.0.2/session/1"] {
        let headers = [("location", clear)];
        let again = respond(&mut posted(), 0, 307, &headers, "");
        failed(&again, &FailureReason::NotAllowed, clear);
        assert!(!asks(&again), "{again:?}");
        let mut fixture = posted();
        let lines = respond(&mut fixture, 0, 201, &headers, ANSWER);
        assert!(lines.iter().any(|line| line.starts_with("refused Redirect ")), "{lines:?}");
        let lines = fixture.tell(SignalInput::Leave);
        assert!(!asks(&lines), "{clear}: {lines:?}");
    }
}

#[test]
fn refusals_repeat_the_servers_words_and_no_secret() {
    let problem = r#"{"type":"about:blank","title":"Not here","detail":"no such stream"}"#;
    for (status, headers, body, says) in [
        (404, vec![], problem, "404 Not Found: Not here: no such stream"),
        (401, vec![], "who\r\nare you", "401 Unauthorized: who  are you"),
        (409, vec![("retry-after", "5")], "", "409 Conflict, Retry-After: 5"),
        (
            503,
            vec![("retry-after", "120")],
            "busy",
            "503 Service Unavailable, Retry-After: 120: busy",
        ),
        (406, vec![], "no codec", "406 Not Acceptable: no codec"),
        (200, vec![], ANSWER, "200 OK"),
    ] {
        let lines = respond(&mut posted(), 0, status, &headers, body);
        failed(&lines, &FailureReason::HttpStatus(status), says);
        assert!(
            lines[1].contains("POST http://10.0.0.1/whep/s?secret=…: ") && !lines[1].contains("=1"),
            "{lines:?}"
        );
    }
    let long = "x".repeat(100_000);
    let lines = respond(&mut posted(), 0, 500, &[], &long);
    assert!(lines[1].len() < 400, "bounded");
    failed(&respond(&mut posted(), 0, 201, &SESSION, "<html>"), &FailureReason::Protocol, "<html>");
    let huge = format!("{ANSWER}{}", "a=x\r\n".repeat(300_000));
    failed(&respond(&mut posted(), 0, 201, &SESSION, &huge), &FailureReason::Protocol, "limit");
}

#[test]
fn connections_that_fail_are_named() {
    for (error, reason) in [
        (ChannelError::Tls("expired".into()), FailureReason::Tls),
        (ChannelError::Tcp("refused".into()), FailureReason::Tcp),
        (ChannelError::Timeout(Duration::from_secs(10)), FailureReason::SignallingTimeout),
        (ChannelError::NotAllowed("192.0.2.1".into()), FailureReason::NotAllowed),
    ] {
        failed(
            &posted().tell(SignalInput::Fetched(FetchId(0), Err(error))),
            &reason,
            "POST http://10.0.0.1/whep/s",
        );
    }
    let lines = posted().wait_for("WHEP: the response to POST");
    failed(&lines, &FailureReason::SignallingTimeout, "the response to POST");
}

#[test]
fn relays_are_announced_and_a_session_out_of_reach_is_not_asked() {
    let link =
        r#"<turn:10.0.0.5:3478?transport=udp>; rel="ice-server"; username="u"; credential="c""#;
    let headers = [("link", link), ("location", "http://192.0.2.7/s")];
    let mut fixture = posted();
    let lines = respond(&mut fixture, 0, 201, &headers, ANSWER);
    assert_eq!(lines[1], "relay turn:10.0.0.5:3478?transport=udp u c");
    assert_eq!(lines[2], "refused Redirect 192.0.2.7:80");
    assert!(lines[3].starts_with("anomaly ") && lines[4] == "answer", "{lines:?}");
    assert!(
        fixture.tell(SignalInput::Candidate("candidate:1 1 udp 1 10.0.0.2 9 typ host")).is_empty()
    );
    assert_eq!(fixture.tell(SignalInput::Leave), ["goodbye"]);
}

#[test]
fn a_session_made_while_leaving_is_deleted() {
    let mut fixture = posted();
    assert!(fixture.tell(SignalInput::Leave).is_empty());
    let lines = respond(&mut fixture, 0, 201, &SESSION, ANSWER);
    assert_eq!(lines, ["fetch 1 DELETE http://10.0.0.1/session/1 authorization=Bearer tok"]);
    assert_eq!(fixture.wait_for("WHEP: the goodbye"), ["goodbye"]);
}
