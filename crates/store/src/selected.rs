//! Reading a run of any length for a report, which shows few of its rows one by one: the others are
//! added up as they are read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::Connection;
use throng_observation::host::{HostInfo, HostRow, HostSample, HostSeries};
use throng_observation::run::{
    CohortId, DecodedRow, ParticipantRow, Row, RunData, SeriesRow, TrackRow,
};
use throng_observation::{
    Distribution, MediaKind, OneWayDelay, PlaybackRow, PlayerRow, RowSelector, RunPlan, SecondRow,
};

use crate::StoreError;
use crate::reader::{self, at_one_moment};
use crate::table::{self, Column, Stored};

/// A row of a second with samples, of which a report needs those of whole stretches of seconds.
trait Sampled: Stored + SecondRow {
    /// What rows of a stretch have in common whose samples add up, as the rows of a second are in
    /// order.
    type Place: Ord;

    /// Its place within its second.
    fn place(&self) -> Self::Place;
}

impl Sampled for SeriesRow {
    type Place = (CohortId, Reverse<Option<MediaKind>>);

    fn place(&self) -> Self::Place {
        (self.cohort, Reverse(self.kind))
    }
}

impl Sampled for PlaybackRow {
    type Place = CohortId;

    fn place(&self) -> CohortId {
        self.cohort
    }
}

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
    /// As [`Row::Host`]: the watched hosts and their series, then the samples by time and series.
    HostSamples,
}

/// Reads the run at `path` as `selector` wants it; `older_plan` makes the plan of a scenario, where
/// the folder has none.
pub(crate) fn read(
    path: &Path,
    selector: &mut dyn RowSelector,
    older_plan: impl FnOnce(&str) -> Option<RunPlan>,
) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| {
        let mut run = reader::read_most(db)?;
        run.info.plan = run.info.plan.take().or_else(|| older_plan(&run.info.scenario));
        // Only a table of all participants shows their addresses.
        let no_address = |column: &Column| (column.name == "local_address").then_some("NULL");
        table::each(db, ParticipantRow::ORDER, no_address, |row| keep(&mut run.participants, row))?;
        run.decoded = decoded_tracks(db)?;
        run.series = without_samples(db)?;
        run.playback = without_samples(db)?;
        let stretches = selector.stretches(&run);
        add_samples(db, &stretches, &mut run.series)?;
        add_samples(db, &stretches, &mut run.playback)?;
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
        Table::HostSamples => host_samples(db, take),
    })
}

/// Samples after what they are of, all of one moment: in a run in progress series begin at any
/// time.
fn host_samples(db: &Connection, take: &mut dyn FnMut(Row) -> bool) -> rusqlite::Result<()> {
    let hosts = table::list::<HostInfo>(db)?.into_iter().map(HostRow::Info);
    let series = table::list::<HostSeries>(db)?.into_iter().map(HostRow::Series);
    if !hosts.chain(series).all(|row| take(Row::Host(row))) {
        return Ok(());
    }
    table::each(db, HostSample::ORDER, |_| None, |row| take(Row::Host(HostRow::Sample(row))))
}

/// Whether `table` has rows: of hosts, samples.
pub(crate) fn has_rows(path: &Path, table: Table) -> Result<bool, StoreError> {
    at_one_moment(path, |db| match table {
        Table::Series => table::has_rows::<SeriesRow>(db),
        Table::Participants => table::has_rows::<ParticipantRow>(db),
        Table::Tracks => table::has_rows::<TrackRow>(db),
        Table::Playback => table::has_rows::<PlaybackRow>(db),
        Table::Players => table::has_rows::<PlayerRow>(db),
        Table::HostSamples => table::has_rows::<HostSample>(db),
    })
}

/// The rows of a table in their order, without their samples.
fn without_samples<T: Sampled>(db: &Connection) -> rusqlite::Result<Vec<T>> {
    let mut rows: Vec<T> = Vec::new();
    // The rows were written approximately in their order; a sort in SQLite would write them all
    // again.
    table::each(db, "rowid", Column::without_samples, |row| keep(&mut rows, row))?;
    let order = |row: &T| (row.second(), row.place());
    if !rows.is_sorted_by_key(order) {
        rows.sort_by_key(order);
    }
    Ok(rows)
}

/// Adds the samples of each row of the table to the first row of its stretch.
fn add_samples<T: Sampled>(
    db: &Connection,
    stretches: &[i64],
    rows: &mut [T],
) -> rusqlite::Result<()> {
    let stretch =
        |row: &T| (stretches.partition_point(|start| *start <= row.second()), row.place());
    let mut first: BTreeMap<(usize, T::Place), usize> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        first.entry(stretch(row)).or_insert(index);
    }
    table::each(db, "rowid", Column::without_sums, |row: T| {
        if let Some(sums) = first.get(&stretch(&row)).and_then(|at| rows.get_mut(*at)) {
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
