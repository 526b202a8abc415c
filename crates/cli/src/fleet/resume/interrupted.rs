//! A run whose coordinator is gone: what its folder says, and whom it was played by.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use throng_fleet::reassign::Deal;
use throng_fleet::shares::Shares;
use throng_fleet::{Coordinator, Ledger};
use throng_observation::run::{Ending, RunData};
use throng_observation::shell;
use throng_scenario::{Network, Plan, Scenario};
use throng_store::RunFolder;

use super::super::record::{Collected, Record};
use super::super::{build, coordinate, error, feed};
use super::collecting::{Collecting, is_the_coordinators};
use crate::args::{Common, networks};
use crate::console::{CliError, Exit, Interrupt};

/// A run whose coordinator is gone.
pub(super) struct InterruptedRun {
    pub(super) folder: PathBuf,
    pub(super) record: Record,
    /// Its information, without rows.
    run: RunData,
    plan: Plan,
    shares: Shares,
}

impl InterruptedRun {
    pub(super) fn read(folder: PathBuf) -> Result<Self, CliError> {
        let run = RunFolder::outline(&folder).map_err(CliError::unread)?;
        let shown = folder.display();
        let record = Record::read(&folder).map_err(CliError::usage)?;
        let record = record.ok_or_else(|| {
            CliError::usage(format!(
                "{shown}: no fleet played this run, so there is nothing to collect"
            ))
        })?;
        if record.is_search {
            return Err(CliError::usage(format!(
                "{shown} is a search: continue it with `throng find … {}`",
                shell::flag("--resume", &folder)
            )));
        }
        if run.ending != Ending::Unfinished && record.collected.is_none() {
            return Err(CliError::usage(format!(
                "{shown} ended as planned: there is nothing to resume"
            )));
        }
        let ours = build::build()?;
        if !record.build.plays_like(&ours) {
            let (theirs, ours) = (record.build.shown(), ours.shown());
            return Err(CliError::usage(format!(
                "{shown} was begun by throng {theirs}, this is {ours}: resume it with the program \
                 that began it"
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
    pub(super) fn is_complete(&self) -> Option<String> {
        let collected =
            self.record.collected.as_ref().filter(|collected| collected.missing.is_empty())?;
        let is_done = self.run.ending != Ending::Unfinished;
        is_done.then(|| {
            let shown = self.folder.display();
            format!(
                "{shown} was already collected, up to message {} of the bus: nothing is missing",
                collected.last
            )
        })
    }

    /// The networks in which a bus may be plain.
    pub(super) fn allowed(&self, common: &Common) -> Result<Vec<Network>, CliError> {
        let mut allowed = networks(&common.allow_target)?;
        allowed.extend(self.plan.target.allow.iter().copied());
        Ok(allowed)
    }

    /// Makes the rows of the crowd again; the names of workers of which some are missing.
    pub(super) fn collect(
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
        let mut collecting = Collecting::new(again, ledger);
        let mut run = coordinator.resume(last).map_err(error)?;
        let Some(end) = collecting.take_all(&mut run, interrupt) else {
            collecting.discard();
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
