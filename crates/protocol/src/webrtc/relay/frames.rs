//! Cuts a stream from a TURN server into frames: STUN messages and ChannelData (RFC 8656 section
//! 12.5).

use std::ops::Range;

/// Bytes of a STUN header (RFC 8489 section 5).
const STUN_HEADER_LEN: usize = 20;
/// Bytes of a ChannelData header.
const CHANNEL_HEADER_LEN: usize = 4;
/// RFC 8489 section 5.
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// The stream does not carry TURN, so the boundary of the next frame is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the relay's stream carries something else than TURN")]
pub struct NotTurn;

/// Received bytes of the stream that are not consumed: less than one frame (65,555 bytes) between
/// two calls of [`Self::push`] if all whole frames are taken.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    taken: usize,
}

impl Frames {
    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame without its padding, which the caller may modify; `None` when more
    /// bytes are needed.
    ///
    /// # Errors
    /// [`NotTurn`]; the stream cannot be used any further.
    pub fn next_frame(&mut self) -> Result<Option<&mut [u8]>, NotTurn> {
        let Some(frame) = measure(self.buffer.get(self.taken..).unwrap_or_default())? else {
            return Ok(None);
        };
        let start = self.taken;
        self.taken += frame.end.next_multiple_of(4);
        Ok(self.buffer.get_mut(start..start + frame.end))
    }
}

/// The extent of the frame at the start of `bytes`, if it and its padding are complete.
fn measure(bytes: &[u8]) -> Result<Option<Range<usize>>, NotTurn> {
    let &[first, _, high, low, ref rest @ ..] = bytes else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes([high, low]));
    let len = match first >> 6 {
        // A STUN message's length is a multiple of four (RFC 8489 section 5).
        0 if len.is_multiple_of(4) => {
            if rest.iter().zip(MAGIC_COOKIE).any(|(byte, expected)| *byte != expected) {
                return Err(NotTurn);
            }
            STUN_HEADER_LEN + len
        }
        1 => CHANNEL_HEADER_LEN + len,
        _ => return Err(NotTurn),
    };
    Ok((bytes.len() >= len.next_multiple_of(4)).then_some(0..len))
}

/// Whether `frame` is one whole STUN message or ChannelData message. ChannelData in a datagram may
/// be padded.
#[must_use]
pub fn is_turn_frame(frame: &[u8]) -> bool {
    let &[first, _, high, low, ref rest @ ..] = frame else { return false };
    let len = usize::from(u16::from_be_bytes([high, low]));
    match first >> 6 {
        0 => rest.starts_with(&MAGIC_COOKIE) && frame.len() == STUN_HEADER_LEN + len,
        1 => rest.len() >= len,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stun(len: usize) -> Vec<u8> {
        let mut frame = vec![1, 1, (len >> 8) as u8, len as u8];
        frame.extend_from_slice(&MAGIC_COOKIE);
        frame.resize(STUN_HEADER_LEN + len, 7);
        frame
    }

    fn channel(len: usize) -> Vec<u8> {
        let mut frame = vec![0x40, 1, (len >> 8) as u8, len as u8];
        frame.resize(CHANNEL_HEADER_LEN + len, 9);
        frame
    }

    #[test]
    fn frames_are_the_same_however_the_stream_is_cut() {
        let frames = [
            stun(0),
            channel(1),
            channel(0),
            stun(40),
            channel(1_203),
            channel(65_535),
            channel(2),
        ];
        let mut stream = Vec::new();
        for frame in &frames {
            stream.extend_from_slice(frame);
            stream.resize(stream.len().next_multiple_of(4), 0);
        }
        for piece in [1, 2, 3, 5, 20, 4_096, stream.len()] {
            let (mut cutter, mut cut) = (Frames::default(), Vec::new());
            for bytes in stream.chunks(piece) {
                cutter.push(bytes);
                while let Some(frame) = cutter.next_frame().unwrap() {
                    assert!(is_turn_frame(frame));
                    cut.push(frame.to_vec());
                }
                assert!(cutter.buffer.len() < 65_560 + piece);
            }
            assert_eq!(cut, frames, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_not_turn_ends_the_stream() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            &[0x80, 0, 0, 0],
            &[0xff, 0xff, 0, 0],
            &[1, 1, 0, 3, 0x21, 0x12, 0xa4, 0x42],
            &[1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x43],
        ] {
            let mut cutter = Frames::default();
            cutter.push(bytes);
            let result = cutter.next_frame().map(|frame| frame.map(|frame| frame.to_vec()));
            // `HTTP` parses as ChannelData of 21,584 bytes, which is never complete here.
            let expect = if bytes[0] == b'H' { Ok(None) } else { Err(NotTurn) };
            assert_eq!(result, expect, "{bytes:?}");
        }
    }
}
