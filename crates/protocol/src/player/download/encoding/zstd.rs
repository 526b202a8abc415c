//! Zstandard (RFC 8878), block by block: one block becomes at most 128 KiB, so that the output is
//! bounded.

use std::io::{self, Read, Write};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Largest window of the content encoding (RFC 9659 section 3), which bounds a decoder's memory.
const WINDOW_MAX: u64 = 8 << 20;

/// Longest block (RFC 8878 section 3.1.1.2.4).
const BLOCK_MAX: usize = 128 * 1024;

/// Length of a block's header.
const BLOCK_HEADER_LEN: usize = 3;

/// Length of the checksum behind a frame's last block.
const CHECKSUM_LEN: usize = 4;

/// The decoder of a sequence of frames.
pub(super) struct ZstdDecoder {
    frame: FrameDecoder,
    /// The header of a frame was read and its end was not; whether a checksum follows its last
    /// block.
    within: Option<bool>,
    /// What was received of the next header or block.
    held: Vec<u8>,
}

impl Default for ZstdDecoder {
    fn default() -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(WINDOW_MAX);
        Self { frame, within: None, held: Vec::new() }
    }
}

impl ZstdDecoder {
    /// Decodes the blocks that are complete.
    pub(super) fn write(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut used = 0;
        while let Some(taken) = self.next(held.get(used..).unwrap_or_default(), out)? {
            used += taken;
        }
        // A block that comes in small pieces is not copied for each of them.
        self.held = held;
        self.held.drain(..used);
        Ok(())
    }

    /// Whether nothing of a frame is missing.
    pub(super) fn is_complete(&self) -> bool {
        self.within.is_none() && self.held.is_empty()
    }

    /// Decodes the header or block at the beginning of `rest`; its length, or `None` if it is not
    /// complete.
    fn next(&mut self, rest: &[u8], out: &mut impl Write) -> io::Result<Option<usize>> {
        let Some(has_checksum) = self.within else { return self.header(rest) };
        let Some(&[low, middle, high]) = rest.get(..BLOCK_HEADER_LEN) else { return Ok(None) };
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let (is_last, kind, size) = (header & 1 == 1, header >> 1 & 3, (header >> 3) as usize);
        if size > BLOCK_MAX {
            return Err(io::Error::other(format!("a block of {size} bytes")));
        }
        // One byte that is repeated (RLE) is stored once.
        let stored = if kind == 1 { 1 } else { size };
        let checksum = if is_last && has_checksum { CHECKSUM_LEN } else { 0 };
        let length = BLOCK_HEADER_LEN + stored + checksum;
        let Some(block) = rest.get(..length) else { return Ok(None) };
        self.frame
            .decode_blocks(block, BlockDecodingStrategy::UptoBlocks(1))
            .map_err(io::Error::other)?;
        self.drain(out)?;
        if is_last {
            self.within = None;
            let said = self.frame.get_checksum_from_data();
            if said.is_some() && said != self.frame.get_calculated_checksum() {
                return Err(io::Error::other("wrong checksum"));
            }
        }
        Ok(Some(length))
    }

    fn header(&mut self, rest: &[u8]) -> io::Result<Option<usize>> {
        let Some(length) = header_len(rest) else { return Ok(None) };
        let Some(header) = rest.get(..length) else { return Ok(None) };
        self.frame.reset(header).map_err(io::Error::other)?;
        self.within = Some(header.get(4).is_some_and(|descriptor| descriptor & 4 != 0));
        Ok(Some(length))
    }

    fn drain(&mut self, out: &mut impl Write) -> io::Result<()> {
        let mut step = vec![0; super::STEP];
        while self.frame.can_collect() > 0 {
            let count = self.frame.read(&mut step)?;
            out.write_all(step.get(..count).unwrap_or_default())?;
            if count == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Length of a frame's header (RFC 8878 section 3.1.1.1), once the byte that tells it is there.
fn header_len(frame: &[u8]) -> Option<usize> {
    let descriptor = *frame.get(4)?;
    let has_one_segment = descriptor & 0x20 != 0;
    let dictionary_id = match descriptor & 3 {
        3 => 4,
        length => usize::from(length),
    };
    let content_size = match descriptor >> 6 {
        0 => usize::from(has_one_segment),
        size => 1 << size,
    };
    Some(5 + usize::from(!has_one_segment) + dictionary_id + content_size)
}
