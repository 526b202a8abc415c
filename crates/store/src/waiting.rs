//! Rows that wait for the next commit. Bounded, so that a disk that stays full does not fill the
//! memory as well.

use std::collections::BTreeMap;

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

/// The rows of one transaction.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) crowd: Vec<CrowdRow>,
    pub(crate) series: Vec<SeriesRow>,
    pub(crate) sent: Vec<SentRow>,
    pub(crate) experience: Vec<ExperienceRow>,
    pub(crate) holds: BTreeMap<u32, HoldRow>,
    pub(crate) layer_switches: Vec<LayerSwitchRow>,
    pub(crate) generator: Vec<GeneratorRow>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) participants: BTreeMap<ParticipantId, ParticipantRow>,
    pub(crate) tracks: BTreeMap<(ParticipantId, TrackId), TrackRow>,
    pub(crate) playback: WaitingPlayback,
    pub(crate) chat: Vec<ChatRow>,
    pub(crate) http_requests: BTreeMap<HttpRequestKey, HttpRequestRow>,
    pub(crate) canary: WaitingCanary,
    pub(crate) host: WaitingHost,
}

/// Pending rows of players.
#[derive(Default)]
pub(crate) struct WaitingPlayback {
    pub(crate) seconds: Vec<PlaybackRow>,
    pub(crate) players: BTreeMap<ParticipantId, PlayerRow>,
}

/// Pending rows of browsers.
#[derive(Default)]
pub(crate) struct WaitingCanary {
    pub(crate) browsers: BTreeMap<BrowserId, CanaryBrowserRow>,
    pub(crate) seconds: Vec<CanarySecondRow>,
}

/// Pending rows of watched hosts.
#[derive(Default)]
pub(crate) struct WaitingHost {
    pub(crate) hosts: BTreeMap<HostId, HostInfo>,
    pub(crate) series: BTreeMap<SeriesId, HostSeries>,
    pub(crate) samples: Vec<HostSample>,
    pub(crate) events: Vec<HostEvent>,
    pub(crate) profiles: Vec<Profile>,
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
            Row::Playback(row) => append(&mut self.playback.seconds, *row),
            Row::Player(row) => replace(&mut self.playback.players, row.participant, *row),
            Row::Chat(row) => append(&mut self.chat, *row),
            Row::HttpRequests(row) => replace(&mut self.http_requests, row.key.clone(), *row),
            Row::Canary(row) => self.canary.keep(row),
            Row::Host(row) => self.host.keep(row),
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows wait.
    pub(crate) fn len(&self) -> usize {
        self.crowd.len()
            + self.series.len()
            + self.sent.len()
            + self.experience.len()
            + self.holds.len()
            + self.layer_switches.len()
            + self.generator.len()
            + self.events.len()
            + self.participants.len()
            + self.tracks.len()
            + self.playback.len()
            + self.chat.len()
            + self.http_requests.len()
            + self.canary.len()
            + self.host.len()
    }
}

impl WaitingPlayback {
    pub(crate) fn len(&self) -> usize {
        self.seconds.len() + self.players.len()
    }
}

impl WaitingCanary {
    fn keep(&mut self, row: CanaryRow) -> bool {
        match row {
            CanaryRow::Browser(row) => replace(&mut self.browsers, row.browser, row),
            CanaryRow::Second(row) => append(&mut self.seconds, *row),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.browsers.len() + self.seconds.len()
    }
}

impl WaitingHost {
    fn keep(&mut self, row: HostRow) -> bool {
        match row {
            HostRow::Info(info) => replace(&mut self.hosts, info.host, info),
            HostRow::Series(series) => replace(&mut self.series, series.id, series),
            HostRow::Sample(sample) => append_up_to(SAMPLES_MAX, &mut self.samples, sample),
            HostRow::Event(event) => append(&mut self.events, event),
            HostRow::Profile(profile) => append_up_to(PROFILES_MAX, &mut self.profiles, *profile),
        }
    }

    fn len(&self) -> usize {
        self.hosts.len()
            + self.series.len()
            + self.samples.len()
            + self.events.len()
            + self.profiles.len()
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
