//! The rows of a run: written by the collector, kept by the store, read by the report.
//!
//! A report can always be made again from these rows alone.

use serde::{Deserialize, Serialize};

use crate::canary::{CanaryData, CanaryRow};
use crate::host::{HostData, HostRow};
use crate::{
    AggregatedTracks, CaptureBasis, ChatRow, ExperienceRow, HoldRow, HttpRequestRow,
    HttpRequestTotals, LatencyVote, PlaybackRow, PlayerRow, Players, RunTime, SENDER_CLOCK_EVENT,
    SecondClosed,
};

mod events;
mod info;
mod participants;
mod seconds;

pub use events::{
    ABORT_EVENT, ADDRESS_EVENT, EventRow, MARK_EVENT, RECEIVE_RING_EVENT, RECEIVE_SOCKETS_EVENT,
};
pub use info::{ClockError, Ending, RunInfo};
pub use participants::{LayerSwitchRow, ParticipantRow, TrackRow};
pub use seconds::{CrowdRow, DecodedRow, GeneratorRow, SentRow, SeriesRow, SourceFps};

/// A participant of the run, numbered from 0 in the order of intended joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParticipantId(pub u32);

impl ParticipantId {
    /// Its name in a conference.
    #[must_use]
    pub fn name(self) -> String {
        format!("throng-{}", self.0)
    }

    /// The participant of that name; `None` for participants of other programs.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        name.strip_prefix("throng-")?.parse().ok().map(Self)
    }
}

/// A cohort of the scenario, numbered in the order of the file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CohortId(pub u16);

/// One row on its way from the collector to the store.
///
/// Its serialised form travels between the machines of a fleet, in a format that does not describe
/// itself: variants are numbered in their order, and no field is left out. What only the
/// coordinator makes does not travel; serde numbers the variants before a skipped one alike on both
/// sides, so that those come last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Row {
    /// The crowd of a second.
    Crowd(CrowdRow),
    /// The tracks of a second.
    Series(Box<SeriesRow>),
    /// The tracks that were sent in a second.
    Sent(SentRow),
    /// The players of a second.
    Playback(Box<PlaybackRow>),
    /// The participants of a chat in a second.
    Chat(Box<ChatRow>),
    /// The end of a second, with its user-seconds.
    SecondClosed(SecondClosed),
    /// A participant; a later row of the same participant replaces it.
    Participant(Box<ParticipantRow>),
    /// A track; a later row of the same track replaces it.
    Track(Box<TrackRow>),
    /// A player; a later row of the same participant replaces it.
    Player(Box<PlayerRow>),
    /// Requests of players; a later row of the same key replaces it.
    HttpRequests(Box<HttpRequestRow>),
    /// A change of layers.
    LayerSwitch(LayerSwitchRow),
    /// The generator's health.
    Generator(GeneratorRow),
    /// An event.
    Event(EventRow),
    /// A step of a search; a later row of the same number replaces it.
    #[serde(skip)]
    Hold(Box<HoldRow>),
    /// A measurement of a browser.
    #[serde(skip)]
    Canary(CanaryRow),
    /// A measurement of a watched host.
    #[serde(skip)]
    Host(HostRow),
}

