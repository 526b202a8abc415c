//! What participants of a chat do: whose pictures they fetch, and what they say.

use std::time::Duration;

use throng_observation::seed;

pub use throng_observation::VcardPolicy;

use crate::keys::Named;
use crate::target::Endpoint;

mod keys;
mod template;

pub use template::{
    ChatHttp, ChatTemplate, ChatText, ChatTextError, ChatVariable, JoinStep, KeepAlive, Pong,
    is_in as chat_pattern_is_in,
};

/// The settings of a participant of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatConfig {
    /// The chat beside a video, which its viewers are in too; `None`: the target is a chat, or
    /// there is none.
    pub beside: Option<Box<Endpoint>>,
    /// Whether visitors of a page that has a chat are in it.
    pub is_wanted: bool,
    /// Whose vCards it fetches.
    pub vcards: VcardPolicy,
    /// Messages of the archive that it fetches when it joins.
    pub history: u32,
    /// It says that it types (XEP-0085).
    pub chat_states: bool,
    /// Mean time between messages of one participant; `None`: it says nothing without a reason.
    pub every: Option<Duration>,
    /// Moments of the show at which many say something.
    pub moments: Vec<ChatMoment>,
    /// `Origin` of its page; `None`: that of the server.
    pub origin: Option<String>,
    /// Visitors that choose a nickname; `None`: everybody has one from the beginning.
    pub renames: Option<ChatRenames>,
    /// Uses XMPP's stream management where the server offers it (XEP-0198).
    pub stream_management: bool,
    /// The words of the chat, where it is not XMPP.
    pub template: Option<ChatTemplate>,
    /// Seed of what is said when.
    pub seed: u64,
}

/// Everybody comes with a nickname such as `Anonymous 123456`, and some choose another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatRenames {
    /// The share of the participants that choose one, thousandths.
    pub share_milli: u32,
    /// Within so long after they joined, evenly distributed.
    pub within: Duration,
}

/// A moment of the show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatMoment {
    /// When, since the start of the run.
    pub at: Duration,
    /// The share of the participants that say something at it, thousandths.
    pub share_milli: u32,
    /// Within so long.
    pub within: Duration,
}

impl Default for ChatConfig {
    /// As ConverseJS of today beside a video: vCards of authors, 50 messages of the archive, no
    /// chat states; it only reads.
    fn default() -> Self {
        Self {
            beside: None,
            is_wanted: false,
            vcards: VcardPolicy::default(),
            history: 50,
            chat_states: false,
            every: None,
            moments: Vec::new(),
            origin: None,
            renames: None,
            stream_management: true,
            template: None,
            seed: seed::USUAL,
        }
    }
}

impl Named for VcardPolicy {
    const ALL: &'static [(Self, &'static str)] = Self::NAMED;
}
