//! `throng run --resume RUN`: collects what the workers of a run have left whose coordinator was
//! killed.
//!
//! The bus has all rows of the run from the first one on, the ends of its workers' parts, and what
//! the coordinator had decided, in their order. The crowd's rows are made again from these,
//! whatever the folder had of them already: so none counts twice, and doing it again changes
//! nothing.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use throng_fleet::reassign::Deal;
use throng_fleet::shares::Shares;
use throng_fleet::{Coordinator, FleetEnd, FleetEvent, FleetRun, Ledger, NoticeKind};
use throng_observation::fleet::{
    COORDINATOR_GONE_EVENT, WORKER_ENDED_EVENT, WORKER_LOST_EVENT, WORKER_REASSIGNED_EVENT,
    WORKER_ROWS_MISSING_EVENT, WorkerInfo,
};
use throng_observation::run::{Ending, EventRow, Row, RunData};
use throng_observation::{RunTime, shell};
use throng_scenario::{Network, Plan, Scenario};
use throng_store::{RunAgain, RunFolder, StoreError};

use super::record::{Collected, Record};
use super::{build, bus, bus_wait, coordinate, error, feed, may_be_plain, reached};
use crate::args::{Common, duration};
use crate::console::{CliError, Exit, Interrupt, say};
use crate::kept;
use crate::report::{self, ReportOptions};

/// How long a worker may be silent, unless the user says otherwise: one that was started again
/// hands its rows in within some seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an event may take until silent workers are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Whoever collects a run has this file of its folder locked. It has no bytes, and stays.
const LOCK: &str = "resume.lock";

/// Rows that are written in one transaction.
const ROWS_OF_A_COMMIT: usize = 1_000;

/// Collects the run at `run`, and reports.
pub(crate) fn resume(run: &Path, common: &Common) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let folder = kept::run_folder(run);
    let _locked = lock(&folder)?;
    let left = Left::read(folder)?;
    if let Some(why) = left.is_complete() {
        say(&why);
        return Ok(Exit::Met);
    }
    let Some(config) = bus(&common.fleet.bus)? else {
        return Err(CliError::usage("--resume needs --fleet URL"));
    };
    let patience = common.fleet.fleet_wait.as_deref();
    let patience =
        patience.map(|text| duration("--fleet-wait", text)).transpose()?.unwrap_or(PATIENCE);
    let allowed = left.allowed(common)?;
    let find = || Coordinator::find(&config, &left.record.run, &may_be_plain(&allowed));
    let (coordinator, last) =
        reached(bus_wait(common.fleet.fleet_wait.as_deref())?, &interrupt, find)?;
    say(&format!("collecting the run from {}", coordinator.bus()));
    let missing = left.collect(&coordinator, last, patience, &interrupt)?;
    let is_complete = missing.is_empty();
    let collected =
        Collected { missing: missing.clone(), last: coordinator.last().unwrap_or(last) };
    // Before the bus forgets what would have to be collected again.
    left.record.with(collected).put(&left.folder).map_err(CliError::invalid)?;
    if is_complete {
        coordinator.forget();
    } else {
        say(&format!(
            "rows of {} are missing; if its --spool has kept any, a worker that is started again with the same folder brings them, \
             and the run can be resumed once more within a day",
            missing.join(", ")
        ));
    }
    let options = ReportOptions {
        json: common.json,
        csv: common.csv,
        details: common.details,
        junit: common.junit.clone(),
    };
    report::make(&left.folder, &options).map_err(CliError::invalid)
}

/// Keeps others from collecting the run in a folder, until it is dropped. `None` where no fleet
/// played the run.
fn lock(folder: &Path) -> Result<Option<File>, CliError> {
    if !Record::is_in(folder) {
        return Ok(None);
    }
    let path = folder.join(LOCK);
    let problem = |error: std::io::Error| CliError::invalid(anyhow!("{}: {error}", path.display()));
    let file = File::options().create(true).append(true).open(&path).map_err(problem)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            let shown = folder.display();
            Err(CliError::usage(format!(
                "{shown}: another `throng run --resume` collects this run"
            )))
        }
        Err(TryLockError::Error(error)) => Err(problem(error)),
    }
}

