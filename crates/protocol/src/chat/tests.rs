//! A member of a room with its connection: what it reports, and what it does when the connection
//! breaks.

use std::time::{Duration, Instant};

use throng_observation::{ChatCounters, ChatInterval, FailureReason, Observation, Outcome, Phase};
use throng_scenario::VcardPolicy;

use super::*;
use crate::participant::{ChannelError, Close, Input, Message, Open, Opening, Output, Participant};
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

const ROOM: &str = "stage@room.example";

/// A member, and a server that lets it join at once.
struct Fixture {
    member: Member,
    now: Instant,
    opened: Vec<(Duration, Open)>,
    sent: Vec<String>,
    reached: Vec<Phase>,
    intervals: Vec<ChatInterval>,
    anomalies: Vec<String>,
    ended: Option<Outcome>,
    start: Instant,
    log: RoomLog,
    is_authenticated: bool,
    /// It does not know streams of before.
    has_forgotten: bool,
}

impl Fixture {
    fn new(chat: ChatConfig) -> Self {
        Self::with(chat, |_| {})
    }

    /// With what the test wants else.
    fn with(chat: ChatConfig, change: impl FnOnce(&mut Config)) -> Self {
        Self::seeded(1, chat, change)
    }

    /// In a run of this seed.
    fn seeded(seed: u64, chat: ChatConfig, change: impl FnOnce(&mut Config)) -> Self {
        let start = Instant::now();
        let log = RoomLog::default();
        let xmpp = xmpp::XmppConfig {
            domain: "anon.example".to_owned(),
            credentials: None,
            room: ROOM.to_owned(),
            nick: "me".to_owned(),
            vcards: VcardPolicy::None,
            history_max: 0,
            has_chat_states: false,
            has_management: true,
            answer_within: Duration::from_secs(10),
        };
        let url = Url::parse("ws://10.0.0.1:5280/ws").unwrap();
        let mark = "k3f9".to_owned();
        let protocol = Protocol::Xmpp(Box::new(xmpp));
        let mut config =
            Config { url, protocol, chat, mark, log: log.clone(), rename: None, speech_seed: 1 };
        change(&mut config);
        let options = ParticipantOptions { seed, ..ParticipantOptions::for_tests(start) };
        let mut fixture = Self {
            member: Member::new(config, options),
            now: start,
            opened: Vec::new(),
            sent: Vec::new(),
            reached: Vec::new(),
            intervals: Vec::new(),
            anomalies: Vec::new(),
            ended: None,
            start,
            log,
            is_authenticated: false,
            has_forgotten: false,
        };
        fixture.input(Input::Start { intended_at: start });
        fixture
    }

    fn input(&mut self, input: Input<'_>) {
        self.member.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        let mut frames = Vec::new();
        loop {
            match self.member.poll_output(self.now) {
                Output::Open(SIGNALLING, open) => {
                    self.is_authenticated = false;
                    self.opened.push((self.now - self.start, open));
                }
                Output::Signal(SIGNALLING, Message::Text(frame)) => frames.push(frame),
                Output::Observed(Observation::Reached(phase, _)) => self.reached.push(phase),
                Output::Observed(Observation::Chat(interval)) => self.intervals.push(*interval),
                Output::Observed(Observation::ProtocolAnomaly { detail, .. }) => {
                    self.anomalies.push(detail.into());
                }
                Output::Ended(outcome) => {
                    self.ended = Some(outcome);
                    break;
                }
                Output::Timeout(..) => break,
                _ => {}
            }
        }
        self.sent.extend(frames.iter().cloned());
        frames.iter().for_each(|frame| self.answer(frame));
    }

