//! The number of streams that this machine decodes in real time: decoders receive pictures at their
//! frame rate, and late and missing pictures are counted.

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

/// A stream that is repeated.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Its codec.
    pub codec: Codec,
    /// Its pictures; the first is a key frame.
    pub pictures: Arc<Vec<CodedPicture>>,
    /// The duration of one turn of the loop.
    pub turn: Duration,
}

impl Loop {
    /// A loop of `pictures`; the last one lasts the mean of the others. `None` unless it has a key
    /// frame at its start and a second picture.
    #[must_use]
    pub fn of(codec: Codec, pictures: Vec<CodedPicture>) -> Option<Self> {
        let last_ms = pictures.last()?.at_ms;
        let is_loop = pictures.first()?.key_frame && pictures.len() > 1 && last_ms > 0.0;
        let turn =
            Duration::from_secs_f64(last_ms * (1.0 + 1.0 / (pictures.len() - 1) as f64) / 1e3);
        is_loop.then(|| Self { codec, pictures: Arc::new(pictures), turn })
    }

    /// Pictures a second.
    #[must_use]
    pub fn fps(&self) -> f64 {
        self.pictures.len() as f64 / self.turn.as_secs_f64()
    }

    /// The time of the picture with that index, from the start.
    pub(crate) fn due(&self, index: u64) -> Duration {
        let (turns, place) =
            (index / self.pictures.len() as u64, index % self.pictures.len() as u64);
        let at_ms = self.pictures.get(place as usize).map_or(0.0, |picture| picture.at_ms);
        self.turn.mul_f64(turns as f64) + Duration::from_secs_f64(at_ms / 1e3)
    }
}

/// The conditions of a measurement.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The decoder.
    pub program: Program,
    /// The streams, used in turns.
    pub loops: Vec<Loop>,
    /// The duration, after all decoders have started.
    pub duration: Duration,
    /// A picture is late from this long after its time: about the delay that a jitter buffer can
    /// hide.
    pub late_after: Duration,
}

/// The share of pictures that may be late or missing in real time.
pub const LATE_RATIO_MAX: f64 = 0.01;

/// The result for a number of streams.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of streams.
    pub streams: u32,
    /// Pictures expected.
    pub due: u64,
    /// Decoded pictures, including late ones.
    pub pictures: u64,
    /// Late pictures.
    pub late: u64,
    /// Pictures not decoded at the end.
    pub dropped: u64,
    /// From the expected time to decoded, microseconds.
    pub delay_us: Distribution,
    /// Cores used by all decoders.
    pub cpu_cores: f64,
    /// The measured time, seconds.
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

/// Why a measurement has no result.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// A decoder failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Not all decoders produced a picture in time: far more streams than the machine can start.
    #[error("{started} of {streams} decoders had given a picture after {seconds} s")]
    NotStarted {
        /// Decoders that did.
        started: usize,
        /// All decoders.
        streams: u32,
        /// The time limit.
        seconds: u64,
    },
    /// There is nothing to decode.
    #[error("nothing to decode: no stream has a key frame at its start and a second picture")]
    Nothing,
}