/// A run whose coordinator is gone.
struct Left {
    folder: PathBuf,
    record: Record,
    /// Its information, without rows.
    run: RunData,
    plan: Plan,
    shares: Shares,
}

impl Left {
    fn read(folder: PathBuf) -> Result<Self, CliError> {
        let run = RunFolder::outline(&folder).map_err(|error| {
            let exit = match error {
                StoreError::NoFolder(_) | StoreError::NoRun(_) => Exit::Usage,
                _ => Exit::Invalid,
            };
            CliError::new(exit, error)
        })?;
        let shown = folder.display();
        let record = Record::read(&folder).map_err(CliError::usage)?;
        let record = record.ok_or_else(|| {
            CliError::usage(format!(
                "{shown}: no fleet played this run, so that nothing of it is elsewhere"
            ))
        })?;
        if record.is_search {
            return Err(CliError::usage(format!(
                "{shown} is a search: it goes on with `throng find … {}`",
                shell::flag("--resume", &folder)
            )));
        }
        if run.ending != Ending::Unfinished && record.collected.is_none() {
            return Err(CliError::usage(format!(
                "{shown} has ended in order: there is nothing to resume"
            )));
        }
        let ours = build::build()?;
        if !record.build.plays_like(&ours) {
            let (theirs, ours) = (record.build.shown(), ours.shown());
            return Err(CliError::usage(format!(
                "{shown} was begun by throng {theirs}, this is {ours}: resume it with the program that began it"
            )));
        }
        // Who joins when is no secret: the scenario as it is stored says it.
        let scenario = Scenario::parse_stored(&run.info.scenario).map_err(CliError::usage)?;
        let plan = scenario.plan();
        if build::crowd_sha256(&plan) != record.crowd_sha256 {
            return Err(CliError::invalid(anyhow!(
                "{shown}: its scenario gives another crowd than the one that played"
            )));
        }
        let shares = Shares::of(&record.weights).map_err(CliError::usage)?;
        if record.weights.len() != run.info.workers.len() {
            return Err(CliError::usage(format!(
                "{shown}: its fleet.json is not that of its run.db"
            )));
        }
        Ok(Self { folder, record, run, plan, shares })
    }

    /// Why there is nothing to do, if everything has come.
    fn is_complete(&self) -> Option<String> {
        let collected =
            self.record.collected.as_ref().filter(|collected| collected.missing.is_empty())?;
        let is_done = self.run.ending != Ending::Unfinished;
        is_done.then(|| {
            let shown = self.folder.display();
            format!(
                "{shown} was collected, up to message {} of the bus: nothing is missing, nothing changes",
                collected.last
            )
        })
    }

    /// The networks in which a bus may be plain.
    fn allowed(&self, common: &Common) -> Result<Vec<Network>, CliError> {
        let network = |text: &String| {
            text.parse::<Network>()
                .map_err(|error| CliError::usage(format!("--allow-target {text}: {error}")))
        };
        let mut allowed = common.allow_target.iter().map(network).collect::<Result<Vec<_>, _>>()?;
        allowed.extend(self.plan.target.allow.iter().copied());
        Ok(allowed)
    }