    /// What a server says to `frame`.
    fn answer(&mut self, frame: &str) {
        let id =
            frame.split("id=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let text = match frame {
            frame if frame.starts_with("<open") && !self.is_authenticated => {
                "<stream:features><mechanisms><mechanism>ANONYMOUS</mechanism><mechanism>PLAIN</mechanism></mechanisms></stream:features>"
                    .to_owned()
            }
            frame if frame.starts_with("<open") => {
                "<stream:features><bind/><sm xmlns='urn:xmpp:sm:3'/></stream:features>".to_owned()
            }
            frame if frame.starts_with("<enable") => {
                "<enabled xmlns='urn:xmpp:sm:3' id='s1' resume='true'/>".to_owned()
            }
            frame if frame.starts_with("<resume") => match self.has_forgotten {
                true => "<failed xmlns='urn:xmpp:sm:3'><item-not-found/></failed>".to_owned(),
                false => "<resumed xmlns='urn:xmpp:sm:3' h='0' previd='s1'/>".to_owned(),
            },
            frame if frame.starts_with("<auth") => {
                self.is_authenticated = true;
                "<success/>".to_owned()
            }
            frame if frame.contains("bind\"") => {
                format!("<iq type='result' id='{id}'><bind><jid>w@anon.example/r</jid></bind></iq>")
            }
            frame if frame.starts_with("<iq") => format!("<iq type='result' id='{id}'/>"),
            frame if frame.contains("maxstanzas") => format!(
                "<presence from='{ROOM}/me'><x xmlns='http://jabber.org/protocol/muc#user'><status code='110'/></x></presence>"
            ),
            frame if frame.contains(&format!("to=\"{ROOM}/Grace\"")) => {
                let x = "<x xmlns='http://jabber.org/protocol/muc#user'><item nick='Grace'/><status code='303'/></x>";
                format!("<presence type='unavailable' from='{ROOM}/me'>{x}</presence>")
            }
            frame if frame.contains("<body>") => {
                let body =
                    frame.split("<body>").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or_default();
                format!("<message type='groupchat' from='{ROOM}/me'><body>{body}</body></message>")
            }
            _ => return,
        };
        self.receive(&text);
    }

    fn receive(&mut self, text: &str) {
        self.input(Input::Message { channel: SIGNALLING, message: Message::Text(text.to_owned()) });
    }

    fn open(&mut self) {
        self.input(Input::Opened { channel: SIGNALLING, opening: Opening::default() });
    }

