//! Joins still to come on one thread: every n-th of the plan, which all threads share, then
//! participants added later.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::config::Join;

/// Joins to come in order of time, each with its participant's index. Added participants follow all
/// planned ones.
pub(crate) struct JoinQueue {
    plan: Arc<[Join]>,
    /// Index of this thread's next planned join.
    next: usize,
    /// Distance between this thread's planned joins: the number of threads.
    step: usize,
    added: VecDeque<(u32, Join)>,
    /// Planned participants that no longer join.
    removed: HashSet<u32>,
}

impl JoinQueue {
    /// The joins of thread `thread` of `threads`.
    pub(crate) fn new(plan: Arc<[Join]>, thread: usize, threads: usize) -> Self {
        Self {
            plan,
            next: thread,
            step: threads.max(1),
            added: VecDeque::new(),
            removed: HashSet::new(),
        }
    }

    /// Queues the join of an added participant.
    pub(super) fn push(&mut self, id: u32, join: Join) {
        self.added.push_back((id, join));
    }

    /// Drops a join that has not begun.
    pub(super) fn remove(&mut self, id: u32) {
        if (self.next..self.plan.len()).contains(&(id as usize)) {
            self.removed.insert(id);
            self.skip_removed();
        } else {
            self.added.retain(|(added, _)| *added != id);
        }
    }

    /// The next join.
    pub(super) fn next(&self) -> Option<(u32, &Join)> {
        let planned = self.plan.get(self.next).map(|join| (self.next as u32, join));
        planned.or_else(|| self.added.front().map(|(id, join)| (*id, join)))
    }

    /// Takes the next join.
    pub(super) fn take(&mut self) -> Option<(u32, Join)> {
        let (id, join) = self.next().map(|(id, join)| (id, *join))?;
        if self.next < self.plan.len() {
            self.next += self.step;
            self.skip_removed();
        } else {
            self.added.pop_front();
        }
        Some((id, join))
    }

    fn skip_removed(&mut self) {
        while self.next < self.plan.len() && self.removed.remove(&(self.next as u32)) {
            self.next += self.step;
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;
    use throng_observation::run::{CohortId, ParticipantId};

    use super::*;

    fn join(id: u32) -> Join {
        Join {
            participant: ParticipantId(id),
            cohort: CohortId(0),
            place: id,
            at: RunTime(0),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        }
    }

    #[test]
    fn threads_share_a_plan_and_removed_participants_do_not_join() {
        let plan: Arc<[Join]> = (0..10).map(join).collect();
        let mut joins = JoinQueue::new(plan, 1, 2);
        assert_eq!(joins.take().map(|(id, _)| id), Some(1));
        [3, 7, 1].into_iter().for_each(|id| joins.remove(id));
        [11, 12, 13].into_iter().for_each(|id| joins.push(id, join(id)));
        joins.remove(12);
        let rest: Vec<u32> = std::iter::from_fn(|| joins.take()).map(|(id, _)| id).collect();
        assert_eq!(rest, [5, 9, 11, 13]);
        assert!(joins.next().is_none() && joins.removed.is_empty());
    }
}
