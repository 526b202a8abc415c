//! Test frames: a header, a body that both sides compute from its seed, and a tail, so that the
//! consumer can check every frame.
//!
//! Header, little-endian: magic u32 · kind u8 · producer u8 · zero u16 · sequence u64 · length u64
//! · seed u64 · due_ns u64. Tail: sequence XOR seed, u64. The Python consumer reads the same layout
//! (`consumer.py`).

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 40;
/// Bytes of the tail.
pub(crate) const TAIL_BYTES: usize = 8;

const MAGIC: u32 = 0x6d72_6854;
/// Step between the words of a body: odd, so that every word of a body differs from every other.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Words processed together, so that the compiler can use the widest registers.
const LANES: usize = 8;
const BLOCK_BYTES: usize = LANES * 8;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Sent before the measurement begins: caches, pools and page tables fill.
    WarmUp = 0,
    /// Measured.
    Measured = 1,
    /// The last frame of a producer; its sequence is the number of frames before it.
    End = 2,
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: Kind,
    pub(crate) producer: u8,
    /// Counts a producer's frames from 0.
    pub(crate) sequence: u64,
    /// Size of the whole frame.
    pub(crate) bytes: u64,
    /// What the body is computed from.
    pub(crate) seed: u64,
    /// Intended send time (at an offered rate) or send time (at full speed): `CLOCK_MONOTONIC`,
    /// nanoseconds; 0 in frames whose latency is not measured.
    pub(crate) due_ns: u64,
}

/// How a received frame differs from the one that was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("{0} bytes are too few to hold a frame")]
    Short(usize),
    #[error("its header is not a frame's")]
    Head,
    #[error("its header states {said} bytes, {came} arrived")]
    Length { said: u64, came: usize },
    #[error("its tail is not that of frame {0}")]
    Tail(u64),
    #[error("byte {0} is not the one that was sent")]
    Body(usize),
}

