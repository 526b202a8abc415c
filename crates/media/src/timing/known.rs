//! The timing of segments that other readers have read whole.
//!
//! Thousands of viewers of a live stream receive the same segment within seconds. The first one
//! reads it; who receives the same version of it (its validator, RFC 9110 section 8.8.3, and its
//! length are equal) compares its first kilobyte, and learns from what was read which frames are
//! complete, without looking at the rest of the bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::error::Container;
use super::{
    Anomalies, MarkedFrame, Program, TimedFrame, TimingError, TrackInfo, Want, cut, missed,
};

/// First bytes that are compared.
pub(super) const COMPARED_LEN: usize = 1_024;

/// Segments that are kept; of more, those that were read first are forgotten. A live stream has
/// some dozens that matter.
const KEPT_MAX: usize = 512;

/// A segment that was read whole, for others who receive the same bytes from each other.
#[derive(Clone, Debug)]
pub struct WholeSegment(pub(super) Arc<KnownSegment>);

impl WholeSegment {
    /// A segment of so many bytes, of which nobody needs to know what is in it.
    #[must_use]
    pub fn opaque(bytes: u64) -> Self {
        Self(Arc::new(KnownSegment { bytes, ..KnownSegment::default() }))
    }

    /// Its length, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Whether it is as long as `other`, with the same first kilobyte and as many frames: two that
    /// are to be the same segment, of which one is enough.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let (ours, theirs) = (&*self.0, &*other.0);
        ours.bytes == theirs.bytes
            && ours.first == theirs.first
            && ours.frames.len() == theirs.frames.len()
    }
}

/// A version of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentId {
    /// Where it is, without what only says who asks.
    pub place: String,
    /// First and last byte of it, where it is a part.
    pub range: Option<(u64, u64)>,
    /// Its strong validator (`ETag`).
    pub validator: String,
    /// Its length, bytes.
    pub bytes: u64,
}

/// What was read of a segment.
#[derive(Debug, Default)]
pub(super) struct KnownSegment {
    first: Vec<u8>,
    bytes: u64,
    container: Container,
    tracks: Vec<TrackInfo>,
    /// The streams of a transport stream.
    program: Option<Program>,
    /// The frames, and after how many bytes each was complete.
    frames: Vec<(u64, TimedFrame)>,
    marked: Option<MarkedFrame>,
    anomalies: Anomalies,
}

/// Known segments, shared by all readers.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownSegments(Arc<Mutex<SegmentStore>>);

#[derive(Debug, Default)]
struct SegmentStore {
    segments: HashMap<SegmentId, Entry>,
    /// Counts from 0 on the segments that were added.
    added: u64,
}

impl SegmentStore {
    /// Forgets those that were read first, and those that nobody reads to the end, where there are
    /// too many.
    fn forget(&mut self) {
        if self.segments.len() <= KEPT_MAX {
            return;
        }
        let oldest = self.added.saturating_sub(KEPT_MAX as u64 / 2);
        self.segments.retain(|_, entry| match entry {
            Entry::Reading(reader) => reader.strong_count() > 0,
            Entry::Known(_, number) => *number >= oldest,
        });
    }
}

#[derive(Debug)]
enum Entry {
    /// Somebody reads it.
    Reading(Weak<()>),
    /// It was read, as so manieth.
    Known(Arc<KnownSegment>, u64),
}

/// How a reader may come to know a segment.
#[derive(Debug)]
pub(super) enum Way {
    /// It is known.
    Known(Known),
    /// It is to be read, for others too.
    Record(Recording),
    /// It is to be read, as somebody else does at the moment.
    Read,
}

impl KnownSegments {
    /// How to read the segment `id`.
    pub(super) fn way(&self, id: SegmentId) -> Way {
        let mut kept = self.lock();
        match kept.segments.get(&id) {
            Some(Entry::Known(segment, _)) => {
                return Way::Known(Known::new(Arc::clone(segment), 0));
            }
            Some(Entry::Reading(reader)) if reader.strong_count() > 0 => return Way::Read,
            _ => {}
        }
        kept.forget();
        let token = Arc::new(());
        kept.segments.insert(id.clone(), Entry::Reading(Arc::downgrade(&token)));
        Way::Record(Recording::new(Some(id), token))
    }

    fn add(&self, id: SegmentId, segment: Arc<KnownSegment>) {
        let mut kept = self.lock();
        let number = kept.added;
        kept.added += 1;
        kept.segments.insert(id, Entry::Known(segment, number));
        kept.forget();
    }

    fn lock(&self) -> MutexGuard<'_, SegmentStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A segment that is read, for others too.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// What it is for all others; `None` where nobody can tell that it is the same.
    id: Option<SegmentId>,
    /// As long as it lives, nobody else records the same.
    _token: Arc<()>,
    first: Vec<u8>,
    frames: Vec<(u64, TimedFrame)>,
    marked: Option<MarkedFrame>,
    /// Frames that the reader was told, and whether it was told the mark.
    told: usize,
    is_mark_told: bool,
}

impl Recording {
    pub(super) fn new(id: Option<SegmentId>, token: Arc<()>) -> Self {
        Self { id, _token: token, ..Self::default() }
    }

    /// What should come next: `wanted`, and of what is compared everything.
    pub(super) fn want(&self, position: u64, wanted: Want) -> Want {
        let missing = COMPARED_LEN.saturating_sub(self.first.len()) as u64;
        match wanted {
            Want::Ignore(bytes) if missing > 0 && position == self.first.len() as u64 => {
                Want::Deliver(bytes.min(missing))
            }
            wanted => wanted,
        }
    }

