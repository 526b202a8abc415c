//! Records of the current participants. Of ended ones only sums are kept: a day of joins and leaves
//! has some hundred thousand participants, and neither memory nor the cost of a second may grow
//! with them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use throng_observation::run::{CohortId, ParticipantId};
use throng_observation::{Distribution, Failure, FailureReason, RunTime};

use super::ended_participants::EndedParticipants;
use super::participant_record::ParticipantRecord;
use crate::config::Join;

/// Seconds that the record of an ended participant is kept: intervals of other participants come at
/// most two seconds after the second in which they lie.
const KEPT_S: i64 = 5;

/// The participants of the run: planned, current and ended.
pub(super) struct Participants {
    plan: Arc<[Join]>,
    /// Index of the first planned participant whose intended time has not come.
    due: usize,
    /// Ids of added participants by their numbers in the crowd.
    added: BTreeMap<ParticipantId, u32>,
    current: BTreeMap<u32, ParticipantRecord>,
    /// Ended participants and the second of their end.
    ended: VecDeque<(i64, u32)>,
    ended_participants: EndedParticipants,
    intended: Intended,
}

/// Joins whose intended time has come, by cohort.
struct Intended {
    counts: Vec<u32>,
    /// Index of the first planned join that is not counted yet.
    next: usize,
    /// Added joins that are not counted yet, in order.
    added: VecDeque<(RunTime, CohortId)>,
}

/// The collector's record of a sender.
pub(super) enum Sender<'a> {
    /// It has a record.
    Current(&'a ParticipantRecord),
    /// It left, and its record is gone.
    Left,
    /// It has not joined yet, or is not of this run.
    Unknown,
}

impl Participants {
    pub(super) fn new(plan: Arc<[Join]>, cohorts: u16) -> Self {
        let cohorts = usize::from(cohorts.max(1));
        Self {
            due: 0,
            added: BTreeMap::new(),
            current: BTreeMap::new(),
            ended: VecDeque::new(),
            ended_participants: EndedParticipants::new(cohorts),
            intended: Intended { counts: vec![0; cohorts], next: 0, added: VecDeque::new() },
            plan,
        }
    }

    /// Number of planned participants.
    pub(super) fn planned(&self) -> usize {
        self.plan.len()
    }

    /// Adds a participant.
    pub(super) fn added(&mut self, id: u32, join: &Join) {
        self.added.insert(join.participant, id);
        self.current.insert(id, ParticipantRecord::new(join));
        self.intended.added.push_back((join.at, join.cohort));
    }

    /// Participant `id` was removed.
    pub(super) fn removed(&mut self, id: u32, at: RunTime) {
        let to_come = self.plan.get(id as usize).filter(|_| id as usize >= self.due);
        if let Some(join) = to_come {
            self.current.entry(id).or_insert_with(|| ParticipantRecord::new(join));
        }
        match self.current.get_mut(&id) {
            Some(record) => record.removed(at),
            None => self.ended_participants.removed(id, at),
        }
    }

    /// Makes records for planned joins intended before `at`, whether they began or not.
    pub(super) fn make_due(&mut self, at: RunTime) {
        while let Some(join) = self.plan.get(self.due).filter(|join| join.at < at) {
            self.current.entry(self.due as u32).or_insert_with(|| ParticipantRecord::new(join));
            self.due += 1;
        }
    }

    /// The record of a participant whose join begins; a thread may be ahead of the second that is
    /// closed.
    pub(super) fn start(&mut self, id: u32) -> Option<&mut ParticipantRecord> {
        let is_planned = (id as usize) < self.plan.len();
        while is_planned
            && self.due <= id as usize
            && let Some(join) = self.plan.get(self.due)
        {
            self.current.entry(self.due as u32).or_insert_with(|| ParticipantRecord::new(join));
            self.due += 1;
        }
        self.current.get_mut(&id)
    }

