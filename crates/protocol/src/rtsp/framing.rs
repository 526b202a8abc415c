//! The byte stream of an RTSP connection: messages, and interleaved binary frames (RFC 2326 section
//! 10.12).

use rtsp_types::{Message, ParseError};

use super::MESSAGE_BYTES_MAX;

/// The byte that begins an interleaved frame.
const DOLLAR: u8 = b'$';
/// `$`, the channel, and the length in two bytes.
pub(super) const FRAME_HEADER_BYTES: usize = 4;

/// A piece of the stream.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Message(Box<Message<Vec<u8>>>),
    /// An RTP or RTCP packet.
    Frame {
        channel: u8,
        packet: &'a [u8],
    },
    /// So many bytes belonged to no message or frame and were skipped.
    Skipped(usize),
}

/// Why the stream cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FramingError {
    #[error("a message of more than {} kB", MESSAGE_BYTES_MAX / 1024)]
    TooLong,
    #[error("a message that is not RTSP")]
    NotRtsp,
}

/// Cuts the stream. Only the incomplete piece at the end of what has arrived is kept; whole frames
/// are passed on in place.
#[derive(Debug, Default)]
pub(super) struct Framing {
    kept: Vec<u8>,
    skipped: usize,
}

/// The result of looking at the beginning of some bytes.
enum Scanned<'a> {
    Piece(Piece<'a>, usize),
    /// It needs so many bytes in all, as far as is known.
    Incomplete(usize),
    /// Bytes before the next possible beginning.
    Noise(usize),
    /// Line ends between messages.
    Blank(usize),
}

impl Framing {
    /// Passes each complete piece of what arrived so far to `each`.
    ///
    /// # Errors
    /// Every [`FramingError`]; nothing further can be read.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Piece<'_>),
    ) -> Result<(), FramingError> {
        while !self.kept.is_empty() && !bytes.is_empty() {
            // Of an interleaved frame as few bytes as complete it, so that the frames after it stay
            // in place. A message is rare; all bytes are kept with it.
            let taken = match (self.kept.first(), scan(&self.kept)?) {
                (Some(&DOLLAR), Scanned::Incomplete(needed)) => {
                    needed.saturating_sub(self.kept.len()).min(bytes.len())
                }
                _ => bytes.len(),
            };
            let (head, rest) = bytes.split_at_checked(taken).unwrap_or((bytes, &[]));
            self.kept.extend_from_slice(head);
            bytes = rest;
            let kept = std::mem::take(&mut self.kept);
            let left = self.pieces(&kept, &mut each)?;
            self.kept = kept.get(left..).unwrap_or_default().to_vec();
        }
        let left = self.pieces(bytes, &mut each)?;
        self.kept.extend_from_slice(bytes.get(left..).unwrap_or_default());
        Ok(())
    }

    /// Whether a piece is incomplete: the peer closed in its middle.
    pub(super) fn is_in_piece(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Passes on the complete pieces of `bytes`; the offset of what follows.
    fn pieces(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(Piece<'_>),
    ) -> Result<usize, FramingError> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match scan(rest)? {
                Scanned::Piece(piece, length) => {
                    self.report_skipped(each);
                    each(piece);
                    at += length;
                }
                Scanned::Noise(length) => {
                    self.skipped += length;
                    at += length;
                }
                Scanned::Blank(length) => at += length,
                Scanned::Incomplete(_) => break,
            }
        }
        if at == bytes.len() {
            self.report_skipped(each);
        }
        Ok(at)
    }

    fn report_skipped(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        if self.skipped > 0 {
            each(Piece::Skipped(std::mem::take(&mut self.skipped)));
        }
    }
}

fn scan(bytes: &[u8]) -> Result<Scanned<'_>, FramingError> {
    match bytes {
        [DOLLAR, channel, high, low, rest @ ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            Ok(match rest.get(..length) {
                Some(packet) => Scanned::Piece(
                    Piece::Frame { channel: *channel, packet },
                    FRAME_HEADER_BYTES + length,
                ),
                None => Scanned::Incomplete(FRAME_HEADER_BYTES + length),
            })
        }
        [DOLLAR, ..] => Ok(Scanned::Incomplete(FRAME_HEADER_BYTES)),
        // Blank lines between messages are allowed (RFC 2326 section 4.1, as in HTTP).
        [b'\r' | b'\n', ..] => Ok(Scanned::Blank(blank(bytes))),
        [first, ..] if first.is_ascii_alphabetic() => message(bytes),
        _ => Ok(Scanned::Noise(noise(bytes))),
    }
}

fn blank(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

/// Length of what is neither a frame nor the beginning of a message.
fn noise(bytes: &[u8]) -> usize {
    let begins = |at: usize| match bytes.get(at..) {
        Some([DOLLAR, ..]) => true,
        Some(rest) => rest.starts_with(b"RTSP/"),
        None => false,
    };
    (1..bytes.len()).find(|at| begins(*at)).unwrap_or(bytes.len())
}

fn message(bytes: &[u8]) -> Result<Scanned<'_>, FramingError> {
    let length = head_length(bytes);
    let head = bytes.get(..length.unwrap_or(bytes.len())).unwrap_or_default();
    let Some(mut text) = with_crlf(head) else { return parsed(bytes, bytes, 0) };
    if length.is_none() && is_head(bytes) && bytes.len() < MESSAGE_BYTES_MAX {
        return Ok(Scanned::Incomplete(bytes.len() + 1));
    }
    let added = text.len() - head.len();
    text.extend_from_slice(bytes.get(head.len()..).unwrap_or_default());
    parsed(bytes, &text, added)
}

/// Length of a message's head with its blank line; `None` before that has arrived.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut line_ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    line_ends.find_map(|(at, _)| match bytes.get(at + 1..) {
        Some([b'\n', ..]) => Some(at + 2),
        Some([b'\r', b'\n', ..]) => Some(at + 3),
        _ => None,
    })
}

/// A head with CRLF in place of each LF alone, which servers of some cameras write and a receiver
/// should take (RFC 2326 section 4); `None` if there is none.
fn with_crlf(head: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(head.len());
    let mut before = 0;
    for &byte in head {
        if byte == b'\n' && before != b'\r' {
            text.push(b'\r');
        }
        text.push(byte);
        before = byte;
    }
    (text.len() > head.len()).then_some(text)
}

/// Reads a message as `text`, which is `bytes` with this many bytes added to its head.
fn parsed(bytes: &[u8], text: &[u8], added: usize) -> Result<Scanned<'static>, FramingError> {
    match Message::<Vec<u8>>::parse(text) {
        Ok((message, length)) => {
            Ok(Scanned::Piece(Piece::Message(Box::new(message)), length.saturating_sub(added)))
        }
        Err(ParseError::Incomplete(more)) => {
            let needed = bytes.len().saturating_add(more.map_or(1, std::num::NonZero::get));
            if needed > MESSAGE_BYTES_MAX {
                Err(FramingError::TooLong)
            } else {
                Ok(Scanned::Incomplete(needed))
            }
        }
        // After lost frames a letter may be in the middle of media: what follows is searched for
        // the next beginning.
        Err(ParseError::Error) if !is_head(bytes) => Ok(Scanned::Noise(noise(bytes))),
        Err(ParseError::Error) => Err(FramingError::NotRtsp),
    }
}

/// Whether bytes that are not a valid message were meant as one.
fn is_head(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"RTSP/") || line.windows(6).any(|word| word == b" RTSP/")
}
