//! A chat that the scenario describes: its messages are texts with variables, and answers are
//! recognised by what is in them.

use std::sync::Arc;
use std::time::Duration;

use throng_scenario::{ChatTemplate, ChatText, ChatVariable, Secret};

mod session;

#[cfg(test)]
mod tests;

pub(super) use session::Template;

/// A participant of such a chat.
#[derive(Clone, Debug)]
pub struct TemplateConfig {
    /// The words of the protocol.
    pub template: Arc<ChatTemplate>,
    /// `{nick}`.
    pub nick: String,
    /// `{n}`.
    pub number: u32,
    /// `{token}`.
    pub token: Option<Secret>,
    /// How long each answer may take.
    pub answer_within: Duration,
    /// It hears by an event stream and says things by requests; else both by a WebSocket.
    pub has_event_stream: bool,
}

impl TemplateConfig {
    /// A text with the values of its variables, as `nick`; `with`: what is said, or the rest of a
    /// line.
    pub(super) fn filled(&self, text: &ChatText, nick: &str, with: &str) -> String {
        let number =
            if text.has(ChatVariable::Number) { self.number.to_string() } else { String::new() };
        text.filled(|variable| match variable {
            ChatVariable::Nick => nick,
            ChatVariable::Number => &number,
            ChatVariable::Room => &self.template.room,
            ChatVariable::Token => self.token.as_ref().map_or("", |token| token.expose()),
            ChatVariable::Text | ChatVariable::Rest => with,
        })
    }

    /// A path, in which values are escaped.
    pub(super) fn path(&self, text: &ChatText, nick: &str) -> String {
        let (nick, number, room) =
            (escaped(nick), self.number.to_string(), escaped(&self.template.room));
        let token = escaped(self.token.as_ref().map_or("", |token| token.expose()));
        text.filled(|variable| match variable {
            ChatVariable::Nick => &nick,
            ChatVariable::Number => &number,
            ChatVariable::Room => &room,
            ChatVariable::Token => &token,
            ChatVariable::Text | ChatVariable::Rest => "",
        })
    }
}

/// As one part of a path or of a query (RFC 3986 section 2.3).
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut url, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                url.push(char::from(byte));
            }
            // Writing to a String does not fail.
            _ => {
                let _ = write!(url, "%{byte:02X}");
            }
        }
        url
    })
}
