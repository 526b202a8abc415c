//! Hold or search: what the pairs of a proof measure, by what decides sooner. A crowd that one side
//! serves and the other does not differs by so much that two pairs decide; a search knows the limit
//! only within its steps, so that it takes many. Which crowd that is, a search of the baseline
//! tells.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How far above the first crowd that failed the held one is. A second search of the same server
/// may find the limit a tenth higher; beyond that the baseline fails in every run.
const BEYOND: f64 = 1.15;
/// How far apart, as a ratio, the largest crowd that passed and the first that failed may be. Of a
/// search that was cut off before, the limit may lie anywhere between: the upper end alone is then
/// beyond it, and may be beyond what the variant serves as well.
const WIDE: f64 = 1.25;

/// How much of the way, as a ratio, from the first crowd that failed to the limit that comes next a
/// held crowd may always be. The one was measured and differs from run to run; the other is
/// predicted, so that less of the way is safe.
const TOWARDS_NEXT: f64 = 1.0 / 3.0;

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

impl FoundLimit {
    /// Between which crowds a further search is to look: the ends of what was found, where they are
    /// too far apart.
    #[must_use]
    pub fn to_narrow(self) -> Option<[u32; 2]> {
        let failing = self.failing.filter(|_| self.passing > 0)?;
        let is_wide = f64::from(failing) > WIDE * f64::from(self.passing);
        (is_wide && failing - self.passing > 1).then_some([self.passing, failing])
    }

    /// Whether a search between the ends of `wide` found this, nearer to each other: within those
    /// ends.
    #[must_use]
    pub fn narrows(self, wide: Self) -> bool {
        let (Some(failing), Some(failed)) = (self.failing, wide.failing) else { return false };
        let is_within = self.passing >= wide.passing && failing <= failed;
        is_within && self.passing > 0 && (self.passing, failing) != (wide.passing, failed)
    }

    /// Whether it is of a search that served a crowd well which `earlier` did not.
    #[must_use]
    pub fn contradicts(self, earlier: Self) -> bool {
        earlier.failing.is_some_and(|failed| self.passing >= failed)
    }
}

/// The first limit that a variant meets after the one that it relieves, as the demand of a user
/// predicts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextLimit {
    /// Users.
    pub users: f64,
    /// The lower end of its interval.
    pub users_low: f64,
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
    /// Below the first crowd that failed a variant is predicted to meet another limit.
    NextLimit,
}

impl Choice {
    /// The choice by what the search of the baseline `found`; `None` if it is not valid. `more`:
    /// how many times as much of the limit a variant has, if that is known; `next`: what limits it
    /// then. No crowd above `most` may be held. `hold_takes` is the time of a run that holds a
    /// crowd, `search_takes` that of a search.
    #[must_use]
    pub fn of(
        found: Option<FoundLimit>,
        more: Option<f64>,
        next: Option<NextLimit>,
        most: u32,
        hold_takes: impl Fn(u32) -> Duration,
        search_takes: Duration,
    ) -> Self {
        match found {
            Some(FoundLimit { passing, is_at_ceiling: true, .. }) => {
                Self::NoLimit { users: passing }
            }
            Some(FoundLimit { passing, failing: Some(failing), .. }) if passing > 0 => {
                match held_users(passing, failing, more, next) {
                    Err(reason) => Self::Search(reason),
                    Ok(users) => {
                        let users = users.min(most).max(failing);
                        if hold_takes(users) > search_takes {
                            Self::Search(SearchReason::Slow)
                        } else {
                            Self::Hold { users, passing }
                        }
                    }
                }
            }
            Some(_) | None => Self::Search(SearchReason::NotFound),
        }
    }
}

