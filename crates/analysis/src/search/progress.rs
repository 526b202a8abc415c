//! How far a search has come, and what it does, for who looks at it.

use std::fmt;

use throng_observation::Purpose;

use super::{End, value};

/// The state of a search for the live display.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The purpose of the current hold; `None` while the server or the generator recovers, and at
    /// the end.
    pub purpose: Option<Purpose>,
    /// Participants wanted.
    pub users: u32,
    /// Judged seconds of the current hold, and their planned number.
    pub judged_s: (u32, u32),
    /// Whether queues still have time to settle.
    pub is_settling: bool,
    /// The largest crowd that passed in this repeat.
    pub passing: Option<u32>,
    /// The smallest that failed in this repeat.
    pub failing: Option<u32>,
    /// The current repeat, and their planned number.
    pub repeat: (u32, u32),
    /// The passing and the failing load of each completed repeat.
    pub found: Vec<(u32, u32)>,
    /// Names of the loads from 1, if loads are values of the scenario.
    pub values: Vec<String>,
    /// What the search came to, once it has.
    pub end: Option<End>,
}

impl Progress {
    /// A load as text: a number of participants, or a value.
    #[must_use]
    pub fn load(&self, load: u32) -> String {
        value(&self.values, load).unwrap_or_else(|| load.to_string())
    }

    /// What it does; `is_over`: nothing more is held, for whatever reason, such as the time budget,
    /// of which the search itself does not know.
    #[must_use]
    pub fn phase(&self, is_over: bool) -> SearchPhase {
        let (judged_s, whole_s) = self.judged_s;
        match self.purpose {
            _ if is_over || self.end.is_some() => SearchPhase::Over,
            None => SearchPhase::Recovering,
            Some(purpose) if self.is_settling => SearchPhase::Settling(purpose),
            Some(purpose) => SearchPhase::Judging { purpose, judged_s, whole_s },
        }
    }
}

/// What a search does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchPhase {
    /// A load is held, and queues have time to settle.
    Settling(Purpose),
    /// A load is held and judged.
    Judging {
        /// Why it is held.
        purpose: Purpose,
        /// Judged seconds so far.
        judged_s: u32,
        /// The planned number of them.
        whole_s: u32,
    },
    /// Nothing is held while the server or the generator recovers.
    Recovering,
    /// Nothing more is held.
    Over,
}

impl fmt::Display for SearchPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settling(purpose) => write!(f, "{}, settling", purpose.key()),
            Self::Judging { purpose, judged_s, whole_s } => {
                write!(f, "{}, {judged_s} of {whole_s} s judged", purpose.key())
            }
            Self::Recovering => f.write_str("the server or the generator recovers"),
            Self::Over => f.write_str("over"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_says_whether_it_settles_judges_recovers_or_is_over() {
        let judging = Progress {
            purpose: Some(Purpose::Bisect),
            users: 2,
            judged_s: (3, 10),
            is_settling: false,
            passing: Some(1),
            failing: None,
            repeat: (1, 3),
            found: Vec::new(),
            values: Vec::new(),
            end: None,
        };
        let settling = Progress { is_settling: true, ..judging.clone() };
        let recovering = Progress { purpose: None, judged_s: (0, 0), ..judging.clone() };
        let ended = Progress { end: Some(End::Ceiling), ..recovering.clone() };
        for (progress, is_over, expect) in [
            (&judging, false, "bisect, 3 of 10 s judged"),
            (&settling, false, "bisect, settling"),
            (&recovering, false, "the server or the generator recovers"),
            (&ended, false, "over"),
            // Its time is used up in the middle of a hold.
            (&judging, true, "over"),
        ] {
            assert_eq!(progress.phase(is_over).to_string(), expect);
        }
    }
}
