//! What of a matrix would fail at its turn, hours later, is an error at once.

use std::path::Path;

use throng_analysis::findings;
use throng_observation::units::count;
use throng_rig::parse_cpus;
use throng_scenario::matrix::{CellConfig, Measure, ReadyWhen, SearchKeys};

use super::MatrixPlan;
use crate::console::CliError;
use crate::fleet;

impl MatrixPlan {
    /// Checks every cell: its overrides, files, CPUs and patterns. A cell that would fail at its
    /// turn, hours later, is an error now; what this machine does not allow is found out when it
    /// runs.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        self.check_findings()?;
        for cell in &self.cells {
            let config = self.config(cell, Path::new("/dir"));
            self.confined(config).and_then(|config| self.check_cell(&config)).map_err(|stop| {
                let name = self.matrix.describe(cell);
                CliError::new(
                    stop.exit,
                    anyhow::anyhow!("cell {} ({name}): {:#}", cell.number, stop.error),
                )
            })?;
        }
        Ok(())
    }

    /// A finding that does not exist would never be named, and so never still be.
    fn check_findings(&self) -> Result<(), CliError> {
        let levels = self.matrix.factors.iter().flat_map(|factor| &factor.levels);
        let of_levels = levels.filter_map(|level| level.relieves.as_ref());
        let of_factors = self.matrix.factors.iter().filter_map(|factor| factor.relieves.as_ref());
        let mut named = of_levels.chain(of_factors).filter_map(|relief| relief.finding.as_deref());
        match named.find(|named| findings::keys().all(|key| key != *named)) {
            Some(unknown) => Err(CliError::usage(format!(
                "relieves.finding: there is no finding `{unknown}`; docs/findings.md lists all"
            ))),
            None => Ok(()),
        }
    }

    fn check_cell(&self, config: &CellConfig) -> Result<(), CliError> {
        let (sets, _) = self.overrides(config)?;
        if let Some(workers) = self.options.workers {
            self.check_crowd(&sets, workers)?;
        }
        if let Some(cpus) = &config.server.cpus {
            parse_cpus(cpus).map_err(|error| CliError::usage(format!("server.cpus: {error}")))?;
        }
        if let Some(ReadyWhen::Log(pattern)) = config.server.ready.as_ref().map(|ready| &ready.when)
        {
            throng_rig::pattern(pattern)
                .map_err(|error| CliError::usage(format!("server.ready.log: {error}")))?;
        }
        self.files(config).map(drop)
    }

    /// What of a cell so many workers cannot play.
    fn check_crowd(&self, sets: &[String], workers: usize) -> Result<(), CliError> {
        let plan = self.scenario_with(&self.parsed(sets)?)?.plan();
        let joins = match self.matrix.measure {
            Measure::Hold(_) => plan.joins.len(),
            // Without a ceiling a search has joins for all.
            Measure::Find(SearchKeys { ceiling, .. })
            | Measure::Auto { search: SearchKeys { ceiling, .. }, .. } => {
                ceiling.map_or(usize::MAX, |users| users as usize)
            }
        };
        fleet::check_crowd(&plan, joins, workers)
    }

    /// With `--resume` as many workers must play as before.
    pub(crate) fn check_workers(&self, asked: Option<usize>) -> Result<(), CliError> {
        if asked == self.options.workers {
            return Ok(());
        }
        let said = |workers: Option<usize>| match workers {
            Some(many) => count(many as u64, "workers"),
            None => "this machine".to_owned(),
        };
        Err(CliError::usage(format!(
            "the runs of this {} were played by {}, and the others would be by {}: they could not \
             be compared. Give --resume the same --fleet and --workers, or --on, as at the \
             beginning",
            self.options.kind.noun(),
            said(self.options.workers),
            said(asked)
        )))
    }
}
