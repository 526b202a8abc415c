//! What the coordinator decides about workers that are gone, and the decisions of an earlier
//! coordinator.

use std::time::Instant;

use throng_observation::RunTime;
use throng_observation::run::Row;

use super::handover::Handover;
use super::{Fate, Ledger, Notice, NoticeKind};
use crate::merge::{PlannedJoin, WorkerId};
use crate::message::{Decision, Reassignment};
use crate::reassign::Visit;

impl Ledger {
    /// Takes a decision of the coordinator that is gone.
    pub fn decided(&mut self, decision: &Decision, out: &mut Vec<Row>) {
        let Decision { worker, gave_up, reassignment } = decision;
        match gave_up {
            Some(why) if !self.is_gone(*worker) => {
                self.give_up(*worker, why, reassignment.as_ref(), out);
            }
            _ => reassignment.iter().for_each(|reassignment| self.hand_over(reassignment)),
        }
    }

    /// The decisions since the last time.
    pub fn decisions(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.decisions)
    }

    /// The run ends: nobody is given to others any more.
    pub fn stopped(&mut self) {
        if let Some(handover) = &mut self.handover {
            handover.is_over();
        }
    }

    /// The last reassignment that all workers have made that still play.
    #[must_use]
    pub fn reassigned_by_all(&self) -> u32 {
        let playing = self.workers.iter().filter(|state| matches!(state.fate, Fate::Plays));
        playing.map(|state| state.reassigned).min().unwrap_or(u32::MAX)
    }

    /// Whether others get the participants of a worker that is gone. Those that ended before
    /// `left_from` ended by themselves.
    pub(super) fn reassignment(
        &mut self,
        worker: u16,
        left_from: RunTime,
        now: Instant,
    ) -> Option<Reassignment> {
        let handover = self.handover.as_ref().filter(|_| self.collects.is_none())?;
        let plays = |other: &u16| {
            let state = self.workers.get(usize::from(*other));
            *other != worker && state.is_some_and(|state| matches!(state.fate, Fate::Plays))
        };
        let at = super::run_time(self.started_at, now);
        let ended = self.merger.ended(WorkerId(worker), left_from);
        match handover.next(worker, self.workers().filter(plays).collect(), at, &ended) {
            Ok(reassignment) => reassignment,
            Err(why) => {
                self.notices.push(Notice { worker, what: NoticeKind::NotReassigned(why) });
                None
            }
        }
    }

    /// Gives participants to other workers.
    pub(super) fn hand_over(&mut self, reassignment: &Reassignment) {
        // The bus may have stored one twice, where only its answer was lost.
        let next = |handover: &&mut Handover| handover.is_next(reassignment);
        let Some(handover) = self.handover.as_mut().filter(next) else { return };
        let moved = handover.make(reassignment);
        for dealt in &moved {
            if let Some(joins) = self.joins.get_mut(usize::from(dealt.worker)) {
                let Visit { participant, cohort, at: intended_at, leave_at } = dealt.visit;
                joins.push(PlannedJoin { participant, cohort, intended_at, leave_at });
            }
        }
        let count = |is_anew: bool| {
            let count = moved.iter().filter(|dealt| dealt.is_anew() == is_anew).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let (anew, planned) = (count(true), count(false));
        let all = &mut self.reassigned_joins;
        all.anew = all.anew.saturating_add(u64::from(anew));
        all.planned = all.planned.saturating_add(u64::from(planned));
        let what = NoticeKind::Reassigned { from: reassignment.from, anew, planned };
        self.notices.push(Notice { worker: reassignment.of, what });
    }

    /// Keeps a decision for those who have to know it.
    pub(super) fn note(&mut self, decision: Decision) {
        if self.collects.is_none() {
            self.decisions.push(decision);
        }
    }
}
