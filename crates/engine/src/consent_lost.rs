//! Why a consent that a run began with does not count any more.

use std::fmt;

/// How a consent was lost. Each way ends the run: an owner may withdraw by switching off whatever
/// gives the consent, so that silence cannot count as agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentEnd {
    /// The owner's server answers that there is none.
    Withdrawn,
    /// Nobody answers: the owner withdrew, or the server or the network in between is overloaded.
    Unanswered,
    /// What is there covers the run no longer: it expired, is for others, or allows less.
    Changed,
}

impl fmt::Display for ConsentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Withdrawn => "consent withdrawn",
            Self::Unanswered => "no answer about the consent",
            Self::Changed => "the consent does not cover this run any more",
        })
    }
}

/// A consent that was lost, as the report says it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{how}: {detail}")]
pub struct ConsentLost {
    /// How.
    pub how: ConsentEnd,
    /// Where it was asked for, and what was the answer.
    pub detail: String,
}

impl ConsentLost {
    /// A consent that was lost in this way.
    pub fn new(how: ConsentEnd, detail: impl Into<String>) -> Self {
        Self { how, detail: detail.into() }
    }
}
