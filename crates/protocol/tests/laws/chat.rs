//! Chats: a member whose server sends any frames, a line each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_observation::{Observation, Url};
use throng_protocol::chat::template::TemplateConfig;
use throng_protocol::chat::xmpp::{Credentials, XmppConfig};
use throng_protocol::chat::{Config, Member, Protocol, Rename, RoomLog};
use throng_protocol::participant::{ChannelError, Input, Message, Opening, Output, Participant};
use throng_protocol::signalling::SIGNALLING;
use throng_protocol::webrtc::{ParticipantOptions, StepTimeouts};
use throng_scenario::{ChatConfig, ChatTemplate, Scenario, Secret, VcardPolicy};

/// Frames of one input beyond which it would flood the server.
const FRAMES_MAX: usize = 300;

/// `@id@` in a frame is the id of the latest request, and the line `@cut@` breaks the connection.
/// The member ends at most once, answers a bounded number of frames, its deadlines are not in the
/// past, and what it sends of what the server said is escaped.
pub(crate) fn chat(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let account =
        Credentials { username: "ada".to_owned(), password: Secret::new("secret".to_owned()) };
    session(&text, true, xmpp(None, VcardPolicy::Authors));
    session(&text, true, xmpp(Some(account), VcardPolicy::All));
    if let Some(template) = template() {
        session(&text, false, template);
    }
}

fn xmpp(credentials: Option<Credentials>, vcards: VcardPolicy) -> Protocol {
    Protocol::Xmpp(Box::new(XmppConfig {
        domain: "h".to_owned(),
        credentials,
        room: "stage@room.h".to_owned(),
        nick: "ada".to_owned(),
        vcards,
        history_max: 50,
        has_chat_states: true,
        has_management: true,
        answer_within: Duration::from_secs(10),
    }))
}

fn template() -> Option<Protocol> {
    let file = r##"
[target]
url = "chat+ws://127.0.0.1/irc"
[crowd]
size = 1
[crowd.chat.template]
room = "stage"
join = [{ send = "NICK {nick}", expect = " 001 " }, { send = "JOIN #{room}", expect = " 366 *#{room}" }]
say = "PRIVMSG #{room} :{text}"
pong = { on = "PING", send = "PONG{rest}" }
nick_taken = " 433 "
refused = ["ERROR "]
kicked = " KICK #{room} {nick} "
[run]
duration = "20s"
"##;
    let template: ChatTemplate =
        Scenario::parse(file).ok()?.crowd.first()?.role.clone()?.chat.template?;
    Some(Protocol::Template(TemplateConfig {
        template: Arc::new(template),
        nick: "ada".to_owned(),
        number: 1,
        token: None,
        answer_within: Duration::from_secs(10),
        has_event_stream: false,
    }))
}

fn session(text: &str, is_xml: bool, protocol: Protocol) {
    let Ok(url) = Url::parse("ws://127.0.0.1/x") else { return };
    let now = Instant::now();
    let config = Config {
        url,
        protocol,
        chat: ChatConfig { every: Some(Duration::from_secs(2)), ..ChatConfig::default() },
        mark: "k3f9".to_owned(),
        log: RoomLog::default(),
        rename: Some(Rename { nick: "grace".to_owned(), after: Duration::from_secs(1) }),
        speech_seed: 1,
    };
    let options = ParticipantOptions {
        may_reach: Arc::new(|_, to| to.ip().is_loopback()),
        clock: WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 },
        toward: None,
        seed: 1,
        timeouts: StepTimeouts::default(),
        is_tapped: false,
        relay_only: false,
        stun: None,
        turn: None,
    };
    let mut fixture = Fixture {
        member: Member::new(config, options),
        now,
        is_xml,
        id: String::new(),
        opens: false,
    };
    if fixture.input(Input::Start { intended_at: now }).is_none() {
        return;
    }
    for line in text.lines() {
        if fixture.frame(line).is_none() {
            return;
        }
    }
    assert!(fixture.input(Input::Leave { others_follow: false }).is_none(), "it does not leave");
}

struct Fixture {
    member: Member,
    now: Instant,
    is_xml: bool,
    /// The id of the latest request.
    id: String,
    /// It wants a connection.
    opens: bool,
}

impl Fixture {
    /// `None` when it has ended.
    fn frame(&mut self, line: &str) -> Option<()> {
        self.now += Duration::from_millis(500);
        if self.opens {
            self.opens = false;
            self.input(Input::Opened { channel: SIGNALLING, opening: Opening::default() })?;
        }
        if line == "@cut@" {
            let why = ChannelError::ClosedByPeer(None);
            self.input(Input::Closed { channel: SIGNALLING, why })?;
            self.now += Duration::from_secs(4);
            return self.input(Input::Timeout);
        }
        let message = Message::Text(line.replace("@id@", &self.id));
        self.input(Input::Message { channel: SIGNALLING, message })
    }

    fn input(&mut self, input: Input<'_>) -> Option<()> {
        self.member.handle(self.now, input);
        let mut frames = 0;
        loop {
            match self.member.poll_output(self.now) {
                Output::Open(..) => self.opens = true,
                Output::Signal(_, Message::Text(frame)) => {
                    frames += 1;
                    assert!(frames < FRAMES_MAX, "a flood of frames");
                    self.sent(&frame);
                }
                Output::Signal(_, Message::Binary(_)) => panic!("a binary frame"),
                Output::Observed(Observation::ProtocolAnomaly { detail, .. }) => {
                    assert!(detail.len() < 4_000, "a long detail: {detail}");
                }
                Output::Ended(_) => return None,
                Output::Timeout(at, why) => {
                    assert!(at > self.now, "a deadline in the past: {why}");
                    return Some(());
                }
                _ => {}
            }
        }
    }

    /// Names, ids and texts of the server cannot make another element of what is sent.
    fn sent(&mut self, frame: &str) {
        if !self.is_xml {
            return;
        }
        let count = |sign: char| frame.matches(sign).count();
        assert!(
            count('<') == count('>') && count('"').is_multiple_of(2) && count('\'') == 0,
            "{frame}"
        );
        if let Some(id) = frame.split(" id=\"").nth(1).and_then(|rest| rest.split('"').next()) {
            id.clone_into(&mut self.id);
        }
    }
}
