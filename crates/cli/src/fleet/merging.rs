//! What comes from the workers of a run becomes one run, until all have ended.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use throng_engine::MergedLive;
use throng_engine::live::RunState;
use throng_fleet::{Coordinator, FleetEnd, FleetEvent, FleetRun, Ledger, NoticeKind, Wishes};
use throng_observation::RunTime;
use throng_observation::fleet::{
    WORKER_CLOCK_EVENT, WORKER_ENDED_EVENT, WORKER_REASSIGNED_EVENT, WORKER_ROWS_MISSING_EVENT,
};
use throng_observation::run::{EventRow, Row};

use super::decisions::{Decisions, Given};
use crate::args::OnLoss;
use crate::console::say;

/// How long an event may take until silent workers are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long participants may take to leave, and the last seconds to arrive.
const LEAVING: Duration = Duration::from_secs(60);

/// What the merging thread and the command share.
pub(super) struct Shared {
    pub(super) live: Mutex<MergedLive>,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) wishes: Wishes,
    pub(super) is_finished: AtomicBool,
    pub(super) limited_seconds: AtomicU32,
}

/// Merges what comes from the workers, until all have ended.
pub(super) struct Merge {
    pub(super) shared: Arc<Shared>,
    pub(super) rows: SyncSender<Row>,
    pub(super) on_loss: OnLoss,
    pub(super) started_at: Instant,
    pub(super) ends_at: RunTime,
    pub(super) decisions: Decisions,
}

impl Merge {
    pub(super) fn run(mut self, mut run: FleetRun, coordinator: &Coordinator) -> FleetEnd {
        let mut merged = Vec::new();
        let planned = Duration::from_micros(u64::try_from(self.ends_at.0).unwrap_or(0));
        lock(&self.shared.ledger).end_by(self.started_at + planned + LEAVING);
        let end = loop {
            let mut next = run.next(LOOK_EVERY);
            {
                let mut ledger = lock(&self.shared.ledger);
                // All that has come, before silence is counted.
                while let Some(event) = next {
                    take(&mut ledger, event, &mut merged);
                    next = if merged.len() < 10_000 { run.next(Duration::ZERO) } else { None };
                }
                if self.shared.wishes.is_stopped() {
                    ledger.end_by(Instant::now() + LEAVING);
                    ledger.stopped();
                }
                ledger.tick(Instant::now(), &mut merged);
                self.shared.wishes.changed(ledger.changed_by_all());
                self.shared.wishes.reassigned(ledger.reassigned_by_all());
            }
            self.write(&mut merged);
            self.tell_notices();
            self.tell_decisions(coordinator);
            if let Some(end) = lock(&self.shared.ledger).end() {
                break end;
            }
        };
        self.tell_missing();
        self.tell_not_given();
        run.end();
        coordinator.forget();
        lock(&self.shared.live).set_state(RunState::Finished);
        self.shared.is_finished.store(true, Ordering::Release);
        end
    }

    fn write(&self, merged: &mut Vec<Row>) {
        let state = match self.shared.wishes.is_stopped() {
            _ if Instant::now() < self.started_at => RunState::Starting,
            false if run_time(self.started_at, Instant::now()) < self.ends_at => RunState::Running,
            _ => RunState::Leaving,
        };
        {
            let mut live = lock(&self.shared.live);
            merged.iter().for_each(|row| live.take(row));
            live.set_state(state);
        }
        for row in merged.drain(..) {
            if matches!(&row, Row::SecondClosed(second) if second.is_generator_limited) {
                self.shared.limited_seconds.fetch_add(1, Ordering::Relaxed);
            }
            // Without a store the run continues for the live snapshot.
            let _ = self.rows.send(row);
        }
    }

    /// Tells what did not arrive from workers that ended in order.
    fn tell_missing(&self) {
        let missing: Vec<String> = {
            let ledger = lock(&self.shared.ledger);
            ledger.workers().filter_map(|worker| ledger.missing(worker)).collect()
        };
        missing.iter().for_each(|detail| self.event(WORKER_ROWS_MISSING_EVENT, detail));
    }

    /// Says what happened, and keeps it.
    fn event(&self, kind: &str, detail: &str) {
        say(detail);
        // What happens in the lead belongs to the begin.
        let at = run_time(self.started_at, Instant::now()).max(RunTime(0));
        let event =
            EventRow { at, participant: None, kind: kind.into(), count: 1, detail: detail.into() };
        let _ = self.rows.send(Row::Event(event));
    }

