//! Information about the run as a whole: keys and values; lists and maps are JSON.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use throng_observation::fleet::{EndClock, WorkerInfo};
use throng_observation::run::{ClockError, Ending, RunData, RunInfo};
use throng_observation::{RunPlan, RunTime};

use crate::{FORMAT, plan};

pub(crate) const CREATE: &str =
    "CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;";

/// The keys of a plan, which folders of earlier versions lack.
const WARM_UP: &str = "warm_up_us";
const OBJECTIVES: &str = "objectives";

/// Writes `info` of a run that has not ended.
pub(crate) fn put(db: &Transaction<'_>, info: &RunInfo) -> rusqlite::Result<()> {
    let number = |number: i64| Some(number.to_string());
    for (key, value) in [
        ("format", number(FORMAT.into())),
        ("throng_version", Some(info.throng_version.clone())),
        ("scenario", Some(info.scenario.clone())),
        ("target", Some(info.target.clone())),
        ("cohorts", Some(json(&info.cohorts)?)),
        ("started_at_unix_us", number(info.started_at_unix_us)),
        ("planned_duration_us", number(info.planned_duration_us)),
        ("generator_host", Some(json(&info.generator_host)?)),
        ("media_files", Some(json(&info.media_files)?)),
        ("clock_bound_us", info.clock.bound_us.map(|bound| bound.to_string())),
        ("clock_basis", Some(info.clock.basis.clone())),
        ("warnings", Some(json(&info.warnings)?)),
        ("workers", Some(json(&info.workers)?)),
        ("ending", Some(Ending::Unfinished.key().into())),
    ] {
        set(db, key, value.as_deref())?;
    }
    let Some(plan) = &info.plan else { return Ok(()) };
    set(db, WARM_UP, Some(&plan.warm_up_us.to_string()))?;
    set(db, OBJECTIVES, Some(&json(&plan.objectives)?))?;
    plan::put(db, plan)
}

/// Writes how and when the run ended.
pub(crate) fn put_ending(
    db: &Connection,
    ending: Ending,
    ended_at: RunTime,
) -> rusqlite::Result<()> {
    set(db, "ending", Some(ending.key()))?;
    set(db, "ended_at_us", Some(&ended_at.as_micros().to_string()))
}

/// Writes what was known of the clocks of workers at the end, by their numbers.
pub(crate) fn put_end_clocks(db: &Connection, clocks: &[Option<EndClock>]) -> rusqlite::Result<()> {
    let stored = "SELECT value FROM info WHERE key = 'workers'";
    let stored: Option<Option<String>> = db.query_row(stored, [], |row| row.get(0)).optional()?;
    let facts = Facts(HashMap::from([("workers".to_owned(), stored.flatten())]));
    let mut workers: Vec<WorkerInfo> = facts.json("workers")?;
    for (worker, clock) in workers.iter_mut().zip(clocks) {
        worker.clock_end = *clock;
    }
    set(db, "workers", Some(&json(&workers)?))
}

/// Writes one value.
pub(crate) fn set(db: &Connection, key: &str, value: Option<&str>) -> rusqlite::Result<()> {
    let mut statement =
        db.prepare_cached("INSERT OR REPLACE INTO info (key, value) VALUES (?1, ?2)")?;
    statement.execute(params![key, value]).map(drop)
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Reads the information about the run as a whole, with its plan, without its other rows. A plan
/// that cannot be read, such as one of a later version, is unknown: the run can be read without.
pub(crate) fn read(db: &Connection) -> rusqlite::Result<RunData> {
    let mut run = outline(db)?;
    let of_info = facts(db)?.plan().unwrap_or_default();
    run.info.plan = of_info.and_then(|of_info| plan::read(db, of_info).ok());
    Ok(run)
}

fn facts(db: &Connection) -> rusqlite::Result<Facts> {
    let mut statement = db.prepare("SELECT key, value FROM info")?;
    let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Facts(pairs.collect::<Result<_, _>>()?))
}

/// Reads the information about the run as a whole, without its plan, which may have a row for each
/// join.
pub(crate) fn outline(db: &Connection) -> rusqlite::Result<RunData> {
    let facts = facts(db)?;
    let info = RunInfo {
        format: facts.number("format").unwrap_or(0),
        throng_version: facts.text("throng_version").into(),
        scenario: facts.text("scenario").into(),
        target: facts.text("target").into(),
        cohorts: facts.json("cohorts")?,
        started_at_unix_us: facts.number("started_at_unix_us").unwrap_or(0),
        planned_duration_us: facts.number("planned_duration_us").unwrap_or(0),
        generator_host: facts.json("generator_host")?,
        media_files: facts.json("media_files")?,
        clock: ClockError {
            bound_us: facts.number("clock_bound_us"),
            basis: facts.text("clock_basis").into(),
        },
        warnings: facts.json("warnings")?,
        workers: facts.json("workers")?,
        plan: None,
    };
    Ok(RunData {
        info,
        ending: Ending::from_key(facts.text("ending")).unwrap_or_default(),
        ended_at: facts.number("ended_at_us").map(RunTime),
        rows_lost: facts.number("rows_lost").unwrap_or(0),
        ..RunData::default()
    })
}

/// The keys and values.
struct Facts(HashMap<String, Option<String>>);

impl Facts {
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Option::as_deref).unwrap_or_default()
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.text(key).parse().ok()
    }

    /// What they say of the plan; `None` in folders of earlier versions.
    fn plan(&self) -> rusqlite::Result<Option<RunPlan>> {
        let Some(warm_up_us) = self.number(WARM_UP) else { return Ok(None) };
        let objectives = self.json(OBJECTIVES)?;
        Ok(Some(RunPlan { warm_up_us, objectives, ..RunPlan::default() }))
    }

    fn json<T: DeserializeOwned + Default>(&self, key: &str) -> rusqlite::Result<T> {
        match self.text(key) {
            "" => Ok(T::default()),
            text => serde_json::from_str(text).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(
                    1,
                    rusqlite::types::Type::Text,
                    Box::new(error),
                )
            }),
        }
    }
}
