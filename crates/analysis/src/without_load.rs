//! What is so without load in a plain run: what its first users already saw, and all of them no
//! worse. A search looks for the same at its smallest crowd ([`crate::search`]).

use std::collections::BTreeMap;

use throng_observation::run::RunData;
use throng_observation::{BadIf, Goal, Unloaded};

use crate::pattern::BadSeconds;
use crate::windows::{SecondQuality, quality_by_second};

/// A crowd is without load while it is no more than one part in so many of the largest, or one.
const FEW: u64 = 10;
/// Least bad seconds that make a pattern.
const SECONDS_MIN: usize = 3;

/// What made most seconds of a plain run bad while hardly anybody was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutLoad {
    /// The most users of these seconds.
    pub users: u64,
    /// What they saw.
    pub media: Unloaded,
    /// Whether a larger crowd came after them, and saw no more of it.
    pub is_of_all: bool,
}

impl WithoutLoad {
    /// `None` for a search, where the first users were served well, or where more of them saw worse
    /// than that.
    #[must_use]
    pub fn of(run: &RunData, goal: Goal) -> Option<Self> {
        if !run.holds.is_empty() {
            return None;
        }
        let by_second = quality_by_second(run);
        let served: Vec<(i64, SecondQuality)> =
            by_second.into_iter().filter(|(_, quality)| quality.users > 0).collect();
        let users_of = |seconds: &[(i64, SecondQuality)]| {
            seconds.iter().map(|(_, quality)| quality.users).max().unwrap_or(0)
        };
        let few = (users_of(&served) / FEW).max(1);
        let first = served.iter().take_while(|(_, quality)| quality.users <= few).count();
        let (early, later) = served.split_at_checked(first)?;
        let media = media_by_second(run);
        let seen = pattern(early, &media, goal)?;
        let bounds = BadIf::default().beyond(&seen);
        let is_no_worse = pattern(later, &media, goal).is_some_and(|seen| seen.is_within(&bounds));
        (later.is_empty() || is_no_worse).then(|| Self {
            users: users_of(early),
            media: seen,
            is_of_all: !later.is_empty(),
        })
    }
}

/// The worst that tracks were in each second.
fn media_by_second(run: &RunData) -> BTreeMap<i64, Unloaded> {
    let mut media: BTreeMap<i64, Unloaded> = BTreeMap::new();
    for row in &run.series {
        let worst = media.entry(row.second).or_default();
        *worst = worst.worst(Unloaded::of(row));
    }
    media
}

/// The pattern by which most of the seconds are bad.
fn pattern(
    seconds: &[(i64, SecondQuality)],
    media: &BTreeMap<i64, Unloaded>,
    goal: Goal,
) -> Option<Unloaded> {
    let mut bad = BadSeconds::default();
    for (second, quality) in seconds.iter().filter(|(_, quality)| quality.is_bad(goal)) {
        let media = media.get(second).copied().unwrap_or_default();
        bad.add(quality.bad_users(), quality.bad_by_patterns(), quality.clauses, media);
    }
    let are_most = bad.count() >= SECONDS_MIN && bad.count() * 2 > seconds.len();
    if are_most { bad.pattern() } else { None }
}

#[cfg(test)]
mod tests {
    use throng_observation::run::SeriesRow;
    use throng_observation::{Clause, Distribution, ExperienceRow, HoldRow};

    use super::*;
    use crate::bottleneck::{BottleneckVerdict, explain};

    /// A run whose users, by second, saw this delay, by which their second was bad above 150 ms.
    fn run(seconds: &[(u32, u32)]) -> RunData {
        let mut run = RunData::default();
        for (second, (users, delay_ms)) in (0..).zip(seconds) {
            let bad = if *delay_ms > 150 { *users } else { 0 };
            let mut row = ExperienceRow { second, users: *users, bad, ..ExperienceRow::default() };
            row.clauses[Clause::Delay as usize] = bad;
            run.experience.push(row);
            let mut relative_delay_us = Distribution::new();
            relative_delay_us.record(u64::from(*delay_ms) * 1_000);
            run.series.push(SeriesRow { second, relative_delay_us, ..SeriesRow::default() });
        }
        run
    }

    fn seen(seconds: &[(u32, u32)]) -> Option<(u64, u32, bool)> {
        let seen = WithoutLoad::of(&run(seconds), Goal::Acceptable)?;
        Some((seen.users, seen.media.delay_us / 100_000, seen.is_of_all))
    }

    #[test]
    fn what_the_first_users_saw_and_all_others_no_worse_is_without_load() {
        let first = [(1, 290); 5];
        assert_eq!(seen(&first), Some((1, 2, false)));
        assert_eq!(seen(&[&first[..], &[(30, 300); 10]].concat()), Some((1, 2, true)));
        assert_eq!(seen(&[&first[..], &[(30, 900); 10]].concat()), None, "it grew");
        assert_eq!(seen(&[&first[..], &[(30, 20); 10]].concat()), None, "it ended");
        assert_eq!(seen(&[&[(1, 20); 5][..], &[(30, 290); 10]].concat()), None, "it is the load");
        assert_eq!(seen(&[(30, 290); 10]), None, "all came at once");
        assert_eq!(seen(&[(1, 290); 2]), None, "too short");
        assert_eq!(seen(&[]), None);
    }

    #[test]
    fn what_is_so_without_load_has_no_cause_in_the_load() {
        let verdict = |later: u32| {
            let run = run(&[&[(1, 290); 5][..], &[(30, later); 10]].concat());
            explain(&run, Goal::Acceptable).bottleneck.verdict
        };
        assert_eq!(verdict(290), BottleneckVerdict::NothingFailed);
        assert_ne!(verdict(900), BottleneckVerdict::NothingFailed);
    }

    #[test]
    fn a_search_looks_for_itself() {
        let mut run = run(&[(1, 290); 5]);
        run.holds.push(HoldRow::default());
        assert_eq!(WithoutLoad::of(&run, Goal::Acceptable), None);
    }
}
