//! How metrics are measured: most by a function of rows, which is in the entry of the metric; the
//! others by what only a report has, which is named here.

use throng_observation::run::SeriesRow;
use throng_observation::{ChatRow, PlaybackRow};

/// The rows of the seconds that count, of all participants, added up.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Received video.
    pub video: &'a SeriesRow,
    /// Received audio.
    pub audio: &'a SeriesRow,
    /// Players.
    pub players: &'a PlaybackRow,
    /// Participants of a chat.
    pub chat: &'a ChatRow,
}

/// One figure, of all participants over the whole run.
#[derive(Clone, Copy, Debug)]
pub enum Whole {
    /// A ratio of sums.
    OfRows(fn(&Rows<'_>) -> Option<f64>),
    /// The share of participants that failed.
    Failed,
}

/// A quantile, by its population.
#[derive(Clone, Copy, Debug)]
pub enum Quantile {
    /// One value for each track (of `delivery`: player) and second of playing, without the warm-up.
    UserSeconds(fn(&Rows<'_>, f64) -> Option<f64>),
    /// The same, of the latency of players: by the one basis that all seconds of a run decide.
    Latency,
    /// One value for each complete frame (audio: packet).
    Frames(fn(&Rows<'_>, f64) -> Option<f64>),
    /// One value for each chat message and participant that had it, or should have had it.
    Messages(fn(&Rows<'_>, f64) -> Option<f64>),
    /// One value for each participant. A participant that failed before the value existed counts as
    /// worse than any value.
    Participants(EachOnce),
}

/// A value that each participant has once.
#[derive(Clone, Copy, Debug)]
pub enum EachOnce {
    /// When the media transport was up.
    Connect,
    /// When the first frame was there.
    FirstFrame,
    /// When playback began.
    Startup,
    /// The share of its time in a freeze.
    Freeze,
    /// The share of its time in a stall.
    StallRatio,
    /// Its stalls.
    Stalls,
}

impl Quantile {
    /// The name of its population: `user-seconds`.
    #[must_use]
    pub fn population(self) -> &'static str {
        match self {
            Self::UserSeconds(_) | Self::Latency => "user-seconds",
            Self::Frames(_) => "frames",
            Self::Messages(_) => "messages",
            Self::Participants(_) => "participants",
        }
    }
}
