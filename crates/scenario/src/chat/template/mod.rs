//! A chat that a scenario describes: what its participants send, and by what they recognise the
//! answers.

use std::fmt;
use std::time::Duration;

use crate::masked::masked_text;
use crate::secret::HIDDEN;
use crate::suggestion::nearest;

mod http;
mod keys;
#[cfg(test)]
mod keys_tests;
mod parts;
mod words;

/// A chat over WebSocket, or over server-sent events and requests, in the words of its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatTemplate {
    /// `{room}`.
    pub room: ChatText,
    /// `Sec-WebSocket-Protocol`, in order of preference.
    pub subprotocols: Vec<ChatText>,
    /// How a participant joins.
    pub join: Vec<JoinStep>,
    /// How it says something.
    pub say: ChatText,
    /// How it answers the server's signs of life.
    pub pong: Option<Pong>,
    /// Its own signs of life.
    pub keep_alive: Option<KeepAlive>,
    /// The server says that the nickname is taken: another one is tried.
    pub nick_taken: Option<ChatText>,
    /// The server does not let it in.
    pub refused: Vec<ChatText>,
    /// The server has put it out.
    pub kicked: Vec<ChatText>,
    /// What it sends when it leaves.
    pub leave: Option<ChatText>,
    /// Messages of the WebSocket are binary.
    pub binary: bool,
    /// The server sends what somebody says to its author too.
    pub echo: bool,
    /// Where things are, on a server of server-sent events.
    pub http: ChatHttp,
}

/// The requests of a chat over server-sent events. Paths are on the target's server, and may have
/// variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatHttp {
    /// The path of the event stream; `None`: that of the target's URL.
    pub stream: Option<ChatText>,
    /// Where what is said goes, and all that has no path of its own; `None`: the target's URL.
    pub post: Option<ChatText>,
    /// Where the message of who leaves goes.
    pub leave: Option<ChatText>,
    /// Where own signs of life go.
    pub keep_alive: Option<ChatText>,
    /// Where answers to the server's signs of life go.
    pub pong: Option<ChatText>,
    /// `Content-Type` of what is sent; `None`: text.
    pub content_type: Option<ChatText>,
    /// Further headers of all requests to the target's server.
    pub headers: Vec<(String, ChatText)>,
    /// The server sends after `Last-Event-ID` what was said while the stream was broken.
    pub replay: bool,
}

impl Default for ChatTemplate {
    /// Who says what is to be said as it is, and waits for nothing.
    fn default() -> Self {
        let say = ChatText {
            written: "{text}".to_owned(),
            parts: vec![Part::Variable(ChatVariable::Text)],
        };
        Self {
            room: ChatText::plain("throng"),
            subprotocols: Vec::new(),
            join: Vec::new(),
            say,
            pong: None,
            keep_alive: None,
            nick_taken: None,
            refused: Vec::new(),
            kicked: Vec::new(),
            leave: None,
            binary: false,
            echo: true,
            http: ChatHttp::default(),
        }
    }
}

/// A message of a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinStep {
    /// What is sent.
    pub send: ChatText,
    /// Where, on a server of server-sent events; `None`: where what is said goes.
    pub path: Option<ChatText>,
    /// What the server has to answer before the next message is sent.
    pub expect: Option<ChatText>,
}

/// An answer to a sign of life that the server wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pong {
    /// The beginning of a line that asks for it.
    pub on: ChatText,
    /// The answer.
    pub send: ChatText,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Time between two of them.
    pub every: Duration,
    /// What is sent.
    pub send: ChatText,
    /// What the server has to answer.
    pub expect: Option<ChatText>,
}

/// A variable of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatVariable {
    /// `{nick}`: the participant's nickname.
    Nick,
    /// `{n}`: its number.
    Number,
    /// `{room}`: the room of the template.
    Room,
    /// `{token}`: the token of the target.
    Token,
    /// `{text}`: what is said.
    Text,
    /// `{rest}`: what follows in the line that asks for a sign of life.
    Rest,
}

impl ChatVariable {
    const ALL: [Self; 6] =
        [Self::Nick, Self::Number, Self::Room, Self::Token, Self::Text, Self::Rest];

    fn word(self) -> &'static str {
        match self {
            Self::Nick => "nick",
            Self::Number => "n",
            Self::Room => "room",
            Self::Token => "token",
            Self::Text => "text",
            Self::Rest => "rest",
        }
    }

    /// Whether a word in braces is one.
    pub(crate) fn is_word(word: &str) -> bool {
        Self::ALL.into_iter().any(|variable| variable.word() == word)
    }
}

/// A text with variables, in parts. Other braces are text, so that JSON can be written as it is.
/// `Display` prints it without what may be a secret, `Debug` prints nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatText {
    written: String,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(ChatVariable),
}

/// Why a text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{{{word}}}` is {why}")]
pub struct ChatTextError {
    word: String,
    why: &'static str,
    /// What to write.
    pub help: String,
}

