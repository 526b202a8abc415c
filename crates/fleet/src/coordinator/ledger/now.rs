//! How it goes for the workers, for whoever watches a run in progress.

use std::time::Instant;

use throng_observation::fleet::{EndClock, FleetNow, WorkerFate, WorkerNow};

use super::{Fate, Ledger};
use crate::merge::WorkerId;

impl Ledger {
    /// How it goes for all workers at a moment.
    #[must_use]
    pub fn fleet_at(&self, now: Instant) -> FleetNow {
        let workers = self.workers().filter_map(|worker| self.worker_at(worker, now)).collect();
        FleetNow { workers, reassigned: self.reassigned_joins }
    }

    fn worker_at(&self, worker: u16, now: Instant) -> Option<WorkerNow> {
        let state = self.workers.get(usize::from(worker))?;
        let fate = match state.fate {
            Fate::Plays => WorkerFate::Plays,
            Fate::Ends(..) => WorkerFate::Ends,
            Fate::Ended => WorkerFate::Ended,
            Fate::Lost => WorkerFate::Lost,
        };
        let id = WorkerId(worker);
        let closed = self.merger.watermark(id).map_or(0, |second| second.saturating_add(1));
        let age_us = super::run_time(self.started_at, now)
            .0
            .saturating_sub(closed.saturating_mul(1_000_000));
        let silent = now.saturating_duration_since(state.heard_at);
        let clock = self
            .clock(worker)
            .map(|said| EndClock { offset_us: said.offset_us, bound_us: said.bound_us });
        Some(WorkerNow {
            fate,
            playing: self.merger.playing(id),
            clock,
            rows_age_us: u64::try_from(age_us).unwrap_or(0),
            silent_us: u64::try_from(silent.as_micros()).unwrap_or(u64::MAX),
            spooled_bytes: state.spooled_bytes,
            given_up_batches: state.given_up,
        })
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;

    use super::super::tests::{S, ledger, look, pulse, reassigning, second};
    use super::*;
    use crate::message::{ClockSaid, End, Pulse};

    #[test]
    fn a_worker_that_falls_silent_shows_before_it_is_lost_and_then_plays_nobody() {
        let begin = Instant::now();
        let (mut ledger, mut out) = (ledger(begin), Vec::new());
        let at = |ledger: &Ledger, now| ledger.fleet_at(now).workers;
        for worker in ledger.workers() {
            let now = at(&ledger, begin)[usize::from(worker)];
            assert_eq!((now.fate, now.playing, now.clock), (WorkerFate::Plays, 0, None));
            ledger.rows(worker, 0, second(0), begin, &mut out);
        }
        let clock = ClockSaid { offset_us: -7, bound_us: 3, ..ClockSaid::default() };
        let said = Pulse { clock, spooled_bytes: 5, given_up: 2, ..pulse(1) };
        ledger.pulse(&said, begin + S);
        let now = look(&mut ledger, begin + S, 2 * S, &[0], &mut out);
        let [a, b] = at(&ledger, now).try_into().expect("two");
        assert_eq!((a.playing, a.rows_age_us, a.silent_us), (1, 2_000_000, 0));
        assert_eq!(b.clock, Some(EndClock { offset_us: -7, bound_us: 3 }));
        assert_eq!((b.fate, b.playing, b.silent_us), (WorkerFate::Plays, 1, 2_000_000));
        assert_eq!((b.spooled_bytes, b.given_up_batches), (5, 2));
        let now = look(&mut ledger, now, 3 * S, &[0], &mut out);
        let [a, b] = at(&ledger, now).try_into().expect("two");
        assert_eq!([a.fate, b.fate], [WorkerFate::Plays, WorkerFate::Lost]);
        assert_eq!([a.playing, b.playing], [1, 0]);
        let end = End { batches: 1, ended_at: RunTime(1), ..End::default() };
        ledger.ends(0, &end, now);
        assert_eq!(at(&ledger, now)[0].fate, WorkerFate::Ends);
        ledger.tick(now, &mut out);
        assert_eq!(at(&ledger, now)[0].fate, WorkerFate::Ended);
    }

    #[test]
    fn joins_that_others_play_are_counted_once() {
        let begin = Instant::now();
        let (mut ledger, mut out) = (reassigning(begin), Vec::new());
        let now = look(&mut ledger, begin, 5 * S, &[0], &mut out);
        let given = ledger.fleet_at(now).reassigned;
        assert_eq!(given.anew + given.planned, 3);
        // The bus had the decision twice.
        let [decision] = ledger.decisions().try_into().expect("one");
        ledger.decided(&decision, &mut out);
        assert_eq!(ledger.fleet_at(now).reassigned, given);
    }
}
