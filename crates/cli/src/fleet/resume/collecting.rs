//! The rows of a run, made again from what the bus has of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use throng_fleet::{FleetEnd, FleetEvent, FleetRun, Ledger, NoticeKind};
use throng_observation::RunTime;
use throng_observation::fleet::{
    COORDINATOR_GONE_EVENT, WORKER_ENDED_EVENT, WORKER_LOST_EVENT, WORKER_REASSIGNED_EVENT,
    WORKER_ROWS_MISSING_EVENT, WorkerInfo,
};
use throng_observation::run::{EventRow, MARK_EVENT, Row};
use throng_store::{RebuiltRun, StoreError};

use super::super::merging::{not_reassigned, reassigned};
use crate::console::{CliError, Interrupt, say};

/// How long an event may take until silent workers are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Rows that are written in one transaction.
const ROWS_OF_A_COMMIT: usize = 1_000;

/// A run that is collected.
pub(super) struct Collecting {
    again: RebuiltRun,
    ledger: Ledger,
    /// Workers that their coordinator had given up: nothing of them is waited for.
    given_up: BTreeSet<u16>,
    merged: Vec<Row>,
    written: usize,
}

impl Collecting {
    pub(super) fn new(again: RebuiltRun, ledger: Ledger) -> Self {
        Self { again, ledger, given_up: BTreeSet::new(), merged: Vec::new(), written: 0 }
    }

    /// Leaves the folder as it was.
    pub(super) fn discard(self) {
        self.again.discard();
    }

    /// Takes all that has come and comes, until every worker has ended or is given up; `None` when
    /// it was interrupted.
    pub(super) fn take_all(
        &mut self,
        run: &mut FleetRun,
        interrupt: &Interrupt,
    ) -> Option<FleetEnd> {
        loop {
            let mut next = run.next(LOOK_EVERY);
            while let Some(event) = next {
                self.take(event);
                self.write();
                next = run.next(Duration::ZERO);
            }
            self.ledger.tick(Instant::now(), &mut self.merged);
            self.write();
            self.tell_notices();
            if interrupt.is_set() {
                return None;
            }
            if let Some(end) = self.ledger.end() {
                return Some(end);
            }
        }
    }

    fn take(&mut self, event: FleetEvent) {
        let now = Instant::now();
        match event {
            FleetEvent::Pulse(pulse) => self.ledger.pulse(&pulse, now),
            FleetEvent::Rows { worker, sequence, bytes } => {
                self.ledger.rows(worker, sequence, bytes, now, &mut self.merged);
            }
            FleetEvent::Ended { worker, end } => self.ledger.ends(worker, &end, now),
            FleetEvent::Decided(decision) => {
                // What had come before it counts before it.
                self.ledger.tick(now, &mut self.merged);
                self.given_up.extend(decision.gave_up.is_some().then_some(decision.worker));
                self.ledger.decided(&decision, &mut self.merged);
            }
            FleetEvent::CaughtUp => self.ledger.caught_up(now),
            FleetEvent::Bus(is_up) => self.ledger.bus(is_up, now),
        }
    }

    fn write(&mut self) {
        for row in self.merged.drain(..) {
            self.again.writer.write(row);
            self.written += 1;
            if self.written.is_multiple_of(ROWS_OF_A_COMMIT) {
                // What cannot be written is tried again with the next ones, and at the end.
                let _ = self.again.writer.commit();
            }
        }
    }

    /// Says what happened to workers, and keeps it.
    fn tell_notices(&mut self) {
        for notice in self.ledger.notices() {
            let name = self.ledger.name(notice.worker);
            match notice.what {
                // The merge has written it.
                NoticeKind::Lost(why) => say(&format!("worker {name} is lost: {why}")),
                NoticeKind::EndedEarly(why) => {
                    self.event(
                        WORKER_ENDED_EVENT,
                        None,
                        &format!("worker {name} ended early: {why}"),
                    );
                }
                NoticeKind::Reassigned { from, anew, planned } => {
                    let detail = reassigned(&name, from, anew, planned);
                    self.event(WORKER_REASSIGNED_EVENT, Some(from), &detail);
                }
                NoticeKind::NotReassigned(why) => {
                    let detail = not_reassigned(&name, &why);
                    self.event(WORKER_REASSIGNED_EVENT, None, &detail);
                }
                // Of clocks its coordinator has told what there was; this one's is another.
                NoticeKind::ClockStepped | NoticeKind::ClockContradicted => {}
            }
        }
    }

    fn event(&mut self, kind: &str, at: Option<RunTime>, detail: &str) {
        say(detail);
        let at = at.unwrap_or_else(|| self.ledger.last_end());
        let event =
            EventRow { at, participant: None, kind: kind.into(), count: 1, detail: detail.into() };
        self.again.writer.write(Row::Event(event));
    }

