//! A run that a fleet plays, as the rest of the command sees it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_engine::{LiveSnapshot, MergedLive, NewParticipant, RunEnd};
use throng_fleet::merge::{MergeLimits, PlannedJoin};
use throng_fleet::message::CrowdChange;
use throng_fleet::reassign::Deal;
use throng_fleet::shares::Shares;
use throng_fleet::{FleetEnd, Ledger};
use throng_observation::fleet::{EndClock, FleetNow};
use throng_observation::run::{Ending, ParticipantId, Row};
use throng_observation::{RunTime, Unloaded};
use throng_scenario::Plan;

use super::decisions::Decisions;
use super::feed;
use super::gathered::Gathered;
use super::merging::{Merge, Shared, lock, run_time};
use super::ssh::Remote;
use crate::args::OnLoss;
use crate::console::CliError;
use crate::generator::Generator;

/// From the moment at which all are ready to the begin of the run: beats must have reached
/// everybody.
const LEAD: Duration = Duration::from_secs(2);

/// From a change of the crowd to the join that it means: it has to reach the worker, and latencies
/// count from the join.
const CHANGE_LEAD_US: i64 = 300_000;

/// Seconds that participants may take to leave, and the last seconds to arrive.
const LEAVING_S: i64 = 60;

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

impl Gathered {
    /// Starts the run after `lead` at least; merged rows go to `rows`.
    pub(crate) fn start(
        self,
        plan: &Plan,
        is_search: bool,
        lead: Duration,
        rows: SyncSender<Row>,
    ) -> Result<FleetHandle, CliError> {
        FleetHandle::start(self, plan, is_search, lead.max(LEAD), rows)
    }
}

impl FleetHandle {
    fn start(
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

    fn fleet(&self) -> Option<FleetNow> {
        Some(lock(&self.shared.ledger).fleet_at(Instant::now()))
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
