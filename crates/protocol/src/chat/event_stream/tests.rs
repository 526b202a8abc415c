//! A member whose chat comes over an event stream: what it asks for, what it posts, and how it
//! comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use throng_observation::{
    ChatCounters, ChatInterval, FailureReason, Observation, Outcome, Phase, Url,
};
use throng_scenario::{Scenario, Secret};

use crate::chat::room_log::mark;
use crate::chat::template::TemplateConfig;
use crate::chat::{Config, Member, Protocol, RoomLog};
use crate::participant::{
    ChannelError, DownloadEvent, FetchId, HttpVersion, Input, KeptPath, Opening, Output,
    Participant, Request,
};
use crate::webrtc::ParticipantOptions;

const CHAT: &str = r#"
room = "the stage"
stream = "/rooms/{room}/events?as={nick}"
join = [{ send = '{"as":"{nick}"}', path = "/join", expect = "joined: " }, "ready"]
say = '{"text":"{text}"}'
pong = { on = "ping:", send = "pong{rest}" }
post = { path = "/rooms/{room}/say", leave = "/leave", content_type = "application/json" }
headers = { Authorization = "Bearer {token}" }
refused = ["HTTP 403", "closed: "]
kicked = "kick: {nick}"
leave = "bye"
"#;

/// A request of the member.
struct Asked {
    at: Duration,
    fetch: FetchId,
    method: Method,
    url: String,
    headers: HeaderMap,
    kept: Option<KeptPath>,
    body: String,
}

/// A member, and a server that does what the test says.
struct Fixture {
    member: Member,
    start: Instant,
    now: Instant,
    log: RoomLog,
    asked: Vec<Asked>,
    cancelled: Vec<FetchId>,
    reached: Vec<Phase>,
    anomalies: Vec<String>,
    intervals: Vec<ChatInterval>,
    ended: Option<Outcome>,
}

impl Fixture {
    fn new(template: &str, chat: &str) -> Self {
        Self::at("http://10.0.0.1/chat", template, chat)
    }

    fn at(url: &str, template: &str, chat: &str) -> Self {
        let file = format!(
            "[target]\nurl = \"chat+{url}\"\n[crowd]\nsize = 1\n[crowd.chat]\n{chat}\n[crowd.chat.template]{template}\n\
             [run]\nduration = \"20s\"\n"
        );
        let scenario = Scenario::parse(&file).unwrap_or_else(|error| panic!("{error}"));
        let chat = scenario.crowd[0].role.clone().unwrap().chat;
        let words = TemplateConfig {
            template: Arc::new(chat.template.clone().unwrap()),
            nick: "ada".to_owned(),
            number: 7,
            token: Some(Secret::new("hush".to_owned())),
            answer_within: Duration::from_secs(10),
            has_event_stream: true,
        };
        let (start, log) = (Instant::now(), RoomLog::default());
        let config = Config {
            url: Url::parse(url).unwrap(),
            protocol: Protocol::Template(words),
            chat,
            mark: "k3f9".to_owned(),
            log: log.clone(),
            rename: None,
            speech_seed: 1,
        };
        let mut fixture = Self {
            member: Member::new(config, ParticipantOptions::for_tests(start)),
            start,
            now: start,
            log,
            asked: Vec::new(),
            cancelled: Vec::new(),
            reached: Vec::new(),
            anomalies: Vec::new(),
            intervals: Vec::new(),
            ended: None,
        };
        fixture.input(Input::Start { intended_at: start });
        fixture
    }

    fn input(&mut self, input: Input<'_>) {
        self.member.handle(self.now, input);
        loop {
            match self.member.poll_output(self.now) {
                Output::Download(fetch, request, HttpVersion::Negotiated) => {
                    self.ask(fetch, *request);
                }
                Output::Cancel(fetch) => self.cancelled.push(fetch),
                Output::Observed(Observation::Reached(phase, _)) => self.reached.push(phase),
                Output::Observed(Observation::Chat(interval)) => self.intervals.push(*interval),
                Output::Observed(Observation::ProtocolAnomaly { detail, .. }) => {
                    self.anomalies.push(detail.into());
                }
                Output::Ended(outcome) => {
                    self.ended = Some(outcome);
                    break;
                }
                Output::Timeout(at, why) => {
                    assert!(at > self.now, "{why}");
                    break;
                }
                _ => {}
            }
        }
    }