    /// These bytes are read. What is kept to be compared ends where bytes were ignored.
    pub(super) fn bytes(&mut self, position: u64, bytes: &[u8]) {
        if position != self.first.len() as u64 {
            return;
        }
        let wanted = COMPARED_LEN.saturating_sub(self.first.len()).min(bytes.len());
        self.first.extend_from_slice(bytes.get(..wanted).unwrap_or_default());
    }

    /// This frame is complete after so many bytes.
    pub(super) fn frame(&mut self, position: u64, frame: TimedFrame) {
        self.frames.push((position, frame));
    }

    /// The next frame that the reader was not told.
    pub(super) fn next_frame(&mut self) -> Option<TimedFrame> {
        let (_, frame) = self.frames.get(self.told)?;
        self.told += 1;
        Some(*frame)
    }

    /// Its first picture has a mark.
    pub(super) fn marked(&mut self, marked: MarkedFrame) {
        self.marked = Some(marked);
    }

    pub(super) fn take_marked(&mut self) -> Option<MarkedFrame> {
        let marked = self.marked.filter(|_| self.told > 0 && !self.is_mark_told)?;
        self.is_mark_told = true;
        Some(marked)
    }

    /// Whether it is as long as was announced.
    pub(super) fn is_whole(&self, bytes: u64) -> bool {
        self.id.as_ref().is_none_or(|id| id.bytes == bytes)
    }

    /// The segment was read whole. Its reader goes on with what all others learn.
    pub(super) fn finish(
        self,
        segments: &KnownSegments,
        bytes: u64,
        container: Container,
        (tracks, program): (Vec<TrackInfo>, Option<Program>),
        anomalies: Anomalies,
    ) -> Known {
        let Self { id, _token, first, frames, marked, told, is_mark_told } = self;
        let segment = Arc::new(KnownSegment {
            first,
            bytes,
            container,
            tracks,
            program,
            frames,
            marked,
            anomalies,
        });
        if let Some(id) = id {
            segments.add(id, Arc::clone(&segment));
        }
        Known {
            compared: segment.first.len(),
            position: bytes,
            is_mark_told,
            ..Known::new(segment, told)
        }
    }
}

/// A reader's way through a known segment.
#[derive(Debug)]
pub(super) struct Known {
    segment: Arc<KnownSegment>,
    /// Bytes that were received; of these the first were compared.
    position: u64,
    compared: usize,
    told: usize,
    is_mark_told: bool,
}

impl Known {
    fn new(segment: Arc<KnownSegment>, told: usize) -> Self {
        Self { segment, position: 0, compared: 0, told, is_mark_told: false }
    }

    /// The way of who has received all of it.
    pub(super) fn whole(segment: &WholeSegment) -> Self {
        let segment = Arc::clone(&segment.0);
        Self { position: segment.bytes, compared: segment.first.len(), ..Self::new(segment, 0) }
    }

    pub(super) fn segment(&self) -> WholeSegment {
        WholeSegment(Arc::clone(&self.segment))
    }

    pub(super) fn container(&self) -> Container {
        self.segment.container
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn anomalies(&self) -> Anomalies {
        self.segment.anomalies
    }

    fn is_equal(&self) -> bool {
        self.compared == self.segment.first.len()
    }

    pub(super) fn want(&self) -> Want {
        if !self.is_equal() {
            return Want::Deliver((self.segment.first.len() - self.compared) as u64);
        }
        match self.segment.bytes.saturating_sub(self.position) {
            0 => Want::Done,
            rest => Want::Ignore(rest),
        }
    }

    /// Takes the next bytes. Where they are others than those of the known segment, its first
    /// bytes, which were equal.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Vec<u8>> {
        let expected = self.segment.first.get(self.compared..).unwrap_or_default();
        let (compared, _) = bytes.split_at(expected.len().min(bytes.len()));
        if !expected.starts_with(compared) {
            return Err(self.segment.first.get(..self.compared).unwrap_or_default().to_vec());
        }
        self.compared += compared.len();
        self.position += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn ignored(&mut self, count: u64) -> Result<(), TimingError> {
        if !self.is_equal() && count > 0 {
            return Err(missed(self.segment.container, self.position));
        }
        self.position += count;
        Ok(())
    }

    pub(super) fn tracks(&self) -> Option<&[TrackInfo]> {
        self.is_equal().then_some(&self.segment.tracks)
    }

    pub(super) fn program(&self) -> Option<Program> {
        self.segment.program.clone().filter(|_| self.is_equal())
    }

    pub(super) fn next_frame(&mut self) -> Option<TimedFrame> {
        let (after, frame) = self.segment.frames.get(self.told)?;
        if !self.is_equal() || *after > self.position {
            return None;
        }
        self.told += 1;
        Some(*frame)
    }

    /// The mark of its first picture, once a frame was told.
    pub(super) fn take_marked(&mut self) -> Option<MarkedFrame> {
        let marked = self.segment.marked.filter(|_| self.told > 0 && !self.is_mark_told)?;
        self.is_mark_told = true;
        Some(marked)
    }

    /// The segment has ended.
    pub(super) fn finish(&self) -> Result<(), TimingError> {
        let is_whole = self.is_equal() && self.position >= self.segment.bytes;
        if is_whole { Ok(()) } else { Err(cut(self.segment.container, "segment", self.position)) }
    }
}
