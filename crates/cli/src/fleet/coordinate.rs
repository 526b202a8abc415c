//! A run that a fleet plays, as the rest of the command sees it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_engine::live::RunState;
use throng_engine::{LiveSnapshot, MergedLive, NewParticipant, RunEnd};
use throng_fleet::merge::{MergeLimits, PlannedJoin};
use throng_fleet::message::CrowdChange;
use throng_fleet::reassign::Deal;
use throng_fleet::shares::Shares;
use throng_fleet::{Coordinator, FleetEnd, FleetEvent, FleetRun, Ledger, NoticeKind, Wishes};
use throng_observation::fleet::{
    EndClock, WORKER_CLOCK_EVENT, WORKER_ENDED_EVENT, WORKER_REASSIGNED_EVENT,
    WORKER_ROWS_MISSING_EVENT,
};
use throng_observation::run::{Ending, EventRow, ParticipantId, Row};
use throng_observation::{RunTime, Unloaded};
use throng_scenario::Plan;

use super::decisions::{Decisions, Given};
use super::feed;
use super::gathered::Gathered;
use super::ssh::Remote;
use crate::args::OnLoss;
use crate::console::{CliError, say};
use crate::generator::Generator;

/// How long an event may take until silent workers are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// From a change of the crowd to the join that it means: it has to reach the worker, and latencies
/// count from the join.
const CHANGE_LEAD_US: i64 = 300_000;

/// Seconds that participants may take to leave, and the last seconds to arrive.
const LEAVING_S: i64 = 60;

/// The same.
const LEAVING: Duration = Duration::from_secs(60);

/// Participants that a search adds at most, all loads together.
const ADDED_MAX: u32 = 10_000_000;

/// A run that a fleet plays.
pub(crate) struct FleetHandle {
    shared: Arc<Shared>,
    shares: Shares,
    started_at: Instant,
    started_at_unix_us: i64,
    ends_at: RunTime,
    next_participant: AtomicU32,
    next_change: AtomicU64,
    merging: Option<JoinHandle<FleetEnd>>,
    /// Workers on other hosts, which end with this value.
    _remote: Option<Remote>,
}

/// What the merging thread and the command share.
struct Shared {
    live: Mutex<MergedLive>,
    ledger: Mutex<Ledger>,
    wishes: Wishes,
    is_finished: AtomicBool,
    limited_seconds: AtomicU32,
}

impl FleetHandle {
    pub(super) fn start(
        gathered: Gathered,
        plan: &Plan,
        is_search: bool,
        lead: Duration,
        rows: SyncSender<Row>,
    ) -> Result<Self, CliError> {
        let Gathered { coordinator, members, shares, on_loss, remote, .. } = gathered;
        let planned =
            if is_search { 0 } else { u32::try_from(plan.joins.len()).unwrap_or(u32::MAX) };
        let ends_at = RunTime::after_start(plan.duration);
        let names = members.iter().map(|member| member.name.clone()).collect();
        let weights: Vec<u32> = members.iter().map(|member| member.weight).collect();
        let deal = (on_loss == OnLoss::Reassign).then(|| feed::deal(plan, &weights, &shares));
        let joins = if is_search { vec![Vec::new(); members.len()] } else { joins(plan, &shares) };
        let most = deal.as_ref().map_or(planned, Deal::participants_max);
        let limits = merge_limits(plan, if is_search { ADDED_MAX } else { most });
        let run = coordinator.start(lead).map_err(super::error)?;
        let wishes = run.wishes();
        let started_at_unix_us = wishes.start().map_or(0, |start| start.at_unix_us);
        let started_at = coordinator.clock().instant(started_at_unix_us);
        let ledger = |limits| Ledger::new(names, shares.clone(), joins, limits, started_at);
        let shared = Arc::new(Shared {
            live: Mutex::new(MergedLive::new(planned, ends_at)),
            ledger: Mutex::new(match deal {
                Some(deal) => ledger(limits).reassigning(deal),
                None => ledger(limits),
            }),
            wishes,
            is_finished: AtomicBool::new(false),
            limited_seconds: AtomicU32::new(0),
        });
        let decisions = Decisions::default();
        let merge =
            Merge { shared: Arc::clone(&shared), rows, on_loss, started_at, ends_at, decisions };
        let merging = std::thread::Builder::new().name("fleet-merge".into());
        let merging =
            merging.spawn(move || merge.run(run, &coordinator)).map_err(CliError::invalid)?;
        Ok(Self {
            shared,
            shares,
            started_at,
            started_at_unix_us,
            ends_at,
            next_participant: AtomicU32::new(planned),
            next_change: AtomicU64::new(1),
            merging: Some(merging),
            _remote: remote,
        })
    }

    fn change(&self, worker: u16, change: CrowdChange) {
        let number = self.next_change.fetch_add(1, Ordering::Relaxed);
        self.shared.wishes.change_crowd(number, (worker, change));
    }
}

/// What the rows of a run can be about.
pub(super) fn merge_limits(plan: &Plan, participants: u32) -> MergeLimits {
    MergeLimits {
        cohorts: u16::try_from(plan.cohorts.len()).unwrap_or(u16::MAX),
        second_max: RunTime::after_start(plan.duration).second().saturating_add(LEAVING_S),
        participants,
    }
}

