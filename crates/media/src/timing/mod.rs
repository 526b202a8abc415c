//! The timing of a video file, read from its bytes as a download brings them: which frame is
//! complete, when it is decoded and shown. Nothing is decoded, and the coded media are not kept.
//!
//! A player needs this to know what it could play: how many seconds are in its buffer, and when it
//! would stall.
//!
//! ```text
//! driver:  want() → feed(bytes) | ignored(count) | jumped(offset) → next_frame()… → want() → …
//! ```
//! The driver may always pass more than [`Want`] names, in pieces of any size, and may take the
//! bytes between here and the offset of [`Want::Jump`] in order, where that is ahead.
//!
//! Times are those of the file: after edit lists in MP4, as they are in transport streams, which
//! begin anywhere.

mod audio;
mod container_format;
mod error;
mod init;
mod known;
mod mp4;
mod packed;
mod reader;
mod scale;
mod segment_sharing;
mod shared;
mod ts;
mod webm;

use throng_observation::{Codec, MediaKind};

pub use error::{Container, TimingError};
pub use init::InitSegment;
pub use known::{SegmentId, WholeSegment};
pub use mp4::{IndexedSegment, SegmentIndex};
pub use reader::TimingReader;
pub use ts::{Anomalies, Program};

use crate::mark::Mark;
use container_format::Format;
use error::CUT;
use known::KnownSegments;
use shared::Pool;

/// What a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackInfo {
    /// Audio or video.
    pub kind: MediaKind,
    /// Its codec.
    pub codec: Codec,
    /// Width and height of its pictures, pixels, where they are known: by the headers of MP4 and
    /// Matroska, of H.264 in a transport stream by its first picture.
    pub size: Option<(u16, u16)>,
}

/// A frame of video, or of audio (a coded block of samples), of which the last byte has been
/// received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedFrame {
    /// Its track, an index of [`TimingReader::tracks`].
    pub track: u16,
    /// When it is decoded, microseconds. Equal to [`Self::presentation_us`] in Matroska, which has
    /// no such time.
    pub decode_us: i64,
    /// When it is shown or heard, microseconds. Negative, or after the end, when an edit list
    /// leaves it out: then it is only decoded, as audio is that primes a decoder.
    pub presentation_us: i64,
    /// How long, microseconds; 0 where the file does not say.
    pub duration_us: u32,
    /// Its coded size, bytes.
    pub bytes: u32,
    /// A decoder can begin with it.
    pub is_key: bool,
}

/// A picture with a mark of the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedFrame {
    /// When it is decoded, microseconds, as [`TimedFrame::decode_us`].
    pub decode_us: i64,
    /// The mark.
    pub mark: Mark,
}

/// What should come next, from [`TimingReader::position`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// These bytes are to be read: pass them to [`TimingReader::feed`]. `u64::MAX`: all there are.
    Deliver(u64),
    /// These bytes have to be received, and their contents do not matter:
    /// [`TimingReader::ignored`].
    Ignore(u64),
    /// What is needed next is elsewhere: request it from this offset on, then call
    /// [`TimingReader::jumped`].
    Jump(u64),
    /// Nothing: all frames are complete.
    Done,
}

/// Indexes of files, shared by all readers that were given clones of this one: the same index is
/// kept and read once, as long as a reader uses it. So is the timing of the last segments
/// ([`TimingReader::identify`]).
#[derive(Clone, Debug, Default)]
pub struct IndexCache {
    movies: Pool<mp4::SharedMovie>,
    segments: Pool<mp4::SharedSegmentIndex>,
    cues: Pool<webm::SharedCues>,
    known: KnownSegments,
}

/// Bytes that were needed were not delivered.
fn missed(container: Container, offset: u64) -> TimingError {
    TimingError {
        container,
        place: "headers".into(),
        offset,
        problem: "were received and not delivered".into(),
        hint: "the player that reads this file must deliver what `Want::Deliver` names",
    }
}

/// The file ends where it must not.
fn cut(container: Container, place: impl Into<String>, offset: u64) -> TimingError {
    TimingError { container, place: place.into(), offset, problem: "is cut off".into(), hint: CUT }
}
