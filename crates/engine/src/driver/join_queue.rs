//! Who is still to join on a thread: every so-manieth of the plan, which all threads share, and whoever is called.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::config::Join;

/// Joins to come, in order of time; each with its place in the plan. Who is called comes after all who were planned.
pub(crate) struct JoinQueue {
    plan: Arc<[Join]>,
    /// The next of the plan.
    next: usize,
    /// How far apart this thread's are.
    step: usize,
    called: VecDeque<(u32, Join)>,
    /// Those of the plan who are not let in any more.
    dismissed: HashSet<u32>,
}

impl JoinQueue {
    /// The joins of thread number `thread` of `threads`.
    pub(crate) fn new(plan: Arc<[Join]>, thread: usize, threads: usize) -> Self {
        Self { plan, next: thread, step: threads.max(1), called: VecDeque::new(), dismissed: HashSet::new() }
    }

    /// Somebody was called.
    pub(super) fn call(&mut self, who: u32, join: Join) {
        self.called.push_back((who, join));
    }

    /// Somebody who has not joined yet is not let in.
    pub(super) fn dismiss(&mut self, who: u32) {
        if (self.next..self.plan.len()).contains(&(who as usize)) {
            self.dismissed.insert(who);
            self.pass_over();
        } else {
            self.called.retain(|(called, _)| *called != who);
        }
    }

    /// The next to join.
    pub(super) fn next(&self) -> Option<(u32, &Join)> {
        let planned = self.plan.get(self.next).map(|join| (self.next as u32, join));
        planned.or_else(|| self.called.front().map(|(who, join)| (*who, join)))
    }

    /// Takes the next to join.
    pub(super) fn take(&mut self) -> Option<(u32, Join)> {
        let (who, join) = self.next().map(|(who, join)| (who, *join))?;
        if self.next < self.plan.len() {
            self.next += self.step;
            self.pass_over();
        } else {
            self.called.pop_front();
        }
        Some((who, join))
    }

    fn pass_over(&mut self) {
        while self.next < self.plan.len() && self.dismissed.remove(&(self.next as u32)) {
            self.next += self.step;
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;
    use throng_observation::run::{CohortId, ParticipantId};

    use super::*;

    fn join(who: u32) -> Join {
        Join {
            participant: ParticipantId(who),
            cohort: CohortId(0),
            place: who,
            at: RunTime(0),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        }
    }

    #[test]
    fn threads_share_a_plan_and_who_was_dismissed_is_not_let_in() {
        let plan: Arc<[Join]> = (0..10).map(join).collect();
        let mut joins = JoinQueue::new(plan, 1, 2);
        assert_eq!(joins.take().map(|(who, _)| who), Some(1));
        [3, 7, 1].into_iter().for_each(|who| joins.dismiss(who));
        [11, 12, 13].into_iter().for_each(|who| joins.call(who, join(who)));
        joins.dismiss(12);
        let rest: Vec<u32> = std::iter::from_fn(|| joins.take()).map(|(who, _)| who).collect();
        assert_eq!(rest, [5, 9, 11, 13]);
        assert!(joins.next().is_none() && joins.dismissed.is_empty());
    }
}
