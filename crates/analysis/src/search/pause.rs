//! The pause after a hold that the generator limited: a smaller crowd until the generator keeps up
//! again. Other load on its host and CPU steal pass; a crowd that is too large for it does not.

use super::Schedule;

/// Consecutive calm seconds before the load is held again.
const CALM_SECONDS: u32 = 5;
/// The search gives up after this many times the longest settling time: a minute of a search of ten
/// minutes.
const GIVEN_UP: u32 = 4;
/// A load is held again this many times; then the load itself is too large.
pub(crate) const TRIES: u32 = 2;

pub(crate) enum PauseProgress {
    NotYet,
    Over,
    Never,
}

#[derive(Clone, Debug)]
pub(crate) struct Pause {
    /// The crowd that is wanted.
    pub(crate) users: u32,
    patience_s: u32,
    seconds: u32,
    calm: u32,
}

impl Pause {
    pub(crate) fn new(users: u32, schedule: &Schedule) -> Self {
        Self { users, patience_s: schedule.settle_max_s * GIVEN_UP, seconds: 0, calm: 0 }
    }

    /// Adds a second, in which what the pause waits for held, or did not.
    pub(crate) fn second(&mut self, is_calm: bool) -> PauseProgress {
        self.seconds += 1;
        self.calm = if is_calm { self.calm + 1 } else { 0 };
        if self.calm >= CALM_SECONDS {
            return PauseProgress::Over;
        }
        if self.seconds >= self.patience_s { PauseProgress::Never } else { PauseProgress::NotYet }
    }
}
