//! Ogg (RFC 3533): packets of one logical stream, assembled from the pages' segments; with the
//! first packet of an Opus stream (RFC 7845).

use std::borrow::Cow;

const CAPTURE: [u8; 4] = *b"OggS";
const PAGE_HEADER_LEN: usize = 27;
/// Longest packet that is assembled from several pages, bytes.
pub const PACKET_LEN_MAX: usize = 1 << 20;

/// Why reading a file stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OggError {
    /// No page begins here.
    #[error("no Ogg page at offset {offset}")]
    Capture {
        /// Offset of the bytes in question.
        offset: usize,
    },
    /// The page runs past the end of the file.
    #[error("Ogg page at offset {offset} is cut off")]
    Truncated {
        /// Offset of the page.
        offset: usize,
    },
    /// The page's checksum is wrong.
    #[error("Ogg page at offset {offset} is damaged")]
    Checksum {
        /// Offset of the page.
        offset: usize,
    },
    /// A packet is longer than [`PACKET_LEN_MAX`].
    #[error("packet before offset {offset} is too long")]
    PacketTooLong {
        /// Where reading stopped: the end of the file.
        offset: usize,
    },
}

/// Reads the packets of the first logical stream in a file, in order; ends after the first error.
/// Pages of other streams are skipped.
#[derive(Clone, Debug)]
pub struct OggReader<'a> {
    file: &'a [u8],
    offset: usize,
    serial: Option<u32>,
    segments: &'a [u8],
    body: &'a [u8],
    /// The packet that the last page left unfinished.
    unfinished: Vec<u8>,
}

impl<'a> OggReader<'a> {
    /// A reader at the start of `file`.
    #[must_use]
    pub fn new(file: &'a [u8]) -> Self {
        Self { file, offset: 0, serial: None, segments: &[], body: &[], unfinished: Vec::new() }
    }

    /// Reads the next page of the stream; `None` at the end of the file.
    fn turn_page(&mut self) -> Option<Result<(), OggError>> {
        loop {
            let rest = self.file.get(self.offset..).filter(|rest| !rest.is_empty())?;
            let page = match Page::parse(rest, self.offset) {
                Ok(page) => page,
                Err(error) => {
                    self.offset = self.file.len();
                    return Some(Err(error));
                }
            };
            self.offset += page.len;
            if *self.serial.get_or_insert(page.serial) != page.serial {
                continue;
            }
            if !page.continues {
                self.unfinished.clear(); // its end was lost
            }
            (self.segments, self.body) = (page.segments, page.body);
            return Some(Ok(()));
        }
    }
}

impl<'a> Iterator for OggReader<'a> {
    type Item = Result<Cow<'a, [u8]>, OggError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.segments.is_empty() {
                match self.turn_page()? {
                    Ok(()) => continue,
                    Err(error) => return Some(Err(error)),
                }
            }
            // A packet is segments of 255 bytes and one that is shorter (RFC 3533 §5).
            let end = self.segments.iter().position(|lace| *lace < 255);
            let (laces, segments) =
                self.segments.split_at(end.map_or(self.segments.len(), |end| end + 1));
            let len = laces.iter().map(|lace| usize::from(*lace)).sum();
            let (data, body) = self.body.split_at_checked(len)?;
            (self.segments, self.body) = (segments, body);
            if end.is_some() && self.unfinished.is_empty() {
                return Some(Ok(Cow::Borrowed(data)));
            }
            if self.unfinished.len() + data.len() > PACKET_LEN_MAX {
                self.offset = self.file.len();
                self.segments = &[];
                return Some(Err(OggError::PacketTooLong { offset: self.offset }));
            }
            self.unfinished.extend_from_slice(data);
            if end.is_some() {
                return Some(Ok(Cow::Owned(std::mem::take(&mut self.unfinished))));
            }
        }
    }
}

struct Page<'a> {
    serial: u32,
    continues: bool,
    segments: &'a [u8],
    body: &'a [u8],
    len: usize,
}

impl<'a> Page<'a> {
    fn parse(rest: &'a [u8], offset: usize) -> Result<Self, OggError> {
        if !rest.starts_with(&CAPTURE) {
            return Err(OggError::Capture { offset });
        }
        let truncated = OggError::Truncated { offset };
        let (header, after) = rest.split_first_chunk::<PAGE_HEADER_LEN>().ok_or(truncated)?;
        let (segments, after) = after.split_at_checked(usize::from(header[26])).ok_or(truncated)?;
        let body_len = segments.iter().map(|lace| usize::from(*lace)).sum();
        let body = after.get(..body_len).ok_or(truncated)?;
        let len = PAGE_HEADER_LEN + segments.len() + body_len;
        let stored = u32::from_le_bytes([header[22], header[23], header[24], header[25]]);
        if checksum(rest.get(..len).ok_or(truncated)?) != stored {
            return Err(OggError::Checksum { offset });
        }
        let serial = u32::from_le_bytes([header[14], header[15], header[16], header[17]]);
        Ok(Self { serial, continues: header[5] & 1 != 0, segments, body, len })
    }
}

