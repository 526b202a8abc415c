//! The tables of watched hosts: series, samples, events, profiles. A folder older than these tables
//! reads as a run without hosts.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction};
use throng_observation::RunTime;
use throng_observation::host::{
    Frame, HostData, HostEvent, HostId, HostInfo, HostSample, HostSeries, Profile, ProfileMethod,
    Stack,
};

use crate::cells::{Binder, Cells};
use crate::table::{Column, Group, Stored, columns, create, list, put};

columns! { HostInfo { host, name, facts, clock_error_us, watcher_cpu_us, watcher_rss_bytes } }

impl Stored for HostInfo {
    const TABLE: &'static str = "host";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "host";
}

// `upper_limit`, because LIMIT is a keyword of SQL.
columns! { HostSeries { id = "series", host, metric, unit, labels, limit = "upper_limit" } }

impl Stored for HostSeries {
    const TABLE: &'static str = "host_series";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "series";
}

columns! { HostSample { at = "at_us", series, value as Value } }

/// The primary key begins with time: samples arrive in order of time, so that each second is
/// appended to the tree; with the series first, each second would rewrite a page for each of
/// several thousand series.
impl Stored for HostSample {
    const TABLE: &'static str = "host_sample";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "at_us, series";
}

/// A value of a sample. `NUMERIC` stores integers in a byte or two; NULL stands for NaN: the value
/// is unknown from then on.
struct Value;

impl Group<f64> for Value {
    fn columns(out: &mut Vec<Column>) {
        out.push(Column::declared("value", "NUMERIC"));
    }

    fn bind(value: &f64, to: &mut Binder<'_, '_>) -> rusqlite::Result<()> {
        // SQLite stores NaN as NULL.
        to.put(value)
    }

    fn read(from: &mut Cells<'_, '_>) -> rusqlite::Result<f64> {
        Ok(from.take::<Option<f64>>()?.unwrap_or(f64::NAN))
    }
}

columns! { HostEvent { host, at = "at_us", kind, detail, process or "NULL" } }

impl Stored for HostEvent {
    const TABLE: &'static str = "host_event";
    const IS_OF_CROWD: bool = false;
    const ORDER: &'static str = "at_us, rowid";
}

/// A profile without its frames and stacks, which have tables of their own.
struct ProfileRow {
    /// Its number; SQLite assigns the next one to a row without.
    profile: Option<i64>,
    host: HostId,
    moment: String,
    started_at: RunTime,
    duration_us: u64,
    frequency_hz: u32,
    method: ProfileMethod,
    samples_lost: u64,
    limits: Vec<String>,
}

columns! { ProfileRow {
    profile, host, moment, started_at = "started_at_us", duration_us, frequency_hz, method,
    samples_lost, limits,
} }

impl Stored for ProfileRow {
    const TABLE: &'static str = "host_profile";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "profile";
    const ORDER: &'static str = "started_at_us, profile";
}

struct FrameRow {
    profile: i64,
    frame: u32,
    symbol: String,
    module: String,
}

columns! { FrameRow { profile, frame, symbol, module } }

impl Stored for FrameRow {
    const TABLE: &'static str = "host_profile_frame";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "profile, frame";
}

struct StackRow {
    profile: i64,
    stack: u32,
    pid: u32,
    tid: u32,
    thread: String,
    count: u32,
    frames: Vec<u32>,
}

columns! { StackRow { profile, stack, pid, tid, thread, count, frames } }

impl Stored for StackRow {
    const TABLE: &'static str = "host_profile_stack";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "profile, stack";
}

/// The statements that make the tables.
pub(crate) fn create_all() -> String {
    [
        create::<HostInfo>(),
        create::<HostSeries>(),
        create::<HostSample>(),
        create::<HostEvent>(),
        create::<ProfileRow>(),
        create::<FrameRow>(),
        create::<StackRow>(),
    ]
    .concat()
}

/// Writes a profile with its frames and stacks.
pub(crate) fn put_profile(db: &Transaction<'_>, profile: &Profile) -> rusqlite::Result<()> {
    let row = ProfileRow {
        profile: None,
        host: profile.host,
        moment: profile.moment.clone(),
        started_at: profile.started_at,
        duration_us: profile.duration_us,
        frequency_hz: profile.frequency_hz,
        method: profile.method,
        samples_lost: profile.samples_lost,
        limits: profile.limits.clone(),
    };
    put(db, [&row])?;
    let id = db.last_insert_rowid();
    let frame = |(number, frame): (u32, &Frame)| FrameRow {
        profile: id,
        frame: number,
        symbol: frame.symbol.clone(),
        module: frame.module.clone(),
    };
    put(db, &(0..).zip(&profile.frames).map(frame).collect::<Vec<_>>())?;
    let stack = |(number, stack): (u32, &Stack)| StackRow {
        profile: id,
        stack: number,
        pid: stack.pid,
        tid: stack.tid,
        thread: stack.thread.clone(),
        count: stack.count,
        frames: stack.frames.clone(),
    };
    put(db, &(0..).zip(&profile.stacks).map(stack).collect::<Vec<_>>())
}

/// Reads all rows of hosts.
pub(crate) fn read_all(db: &Connection) -> rusqlite::Result<HostData> {
    let mut samples: Vec<HostSample> = list(db)?;
    // Sorted here because the table is in order of time; unstable, thus in place, because there may
    // be many millions. No two have the same key.
    samples.sort_unstable_by_key(|sample| (sample.series, sample.at));
    Ok(HostData {
        hosts: list(db)?,
        series: list(db)?,
        samples,
        events: list(db)?,
        profiles: read_profiles(db)?,
    })
}

fn read_profiles(db: &Connection) -> rusqlite::Result<Vec<Profile>> {
    let rows: Vec<ProfileRow> = list(db)?;
    let place: HashMap<_, usize> =
        rows.iter().zip(0..).map(|(row, index)| (row.profile, index)).collect();
    let profile = |row: ProfileRow| Profile {
        host: row.host,
        moment: row.moment,
        started_at: row.started_at,
        duration_us: row.duration_us,
        frequency_hz: row.frequency_hz,
        method: row.method,
        samples_lost: row.samples_lost,
        limits: row.limits,
        frames: Vec::new(),
        stacks: Vec::new(),
    };
    let mut profiles: Vec<Profile> = rows.into_iter().map(profile).collect();
    for FrameRow { profile, symbol, module, .. } in list(db)? {
        if let Some(profile) = place.get(&Some(profile)).and_then(|at| profiles.get_mut(*at)) {
            profile.frames.push(Frame { symbol, module });
        }
    }
    for StackRow { profile, pid, tid, thread, count, frames, .. } in list(db)? {
        if let Some(profile) = place.get(&Some(profile)).and_then(|at| profiles.get_mut(*at)) {
            profile.stacks.push(Stack { pid, tid, thread, count, frames });
        }
    }
    Ok(profiles)
}