impl ChatText {
    /// Reads a text, in which `allowed` have a value.
    ///
    /// # Errors
    /// When it has a word in braces that is no variable, or one that has no value there.
    pub fn parse(written: &str, allowed: &[ChatVariable]) -> Result<Self, ChatTextError> {
        let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), written);
        while let Some(at) = rest.find('{') {
            let (before, braced) = rest.split_at(at);
            text.push_str(before);
            let inside = braced.get(1..).unwrap_or_default();
            let word_len = inside.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(inside.len());
            let (word, after) = inside.split_at(word_len);
            match after.strip_prefix('}').filter(|_| !word.is_empty()) {
                Some(after) => {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                    parts.push(Part::Variable(variable(word, allowed)?));
                    rest = after;
                }
                None => {
                    text.push('{');
                    rest = inside;
                }
            }
        }
        text.push_str(rest);
        parts.push(Part::Text(text));
        parts.retain(|part| *part != Part::Text(String::new()));
        Ok(Self { written: written.to_owned(), parts })
    }

    /// A text without variables.
    fn plain(text: &str) -> Self {
        Self { written: text.to_owned(), parts: vec![Part::Text(text.to_owned())] }
    }

    /// As in the scenario, for the server only: it may have a secret.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether `variable` is in it.
    #[must_use]
    pub fn has(&self, variable: ChatVariable) -> bool {
        self.parts.contains(&Part::Variable(variable))
    }

    /// The text with the values of its variables.
    #[must_use]
    pub fn filled<'a>(&'a self, value: impl Fn(ChatVariable) -> &'a str) -> String {
        let text = |part: &'a Part| match part {
            Part::Text(text) => text.as_str(),
            Part::Variable(variable) => value(*variable),
        };
        self.parts.iter().map(text).collect()
    }
}

impl fmt::Display for ChatText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked_text(&self.written))
    }
}

impl fmt::Debug for ChatText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// The variable of this name, if it is one of `allowed`.
fn variable(word: &str, allowed: &[ChatVariable]) -> Result<ChatVariable, ChatTextError> {
    let words = || allowed.iter().map(|variable| variable.word());
    let known = ChatVariable::ALL.into_iter().find(|variable| variable.word() == word);
    let why = match known {
        Some(variable) if allowed.contains(&variable) => return Ok(variable),
        Some(_) => "not known here",
        None => "no variable",
    };
    let help = match nearest(word, words()) {
        Some(near) => format!("did you mean `{{{near}}}`?"),
        None => {
            let all: Vec<_> = words().map(|word| format!("`{{{word}}}`")).collect();
            format!("variables are {}", all.join(", "))
        }
    };
    Err(ChatTextError { word: word.chars().take(40).collect(), why, help })
}

/// Whether `pattern` is in `line`: its parts between `*` in their order.
#[must_use]
pub fn is_in(pattern: &str, line: &str) -> bool {
    let mut rest = Some(line);
    for part in pattern.split('*') {
        rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
    }
    rest.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[ChatVariable] = &ChatVariable::ALL;

    fn filled(text: &str) -> String {
        let text = ChatText::parse(text, ALL).unwrap();
        text.filled(|variable| variable.word())
    }

    #[test]
    fn variables_are_replaced_and_other_braces_are_text() {
        for (text, expect) in [
            ("PRIVMSG #{room} :{text}", "PRIVMSG #room :text"),
            (r#"{"type":"say","text":"{text}"}"#, r#"{"type":"say","text":"text"}"#),
            ("{nick}{n}", "nickn"),
            ("{ nick } {} {", "{ nick } {} {"),
            ("{{nick}}", "{nick}"),
            ("é{room}é", "éroomé"),
            ("", ""),
        ] {
            assert_eq!(filled(text), expect, "{text}");
        }
        let text = ChatText::parse("NICK {nick}", ALL).unwrap();
        assert!(text.has(ChatVariable::Nick) && !text.has(ChatVariable::Room));
        assert_eq!(text.written(), "NICK {nick}");
    }

    #[test]
    fn a_word_that_is_no_variable_is_named_with_the_nearest_one() {
        let error = |text: &str| {
            let error =
                ChatText::parse(text, &[ChatVariable::Nick, ChatVariable::Room]).unwrap_err();
            format!("{error}; {}", error.help)
        };
        assert_eq!(error("NICK {nik}"), "`{nik}` is no variable; did you mean `{nick}`?");
        assert_eq!(error("{text}"), "`{text}` is not known here; variables are `{nick}`, `{room}`");
        assert_eq!(
            error("{password}"),
            "`{password}` is no variable; variables are `{nick}`, `{room}`"
        );
    }

    #[test]
    fn a_pattern_is_contained_and_a_star_stands_for_anything() {
        for (pattern, line, expect) in [
            (" 001 ", ":irc.example 001 a :Welcome", true),
            (" 366 *#stage ", ":irc.example 366 a #stage :End", true),
            (" 366 *#other ", ":irc.example 366 a #stage :End", false),
            ("b*a", "a b", false),
            ("", "x", true),
            ("*", "", true),
            ("x", "", false),
        ] {
            assert_eq!(is_in(pattern, line), expect, "{pattern} in {line}");
        }
    }
}
