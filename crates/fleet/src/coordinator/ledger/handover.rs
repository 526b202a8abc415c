//! Whether the participants of a worker that is gone are given to others, and who plays them then.

use std::collections::HashMap;
use std::time::Duration;

use throng_observation::RunTime;

use crate::message::Reassignment;
use crate::reassign::{Deal, Dealt};
use crate::shares::Shares;

/// From the moment at which a worker is given up until others play its participants. It was not heard for four seconds then; one that
/// is only cut off from the bus plays on until it has heard nothing for eight, and two participants with one name would meet.
const AFTER: Duration = Duration::from_secs(5);

/// Longest list of participants that had ended, in a message that each beat has.
pub(super) const ENDED_MAX: usize = 20_000;

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

    /// The reassignment of the participants of worker `of`, which is gone `now`, to those that play. `None` if nobody is left to get
    /// them, or it would come too late.
    pub(super) fn next(&self, of: u16, to: Vec<u16>, now: RunTime, ended: Vec<u32>) -> Option<Reassignment> {
        let from = RunTime(now.0.saturating_add(i64::try_from(AFTER.as_micros()).unwrap_or(i64::MAX)));
        let is_possible = !self.is_over && !to.is_empty() && from < self.deal.ends_at();
        let number = self.deal.made().checked_add(1).filter(|_| is_possible)?;
        Some(Reassignment { number, of, to, from, ended })
    }

    /// Makes a reassignment; the participants that other workers play from now on.
    pub(super) fn make(&mut self, reassignment: &Reassignment) -> Vec<Dealt> {
        let moved = self.deal.make(reassignment);
        self.moved.extend(moved.iter().map(|dealt| (dealt.visit.participant.0, dealt.worker)));
        moved
    }
}
