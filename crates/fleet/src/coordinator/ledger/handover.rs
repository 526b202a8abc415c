//! Whether the participants of a worker that is gone are given to others, and who plays them then.

use std::collections::HashMap;
use std::time::Duration;

use throng_observation::RunTime;

use crate::message::Reassignment;
use crate::reassign::{Deal, Dealt};
use crate::shares::Shares;

/// From the moment at which a worker is given up until others play its participants. It was not
/// heard for four seconds then; one that is only cut off from the bus plays on until it has heard
/// nothing for eight, and two participants with one name would meet.
const AFTER: Duration = Duration::from_secs(5);

/// Longest list of participants that had ended, in a message that each beat has: some 200 kB.
const ENDED_MAX: usize = 20_000;

/// Who plays whom, where that changes.
#[derive(Debug)]
pub(super) struct Handover {
    deal: Deal,
    /// Participants that another worker plays than the plan has it, by their numbers.
    moved: HashMap<u32, u16>,
    is_over: bool,
}

impl Handover {
    pub(super) fn new(deal: Deal) -> Self {
        Self { deal, moved: HashMap::new(), is_over: false }
    }

    /// Nobody is given to others any more: the run ends.
    pub(super) fn is_over(&mut self) {
        self.is_over = true;
    }

    /// Whether `worker` plays the participant with a number.
    pub(super) fn plays(&self, worker: u16, number: u32, shares: &Shares) -> bool {
        let planned = || (number < self.deal.planned()).then(|| shares.worker_of(number));
        self.moved.get(&number).copied().or_else(planned) == Some(worker)
    }

    /// The reassignment of the participants of worker `of`, which is gone `now`, to those that
    /// play. `None` if nobody is left to get them, or it would come too late.
    ///
    /// # Errors
    /// If more of those that would join anew have `ended` by themselves than a message has room
    /// for: they would join again.
    pub(super) fn next(
        &self,
        of: u16,
        to: Vec<u16>,
        now: RunTime,
        ended: &[u32],
    ) -> Result<Option<Reassignment>, String> {
        let from =
            RunTime(now.0.saturating_add(i64::try_from(AFTER.as_micros()).unwrap_or(i64::MAX)));
        let is_possible = !self.is_over && !to.is_empty() && from < self.deal.ends_at();
        let Some(number) = self.deal.made().checked_add(1).filter(|_| is_possible) else {
            return Ok(None);
        };
        let ended = self.deal.would_be_there(of, from, ended);
        if ended.len() > ENDED_MAX {
            let count = ended.len();
            return Err(format!(
                "{count} of them had ended early, more than the {ENDED_MAX} that a reassignment \
                 can name"
            ));
        }
        Ok(Some(Reassignment { number, of, to, from, ended }))
    }

    /// Whether a reassignment is the one after the last that was made.
    pub(super) fn is_next(&self, reassignment: &Reassignment) -> bool {
        self.deal.made().checked_add(1) == Some(reassignment.number)
    }

    /// Makes a reassignment; the participants that other workers play from now on.
    pub(super) fn make(&mut self, reassignment: &Reassignment) -> Vec<Dealt> {
        let moved = self.deal.make(reassignment);
        self.moved.extend(moved.iter().map(|dealt| (dealt.visit.participant.0, dealt.worker)));
        moved
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::run::{CohortId, ParticipantId};

    use super::*;
    use crate::reassign::Visit;

    #[test]
    fn who_would_have_left_is_not_told_of_and_what_has_no_room_is_refused() {
        let shares = Shares::of(&[1, 1]).expect("two workers");
        // The first half has left by the time.
        let visits = (0..100_000_u32).map(|number| Visit {
            participant: ParticipantId(number),
            cohort: CohortId(0),
            at: RunTime(0),
            leave_at: (number < 50_000).then_some(RunTime(10_000_000)),
        });
        let deal = Deal::new(&[1, 1], &shares, visits, RunTime(90_000_000), 10);
        let own: Vec<u32> = deal.of(1).map(|dealt| dealt.visit.participant.0).collect();
        let handover = Handover::new(deal);
        let next = |ended: &[u32]| handover.next(1, vec![0], RunTime(20_000_000), ended);
        let most = own.len() / 2 + ENDED_MAX;
        let given =
            own.get(..most).and_then(|ended| next(ended).ok().flatten()).expect("there is room");
        assert!(
            given.ended.len() == ENDED_MAX && given.ended.iter().all(|number| *number >= 50_000)
        );
        let why = next(&own).expect_err("no room");
        assert!(why.starts_with("25000 of them had ended"), "{why}");
    }
}
