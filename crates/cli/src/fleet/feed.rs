//! The joins and leaves of a worker whose part of the crowd may grow: they are given to the engine
//! one after the other, shortly before they are due, as a search gives them. What a worker that was
//! lost leaves is put between them. From then on this worker has its part of the plan's joins per
//! second and no more, whatever comes from the bus and however late: the target has consented to
//! the rate of the plan.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throng_fleet::message::Reassignment;
use throng_fleet::reassign::{Deal, Dealt, Rate, Visit};
use throng_fleet::shares::Shares;
use throng_observation::RunTime;
use throng_observation::run::ParticipantId;
use throng_scenario::Plan;

/// How long before its join a participant is given to the engine, microseconds: as in a search.
const AHEAD_US: i64 = 300_000;

/// The deal of a plan among workers of these weights.
pub(crate) fn deal(plan: &Plan, weights: &[u32], shares: &Shares) -> Deal {
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
pub(crate) enum Due {
    /// A participant joins.
    Join(Dealt),
    /// A participant leaves.
    Leave(ParticipantId),
    /// A participant was to join, and does not; why.
    NotStarted(Dealt, &'static str),
}

/// The owner of a worker lets it play no more.
const NO_ROOM: &str = "the worker that this participant was reassigned to is at its maximum";

/// Others had to join first.
const NO_TIME: &str = "its stay would have ended before the plan's joins per second let it join";

/// The joins and leaves that are to come.
#[derive(Debug)]
pub(crate) struct Feed {
    deal: Deal,
    worker: u16,
    /// Most participants at a time.
    most: usize,
    /// By time and number.
    joins: BTreeMap<(RunTime, ParticipantId), Dealt>,
    leaves: BTreeSet<(RunTime, ParticipantId)>,
    present: BTreeSet<ParticipantId>,
    /// When the last ones joined that were given, ascending: as many as the plan has in a second.
    /// The engine takes none before them.
    given: VecDeque<RunTime>,
    given_max: usize,
    /// What this worker may have, once it gets what others leave. Until then all join when the plan
    /// says.
    rate: Option<Rate>,
}

impl Feed {
    /// The joins of `worker`, which plays at most so many participants at a time.
    pub(crate) fn new(deal: Deal, worker: u16, most: usize) -> Self {
        let joins = deal.of(worker).map(key).collect();
        let given_max = deal.rate(worker, &[worker]).joins;
        Self {
            deal,
            worker,
            most,
            joins,
            leaves: BTreeSet::new(),
            present: BTreeSet::new(),
            given: VecDeque::new(),
            given_max,
            rate: None,
        }
    }

    /// Takes what this worker gets of one that is gone.
    pub(crate) fn reassigned(&mut self, reassignment: &Reassignment) {
        let made = self.deal.made();
        let own =
            self.deal.make(reassignment).into_iter().filter(|dealt| dealt.worker == self.worker);
        self.joins.extend(own.map(key));
        if self.deal.made() > made {
            self.rate = Some(self.deal.rate(self.worker, &reassignment.to));
        }
    }

    /// When one may join that is to join at `at`.
    fn possible(&self, at: RunTime, now: RunTime) -> RunTime {
        // It came late from the bus: its join is intended for the moment at which it is possible.
        let at = self.given.back().map_or(at, |last| at.max(*last));
        let Some(Rate { joins, within_us }) = self.rate else { return at };
        let before = self.given.len().checked_sub(joins).and_then(|index| self.given.get(index));
        let free_at = before.map_or(now, |before| RunTime(before.0.saturating_add(within_us)));
        at.max(now).max(free_at)
    }

    /// What is due at `now`.
    pub(crate) fn due(&mut self, now: RunTime) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some((at, participant)) =
            self.leaves.first().copied().filter(|(at, _)| *at <= now)
        {
            self.leaves.remove(&(at, participant));
            self.present.remove(&participant);
            due.push(Due::Leave(participant));
        }
        let until = RunTime(now.0.saturating_add(AHEAD_US));
        while let Some((&key, &dealt)) =
            self.joins.first_key_value().filter(|(key, _)| key.0 <= until)
        {
            let at = self.possible(dealt.visit.at, now);
            if at > until {
                // The others wait behind it.
                break;
            }
            self.joins.remove(&key);
            due.push(self.join(dealt, at));
        }
        due
    }

    /// Lets a participant join at `at`, if it may.
    fn join(&mut self, mut dealt: Dealt, at: RunTime) -> Due {
        let is_late = at > dealt.visit.at;
        dealt.visit.at = at;
        let ends_at = self.deal.ends_at();
        let leaves_at = dealt.visit.leave_at.map_or(ends_at, |leave_at| leave_at.min(ends_at));
        if is_late && leaves_at <= at {
            return Due::NotStarted(dealt, NO_TIME);
        }
        // Joins are given before they are due: who leaves by then makes room, as one does whom the
        // plan replaces at once.
        let leaving = self.leaves.range(..=(at, ParticipantId(u32::MAX))).count();
        if self.present.len().saturating_sub(leaving) >= self.most {
            return Due::NotStarted(dealt, NO_ROOM);
        }
        if self.given.len() >= self.given_max {
            self.given.pop_front();
        }
        self.given.push_back(at);
        self.present.insert(dealt.visit.participant);
        self.leaves.extend(dealt.visit.leave_at.map(|at| (at, dealt.visit.participant)));
        Due::Join(dealt)
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

    /// What joins from one second to another, looked at as a worker does, and when, in tenths of a
    /// second.
    fn joined_within(feed: &mut Feed, from_s: i64, to_s: i64) -> Vec<(u32, i64)> {
        let mut all = Vec::new();
        for at in (from_s * S..to_s * S).step_by(20_000) {
            for due in feed.due(RunTime(at)) {
                if let Due::Join(dealt) = due {
                    all.push((dealt.visit.participant.0, dealt.visit.at.0 * 10 / S));
                }
            }
        }
        all
    }

    fn gone(number: u32, from_s: i64) -> Reassignment {
        Reassignment { number, of: 1, to: vec![0], from: RunTime(from_s * S), ended: Vec::new() }
    }

    #[test]
    fn what_another_worker_leaves_joins_in_order_and_no_faster_than_the_plan_even_if_it_is_heard_too_late()
     {
        let mut feed = feed(10);
        feed.due(RunTime(4 * S));
        feed.reassigned(&gone(1, 3));
        feed.reassigned(&gone(1, 3));
        // 1 joins anew as 7, from 3 s on; 3 and 5 as planned; nobody within a second of 4, which
        // had been given for 4 s.
        assert_eq!(joined_within(&mut feed, 4, 9), [(3, 50), (7, 60), (5, 70)]);
        let left = feed.due(RunTime(20 * S));
        assert!(left.contains(&Due::Leave(ParticipantId(7))), "{left:?}");
    }

    #[test]
    fn what_is_overdue_by_a_message_from_the_bus_does_not_join_at_once() {
        let shares = Shares::of(&[1, 1]).expect("two workers");
        let visits = (0..40_u32).map(|number| Visit {
            participant: ParticipantId(number),
            cohort: CohortId(0),
            at: RunTime(i64::from(number) * S / 4),
            leave_at: None,
        });
        let mut feed = Feed::new(Deal::new(&[1, 1], &shares, visits, RunTime(60 * S), 4), 0, 100);
        let planned = joined_within(&mut feed, 0, 12);
        assert!(planned.len() == 20 && planned[19].1 == 95, "as planned before: {planned:?}");
        feed.reassigned(&gone(1, 0));
        let joined = joined_within(&mut feed, 12, 20);
        assert_eq!(joined.len(), 20);
        assert!(
            joined[0].1 >= 120 && joined.windows(5).all(|five| five[4].1 >= five[0].1 + 10),
            "{joined:?}"
        );
    }

    #[test]
    fn planned_joins_count_in_the_rate_and_a_visit_that_is_over_before_it_can_begin_is_told() {
        let shares = Shares::of(&[1, 1]).expect("two workers");
        let visits = (0..6_u32).map(|number| Visit {
            participant: ParticipantId(number),
            cohort: CohortId(0),
            at: RunTime(10 * S),
            leave_at: (number == 5).then_some(RunTime(11 * S)),
        });
        let mut feed = Feed::new(Deal::new(&[1, 1], &shares, visits, RunTime(60 * S), 2), 0, 100);
        feed.reassigned(&gone(1, 5));
        let due = (9 * S..15 * S)
            .step_by(20_000)
            .flat_map(|at| feed.due(RunTime(at)))
            .collect::<Vec<_>>();
        assert_eq!(joined(&due), [(0, 10), (1, 10), (2, 11), (3, 11), (4, 12)]);
        let over = due.iter().find(|due| matches!(due, Due::NotStarted(..)));
        assert!(
            matches!(over, Some(Due::NotStarted(dealt, NO_TIME)) if dealt.visit.participant.0 == 5)
        );
    }

    #[test]
    fn there_are_no_more_than_the_owner_of_the_worker_allows() {
        let mut feed = feed(2);
        let due = feed.due(RunTime(9 * S));
        assert_eq!(joined(&due), [(0, 0), (2, 2)]);
        assert!(
            matches!(due.last(), Some(Due::NotStarted(dealt, NO_ROOM)) if dealt.visit.participant.0 == 4)
        );
    }

    #[test]
    fn who_leaves_by_the_time_of_a_join_makes_room_for_it() {
        let shares = Shares::of(&[1]).expect("a worker");
        let visits = (0..2_u32).map(|number| Visit {
            participant: ParticipantId(number),
            cohort: CohortId(0),
            at: RunTime(i64::from(number) * 5 * S),
            leave_at: Some(RunTime(i64::from(number + 1) * 5 * S)),
        });
        let mut feed = Feed::new(Deal::new(&[1], &shares, visits, RunTime(60 * S), 1), 0, 1);
        assert_eq!(joined_within(&mut feed, 0, 9), [(0, 0), (1, 50)]);
    }
}
