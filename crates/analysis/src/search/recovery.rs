//! The recovery after a load that failed: a smaller crowd until service is good again, and the time
//! that takes. A server that needs long, or a much smaller crowd, has a metastable failure.

use throng_observation::RunTime;

use super::{Second, Settings};

/// Consecutive good seconds of a server that has recovered.
const GOOD_SECONDS: u32 = 3;
/// After this time the crowd shrinks to the smallest …
const PATIENCE_S: u32 = 30;
/// … and after this time the search gives up.
const GIVEN_UP_S: u32 = 90;

/// Why the search ended if the server did not recover.
pub(crate) const NEVER: &str = "afterwards even the smallest crowd had bad service for 90 s";

pub(crate) enum RecoveryProgress {
    NotYet,
    /// After so many milliseconds.
    After(u64),
    Never,
}

#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    /// The crowd that is wanted.
    pub(crate) users: u32,
    settings: Settings,
    since: RunTime,
    seconds: u32,
    good: u32,
}

impl Recovery {
    pub(crate) fn new(users: u32, settings: Settings, since: RunTime) -> Self {
        Self { users, settings, since, seconds: 0, good: 0 }
    }

    pub(crate) fn second(&mut self, second: &Second) -> RecoveryProgress {
        self.seconds += 1;
        let may_be_bad = self.settings.goal.bad_ratio_max() * f64::from(second.users);
        let is_good = second.is_complete && second.users > 0 && second.bad <= may_be_bad;
        self.good = if is_good { self.good + 1 } else { 0 };
        if self.good >= GOOD_SECONDS {
            // The good seconds themselves are not part of the recovery.
            let ms = (second.at.0 - self.since.0) / 1000 - i64::from(GOOD_SECONDS) * 1000;
            return RecoveryProgress::After(u64::try_from(ms).unwrap_or(0));
        }
        if self.seconds >= GIVEN_UP_S {
            return RecoveryProgress::Never;
        }
        if self.seconds >= PATIENCE_S {
            self.users = self.settings.floor;
        }
        RecoveryProgress::NotYet
    }
}
