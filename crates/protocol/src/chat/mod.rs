//! Participants of a chat: they join a room, read all that is said in it, and say something now and
//! then.
//!
//! ```text
//! participant ── connects again when the connection breaks, measures
//!   ├─ wire       a WebSocket, or event_stream/ and requests
//!   ├─ session    what it needs of a protocol: frames in, frames and events out
//!   │    ├─ xmpp/      XMPP
//!   │    └─ template/  a protocol that the scenario describes
//!   ├─ speech     when it says something
//!   └─ delivery   what of the room's messages (room_log) came, and when
//! ```

use std::time::Duration;

use throng_observation::Url;
use throng_scenario::ChatConfig;

mod delivery;
pub mod event_stream;
mod participant;
mod room_log;
mod session;
mod speech;
pub mod template;
mod wire;
pub mod xmpp;

#[cfg(test)]
mod tests;

pub use participant::Member;
pub use room_log::{RoomLog, RoomLogs};

/// A participant of a chat.
#[derive(Clone, Debug)]
pub struct Config {
    /// The WebSocket, or the server of the event stream.
    pub url: Url,
    /// What is spoken on it.
    pub protocol: Protocol,
    /// What it says.
    pub chat: ChatConfig,
    /// Distinguishes the messages of this run from those of others in the same room.
    pub mark: String,
    /// What this run says in the room.
    pub log: RoomLog,
    /// The nickname that it takes after a while.
    pub rename: Option<Rename>,
    /// Decides what it says, and when: of `chat.seed` and its number, so that runs of another crowd
    /// or target say the same.
    pub speech_seed: u64,
}

/// The protocol of a chat.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// XMPP.
    Xmpp(Box<xmpp::XmppConfig>),
    /// The words of the scenario.
    Template(template::TemplateConfig),
}

impl Protocol {
    /// Whether it has a password for its server.
    fn has_password(&self) -> bool {
        match self {
            Self::Xmpp(config) => config.credentials.is_some(),
            Self::Template(config) => config.token.is_some(),
        }
    }

    /// What a server said, without the token that it may repeat.
    fn without_token(&self, said: &str) -> String {
        match self {
            Self::Xmpp(_) => said.to_owned(),
            Self::Template(config) => config.without_token(said),
        }
    }

    /// `Sec-WebSocket-Protocol`.
    fn subprotocols(&self) -> Vec<String> {
        match self {
            Self::Xmpp(_) => vec!["xmpp".to_owned()],
            Self::Template(config) => {
                let filled = |text| config.filled(text, &config.nick, "");
                config.template.subprotocols.iter().map(filled).collect()
            }
        }
    }

    /// A session on a new connection; `before`: the stream of one that broke.
    fn session(
        &self,
        before: Option<xmpp::Resumption>,
        rng: &mut fastrand::Rng,
    ) -> Box<dyn session::Session> {
        match self {
            Self::Xmpp(config) => Box::new(xmpp::Stream::new((**config).clone(), before, rng)),
            Self::Template(config) => Box::new(template::Template::new(config.clone())),
        }
    }

    /// Whether what somebody says comes back to its author.
    fn has_echo(&self) -> bool {
        match self {
            Self::Xmpp(_) => true,
            Self::Template(config) => config.template.echo,
        }
    }

    fn set_nick(&mut self, nick: &str) {
        match self {
            Self::Xmpp(config) => nick.clone_into(&mut config.nick),
            Self::Template(config) => nick.clone_into(&mut config.nick),
        }
    }
}

/// A nickname that somebody has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The nickname.
    pub nick: String,
    /// How long after it is in the room for the first time.
    pub after: Duration,
}