/// The smallest crowd that the baseline surely serves badly, and that a variant serves well: with
/// `more` times as much of its limit at most halfway, as a ratio, to the `more` times larger crowd;
/// and nothing above the least at which its `next` limit may come, but for [`TOWARDS_NEXT`] of the
/// way to it. The reason if it would serve none that failed.
fn held_users(
    passing: u32,
    failing: u32,
    more: Option<f64>,
    next: Option<NextLimit>,
) -> Result<u32, SearchReason> {
    let (passes, fails) = (f64::from(passing), f64::from(failing));
    let clear = (fails * BEYOND).min((passes * WIDE * BEYOND).max(fails)).ceil();
    let served = more.map_or(f64::INFINITY, |more| passes * more);
    if fails > served {
        return Err(SearchReason::TooLittle);
    }
    if next.is_some_and(|next| next.users < fails) {
        return Err(SearchReason::NextLimit);
    }
    let halfway = (fails * served).sqrt();
    let before_next = next.map_or(f64::INFINITY, |next| {
        next.users_low.max(fails * (next.users / fails).powf(TOWARDS_NEXT))
    });
    Ok((clear.min(halfway.floor()).min(before_next.floor()) as u32).max(failing))
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
            let held = held_users(passing, failing, more, None);
            let expect = expect.ok_or(SearchReason::TooLittle);
            assert_eq!(held, expect, "{passing} {failing} {more:?}");
        }
        // Whatever was found: the baseline fails, and a variant with `more` serves it.
        for passing in 1..500u32 {
            let failing = passing + 1 + passing / 10;
            for more in [1.5, 2.0, 4.0] {
                let served = more * f64::from(passing);
                match held_users(passing, failing, Some(more), None) {
                    Ok(users) => {
                        assert!(users >= failing, "{users} of {passing} and {failing}");
                        assert!(f64::from(users) <= served, "{users} {served}");
                    }
                    Err(reason) => {
                        assert_eq!(reason, SearchReason::TooLittle);
                        assert!(f64::from(failing) > served, "{failing} {served}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_held_crowd_stays_below_the_limit_that_comes_next() {
        let next = |users: f64, users_low: f64| Some(NextLimit { users, users_low });
        for (passing, failing, next, expect) in [
            // All of the host's CPUs, at 135 users or more.
            (101, 120, next(150.0, 135.0), Ok(135)),
            (101, 120, next(400.0, 380.0), Ok(138)),
            (101, 120, None, Ok(138)),
            // It is near: little more than what failed is held.
            (101, 120, next(125.0, 112.0), Ok(121)),
            // It is not known well.
            (157, 163, next(217.0, 150.0), Ok(179)),
            // The host is full before the first crowd that failed.
            (101, 182, next(140.0, 130.0), Err(SearchReason::NextLimit)),
            // A search that was cut off: the upper end alone is beyond the limit.
            (101, 182, None, Ok(182)),
            (100, 130, None, Ok(144)),
        ] {
            let held = held_users(passing, failing, Some(2.0), next);
            assert_eq!(held, expect, "{passing} {failing} {next:?}");
        }
    }

    #[test]
    fn a_search_that_left_its_ends_far_apart_is_narrowed() {
        let between = |passing, failing| found(passing, failing, false).unwrap();
        for (passing, failing, expect) in [
            (101, Some(182), Some([101, 182])),
            (101, Some(126), None),
            (4, Some(6), Some([4, 6])),
            // There is nothing between.
            (1, Some(2), None),
            (0, Some(4), None),
            (101, None, None),
        ] {
            assert_eq!(between(passing, failing).to_narrow(), expect, "{passing} {failing:?}");
        }
        let wide = between(101, Some(182));
        assert!(between(118, Some(137)).narrows(wide) && !wide.narrows(wide));
        assert!(!between(182, None).narrows(wide) && !between(0, Some(1)).narrows(wide));
        // What was served well before is not beyond the limit.
        assert!(!between(80, Some(90)).narrows(wide));
        for (passing, failing, is_one) in
            [(181, Some(182), false), (182, None, true), (190, Some(200), true), (0, None, false)]
        {
            let contradicts = between(passing, failing).contradicts(wide);
            assert_eq!(contradicts, is_one, "{passing} {failing:?}");
        }
        assert!(!between(182, None).contradicts(between(101, None)));
    }

    #[test]
    fn what_decides_sooner_is_measured() {
        let quick = |_: u32| Duration::from_secs(20);
        let of = |found: Option<FoundLimit>, most: u32| {
            Choice::of(found, None, None, most, quick, MINUTE)
        };
        assert_eq!(of(found(20, Some(22), false), 2_000), Choice::Hold { users: 26, passing: 20 });
        assert_eq!(of(found(20, Some(22), false), 24), Choice::Hold { users: 24, passing: 20 });
        assert_eq!(of(found(80, None, true), 80), Choice::NoLimit { users: 80 });
        for none in [None, found(0, Some(1), false), found(20, None, false)] {
            assert_eq!(of(none, 2_000), Choice::Search(SearchReason::NotFound), "{none:?}");
        }
        // A twentieth more of the limit serves no crowd that failed.
        let little = Choice::of(found(20, Some(22), false), Some(1.05), None, 2_000, quick, MINUTE);
        assert_eq!(little, Choice::Search(SearchReason::TooLittle));
        // A viewer each ten seconds.
        let slow = |users: u32| Duration::from_secs(10 * u64::from(users));
        let choice = Choice::of(found(20, Some(22), false), None, None, 2_000, slow, MINUTE);
        assert_eq!(choice, Choice::Search(SearchReason::Slow));
        // The host is full before the first crowd that failed.
        let next = Some(NextLimit { users: 21.0, users_low: 19.0 });
        let full = Choice::of(found(20, Some(22), false), None, next, 2_000, quick, MINUTE);
        assert_eq!(full, Choice::Search(SearchReason::NextLimit));
    }
}