impl FrameHeader {
    /// Writes header and tail into `frame`; nothing if it is too short for them.
    pub(crate) fn write(&self, frame: &mut [u8]) {
        let Some((head, rest)) = frame.split_first_chunk_mut::<HEADER_BYTES>() else { return };
        let Some((_, tail)) = rest.split_last_chunk_mut::<TAIL_BYTES>() else { return };
        head[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        head[4] = self.kind as u8;
        head[5] = self.producer;
        head[6..8].fill(0);
        for (place, value) in
            head[8..].chunks_exact_mut(8).zip([self.sequence, self.bytes, self.seed, self.due_ns])
        {
            place.copy_from_slice(&value.to_le_bytes());
        }
        *tail = (self.sequence ^ self.seed).to_le_bytes();
    }

    /// Reads the header of `frame` and checks it against the tail.
    pub(crate) fn read(frame: &[u8]) -> Result<Self, FrameError> {
        let short = FrameError::Short(frame.len());
        let Some((head, rest)) = frame.split_first_chunk::<HEADER_BYTES>() else {
            return Err(short);
        };
        let Some((_, tail)) = rest.split_last_chunk::<TAIL_BYTES>() else { return Err(short) };
        let word = |at: usize| {
            head.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        let kind = match head[4] {
            0 => Kind::WarmUp,
            1 => Kind::Measured,
            2 => Kind::End,
            _ => return Err(FrameError::Head),
        };
        if head[0..4] != MAGIC.to_le_bytes() {
            return Err(FrameError::Head);
        }
        let header = Self {
            kind,
            producer: head[5],
            sequence: word(8),
            bytes: word(16),
            seed: word(24),
            due_ns: word(32),
        };
        if header.bytes != frame.len() as u64 {
            return Err(FrameError::Length { said: header.bytes, came: frame.len() });
        }
        if u64::from_le_bytes(*tail) != header.sequence ^ header.seed {
            return Err(FrameError::Tail(header.sequence));
        }
        Ok(header)
    }
}

/// The seed of the frame in a slot of a producer's pool.
pub(crate) fn seed(producer: u8, slot: u64) -> u64 {
    (u64::from(producer) << 48 ^ slot).wrapping_add(1).wrapping_mul(STEP | 1).rotate_left(23)
}

/// The part of a frame between header and tail; empty if there is none.
pub(crate) fn body_mut(frame: &mut [u8]) -> &mut [u8] {
    let end = frame.len().saturating_sub(TAIL_BYTES);
    frame.get_mut(HEADER_BYTES..end).unwrap_or_default()
}

fn body(frame: &[u8]) -> &[u8] {
    frame.get(HEADER_BYTES..frame.len().saturating_sub(TAIL_BYTES)).unwrap_or_default()
}

/// Fills a body: a write of every byte, as fast as memory takes it.
pub(crate) fn fill(body: &mut [u8], seed: u64) {
    let mut words = words(seed);
    let (blocks, rest) = body.as_chunks_mut::<BLOCK_BYTES>();
    for block in blocks {
        let (places, _) = block.as_chunks_mut::<8>();
        for (place, word) in places.iter_mut().zip(&words) {
            *place = word.to_le_bytes();
        }
        advance(&mut words);
    }
    for (place, byte) in rest.iter_mut().zip(words.iter().flat_map(|w| w.to_le_bytes())) {
        *place = byte;
    }
}

/// Restores the part of a slot's body that the tail of a shorter frame has overwritten.
pub(crate) fn refill(body: &mut [u8], seed: u64, range: std::ops::Range<usize>) {
    for at in range {
        if let Some(place) = body.get_mut(at) {
            let word = seed.wrapping_add(STEP.wrapping_mul(at as u64 / 8));
            *place = word.to_le_bytes()[at % 8];
        }
    }
}

/// Reads every byte of a frame once and compares it with the body that `header` describes.
pub(crate) fn check_body(frame: &[u8], header: &FrameHeader) -> Result<(), FrameError> {
    let body = body(frame);
    let mut words = words(header.seed);
    let mut wrong = [0u64; LANES];
    let (blocks, rest) = body.as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        let (came, _) = block.as_chunks::<8>();
        for ((lane, came), word) in wrong.iter_mut().zip(came).zip(&words) {
            *lane |= u64::from_le_bytes(*came) ^ word;
        }
        advance(&mut words);
    }
    let mut rest = rest.iter().zip(words.iter().flat_map(|w| w.to_le_bytes()));
    let is_right = wrong.iter().all(|lane| *lane == 0) && rest.all(|(came, sent)| *came == sent);
    if is_right { Ok(()) } else { Err(FrameError::Body(first_wrong(body, header.seed))) }
}

/// Offset of the first wrong byte of a body that is known to differ.
fn first_wrong(body: &[u8], seed: u64) -> usize {
    let sent =
        |at: usize| seed.wrapping_add(STEP.wrapping_mul(at as u64 / 8)).to_le_bytes()[at % 8];
    HEADER_BYTES + body.iter().enumerate().position(|(at, came)| *came != sent(at)).unwrap_or(0)
}

fn words(seed: u64) -> [u64; LANES] {
    std::array::from_fn(|lane| seed.wrapping_add(STEP.wrapping_mul(lane as u64)))
}

fn advance(words: &mut [u64; LANES]) {
    for word in words {
        *word = word.wrapping_add(STEP.wrapping_mul(LANES as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> (Vec<u8>, FrameHeader) {
        let header = FrameHeader {
            kind: Kind::Measured,
            producer: 2,
            sequence: 77,
            bytes: bytes as u64,
            seed: seed(2, 5),
            due_ns: 123_456_789,
        };
        let mut frame = vec![0; bytes];
        fill(body_mut(&mut frame), header.seed);
        header.write(&mut frame);
        (frame, header)
    }

    #[test]
    fn a_frame_of_any_length_is_the_one_that_was_sent() {
        for bytes in (48..400).chain([4096, 65_537]) {
            let (frame, header) = frame(bytes);
            assert_eq!(FrameHeader::read(&frame), Ok(header), "{bytes}");
            assert_eq!(check_body(&frame, &header), Ok(()), "{bytes}");
        }
    }

    #[test]
    fn every_changed_byte_is_found() {
        let (frame, header) = frame(300);
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 0x10;
            match FrameHeader::read(&changed) {
                Err(_) => assert!(!(HEADER_BYTES..300 - TAIL_BYTES).contains(&at), "{at}"),
                // Head fields that only the harness can judge: producer, the zeros, and when it was
                // due.
                Ok(read) if at < HEADER_BYTES => {
                    assert!((5..8).contains(&at) || at >= 32 || read != header, "{at}");
                }
                Ok(read) => assert_eq!(check_body(&changed, &read), Err(FrameError::Body(at))),
            }
        }
    }

    #[test]
    fn a_non_frame_is_reported() {
        let (frame, _) = frame(300);
        for (bytes, error) in [
            (&frame[..0], FrameError::Short(0)),
            (&frame[..47], FrameError::Short(47)),
            (&frame[..299], FrameError::Length { said: 300, came: 299 }),
            (&frame[100..], FrameError::Head),
        ] {
            assert_eq!(FrameHeader::read(bytes), Err(error));
        }
    }

    #[test]
    fn a_slot_is_whole_again_after_a_shorter_frame() {
        let (whole, header) = frame(300);
        let mut slot = whole.clone();
        let mut short = header;
        short.bytes = 101;
        short.write(&mut slot[..101]);
        refill(
            body_mut(&mut slot),
            header.seed,
            101 - TAIL_BYTES - HEADER_BYTES..101 - HEADER_BYTES,
        );
        header.write(&mut slot);
        assert_eq!(slot, whole);
    }
}