    fn ask(&mut self, fetch: FetchId, request: Request) {
        self.asked.push(Asked {
            at: self.now - self.start,
            fetch,
            method: request.head.method,
            url: request.head.uri.to_string(),
            headers: request.head.headers,
            kept: request.head.extensions.get().cloned(),
            body: String::from_utf8(request.body).unwrap(),
        });
    }

    fn last(&self) -> &Asked {
        self.asked.last().unwrap()
    }

    /// The latest request for the stream.
    fn stream(&self) -> FetchId {
        self.asked.iter().rfind(|asked| asked.method == Method::GET).unwrap().fetch
    }

    fn posts(&self) -> Vec<(&str, &str)> {
        let posts = self.asked.iter().filter(|asked| asked.method == Method::POST);
        posts
            .map(|asked| (asked.url.strip_prefix("http://10.0.0.1").unwrap(), asked.body.as_str()))
            .collect()
    }

    fn head(&mut self, fetch: FetchId, status: u16, header: Option<(http::HeaderName, &str)>) {
        let mut response = http::Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        }
        let (head, ()) = response.into_parts();
        let event =
            DownloadEvent::Head { head: Box::new(head), opening: Box::new(Opening::default()) };
        self.input(Input::Download { fetch, event });
    }

    fn open(&mut self) {
        self.head(self.stream(), 200, Some((CONTENT_TYPE, "Text/Event-Stream; charset=utf-8")));
    }

    fn send(&mut self, text: &str) {
        let event = DownloadEvent::Body(text.as_bytes());
        self.input(Input::Download { fetch: self.stream(), event });
    }

    /// Answers the latest request.
    fn answer(&mut self, status: u16, body: &str) {
        let fetch = self.last().fetch;
        self.head(fetch, status, None);
        self.input(Input::Download { fetch, event: DownloadEvent::Body(body.as_bytes()) });
        self.input(Input::Download { fetch, event: DownloadEvent::Finished(Ok(())) });
    }

    fn end(&mut self, result: Result<(), ChannelError>) {
        self.input(Input::Download {
            fetch: self.stream(),
            event: DownloadEvent::Finished(result),
        });
    }

    /// In the room.
    fn joined(template: &str, chat: &str) -> Self {
        let mut fixture = Self::new(template, chat);
        fixture.join();
        fixture
    }

    fn join(&mut self) {
        self.open();
        self.send("event: joined\ndata: {\"room\":1}\n\n");
        self.answer(204, "");
        self.answer(200, "ok");
    }

    fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while self.now < end && self.ended.is_none() {
            self.now += Duration::from_millis(50);
            self.input(Input::Timeout);
        }
    }

    fn totals(&self) -> ChatCounters {
        self.intervals.iter().fold(ChatCounters::default(), |mut sum, interval| {
            sum += interval.counters;
            sum
        })
    }

    fn failure(&self) -> (FailureReason, String) {
        match &self.ended {
            Some(Outcome::Failed(failure)) => (failure.reason.clone(), failure.detail.to_string()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn it_opens_the_stream_posts_its_join_and_hears_what_is_said() {
    let mut fixture = Fixture::new(CHAT, "every = \"1s\"");
    let get = fixture.last();
    assert_eq!(get.url, "http://10.0.0.1/rooms/the%20stage/events?as=ada");
    let header = |name: &str| get.headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(
        (header("accept"), header("cache-control")),
        (Some("text/event-stream"), Some("no-cache"))
    );
    assert_eq!((header("origin"), header("last-event-id")), (None, None));
    assert_eq!(header("authorization"), Some("Bearer hush"));
    fixture.open();
    let post = fixture.last();
    assert_eq!(
        (post.url.as_str(), post.body.as_str()),
        ("http://10.0.0.1/join", r#"{"as":"ada"}"#)
    );
    let header = |name: &str| post.headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(
        (header("content-type"), header("origin")),
        (Some("application/json"), Some("http://10.0.0.1"))
    );
    // Answered, but what is expected has not come; then it comes in an event.
    fixture.answer(204, "");
    assert_eq!(fixture.posts().len(), 1);
    fixture.send(": hello\nevent: joi");
    fixture.send("ned\ndata: {}\n\n");
    assert_eq!(fixture.posts()[1..], [("/rooms/the%20stage/say", "ready")]);
    assert!(!fixture.reached.contains(&Phase::Joined));
    fixture.answer(200, "");
    assert_eq!(fixture.reached, [Phase::Started, Phase::Described, Phase::Joined]);
    fixture.send("event: ping\ndata: 17\n\n");
    assert_eq!(fixture.last().body, "pong 17");
    let number = fixture.log.say(9, fixture.now);
    fixture.now += Duration::from_millis(30);
    fixture.send(&format!("id: 4\ndata: {{\"text\":\"hello {}\"}}\n\n", mark("k3f9", number)));
    fixture.wait(1_000);
    let interval = &fixture.intervals[0];
    assert_eq!((interval.counters.messages_due, interval.delays_us.as_slice()), (1, &[30_000][..]));
    assert_eq!(interval.counters.frames_received, 5, "three events and two answers");
    assert!(interval.is_joined && interval.counters.bytes_received > 60);
    fixture.wait(9_000);
    let said = fixture.posts().iter().filter(|(_, body)| body.contains("[k3f9.")).count();
    assert!(said > 3 && said as u64 == fixture.totals().messages_sent, "{said}");
}

#[test]
fn what_is_expected_may_be_in_the_answer_and_a_chat_without_a_join_is_joined_at_once() {
    let mut fixture =
        Fixture::new("\njoin = [{ send = \"in\", expect = '\"ok\"' }]\nsay = \"{text}\"", "");
    assert_eq!(fixture.last().url, "http://10.0.0.1/chat");
    fixture.open();
    assert_eq!(
        (fixture.posts(), fixture.last().headers[CONTENT_TYPE].to_str().unwrap()),
        (vec![("/chat", "in")], "text/plain;charset=UTF-8")
    );
    fixture.answer(200, "{\"ok\":true}");
    assert!(fixture.reached.contains(&Phase::Joined));
    let mut at_once = Fixture::new("\njoin = []\nsay = \"{text}\"", "");
    at_once.open();
    assert!(at_once.reached.contains(&Phase::Joined));
}

#[test]
fn a_stream_that_breaks_is_opened_again_as_an_event_source_does() {
    let mut fixture = Fixture::joined(CHAT, "");
    fixture.send("id: 41\n\nretry: 500\nid: 42\ndata: x\n\nid: 43\ndata: lost");
    fixture.end(Ok(()));
    assert!(
        fixture.anomalies.iter().any(|text| text.contains("the server ended the event stream"))
    );
    fixture.wait(1_000);
    let get = fixture.last();
    assert_eq!((get.at, &get.method), (Duration::from_millis(500), &Method::GET));
    assert_eq!(get.headers["last-event-id"], "42");
    // The server is away: the time is that of the stream before.
    fixture.end(Err(ChannelError::Tcp("refused".into())));
    fixture.wait(600);
    assert_eq!(fixture.asked.iter().filter(|asked| asked.method == Method::GET).count(), 3);
    fixture.join();
    fixture.wait(1_000);
    assert_eq!((fixture.totals().reconnects, fixture.totals().resumes), (2, 0));
    assert!(fixture.intervals.last().unwrap().is_joined && fixture.ended.is_none());
}

#[test]
fn what_was_said_meanwhile_is_due_where_the_server_sends_it_after_the_last_event_id_and_else_not() {
    for (keys, due, resumes) in [("replay = true", 2, 1), ("", 1, 0)] {
        let mut fixture = Fixture::joined(&format!("{CHAT}{keys}\n"), "");
        fixture.send("retry: 1000\nid: 1\ndata: x\n\n");
        fixture.end(Ok(()));
        let away = fixture.log.say(9, fixture.now);
        fixture.wait(1_500);
        fixture.open();
        fixture.send(&format!("id: 2\ndata: {}\n\n", mark("k3f9", away)));
        fixture.send("event: joined\ndata: x\n\n");
        fixture.answer(200, "");
        fixture.answer(200, "");
        let back = fixture.log.say(9, fixture.now);
        fixture.send(&format!("id: 3\ndata: {}\n\n", mark("k3f9", back)));
        fixture.wait(12_000);
        let totals = fixture.totals();
        assert_eq!(
            (totals.messages_due, totals.messages_missing, totals.resumes),
            (due, 0, resumes),
            "{keys}: {totals:?}"
        );
    }
}

#[test]
fn an_answer_that_is_no_event_stream_ends_it_as_it_closes_an_event_source() {
    for (status, header, reason, detail) in [
        (204, None, FailureReason::RoomEnded, "the server wants no further connection"),
        (
            503,
            None,
            FailureReason::HttpStatus(503),
            "HTTP status 503 Service Unavailable in place of an event stream",
        ),
        (
            200,
            Some((CONTENT_TYPE, "text/html")),
            FailureReason::Protocol,
            "`text/html` in place of text/event-stream",
        ),
        (200, None, FailureReason::Protocol, "`` in place of text/event-stream"),
        (302, None, FailureReason::HttpStatus(302), "302 Found"),
    ] {
        let mut fixture = Fixture::new(CHAT, "");
        let fetch = fixture.stream();
        fixture.head(fetch, status, header);
        let (told, text) = fixture.failure();
        assert!(told == reason && text.contains(detail), "{status}: {text}");
        assert!(fixture.cancelled.contains(&fetch));
    }
}

#[test]
fn redirects_are_followed_and_what_is_for_the_server_goes_to_no_other() {
    let mut fixture = Fixture::new(CHAT, "");
    fixture.head(fixture.stream(), 307, Some((LOCATION, "/elsewhere")));
    let get = fixture.last();
    assert_eq!(get.url, "http://10.0.0.1/elsewhere");
    assert!(get.headers.contains_key("authorization") && !get.headers.contains_key("origin"));
    fixture.head(fixture.stream(), 302, Some((LOCATION, "http://10.0.0.2/events")));
    let get = fixture.last();
    assert_eq!(
        (get.url.as_str(), &get.headers["origin"]),
        ("http://10.0.0.2/events", &HeaderValue::from_static("http://10.0.0.1"))
    );
    assert!(!get.headers.contains_key("authorization"));
    fixture.end(Err(ChannelError::NotAllowed("10.0.0.2:80".into())));
    assert_eq!(fixture.failure().0, FailureReason::NotAllowed);
    // A server over TLS refers to another one, and nobody into clear text.
    let mut safe = Fixture::at("https://10.0.0.1/chat", CHAT, "");
    safe.head(safe.stream(), 302, Some((LOCATION, "https://10.0.0.2/events")));
    assert_eq!(safe.last().url, "https://10.0.0.2/events");
    assert!(!safe.last().headers.contains_key("authorization"));
    for to in ["http://10.0.0.1/elsewhere", "http://10.0.0.2/events"] {
        let mut clear = Fixture::at("https://10.0.0.1/chat", CHAT, "");
        clear.head(clear.stream(), 307, Some((LOCATION, to)));
        assert_eq!((clear.failure().0, clear.asked.len()), (FailureReason::MixedContent, 1));
    }
    let mut round = Fixture::new(CHAT, "");
    for _ in 0..30 {
        round.head(round.stream(), 301, Some((LOCATION, "/chat")));
    }
    assert!(
        round.anomalies.iter().any(|text| text.contains("too many redirects")),
        "{:?}",
        round.anomalies
    );
}

#[test]
fn a_path_with_the_token_is_kept_without_it_wherever_a_redirect_leads() {
    let words = CHAT.replace("/rooms/{room}/events?as={nick}", "/{token}/events");
    let mut fixture = Fixture::new(&words, "");
    let kept = |fixture: &Fixture| fixture.last().kept.clone().map(|KeptPath(path)| path);
    assert_eq!(kept(&fixture).as_deref(), Some("/…/events"));
    for (to, path) in [
        ("/hush/events/", Some("/…/events/")),
        ("/a/%68ush", Some("/a/…")),
        ("http://10.0.0.2/hush", Some("/…")),
        ("/elsewhere", None),
    ] {
        fixture.head(fixture.stream(), 307, Some((LOCATION, to)));
        assert_eq!(kept(&fixture).as_deref(), path, "{to}");
    }
}

#[test]
fn who_is_refused_or_put_out_has_failed_and_a_busy_server_is_tried_again() {
    for (status, body, reason, detail) in [
        (403, "the room is full\n", FailureReason::Refused, "refused: HTTP 403"),
        (
            401,
            "no",
            FailureReason::Unauthorized,
            "the answer to message 1 of the join: HTTP status 401 Unauthorized: no",
        ),
        (
            404,
            "",
            FailureReason::Refused,
            "the answer to message 1 of the join: HTTP status 404 Not Found",
        ),
        (200, "closed: for today", FailureReason::Refused, "refused: closed: for today"),
    ] {
        let mut fixture = Fixture::new(CHAT, "");
        fixture.open();
        fixture.answer(status, body);
        let (told, text) = fixture.failure();
        assert!(told == reason && text.contains(detail), "{status}: {text}");
    }
    for status in [429, 500, 502] {
        let mut fixture = Fixture::new(CHAT, "");
        fixture.open();
        fixture.answer(status, "");
        fixture.wait(4_000);
        assert!(fixture.ended.is_none() && fixture.last().method == Method::GET, "{status}");
        assert!(
            fixture.anomalies[0].contains(&format!(
                "connects again: the answer to message 1 of the join: HTTP status {status}"
            )) || fixture.anomalies[0].contains(&status.to_string())
        );
    }
    let mut fixture = Fixture::joined(CHAT, "");
    fixture.send("event: kick\ndata: eve\n\n");
    assert!(fixture.ended.is_none());
    fixture.send("event: kick\ndata: ada\n\n");
    assert_eq!(fixture.failure().0, FailureReason::Kicked);
}

#[test]
fn a_message_that_the_server_does_not_take_is_told_and_the_connection_stays() {
    let mut fixture = Fixture::joined(CHAT, "every = \"500ms\"");
    fixture.wait(5_000);
    let number = fixture.posts().len();
    assert!(number > 2);
    fixture.answer(413, "too long");
    let fetch = fixture.asked[fixture.asked.len() - 2].fetch;
    fixture.input(Input::Download {
        fetch,
        event: DownloadEvent::Finished(Err(ChannelError::Unanswered)),
    });
    assert!(
        fixture.anomalies[0].contains("the answer to a POST: HTTP status 413"),
        "{:?}",
        fixture.anomalies
    );
    assert!(fixture.anomalies[1].contains("was not answered"), "{:?}", fixture.anomalies);
    fixture.wait(1_000);
    assert!(fixture.intervals.last().unwrap().is_joined && fixture.totals().reconnects == 0);
}

#[test]
fn a_nickname_that_is_taken_is_told_by_the_status_and_the_next_one_tried() {
    let template = CHAT.replace("?as={nick}", "") + "nick_taken = \"HTTP 409\"\n";
    let mut fixture = Fixture::new(&template, "");
    fixture.open();
    fixture.answer(409, "HTTP 409 is what you get");
    assert_eq!(fixture.posts()[1..], [("/join", r#"{"as":"ada-2"}"#)]);
    fixture.answer(200, "joined: you");
    fixture.answer(200, "");
    assert!(fixture.reached.contains(&Phase::Joined));
}

#[test]
fn silence_is_named_and_who_leaves_waits_until_its_goodbye_has_arrived() {
    let mut fixture = Fixture::new(CHAT, "");
    fixture.open();
    fixture.answer(200, "");
    fixture.wait(10_500);
    assert!(
        fixture.anomalies[0].contains("no `joined:` within 10 s after message 1 of the join"),
        "{:?}",
        fixture.anomalies
    );
    let mut fixture = Fixture::joined(CHAT, "");
    fixture.input(Input::Leave { others_follow: true });
    assert_eq!(fixture.posts().last(), Some(&("/leave", "bye")));
    assert!(fixture.ended.is_none() && fixture.cancelled == [fixture.stream()]);
    fixture.answer(204, "");
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    let mut fixture = Fixture::joined(CHAT, "");
    fixture.input(Input::Leave { others_follow: true });
    fixture.wait(60_000);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "the server does not answer");
    assert!(fixture.now - fixture.start < Duration::from_secs(20));
}

#[test]
fn what_is_posted_goes_on_when_the_stream_breaks_and_its_answer_is_none_of_the_next_join() {
    let mut fixture = Fixture::joined(CHAT, "every = \"500ms\"");
    while fixture.posts().len() < 3 {
        fixture.wait(100);
    }
    let said = fixture.last().fetch;
    fixture.send("retry: 100\n\n");
    fixture.end(Ok(()));
    assert!(!fixture.cancelled.contains(&said));
    fixture.wait(200);
    fixture.open();
    let asked = fixture.asked.len();
    // Refused late; the posts of the new session have the same numbers.
    fixture.head(said, 403, None);
    fixture.input(Input::Download { fetch: said, event: DownloadEvent::Finished(Ok(())) });
    assert!(fixture.ended.is_none() && fixture.asked.len() == asked, "{:?}", fixture.ended);
    fixture.send("event: joined\ndata: x\n\n");
    fixture.answer(204, "");
    fixture.answer(200, "");
    fixture.wait(1_000);
    assert!(fixture.intervals.last().unwrap().is_joined);
}

#[test]
fn an_event_without_an_end_breaks_the_connection() {
    let mut fixture = Fixture::joined(CHAT, "");
    let piece = "x".repeat(200_000);
    for _ in 0..6 {
        fixture.send(&piece);
    }
    assert!(fixture.anomalies[0].contains("more than 1048576 bytes"), "{:?}", fixture.anomalies);
    assert!(fixture.cancelled.contains(&fixture.stream()));
}
