//! A stream against the server's frames as they were recorded (Prosody 0.12.3), and against what is
//! no XMPP.

use std::time::Instant;

use proptest::prelude::*;
use throng_observation::{Failure, FailureReason};
use throng_scenario::VcardPolicy;

use super::xml::{Element, escaped, unescaped};
use super::*;
use crate::chat::session::{Event, Incoming, Outgoing, Session as _};
use crate::participant::Message;

const ROOM: &str = "r400-1@room.pt.localhost";

fn config(vcards: VcardPolicy) -> XmppConfig {
    XmppConfig {
        domain: "anon.pt.localhost".to_owned(),
        credentials: None,
        room: ROOM.to_owned(),
        nick: "Anonymous 1".to_owned(),
        vcards,
        history_max: 50,
        has_chat_states: false,
        has_management: true,
        answer_within: Duration::from_secs(10),
    }
}

/// A stream with a server that answers from templates.
struct Fixture {
    session: Stream,
    now: Instant,
    sent: Vec<String>,
    events: Vec<Event>,
}

impl Fixture {
    fn new(config: XmppConfig) -> Self {
        Self::after(config, None)
    }

    fn after(config: XmppConfig, before: Option<Resumption>) -> Self {
        let now = Instant::now();
        let mut session = Stream::new(config, before, &mut fastrand::Rng::with_seed(1));
        session.opened(now);
        let mut fixture = Self { session, now, sent: Vec::new(), events: Vec::new() };
        fixture.drain();
        fixture
    }

    fn drain(&mut self) {
        self.sent.extend(std::iter::from_fn(|| self.session.poll_send()).map(
            |message| match message {
                Outgoing::Frame(Message::Text(frame)) => frame,
                other => panic!("XMPP is text: {other:?}"),
            },
        ));
    }

    fn try_receive(&mut self, frame: &str) -> Result<(), Failure> {
        let events =
            self.session.receive(self.now, Incoming::Frame(Message::Text(frame.to_owned())))?;
        self.events.extend(events);
        self.drain();
        Ok(())
    }

    fn receive(&mut self, frame: &str) {
        self.try_receive(frame).unwrap();
    }

    fn last(&self) -> &str {
        self.sent.last().map_or("", String::as_str)
    }

    /// The id of the last request that has `text` in it.
    fn id_of(&self, text: &str) -> String {
        let frame = self
            .sent
            .iter()
            .rfind(|frame| frame.contains(text))
            .unwrap_or_else(|| panic!("{text}: {:?}", self.sent));
        Element::read(frame).unwrap().attribute("id").unwrap().to_owned()
    }

    fn result(&mut self, of: &str, payload: &str) {
        let id = self.id_of(of);
        self.receive(&format!("<iq type='result' id='{id}' xmlns='jabber:client'>{payload}</iq>"));
    }

