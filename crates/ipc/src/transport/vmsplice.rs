//! A pipe that refers to the producer's pages instead of copying their bytes. The consumer still
//! copies them out by `read`, and the producer must not change them until then: its pool has more
//! slots than the pipe can hold.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::param::page_size;
use rustix::pipe::{IoSliceRaw, SpliceFlags};

use super::{IoContext, Outgoing, Sender, Side, TransportError, stream};

/// Slots that a pool needs so that none is written while the pipe still holds it: a pipe holds as
/// many pieces as it has pages, and a frame is at least one piece.
pub(crate) fn slots(frame_bytes: usize) -> usize {
    let pieces = stream::PIPE_BYTES / page_size();
    stream::PIPE_BYTES.div_ceil(frame_bytes.max(1)).min(pieces) + 2
}

pub(super) struct Splicer {
    pipe: OwnedFd,
    /// The lengths before the frames, one for each slot: they must not change as long as the
    /// frames.
    lengths: Vec<[u8; 8]>,
}

impl Splicer {
    pub(super) fn open(side: &Side) -> Result<Self, TransportError> {
        Ok(Self { pipe: side.end()?.take_fd()?, lengths: vec![[0; 8]; side.slots.max(1)] })
    }

    fn splice(&self, mut bytes: &[u8]) -> Result<(), TransportError> {
        while !bytes.is_empty() {
            let part = [IoSliceRaw::from_slice(bytes)];
            // SAFETY: the descriptor is a pipe's write end, so the memory is read and never
            // written.
            match unsafe { rustix::pipe::vmsplice(&self.pipe, &part, SpliceFlags::empty()) } {
                Ok(spliced) => bytes = bytes.get(spliced..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("splicing a frame into the pipe"),
            }
        }
        Ok(())
    }
}

impl Sender for Splicer {
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError> {
        let slot = frame.slot % self.lengths.len();
        if let Some(length) = self.lengths.get_mut(slot) {
            *length = (frame.bytes.len() as u64).to_le_bytes();
        }
        self.splice(self.lengths.get(slot).map_or(&[], |length| &length[..]))?;
        self.splice(frame.bytes)
    }
}
