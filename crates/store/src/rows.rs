//! Each row as it stands in its table.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};
use throng_observation::run::{
    CohortId, CrowdRow, Ending, EventRow, GeneratorRow, LayerSwitchRow, ParticipantId, ParticipantRow,
    RunInfo, SentRow, SeriesRow, TrackRow,
};
use throng_observation::{
    CaptureBasis, Codec, Distribution, Failure, FailureReason, Layer, MediaKind, OneWayDelay, Outcome, Phase,
    RunTime, SentCounters, TrackCounters, TrackId,
};

use crate::waiting::Waiting;
use crate::{FORMAT, canary, host, schema, search};

/// SQLite's integers are signed; a counter that large does not occur, and would rather stop than turn negative.
pub(crate) fn int(value: u64) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

pub(crate) fn opt<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or(Value::Null, Into::into)
}

/// An empty distribution takes no room.
pub(crate) fn blob(distribution: &Distribution) -> Value {
    if distribution.is_empty() { Value::Null } else { Value::Blob(distribution.to_bytes()) }
}

fn counters(c: &TrackCounters) -> [Value; schema::COUNTERS.len()] {
    [
        int(c.packets_received),
        int(c.payload_bytes),
        int(c.header_bytes),
        int(c.wire_bytes),
        Value::Integer(c.packets_lost),
        int(c.packets_late),
        int(c.packets_duplicate),
        int(c.packets_reordered),
        int(c.packets_recovered),
        int(c.nack_sent),
        int(c.pli_sent),
        int(c.fir_sent),
        int(c.frames_complete),
        int(c.frames_decodable),
        int(c.key_frames),
        int(c.frames_dropped),
        int(c.freeze_count),
        int(c.freeze_us),
        int(c.active_us),
        int(c.packets_discarded),
        int(c.missing_us),
        int(c.rtx_packets_received),
    ]
}

/// Writes `info` as keys and values; what is a list or a map is JSON.
pub(crate) fn put_info(db: &Connection, info: &RunInfo) -> rusqlite::Result<()> {
    let json = |value: serde_json::Result<String>| {
        value.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    };
    let pairs: [(&str, Option<String>); 12] = [
        ("format", Some(FORMAT.to_string())),
        ("throng_version", Some(info.throng_version.clone())),
        ("scenario", Some(info.scenario.clone())),
        ("target", Some(info.target.clone())),
        ("cohorts", Some(json(serde_json::to_string(&info.cohorts))?)),
        ("started_at_unix_us", Some(info.started_at_unix_us.to_string())),
        ("planned_duration_us", Some(info.planned_duration_us.to_string())),
        ("generator_host", Some(json(serde_json::to_string(&info.generator_host))?)),
        ("clock_bound_us", info.clock.bound_us.map(|bound| bound.to_string())),
        ("clock_basis", Some(info.clock.basis.clone())),
        ("warnings", Some(json(serde_json::to_string(&info.warnings))?)),
        ("ending", Some(ending_key(Ending::Unfinished).into())),
    ];
    let mut statement = db.prepare("INSERT INTO info (key, value) VALUES (?1, ?2)")?;
    for (key, value) in pairs {
        statement.execute(params![key, value])?;
    }
    Ok(())
}

/// Writes how and when the run ended.
pub(crate) fn put_ending(db: &Connection, ending: Ending, ended_at: RunTime) -> rusqlite::Result<()> {
    let mut statement = db.prepare("INSERT OR REPLACE INTO info (key, value) VALUES (?1, ?2)")?;
    statement.execute(params!["ending", ending_key(ending)])?;
    statement.execute(params!["ended_at_us", ended_at.as_micros().to_string()])?;
    Ok(())
}