/// A whole run as read back from its folder.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    /// The run as known before it started.
    pub info: RunInfo,
    /// How it ended.
    pub ending: Ending,
    /// When it ended, if that was written.
    pub ended_at: Option<RunTime>,
    /// Whether it has no ending because its process was at work when it was read.
    pub in_progress: bool,
    /// The crowd by second and cohort.
    pub crowd: Vec<CrowdRow>,
    /// Tracks by second, cohort and kind.
    pub series: Vec<SeriesRow>,
    /// Sent tracks by second, cohort and kind.
    pub sent: Vec<SentRow>,
    /// Players by second and cohort; empty where no participant plays from a buffer.
    pub playback: Vec<PlaybackRow>,
    /// The vote of players in seconds that [`Self::playback`] no longer has: none, unless it is of
    /// a run that goes on, of which only the last seconds are kept.
    pub forgotten_latency_vote: LatencyVote,
    /// Participants of a chat by second and cohort; empty where there is no chat.
    pub chat: Vec<ChatRow>,
    /// User-seconds by second and cohort.
    pub experience: Vec<ExperienceRow>,
    /// The steps of a search in order; empty for a plain run.
    pub holds: Vec<HoldRow>,
    /// Every participant.
    pub participants: Vec<ParticipantRow>,
    /// Every track but those of [`Self::aggregated`].
    pub tracks: Vec<TrackRow>,
    /// Tracks that are kept as sums; none, unless a [`RowSelector`](crate::RowSelector) aggregated
    /// them.
    pub aggregated: AggregatedTracks,
    /// Every player over its life.
    pub players: Players,
    /// The requests of players by how they were answered; the store lists them by URI.
    pub http_requests: HttpRequestTotals,
    /// Changes of layers in the order of their requests.
    pub layer_switches: Vec<LayerSwitchRow>,
    /// The generator's health.
    pub generator: Vec<GeneratorRow>,
    /// Events in order.
    pub events: Vec<EventRow>,
    /// Decoded tapped tracks, by second, participant and track; empty without a tap.
    pub decoded: Vec<DecodedRow>,
    /// Measurements of browsers among the crowd; empty without any.
    pub canary: CanaryData,
    /// Measurements of the watched hosts; empty when nothing was watched.
    pub host: HostData,
    /// Rows that could not be stored (disk full) and are missing from the lists above.
    pub rows_lost: u64,
}

impl RunData {
    /// By what the latency of its players is measured, as all its seconds decide.
    #[must_use]
    pub fn latency_vote(&self) -> LatencyVote {
        let mut vote = self.forgotten_latency_vote;
        self.playback.iter().for_each(|row| vote.add(row));
        vote
    }

    /// Whether the reports of a sender were found to have no wall-clock time.
    #[must_use]
    pub fn has_wrong_sender_clock(&self) -> bool {
        self.events.iter().any(|event| event.kind == SENDER_CLOCK_EVENT)
    }

    /// Withdraws the delays by senders' reports from the start where a sender's clock was found
    /// wrong later: what it had said before was wrong as well, and rows are sums over senders.
    pub fn withdraw_sender_clocks(&mut self) {
        if self.has_wrong_sender_clock() {
            let of_series = self.series.iter_mut().map(|row| &mut row.absolute_delay);
            let of_tracks = self.tracks.iter_mut().map(|row| &mut row.absolute_delay);
            of_series.chain(of_tracks).for_each(|delay| delay.withdraw(CaptureBasis::SenderReport));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Detail;

    #[test]
    fn delays_by_a_clock_that_was_found_wrong_are_withdrawn_from_the_start() {
        let row = |basis| {
            let mut row = SeriesRow::default();
            row.absolute_delay.record(basis, 15_900_000);
            row
        };
        let series = vec![row(CaptureBasis::SenderReport), row(CaptureBasis::Mark)];
        let mut run = RunData { series, ..RunData::default() };
        let bases = |run: &RunData| -> Vec<Option<CaptureBasis>> {
            run.series.iter().map(|row| row.absolute_delay.basis()).collect()
        };
        run.withdraw_sender_clocks();
        assert_eq!(bases(&run)[0], Some(CaptureBasis::SenderReport), "nobody doubts it");
        let (at, kind) = (RunTime(7_000_000), SENDER_CLOCK_EVENT.to_owned());
        run.events.push(EventRow {
            at,
            participant: None,
            kind,
            count: 1,
            detail: Detail::default(),
        });
        run.withdraw_sender_clocks();
        assert_eq!(bases(&run), [None, Some(CaptureBasis::Mark)]);
    }
}
