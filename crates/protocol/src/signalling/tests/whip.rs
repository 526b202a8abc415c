//! Message exchanges with WHIP endpoints; the WHEP tests cover what both protocols share.

use std::sync::Arc;
use std::time::Instant;

use http::header;
use throng_observation::FailureReason;

use crate::participant::{ChannelError, FetchId, Opening, Request, Response};
use crate::signalling::livekit::Access;
use crate::signalling::room::{PeerId, RoomInput, RoomOutput, RoomSignalling};
use crate::signalling::whep::Config;
use crate::signalling::whip::Whip;

const OFFER: &str =
    "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:u\r\na=ice-pwd:p\r\n";
const ANSWER: &str = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=setup:passive\r\n";

struct Fixture {
    publisher: Whip,
    now: Instant,
}

impl Fixture {
    fn new(token: Option<&str>, access: Option<Access>) -> Self {
        let mut config = Config::new("http://10.0.0.1/whip/v1".parse().unwrap());
        config.token = token.map(Into::into);
        config.may_reach = Arc::new(|to| to.host_str().is_some_and(|host| host.starts_with("10.")));
        Self { publisher: Whip::new(config, access), now: Instant::now() }
    }

    fn tell(&mut self, input: RoomInput<'_>) -> Vec<RoomOutput> {
        self.publisher.handle(self.now, input);
        std::iter::from_fn(|| self.publisher.poll_output()).collect()
    }

    /// The posted offer.
    fn posted(&mut self) -> Box<Request> {
        let start = self.tell(RoomInput::Start);
        assert!(
            matches!(start.as_slice(), [RoomOutput::WantOffer(PeerId::PUBLISHER)]),
            "{start:?}"
        );
        self.asks(RoomInput::Offer(PeerId::PUBLISHER, OFFER.into()))
    }

    fn asks(&mut self, input: RoomInput<'_>) -> Box<Request> {
        let outputs = self.tell(input);
        match outputs.into_iter().last() {
            Some(RoomOutput::Fetch(_, request)) => request,
            other => panic!("{other:?}"),
        }
    }

