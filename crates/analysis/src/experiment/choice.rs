//! Hold or search: what the pairs of a proof measure, by what decides sooner. A crowd that one side
//! serves and the other does not differs by so much that two pairs decide; a search knows the limit
//! only within its steps, so that it takes many. Which crowd that is, a search of the baseline
//! tells.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How far above the first crowd that failed the held one is. A second search of the same server
/// may find the limit a tenth higher; beyond that the baseline fails in every run.
const BEYOND: f64 = 1.15;

/// What the search of the baseline found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundLimit {
    /// The largest crowd that was served well; 0 if none was.
    pub passing: u32,
    /// The first that was not; `None` if none failed.
    pub failing: Option<u32>,
    /// Whether no crowd that may be tried failed.
    pub is_at_ceiling: bool,
}

/// What the pairs measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// How well a crowd of this size is served.
    Hold {
        /// Users.
        users: u32,
        /// The largest crowd that the baseline served well.
        passing: u32,
    },
    /// How large a crowd is served well.
    Search(SearchReason),
    /// Nothing: the baseline has no limit up to this crowd, the largest that may be tried.
    NoLimit {
        /// Users.
        users: u32,
    },
}

/// Why no crowd is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchReason {
    /// The search of the baseline found no limit: it is not valid, or nobody was served well.
    NotFound,
    /// A run that holds the crowd takes longer than a search: it gathers slowly.
    Slow,
    /// A variant has so little more of the limit that it would not serve the first crowd that
    /// failed either.
    TooLittle,
}

impl Choice {
    /// The choice by what the search of the baseline `found`; `None` if it is not valid. `more`:
    /// how many times as much of the limit a variant has, if that is known. No crowd above `most`
    /// may be held. `hold_takes` is the time of a run that holds a crowd, `search_takes` that of a
    /// search.
    #[must_use]
    pub fn of(
        found: Option<FoundLimit>,
        more: Option<f64>,
        most: u32,
        hold_takes: impl Fn(u32) -> Duration,
        search_takes: Duration,
    ) -> Self {
        match found {
            Some(FoundLimit { passing, is_at_ceiling: true, .. }) => {
                Self::NoLimit { users: passing }
            }
            Some(FoundLimit { passing, failing: Some(failing), .. }) if passing > 0 => {
                match held_users(passing, failing, more).map(|users| users.min(most).max(failing)) {
                    None => Self::Search(SearchReason::TooLittle),
                    Some(users) if hold_takes(users) > search_takes => {
                        Self::Search(SearchReason::Slow)
                    }
                    Some(users) => Self::Hold { users, passing },
                }
            }
            Some(_) | None => Self::Search(SearchReason::NotFound),
        }
    }
}

/// The smallest crowd that the baseline surely serves badly, and that a variant with `more` times
/// as much of its limit serves well: halfway, as a ratio, to the `more` times larger crowd at most.
/// `None` if it would serve none that failed.
fn held_users(passing: u32, failing: u32, more: Option<f64>) -> Option<u32> {
    let clear = (f64::from(failing) * BEYOND).ceil();
    let Some(more) = more else { return Some(clear as u32) };
    let served = f64::from(passing) * more;
    let halfway = (f64::from(failing) * served).sqrt().floor();
    (f64::from(failing) <= served).then_some((clear.min(halfway) as u32).max(failing))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn found(passing: u32, failing: Option<u32>, is_at_ceiling: bool) -> Option<FoundLimit> {
        Some(FoundLimit { passing, failing, is_at_ceiling })
    }

    #[test]
    fn the_held_crowd_is_clearly_too_large_for_the_baseline_and_not_for_the_variant() {
        for (passing, failing, more, expect) in [
            // One StreamWorker serves 20; two could serve 40.
            (20, 22, None, Some(26)),
            (20, 22, Some(2.0), Some(26)),
            // A fifth more is all that there is: 24.
            (20, 22, Some(1.2), Some(22)),
            (5, 6, None, Some(7)),
            (1, 2, Some(2.0), Some(2)),
            // A crowd that failed is beyond the variant too.
            (10, 11, Some(1.01), None),
            (1, 2, Some(1.5), None),
        ] {
            assert_eq!(held_users(passing, failing, more), expect, "{passing} {failing} {more:?}");
        }
        // Whatever was found: the baseline fails, and a variant with `more` serves it.
        for passing in 1..500u32 {
            let failing = passing + 1 + passing / 10;
            for more in [1.5, 2.0, 4.0] {
                let served = more * f64::from(passing);
                match held_users(passing, failing, Some(more)) {
                    Some(users) => {
                        assert!(users >= failing, "{users} of {passing} and {failing}");
                        assert!(f64::from(users) <= served, "{users} {served}");
                    }
                    None => assert!(f64::from(failing) > served, "{failing} {served}"),
                }
            }
        }
    }

    #[test]
    fn what_decides_sooner_is_measured() {
        let quick = |_: u32| Duration::from_secs(20);
        let of =
            |found: Option<FoundLimit>, most: u32| Choice::of(found, None, most, quick, MINUTE);
        assert_eq!(of(found(20, Some(22), false), 2_000), Choice::Hold { users: 26, passing: 20 });
        assert_eq!(of(found(20, Some(22), false), 24), Choice::Hold { users: 24, passing: 20 });
        assert_eq!(of(found(80, None, true), 80), Choice::NoLimit { users: 80 });
        for none in [None, found(0, Some(1), false), found(20, None, false)] {
            assert_eq!(of(none, 2_000), Choice::Search(SearchReason::NotFound), "{none:?}");
        }
        // A twentieth more of the limit serves no crowd that failed.
        let little = Choice::of(found(20, Some(22), false), Some(1.05), 2_000, quick, MINUTE);
        assert_eq!(little, Choice::Search(SearchReason::TooLittle));
        // A viewer each ten seconds.
        let slow = |users: u32| Duration::from_secs(10 * u64::from(users));
        let choice = Choice::of(found(20, Some(22), false), None, 2_000, slow, MINUTE);
        assert_eq!(choice, Choice::Search(SearchReason::Slow));
    }
}
