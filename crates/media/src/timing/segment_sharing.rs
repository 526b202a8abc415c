//! A reader of a segment that reads for others too, or learns from what others have read.

use std::sync::Arc;

use super::known::{Known, Recording, Way};
use super::{IndexCache, SegmentId, TimingError, TimingReader, WholeSegment};

/// Of a segment that is read for others too, so many bytes are read at a time: as exactly they
/// learn when its frames are complete.
const RECORDED_LEN: usize = 4_096;

/// What a reader has of others, or others of it.
#[derive(Debug)]
pub(super) enum Sharing {
    Nothing,
    Records(Box<Recording>),
    Knows(Box<Known>),
}

impl TimingReader {
    /// A [`Self::segment`] of which nothing was read yet is this version of it. Where another
    /// reader has read it whole, only its first bytes are wanted; else it is read for others too.
    pub fn identify(&mut self, id: SegmentId) {
        self.sharing = match self.indexes.known.way(id) {
            Way::Known(known) => Sharing::Knows(Box::new(known)),
            Way::Record(recording) => Sharing::Records(Box::new(recording)),
            Way::Read => Sharing::Nothing,
        };
    }

    /// A [`Self::segment`] of which nothing was read yet is read for others who get it from this
    /// reader ([`Self::whole`]), whatever its server says of its version.
    pub fn share_alike(&mut self) {
        if matches!(self.sharing, Sharing::Nothing) {
            self.sharing = Sharing::Records(Box::new(Recording::new(None, Arc::default())));
        }
    }

    /// The segment, once it was read whole and is shared ([`Self::identify`],
    /// [`Self::share_alike`]).
    #[must_use]
    pub fn whole(&self) -> Option<WholeSegment> {
        match &self.sharing {
            Sharing::Knows(known) => Some(known.segment()),
            Sharing::Nothing | Sharing::Records(_) => None,
        }
    }

    /// A reader that has received all of a segment at once, from another one who read it.
    #[must_use]
    pub fn received(segment: &WholeSegment) -> Self {
        let mut reader = Self::new(IndexCache::default(), Some(segment.bytes()));
        reader.sharing = Sharing::Knows(Box::new(Known::whole(segment)));
        reader
    }

    /// Reads for others too, or compares with what others have read.
    pub(super) fn share(&mut self, bytes: &[u8]) -> Result<(), TimingError> {
        let position = self.position();
        match &mut self.sharing {
            Sharing::Nothing => self.read(bytes),
            Sharing::Records(recording) => {
                recording.bytes(position, bytes);
                for piece in bytes.chunks(RECORDED_LEN) {
                    self.read(piece)?;
                    self.record();
                }
                Ok(())
            }
            Sharing::Knows(known) => {
                let Err(first) = known.feed(bytes) else { return Ok(()) };
                // Another segment with the same validator.
                self.sharing = Sharing::Nothing;
                self.read(&first)?;
                self.read(bytes)
            }
        }
    }

    /// Records the frames that are complete.
    pub(super) fn record(&mut self) {
        let position = self.read_position();
        while let Some(frame) = self.read_frame() {
            if let Sharing::Records(recording) = &mut self.sharing {
                recording.frame(position, frame);
            }
        }
        if let Some(marked) = self.read_mark()
            && let Sharing::Records(recording) = &mut self.sharing
        {
            recording.marked(marked);
        }
    }

    /// Gives others what was recorded, and goes on with it.
    pub(super) fn publish(&mut self) {
        if !matches!(self.sharing, Sharing::Records(_)) {
            return;
        }
        self.record();
        let bytes = self.read_position();
        if !matches!(&self.sharing, Sharing::Records(recording) if recording.is_whole(bytes)) {
            return;
        }
        let (container, anomalies) = (self.container(), self.anomalies());
        let streams = (self.tracks().unwrap_or_default().to_vec(), self.program());
        if let Sharing::Records(recording) = std::mem::replace(&mut self.sharing, Sharing::Nothing)
        {
            let known = recording.finish(&self.indexes.known, bytes, container, streams, anomalies);
            self.sharing = Sharing::Knows(Box::new(known));
        }
    }
}