    fn respond(
        &mut self,
        fetch: u32,
        status: u16,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Vec<RoomOutput> {
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let (head, ()) = response.body(()).unwrap().into_parts();
        let response =
            Response { head, body: body.as_bytes().to_vec(), opening: Opening::default() };
        self.tell(RoomInput::Fetched(FetchId(fetch), Ok(&response)))
    }
}

#[test]
fn an_offer_is_posted_with_the_token_answered_and_deleted() {
    let mut fixture = Fixture::new(Some("tok"), None);
    let post = fixture.posted();
    assert_eq!((post.head.method.as_str(), post.body.as_slice()), ("POST", OFFER.as_bytes()));
    assert_eq!(post.head.headers[header::AUTHORIZATION], "Bearer tok");
    assert_eq!(post.head.headers[header::CONTENT_TYPE], "application/sdp");
    let outputs = fixture.respond(0, 201, &[("location", "/whip/v1/PA_1")], ANSWER);
    assert!(
        matches!(
            outputs.as_slice(),
            [
                RoomOutput::Reached(_),
                RoomOutput::Joined,
                RoomOutput::RemoteAnswer(PeerId::PUBLISHER, sdp)
            ] if sdp == ANSWER
        ),
        "{outputs:?}"
    );
    let delete = fixture.asks(RoomInput::Leave { others_follow: false });
    assert_eq!(delete.head.method, "DELETE");
    assert_eq!(delete.head.uri, "http://10.0.0.1/whip/v1/PA_1");
    assert!(matches!(fixture.respond(1, 200, &[], "").as_slice(), [RoomOutput::Goodbye]));
}

#[test]
fn a_livekit_key_gives_each_publisher_a_token() {
    let mut fixture = Fixture::new(None, Some(Access::Token("made".into())));
    assert_eq!(fixture.posted().head.headers[header::AUTHORIZATION], "Bearer made");
}

#[test]
fn redirects_keep_the_offer_within_what_may_be_reached() {
    let mut fixture = Fixture::new(Some("tok"), None);
    fixture.posted();
    let outputs = fixture.respond(0, 307, &[("location", "http://10.0.0.2/whip")], "");
    let Some(RoomOutput::Fetch(_, again)) = outputs.last() else { panic!("{outputs:?}") };
    assert_eq!(
        (again.head.uri.to_string().as_str(), again.body.as_slice()),
        ("http://10.0.0.2/whip", OFFER.as_bytes())
    );
    let outputs = fixture.respond(1, 308, &[("location", "http://192.0.2.1/whip")], "");
    let Some(RoomOutput::Failed(failure)) = outputs.last() else { panic!("{outputs:?}") };
    assert_eq!(failure.reason, FailureReason::NotAllowed);
    assert!(failure.detail.starts_with("WHIP: redirected to http://192.0.2.1"), "{failure}");
}

#[test]
fn refusals_are_named_with_the_servers_words() {
    // A counter-offer (406) is for players only.
    for status in [400, 401, 403, 404, 406, 409, 415, 503] {
        let mut fixture = Fixture::new(None, None);
        fixture.posted();
        let outputs = fixture.respond(0, status, &[], "v=0 is not what we take");
        let Some(RoomOutput::Failed(failure)) = outputs.last() else { panic!("{outputs:?}") };
        assert_eq!(failure.reason, FailureReason::HttpStatus(status));
        assert!(failure.detail.contains("v=0 is not what we take"), "{failure}");
    }
    let mut fixture = Fixture::new(None, None);
    fixture.posted();
    let (at, why) = fixture.publisher.next_timeout().unwrap();
    assert_eq!(why, "WHIP: the response to POST");
    fixture.now = at;
    let outputs = fixture.tell(RoomInput::Timeout);
    assert!(
        matches!(outputs.as_slice(), [RoomOutput::Failed(f)] if f.reason == FailureReason::SignallingTimeout)
    );
}

#[test]
fn a_leave_before_the_answer_deletes_the_resource_it_names() {
    let mut fixture = Fixture::new(None, None);
    fixture.posted();
    assert!(fixture.tell(RoomInput::Leave { others_follow: false }).is_empty());
    let outputs = fixture.respond(0, 201, &[("location", "/whip/v1/PA_1")], ANSWER);
    let Some(RoomOutput::Fetch(_, delete)) = outputs.last() else { panic!("{outputs:?}") };
    assert_eq!((delete.head.method.as_str(), delete.head.uri.path()), ("DELETE", "/whip/v1/PA_1"));
}

#[test]
fn a_refusal_repeats_the_servers_words_and_says_what_to_try() {
    let offer = |codec: &str| {
        format!("{OFFER}m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=rtpmap:96 {codec}/90000\r\n")
    };
    let offering = |codec: &str| {
        let mut fixture = Fixture::new(None, None);
        fixture.tell(RoomInput::Start);
        fixture.asks(RoomInput::Offer(PeerId::PUBLISHER, offer(codec)));
        fixture
    };
    let detail = |outputs: Vec<RoomOutput>| match outputs.into_iter().last() {
        Some(RoomOutput::Failed(failure)) => failure.detail,
        other => panic!("{other:?}"),
    };
    let (h264, vp8, own) =
        ("publish.codec = \"h264\"", "publish.codec = \"vp8\"", "{n} in the URL");
    for (codec, status, body, said, to_try) in [
        ("VP8", 400, "5018: RtcSdpExchange", "400 Bad Request: 5018: RtcSdpExchange", h264),
        ("VP8", 409, "1028: StreamBusy", "409 Conflict: 1028: StreamBusy", own),
        (
            "VP8",
            400,
            r#"{"error":"someone is already publishing to path 'a'"}"#,
            "400 Bad Request: someone is already publishing",
            own,
        ),
        ("VP8", 406, "", "406 Not Acceptable", h264),
        ("H264", 415, "no\u{1b}[2J", "415 Unsupported Media Type: no [2J", vp8),
    ] {
        let detail = detail(offering(codec).respond(0, status, &[], body));
        assert!(detail.contains(said) && detail.contains(to_try), "{detail}");
    }
    // Without a mention of codec or stream there is no remedy.
    for (status, body) in [(401, "a bearer token is needed"), (404, ""), (503, "full")] {
        let detail = detail(offering("VP8").respond(0, status, &[], body));
        assert!(!detail.contains("try ") && !detail.contains(own), "{detail}");
    }
    let silent = |codec: &str| {
        let error = ChannelError::Unanswered;
        detail(offering(codec).tell(RoomInput::Fetched(FetchId(0), Err(error))))
    };
    let said = silent("VP8");
    for expect in [
        "POST http://10.0.0.1/whip/v1: the server closed the connection without an answer",
        h264,
        own,
    ] {
        assert!(said.contains(expect) && !said.contains("None"), "{said}");
    }
    assert!(!silent("AV1").contains("publish.codec"));
}