/// The joins of each worker's share.
pub(super) fn joins(plan: &Plan, shares: &Shares) -> Vec<Vec<PlannedJoin>> {
    let mut joins = vec![Vec::new(); shares.workers()];
    for join in &plan.joins {
        let worker = shares.worker_of(join.participant.0);
        let intended_at = RunTime::after_start(join.at);
        if let Some(of_worker) = joins.get_mut(usize::from(worker)) {
            let leave_at = join.leave_at.map(RunTime::after_start);
            let (participant, cohort) = (join.participant, join.cohort);
            of_worker.push(PlannedJoin { participant, cohort, intended_at, leave_at });
        }
    }
    joins
}

impl Generator for FleetHandle {
    fn started_at(&self) -> Instant {
        self.started_at
    }

    fn started_at_unix_us(&self) -> i64 {
        self.started_at_unix_us
    }

    fn now(&self) -> RunTime {
        run_time(self.started_at, Instant::now())
    }

    fn ends_at(&self) -> RunTime {
        self.ends_at
    }

    fn live(&self) -> LiveSnapshot {
        lock(&self.shared.live).snapshot().clone()
    }

    fn add_participant(&self, new: NewParticipant) -> ParticipantId {
        let participant = ParticipantId(self.next_participant.fetch_add(1, Ordering::Relaxed));
        let worker = self.shares.worker_of(participant.0);
        let NewParticipant { cohort, place, at, source_ip, .. } = new;
        let at = RunTime(at.0.max(self.now().0).saturating_add(CHANGE_LEAD_US));
        let join = PlannedJoin { participant, cohort, intended_at: at, leave_at: None };
        lock(&self.shared.ledger).added(worker, join);
        lock(&self.shared.live).added();
        self.change(worker, CrowdChange::Add { participant, cohort, place, at, source_ip });
        participant
    }

    fn remove_participant(&self, participant: ParticipantId) {
        self.change(self.shares.worker_of(participant.0), CrowdChange::Remove(participant));
    }

    fn judge_beyond(&self, unloaded: Unloaded) {
        let workers = u16::try_from(self.shares.workers()).unwrap_or(u16::MAX);
        (0..workers).for_each(|worker| self.change(worker, CrowdChange::JudgeBeyond(unloaded)));
    }

    fn has_made_changes(&self) -> bool {
        let next = self.next_change.load(Ordering::Relaxed);
        lock(&self.shared.ledger).changed_by_all().saturating_add(1) >= next
    }

    fn stop(&self) {
        self.shared.wishes.stop("stopped");
    }

    fn is_stopped(&self) -> bool {
        self.shared.wishes.is_stopped()
    }

    fn is_finished(&self) -> bool {
        self.shared.is_finished.load(Ordering::Acquire)
    }

    fn wait(mut self: Box<Self>) -> (RunEnd, Vec<Option<EndClock>>) {
        let merged = self.merging.take().map(JoinHandle::join);
        let died = || FleetEnd {
            ending: Ending::Aborted,
            why: Some("a fault of the coordinator: its merging thread died".into()),
            ended_at: self.now(),
        };
        let FleetEnd { ending, why, ended_at } = merged.and_then(Result::ok).unwrap_or_else(died);
        let limited_seconds = self.shared.limited_seconds.load(Ordering::Relaxed);
        let ledger = lock(&self.shared.ledger);
        let clock = |worker| {
            let said = ledger.clock(worker)?;
            Some(EndClock { offset_us: said.offset_us, bound_us: said.bound_us })
        };
        let clocks = ledger.workers().map(clock).collect();
        (RunEnd { ending, why, ended_at, limited_seconds }, clocks)
    }
}

/// Merges what comes from the workers, until all have ended.
struct Merge {
    shared: Arc<Shared>,
    rows: SyncSender<Row>,
    on_loss: OnLoss,
    started_at: Instant,
    ends_at: RunTime,
    decisions: Decisions,
}

impl Merge {
    fn run(mut self, mut run: FleetRun, coordinator: &Coordinator) -> FleetEnd {
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
            let why = "the bus did not store who was to have them";
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
        "the others play the participants of worker {name} from {:.1} s on: {anew} join anew in the places of those that were there, \
         {planned} join as planned",
        from.as_secs_f64()
    )
}

/// The same where others should, and nobody does.
pub(super) fn not_reassigned(name: &str, why: &str) -> String {
    format!("nobody plays the participants of worker {name} that others should have: {why}")
}

/// A worker whose clock is not where the time services say.
fn contradicted(name: &str) -> String {
    format!(
        "the clocks of worker {name} and of the coordinator are further apart than their hosts say (chrony, --clock-error): one of \
         these is wrong; what the exchanges over the bus say counts"
    )
}

fn run_time(started_at: Instant, now: Instant) -> RunTime {
    let us = |length: Duration| i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
    match now.checked_duration_since(started_at) {
        Some(after) => RunTime(us(after)),
        None => RunTime(-us(started_at.duration_since(now))),
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