    fn seconds(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
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
}

fn talkative() -> ChatConfig {
    ChatConfig { every: Some(Duration::from_secs(1)), ..ChatConfig::default() }
}

#[test]
fn what_a_server_repeats_of_the_token_as_it_refuses_or_closes_is_not_told() {
    let token = "S3CRET".repeat(30);
    let said = format!("bad token {token}");
    let cut = format!("{} {said}", "x".repeat(60));
    let close = Close { code: 1008, reason: said.clone() };
    for (is_open, why) in [
        (false, ChannelError::Status(403, said.clone())),
        (false, ChannelError::not_upgraded(403, &http::HeaderMap::new(), &cut)),
        (true, ChannelError::ClosedByPeer(Some(close))),
    ] {
        let mut fixture = Fixture::with(ChatConfig::default(), |config| {
            config.protocol = Protocol::Template(template::TemplateConfig {
                template: std::sync::Arc::new(throng_scenario::ChatTemplate::default()),
                nick: "ada".to_owned(),
                number: 7,
                token: Some(throng_scenario::Secret::new(token.clone())),
                answer_within: Duration::from_secs(10),
                has_event_stream: false,
            });
        });
        if is_open {
            fixture.open();
        }
        fixture.input(Input::Closed { channel: SIGNALLING, why });
        let told = format!("{:?} {:?}", fixture.anomalies, fixture.ended);
        assert!(!told.contains("S3C") && told.contains("bad token …"), "{told}");
    }
}

#[test]
fn it_follows_a_server_that_refers_to_another_one() {
    let mut fixture = Fixture::new(talkative());
    let refer = |fixture: &mut Fixture, uri: &str| {
        fixture.receive(&format!("<close xmlns='f' see-other-uri='{uri}'/>"));
    };
    let last = |fixture: &Fixture| match fixture.opened.last() {
        Some((at, Open::WebSocket { url, headers, .. })) => {
            (at.as_secs(), url.in_clear().to_string(), headers[0].1.clone())
        }
        other => panic!("{other:?}"),
    };
    fixture.open();
    refer(&mut fixture, "wss://10.0.0.2/ws");
    assert_eq!(fixture.opened.len(), 1, "the end of this connection is none of the next one");
    let why = ChannelError::ClosedByPeer(None);
    fixture.input(Input::Closed { channel: SIGNALLING, why });
    let origin = "http://10.0.0.1:5280".to_owned();
    assert_eq!(last(&fixture), (0, "wss://10.0.0.2/ws".to_owned(), origin.clone()), "at once");
    fixture.open();
    fixture.seconds(10);
    assert!(fixture.totals().messages_sent > 0 && fixture.totals().messages_missing == 0);
    assert_eq!((fixture.totals().reconnects, fixture.opened.len()), (0, 2));
    // A server that leaves it open.
    refer(&mut fixture, "wss://10.0.0.2/ws");
    fixture.seconds(1);
    assert_eq!(last(&fixture), (10, "wss://10.0.0.2/ws".to_owned(), origin));
    fixture.open();
    // From a secure server only to a secure one: it connects to this one again.
    refer(&mut fixture, "ws://10.0.0.3/ws");
    fixture.seconds(4);
    let (_, url, _) = last(&fixture);
    assert_eq!((url.as_str(), fixture.totals().reconnects), ("wss://10.0.0.2/ws", 1));
}

#[test]
fn a_password_is_for_no_server_that_the_own_one_refers_to() {
    let mut fixture = Fixture::with(ChatConfig::default(), account);
    for (uri, follows) in [("wss://10.0.0.1:5280/ws", false), ("ws://10.0.0.1:5280/b", true)] {
        fixture.open();
        fixture.receive(&format!("<close xmlns='f' see-other-uri='{uri}'/>"));
        fixture.seconds(4);
        let Some((_, Open::WebSocket { url, .. })) = fixture.opened.last() else { panic!("{uri}") };
        assert_eq!(url.in_clear().as_str() == uri, follows, "{url}");
    }
}

#[test]
fn it_joins_speaks_and_measures_what_comes_back() {
    let mut fixture = Fixture::new(talkative());
    fixture.open();
    assert_eq!(fixture.reached, [Phase::Started, Phase::Described, Phase::Joined]);
    let (_, Open::WebSocket { url, protocols, headers }) = &fixture.opened[0] else {
        panic!("{:?}", fixture.opened)
    };
    assert_eq!(
        (url.in_clear().as_str(), protocols.as_slice()),
        ("ws://10.0.0.1:5280/ws", &["xmpp".to_owned()][..])
    );
    assert_eq!(headers[..], [("Origin".to_owned(), "http://10.0.0.1:5280".to_owned())]);
    fixture.seconds(60);
    let totals = fixture.totals();
    assert!((35..90).contains(&totals.messages_sent), "{totals:?}");
    assert_eq!(
        (totals.messages_due, totals.messages_missing, totals.messages_unsent),
        (totals.messages_sent, 0, 0)
    );
    let late = fixture.intervals.iter().flat_map(|interval| &interval.delays_us).max();
    assert!(
        late.is_some_and(|us| *us <= 50_000),
        "from the time at which it was due, in steps of 50 ms: {late:?}"
    );
    assert!(
        fixture.intervals.len() == 60
            && fixture.intervals.iter().all(|interval| interval.is_joined)
    );
    fixture.input(Input::Leave { others_follow: false });
    assert!(
        fixture.ended == Some(Outcome::Completed)
            && fixture.sent.iter().any(|frame| frame.starts_with("<close"))
    );
    let last = fixture.intervals.last().unwrap();
    assert!(last.is_joined, "it was in the room until it left: {last:?}");
}

#[test]
fn a_connection_that_breaks_is_made_again_after_three_seconds_and_what_was_said_meanwhile_is_not_due()
 {
    let mut fixture = Fixture::new(ChatConfig::default());
    fixture.open();
    fixture.seconds(5);
    let lost = fixture.log.say(9, fixture.now);
    fixture.input(Input::Closed { channel: SIGNALLING, why: ChannelError::ClosedByPeer(None) });
    fixture.seconds(1);
    fixture.log.say(9, fixture.now);
    fixture.seconds(3);
    let times: Vec<_> = fixture.opened.iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!(times, [0, 8]);
    fixture.open();
    fixture.seconds(3);
    let seen = fixture.log.say(9, fixture.now);
    fixture.receive(&format!(
        "<message type='groupchat' from='{ROOM}/a'><body>x {}</body></message>",
        super::room_log::mark("k3f9", seen)
    ));
    fixture.seconds(12);
    let totals = fixture.totals();
    assert_eq!(
        (totals.reconnects, totals.messages_due, totals.messages_missing),
        (1, 2, 1),
        "message {lost}, which was on its way, is missing: {totals:?}"
    );
    let away = fixture.intervals.iter().filter(|interval| !interval.is_joined).count();
    assert!((3..=4).contains(&away), "{away}");
    assert_eq!(fixture.reached.iter().filter(|phase| **phase == Phase::Joined).count(), 1);
}

fn account(config: &mut Config) {
    let password = throng_scenario::Secret::new("secret".to_owned());
    let Protocol::Xmpp(xmpp) = &mut config.protocol else { panic!("XMPP") };
    xmpp.credentials = Some(xmpp::Credentials { username: "ada".to_owned(), password });
}

#[test]
fn what_the_server_kept_while_it_was_away_is_due_to_who_resumes_and_to_nobody_else() {
    for (has_forgotten, due, resumes) in [(false, 2, 1), (true, 1, 0)] {
        let mut fixture = Fixture::with(ChatConfig::default(), account);
        fixture.has_forgotten = has_forgotten;
        fixture.open();
        fixture.seconds(2);
        fixture.input(Input::Closed { channel: SIGNALLING, why: ChannelError::ClosedByPeer(None) });
        let away = fixture.log.say(9, fixture.now);
        fixture.seconds(4);
        fixture.open();
        let body = |number| super::room_log::mark("k3f9", number);
        fixture.receive(&format!("<message type='groupchat' from='{ROOM}/a'><body>x {}</body><delay xmlns='urn:xmpp:delay'/></message>", body(away)));
        fixture.seconds(1);
        let back = fixture.log.say(9, fixture.now);
        fixture.receive(&format!(
            "<message type='groupchat' from='{ROOM}/a'><body>x {}</body></message>",
            body(back)
        ));
        fixture.seconds(12);
        let totals = fixture.totals();
        assert_eq!(
            (totals.messages_due, totals.messages_missing, totals.duplicates),
            (due, 0, 0),
            "{totals:?}"
        );
        assert_eq!((totals.reconnects, totals.resumes), (1, resumes), "{totals:?}");
        let late = fixture.intervals.iter().flat_map(|interval| &interval.delays_us).max().copied();
        assert_eq!(late.is_some_and(|us| us >= 4_000_000), !has_forgotten, "{late:?}");
    }
}

#[test]
fn whoever_has_chosen_a_nickname_takes_it_once_and_keeps_it_when_it_connects_again() {
    let after = Duration::from_secs(5);
    let rename = Rename { nick: "Grace".to_owned(), after };
    let mut fixture = Fixture::with(ChatConfig::default(), |config| config.rename = Some(rename));
    fixture.open();
    fixture.seconds(4);
    assert!(!fixture.sent.iter().any(|frame| frame.contains("/Grace")));
    fixture.seconds(30);
    assert_eq!(fixture.sent.iter().filter(|frame| frame.contains("/Grace\"")).count(), 1);
    assert_eq!(fixture.totals().nick_changes, 1);
    fixture.input(Input::Closed { channel: SIGNALLING, why: ChannelError::ClosedByPeer(None) });
    fixture.seconds(4);
    fixture.open();
    let join = fixture.sent.iter().rfind(|frame| frame.contains("maxstanzas")).unwrap();
    assert!(join.contains("/Grace\""), "{join}");
}

#[test]
fn what_was_to_be_said_before_it_is_in_the_room_was_not_said() {
    let mut fixture = Fixture::new(talkative());
    fixture.seconds(20);
    let waiting = fixture.totals();
    assert!(
        (10..35).contains(&waiting.messages_unsent) && waiting.messages_sent == 0,
        "{waiting:?}"
    );
    fixture.open();
    fixture.seconds(20);
    let totals = fixture.totals();
    assert_eq!(totals.messages_unsent, waiting.messages_unsent);
    assert!((10..35).contains(&totals.messages_sent), "{totals:?}");
}

#[test]
fn the_seed_of_the_chat_decides_what_is_said_and_when() {
    let said = |speech_seed, seed| {
        let mut fixture =
            Fixture::seeded(seed, talkative(), |config| config.speech_seed = speech_seed);
        fixture.open();
        fixture.seconds(30);
        let counts: Vec<_> =
            fixture.intervals.iter().map(|interval| interval.counters.messages_sent).collect();
        let bodies =
            fixture.sent.iter().filter_map(|frame| frame.split("<body>").nth(1)?.split('<').next());
        (bodies.map(str::to_owned).collect::<Vec<_>>(), counts)
    };
    assert_eq!(said(7, 1), said(7, 2), "whatever the seed of the run is");
    assert_ne!(said(7, 1), said(8, 1));
}

#[test]
fn what_does_not_come_within_ten_seconds_is_missing() {
    let mut fixture = Fixture::new(ChatConfig::default());
    fixture.open();
    fixture.log.say(9, fixture.now);
    fixture.seconds(9);
    assert_eq!(fixture.totals().messages_missing, 0);
    fixture.seconds(3);
    assert_eq!((fixture.totals().messages_due, fixture.totals().messages_missing), (1, 1));
}

#[test]
fn a_server_that_does_not_want_it_ends_it_and_one_that_is_away_does_not() {
    let mut fixture = Fixture::new(ChatConfig::default());
    fixture.open();
    fixture.receive(&format!(
        "<presence type='unavailable' from='{ROOM}/me'><x xmlns='http://jabber.org/protocol/muc#user'><status code='307'/></x></presence>"
    ));
    assert!(
        matches!(&fixture.ended, Some(Outcome::Failed(failure)) if failure.detail.contains("kicked")),
        "{:?}",
        fixture.ended
    );
    let mut away = Fixture::new(talkative());
    for _ in 0..4 {
        away.input(Input::Closed {
            channel: SIGNALLING,
            why: ChannelError::Status(502, String::new()),
        });
        away.seconds(4);
    }
    assert!(away.ended.is_none() && away.opened.len() == 5, "{:?}", away.ended);
    away.input(Input::Leave { others_follow: true });
    assert!(
        matches!(&away.ended, Some(Outcome::Failed(failure)) if failure.reason == FailureReason::HttpStatus(502)),
        "it has failed, and was not only interrupted: {:?}",
        away.ended
    );
    let mut first = Fixture::new(talkative());
    first.input(Input::Leave { others_follow: true });
    assert!(
        matches!(&first.ended, Some(Outcome::Failed(failure)) if failure.reason == FailureReason::NotStarted),
        "{:?}",
        first.ended
    );
}

#[test]
fn what_was_on_its_way_is_missing_when_the_stream_is_not_resumed_and_comes_late_when_it_is() {
    for (has_forgotten, comes, missing) in [(false, true, 0), (false, false, 1), (true, false, 1)] {
        let mut fixture = Fixture::with(ChatConfig::default(), account);
        fixture.has_forgotten = has_forgotten;
        fixture.open();
        fixture.seconds(2);
        let pending = fixture.log.say(9, fixture.now);
        fixture.input(Input::Closed { channel: SIGNALLING, why: ChannelError::ClosedByPeer(None) });
        fixture.seconds(4);
        fixture.open();
        if comes {
            let mark = super::room_log::mark("k3f9", pending);
            fixture.receive(&format!(
                "<message type='groupchat' from='{ROOM}/a'><body>x {mark}</body></message>"
            ));
        }
        fixture.seconds(12);
        let totals = fixture.totals();
        assert_eq!((totals.messages_due, totals.messages_missing), (1, missing), "{totals:?}");
    }
}

#[test]
fn who_leaves_while_the_connection_is_broken_did_not_get_what_was_on_its_way() {
    let mut fixture = Fixture::with(ChatConfig::default(), account);
    fixture.open();
    fixture.seconds(2);
    fixture.log.say(9, fixture.now);
    fixture.input(Input::Closed { channel: SIGNALLING, why: ChannelError::ClosedByPeer(None) });
    fixture.log.say(9, fixture.now);
    fixture.seconds(1);
    assert_eq!(fixture.totals().messages_due, 0, "the stream may go on");
    fixture.input(Input::Leave { others_follow: true });
    assert_eq!((fixture.totals().messages_due, fixture.totals().messages_missing), (1, 1));
}
