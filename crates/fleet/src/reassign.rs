//! Who plays the participants of a worker that is gone.
//!
//! The coordinator and each worker deal the plan out by themselves, and change the deal alike: a
//! [`Reassignment`] says who is gone, who gets its participants, and from when on. Whoever was to
//! join from then on joins as planned, under its own number, on another worker. Whoever was to be
//! there by then is lost with the worker, and joins anew as another participant: it has a number of
//! its own, so that the one who was lost stays lost and nobody is counted twice. Those join one
//! after the other at the plan's own rate, also where several workers are lost, since a burst of
//! joins that nobody asked for would be another test. Each worker has a part of that rate
//! ([`Deal::rate`]), whatever it is given.

use throng_observation::RunTime;
use throng_observation::run::{CohortId, ParticipantId};

use crate::message::Reassignment;
use crate::shares::Shares;

/// A visit of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Numbered from 0 in the order of the plan.
    pub participant: ParticipantId,
    /// Its cohort.
    pub cohort: CohortId,
    /// When it joins.
    pub at: RunTime,
    /// When it leaves; `None`: at the end of the run.
    pub leave_at: Option<RunTime>,
}

/// A visit, and the worker that plays it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// The visit; its number is another than that of the plan if it joins anew.
    pub visit: Visit,
    /// Its number in the plan.
    pub planned: ParticipantId,
    /// The worker.
    pub worker: u16,
}

impl Dealt {
    /// Whether the participant is in the place of one that was lost.
    #[must_use]
    pub fn is_anew(&self) -> bool {
        self.visit.participant != self.planned
    }
}

/// All visits of a plan and their workers.
#[derive(Clone, Debug)]
pub struct Deal {
    weights: Vec<u32>,
    visits: Vec<Dealt>,
    ends_at: RunTime,
    joins_per_s: u32,
    made: u32,
    /// When the next one may join anew, whosever place it takes.
    anew_at: RunTime,
}

/// So many joins, at most, in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Joins; one at least.
    pub joins: usize,
    /// Microseconds: a second, or longer where it is less than one a second.
    pub within_us: i64,
}

impl Deal {
    /// The deal of a plan that ends at `ends_at` and has at most `joins_per_s` joins a second.
    #[must_use]
    pub fn new(
        weights: &[u32],
        shares: &Shares,
        visits: impl IntoIterator<Item = Visit>,
        ends_at: RunTime,
        joins_per_s: u32,
    ) -> Self {
        let dealt = |visit: Visit| Dealt {
            visit,
            planned: visit.participant,
            worker: shares.worker_of(visit.participant.0),
        };
        Self {
            weights: weights.to_vec(),
            visits: visits.into_iter().map(dealt).collect(),
            ends_at,
            joins_per_s: joins_per_s.max(1),
            made: 0,
            anew_at: RunTime(i64::MIN),
        }
    }

    /// Visits of the plan.
    #[must_use]
    pub fn planned(&self) -> u32 {
        u32::try_from(self.visits.len()).unwrap_or(u32::MAX)
    }

    /// Numbers of participants are below this one, whatever happens.
    #[must_use]
    pub fn participants_max(&self) -> u32 {
        self.planned().saturating_mul(u32::try_from(self.weights.len()).unwrap_or(u32::MAX))
    }

    /// The number of the last reassignment.
    #[must_use]
    pub fn made(&self) -> u32 {
        self.made
    }

    /// When the plan ends.
    #[must_use]
    pub fn ends_at(&self) -> RunTime {
        self.ends_at
    }

    /// The visits of a worker, in the order of their joins.
    pub fn of(&self, worker: u16) -> impl Iterator<Item = Dealt> {
        self.visits.iter().filter(move |dealt| dealt.worker == worker).copied()
    }

    /// The part of the plan's joins per second that `worker` has, where these play: so that all
    /// together have no more than the plan.
    #[must_use]
    pub fn rate(&self, worker: u16, players: &[u16]) -> Rate {
        let weight =
            |worker: u16| u64::from(self.weights.get(usize::from(worker)).copied().unwrap_or(1));
        let all = players.iter().map(|player| weight(*player)).sum::<u64>().max(1);
        let own = (weight(worker).min(all) * u64::from(self.joins_per_s)).max(1);
        let joins = usize::try_from(own / all).unwrap_or(usize::MAX);
        // Whoever has less than one a second has one in several seconds.
        let within_us = if joins > 0 { 1_000_000 } else { (1_000_000 * all).div_ceil(own) };
        Rate { joins: joins.max(1), within_us: i64::try_from(within_us).unwrap_or(i64::MAX) }
    }

    /// Those of `ended`, ascending, that would be there at `from` had they not ended: only these
    /// would join anew.
    #[must_use]
    pub fn would_be_there(&self, worker: u16, from: RunTime, ended: &[u32]) -> Vec<u32> {
        let of_worker = self.of(worker).map(|dealt| dealt.visit);
        let is_there =
            of_worker.filter(|visit| visit.at < from && visit.leave_at.is_none_or(|at| at > from));
        let mut there: Vec<u32> = is_there
            .map(|visit| visit.participant.0)
            .filter(|number| ended.binary_search(number).is_ok())
            .collect();
        there.sort_unstable();
        there
    }

    /// Makes a reassignment, and returns the visits that have another worker now, in the order of
    /// their joins. Nothing changes where it is not the next one: it came twice, or before its
    /// turn.
    pub fn make(&mut self, reassignment: &Reassignment) -> Vec<Dealt> {
        let Reassignment { number, of, to, from, ended } = reassignment;
        let weight = |worker: &u16| self.weights.get(usize::from(*worker)).copied().unwrap_or(1);
        let weights: Vec<u32> = to.iter().map(weight).collect();
        let (Some(next), Ok(shares)) = (self.made.checked_add(1), Shares::of(&weights)) else {
            return Vec::new();
        };
        if *number != next {
            return Vec::new();
        }
        self.made = next;
        let first = self.planned().checked_mul(next);
        let pace_us = 1_000_000 / i64::from(self.joins_per_s);
        let (mut moved, mut anew_at) = (Vec::new(), self.anew_at.max(*from));
        for dealt in self.visits.iter_mut().filter(|dealt| dealt.worker == *of) {
            if dealt.visit.at < *from {
                let has_left = dealt.visit.leave_at.is_some_and(|at| at <= anew_at);
                let has_ended = ended.binary_search(&dealt.visit.participant.0).is_ok();
                let number = first.and_then(|first| first.checked_add(dealt.planned.0));
                let Some(number) =
                    number.filter(|_| !has_left && !has_ended && anew_at < self.ends_at)
                else {
                    continue;
                };
                (dealt.visit.participant, dealt.visit.at) = (ParticipantId(number), anew_at);
                anew_at = RunTime(anew_at.0.saturating_add(pace_us));
            }
            let turn =
                usize::from(shares.worker_of(u32::try_from(moved.len()).unwrap_or(u32::MAX)));
            dealt.worker = to.get(turn).copied().unwrap_or(*of);
            moved.push(*dealt);
        }
        self.anew_at = anew_at;
        moved.sort_by_key(|dealt| (dealt.visit.at, dealt.visit.participant));
        moved
    }
}

#[cfg(test)]
#[path = "reassign_tests.rs"]
mod tests;
