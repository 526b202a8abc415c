//! How many streams this machine decodes in real time: so many decoders are fed at the pace of their pictures, and what
//! comes out late or never is counted.

use std::sync::Arc;
use std::time::Duration;

use throng_observation::{Codec, Distribution};

use crate::clip::CodedPicture;
use crate::ffmpeg::{DecodeError, Program};

mod measure;
pub use measure::measure;

mod search;
pub use search::search;

mod video;
pub use video::Video;

/// A stream that is fed again and again.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Its codec.
    pub codec: Codec,
    /// Its pictures; the first is a key frame.
    pub pictures: Arc<Vec<CodedPicture>>,
    /// How long a turn takes.
    pub turn: Duration,
}

impl Loop {
    /// A loop of `pictures` of which the last lasts as long as they do on average; `None` without a key frame at its start
    /// and a second picture.
    #[must_use]
    pub fn of(codec: Codec, pictures: Vec<CodedPicture>) -> Option<Self> {
        let last_ms = pictures.last()?.at_ms;
        let is_loop = pictures.first()?.key_frame && pictures.len() > 1 && last_ms > 0.0;
        let turn = Duration::from_secs_f64(last_ms * (1.0 + 1.0 / (pictures.len() - 1) as f64) / 1e3);
        is_loop.then(|| Self { codec, pictures: Arc::new(pictures), turn })
    }

    /// Pictures a second.
    #[must_use]
    pub fn fps(&self) -> f64 {
        self.pictures.len() as f64 / self.turn.as_secs_f64()
    }

    /// When the picture of that index is due, after the beginning.
    pub(crate) fn due(&self, index: u64) -> Duration {
        let (turns, place) = (index / self.pictures.len() as u64, index % self.pictures.len() as u64);
        let at_ms = self.pictures.get(place as usize).map_or(0.0, |picture| picture.at_ms);
        self.turn.mul_f64(turns as f64) + Duration::from_secs_f64(at_ms / 1e3)
    }
}

/// How a number of streams is measured.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// What decodes.
    pub program: Program,
    /// What is decoded; streams take turns.
    pub loops: Vec<Loop>,
    /// How long, after everything has started.
    pub duration: Duration,
    /// A picture later than this after it was due is late: about what a jitter buffer can hide.
    pub late_after: Duration,
}

/// The share of pictures that may be late or missing in what still counts as real time.
pub const LATE_RATIO_MAX: f64 = 0.01;

/// What so many streams came to.
#[derive(Clone, Debug)]
pub struct Row {
    /// How many streams.
    pub streams: u32,
    /// Pictures that were due.
    pub due: u64,
    /// Pictures that came, late ones too.
    pub pictures: u64,
    /// Of those, how many came late.
    pub late: u64,
    /// Pictures that had not come when it ended.
    pub dropped: u64,
    /// From due to decoded, microseconds.
    pub delay_us: Distribution,
    /// Cores that the decoders used together.
    pub cpu_cores: f64,
    /// How long was measured, seconds.
    pub seconds: f64,
}

impl Row {
    /// Whether this many streams are decoded in real time.
    #[must_use]
    pub fn keeps_up(&self) -> bool {
        self.due > 0 && (self.late + self.dropped) as f64 <= LATE_RATIO_MAX * self.due as f64
    }

    /// Pictures a second of a stream, mean.
    #[must_use]
    pub fn fps(&self) -> f64 {
        self.pictures as f64 / self.seconds / f64::from(self.streams.max(1))
    }
}

/// Why a measurement ended without a row.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// A decoder failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Not all decoders gave a picture in time: far more than the machine can start.
    #[error("{started} of {streams} decoders had given a picture after {seconds} s")]
    NotStarted {
        /// How many had.
        started: usize,
        /// Of how many.
        streams: u32,
        /// After how long.
        seconds: u64,
    },
    /// There is nothing to decode.
    #[error("nothing to decode: no stream begins with a key frame and goes on")]
    Nothing,
}
