//! Measurements of players: tables that exist only in runs whose participants play from a buffer.

use rusqlite::Connection;
use throng_observation::{PlaybackRow, PlayerRow, Players};

use crate::table::{self, Stored, Sums, columns};

columns! { PlaybackRow {
    second, cohort, players, stalled, starting, dates_ahead or "NULL", buffer_us, shortfall_ppm,
    latency_us or "NULL", edge_latency_us or "NULL", capture_latency_us or "NULL",
    counters as Sums,
} }

impl Stored for PlaybackRow {
    const TABLE: &'static str = "playback";
    const IS_OF_CROWD: bool = true;
    const ORDER: &'static str = "second, cohort";
}

columns! { PlayerRow {
    participant, startup_us = "first_startup_us", buffer_us, delivery_ppm_min, counters as Sums,
} }

impl Stored for PlayerRow {
    const TABLE: &'static str = "player";
    const IS_OF_CROWD: bool = true;
    const KEY: &'static str = "participant";
}

/// Adds up all players.
pub(crate) fn players(db: &Connection) -> rusqlite::Result<Players> {
    let mut players = Players::default();
    table::each(
        db,
        PlayerRow::ORDER,
        |_| None,
        |row| {
            players.add(&row);
            true
        },
    )?;
    Ok(players)
}

#[cfg(test)]
mod tests {
    use throng_observation::run::{CohortId, Ending, ParticipantId, Row, RunData, RunInfo};
    use throng_observation::{PlaybackCounters, RowSelector, RunTime};

    use super::*;
    use crate::{RunFolder, Table};

    fn second(second: i64, buffer_us: u64) -> PlaybackRow {
        let counters = PlaybackCounters {
            stall_us: 40,
            media_bytes: 1 << 40,
            switches: 17,
            ..PlaybackCounters::default()
        };
        let mut row = PlaybackRow {
            second,
            cohort: CohortId(1),
            players: 5,
            stalled: 2,
            starting: 1,
            dates_ahead: Some(3),
            counters,
            ..PlaybackRow::default()
        };
        row.buffer_us.record(buffer_us);
        row.shortfall_ppm.record(10_000);
        row
    }

    fn player(participant: u32, stall_us: u64) -> PlayerRow {
        PlayerRow {
            participant: ParticipantId(participant),
            startup_us: Some(400_000),
            buffer_us: 7,
            delivery_ppm_min: None,
            counters: PlaybackCounters {
                active_us: 100,
                stall_us,
                stall_count: 1,
                ..PlaybackCounters::default()
            },
        }
    }

    /// Keeps samples in stretches of ten seconds.
    struct Tens;

    impl RowSelector for Tens {
        fn stretches(&mut self, _: &RunData) -> Vec<i64> {
            vec![0, 10]
        }
        fn tracks(&mut self, _: Vec<throng_observation::run::TrackRow>, _: &mut RunData) {}
        fn finish(&mut self, _: &mut RunData) {}
    }

    #[test]
    fn players_read_back_and_a_run_without_them_has_no_tables() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer =
            RunFolder::create(folder.path().join("none"), &RunInfo::default()).unwrap();
        writer.commit().unwrap();
        writer.finish(Ending::Complete, RunTime(1)).unwrap();
        let none = RunFolder::read(folder.path().join("none")).unwrap();
        assert!(none.playback.is_empty() && none.players.is_empty());
        let mut rows = 0;
        RunFolder::each(folder.path().join("none"), Table::Players, |_| {
            rows += 1;
            true
        })
        .unwrap();
        assert_eq!(rows, 0);

        let path = folder.path().join("run");
        let mut writer = RunFolder::create(&path, &RunInfo::default()).unwrap();
        for (at, buffer_us) in [(3, 2_000_000), (4, 4_000_000), (12, 6_000_000)] {
            writer.write(Row::Playback(Box::new(second(at, buffer_us))));
        }
        writer.write(Row::Player(Box::new(player(4, 10))));
        writer.commit().unwrap();
        writer.write(Row::Player(Box::new(player(4, 25))));
        writer.write(Row::Player(Box::new(player(2, 0))));
        writer.finish(Ending::Complete, RunTime(1)).unwrap();

        let run = RunFolder::read(&path).unwrap();
        let [third, ..] = run.playback.as_slice() else { panic!("{:?}", run.playback) };
        let written = second(3, 2_000_000);
        assert_eq!((third.second, third.cohort, third.players), (3, CohortId(1), 5));
        assert_eq!((third.stalled, third.starting, third.dates_ahead), (2, 1, Some(3)));
        assert_eq!(third.counters, written.counters);
        assert_eq!(third.buffer_us.quantile(0.5), written.buffer_us.quantile(0.5));
        assert_eq!(run.players.counters().stall_us, 25, "a later row replaces an earlier one");
        assert_eq!(run.players.stalls()[&ParticipantId(4)].ratio, Some(0.25));
        let mut in_order = Vec::new();
        RunFolder::each(&path, Table::Players, |row| {
            if let Row::Player(row) = row {
                in_order.push(*row);
            }
            true
        })
        .unwrap();
        assert_eq!(in_order, [player(2, 0), player(4, 25)]);

        let selected = RunFolder::read_selected(&path, &mut Tens, |_| None).unwrap();
        let samples: Vec<u64> = selected.playback.iter().map(|row| row.buffer_us.count()).collect();
        assert_eq!(samples, [2, 0, 1], "samples of a stretch are in its first row");
        assert_eq!(selected.playback[1].counters, written.counters);
        assert_eq!(selected.players, run.players);
    }
}
