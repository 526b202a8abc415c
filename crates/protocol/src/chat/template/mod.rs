//! A chat that the scenario describes: its messages are texts with variables, and answers are
//! recognised by what is in them.

use std::sync::Arc;
use std::time::Duration;

use throng_observation::masked::HIDDEN;
use throng_observation::percent::{decoded, encoded};
use throng_scenario::{ChatTemplate, ChatText, ChatVariable, Secret};

use crate::excerpt;
use crate::participant::KeptPath;

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

/// A path of the template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilledPath {
    /// Path and query, with the values of their variables.
    pub(super) whole: String,
    /// What is kept of it, where it has the token.
    pub(super) kept: Option<KeptPath>,
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
            ChatVariable::Room => self.template.room.written(),
            ChatVariable::Token => self.token.as_ref().map_or("", |token| token.expose()),
            ChatVariable::Text | ChatVariable::Rest => with,
        })
    }

    /// What a server said, without the token as it is and as it is in paths.
    pub(super) fn without_token(&self, said: &str) -> String {
        let Some(token) = &self.token else { return said.to_owned() };
        let escaped = encoded(token.expose().as_bytes());
        excerpt::without(said, [escaped.as_str(), token.expose()])
    }

    /// What is kept of a path that a server has chosen, where it has the token.
    pub(super) fn kept_of(&self, path: &str) -> Option<KeptPath> {
        let without = self.without_token(path);
        // Servers escape more or less than they have to.
        let shown = |segment| {
            let plain = decoded(segment);
            if self.without_token(&plain) == plain { segment } else { HIDDEN }
        };
        let kept = without.split('/').map(shown).collect::<Vec<_>>().join("/");
        (kept != path).then_some(KeptPath(kept))
    }

    /// A path, in which values are escaped.
    pub(super) fn path(&self, text: &ChatText, nick: &str) -> FilledPath {
        let (nick, number, room) = (
            encoded(nick.as_bytes()),
            self.number.to_string(),
            encoded(self.template.room.written().as_bytes()),
        );
        let token = encoded(self.token.as_ref().map_or("", |token| token.expose()).as_bytes());
        let filled = |token: &str| {
            text.filled(|variable| match variable {
                ChatVariable::Nick => &nick,
                ChatVariable::Number => &number,
                ChatVariable::Room => &room,
                ChatVariable::Token => token,
                ChatVariable::Text | ChatVariable::Rest => "",
            })
        };
        let kept = text.has(ChatVariable::Token).then(|| filled(HIDDEN));
        let kept = kept.and_then(|kept| Some(KeptPath(kept.split('?').next()?.to_owned())));
        FilledPath { whole: filled(&token), kept }
    }
}
