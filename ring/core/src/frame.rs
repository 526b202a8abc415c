//! What a frame carries beside its bytes, and the names by which frames are held and released.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::claim::Descriptor;
use crate::cursor::Peeked;

/// Marks of a frame; any combination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No marks.
    pub const NONE: Self = Self(0);
    /// Decodable without frames before it. [`crate::Policy::DropUntilKeyframe`] goes on at one.
    pub const KEYFRAME: Self = Self(1);
    /// No other frame refers to it.
    pub const DISPOSABLE: Self = Self(1 << 1);
    /// Frames of this stream are missing before it. Set by the library on the first frame that a producer claims after
    /// one was refused (any [`crate::DropReason`] but [`crate::DropReason::Evicted`]) or aborted. A frame that is evicted,
    /// or that a dying process leaves behind, goes missing before frames that were committed already: that shows only as a
    /// gap in [`Frame::sequence`].
    pub const DISCONTINUITY: Self = Self(1 << 2);
    /// The stream ends with this frame.
    pub const END_OF_STREAM: Self = Self(1 << 3);
    /// Its producer knows that the content is damaged.
    pub const DAMAGED: Self = Self(1 << 4);

    /// Whether all marks of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a producer says about a frame. The ring carries it and looks only at `stream` and the key frame mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameInfo {
    /// Which of the producer's streams (track, participant) it belongs to.
    pub stream: u32,
    /// What it is, in the application's numbers (video, audio, a record type).
    pub kind: u16,
    /// Its marks.
    pub flags: Flags,
    /// When it is to be shown or was captured; ns on a clock on which both sides agree.
    pub timestamp_ns: u64,
    /// Anything else in a word: a format, a pointer into the producer's bookkeeping.
    pub user_data: u64,
}

/// Number of a lane within its [`crate::Consumer`]. A producer process has one lane unless it asked for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub(crate) u32);

impl LaneId {
    /// As a number, for logs and other languages.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl From<u32> for LaneId {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The name of a frame that a consumer holds: a plain number, good for other languages and other threads' queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(u64);

impl FrameId {
    pub(crate) fn new(lane: LaneId, sequence: u32) -> Self {
        Self(u64::from(lane.0) << 32 | u64::from(sequence))
    }

    pub(crate) fn lane(self) -> LaneId {
        LaneId((self.0 >> 32) as u32)
    }

    pub(crate) fn sequence(self) -> u32 {
        self.0 as u32
    }

    /// As a number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for FrameId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

/// A frame that was peeked and not released yet. Owns nothing and borrows nothing: the bytes are asked for with
/// [`crate::Consumer::payload`], and the room goes back to its producer with [`crate::Consumer::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name.
    pub id: FrameId,
    /// Where it came from.
    pub lane: LaneId,
    /// Which handle of the lane's process committed it.
    pub producer: u16,
    /// Bytes of payload.
    pub len: usize,
    /// What its producer said.
    pub info: FrameInfo,
    /// Number of the frame within its producer's stream, from 0. Dropped frames count too, so that a gap is a loss;
    /// after a consumer's restart a number that was seen before is a repetition.
    pub sequence: u64,
}

impl Frame {
    #[inline(always)]
    pub(crate) fn new(lane: LaneId, peeked: &Peeked) -> Self {
        let descriptor = &peeked.descriptor;
        Self {
            id: FrameId::new(lane, peeked.sequence),
            lane,
            producer: peeked.owner,
            len: descriptor.len as usize,
            info: FrameInfo {
                stream: descriptor.stream,
                kind: descriptor.kind,
                flags: Flags(descriptor.flags),
                timestamp_ns: descriptor.timestamp_ns,
                user_data: descriptor.user_data,
            },
            sequence: descriptor.sequence,
        }
    }
}

impl FrameInfo {
    #[inline(always)]
    pub(crate) fn descriptor(&self, len: u32, sequence: u64) -> Descriptor {
        Descriptor {
            len,
            stream: self.stream,
            kind: self.kind,
            flags: self.flags.0,
            timestamp_ns: self.timestamp_ns,
            sequence,
            user_data: self.user_data,
        }
    }
}

/// The bytes of a held frame, where they lie in shared memory.
///
/// A producer that means harm can still write while they are read. So the safe methods copy, once, and a reader decides
/// on its own copy; [`Payload::as_slice`] is for producers that are trusted, and [`Payload::as_ptr`] for decoders
/// behind a C interface, to which torn pixels are harmless.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    start: NonNull<u8>,
    len: usize,
    held: PhantomData<&'a [u8]>,
}

impl<'a> Payload<'a> {
    pub(crate) fn new(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len, held: PhantomData }
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the frame has no payload.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they stand, contiguous, aligned to 64 bytes; valid for `len` bytes until the frame is released.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Copies from `offset` on as much as fits into `into`; how many bytes that were.
    pub fn copy_to(&self, offset: usize, into: &mut [u8]) -> usize {
        let count = into.len().min(self.len.saturating_sub(offset));
        if count > 0 {
            // SAFETY: offset + count ≤ len, which is mapped and held; `into` is ordinary memory elsewhere. Should the
            // producer write meanwhile, the copy is torn, and nothing depends on its content.
            unsafe {
                let from = self.start.as_ptr().add(offset);
                std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), count);
            }
        }
        count
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.copy_to(0, &mut bytes);
        bytes
    }

    /// The bytes themselves, without a copy.
    ///
    /// # Safety
    /// The producer must not write to a frame after committing it, which this library never does but a hostile or
    /// broken process can.
    pub unsafe fn as_slice(&self) -> &'a [u8] {
        // SAFETY: mapped for `len` bytes while held, which 'a expresses; that nobody writes is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}
