//! Reading a run of any length for a report, which shows few of its rows one by one: the others are
//! added up as they are read.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Connection;
use throng_observation::run::{
    CohortId, DecodedRow, ParticipantRow, Row, RunData, SeriesRow, TrackRow,
};
use throng_observation::{
    Distribution, MediaKind, OneWayDelay, PlaybackCounters, PlaybackRow, PlayerRow, RowSelector,
    TrackCounters,
};

use crate::StoreError;
use crate::reader::{self, at_one_moment};
use crate::table::{self, Stored, columns_of};

/// Columns of `series` with samples of its tracks and frames, and the value of each where they are
/// not read.
const SAMPLES: [(&str, &str); 10] = [
    ("relative_delay_us", "NULL"),
    ("absolute_delay_us", "NULL"),
    ("capture_basis", "NULL"),
    ("absolute_delay_negative", "0"),
    ("absolute_delay_ahead_us", "NULL"),
    ("jitter_us", "NULL"),
    ("fps_milli", "NULL"),
    ("loss_ppm", "NULL"),
    ("oven_rtc_tester_delay_us", "NULL"),
    ("picture_lines", "NULL"),
];

/// The same of `playback`.
const PLAYBACK_SAMPLES: [(&str, &str); 5] = [
    ("buffer_us", "NULL"),
    ("shortfall_ppm", "NULL"),
    ("latency_us", "NULL"),
    ("edge_latency_us", "NULL"),
    ("capture_latency_us", "NULL"),
];

/// A table whose rows are read one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// As [`Row::Series`], by second, cohort and kind.
    Series,
    /// As [`Row::Participant`], by their numbers.
    Participants,
    /// As [`Row::Track`], by participant and track.
    Tracks,
    /// As [`Row::Playback`], by second and cohort.
    Playback,
    /// As [`Row::Player`], by their participants.
    Players,
}

/// Reads the run at `path` as `selector` wants it.
pub(crate) fn read(path: &Path, selector: &mut dyn RowSelector) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| {
        let mut run = reader::read_most(db)?;
        // Only a table of all participants shows their addresses.
        let no_address = |column| (column == "local_address").then_some("NULL");
        table::each(db, ParticipantRow::ORDER, no_address, |row| keep(&mut run.participants, row))?;
        run.decoded = decoded_tracks(db)?;
        run.series = series_without_samples(db)?;
        run.playback = playback_without_samples(db)?;
        let stretches = selector.stretches(&run);
        add_samples(db, &stretches, &mut run.series)?;
        add_playback_samples(db, &stretches, &mut run.playback)?;
        select_tracks(db, selector, &mut run)?;
        run.withdraw_sender_clocks();
        Ok(run)
    })
}

/// Keeps `row`, and asks for the next one.
fn keep<T>(rows: &mut Vec<T>, row: T) -> bool {
    rows.push(row);
    true
}

/// Calls `take` with the rows of `table` until it has enough.
pub(crate) fn each(
    path: &Path,
    table: Table,
    take: &mut dyn FnMut(Row) -> bool,
) -> Result<(), StoreError> {
    at_one_moment(path, |db| match table {
        Table::Series => {
            table::each(db, SeriesRow::ORDER, |_| None, |row| take(Row::Series(Box::new(row))))
        }
        Table::Participants => table::each(
            db,
            ParticipantRow::ORDER,
            |_| None,
            |row| take(Row::Participant(Box::new(row))),
        ),
        Table::Tracks => {
            table::each(db, TrackRow::ORDER, |_| None, |row| take(Row::Track(Box::new(row))))
        }
        Table::Playback => {
            table::each(db, PlaybackRow::ORDER, |_| None, |row| take(Row::Playback(Box::new(row))))
        }
        Table::Players => {
            table::each(db, PlayerRow::ORDER, |_| None, |row| take(Row::Player(Box::new(row))))
        }
    })
}

fn series_without_samples(db: &Connection) -> rusqlite::Result<Vec<SeriesRow>> {
    let instead =
        |column| SAMPLES.iter().find(|(sample, _)| *sample == column).map(|(_, absent)| *absent);
    let mut series: Vec<SeriesRow> = Vec::new();
    // The rows were written approximately in this order; a sort in SQLite would write them all
    // again.
    table::each(db, "rowid", instead, |row| keep(&mut series, row))?;
    let key = |row: &SeriesRow| (row.second, row.cohort, std::cmp::Reverse(row.kind));
    if !series.is_sorted_by_key(key) {
        series.sort_by_key(key);
    }
    Ok(series)
}

