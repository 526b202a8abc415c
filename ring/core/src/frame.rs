//! Metadata of frames, their ids, and access to their payload.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::claim::Descriptor;
use crate::cursor::Peeked;

/// Flags of a frame; any combination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No flags.
    pub const NONE: Self = Self(0);
    /// Decodable without frames before it. [`crate::Policy::DropUntilKeyframe`] resumes at one.
    pub const KEYFRAME: Self = Self(1);
    /// No other frame refers to it.
    pub const DISPOSABLE: Self = Self(1 << 1);
    /// Frames of this stream are missing before it. Set by the library on the first frame that a
    /// producer claims after one was refused (any [`crate::DropReason`] but
    /// [`crate::DropReason::Evicted`]) or aborted. A frame that is evicted, or that a dying process
    /// leaves uncommitted, is missing before frames that were committed already: that shows only as
    /// a gap in [`Frame::sequence`].
    pub const DISCONTINUITY: Self = Self(1 << 2);
    /// The stream ends with this frame.
    pub const END_OF_STREAM: Self = Self(1 << 3);
    /// Its producer knows that the content is damaged.
    pub const DAMAGED: Self = Self(1 << 4);

    /// Whether all flags of `other` are set.
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

/// A frame's metadata, set by its producer. The ring carries it and reads only `stream` and the key
/// frame flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameInfo {
    /// Which of the producer's streams (track, participant) it belongs to.
    pub stream: u32,
    /// Type of the frame, defined by the application (video, audio, a record type).
    pub kind: u16,
    /// Its flags.
    pub flags: Flags,
    /// Presentation or capture time, ns, on a clock that both sides agree on.
    pub timestamp_ns: u64,
    /// Any other value: a format, a pointer into the producer's bookkeeping.
    pub user_data: u64,
}

/// Number of a lane within its [`crate::Consumer`]. A producer process has one lane unless it asked
/// for more.
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

/// Id of a frame that a consumer holds: a plain number, usable in other languages and in queues
/// between threads.
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

/// A frame that is peeked and not released. Owns nothing and borrows nothing: get its bytes by
/// [`crate::Consumer::payload`], and free its space by [`crate::Consumer::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its id.
    pub id: FrameId,
    /// Its lane.
    pub lane: LaneId,
    /// Which handle of the lane's process committed it.
    pub producer: u16,
    /// Bytes of payload.
    pub len: usize,
    /// Its producer's metadata.
    pub info: FrameInfo,
    /// Number of the frame within its producer's stream, from 0. Dropped frames count too, so that
    /// a gap is a loss; after a consumer's restart frames that were not released are delivered
    /// again with the same number.
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

/// The bytes of a held frame, in shared memory.
///
/// A hostile producer can still write while they are read. So the safe methods copy once, and the
/// reader checks its own copy; [`Payload::as_slice`] is for producers that are trusted, and
/// [`Payload::as_ptr`] for decoders behind a C interface, to which torn pixels are harmless.
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

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the frame has no payload.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the bytes: contiguous, aligned to 64 bytes, valid for `len` bytes until the frame
    /// is released.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Copies from `offset` on as many bytes as fit into `into`; returns how many.
    pub fn copy_to(&self, offset: usize, into: &mut [u8]) -> usize {
        let count = into.len().min(self.len.saturating_sub(offset));
        if count > 0 {
            // SAFETY: offset + count ≤ len, which is mapped and held; `into` is ordinary memory
            // elsewhere. If the producer writes meanwhile the copy is torn, and nothing here
            // depends on its content.
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
    /// The producer must not write to a frame after committing it, which this library never does
    /// but a hostile or broken process can.
    pub unsafe fn as_slice(&self) -> &'a [u8] {
        // SAFETY: mapped for `len` bytes while held, which 'a expresses; the caller promises that
        // no process writes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}