/// Writes all rows that wait.
pub(crate) fn put_all(db: &Transaction<'_>, waiting: &Waiting) -> rusqlite::Result<()> {
    put(db, "crowd", &schema::CROWD, &waiting.crowd, crowd)?;
    put(db, "series", &with_counters(&schema::SERIES), &waiting.series, series)?;
    put(db, "sent", &schema::SENT, &waiting.sent, sent)?;
    put(db, "participant", &schema::PARTICIPANT, waiting.participants.values(), participant)?;
    put(db, "track", &with_counters(&schema::TRACK), waiting.tracks.values(), track)?;
    put(db, "layer_switch", &schema::LAYER_SWITCH, &waiting.layer_switches, layer_switch)?;
    put(db, "generator", &schema::GENERATOR, &waiting.generator, generator)?;
    put(db, "event", &schema::EVENT, &waiting.events, event)?;
    search::put_all(db, waiting)?;
    canary::put_all(db, &waiting.canary)?;
    host::put_all(db, &waiting.host)
}

pub(crate) fn put<'a, T: 'a>(
    db: &Transaction<'_>,
    table: &str,
    columns: &[&str],
    rows: impl IntoIterator<Item = &'a T>,
    values: impl Fn(&T) -> Vec<Value>,
) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached(&schema::insert(table, columns))?;
    for row in rows {
        statement.execute(params_from_iter(values(row)))?;
    }
    Ok(())
}