/// Adds the samples of each row of the table to the first row of its stretch.
fn add_samples(
    db: &Connection,
    stretches: &[i64],
    series: &mut [SeriesRow],
) -> rusqlite::Result<()> {
    type Place = (usize, CohortId, Option<MediaKind>);
    let place = |row: &SeriesRow| -> Place {
        (stretches.partition_point(|start| *start <= row.second), row.cohort, row.kind)
    };
    let mut first: HashMap<Place, usize> = HashMap::new();
    for (index, row) in series.iter().enumerate() {
        first.entry(place(row)).or_insert(index);
    }
    let counters = columns_of::<TrackCounters>();
    let no_counters = |name| counters.iter().any(|column| column.name == name).then_some("0");
    table::each(db, "rowid", no_counters, |row: SeriesRow| {
        if let Some(sums) = first.get(&place(&row)).and_then(|at| series.get_mut(*at)) {
            sums.add_samples(&row);
        }
        true
    })
}

fn playback_without_samples(db: &Connection) -> rusqlite::Result<Vec<PlaybackRow>> {
    let instead = |column| {
        PLAYBACK_SAMPLES.iter().find(|(sample, _)| *sample == column).map(|(_, absent)| *absent)
    };
    let mut rows: Vec<PlaybackRow> = Vec::new();
    table::each(db, PlaybackRow::ORDER, instead, |row| keep(&mut rows, row))?;
    Ok(rows)
}

/// Adds the samples of each row of `playback` to the first row of its stretch.
fn add_playback_samples(
    db: &Connection,
    stretches: &[i64],
    rows: &mut [PlaybackRow],
) -> rusqlite::Result<()> {
    let place =
        |row: &PlaybackRow| (stretches.partition_point(|start| *start <= row.second), row.cohort);
    let mut first: HashMap<(usize, CohortId), usize> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        first.entry(place(row)).or_insert(index);
    }
    let counters = columns_of::<PlaybackCounters>();
    let no_counters = |name| counters.iter().any(|column| column.name == name).then_some("0");
    table::each(db, "rowid", no_counters, |row: PlaybackRow| {
        if let Some(sums) = first.get(&place(&row)).and_then(|at| rows.get_mut(*at)) {
            sums.add_samples(&row);
        }
        true
    })
}

/// Passes the tracks to `selector`, those of one participant together.
fn select_tracks(
    db: &Connection,
    selector: &mut dyn RowSelector,
    run: &mut RunData,
) -> rusqlite::Result<()> {
    let mut of_one: Vec<TrackRow> = Vec::new();
    table::each(
        db,
        TrackRow::ORDER,
        |_| None,
        |track: TrackRow| {
            if of_one.first().is_some_and(|other| other.participant != track.participant) {
                selector.tracks(std::mem::take(&mut of_one), run);
            }
            keep(&mut of_one, track)
        },
    )?;
    if !of_one.is_empty() {
        selector.tracks(of_one, run);
    }
    selector.finish(run);
    Ok(())
}

/// The results of decoding tapped tracks: the delays of a track are added up into its first row.
fn decoded_tracks(db: &Connection) -> rusqlite::Result<Vec<DecodedRow>> {
    let mut all: Vec<DecodedRow> = Vec::new();
    let mut first = HashMap::new();
    table::each(
        db,
        DecodedRow::ORDER,
        |_| None,
        |mut row: DecodedRow| {
            match first.get(&(row.participant, row.track)).and_then(|at: &usize| all.get_mut(*at)) {
                Some(sums) => {
                    sums.decode_delay_us.merge(&row.decode_delay_us);
                    sums.glass_delay.merge(&row.glass_delay);
                    (row.decode_delay_us, row.glass_delay) =
                        (Distribution::new(), OneWayDelay::default());
                }
                None => drop(first.insert((row.participant, row.track), all.len())),
            }
            keep(&mut all, row)
        },
    )?;
    Ok(all)
}
