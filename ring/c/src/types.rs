//! Plain structs of the C interface. Sizes and field orders are part of the interface.

use throng_ring::{Flags, FrameInfo};

/// Mark of a frame: decodable without frames before it.
pub const THRONG_RING_KEYFRAME: u16 = 1;
/// Mark of a frame: no other frame refers to it.
pub const THRONG_RING_DISPOSABLE: u16 = 2;
/// Mark of a frame: frames of its stream are missing before it. Set by the library after a drop.
pub const THRONG_RING_DISCONTINUITY: u16 = 4;
/// Mark of a frame: the stream ends with it.
pub const THRONG_RING_END_OF_STREAM: u16 = 8;
/// Mark of a frame: its producer knows that the content is damaged.
pub const THRONG_RING_DAMAGED: u16 = 16;

/// A producer's metadata of a frame. The ring passes it on and uses only `stream` and the key frame
/// mark.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThrongRingFrameInfo {
    /// Time of presentation or capture; ns on a clock on which both sides agree.
    pub timestamp_ns: u64,
    /// Free for the application.
    pub user_data: u64,
    /// Which of the producer's streams (track, participant) it belongs to.
    pub stream: u32,
    /// Its kind; the application defines the numbers.
    pub kind: u16,
    /// Its marks: THRONG_RING_KEYFRAME and so on, or-ed.
    pub flags: u16,
}

impl From<&ThrongRingFrameInfo> for FrameInfo {
    fn from(info: &ThrongRingFrameInfo) -> Self {
        Self {
            stream: info.stream,
            kind: info.kind,
            flags: Flags(info.flags),
            timestamp_ns: info.timestamp_ns,
            user_data: info.user_data,
        }
    }
}

/// Space in the ring into which a frame is written in place.
#[repr(C)]
#[derive(Debug)]
pub struct ThrongRingClaim {
    /// Where to write: contiguous, aligned to 64 bytes; valid until commit or abort and as long as
    /// the producer.
    pub data: *mut u8,
    /// Bytes that may be written there.
    pub len: usize,
    /// Name of the claim, for commit and abort.
    pub id: u64,
}

/// A frame that the consumer holds.
#[repr(C)]
#[derive(Debug)]
pub struct ThrongRingFrame {
    /// Its bytes, in shared memory: contiguous, aligned to 64 bytes, valid until it is released. A
    /// malicious producer can still change them: copy them before decisions depend on them.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
    /// Name of the frame, for throng_ring_consumer_release().
    pub id: u64,
    /// Number within its producer's stream, from 0. Dropped frames count, so that a gap is a loss.
    pub sequence: u64,
    /// Its producer's metadata.
    pub info: ThrongRingFrameInfo,
    /// Lane that it came from.
    pub lane: u32,
    /// Which of the lane's producer handles committed it.
    pub producer: u32,
}

/// What happens to a frame when there is no room.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrongRingPolicy {
    /// Wait, and drop it after the timeout.
    Wait = 0,
    /// Drop it.
    DropNewest = 1,
    /// Drop the oldest frames of the lane that the consumer does not hold.
    DropOldest = 2,
    /// Drop it, and then all of its stream until a key frame fits.
    DropUntilKeyframe = 3,
}

/// Size of a lane: at least `frames` frames of `frame_bytes` each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThrongRingOptions {
    /// Bytes of a large frame.
    pub frame_bytes: usize,
    /// Number of them that fit at a time; three or four for raw video. At least 2.
    pub frames: u32,
    /// Non-zero: reserve all memory when the lane is made.
    pub prefault: u32,
    /// Non-zero: ask for huge pages on the consumer's side. The system may refuse, and nothing else
    /// changes then.
    pub huge_pages: u32,
}

/// The kind of an event.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrongRingEventKind {
    /// All processes of a session have ended; the frames that they committed are still delivered.
    ProducerLeft = 0,
    /// A producer wrote invalid values into the ring's words. The lane is closed; its held frames
    /// stay valid.
    LaneCorrupt = 1,
    /// No producer is left on the lane, all its frames were released, and its memory is freed.
    LaneEnded = 2,
}

/// An event of a lane or producer.
#[repr(C)]
#[derive(Debug)]
pub struct ThrongRingEvent {
    /// A ThrongRingEventKind, or another number from a later version.
    pub kind: i32,
    /// The lane.
    pub lane: u32,
    /// ProducerLeft: the session within the lane, else 0.
    pub session: u32,
    /// ProducerLeft: 1 if its producers were freed, 0 if they died and their claims are skipped.
    pub clean: u32,
    /// LaneEnded: frames that were released, else 0.
    pub delivered_frames: u64,
    /// LaneEnded: frames that policies dropped, else 0.
    pub dropped_frames: u64,
    /// LaneEnded: claims of dead producers that were skipped, else 0.
    pub abandoned_claims: u64,
}