/// `columns` and then those of the counters.
pub(crate) fn with_counters(columns: &[&'static str]) -> Vec<&'static str> {
    columns.iter().chain(&schema::COUNTERS).copied().collect()
}

fn crowd(row: &CrowdRow) -> Vec<Value> {
    [row.intended, row.started, row.connected, row.playing, row.failed, row.left]
        .into_iter()
        .chain(row.ice)
        .map(i64::from)
        .fold(vec![row.second.into(), i64::from(row.cohort.0).into()], |mut all, value| {
            all.push(value.into());
            all
        })
}

fn series(row: &SeriesRow) -> Vec<Value> {
    let mut values: Vec<Value> = vec![
        row.second.into(),
        i64::from(row.cohort.0).into(),
        opt(row.kind.map(|kind| kind.key().to_owned())),
        i64::from(row.tracks).into(),
        i64::from(row.tracks_below_source_fps).into(),
        opt(row.source_fps_milli.map(i64::from)),
        blob(&row.relative_delay_us),
        blob(row.absolute_delay.distribution()),
        opt(row.absolute_delay.basis().map(|basis| basis.key().to_owned())),
        int(row.absolute_delay.negative()),
        blob(&row.jitter_us),
        blob(&row.fps_milli),
        blob(&row.loss_ppm),
        blob(&row.oven_rtc_tester_delay_us),
    ];
    values.extend(counters(&row.counters));
    values
}

fn layer_switch(row: &LayerSwitchRow) -> Vec<Value> {
    vec![
        Value::Integer(row.participant.0.into()),
        Value::Integer(row.track.0.into()),
        Value::Text(row.layer.key().into()),
        Value::Integer(row.requested_at.0),
        opt(row.shown_at.map(|at| at.0)),
        Value::Integer(row.width.into()),
        Value::Integer(row.height.into()),
    ]
}

fn sent(row: &SentRow) -> Vec<Value> {
    let c = &row.counters;
    vec![
        row.second.into(),
        i64::from(row.cohort.0).into(),
        row.kind.key().to_owned().into(),
        i64::from(row.tracks).into(),
        int(c.packets_sent),
        int(c.payload_bytes),
        int(c.wire_bytes),
        int(c.retransmitted_packets),
        int(c.retransmitted_bytes),
        int(c.frames_sent),
        int(c.key_frames_sent),
        int(c.nack_received),
        int(c.pli_received),
        int(c.fir_received),
    ]
}

fn participant(row: &ParticipantRow) -> Vec<Value> {
    let (outcome, reason, detail) = match &row.outcome {
        None => (None, None, None),
        Some(Outcome::Completed) => (Some("completed"), None, None),
        Some(Outcome::Failed(failure)) => {
            (Some("failed"), Some(failure.reason.key()), Some(failure.detail.clone()))
        }
    };
    let mut values: Vec<Value> = vec![
        i64::from(row.participant.0).into(),
        i64::from(row.cohort.0).into(),
        row.intended_at.as_micros().into(),
        opt(row.ended_at.map(RunTime::as_micros)),
        opt(outcome.map(str::to_owned)),
        opt(reason),
        opt(detail),
        opt(row.local_address.clone()),
    ];
    values.extend(Phase::ALL.map(|phase| opt(row.reached.get(&phase).map(|at| at.as_micros()))));
    values
}

fn track(row: &TrackRow) -> Vec<Value> {
    let mut values: Vec<Value> = vec![
        i64::from(row.participant.0).into(),
        i64::from(row.track.0).into(),
        row.kind.key().to_owned().into(),
        row.codec.name().to_owned().into(),
        opt(row.from.clone()),
        opt(row.first_frame_at.map(RunTime::as_micros)),
        opt(row.fps),
        opt(row.jitter_us.map(i64::from)),
        opt(row.oven_rtc_tester_delay_us.map(i64::from)),
        blob(&row.relative_delay_us),
        blob(row.absolute_delay.distribution()),
        opt(row.absolute_delay.basis().map(|basis| basis.key().to_owned())),
        int(row.absolute_delay.negative()),
    ];
    values.extend(counters(&row.counters));
    values
}

fn generator(row: &GeneratorRow) -> Vec<Value> {
    vec![
        row.second.into(),
        opt(row.thread.map(i64::from)),
        int(row.cpu_us),
        int(row.run_queue_wait_us),
        int(row.lag_p99_us),
        int(row.lag_max_us),
        int(row.socket_drops),
        int(row.send_drops),
        int(row.sent_bytes),
        int(row.rss_bytes),
        int(row.open_fds),
        row.steal_ratio.into(),
        int(row.observations_dropped),
    ]
}

fn event(row: &EventRow) -> Vec<Value> {
    vec![
        row.at.as_micros().into(),
        opt(row.participant.map(|who| i64::from(who.0))),
        row.kind.clone().into(),
        i64::from(row.count).into(),
        row.detail.clone().into(),
    ]
}

/// The stable key of an ending.
pub(crate) fn ending_key(ending: Ending) -> &'static str {
    match ending {
        Ending::Unfinished => "unfinished",
        Ending::Complete => "complete",
        Ending::Interrupted => "interrupted",
        Ending::Aborted => "aborted",
    }
}

/// Reads cells from left to right.
pub(crate) struct Cells<'r, 's> {
    row: &'r Row<'s>,
    next: usize,
}

impl<'r, 's> Cells<'r, 's> {
    pub(crate) fn of(row: &'r Row<'s>) -> Self {
        Self { row, next: 0 }
    }

    pub(crate) fn take<T: rusqlite::types::FromSql>(&mut self) -> rusqlite::Result<T> {
        let index = self.next;
        self.next += 1;
        self.row.get(index)
    }

    /// A count; a negative one in a damaged file reads as 0.
    pub(crate) fn count(&mut self) -> rusqlite::Result<u64> {
        Ok(u64::try_from(self.take::<i64>()?).unwrap_or(0))
    }

    pub(crate) fn distribution(&mut self) -> rusqlite::Result<Distribution> {
        let index = self.next;
        self.next += 1;
        match self.row.get_ref(index)?.as_blob_or_null()? {
            None => Ok(Distribution::new()),
            Some(bytes) => Distribution::from_bytes(bytes).map_err(|error| broken(index, error)),
        }
    }

    pub(crate) fn one_way(&mut self) -> rusqlite::Result<OneWayDelay> {
        let (delay_us, basis) = (self.distribution()?, self.take::<Option<String>>()?);
        let basis = basis.as_deref().and_then(CaptureBasis::from_key);
        Ok(OneWayDelay::from_parts(basis, delay_us, self.count()?))
    }

    fn kind(&mut self) -> rusqlite::Result<Option<MediaKind>> {
        let index = self.next;
        match self.take::<Option<String>>()?.as_deref() {
            None => Ok(None),
            Some("audio") => Ok(Some(MediaKind::Audio)),
            Some("video") => Ok(Some(MediaKind::Video)),
            Some(_) => Err(broken(index, std::io::Error::other("neither audio nor video"))),
        }
    }

    fn counters(&mut self) -> rusqlite::Result<TrackCounters> {
        Ok(TrackCounters {
            packets_received: self.count()?,
            payload_bytes: self.count()?,
            header_bytes: self.count()?,
            wire_bytes: self.count()?,
            packets_lost: self.take()?,
            packets_late: self.count()?,
            packets_duplicate: self.count()?,
            packets_reordered: self.count()?,
            packets_recovered: self.count()?,
            nack_sent: self.count()?,
            pli_sent: self.count()?,
            fir_sent: self.count()?,
            frames_complete: self.count()?,
            frames_decodable: self.count()?,
            key_frames: self.count()?,
            frames_dropped: self.count()?,
            freeze_count: self.count()?,
            freeze_us: self.count()?,
            active_us: self.count()?,
            packets_discarded: self.count()?,
            missing_us: self.count()?,
            rtx_packets_received: self.count()?,
        })
    }
}

pub(crate) fn broken(index: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Blob, Box::new(error))
}

