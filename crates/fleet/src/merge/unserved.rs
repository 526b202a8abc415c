//! Failed participants of a worker that finished before the others: each is a bad user of every
//! second until it was to leave, as on one machine, which goes on until its last participant has
//! left.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use throng_observation::run::CohortId;
use throng_observation::{Clause, ExperienceRow, RunTime};

use super::participants::PlannedJoin;

/// Participants that should still be served.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    counts: BTreeMap<CohortId, u32>,
    /// Planned leaves, the soonest first.
    leaves: BinaryHeap<Reverse<(RunTime, CohortId)>>,
}

impl Unserved {
    pub(super) fn new(failed: impl Iterator<Item = PlannedJoin>) -> Self {
        let mut unserved = Self::default();
        for join in failed {
            *unserved.counts.entry(join.cohort).or_default() += 1;
            unserved.leaves.extend(join.leave_at.map(|at| Reverse((at, join.cohort))));
        }
        unserved
    }

    /// Their user-seconds in `second`. Seconds are asked for in their order.
    pub(super) fn rows(&mut self, second: i64) -> impl Iterator<Item = ExperienceRow> {
        let end = RunTime(second.saturating_add(1).saturating_mul(1_000_000));
        while let Some(Reverse((_, cohort))) =
            self.leaves.peek().copied().filter(|Reverse((at, _))| *at < end)
        {
            self.leaves.pop();
            self.counts.entry(cohort).and_modify(|count| *count = count.saturating_sub(1));
        }
        self.counts.iter().map(move |(&cohort, &users)| {
            let mut row =
                ExperienceRow { second, cohort, users, bad: users, ..ExperienceRow::default() };
            row.clauses
                .get_mut(Clause::NotConnected as usize)
                .into_iter()
                .for_each(|count| *count = users);
            row
        })
    }
}
