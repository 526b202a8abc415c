//! The joins and leaves of a worker whose part of the crowd may grow: they are given to the engine one after the other, shortly
//! before they are due, as a search gives them. What a worker that was lost leaves is put between them.

use std::collections::{BTreeMap, BTreeSet};

use throng_fleet::message::Reassignment;
use throng_fleet::reassign::{Deal, Dealt, Visit};
use throng_fleet::shares::Shares;
use throng_observation::RunTime;
use throng_observation::run::ParticipantId;
use throng_scenario::Plan;

/// How long before its join a participant is given to the engine, microseconds: as in a search.
const AHEAD_US: i64 = 300_000;

/// The deal of a plan among workers of these weights.
pub(super) fn deal(plan: &Plan, weights: &[u32], shares: &Shares) -> Deal {
    let visit = |join: &throng_scenario::Join| Visit {
        participant: join.participant,
        cohort: join.cohort,
        at: RunTime::after_start(join.at),
        leave_at: join.leave_at.map(RunTime::after_start),
    };
    let ends_at = RunTime::after_start(plan.duration);
    Deal::new(weights, shares, plan.joins.iter().map(visit), ends_at, plan.expected.joins_per_s)
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A participant joins.
    Join(Dealt),
    /// A participant leaves.
    Leave(ParticipantId),
    /// A participant was to join, and there is no room for it.
    NoRoom(Dealt),
}

/// The joins and leaves that are to come.
#[derive(Debug)]
pub(super) struct Feed {
    deal: Deal,
    worker: u16,
    /// Most participants at a time.
    most: usize,
    /// By time and number.
    joins: BTreeMap<(RunTime, ParticipantId), Dealt>,
    leaves: BTreeSet<(RunTime, ParticipantId)>,
    present: BTreeSet<ParticipantId>,
    /// The last join that was given: the engine takes none before it.
    given_at: RunTime,
}

impl Feed {
    /// The joins of `worker`, which plays at most so many participants at a time.
    pub(super) fn new(deal: Deal, worker: u16, most: usize) -> Self {
        let joins = deal.of(worker).map(key).collect();
        Self {
            deal,
            worker,
            most,
            joins,
            leaves: BTreeSet::new(),
            present: BTreeSet::new(),
            given_at: RunTime(i64::MIN),
        }
    }

    /// Takes what this worker gets of one that is gone.
    pub(super) fn reassigned(&mut self, reassignment: &Reassignment) {
        let own = self.deal.make(reassignment).into_iter().filter(|dealt| dealt.worker == self.worker);
        self.joins.extend(own.map(key));
    }

    /// What is due at `now`.
    pub(super) fn due(&mut self, now: RunTime) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some((at, participant)) = self.leaves.first().copied().filter(|(at, _)| *at <= now) {
            self.leaves.remove(&(at, participant));
            self.present.remove(&participant);
            due.push(Due::Leave(participant));
        }
        let until = RunTime(now.0.saturating_add(AHEAD_US));
        while let Some(first) = self.joins.first_entry().filter(|first| first.key().0 <= until) {
            let mut dealt = first.remove();
            // It came late from the bus: its join is intended for the moment at which it is possible.
            dealt.visit.at = dealt.visit.at.max(self.given_at);
            self.given_at = dealt.visit.at;
            if self.present.len() >= self.most {
                due.push(Due::NoRoom(dealt));
                continue;
            }
            self.present.insert(dealt.visit.participant);
            self.leaves.extend(dealt.visit.leave_at.map(|at| (at, dealt.visit.participant)));
            due.push(Due::Join(dealt));
        }
        due
    }
}

fn key(dealt: Dealt) -> ((RunTime, ParticipantId), Dealt) {
    ((dealt.visit.at, dealt.visit.participant), dealt)
}

#[cfg(test)]
mod tests {
    use throng_observation::run::CohortId;

    use super::*;

    const S: i64 = 1_000_000;

    /// Six visits a second apart on two workers; those of the first three end at 20 s.
    fn feed(most: usize) -> Feed {
        let shares = Shares::of(&[1, 1]).expect("two workers");
        let visits = (0..6_u32).map(|number| Visit {
            participant: ParticipantId(number),
            cohort: CohortId(0),
            at: RunTime(i64::from(number) * S),
            leave_at: (number < 3).then_some(RunTime(20 * S)),
        });
        Feed::new(Deal::new(&[1, 1], &shares, visits, RunTime(60 * S), 1), 0, most)
    }

    fn joined(due: &[Due]) -> Vec<(u32, i64)> {
        due.iter()
            .filter_map(|due| match due {
                Due::Join(dealt) => Some((dealt.visit.participant.0, dealt.visit.at.0 / S)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn joins_are_given_shortly_before_they_are_due_and_leaves_when_they_are() {
        let mut feed = feed(10);
        assert_eq!(joined(&feed.due(RunTime(0))), [(0, 0)]);
        assert!(feed.due(RunTime(S)).is_empty());
        assert_eq!(joined(&feed.due(RunTime(2 * S - AHEAD_US))), [(2, 2)]);
        assert_eq!(joined(&feed.due(RunTime(9 * S))), [(4, 4)]);
        assert!(feed.due(RunTime(20 * S - 1)).is_empty());
        let left = feed.due(RunTime(20 * S));
        assert_eq!(left, [Due::Leave(ParticipantId(0)), Due::Leave(ParticipantId(2))]);
    }

    #[test]
    fn what_another_worker_leaves_joins_in_order_even_if_it_is_heard_too_late() {
        let mut feed = feed(10);
        feed.due(RunTime(4 * S));
        let reassignment =
            Reassignment { number: 1, of: 1, to: vec![0], from: RunTime(3 * S), ended: Vec::new() };
        feed.reassigned(&reassignment);
        feed.reassigned(&reassignment);
        // 1 joins anew as 7, from 3 s on; 3 and 5 as planned; nobody before 4, which had been given.
        assert_eq!(joined(&feed.due(RunTime(9 * S))), [(3, 4), (7, 4), (5, 5)]);
        let left = feed.due(RunTime(20 * S));
        assert!(left.contains(&Due::Leave(ParticipantId(7))), "{left:?}");
    }

    #[test]
    fn there_are_no_more_than_the_owner_of_the_worker_allows() {
        let mut feed = feed(2);
        let due = feed.due(RunTime(9 * S));
        assert_eq!(joined(&due), [(0, 0), (2, 2)]);
        assert!(matches!(due.last(), Some(Due::NoRoom(dealt)) if dealt.visit.participant.0 == 4));
    }
}