/// Reads a row of `crowd`.
pub(crate) fn read_crowd(row: &Row<'_>) -> rusqlite::Result<CrowdRow> {
    let mut c = Cells::of(row);
    let mut crowd = CrowdRow {
        second: c.take()?,
        cohort: CohortId(c.take()?),
        intended: c.take()?,
        started: c.take()?,
        connected: c.take()?,
        playing: c.take()?,
        failed: c.take()?,
        left: c.take()?,
        ice: [0; 6],
    };
    for state in &mut crowd.ice {
        *state = c.take()?;
    }
    Ok(crowd)
}

/// Reads a row of `series`.
pub(crate) fn read_series(row: &Row<'_>) -> rusqlite::Result<SeriesRow> {
    let mut c = Cells::of(row);
    let (second, cohort, kind) = (c.take()?, CohortId(c.take()?), c.kind()?);
    let (tracks, tracks_below_source_fps, source_fps_milli) = (c.take()?, c.take()?, c.take()?);
    Ok(SeriesRow {
        second,
        cohort,
        kind,
        tracks,
        tracks_below_source_fps,
        source_fps_milli,
        relative_delay_us: c.distribution()?,
        absolute_delay: c.one_way()?,
        jitter_us: c.distribution()?,
        fps_milli: c.distribution()?,
        loss_ppm: c.distribution()?,
        oven_rtc_tester_delay_us: c.distribution()?,
        counters: c.counters()?,
    })
}

/// Reads a row of `layer_switch`.
pub(crate) fn read_layer_switch(row: &Row<'_>) -> rusqlite::Result<LayerSwitchRow> {
    let mut c = Cells::of(row);
    Ok(LayerSwitchRow {
        participant: ParticipantId(c.take()?),
        track: TrackId(c.take()?),
        layer: Layer::from_key(&c.take::<String>()?).unwrap_or(Layer::High),
        requested_at: RunTime(c.take()?),
        shown_at: c.take::<Option<i64>>()?.map(RunTime),
        width: c.take()?,
        height: c.take()?,
    })
}

