//! Reading a run of any length for a report, which shows little of it one by one: what is not wanted so is added up row by
//! row as it is read, and nothing is kept of it.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Connection;
use throng_observation::run::{CohortId, DecodedRow, Row, RunData, SeriesRow, TrackRow};
use throng_observation::{Distribution, MediaKind, OneWayDelay, RowSelector};

use crate::reader::{self, Participants, at_one_moment, list};
use crate::{StoreError, decoded, rows, schema};

/// Columns of `series` that are samples of its tracks and frames, and what stands for them where they are not read.
const SAMPLES: [(&str, &str); 8] = [
    ("relative_delay_us", "NULL"),
    ("absolute_delay_us", "NULL"),
    ("capture_basis", "NULL"),
    ("absolute_delay_negative", "0"),
    ("jitter_us", "NULL"),
    ("fps_milli", "NULL"),
    ("loss_ppm", "NULL"),
    ("oven_rtc_tester_delay_us", "NULL"),
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
}

/// Reads the run at `path` as `selector` wants it.
pub(crate) fn read(path: &Path, selector: &mut dyn RowSelector) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| {
        let mut run = reader::read_most(db)?;
        let columns = Participants::WithoutAddresses.columns();
        run.participants = list(db, "participant", &columns, "participant", rows::read_participant)?;
        run.decoded = decoded_tracks(db)?;
        run.series = series_without_samples(db)?;
        let stretches = selector.stretches(&run);
        add_samples(db, &stretches, &mut run.series)?;
        sift_tracks(db, selector, &mut run)?;
        Ok(run)
    })
}

/// Shows `each` the rows of `table` until it has enough.
pub(crate) fn each(path: &Path, table: Table, each: &mut dyn FnMut(Row) -> bool) -> Result<(), StoreError> {
    at_one_moment(path, |db| {
        let (name, columns, order) = match table {
            Table::Series => ("series", reader::series(db)?, "second, cohort, kind DESC"),
            Table::Participants => ("participant", Participants::All.columns().to_vec(), "participant"),
            Table::Tracks => ("track", reader::tracks(db)?, "participant, track"),
        };
        let mut statement = db.prepare(&schema::select(name, &columns, order))?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let row = match table {
                Table::Series => Row::Series(Box::new(rows::read_series(row)?)),
                Table::Participants => Row::Participant(Box::new(rows::read_participant(row)?)),
                Table::Tracks => Row::Track(Box::new(rows::read_track(row)?)),
            };
            if !each(row) {
                break;
            }
        }
        Ok(())
    })
}

fn series_without_samples(db: &Connection) -> rusqlite::Result<Vec<SeriesRow>> {
    let without = |column: &'static str| {
        SAMPLES.iter().find(|(sample, _)| *sample == column).map_or(column, |(_, absent)| *absent)
    };
    let columns: Vec<_> = reader::series(db)?.into_iter().map(without).collect();
    // They were written in this order, or nearly: to let SQLite sort them would write them all once more.
    let mut series = list(db, "series", &columns, "rowid", rows::read_series)?;
    let key = |row: &SeriesRow| (row.second, row.cohort, std::cmp::Reverse(row.kind));
    if !series.is_sorted_by_key(key) {
        series.sort_by_key(key);
    }
    Ok(series)
}

/// Adds the samples of each row of the table to the first row of its stretch.
fn add_samples(db: &Connection, stretches: &[i64], series: &mut [SeriesRow]) -> rusqlite::Result<()> {
    type Place = (usize, CohortId, Option<MediaKind>);
    let place = |row: &SeriesRow| -> Place {
        (stretches.partition_point(|start| *start <= row.second), row.cohort, row.kind)
    };
    let mut first: HashMap<Place, usize> = HashMap::new();
    for (index, row) in series.iter().enumerate() {
        first.entry(place(row)).or_insert(index);
    }
    let columns: Vec<&str> = schema::SERIES.into_iter().chain(schema::COUNTERS.map(|_| "0")).collect();
    let mut statement = db.prepare(&schema::select("series", &columns, "rowid"))?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let row = rows::read_series(row)?;
        let Some(sums) = first.get(&place(&row)).and_then(|at| series.get_mut(*at)) else { continue };
        sums.relative_delay_us.merge(&row.relative_delay_us);
        sums.absolute_delay.merge(&row.absolute_delay);
        sums.jitter_us.merge(&row.jitter_us);
        sums.fps_milli.merge(&row.fps_milli);
        sums.loss_ppm.merge(&row.loss_ppm);
        sums.oven_rtc_tester_delay_us.merge(&row.oven_rtc_tester_delay_us);
    }
    Ok(())
}

/// Hands the tracks on, those of a participant together.
fn sift_tracks(db: &Connection, selector: &mut dyn RowSelector, run: &mut RunData) -> rusqlite::Result<()> {
    let mut statement = db.prepare(&schema::select("track", &reader::tracks(db)?, "participant, track"))?;
    let mut found = statement.query([])?;
    let mut of_one: Vec<TrackRow> = Vec::new();
    while let Some(row) = found.next()? {
        let track = rows::read_track(row)?;
        if of_one.first().is_some_and(|other| other.participant != track.participant) {
            selector.tracks(std::mem::take(&mut of_one), run);
        }
        of_one.push(track);
    }
    if !of_one.is_empty() {
        selector.tracks(of_one, run);
    }
    selector.finish(run);
    Ok(())
}

/// What decoders made of tapped tracks: a track's delays are added up into its first row.
fn decoded_tracks(db: &Connection) -> rusqlite::Result<Vec<DecodedRow>> {
    let mut all: Vec<DecodedRow> = Vec::new();
    let mut first = HashMap::new();
    decoded::each(db, |mut row| {
        match first.get(&(row.participant, row.track)).and_then(|at: &usize| all.get_mut(*at)) {
            Some(sums) => {
                sums.decode_delay_us.merge(&row.decode_delay_us);
                sums.glass_delay.merge(&row.glass_delay);
                (row.decode_delay_us, row.glass_delay) = (Distribution::new(), OneWayDelay::default());
            }
            None => drop(first.insert((row.participant, row.track), all.len())),
        }
        all.push(row);
    })?;
    Ok(all)
}
