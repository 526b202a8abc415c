//! What participants want of others: whose media they receive, and whose vCards they fetch.

use serde::{Deserialize, Serialize};

/// The participants that one receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubscribePolicy {
    /// All participants.
    #[default]
    All,
    /// No participant.
    None,
    /// The last N speakers (last-N).
    LastSpeakers(u16),
}

impl SubscribePolicy {
    /// Its name in a scenario.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            SubscribePolicy::All => "all".into(),
            SubscribePolicy::None => "none".into(),
            SubscribePolicy::LastSpeakers(count) => format!("last_speakers({count})"),
        }
    }

    /// The policy of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let count = |text: &str| {
            text.strip_prefix("last_speakers(")?.strip_suffix(')')?.trim().parse().ok()
        };
        match name {
            "all" => Some(SubscribePolicy::All),
            "none" => Some(SubscribePolicy::None),
            _ => count(name).filter(|count| *count > 0).map(SubscribePolicy::LastSpeakers),
        }
    }

    /// The number of `others` that it receives at a time.
    #[must_use]
    pub fn count_of(self, others: u64) -> u64 {
        match self {
            SubscribePolicy::All => others,
            SubscribePolicy::None => 0,
            SubscribePolicy::LastSpeakers(count) => others.min(u64::from(count)),
        }
    }
}

/// Whose vCards a participant fetches, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VcardPolicy {
    /// Those of all occupants and of all authors, as ConverseJS does where it shows the list of
    /// participants (livechat up to version 8.0): the square of the participants, each with a
    /// picture.
    All,
    /// Those of authors, when a message of theirs is shown.
    #[default]
    Authors,
    /// None.
    None,
}

impl VcardPolicy {
    /// Its values with their names in a scenario.
    pub const NAMED: &'static [(Self, &'static str)] =
        &[(Self::All, "all"), (Self::Authors, "authors"), (Self::None, "none")];

    /// The policy of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == name).map(|(policy, _)| *policy)
    }

    /// Its name in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED
            .iter()
            .find(|(policy, _)| *policy == self)
            .map(|(_, name)| *name)
            .unwrap_or_default()
    }
}