/// Reads a row of `sent`.
pub(crate) fn read_sent(row: &Row<'_>) -> rusqlite::Result<SentRow> {
    let mut c = Cells::of(row);
    Ok(SentRow {
        second: c.take()?,
        cohort: CohortId(c.take()?),
        kind: c.kind()?.unwrap_or(MediaKind::Video),
        tracks: c.take()?,
        counters: SentCounters {
            packets_sent: c.count()?,
            payload_bytes: c.count()?,
            wire_bytes: c.count()?,
            retransmitted_packets: c.count()?,
            retransmitted_bytes: c.count()?,
            frames_sent: c.count()?,
            key_frames_sent: c.count()?,
            nack_received: c.count()?,
            pli_received: c.count()?,
            fir_received: c.count()?,
        },
    })
}

/// Reads a row of `participant`.
pub(crate) fn read_participant(row: &Row<'_>) -> rusqlite::Result<ParticipantRow> {
    let mut c = Cells::of(row);
    let (participant, cohort) = (ParticipantId(c.take()?), CohortId(c.take()?));
    let (intended_at, ended_at) = (RunTime(c.take()?), c.take::<Option<i64>>()?.map(RunTime));
    let (outcome, reason, detail): (Option<String>, Option<String>, Option<String>) =
        (c.take()?, c.take()?, c.take()?);
    let local_address = c.take()?;
    let mut reached = std::collections::BTreeMap::new();
    for phase in Phase::ALL {
        if let Some(at) = c.take::<Option<i64>>()? {
            reached.insert(phase, RunTime(at));
        }
    }
    let outcome = outcome.map(|outcome| match outcome.as_str() {
        "completed" => Outcome::Completed,
        // A reason that this throng does not know is still a failure.
        _ => Outcome::Failed(Failure::new(
            reason.as_deref().and_then(FailureReason::from_key).unwrap_or(FailureReason::Protocol),
            detail.unwrap_or_default(),
        )),
    });
    Ok(ParticipantRow { participant, cohort, intended_at, reached, ended_at, outcome, local_address })
}

/// Reads a row of `track`.
pub(crate) fn read_track(row: &Row<'_>) -> rusqlite::Result<TrackRow> {
    let mut c = Cells::of(row);
    let (participant, track) = (ParticipantId(c.take()?), TrackId(c.take()?));
    let kind = c.kind()?.unwrap_or(MediaKind::Video);
    let codec = Codec::from_name(&c.take::<String>()?);
    let (from, first_frame_at) = (c.take()?, c.take::<Option<i64>>()?.map(RunTime));
    let (fps, jitter_us, oven_rtc_tester_delay_us) = (c.take()?, c.take()?, c.take()?);
    let (relative_delay_us, absolute_delay) = (c.distribution()?, c.one_way()?);
    let counters = c.counters()?;
    Ok(TrackRow {
        participant,
        track,
        kind,
        codec,
        from,
        first_frame_at,
        counters,
        relative_delay_us,
        absolute_delay,
        fps,
        jitter_us,
        oven_rtc_tester_delay_us,
    })
}

/// Reads a row of `generator`.
pub(crate) fn read_generator(row: &Row<'_>) -> rusqlite::Result<GeneratorRow> {
    let mut c = Cells::of(row);
    Ok(GeneratorRow {
        second: c.take()?,
        thread: c.take()?,
        cpu_us: c.count()?,
        run_queue_wait_us: c.count()?,
        lag_p99_us: c.count()?,
        lag_max_us: c.count()?,
        socket_drops: c.count()?,
        send_drops: c.count()?,
        sent_bytes: c.count()?,
        rss_bytes: c.count()?,
        open_fds: c.count()?,
        steal_ratio: c.take()?,
        observations_dropped: c.count()?,
    })
}

/// Reads a row of `event`.
pub(crate) fn read_event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    let mut c = Cells::of(row);
    Ok(EventRow {
        at: RunTime(c.take()?),
        participant: c.take::<Option<u32>>()?.map(ParticipantId),
        kind: c.take()?,
        count: c.take()?,
        detail: c.take()?,
    })
}
