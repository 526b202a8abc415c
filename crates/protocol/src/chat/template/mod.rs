//! A chat that the scenario describes: its messages are texts with variables, and answers are recognised by what is in them.

use std::sync::Arc;
use std::time::Duration;

use throng_scenario::{ChatTemplate, Secret};

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
}