    /// Lets the bus keep what was decided about workers, and tells the others what follows.
    fn tell_decisions(&mut self, coordinator: &Coordinator) {
        self.decisions.extend(lock(&self.shared.ledger).decisions());
        let given = self.decisions.keep_all(Instant::now(), |decision| coordinator.keep(decision));
        for Given { reassignment, anew, detail } in given {
            self.shared.wishes.reassign(reassignment);
            (0..anew).for_each(|_| lock(&self.shared.live).added());
            self.event(WORKER_REASSIGNED_EVENT, &detail);
        }
    }

    /// Tells whose participants nobody got.
    fn tell_not_given(&self) {
        for worker in self.decisions.not_given() {
            let name = lock(&self.shared.ledger).name(worker);
            let why = "the bus did not store the reassignment";
            self.event(WORKER_REASSIGNED_EVENT, &not_reassigned(&name, why));
        }
    }

    /// Tells what happened to workers, and ends the run where the user wants that.
    fn tell_notices(&mut self) {
        let (notices, names) = {
            let mut ledger = lock(&self.shared.ledger);
            let notices = ledger.notices();
            let names: Vec<String> =
                notices.iter().map(|notice| ledger.name(notice.worker)).collect();
            (notices, names)
        };
        for (notice, name) in notices.into_iter().zip(names) {
            let (kind, detail, ends) = match notice.what {
                NoticeKind::Lost(why) => {
                    self.shared.wishes.give_up(notice.worker);
                    ("worker_given_up", format!("worker {name} is lost: {why}"), true)
                }
                NoticeKind::EndedEarly(why) => {
                    (WORKER_ENDED_EVENT, format!("worker {name} ended early: {why}"), true)
                }
                NoticeKind::Reassigned { from, anew, planned } => {
                    // Told once the bus has it.
                    self.decisions.tell(anew, reassigned(&name, from, anew, planned));
                    continue;
                }
                NoticeKind::NotReassigned(why) => {
                    (WORKER_REASSIGNED_EVENT, not_reassigned(&name, &why), false)
                }
                NoticeKind::ClockStepped => {
                    let detail = format!(
                        "the wall clock of worker {name} was set; the run counts by steady clocks"
                    );
                    ("worker_clock_set", detail, false)
                }
                NoticeKind::ClockContradicted => (WORKER_CLOCK_EVENT, contradicted(&name), false),
            };
            let is_expected = self.shared.wishes.is_stopped() && kind == WORKER_ENDED_EVENT;
            if !is_expected {
                self.event(kind, &detail);
            }
            if ends && self.on_loss == OnLoss::Abort {
                self.shared.wishes.stop(&detail);
            }
        }
    }
}

fn take(ledger: &mut Ledger, event: FleetEvent, merged: &mut Vec<Row>) {
    let now = Instant::now();
    match event {
        FleetEvent::Pulse(pulse) => ledger.pulse(&pulse, now),
        FleetEvent::Rows { worker, sequence, bytes } => {
            ledger.rows(worker, sequence, bytes, now, merged);
        }
        FleetEvent::Bus(is_up) => ledger.bus(is_up, now),
        FleetEvent::Ended { worker, end } => ledger.ends(worker, &end, now),
        // Its own ones; and what only those hear who collect a run.
        FleetEvent::Decided(_) | FleetEvent::CaughtUp => {}
    }
}

/// The participants of a worker that is gone, as a sentence.
pub(super) fn reassigned(name: &str, from: RunTime, anew: u32, planned: u32) -> String {
    format!(
        "the participants of worker {name} were reassigned at {:.1} s: {anew} join in place of \
         those that were connected, {planned} join as planned",
        from.as_secs_f64()
    )
}

/// The same where others should, and nobody does.
pub(super) fn not_reassigned(name: &str, why: &str) -> String {
    format!("the participants of worker {name} were not reassigned: {why}")
}

/// A worker whose clock is not where the time services say.
fn contradicted(name: &str) -> String {
    format!(
        "the clocks of worker {name} and of the coordinator are further apart than their hosts \
         say (chrony, --clock-error): one of these is wrong; what the exchanges over the bus say \
         counts"
    )
}

pub(super) fn run_time(started_at: Instant, now: Instant) -> RunTime {
    let us = |length: Duration| i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
    match now.checked_duration_since(started_at) {
        Some(after) => RunTime(us(after)),
        None => RunTime(-us(started_at.duration_since(now))),
    }
}

pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
