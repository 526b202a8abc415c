//! The engine's configuration, from a prepared run.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use throng_engine::{Guards, Join, RunConfig, RunHandle, Tap};
use throng_observation::run::Row;
use throng_observation::{HoldRow, RunTime};

use super::participants::participant_factory;
use super::prepare::Prepared;
use crate::{CliError, watchers};

/// Rows that may wait for the store; their memory is allocated at once. A second of 1,000 participants needs few.
const ROWS_WAITING_MAX: usize = 16_384;

/// What decides when participants join.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joins<'a> {
    /// The plan.
    Planned,
    /// A search, which adds and removes participants, at most as many as the plan has joins. It continues from
    /// these holds of an earlier run.
    BySearch(&'a [HoldRow]),
}

/// Starts the engine. Its rows come from the receiver; the sender accepts further rows of the run.
pub(crate) fn start_engine(
    prepared: &Prepared<'_>,
    joins: Joins<'_>,
    tap: Option<Arc<Tap>>,
) -> Result<(RunHandle, Receiver<Row>, SyncSender<Row>), CliError> {
    let config = config(prepared);
    let config = match joins {
        Joins::Planned => RunConfig { tap, ..config },
        Joins::BySearch(_) => RunConfig {
            added_participants_max: u32::try_from(config.joins.len()).unwrap_or(u32::MAX),
            joins: Vec::new(),
            // A search looks for loads that fail: they must not end the run.
            guards: Guards { connect_failure_ratio_max: f64::INFINITY, ..config.guards },
            ..config
        },
    };
    let factory = participant_factory(prepared.plan, &prepared.permission, &prepared.pages)?;
    let (rows, received) = mpsc::sync_channel(ROWS_WAITING_MAX);
    let handle = throng_engine::run(config, factory, rows.clone()).map_err(CliError::invalid)?;
    Ok((handle, received, rows))
}

fn config(prepared: &Prepared<'_>) -> RunConfig {
    let Prepared { scenario, plan, common, permission, tls, .. } = prepared;
    let join = |join: &throng_scenario::Join| Join {
        participant: join.participant,
        cohort: join.cohort,
        place: join.place,
        at: RunTime::after_start(join.at),
        leave_at: join.leave_at.map(RunTime::after_start),
        others_follow: join.others_follow,
        source_ip: join.source_ip,
    };
    let joins = plan.joins.iter().map(join).collect();
    let usual = RunConfig::new(joins, RunTime::after_start(plan.duration), permission.address_filter());
    RunConfig {
        threads: common.threads,
        tls: tls.clone(),
        bad_if: throng_scenario::bad_if(&scenario.objectives),
        consents: permission.consents(),
        guards: Guards { mbit_per_s_max: permission.mbit_per_s_max(), ..Guards::default() },
        cohorts: u16::try_from(plan.cohorts.len()).unwrap_or(u16::MAX),
        lead: if plan.watch.is_empty() { usual.lead } else { watchers::BASELINE },
        ..usual
    }
}