/// CRC-32 of a page with its checksum field taken as zero: polynomial 0x04c11db7, no reflection,
/// from 0 (RFC 3533 §6).
fn checksum(page: &[u8]) -> u32 {
    page.iter().enumerate().fold(0, |crc: u32, (at, byte)| {
        let byte = if (22..26).contains(&at) { 0 } else { *byte };
        (0..8).fold(crc ^ (u32::from(byte) << 24), |crc, _| {
            (crc << 1) ^ if crc & 0x8000_0000 != 0 { 0x04c1_1db7 } else { 0 }
        })
    })
}

/// The identification header of an Opus stream (RFC 7845 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpusHead {
    /// Output channels.
    pub channels: u8,
    /// Samples at 48 kHz to drop from the start.
    pub pre_skip: u16,
}

impl OpusHead {
    /// Reads the first packet of an Opus stream; `None` when it is something else.
    #[must_use]
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let (magic, rest) = packet.split_first_chunk::<8>()?;
        let &[version, channels, skip_low, skip_high, ..] = rest else { return None };
        // The upper four bits of the version are those that break readers.
        (magic == b"OpusHead" && version >> 4 == 0)
            .then_some(Self { channels, pre_skip: u16::from_le_bytes([skip_low, skip_high]) })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn page(serial: u32, flags: u8, segments: &[u8], body: &[u8]) -> Vec<u8> {
        let mut page =
            [&CAPTURE[..], &[0, flags], &[0; 8], &serial.to_le_bytes(), &[0; 8]].concat();
        page.push(segments.len() as u8);
        page.extend_from_slice(segments);
        page.extend_from_slice(body);
        let crc = checksum(&page);
        page[22..26].copy_from_slice(&crc.to_le_bytes());
        page
    }

    fn read(file: &[u8]) -> Vec<Result<Vec<u8>, OggError>> {
        OggReader::new(file).map(|packet| packet.map(Cow::into_owned)).collect()
    }

    #[test]
    fn packets_span_segments_and_pages() {
        let file = [
            page(7, 2, &[2, 255, 1], &[&[1; 2][..], &[2; 256]].concat()),
            page(8, 2, &[1], &[9]), // another stream's
            page(7, 0, &[0, 255], &[3; 255]),
            page(7, 1, &[255, 0], &[3; 255]),
        ]
        .concat();
        assert_eq!(read(&file), [Ok(vec![1; 2]), Ok(vec![2; 256]), Ok(vec![]), Ok(vec![3; 510])]);
    }

    #[test]
    fn a_packet_whose_end_was_lost_is_dropped() {
        let file = [page(7, 2, &[255], &[1; 255]), page(7, 0, &[2], &[2; 2])].concat();
        assert_eq!(read(&file), [Ok(vec![2; 2])]);
    }

    #[test]
    fn damage_says_where() {
        let mut file = [page(7, 2, &[1], &[1]), page(7, 0, &[1], &[2])].concat();
        let second = file.len() / 2;
        *file.last_mut().unwrap() ^= 1;
        assert_eq!(read(&file), [Ok(vec![1]), Err(OggError::Checksum { offset: second })]);
        file.pop();
        assert_eq!(read(&file)[1], Err(OggError::Truncated { offset: second }));
        file[second] = b'X';
        assert_eq!(read(&file)[1], Err(OggError::Capture { offset: second }));
    }

    #[test]
    fn a_packet_without_end_is_refused() {
        let file: Vec<u8> =
            (0..20).flat_map(|n| page(7, u8::from(n > 0), &[255; 255], &[0; 255 * 255])).collect();
        let read = read(&file);
        assert!(matches!(read[..], [Err(OggError::PacketTooLong { .. })]), "{}", read.len());
    }

    #[test]
    fn opus_heads() {
        let head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0";
        assert_eq!(OpusHead::parse(head), Some(OpusHead { channels: 2, pre_skip: 312 }));
        assert_eq!(OpusHead::parse(&head[..11]), None);
        assert_eq!(OpusHead::parse(b"OpusTags\x01\x02\x38\x01"), None);
    }
}