    /// Makes the rows of the crowd again; the names of workers of which some are missing.
    fn collect(
        &self,
        coordinator: &Coordinator,
        last: u64,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<Vec<String>, CliError> {
        let workers = &self.run.info.workers;
        let again = RunFolder::again(&self.folder, |event| is_the_coordinators(event, workers));
        let again = again.map_err(CliError::invalid)?;
        let ledger = self.ledger(patience);
        let mut collecting =
            Collecting { again, ledger, given_up: BTreeSet::new(), merged: Vec::new(), written: 0 };
        let mut run = coordinator.resume(last).map_err(error)?;
        let Some(end) = collecting.take_all(&mut run, interrupt) else {
            collecting.again.discard();
            return Err(CliError::new(
                Exit::Interrupted,
                anyhow!("interrupted: the folder is as it was"),
            ));
        };
        // Until it is known what is missing, everything is: whoever is killed in between can resume
        // the run.
        let all = workers.iter().map(|worker| worker.name.clone()).collect();
        let begun = self.record.with(Collected { missing: all, last: 0 });
        let missing = collecting.finish(&end, || begun.put(&self.folder))?;
        run.end();
        Ok(missing)
    }

    /// The workers of the run.
    fn ledger(&self, patience: Duration) -> Ledger {
        let (plan, shares) = (&self.plan, &self.shares);
        let names = self.run.info.workers.iter().map(|worker| worker.name.clone()).collect();
        let deal = self.record.reassigns.then(|| feed::deal(plan, &self.record.weights, shares));
        let planned = u32::try_from(plan.joins.len()).unwrap_or(u32::MAX);
        let most = deal.as_ref().map_or(planned, Deal::participants_max);
        let limits = coordinate::merge_limits(plan, most);
        let joins = coordinate::joins(plan, shares);
        let ledger =
            Ledger::new(names, shares.clone(), joins, limits, Instant::now()).collecting(patience);
        match deal {
            Some(deal) => ledger.reassigning(deal),
            None => ledger,
        }
    }
}

/// Whether an event is the coordinator's own: those of workers come from the bus again, and what
/// follows from their rows is made again.
fn is_the_coordinators(event: &EventRow, workers: &[WorkerInfo]) -> bool {
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

/// A run that is collected.
struct Collecting {
    again: RunAgain,
    ledger: Ledger,
    /// Workers that their coordinator had given up: nothing of them is waited for.
    given_up: BTreeSet<u16>,
    merged: Vec<Row>,
    written: usize,
}

impl Collecting {
    /// Takes all that has come and comes, until every worker has ended or is given up; `None` when
    /// it was interrupted.
    fn take_all(&mut self, run: &mut FleetRun, interrupt: &Interrupt) -> Option<FleetEnd> {
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
                    let detail = coordinate::reassigned(&name, from, anew, planned);
                    self.event(WORKER_REASSIGNED_EVENT, Some(from), &detail);
                }
                NoticeKind::NotReassigned(why) => {
                    let detail = coordinate::not_reassigned(&name, &why);
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
    fn finish(
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
        let detail = "the coordinator was gone from about here on; what the workers had measured was collected afterwards, and what it \
                      measures itself (watched hosts, browsers) ends here";
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

#[cfg(test)]
mod tests {
    use throng_fleet::merge::MergeLimits;
    use throng_observation::run::RunInfo;

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
            (COORDINATOR_GONE_EVENT, "the coordinator was gone", false),
        ] {
            assert_eq!(is_the_coordinators(&event(kind, detail), &workers), stays, "{detail}");
        }
    }

    #[test]
    fn of_two_who_collect_a_run_the_second_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let locked = |folder: &Path| lock(folder).map_err(|why| why.error.to_string());
        assert!(locked(folder.path()).is_ok_and(|file| file.is_none()), "no fleet played it");
        std::fs::write(folder.path().join("fleet.json"), "{}").expect("written");
        let first = locked(folder.path());
        assert!(matches!(&first, Ok(Some(_))), "{first:?}");
        let second = locked(folder.path());
        assert!(
            second
                .is_err_and(|why| why.contains("another `throng run --resume` collects this run"))
        );
        drop(first);
        assert!(matches!(locked(folder.path()), Ok(Some(_))));
    }

    #[test]
    fn rows_are_not_put_in_place_before_it_is_kept_that_the_run_can_be_resumed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run");
        drop(RunFolder::create(&path, &RunInfo::default()).expect("a run"));
        let collecting = || Collecting {
            again: RunFolder::again(&path, |_| true).expect("begun again"),
            ledger: Ledger::new(
                vec!["a".into()],
                Shares::of(&[1]).expect("one worker"),
                vec![Vec::new()],
                MergeLimits { cohorts: 1, second_max: 1, participants: 0 },
                Instant::now(),
            ),
            given_up: BTreeSet::new(),
            merged: Vec::new(),
            written: 0,
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
