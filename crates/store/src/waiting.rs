//! Rows that wait for the next commit. Bounded, so that a disk that stays full does not fill the
//! memory as well.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction};
use throng_observation::canary::{BrowserId, CanaryBrowserRow, CanaryRow, CanarySecondRow};
use throng_observation::host::{
    HostEvent, HostId, HostInfo, HostRow, HostSample, HostSeries, Profile, SeriesId,
};
use throng_observation::run::{
    CrowdRow, EventRow, GeneratorRow, LayerSwitchRow, ParticipantId, ParticipantRow, Row, SentRow,
    SeriesRow, TrackRow,
};
use throng_observation::{
    ChatRow, ExperienceRow, HoldRow, HttpRequestKey, HttpRequestRow, PlaybackRow, PlayerRow,
    TrackId,
};

use crate::host;
use crate::table::{Stored, make, put, renew};

/// Most rows of each kind that is only appended. A second has some tens of them; this many is
/// several minutes of a full disk.
const APPENDED_MAX: usize = 4096;

/// Most participants and tracks. Later rows of the same participant replace earlier ones, so rows
/// are lost only in a crowd larger than this.
const REPLACED_MAX: usize = 200_000;

/// Most samples of watched hosts: some 6 MB, half a minute of a full disk with 2,000 threads.
const SAMPLES_MAX: usize = 262_144;

/// Most profiles; each may be a few megabytes.
const PROFILES_MAX: usize = 16;

/// Declares what waits: the rows of each kind, in the order in which they are written.
macro_rules! waiting {
    ($($kind:ident: $rows:ty,)+) => {
        /// The rows of one transaction.
        #[derive(Default)]
        pub(crate) struct Waiting {
            $($kind: $rows,)+
        }

        impl Waiting {
            fn kinds(&self) -> impl Iterator<Item = &dyn Pending> {
                [$(&self.$kind as &dyn Pending),+].into_iter()
            }
        }
    };
}

waiting! {
    crowd: Vec<CrowdRow>,
    series: Vec<SeriesRow>,
    sent: Vec<SentRow>,
    participants: BTreeMap<ParticipantId, ParticipantRow>,
    tracks: BTreeMap<(ParticipantId, TrackId), TrackRow>,
    layer_switches: Vec<LayerSwitchRow>,
    generator: Vec<GeneratorRow>,
    events: Vec<EventRow>,
    experience: Vec<ExperienceRow>,
    holds: BTreeMap<u32, HoldRow>,
    playback: Vec<PlaybackRow>,
    players: BTreeMap<ParticipantId, PlayerRow>,
    chat: Vec<ChatRow>,
    http_requests: BTreeMap<HttpRequestKey, HttpRequestRow>,
    browsers: BTreeMap<BrowserId, CanaryBrowserRow>,
    browser_seconds: Vec<CanarySecondRow>,
    hosts: BTreeMap<HostId, HostInfo>,
    host_series: BTreeMap<SeriesId, HostSeries>,
    host_samples: Vec<HostSample>,
    host_events: Vec<HostEvent>,
    host_profiles: Profiles,
}

/// Those of one kind.
trait Pending {
    fn count(&self) -> usize;

    /// Writes them, and makes their table with the first of them where not every run has it.
    fn put(&self, db: &Transaction<'_>) -> rusqlite::Result<()>;

    /// Makes their table anew, if they are of the crowd.
    fn renew(&self, db: &Connection) -> rusqlite::Result<()>;
}

impl<T: Stored> Pending for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn put(&self, db: &Transaction<'_>) -> rusqlite::Result<()> {
        make::<T>(db)?;
        put(db, self)
    }

    fn renew(&self, db: &Connection) -> rusqlite::Result<()> {
        renew::<T>(db)
    }
}

impl<K, T: Stored> Pending for BTreeMap<K, T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn put(&self, db: &Transaction<'_>) -> rusqlite::Result<()> {
        make::<T>(db)?;
        put(db, self.values())
    }

    fn renew(&self, db: &Connection) -> rusqlite::Result<()> {
        renew::<T>(db)
    }
}

/// Profiles, whose frames and stacks have tables of their own; all are made with the run.
#[derive(Default)]
struct Profiles(Vec<Profile>);

