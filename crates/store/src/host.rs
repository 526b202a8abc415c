//! Watched hosts as they stand in their tables: series, samples, happenings, profiles.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use throng_observation::RunTime;
use throng_observation::host::{
    Frame, HostData, HostEvent, HostEventKind, HostId, HostInfo, HostSample, HostSeries, Profile,
    ProfileMethod, SeriesId, Stack,
};

use crate::reader::list;
use crate::rows::{Cells, broken, int, opt, put};
use crate::schema;
use crate::waiting::WaitingHost;

/// Writes everything of hosts that waits.
pub(crate) fn put_all(db: &Transaction<'_>, waiting: &WaitingHost) -> rusqlite::Result<()> {
    put(db, "host", &schema::HOST, waiting.hosts.values(), host)?;
    put(db, "host_series", &schema::HOST_SERIES, waiting.series.values(), series)?;
    let mut statement = db.prepare_cached(&schema::insert("host_sample", &schema::HOST_SAMPLE))?;
    for sample in &waiting.samples {
        // SQLite makes NULL of NaN, which is what it means here: nothing is known from then on.
        statement.execute(params![sample.at.as_micros(), sample.series.0, sample.value])?;
    }
    put(db, "host_event", &schema::HOST_EVENT, &waiting.events, event)?;
    waiting.profiles.iter().try_for_each(|profile| put_profile(db, profile))
}

fn host(info: &HostInfo) -> Vec<Value> {
    vec![
        i64::from(info.host.0).into(),
        info.name.clone().into(),
        json(&info.facts),
        int(info.clock_error_us),
        int(info.watcher_cpu_us),
        int(info.watcher_rss_bytes),
    ]
}

fn series(series: &HostSeries) -> Vec<Value> {
    vec![
        i64::from(series.id.0).into(),
        i64::from(series.host.0).into(),
        series.metric.clone().into(),
        key(series.unit),
        json(&series.labels),
        opt(series.limit),
    ]
}

fn event(event: &HostEvent) -> Vec<Value> {
    vec![
        i64::from(event.host.0).into(),
        event.at.as_micros().into(),
        key(event.kind),
        event.detail.clone().into(),
    ]
}

fn put_profile(db: &Transaction<'_>, profile: &Profile) -> rusqlite::Result<()> {
    let head = vec![
        i64::from(profile.host.0).into(),
        profile.moment.clone().into(),
        profile.started_at.as_micros().into(),
        int(profile.duration_us),
        i64::from(profile.frequency_hz).into(),
        key(profile.method),
        int(profile.samples_lost),
        json(&profile.limits),
    ];
    put(db, "host_profile", &schema::HOST_PROFILE, [&head], Clone::clone)?;
    let id = db.last_insert_rowid();
    let frames = (0i64..).zip(&profile.frames).collect::<Vec<_>>();
    put(db, "host_profile_frame", &schema::HOST_PROFILE_FRAME, &frames, |(number, frame)| {
        vec![id.into(), (*number).into(), frame.symbol.clone().into(), frame.module.clone().into()]
    })?;
    let stacks = (0i64..).zip(&profile.stacks).collect::<Vec<_>>();
    put(db, "host_profile_stack", &schema::HOST_PROFILE_STACK, &stacks, |(number, stack)| {
        vec![
            id.into(),
            (*number).into(),
            i64::from(stack.pid).into(),
            i64::from(stack.tid).into(),
            stack.thread.clone().into(),
            i64::from(stack.count).into(),
            json(&stack.frames),
        ]
    })
}

/// A word of an enum as everybody spells it.
fn key(word: impl Serialize) -> Value {
    match serde_json::to_value(word) {
        Ok(serde_json::Value::String(key)) => key.into(),
        _ => String::new().into(),
    }
}

/// The word of that spelling; `None` for one that this throng does not know.
fn word<T: DeserializeOwned>(key: String) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(key)).ok()
}

/// Lists and maps of text and numbers, which JSON can always hold.
fn json(value: &impl Serialize) -> Value {
    serde_json::to_string(value).unwrap_or_default().into()
}

fn from_json<T: DeserializeOwned>(cells: &mut Cells<'_, '_>) -> rusqlite::Result<T> {
    let text: String = cells.take()?;
    serde_json::from_str(&text).map_err(|error| broken(0, error))
}