    pub(super) fn get(&self, id: u32) -> Option<&ParticipantRecord> {
        self.current.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut ParticipantRecord> {
        self.current.get_mut(&id)
    }

    /// The number in the crowd of participant `id` of this engine.
    pub(super) fn number(&self, id: u32) -> ParticipantId {
        let planned = || self.plan.get(id as usize).map(|join| join.participant);
        self.get(id)
            .map(ParticipantRecord::participant)
            .or_else(planned)
            .unwrap_or(ParticipantId(id))
    }

    /// The id in this engine of the participant with `number` in the crowd; `None` where another
    /// machine plays it.
    fn id_of(&self, number: ParticipantId) -> Option<u32> {
        let planned = self.plan.binary_search_by_key(&number, |join| join.participant);
        planned.ok().map(|index| index as u32).or_else(|| self.added.get(&number).copied())
    }

    /// The collector's record of the sender of a received track.
    pub(super) fn sender(&self, number: ParticipantId) -> Sender<'_> {
        let Some(id) = self.id_of(number) else { return Sender::Unknown };
        let was_here = || (id as usize) < self.due || id as usize >= self.plan.len();
        match self.current.get(&id) {
            Some(record) => Sender::Current(record),
            None if was_here() => Sender::Left,
            None => Sender::Unknown,
        }
    }

    /// All records (due, current and just ended), by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ParticipantRecord> {
        self.current.values()
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ParticipantRecord> {
        self.current.values_mut()
    }

    /// Notes that a participant ended in `second`.
    pub(super) fn ended(&mut self, id: u32, second: i64) {
        self.ended.push_back((second, id));
    }

    /// Drops the records that no interval can concern once `second` is closed.
    pub(super) fn forget(&mut self, second: i64) {
        while let Some((_, id)) = self.ended.pop_front_if(|(ended, _)| *ended + KEPT_S <= second) {
            if let Some(record) = self.current.remove(&id) {
                self.ended_participants.take(id, &record);
            }
        }
    }

    /// How many participants of each cohort should be served in the second that ends at `end`, and
    /// have no record any more because they failed.
    pub(super) fn lost(&mut self, end: RunTime) -> &[u32] {
        self.ended_participants.lost(end)
    }

    /// Payload bits per second over their lives of all participants that received any.
    pub(super) fn payload_bps(&self) -> Distribution {
        let mut bps = self.ended_participants.payload_bps().clone();
        self.iter()
            .filter_map(ParticipantRecord::payload_bps)
            .for_each(|rate| bps.record(rate as u64));
        bps
    }

    /// Joins of each cohort that were intended before `end`, which must not decrease between calls.
    pub(super) fn intended(&mut self, end: RunTime) -> &[u32] {
        let Intended { counts, next, added } = &mut self.intended;
        let mut count = |cohort: CohortId| {
            if let Some(count) = counts.get_mut(usize::from(cohort.0)) {
                *count += 1;
            }
        };
        while let Some(join) = self.plan.get(*next).filter(|join| join.at < end) {
            count(join.cohort);
            *next += 1;
        }
        if *next == self.plan.len() {
            while let Some((_, cohort)) = added.pop_front_if(|(at, _)| *at < end) {
                count(cohort);
            }
        }
        counts
    }