impl Pending for Profiles {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn put(&self, db: &Transaction<'_>) -> rusqlite::Result<()> {
        self.0.iter().try_for_each(|profile| host::put_profile(db, profile))
    }

    fn renew(&self, _: &Connection) -> rusqlite::Result<()> {
        Ok(())
    }
}

impl Waiting {
    /// Keeps `row` for the next commit; `false` when the limit was reached and the row was dropped.
    #[must_use]
    pub(crate) fn keep(&mut self, row: Row) -> bool {
        match row {
            Row::Crowd(row) => append(&mut self.crowd, row),
            Row::Series(row) => append(&mut self.series, *row),
            Row::Sent(row) => append(&mut self.sent, row),
            Row::SecondClosed(closed) => {
                let mut kept = true;
                for row in closed.experience {
                    kept &= append(&mut self.experience, row);
                }
                kept
            }
            Row::Hold(row) => replace(&mut self.holds, row.number, *row),
            Row::LayerSwitch(row) => append(&mut self.layer_switches, row),
            Row::Generator(row) => append(&mut self.generator, row),
            Row::Event(row) => append(&mut self.events, row),
            Row::Participant(row) => replace(&mut self.participants, row.participant, *row),
            Row::Track(row) => replace(&mut self.tracks, (row.participant, row.track), *row),
            Row::Playback(row) => append(&mut self.playback, *row),
            Row::Player(row) => replace(&mut self.players, row.participant, *row),
            Row::Chat(row) => append(&mut self.chat, *row),
            Row::HttpRequests(row) => replace(&mut self.http_requests, row.key.clone(), *row),
            Row::Canary(CanaryRow::Browser(row)) => replace(&mut self.browsers, row.browser, row),
            Row::Canary(CanaryRow::Second(row)) => append(&mut self.browser_seconds, *row),
            Row::Host(row) => self.keep_host(row),
        }
    }

    fn keep_host(&mut self, row: HostRow) -> bool {
        match row {
            HostRow::Info(info) => replace(&mut self.hosts, info.host, info),
            HostRow::Series(series) => replace(&mut self.host_series, series.id, series),
            HostRow::Sample(sample) => append_up_to(SAMPLES_MAX, &mut self.host_samples, sample),
            HostRow::Event(event) => append(&mut self.host_events, event),
            HostRow::Profile(profile) => {
                append_up_to(PROFILES_MAX, &mut self.host_profiles.0, *profile)
            }
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds().all(|rows| rows.count() == 0)
    }

    /// Removes the rows of the crowd from a run, whatever kinds there are.
    pub(crate) fn renew_crowd(db: &Connection) -> rusqlite::Result<()> {
        Self::default().kinds().try_for_each(|rows| rows.renew(db))
    }

    /// Writes all of them.
    pub(crate) fn put(&self, db: &Transaction<'_>) -> rusqlite::Result<()> {
        self.kinds().filter(|rows| rows.count() > 0).try_for_each(|rows| rows.put(db))
    }
}

fn append<T>(rows: &mut Vec<T>, row: T) -> bool {
    append_up_to(APPENDED_MAX, rows, row)
}

fn append_up_to<T>(most: usize, rows: &mut Vec<T>, row: T) -> bool {
    let room = rows.len() < most;
    if room {
        rows.push(row);
    }
    room
}

fn replace<K: Ord, T>(rows: &mut BTreeMap<K, T>, key: K, row: T) -> bool {
    let room = rows.len() < REPLACED_MAX || rows.contains_key(&key);
    if room {
        rows.insert(key, row);
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_crowd_go_and_those_of_a_coordinator_stay() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(&crate::schema::create_all()).unwrap();
        let mut waiting = Waiting::default();
        let rows =
            [Row::Crowd(CrowdRow::default()), Row::Chat(Box::default()), Row::Hold(Box::default())];
        rows.into_iter().for_each(|row| assert!(waiting.keep(row)));
        let transaction = db.transaction().unwrap();
        waiting.put(&transaction).unwrap();
        let counts = || {
            ["crowd", "chat", "hold"].map(|table| {
                let count = format!("SELECT COUNT(*) FROM {table}");
                transaction.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap()
            })
        };
        assert_eq!(counts(), [1, 1, 1]);
        Waiting::renew_crowd(&transaction).unwrap();
        assert_eq!(counts(), [0, 0, 1]);
    }
}