/// Reads everything of hosts; nothing where the folder is older than the tables.
pub(crate) fn read_all(db: &Connection) -> rusqlite::Result<HostData> {
    let has_hosts = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name LIKE 'host%'";
    if db.query_row(has_hosts, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(HostData::default());
    }
    let mut samples = list(db, "host_sample", &schema::HOST_SAMPLE, "at_us, series", read_sample)?;
    // In memory, because the table is in order of time; in place, because they may be many millions. No two are alike.
    samples.sort_unstable_by_key(|sample| (sample.series, sample.at));
    Ok(HostData {
        hosts: list(db, "host", &schema::HOST, "host", read_host)?,
        series: list(db, "host_series", &schema::HOST_SERIES, "series", read_series)?,
        samples,
        events: list(db, "host_event", &schema::HOST_EVENT, "at_us, rowid", read_event)?,
        profiles: read_profiles(db)?,
    })
}

fn read_host(row: &Row<'_>) -> rusqlite::Result<HostInfo> {
    let mut c = Cells::of(row);
    Ok(HostInfo {
        host: HostId(c.take()?),
        name: c.take()?,
        facts: from_json(&mut c)?,
        clock_error_us: c.count()?,
        watcher_cpu_us: c.count()?,
        watcher_rss_bytes: c.count()?,
    })
}

fn read_series(row: &Row<'_>) -> rusqlite::Result<HostSeries> {
    let mut c = Cells::of(row);
    Ok(HostSeries {
        id: SeriesId(c.take()?),
        host: HostId(c.take()?),
        metric: c.take()?,
        unit: word(c.take()?).unwrap_or_default(),
        labels: from_json(&mut c)?,
        limit: c.take()?,
    })
}

fn read_sample(row: &Row<'_>) -> rusqlite::Result<HostSample> {
    let mut c = Cells::of(row);
    Ok(HostSample {
        at: RunTime(c.take()?),
        series: SeriesId(c.take()?),
        value: c.take::<Option<f64>>()?.unwrap_or(f64::NAN),
    })
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<HostEvent> {
    let mut c = Cells::of(row);
    Ok(HostEvent {
        host: HostId(c.take()?),
        at: RunTime(c.take()?),
        // A kind that this throng does not know is still something that the watcher said.
        kind: word(c.take()?).unwrap_or(HostEventKind::Watcher),
        detail: c.take()?,
    })
}

fn read_profiles(db: &Connection) -> rusqlite::Result<Vec<Profile>> {
    let mut profiles: Vec<(i64, Profile)> = db
        .prepare(&schema::select(
            "host_profile",
            &[&["profile"][..], &schema::HOST_PROFILE].concat(),
            "started_at_us, profile",
        ))?
        .query_map([], |row| {
            let mut c = Cells::of(row);
            Ok((c.take()?, read_profile(&mut c)?))
        })?
        .collect::<Result<_, _>>()?;
    let place: HashMap<i64, usize> = profiles.iter().zip(0..).map(|((id, _), index)| (*id, index)).collect();
    let frames = list(db, "host_profile_frame", &schema::HOST_PROFILE_FRAME, "profile, frame", |row| {
        let mut c = Cells::of(row);
        let (profile, _frame): (i64, i64) = (c.take()?, c.take()?);
        Ok((profile, Frame { symbol: c.take()?, module: c.take()? }))
    })?;
    let stacks = list(db, "host_profile_stack", &schema::HOST_PROFILE_STACK, "profile, stack", |row| {
        let mut c = Cells::of(row);
        let (profile, _stack): (i64, i64) = (c.take()?, c.take()?);
        let (pid, tid, thread, count) = (c.take()?, c.take()?, c.take()?, c.take()?);
        Ok((profile, Stack { pid, tid, thread, count, frames: from_json(&mut c)? }))
    })?;
    for (id, frame) in frames {
        if let Some((_, profile)) = place.get(&id).and_then(|at| profiles.get_mut(*at)) {
            profile.frames.push(frame);
        }
    }
    for (id, stack) in stacks {
        if let Some((_, profile)) = place.get(&id).and_then(|at| profiles.get_mut(*at)) {
            profile.stacks.push(stack);
        }
    }
    Ok(profiles.into_iter().map(|(_, profile)| profile).collect())
}

fn read_profile(c: &mut Cells<'_, '_>) -> rusqlite::Result<Profile> {
    Ok(Profile {
        host: HostId(c.take()?),
        moment: c.take()?,
        started_at: RunTime(c.take()?),
        duration_us: c.count()?,
        frequency_hz: c.take()?,
        method: word(c.take()?).unwrap_or(ProfileMethod::ThreadState),
        samples_lost: c.count()?,
        limits: from_json(c)?,
        frames: Vec::new(),
        stacks: Vec::new(),
    })
}
