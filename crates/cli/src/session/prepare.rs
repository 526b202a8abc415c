//! The checks before a run: whatever can refuse it is checked before anything is sent or written.

use std::path::PathBuf;

use throng_engine::TlsOptions;
use throng_observation::pack::Pack;
use throng_observation::run::RunInfo;
use throng_scenario::{Plan, Scenario};

use super::participants::read_secrets;
use crate::args::Common;
use crate::console::{CliError, Interrupt};
use crate::exporter::LiveTraces;
use crate::fleet::Gathered;
use crate::permission::{self, Permission};
use crate::report::ReportOptions;
use crate::watchers::{self, Agents};
use crate::{canary, media, run_id};

/// A run that may begin.
pub(crate) struct Prepared<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) plan: &'a Plan,
    pub(super) common: &'a Common,
    pub(crate) permission: Permission,
    pub(super) tls: TlsOptions,
    /// Knowledge packs of media servers.
    pub(super) packs: Vec<Pack>,
    /// The agents on the servers' hosts, connected.
    pub(super) agents: Agents,
    /// The program of the canaries, if the plan has any.
    pub(super) browser: Option<PathBuf>,
    /// The recorded pages of players, without what may get no load.
    pub(crate) pages: media::Pages,
    /// The workers that play the crowd, if this process does not.
    pub(super) fleet: Option<Gathered>,
    /// Which joins of this process are traced, if any are.
    pub(super) traces: Option<LiveTraces>,
}

impl<'a> Prepared<'a> {
    /// Reads knowledge packs and media files, connects to agents, finds the browser, and asks for
    /// consent.
    pub(crate) fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        common: &'a Common,
    ) -> Result<Self, CliError> {
        ReportOptions::of(common).check()?;
        // Those of a fleet are the workers'.
        if common.fleet.plays_here() {
            read_secrets(plan)?;
        }
        if let Some(seed) = common.seed {
            run_id::adopt_seed(seed);
        }
        let packs = watchers::packs(common.packs.as_deref())?;
        let agents = Agents::connect(plan);
        let browser = canary::program(plan)?;
        // A file that cannot be played ends the run before any owner is asked for consent.
        media::clips(plan)?;
        let pages = media::Pages::read(plan)?;
        let tls = tls(plan, common)?;
        let permission =
            permission::permission(plan, common.consent_secret.as_deref(), &tls, &agents)?;
        watchers::refuse_port_elsewhere(plan, permission.is_own_host())?;
        let pages = pages.within(plan, &|url| permission.host(url))?;
        Ok(Self {
            scenario,
            plan,
            common,
            permission,
            tls,
            packs,
            agents,
            browser,
            pages,
            fleet: None,
            traces: None,
        })
    }

    /// Lets workers prepare their shares, if the flags ask for some.
    pub(crate) fn with_fleet(
        self,
        is_search: bool,
        interrupt: &Interrupt,
    ) -> Result<Self, CliError> {
        let fleet = Gathered::gather(self.scenario, self.plan, self.common, is_search, interrupt)?;
        Ok(Self { fleet, ..self })
    }

    /// With the traces of its joins.
    pub(crate) fn with_traces(self, traces: Option<LiveTraces>) -> Self {
        Self { traces, ..self }
    }

    /// All warnings: which addresses get no load, and those of the plan.
    pub(crate) fn with_left_out(&self, of_plan: Vec<String>) -> Vec<String> {
        self.permission.left_out().iter().cloned().chain(of_plan).collect()
    }

    /// The facts about the run as a whole, for the run folder.
    pub(crate) fn info(&self, warnings: Vec<String>) -> RunInfo {
        let Self { scenario, plan, permission, .. } = self;
        RunInfo {
            format: throng_store::FORMAT,
            throng_version: env!("CARGO_PKG_VERSION").into(),
            scenario: scenario.to_toml(),
            target: plan.target.display(),
            cohorts: plan.cohorts.clone(),
            started_at_unix_us: 0, // known when the engine has started
            planned_duration_us: i64::try_from(plan.duration.as_micros()).unwrap_or(i64::MAX),
            generator_host: throng_engine::host::fingerprint(),
            media_files: media::hashes(plan),
            clock: self.fleet.as_ref().map_or_else(
                || permission.clock_error(),
                |fleet| fleet.clock_error(&permission.clock_error()),
            ),
            workers: self.fleet.as_ref().map(Gathered::workers).unwrap_or_default(),
            warnings,
            plan: Some(scenario.run_plan()),
        }
    }
}

/// Which TLS certificates are accepted.
fn tls(plan: &Plan, common: &Common) -> Result<TlsOptions, CliError> {
    let read = |file: &PathBuf| {
        std::fs::read(file)
            .map_err(|error| CliError::usage(format!("--tls-ca {}: {error}", file.display())))
    };
    let extra_ca_pem = common.tls_ca.as_ref().map(read).transpose()?;
    Ok(TlsOptions { insecure: plan.target.tls_insecure, extra_ca_pem })
}
