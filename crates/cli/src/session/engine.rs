//! The engine's configuration, from a prepared run.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use throng_engine::{Guards, Join, ParticipantFactory, RunConfig, RunEnd, RunHandle, Tap};
use throng_media::quality::WallClock;
use throng_observation::run::Row;
use throng_observation::{HoldRow, RunTime};

use super::participants::{participant_factory, told_to_servers};
use super::prepare::Prepared;
use crate::console::CliError;
use crate::watchers;

/// Rows that may wait for the store; their memory is allocated at once. A second of 1,000
/// participants needs few.
pub(super) const ROWS_WAITING_MAX: usize = 16_384;

/// What decides when participants join.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joins<'a> {
    /// The plan.
    Planned,
    /// A search, which adds and removes participants, at most as many as the plan has joins. It
    /// continues from these holds of an earlier run.
    BySearch(&'a [HoldRow]),
}

/// Starts the engine. Its rows come from the receiver; the sender accepts further rows of the run.
pub(crate) fn start_engine(
    prepared: &Prepared<'_>,
    joins: Joins<'_>,
    tap: Option<Arc<Tap>>,
) -> Result<(RunHandle, Receiver<Row>, SyncSender<Row>), CliError> {
    let config = config(prepared, &prepared.plan.joins);
    let config = match joins {
        Joins::Planned => RunConfig { tap, ..config },
        Joins::BySearch(_) => {
            let most = u32::try_from(config.joins.len()).unwrap_or(u32::MAX);
            by_search(config, most)
        }
    };
    let wall = wall_clock();
    let factory = factory(prepared, wall, config.worker)?;
    let (rows, received) = mpsc::sync_channel(ROWS_WAITING_MAX);
    let handle = throng_engine::run(config, factory, rows.clone()).map_err(CliError::invalid)?;
    Ok((handle, received, rows))
}

fn factory(
    prepared: &Prepared<'_>,
    clock: WallClock,
    worker: u16,
) -> Result<Arc<dyn ParticipantFactory>, CliError> {
    let Prepared { plan, permission, pages, traces, .. } = prepared;
    participant_factory(plan, permission, pages, (clock, worker), traces.clone())
}

/// Starts the engine with participants of another kind at the joins of the plan, which may take
/// `connect_timeout` to connect. Its rows come from the receiver.
pub(crate) fn start_engine_of(
    prepared: &Prepared<'_>,
    factory: Arc<dyn ParticipantFactory>,
    connect_timeout: Duration,
) -> Result<(RunHandle, Receiver<Row>), CliError> {
    let (rows, received) = mpsc::sync_channel(ROWS_WAITING_MAX);
    let config = RunConfig { connect_timeout, ..config(prepared, &prepared.plan.joins) };
    let handle = throng_engine::run(config, factory, rows).map_err(CliError::invalid)?;
    Ok((handle, received))
}

/// The part of a plan that this process plays for a fleet.
pub(crate) struct EnginePart<'a> {
    /// Its joins.
    pub(crate) joins: &'a [throng_scenario::Join],
    /// Its share of the load that the whole plan may cause.
    pub(crate) load_ratio: f64,
    /// A moment on this machine, and on the clock of the fleet, nanoseconds since the Unix epoch.
    pub(crate) wall: (Instant, i64),
    /// In a search: how many participants may be added.
    pub(crate) added_participants_max: Option<u32>,
    /// Its joins are added while it plays, because others may come between them.
    pub(crate) is_fed: bool,
    /// The number of this process among the workers.
    pub(crate) worker: u16,
}

impl EnginePart<'_> {
    /// Reads what its participants need.
    pub(crate) fn prepare(&self, prepared: &Prepared<'_>) -> Result<PreparedEngine, CliError> {
        let usual = config(prepared, self.joins);
        let mbit_per_s_max = usual.guards.mbit_per_s_max.map(|most| most * self.load_ratio);
        let guards = Guards { mbit_per_s_max, ..usual.guards };
        let config = RunConfig { guards, worker: self.worker, ..usual };
        let config = match self.added_participants_max {
            Some(most) => by_search(config, most),
            None if self.is_fed => fed(config),
            None => config,
        };
        let (at, unix_ns) = self.wall;
        let wall = WallClock { at, unix_ns: u64::try_from(unix_ns).unwrap_or(0) };
        let factory = factory(prepared, wall, config.worker)?;
        Ok(PreparedEngine { config, factory })
    }
}

/// An engine that has all it needs but the moment of its start.
pub(crate) struct PreparedEngine {
    config: RunConfig,
    factory: Arc<dyn ParticipantFactory>,
}

impl PreparedEngine {
    /// Plays from `started_at` on; `supervise` returns when the engine has finished. Rows go to
    /// `rows`.
    pub(crate) fn play(
        self,
        started_at: Instant,
        rows: SyncSender<Row>,
        supervise: impl FnOnce(&RunHandle),
    ) -> Result<RunEnd, CliError> {
        let Self { config, factory } = self;
        let lead = started_at.checked_duration_since(Instant::now()).ok_or_else(|| {
            CliError::invalid(anyhow::anyhow!("this machine was not ready in time for the start"))
        })?;
        let handle = throng_engine::run(RunConfig { lead, ..config }, factory, rows);
        let handle = handle.map_err(CliError::invalid)?;
        supervise(&handle);
        Ok(handle.wait())
    }
}

/// The configuration of a search, which adds at most `added_participants_max` participants to
/// nobody.
fn by_search(config: RunConfig, added_participants_max: u32) -> RunConfig {
    RunConfig {
        added_participants_max,
        joins: Vec::new(),
        // A search looks for loads that fail: they must not end the run.
        guards: Guards { connect_failure_ratio_max: f64::INFINITY, ..config.guards },
        ..config
    }
}

/// The configuration of a part whose joins are added while it plays.
fn fed(config: RunConfig) -> RunConfig {
    let planned = u32::try_from(config.joins.len()).unwrap_or(u32::MAX);
    RunConfig { added_participants_max: planned.max(1), joins: Vec::new(), ..config }
}

/// The wall clock of this machine, as it is now.
fn wall_clock() -> WallClock {
    let unix_ns =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    WallClock { at: Instant::now(), unix_ns: u64::try_from(unix_ns).unwrap_or(u64::MAX) }
}

fn config(prepared: &Prepared<'_>, joins: &[throng_scenario::Join]) -> RunConfig {
    let Prepared { scenario, plan, common, permission, tls, pages, .. } = prepared;
    let join = |join: &throng_scenario::Join| Join {
        participant: join.participant,
        cohort: join.cohort,
        place: join.place,
        at: RunTime::after_start(join.at),
        leave_at: join.leave_at.map(RunTime::after_start),
        others_follow: join.others_follow,
        source_ip: join.source_ip,
    };
    let joins = joins.iter().map(join).collect();
    let usual = RunConfig::new(joins, RunTime::after_start(plan.duration), permission.filter());
    RunConfig {
        threads: common.threads,
        receive: common.receive.into(),
        tls: tls.clone(),
        bad_if: throng_scenario::bad_if(&scenario.objectives),
        consents: permission.consents(),
        names: permission.names(),
        guards: Guards { mbit_per_s_max: permission.mbit_per_s_max(), ..Guards::default() },
        cohorts: u16::try_from(plan.cohorts.len()).unwrap_or(u16::MAX),
        lead: if plan.watch.is_empty() { usual.lead } else { watchers::BASELINE },
        secrets: told_to_servers(plan, pages),
        ..usual
    }
}
