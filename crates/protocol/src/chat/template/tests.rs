//! Chats in the words of IRC and of a server that speaks JSON; and servers that answer wrongly, too
//! much, or not at all.

use std::time::Instant;

use throng_observation::{Failure, FailureReason};
use throng_scenario::Scenario;

use super::*;
use crate::chat::Protocol;
use crate::chat::session::{Event, Incoming, Outgoing, Session as _};
use crate::participant::Message;

const IRC: &str = r##"
room = "stage"
join = [{ send = "NICK {nick}\r\nUSER {nick} 0 * :{n}", expect = " 001 " }, "MODE {nick} +B", { send = "JOIN #{room}", expect = " 366 *#{room} " }]
say = "PRIVMSG #{room} :{text}"
pong = { on = "PING", send = "PONG{rest}" }
keep_alive = { every = "25s", send = "PING throng", expect = "PONG" }
nick_taken = " 433 "
refused = [" 474 ", "ERROR "]
kicked = " KICK #{room} {nick} "
leave = "QUIT""##;

const JSON: &str = r#"
join = [{ send = '{"join":"{room}","as":"{nick}","token":"{token}"}', expect = '"joined"' }]
say = '{"say":"{text}"}'
binary = true"#;

/// A connection whose server the test is.
struct Fixture {
    chat: Template,
    now: Instant,
    sent: Vec<String>,
    events: Vec<Event>,
}

fn config(template: &str) -> TemplateConfig {
    let file = format!(
        "[target]\nurl = \"chat+ws://h/irc\"\n[crowd]\nsize = 1\n[crowd.chat.template]{template}\n[run]\nduration = \"20s\"\n"
    );
    let scenario = Scenario::parse(&file).unwrap_or_else(|error| panic!("{error}"));
    let template = scenario.crowd[0].role.clone().unwrap().chat.template.unwrap();
    TemplateConfig {
        template: Arc::new(template),
        nick: "ada".to_owned(),
        number: 7,
        token: Some(Secret::new("hush".to_owned())),
        answer_within: Duration::from_secs(10),
        has_event_stream: false,
    }
}

impl Fixture {
    fn new(template: &str) -> Self {
        let (mut chat, now) = (Template::new(config(template)), Instant::now());
        let events = chat.opened(now);
        let mut fixture = Self { chat, now, sent: Vec::new(), events };
        fixture.drain();
        fixture
    }

    fn drain(&mut self) {
        self.sent.extend(std::iter::from_fn(|| self.chat.poll_send()).map(
            |message| match message {
                Outgoing::Frame(Message::Text(text)) => text,
                Outgoing::Frame(Message::Binary(bytes)) => {
                    format!("binary {}", String::from_utf8(bytes).unwrap())
                }
                Outgoing::Post(post) => panic!("{post:?}"),
            },
        ));
    }

    fn try_receive(&mut self, text: &str) -> Result<(), Failure> {
        let events =
            self.chat.receive(self.now, Incoming::Frame(Message::Text(text.to_owned())))?;
        self.events.extend(events.into_iter().filter(|event| !matches!(event, Event::Heard(_))));
        self.drain();
        Ok(())
    }

