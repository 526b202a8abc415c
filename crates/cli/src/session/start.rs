//! The start of a run: the folder, the browsers, the engine, the watchers, the store.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use throng_observation::run::{Row, RunInfo};
use throng_scenario::Plan;
use throng_store::RunFolder;
use throng_watch::SourceConfig;

use super::engine::{Joins, ROWS_WAITING_MAX, start_engine};
use super::prepare::Prepared;
use super::tap::RunTap;
use crate::canary::Canaries;
use crate::console::{CliError, Exit};
use crate::fleet::Gathered;
use crate::generator::Generator;
use crate::report::ReportOptions;
use crate::run_id;
use crate::store_writer::StoreWriter;
use crate::watchers::{self, Watchers};

/// A run in progress.
pub(crate) struct Session {
    pub(crate) handle: Box<dyn Generator>,
    pub(crate) watchers: Watchers,
    /// For rows of the command itself.
    pub(crate) rows: SyncSender<Row>,
    pub(crate) folder: PathBuf,
    pub(super) canaries: Canaries,
    pub(super) tap: Option<RunTap>,
    pub(super) store: StoreWriter,
    pub(super) report: ReportOptions,
}

impl Session {
    /// Starts what `prepared` allows. `on_row` gets each row on its way to the store. With
    /// `prints_at_once`, watchers print their warnings when they arise, otherwise at the end.
    pub(crate) fn start(
        mut prepared: Prepared<'_>,
        info: &RunInfo,
        joins: Joins<'_>,
        prints_at_once: bool,
        on_row: impl FnMut(&Row) + Send + 'static,
    ) -> Result<Self, CliError> {
        let (scenario, plan, common) = (prepared.scenario, prepared.plan, prepared.common);
        let of_scenario = || scenario.output.folder.clone().map(PathBuf::from);
        let folder = common.outputs.output.clone().or_else(of_scenario);
        let folder = folder.unwrap_or_else(run_id::default_folder);
        // The folder comes first: a run that cannot be stored is not started.
        let mut writer =
            RunFolder::create(&folder, info).map_err(|error| CliError::new(Exit::Usage, error))?;
        let tap = match joins {
            Joins::Planned => plan.tap.as_ref().map(|tap| RunTap::start(&folder, tap)).transpose(),
            Joins::BySearch(earlier) => {
                earlier.iter().for_each(|hold| writer.write(Row::Hold(Box::new(hold.clone()))));
                Ok(None)
            }
        };
        let tap = tap.map_err(|error| CliError { exit: Exit::Usage, error })?;
        let canaries = Canaries::start(plan, prepared.browser.clone(), &prepared.permission)?;
        let (handle, received, rows) = match prepared.fleet.take() {
            Some(fleet) => {
                // Before anybody plays: what is measured can be collected then, whatever becomes of
                // this process.
                fleet.record(plan, matches!(joins, Joins::BySearch(_))).keep(&folder);
                start_fleet(fleet, plan, joins)?
            }
            None => {
                let (handle, received, rows) =
                    start_engine(&prepared, joins, tap.as_ref().map(RunTap::engine))?;
                (Box::new(handle) as Box<dyn Generator>, received, rows)
            }
        };
        canaries.begin(handle.started_at(), &rows);
        let Prepared { permission, packs, agents, .. } = prepared;
        let sources =
            SourceConfig { packs, allowed: permission.source_check(), ..SourceConfig::default() };
        let watchers = Watchers::start(
            plan,
            handle.started_at(),
            rows.clone(),
            &sources,
            agents,
            prints_at_once,
        );
        writer.starts_at(handle.started_at_unix_us()).map_err(CliError::invalid)?;
        let store = StoreWriter::start(writer, received, on_row).map_err(CliError::invalid)?;
        let csv = common.outputs.csv || scenario.output.csv;
        let report = ReportOptions { csv, ..ReportOptions::of(common) };
        Ok(Self { handle, watchers, rows, folder, canaries, tap, store, report })
    }
}

/// A crowd, where its rows come from, and the sender of further rows.
type Started = (Box<dyn Generator>, Receiver<Row>, SyncSender<Row>);

/// Starts the workers of a fleet together; the watched hosts are idle until then.
fn start_fleet(fleet: Gathered, plan: &Plan, joins: Joins<'_>) -> Result<Started, CliError> {
    let (rows, received) = mpsc::sync_channel(ROWS_WAITING_MAX);
    let lead = if plan.watch.is_empty() { Duration::ZERO } else { watchers::BASELINE };
    let is_search = matches!(joins, Joins::BySearch(_));
    let handle = fleet.start(plan, is_search, lead, rows.clone())?;
    Ok((Box::new(handle), received, rows))
}