    /// Writes the end of the run, and puts the rows in the place of those that were there, once
    /// `begun` has kept that this happens; the names of workers that are missing.
    pub(super) fn finish(
        mut self,
        end: &FleetEnd,
        begun: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<Vec<String>, CliError> {
        let workers = self.ledger.workers();
        let incomplete: Vec<String> =
            workers.filter_map(|worker| self.ledger.missing(worker)).collect();
        incomplete.iter().for_each(|detail| self.event(WORKER_ROWS_MISSING_EVENT, None, detail));
        let gone_at =
            self.again.last_second.map(|second| RunTime((second + 1).saturating_mul(1_000_000)));
        let detail = "the coordinator was gone from about here on; what the workers had measured \
                      was collected afterwards, and what it measures itself (watched hosts, \
                      browsers) ends here";
        self.event(COORDINATOR_GONE_EVENT, Some(gone_at.unwrap_or(RunTime(0))), detail);
        end.why.iter().for_each(|why| say(&format!("the run ended early: {why}")));
        let lost = self.ledger.lost().into_iter().filter(|worker| !self.given_up.contains(worker));
        let missing = lost.map(|worker| self.ledger.name(worker)).collect();
        if self.again.writer.rows_lost() > 0 {
            self.again.discard();
            return Err(CliError::invalid(anyhow!(
                "the rows could not be stored; the folder is as it was"
            )));
        }
        if let Err(error) = begun() {
            self.again.discard();
            return Err(CliError::invalid(error));
        }
        self.again.finish(end.ending, end.ended_at).map_err(CliError::invalid)?;
        Ok(missing)
    }
}

/// Whether an event is the coordinator's own: those of workers come from the bus again, and what
/// follows from their rows is made again.
pub(super) fn is_the_coordinators(event: &EventRow, workers: &[WorkerInfo]) -> bool {
    // A person marks what happens to a worker, and names it as its own events do.
    if event.kind == MARK_EVENT {
        return true;
    }
    let made_again = [
        WORKER_LOST_EVENT,
        WORKER_ENDED_EVENT,
        WORKER_REASSIGNED_EVENT,
        WORKER_ROWS_MISSING_EVENT,
        COORDINATOR_GONE_EVENT,
    ];
    let is_of = |worker: &WorkerInfo| {
        event.detail.strip_prefix(&worker.name).is_some_and(|rest| rest.starts_with(": "))
    };
    !made_again.contains(&event.kind.as_str()) && !workers.iter().any(is_of)
}

#[cfg(test)]
mod tests {
    use throng_fleet::merge::MergeLimits;
    use throng_fleet::shares::Shares;
    use throng_observation::run::{Ending, RunInfo};
    use throng_store::RunFolder;

    use super::*;

    #[test]
    fn events_of_workers_come_from_the_bus_again_and_those_of_the_coordinator_stay() {
        let workers = [WorkerInfo { name: "box1".into(), ..WorkerInfo::default() }];
        let event = |kind: &str, detail: &str| EventRow {
            at: RunTime(0),
            participant: None,
            kind: kind.into(),
            count: 1,
            detail: detail.into(),
        };
        for (kind, detail, stays) in [
            ("anomaly", "box1: an odd packet", false),
            ("anomaly", "box10: an odd packet", true),
            (WORKER_LOST_EVENT, "box1 was lost: 4 participants", false),
            ("watch", "the watcher of janus is lost", true),
            (MARK_EVENT, "box1: restarted", true),
            (COORDINATOR_GONE_EVENT, "the coordinator was gone", false),
        ] {
            assert_eq!(is_the_coordinators(&event(kind, detail), &workers), stays, "{detail}");
        }
    }

    #[test]
    fn rows_are_not_put_in_place_before_it_is_kept_that_the_run_can_be_resumed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run");
        drop(RunFolder::create(&path, &RunInfo::default()).expect("a run"));
        let collecting = || {
            let ledger = Ledger::new(
                vec!["a".into()],
                Shares::of(&[1]).expect("one worker"),
                vec![Vec::new()],
                MergeLimits { cohorts: 1, second_max: 1, participants: 0 },
                Instant::now(),
            );
            Collecting::new(RunFolder::again(&path, |_| true).expect("begun again"), ledger)
        };
        let end = FleetEnd { ending: Ending::Complete, why: None, ended_at: RunTime(1) };
        let full = || Err(StoreError::NoFolder(path.clone()));
        assert!(collecting().finish(&end, full).is_err());
        let ending = || RunFolder::outline(&path).expect("a run").ending;
        assert_eq!(ending(), Ending::Unfinished, "as it was");
        assert!(collecting().finish(&end, || Ok(())).is_ok());
        assert_eq!(ending(), Ending::Complete);
    }
}