    fn receive(&mut self, text: &str) {
        self.try_receive(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
    }

    fn last(&self) -> &str {
        self.sent.last().map_or("", String::as_str)
    }

    fn joined() -> Self {
        let mut fixture = Self::new(IRC);
        fixture.receive(":h 001 ada :Welcome");
        fixture.receive(":h 366 ada #stage :End of /NAMES list.");
        assert!(fixture.chat.is_joined());
        fixture
    }

    fn wait(&mut self, seconds: u64) -> Result<(), Failure> {
        self.now += Duration::from_secs(seconds);
        let result = self.chat.handle_timeout(self.now);
        self.drain();
        result
    }
}

#[test]
fn a_join_goes_on_with_each_answer_and_several_lines_may_come_at_once() {
    let mut fixture = Fixture::new(IRC);
    assert_eq!(fixture.sent, ["NICK ada\r\nUSER ada 0 * :7"]);
    fixture.receive("PING :abc");
    assert_eq!(fixture.last(), "PONG :abc");
    fixture.receive(":h 366 ada #stage :not asked yet");
    assert!(!fixture.chat.is_joined());
    fixture.receive(":h NOTICE * :look\r\n:h 001 ada :Welcome\r\n:h 002 ada :host\r\n");
    assert_eq!(fixture.sent[2..], ["MODE ada +B", "JOIN #stage"]);
    fixture.receive(":h 366 ada #stagecoach :another room");
    assert!(!fixture.chat.is_joined() && fixture.events.is_empty());
    fixture.receive(":h 353 ada = #stage :ada\r\n:h 366 ada #stage :End");
    assert_eq!((fixture.chat.is_joined(), &fixture.events[..]), (true, &[Event::Joined][..]));
    fixture.chat.say("hello [k3f9.1]");
    fixture.chat.leave();
    fixture.drain();
    assert_eq!(fixture.sent[4..], ["PRIVMSG #stage :hello [k3f9.1]", "QUIT"]);
    let traffic = fixture.chat.take_traffic();
    assert_eq!((traffic.frames_sent, traffic.frames_received), (fixture.sent.len() as u64, 5));
}

#[test]
fn json_is_written_as_it_is_and_a_chat_without_answers_is_joined_at_once() {
    let mut fixture = Fixture::new(JSON);
    assert_eq!(fixture.sent, [r#"binary {"join":"throng","as":"ada","token":"hush"}"#]);
    let joined = Incoming::Frame(Message::Binary(br#"{"type":"joined"}"#.to_vec()));
    let events = fixture.chat.receive(fixture.now, joined).unwrap();
    assert_eq!(events, [Event::Joined, Event::Heard(r#"{"type":"joined"}"#.to_owned())]);
    let at_once = Fixture::new("\njoin = [\"HELLO\"]\nsay = \"{text}\"");
    assert_eq!((at_once.events, at_once.sent), (vec![Event::Joined], vec!["HELLO".to_owned()]));
}

#[test]
fn a_nickname_that_is_taken_is_replaced_until_five_were_tried() {
    let mut fixture = Fixture::new(IRC);
    for tried in 2..=5 {
        fixture.receive(":h 433 * ada :Nickname is already in use.");
        assert_eq!(fixture.last(), format!("NICK ada-{tried}\r\nUSER ada-{tried} 0 * :7"));
    }
    assert_eq!(fixture.chat.nick(), "ada-5");
    let failure = fixture.try_receive(":h 433 * ada-5 :Nickname is already in use.").unwrap_err();
    assert!(failure.detail.contains("all nicknames that were tried are taken"), "{failure}");
}

#[test]
fn who_is_refused_or_put_out_has_failed_and_it_is_said_in_the_servers_words() {
    for (line, detail) in [
        (
            ":h 474 ada #stage :Cannot join (+b)\u{1b}[2J",
            "refused: :h 474 ada #stage :Cannot join (+b) [2J",
        ),
        ("ERROR :Closing link", "refused: ERROR :Closing link"),
    ] {
        let mut fixture = Fixture::new(IRC);
        let failure = fixture.try_receive(line).unwrap_err();
        assert_eq!((&failure.reason, failure.detail.as_str()), (&FailureReason::Refused, detail));
        assert!(fixture.chat.is_final(&failure));
    }
    let mut fixture = Fixture::joined();
    fixture.receive(":x PRIVMSG #stage :what does ERROR 474 mean?");
    fixture.receive(":op KICK #stage eve :another one");
    let failure = fixture.try_receive(":op KICK #stage ada :flood").unwrap_err();
    assert_eq!(failure.reason, FailureReason::Kicked);
    assert!(
        failure.detail.contains("removed from the room: :op KICK #stage ada :flood"),
        "{failure}"
    );
}

#[test]
fn what_a_server_repeats_of_the_token_is_not_told() {
    for (mut fixture, line) in [
        (Fixture::new(IRC), "ERROR :bad password hush"),
        (Fixture::joined(), ":op KICK #stage ada :hush is over"),
    ] {
        let failure = fixture.try_receive(line).unwrap_err();
        assert!(failure.detail.ends_with(&line.replace("hush", "…")), "{failure}");
    }
    let words = "\njoin = [{ send = \"a\", expect = 'token=S3CRET' }]\nsay = \"{text}\"";
    let failure = Fixture::new(words).wait(10).unwrap_err();
    assert!(failure.detail.contains("no `token=…` within"), "{failure}");
}

#[test]
fn a_subprotocol_may_be_the_token() {
    let words = "\njoin = []\nsay = \"{text}\"\nsubprotocols = [\"access_token\", \"{token}\"]";
    assert_eq!(Protocol::Template(config(words)).subprotocols(), ["access_token", "hush"]);
}

#[test]
fn a_path_with_the_token_is_kept_without_it() {
    let config = config(JSON);
    let variables = [ChatVariable::Nick, ChatVariable::Room, ChatVariable::Token];
    for (path, whole, kept) in [
        ("/{token}/{room}?as={nick}", "/hush/throng?as=ada", Some("/…/throng")),
        ("/{room}?as={token}", "/throng?as=hush", Some("/throng")),
        ("/{room}?as={nick}", "/throng?as=ada", None),
    ] {
        let filled = config.path(&ChatText::parse(path, &variables).unwrap(), "ada");
        let kept = kept.map(|kept| KeptPath(kept.to_owned()));
        assert_eq!(filled, FilledPath { whole: whole.to_owned(), kept });
    }
}

#[test]
fn the_token_is_not_repeated_as_it_is_nor_as_it_is_in_a_path() {
    let mut config = config(JSON);
    config.token = Some(Secret::new("a b/c==".to_owned()));
    for (said, shown) in [
        ("bad token a b/c==", "bad token …"),
        ("no /a%20b%2Fc%3D%3D/events", "no /…/events"),
        ("no a b/c", "no a b/c"),
    ] {
        assert_eq!(config.without_token(said), shown);
    }
}

#[test]
fn silence_is_named_by_what_was_awaited_and_a_flood_does_not_prolong_it() {
    let mut fixture = Fixture::new(IRC);
    fixture.receive(":h 001 ada :Welcome");
    for _ in 0..10_000 {
        fixture.receive(":h 372 ada :- motd");
    }
    fixture.wait(9).unwrap();
    let failure = fixture.wait(1).unwrap_err();
    assert_eq!(failure.reason, FailureReason::SignallingTimeout);
    assert!(
        failure.detail.contains("no ` 366 *#stage ` within 10 s after message 3 of the join")
            || failure.detail.contains("no `366 *#stage`"),
        "{failure}"
    );
    assert!(!fixture.chat.is_final(&failure), "it connects again");
    assert!(fixture.sent.len() < 5, "a flood is not answered");
}

#[test]
fn signs_of_life_are_sent_and_an_answer_that_does_not_come_breaks_the_connection() {
    let mut fixture = Fixture::joined();
    let (at, _) = fixture.chat.next_timeout().unwrap();
    assert_eq!(at - fixture.now, Duration::from_secs(25));
    fixture.wait(25).unwrap();
    assert_eq!(fixture.last(), "PING throng");
    fixture.receive(":h PONG h :throng");
    fixture.wait(25).unwrap();
    fixture.receive(":x PRIVMSG #stage :not an answer");
    let failure = fixture.wait(10).unwrap_err();
    assert!(failure.detail.contains("no answer to a keep-alive message within 10 s"), "{failure}");
}

#[test]
fn binary_messages_are_an_error_where_the_template_says_text_and_where_they_are_none() {
    let mut fixture = Fixture::joined();
    let failure =
        fixture.chat.receive(fixture.now, Incoming::Frame(Message::Binary(vec![1]))).unwrap_err();
    assert!(
        failure.reason == FailureReason::Protocol && failure.detail.contains("binary = true"),
        "{failure}"
    );
    let mut json = Fixture::new(JSON);
    let failure = json
        .chat
        .receive(json.now, Incoming::Frame(Message::Binary(vec![0xff, 0xfe])))
        .unwrap_err();
    assert!(failure.detail.contains("not text in UTF-8"), "{failure}");
}
