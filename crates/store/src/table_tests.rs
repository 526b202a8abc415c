//! Which columns and tables a file may lack: those that came later.

use throng_observation::canary::{CanaryBrowserRow, CanarySecondRow};
use throng_observation::host::{HostEvent, HostInfo, HostSample, HostSeries};
use throng_observation::run::{
    CrowdRow, DecodedRow, EventRow, GeneratorRow, LayerSwitchRow, ParticipantRow, SentRow,
    SeriesRow, TrackRow,
};
use throng_observation::{
    ChatRow, ExperienceRow, HoldRow, HttpRequestRow, PlannedCohort, PlannedJoin, PlaybackRow,
    PlayerRow,
};

use super::*;

/// Columns of earlier versions, which are read in place of those that came later.
const EARLIER: [&str; 8] = [
    "oven_delay_us",
    "worker",
    "frames_given",
    "source_fps_milli",
    "packets_received",
    "packets_discarded",
    "stanzas_received",
    "stanzas_sent",
];

fn table_of<T: Stored>() -> Connection {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(&create::<T>()).unwrap();
    for name in EARLIER {
        db.execute_batch(&format!("ALTER TABLE {} ADD COLUMN {name}", T::TABLE)).unwrap();
    }
    db
}

/// A file without a column of `T` reads if the column came later, and is damaged otherwise; the
/// same of the table.
fn check<T: Stored>() {
    for column in columns_of::<T>() {
        if T::KEY.split(", ").any(|key| key == column.name) {
            continue;
        }
        let db = table_of::<T>();
        db.execute_batch(&format!("ALTER TABLE {} DROP COLUMN {}", T::TABLE, column.name)).unwrap();
        assert_eq!(
            list::<T>(&db).is_ok(),
            column.older.is_some(),
            "{} without {}",
            T::TABLE,
            column.name
        );
    }
    let without = Connection::open_in_memory().unwrap();
    assert_eq!(list::<T>(&without).is_ok(), T::MAY_BE_ABSENT, "no {}", T::TABLE);
}

#[test]
fn a_file_may_lack_what_came_later_and_nothing_else() {
    check::<CrowdRow>();
    check::<SeriesRow>();
    check::<SentRow>();
    check::<ParticipantRow>();
    check::<TrackRow>();
    check::<LayerSwitchRow>();
    check::<GeneratorRow>();
    check::<EventRow>();
    check::<ExperienceRow>();
    check::<HoldRow>();
    check::<PlaybackRow>();
    check::<PlayerRow>();
    check::<ChatRow>();
    check::<HttpRequestRow>();
    check::<PlannedCohort>();
    check::<PlannedJoin>();
    check::<DecodedRow>();
    check::<CanaryBrowserRow>();
    check::<CanarySecondRow>();
    check::<HostInfo>();
    check::<HostSeries>();
    check::<HostSample>();
    check::<HostEvent>();
}

/// What a reader of a long run leaves out in one of its two passes, and no more.
#[test]
fn samples_and_sums_are_all_but_the_head_of_a_row() {
    let heads = |columns: Vec<Column>| -> Vec<&'static str> {
        let is_head =
            |column: &Column| column.without_samples().or(column.without_sums()).is_none();
        columns.into_iter().filter(is_head).map(|column| column.name).collect()
    };
    let own = ["tracks", "tracks_below_source_fps", "source_tracks", "source_fps_milli_sum"];
    assert_eq!(
        heads(columns_of::<SeriesRow>()),
        [&["second", "cohort", "kind"][..], &own].concat()
    );
    let own = ["players", "stalled", "starting", "dates_ahead"];
    assert_eq!(heads(columns_of::<PlaybackRow>()), [&["second", "cohort"][..], &own].concat());
}