    /// The participants that have not ended when the run does, each with its failure. Joins were
    /// offered until `offered_until`.
    pub(super) fn left_over(&mut self, offered_until: RunTime) -> Vec<(u32, Failure)> {
        self.make_due(offered_until);
        let fate = |(id, record): (&u32, &ParticipantRecord)| {
            let failure = if record.is_overdue(offered_until) {
                let why = "the run ended before this participant had joined";
                Failure::new(FailureReason::NotStarted, why)
            } else if record.is_alive() {
                Failure::new(FailureReason::Generator, "its thread died")
            } else {
                return None;
            };
            Some((*id, failure))
        };
        self.current.iter().filter_map(fate).collect()
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::{BadIf, Outcome};

    use super::super::seconds::Seconds;
    use super::*;

    const S: i64 = 1_000_000;

    fn join(id: u32, at_s: i64) -> Join {
        Join {
            participant: ParticipantId(id),
            cohort: CohortId(0),
            place: id,
            at: RunTime(at_s * S),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        }
    }

    /// Three planned, ten seconds apart.
    fn planned() -> (Participants, Seconds) {
        (
            Participants::new((0..3).map(|id| join(id, i64::from(id) * 10)).collect(), 1),
            Seconds::new(1),
        )
    }

    fn fail(participants: &mut Participants, seconds: &mut Seconds, id: u32, at_s: i64) {
        let outcome = Outcome::Failed(Failure::new(FailureReason::Ice, "no pair"));
        participants.start(id).expect("it comes").started(RunTime(at_s * S), seconds);
        assert!(participants.get_mut(id).expect("it is here").ended(
            RunTime(at_s * S),
            &outcome,
            seconds
        ));
        participants.ended(id, at_s);
    }

    #[test]
    fn a_sender_is_unknown_before_it_comes_and_has_gone_once_it_is_forgotten() {
        let (mut participants, mut seconds) = planned();
        let state =
            |participants: &Participants, id: u32| match participants.sender(ParticipantId(id)) {
                Sender::Current(_) => "here",
                Sender::Left => "gone",
                Sender::Unknown => "unknown",
            };
        participants.make_due(RunTime(5 * S));
        assert_eq!([0, 1, 3].map(|id| state(&participants, id)), ["here", "unknown", "unknown"]);
        fail(&mut participants, &mut seconds, 1, 10);
        participants.forget(10 + KEPT_S - 1);
        assert_eq!(state(&participants, 1), "here");
        participants.forget(10 + KEPT_S);
        participants.added(3, &join(3, 20));
        assert_eq!(
            [0, 1, 2, 3, 4].map(|id| state(&participants, id)),
            ["here", "gone", "unknown", "here", "unknown"]
        );
        assert!(participants.start(2).is_some());
        assert_eq!(participants.iter().count(), 3);
    }

    #[test]
    fn a_share_of_a_crowd_knows_its_participants_by_their_numbers_in_the_crowd() {
        let mut participants = Participants::new([1, 4].map(|number| join(number, 0)).into(), 1);
        participants.make_due(RunTime(S));
        participants.added(2, &join(9, 1));
        let is_here =
            |number| matches!(participants.sender(ParticipantId(number)), Sender::Current(_));
        assert_eq!([0, 1, 2, 4, 9].map(is_here), [false, true, false, true, true]);
        assert_eq!([0, 1, 2].map(|id| participants.number(id).0), [1, 4, 9]);
    }

    #[test]
    fn a_failed_participant_of_a_share_counts_as_lost_until_it_is_removed() {
        let (mut participants, mut seconds) = planned();
        participants.added(3, &join(70, 1));
        fail(&mut participants, &mut seconds, 3, 2);
        let end = |second: i64| RunTime((second + 1) * S);
        participants.forget(2 + KEPT_S);
        assert_eq!(participants.lost(end(7)), [1]);
        participants.removed(3, RunTime(8 * S));
        assert_eq!(participants.lost(end(9)), [0]);
    }

    #[test]
    fn a_failed_participant_counts_as_lost_until_it_is_removed() {
        let (mut participants, mut seconds) = planned();
        participants.added(3, &join(3, 1));
        fail(&mut participants, &mut seconds, 3, 2);
        let end = |second: i64| RunTime((second + 1) * S);
        assert_eq!(participants.lost(end(2)), [0], "it is here still");
        participants.forget(2 + KEPT_S);
        assert_eq!([7, 5_000].map(|second| participants.lost(end(second))[0]), [1, 1]);
        participants.removed(3, RunTime(5_001 * S + S / 2));
        assert_eq!([5_000, 5_001].map(|second| participants.lost(end(second))[0]), [1, 0]);
        participants.removed(3, RunTime(6_000 * S));
        assert_eq!(participants.lost(end(7_000)), [0]);
    }

    #[test]
    fn a_participant_removed_before_its_join_need_not_be_served() {
        let (mut participants, _) = planned();
        participants.removed(2, RunTime(3 * S));
        participants.make_due(RunTime(60 * S));
        let bad =
            |record: &ParticipantRecord| record.experience(50, &BadIf::default(), |_| 0).is_some();
        assert_eq!(participants.iter().map(bad).collect::<Vec<_>>(), [true, true, false]);
        let left: Vec<u32> =
            participants.left_over(RunTime(60 * S)).into_iter().map(|(id, _)| id).collect();
        assert_eq!((left, participants.intended(RunTime(11 * S))), (vec![0, 1, 2], &[2][..]));
    }
}