    fn authenticated(&mut self) {
        self.receive("<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' version='1.0' from='anon.pt.localhost' id='d3c0f6ec' xml:lang='en'/>");
        self.receive("<stream:features xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client'><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>ANONYMOUS</mechanism></mechanisms></stream:features>");
        assert!(self.last().contains(r#"mechanism="ANONYMOUS""#));
        self.receive("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>");
        self.receive("<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' version='1.0' from='anon.pt.localhost' id='1a762e0d' xml:lang='en'/>");
        self.receive("<stream:features xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><required/></bind><session xmlns='urn:ietf:params:xml:ns:xmpp-session'><optional/></session></stream:features>");
        self.result(
            "bind",
            "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>w@anon.pt.localhost/Y</jid></bind>",
        );
        self.result("session", "");
    }

    fn asks_to_join(&mut self) {
        self.authenticated();
        self.result(
            "anon.pt.localhost\" type=\"get\"",
            "<query xmlns='http://jabber.org/protocol/disco#info'/>",
        );
        self.result("disco#info", "<query xmlns='http://jabber.org/protocol/disco#info'/>");
        self.result("x-roomuser-item", "<query/>");
        assert!(
            self.last().starts_with("<presence") && self.last().contains("maxstanzas"),
            "{}",
            self.last()
        );
    }

    fn presence(&mut self, nick: &str, more: &str) -> Result<(), Failure> {
        self.try_receive(&format!(
            "<presence to='w@anon.pt.localhost/Y' xmlns='jabber:client' from='{ROOM}/{nick}' {more}</presence>"
        ))
    }

    fn joined(&mut self) {
        self.asks_to_join();
        for nick in ["Ada", "Anonymous 77", "O&apos;Hara"] {
            self.presence(
                nick,
                "><x xmlns='http://jabber.org/protocol/muc#user'><item role='participant'/></x>",
            )
            .unwrap();
        }
        assert!(self.events.is_empty());
        self.presence(
            "Anonymous 1",
            "><x xmlns='http://jabber.org/protocol/muc#user'><item/><status code='110'/></x>",
        )
        .unwrap();
        assert_eq!(std::mem::take(&mut self.events), [Event::Joined]);
        assert_eq!(self.session.occupants(), 3);
    }
}

#[test]
fn it_joins_as_conversejs_does_and_fetches_the_pictures_of_whom_it_shows() {
    for (policy, expect) in
        [(VcardPolicy::All, 4), (VcardPolicy::Authors, 1), (VcardPolicy::None, 0)]
    {
        let mut fixture = Fixture::new(config(policy));
        fixture.joined();
        let history = fixture.id_of("urn:xmpp:mam:2");
        fixture.receive(&format!(
            "<message from='{ROOM}' xmlns='jabber:client'><result xmlns='urn:xmpp:mam:2' queryid='q'><forwarded xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' stamp='2026-11-20T09:44:56Z'/><message xmlns='jabber:client' from='{ROOM}/Gone' type='groupchat'><body>t=1 hello</body></message></forwarded></result></message>"
        ));
        fixture.receive(&format!("<iq type='result' id='{history}' xmlns='jabber:client'><fin xmlns='urn:xmpp:mam:2' complete='true'/></iq>"));
        let asked: Vec<_> = fixture
            .sent
            .iter()
            .filter(|frame| frame.contains("vcard-temp") && frame.contains(&format!("{ROOM}/")))
            .collect();
        assert_eq!(asked.len(), expect, "{policy:?}: {asked:?}");
        if policy == VcardPolicy::All {
            assert!(asked.iter().any(|frame| frame.contains("O&apos;Hara")), "{asked:?}");
        }
        let said =
            Event::Said { nick: "Gone".to_owned(), body: "t=1 hello".to_owned(), is_old: true };
        assert_eq!(std::mem::take(&mut fixture.events), [said]);
        fixture.receive(&format!(
            "<message from='{ROOM}/Gone' type='groupchat' xmlns='jabber:client'><body>x</body><delay xmlns='urn:xmpp:delay'/></message>"
        ));
        assert!(fixture.session.authors.is_empty(), "the archive has been read");
    }
}

#[test]
fn messages_are_read_and_answered_requests_are_not_forgotten() {
    let mut fixture = Fixture::new(config(VcardPolicy::None));
    fixture.joined();
    fixture.session.say("5 < 6 & \"7\"");
    fixture.drain();
    assert!(
        fixture.last().contains("<body>5 &lt; 6 &amp; &quot;7&quot;</body>"),
        "{}",
        fixture.last()
    );
    fixture.receive(&format!("<message type='groupchat' from='{ROOM}/Ada' xmlns='jabber:client'><body>5 &lt; 6 &#38; more</body></message>"));
    fixture.receive(&format!("<message type='groupchat' from='{ROOM}/Ada' xmlns='jabber:client'><composing xmlns='http://jabber.org/protocol/chatstates'/></message>"));
    fixture.receive(&format!(
        "<message type='groupchat' from='{ROOM}' xmlns='jabber:client'><subject/></message>"
    ));
    let said =
        Event::Said { nick: "Ada".to_owned(), body: "5 < 6 & more".to_owned(), is_old: false };
    assert_eq!(fixture.events, [said]);
    fixture.receive("<iq type='get' id='srv1' from='anon.pt.localhost' xmlns='jabber:client'><ping xmlns='urn:xmpp:ping'/></iq>");
    assert!(
        fixture.last().contains(r#"id="srv1" to="anon.pt.localhost" type="result""#),
        "{}",
        fixture.last()
    );
    let traffic = fixture.session.take_traffic();
    assert_eq!((traffic.presences_received, traffic.frames_sent), (4, fixture.sent.len() as u64));
}

#[test]
fn a_silent_server_is_asked_for_a_sign_of_life_and_given_up() {
    let mut fixture = Fixture::new(config(VcardPolicy::None));
    fixture.joined();
    let (at, _) = fixture.session.next_timeout().unwrap();
    assert_eq!(at - fixture.now, Duration::from_secs(25));
    fixture.session.handle_timeout(at).unwrap();
    fixture.drain();
    let ping = fixture.id_of("urn:xmpp:ping");
    let (late, _) = fixture.session.next_timeout().unwrap();
    assert_eq!(late - at, Duration::from_secs(10));
    assert!(
        fixture
            .session
            .handle_timeout(late)
            .unwrap_err()
            .detail
            .contains("no answer to a ping within 10 s")
    );
    fixture.now = at;
    fixture.receive(&format!("<iq type='result' id='{ping}' xmlns='jabber:client'/>"));
    assert_eq!(
        fixture.session.next_timeout().map(|(next, _)| next - at),
        Some(Duration::from_secs(25))
    );
    let mut mute = Fixture::new(config(VcardPolicy::None));
    let (late, _) = mute.session.next_timeout().unwrap();
    assert!(
        mute.session.handle_timeout(late).unwrap_err().detail.starts_with("no stream features")
    );
}

#[test]
fn what_keeps_it_out_is_named() {
    for (error, reason, detail) in [
        ("<not-authorized xmlns='s'/>", FailureReason::Unauthorized, "needs a password"),
        ("<forbidden xmlns='s'/>", FailureReason::Unauthorized, "banned"),
        ("<item-not-found xmlns='s'/>", FailureReason::NoSuchRoom, "locked"),
        (
            "<service-unavailable xmlns='s'/><text>Full\u{1b}[2J</text>",
            FailureReason::RoomFull,
            "the room is full (service-unavailable): Full [2J",
        ),
        ("", FailureReason::Refused, "unknown"),
    ] {
        let mut fixture = Fixture::new(config(VcardPolicy::None));
        fixture.asks_to_join();
        let failure = fixture
            .presence("Anonymous 1", &format!("type='error'><error type='cancel'>{error}</error>"))
            .unwrap_err();
        assert!(failure.reason == reason && failure.detail.contains(detail), "{failure}");
    }
    for (more, reason) in [
        ("<status code='307'/>", FailureReason::Kicked),
        ("<status code='301'/>", FailureReason::Kicked),
        ("<status code='332'/>", FailureReason::RoomEnded),
        ("<destroy/>", FailureReason::RoomEnded),
    ] {
        let mut fixture = Fixture::new(config(VcardPolicy::None));
        fixture.joined();
        let x =
            format!("type='unavailable'><x xmlns='http://jabber.org/protocol/muc#user'>{more}</x>");
        assert_eq!(fixture.presence("Anonymous 1", &x).unwrap_err().reason, reason, "{more}");
    }
}

#[test]
fn a_nickname_that_is_taken_is_replaced_and_others_come_and_go() {
    let mut fixture = Fixture::new(config(VcardPolicy::None));
    fixture.asks_to_join();
    fixture
        .presence("Anonymous 1", "type='error'><error type='cancel'><conflict xmlns='s'/></error>")
        .unwrap();
    assert!(fixture.last().contains("/Anonymous 1-2\""), "{}", fixture.last());
    fixture
        .presence(
            "Anonymous 1-2",
            "><x xmlns='http://jabber.org/protocol/muc#user'><status code='110'/></x>",
        )
        .unwrap();
    assert_eq!(fixture.events, [Event::Joined]);
    fixture.presence("Ada", "><x/>").unwrap();
    fixture.presence("Ada", "type='unavailable'><x/>").unwrap();
    assert_eq!(fixture.session.occupants(), 0);
    fixture.session.leave();
    fixture.drain();
    assert!(fixture.last().starts_with("<close") && fixture.session.next_timeout().is_none());
}

#[test]
fn another_nickname_is_asked_for_until_one_is_free() {
    let mut fixture = Fixture::new(config(VcardPolicy::None));
    fixture.joined();
    fixture.session.change_nick("Grace");
    fixture.drain();
    assert!(fixture.last().contains(&format!("to=\"{ROOM}/Grace\"")), "{}", fixture.last());
    let conflict = "type='error'><error type='cancel'><conflict xmlns='s'/></error>";
    fixture.presence("Grace", conflict).unwrap();
    assert!(fixture.last().contains("/Grace-2\""), "{}", fixture.last());
    assert_eq!(
        (fixture.session.nick(), fixture.events.len()),
        ("Anonymous 1", 0),
        "it has the old one until then"
    );
    let x = |more: &str| format!("<x xmlns='http://jabber.org/protocol/muc#user'>{more}</x>");
    let gone = x("<item nick='Grace-2'/><status code='303'/><status code='110'/>");
    fixture.presence("Anonymous 1", &format!("type='unavailable'>{gone}")).unwrap();
    fixture.presence("Grace-2", &format!(">{}", x("<status code='110'/>"))).unwrap();
    assert_eq!(
        (std::mem::take(&mut fixture.events), fixture.session.nick()),
        (vec![Event::Renamed], "Grace-2")
    );
    assert_eq!(
        (fixture.session.occupants(), fixture.session.is_joined()),
        (3, true),
        "it is not one of the others"
    );
    // Others do the same: one goes, one comes.
    fixture
        .presence(
            "Ada",
            &format!("type='unavailable'>{}", x("<item nick='Ada L'/><status code='303'/>")),
        )
        .unwrap();
    fixture.presence("Ada L", "><x/>").unwrap();
    assert_eq!(fixture.session.occupants(), 3);
    // A room that does not allow it.
    fixture.session.change_nick("Eve");
    fixture
        .presence("Eve", "type='error'><error type='cancel'><not-acceptable xmlns='s'/></error>")
        .unwrap();
    let said = Event::Anomaly("the nickname was not changed: not-acceptable".to_owned());
    assert_eq!((fixture.events, fixture.session.nick()), (vec![said], "Grace-2"));
}

#[test]
fn a_server_that_does_not_know_the_password_is_told_from_one_that_breaks_the_protocol() {
    // "v=AAAA", no signature, text that is not Base64, and a challenge without a nonce.
    for (answer, expect) in [
        ("<success>dj1BQUFB</success>", FailureReason::Unauthorized),
        ("<success/>", FailureReason::Unauthorized),
        ("<success>!</success>", FailureReason::Protocol),
        ("<challenge>cz1RUT09</challenge>", FailureReason::Protocol),
    ] {
        assert_eq!(Fixture::after_scram(answer).unwrap_err().reason, expect, "{answer}");
    }
}

const MANAGED: &str = "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/><sm xmlns='urn:xmpp:sm:3'/></stream:features>";

impl Fixture {
    /// An account on a server that has stream management, up to where that is enabled.
    fn of_an_account(before: Option<Resumption>) -> Self {
        let password = throng_scenario::Secret::new("secret".to_owned());
        let credentials = Some(Credentials { username: "ada".to_owned(), password });
        let mut fixture =
            Self::after(XmppConfig { credentials, ..config(VcardPolicy::None) }, before);
        fixture.receive(
            "<stream:features><mechanisms><mechanism>PLAIN</mechanism></mechanisms></stream:features>",
        );
        fixture.receive("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>");
        fixture.receive(MANAGED);
        fixture
    }

    /// What follows when a server that offers SCRAM to an account answers with `answer`.
    fn after_scram(answer: &str) -> Result<(), Failure> {
        let password = throng_scenario::Secret::new("secret".to_owned());
        let credentials = Some(Credentials { username: "ada".to_owned(), password });
        let mut fixture = Self::new(XmppConfig { credentials, ..config(VcardPolicy::None) });
        let mechanisms = "<mechanisms><mechanism>SCRAM-SHA-1</mechanism></mechanisms>";
        fixture.receive(&format!("<stream:features>{mechanisms}</stream:features>"));
        fixture.try_receive(answer)
    }

    fn managed(&mut self) {
        self.result("bind", "<bind><jid>ada@pt.localhost/Y</jid></bind>");
        self.result("session", "");
        assert_eq!(self.last(), r#"<enable resume="true" xmlns="urn:xmpp:sm:3"/>"#);
        self.receive("<enabled xmlns='urn:xmpp:sm:3' id='s7&amp;' resume='true'/>");
    }

    fn said_late(&mut self, body: &str) {
        self.receive(&format!("<message type='groupchat' from='{ROOM}/Ada'><body>{body}</body><delay xmlns='urn:xmpp:delay' stamp='2026-11-20T09:44:56Z'/></message>"));
    }
}

#[test]
fn what_was_received_is_acknowledged_and_each_fifth_stanza_asks_for_the_same() {
    let mut fixture = Fixture::of_an_account(None);
    fixture.managed();
    let after: Vec<&str> = fixture.sent.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(after[0], r#"<r xmlns="urn:xmpp:sm:3"/>"#, "the fifth was {}", after[1]);
    fixture.receive("<r xmlns='urn:xmpp:sm:3'/>");
    assert_eq!(fixture.last(), r#"<a h="0" xmlns="urn:xmpp:sm:3"/>"#);
    fixture.receive("<message xmlns='jabber:client'/>");
    fixture.receive("<presence xmlns='jabber:client'/>");
    fixture.receive("<r xmlns='urn:xmpp:sm:3'/>");
    assert_eq!(fixture.last(), r#"<a h="2" xmlns="urn:xmpp:sm:3"/>"#);
    fixture.receive("<a xmlns='urn:xmpp:sm:3' h='4'/>");
    assert!(fixture.events.is_empty());
    fixture.receive("<a xmlns='urn:xmpp:sm:3' h='400'/>");
    assert!(
        matches!(&fixture.events[..], [Event::Anomaly(what)] if what.contains("of 396 stanzas, of which 1 were sent")),
        "{:?}",
        fixture.events
    );
}

#[test]
fn a_stream_goes_on_over_another_connection_and_what_was_lost_is_sent_again() {
    let mut fixture = Fixture::of_an_account(None);
    fixture.managed();
    fixture.receive("<message xmlns='jabber:client'/>");
    fixture.receive("<a xmlns='urn:xmpp:sm:3' h='4'/>");
    let lost = fixture.sent.iter().rfind(|frame| frame.starts_with("<iq")).unwrap().clone();
    let before = fixture.session.resumption();
    let mut again = Fixture::of_an_account(before);
    assert_eq!(again.last(), r#"<resume h="1" previd="s7&amp;" xmlns="urn:xmpp:sm:3"/>"#);
    again.receive("<resumed xmlns='urn:xmpp:sm:3' h='4' previd='s7&amp;'/>");
    assert_eq!(std::mem::take(&mut again.events), [Event::Resumed]);
    let sent: Vec<&str> = again.sent.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(sent[1], lost);
    assert!(
        sent[0].contains("disco#info") && sent[0].contains("ada@pt.localhost/Y"),
        "{}",
        sent[0]
    );
    again.said_late("hello");
    let said = Event::Said { nick: "Ada".to_owned(), body: "hello".to_owned(), is_old: false };
    assert_eq!(std::mem::take(&mut again.events), [said], "late, and not of the archive");
    again.result("disco#info", "<query/>");
    assert!(again.last().contains("maxstanzas"), "it enters the room again: {}", again.last());
    again
        .presence(
            "Anonymous 1",
            "><x xmlns='http://jabber.org/protocol/muc#user'><status code='110'/></x>",
        )
        .unwrap();
    assert_eq!(again.events, [Event::Joined]);
    let enabled = again.sent.iter().filter(|frame| frame.starts_with("<enable")).count();
    assert_eq!((enabled, again.session.resumption().is_some()), (0, true));
}

#[test]
fn a_stream_that_the_server_has_forgotten_is_made_anew() {
    let mut fixture = Fixture::of_an_account(None);
    fixture.managed();
    let mut again = Fixture::of_an_account(fixture.session.resumption());
    again.receive("<failed xmlns='urn:xmpp:sm:3'><item-not-found xmlns='s'/></failed>");
    again.managed();
    again.said_late("hello");
    assert!(matches!(&again.events[..], [Event::Said { is_old: true, .. }]), "{:?}", again.events);
    // A connection that breaks before it has asked leaves the stream to the next one.
    let before = again.session.resumption();
    let mut early = Fixture::after(config(VcardPolicy::None), before.clone());
    assert_eq!(
        early.session.resumption(),
        None,
        "ConverseJS forgets the stream of an anonymous account"
    );
    early.receive("<resumed xmlns='urn:xmpp:sm:3' h='0' previd='s7'/>");
    assert!(early.events.is_empty(), "it was not asked for");
    // Whoever does not want it does not ask for it.
    let mut without =
        Fixture::new(XmppConfig { has_management: false, ..config(VcardPolicy::None) });
    without.receive(
        "<stream:features><mechanisms><mechanism>ANONYMOUS</mechanism></mechanisms></stream:features>",
    );
    without.receive("<success/>");
    without.receive(MANAGED);
    without.result("bind", "<bind><jid>w@h/Y</jid></bind>");
    without.result("session", "");
    assert!(without.last().contains("disco#info"), "{}", without.last());
}

#[test]
fn a_server_may_write_text_as_cdata() {
    let frame = "<message><body>1 &lt; 2<![CDATA[ & <b> &amp; ]]>&gt;<i/>3</body><x/></message>";
    let message = Element::read(frame).unwrap();
    let body = message.child("body").unwrap();
    assert_eq!(body.text(), "1 < 2 & <b> &amp; >");
    assert!(body.child("i").is_some() && message.child("x").is_some());
    assert_eq!(Element::read("<a><![CDATA[]]></a>").unwrap().text(), "");
}

#[test]
fn a_server_may_refer_to_another_one() {
    let mut fixture = Fixture::new(config(VcardPolicy::None));
    fixture.receive("<close xmlns='f' see-other-uri='wss://other/ws?a=1&amp;b'/>");
    assert_eq!(fixture.events, [Event::Moved("wss://other/ws?a=1&b".to_owned())]);
}

#[test]
fn errors_of_the_stream_are_failures() {
    for (frame, expect) in [
        ("<stream:error><host-unknown/></stream:error>", "stream error: host-unknown"),
        ("<close xmlns='f'/>", "the server closes the stream"),
        ("<message><body><![CDATA[a</body></message>", "ends in the middle"),
        ("<![CDATA[a]]><message/>", "not one element"),
        ("<message><!-- a --></message>", "does not allow"),
        ("<a><b></a>", "not well-formed"),
        ("hello", "not one element"),
        ("<!DOCTYPE lolz [<!ENTITY lol 'lol'>]><lolz>&lol;</lolz>", "does not allow"),
        ("<?xml version='1.0'?><open/>", "does not allow"),
        ("<open/><open/>", "not one element"),
        ("<a", "ends in the middle"),
        ("", "ends in the middle"),
    ] {
        let failure = Fixture::new(config(VcardPolicy::None)).try_receive(frame).unwrap_err();
        assert!(failure.detail.contains(expect), "{frame}: {failure}");
    }
    let deep = "<a>".repeat(40);
    let failure = Fixture::new(config(VcardPolicy::None)).try_receive(&deep).unwrap_err();
    assert!(failure.detail.contains("more than 32"), "{failure}");
    let mut refused = Fixture::new(config(VcardPolicy::None));
    let features =
        "<stream:features><mechanisms><mechanism>PLAIN</mechanism></mechanisms></stream:features>";
    let failure = refused.try_receive(features).unwrap_err();
    assert!(failure.detail.contains("offers PLAIN, and nothing for anonymous"), "{failure}");
}

proptest! {
    #[test]
    fn any_text_is_an_element_or_an_error(text in "[<>/ab='\" &;!?\\PC]{0,60}") {
        if let Ok(element) = Element::read(&text) {
            let _ = (element.attribute("a"), element.text(), element.children().count());
        }
    }

    #[test]
    fn what_is_escaped_is_read_back(text in "\\PC{0,40}", value in "\\PC{0,40}") {
        let safe = escaped(&text);
        prop_assert_eq!(unescaped(&safe), text.as_str());
        let frame = format!("<a b='{}'>{}<c/></a>", escaped(&value), escaped(&text));
        let element = Element::read(&frame).unwrap();
        prop_assert_eq!(element.attribute("b").map(unescaped).unwrap_or_default(), value.as_str());
        prop_assert_eq!(element.text(), text.as_str());
        prop_assert_eq!(element.children().map(|child| child.name).collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn a_session_survives_any_frames(frames in proptest::collection::vec("<(iq|message|presence|stream:features|success|challenge|open)( (id|from|type)='[a-z@/0-9_]{0,9}'){0,3}>(<(x|body|bind|jid|status)/>){0,3}</(iq|message|presence|open)>", 0..12)) {
        let mut fixture = Fixture::new(config(VcardPolicy::All));
        for frame in frames {
            let _ = fixture.try_receive(&frame);
        }
    }
}
