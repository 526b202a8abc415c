//! MPEG-1 and MPEG-2 audio of any layer: whole frames or parts of one (RFC 2250 section 3.5), or
//! MP3 in application data units (`mpa-robust`, RFC 5219). The first bytes tell the two formats
//! apart: those of the former are zero.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts, WHOLE_AUDIO_FRAME};
use crate::octets::{chunk_at, u16_at};

const HEADER_LEN: usize = 4;
const FRAME_HEADER_LEN: usize = 4;
/// The payload continues a unit of the packet before (RFC 5219 section 4.2).
const CONTINUES: u8 = 0x80;
/// The descriptor has two bytes.
const IS_LONG: u8 = 0x40;

/// Reads one payload, which is not empty.
pub(super) fn read(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    let first = u16_at(payload, 0).ok_or_else(|| truncated(payload, "header"))?;
    if first == 0 { frames(payload) } else { units(payload) }
}

/// The header's second half is the offset of the data within its frame (RFC 2250 section 3.5).
fn frames(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    let offset = u16_at(payload, 2).ok_or_else(|| truncated(payload, "header"))?;
    let mut data = payload.get(HEADER_LEN..).unwrap_or_default();
    if offset > 0 {
        return Ok(PART);
    }
    let mut is_first = true;
    while is_first || !data.is_empty() {
        let header = *chunk_at(data, 0).ok_or_else(|| truncated(payload, "frame header"))?;
        if u16::from_be_bytes([header[0], header[1]]) < 0xffe0 {
            return Err(malformed("sync word"));
        }
        let len = frame_len(header).ok_or_else(|| malformed("frame header"))?;
        match data.get(len..) {
            // Of free format: as long as the payload.
            Some(_) if len == 0 => return Ok(WHOLE_AUDIO_FRAME),
            Some(rest) => data = rest,
            None if is_first => return Ok(PayloadFacts { starts_frame: true, ..PART }),
            None => return Err(truncated(payload, "frame")),
        }
        is_first = false;
    }
    Ok(WHOLE_AUDIO_FRAME)
}

/// Units, each with a descriptor of its length before it.
fn units(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    let mut data = payload;
    let mut is_first = true;
    while let Some(&first) = data.first() {
        if first & CONTINUES != 0 {
            return Ok(PART);
        }
        let (len, head) = if first & IS_LONG == 0 {
            (usize::from(first & 0x3f), 1)
        } else {
            let both = u16_at(data, 0).ok_or_else(|| truncated(payload, "unit descriptor"))?;
            (usize::from(both & 0x3fff), 2)
        };
        let unit = data.get(head..).unwrap_or_default();
        let header = *chunk_at(unit, 0).ok_or_else(|| truncated(payload, "frame header"))?;
        // Interleaving replaces the sync word (section 7), but not what follows it.
        if len < FRAME_HEADER_LEN || frame_len(header).is_none() {
            return Err(malformed("frame header"));
        }
        match unit.get(len..) {
            Some(rest) => data = rest,
            None if is_first => return Ok(PayloadFacts { starts_frame: true, ..PART }),
            None => return Err(truncated(payload, "unit")),
        }
        is_first = false;
    }
    Ok(WHOLE_AUDIO_FRAME)
}

/// A part of a frame: needs no other frame, like every one.
const PART: PayloadFacts =
    PayloadFacts { starts_frame: false, ends_frame: false, ..WHOLE_AUDIO_FRAME };

fn truncated(payload: &[u8], what: &'static str) -> CodecError {
    CodecError::Truncated { codec: Codec::MpegAudio, what, len: payload.len() }
}

fn malformed(what: &'static str) -> CodecError {
    CodecError::Malformed { codec: Codec::MpegAudio, what }
}

/// Bit rates in kbit/s of layers I, II and III of MPEG-1, layer I of MPEG-2, and its layers II and
/// III (ISO/IEC 11172-3 section 2.4.2.3, 13818-3 section 2.4.2.3), by their index from 1 on.
const KBPS: [[usize; 14]; 5] = [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// Sampling rates of MPEG-1 in Hz; MPEG-2 has half of them, MPEG-2.5 a quarter.
const HZ: [usize; 3] = [44_100, 48_000, 32_000];

/// A frame, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its length in bytes; 0 in free format, where the header does not contain it.
    pub(crate) len: usize,
    /// Its samples, of one channel.
    pub(crate) samples: u32,
    /// Samples a second.
    pub(crate) hz: u32,
}

/// Bytes of the frame with this header; 0 in free format. `None` when a field has a reserved value.
fn frame_len(header: [u8; FRAME_HEADER_LEN]) -> Option<usize> {
    frame(header).map(|frame| frame.len)
}

/// The frame with this header, of which the sync word is not checked; `None` when a field has a
/// reserved value.
pub(crate) fn frame([_, version_layer, rates, _]: [u8; FRAME_HEADER_LEN]) -> Option<Frame> {
    // (row of MPEG-1, row of MPEG-2), (samples of MPEG-1, of MPEG-2)
    let (rows, samples) = match version_layer >> 1 & 3 {
        3 => ((0, 3), (384, 384)),
        2 => ((1, 4), (1152, 1152)),
        1 => ((2, 4), (1152, 576)),
        _ => return None,
    };
    let hz = *HZ.get(usize::from(rates >> 2 & 3))?;
    let (row, samples, hz) = match version_layer >> 3 & 3 {
        3 => (rows.0, samples.0, hz),
        2 => (rows.1, samples.1, hz / 2),
        0 => (rows.1, samples.1, hz / 4),
        _ => return None,
    };
    let mut len = 0;
    if let Some(index) = usize::from(rates >> 4).checked_sub(1) {
        let kbps = *KBPS.get(row)?.get(index)?;
        // Layer I counts in slots of 4 bytes, the others in bytes; a slot may be added.
        let slot = if samples == 384 { 4 } else { 1 };
        len = (samples * kbps * 125 / hz / slot + usize::from(rates >> 1 & 1)) * slot;
    }
    Some(Frame { len, samples: samples as u32, hz: hz as u32 })
}

#[cfg(test)]
mod tests {
    use super::super::letters;
    use super::*;

    fn said(head: &[u8], len: usize) -> String {
        let mut payload = head.to_vec();
        payload.resize(len, 0);
        letters(read(&payload))
    }

    #[test]
    fn frames_are_as_long_as_their_headers_say() {
        for (header, len) in [
            ([0xff, 0xfd, 0xe0, 0xc4], 1253), // MP2, 384 kbit/s at 44.1 kHz
            ([0xff, 0xfd, 0xe2, 0xc4], 1254), // and padded
            ([0xff, 0xfb, 0x50, 0xc4], 208),  // MP3, 64 kbit/s at 44.1 kHz
            ([0xff, 0xfb, 0x52, 0xc4], 209),
            ([0xff, 0xf3, 0x84, 0xc4], 192), // MPEG-2 MP3, 64 kbit/s at 24 kHz
            ([0xff, 0xe3, 0x48, 0xc4], 288), // MPEG-2.5 MP3, 32 kbit/s at 8 kHz
            ([0xff, 0xff, 0xc4, 0xc4], 384), // layer I, 384 kbit/s at 48 kHz
            ([0xff, 0xfb, 0x00, 0xc4], 0),   // free format
        ] {
            assert_eq!(frame_len(header), Some(len), "{header:x?}");
        }
        for header in [
            [0xff, 0xeb, 0x50, 0],
            [0xff, 0xf9, 0x50, 0],
            [0xff, 0xfb, 0xf0, 0],
            [0xff, 0xfb, 0x5c, 0],
        ] {
            assert_eq!(frame_len(header), None, "{header:x?}");
        }
    }

    #[test]
    fn payloads_have_frames_or_a_part_of_one() {
        for (what, head, len, expect) in [
            ("ffmpeg: one frame of MP2", &[0, 0, 0, 0, 0xff, 0xfd, 0xe0, 0xc4][..], 1257, "sekd"),
            ("its first part", &[0, 0, 0, 0, 0xff, 0xfd, 0xe0, 0xc4], 1000, "skd"),
            ("a later part", &[0, 0, 3, 0xe0, 7], 265, "kd"),
            ("free format", &[0, 0, 0, 0, 0xff, 0xfb, 0x00, 0xc4], 90, "sekd"),
            (
                "no second frame",
                &[0, 0, 0, 0, 0xff, 0xfd, 0xe0, 0xc4],
                1300,
                "MPA payload has a bad sync word",
            ),
            ("no frame", &[0, 0, 0, 0], 4, "MPA payload of 4 bytes ends inside its frame header"),
            ("no offset", &[0, 0], 2, "MPA payload of 2 bytes ends inside its header"),
            ("a byte", &[0], 1, "MPA payload of 1 bytes ends inside its header"),
            (
                "reserved",
                &[0, 0, 0, 0, 0xff, 0xfd, 0xf0, 0],
                99,
                "MPA payload has a bad frame header",
            ),
        ] {
            assert_eq!(said(head, len), expect, "{what}");
        }
        let two = [
            &[0; 4][..],
            &[0xff, 0xfb, 0x50, 0xc4],
            &[0; 204],
            &[0xff, 0xfb, 0x50, 0xc4],
            &[0; 204],
        ]
        .concat();
        assert_eq!(letters(read(&two)), "sekd");
        assert!(letters(read(&two[..300])).ends_with("ends inside its frame"));
    }

    #[test]
    fn units_have_their_length_before_them() {
        for (what, head, len, expect) in [
            ("short descriptor", &[50, 0xff, 0xfb, 0x50, 0xc4][..], 51, "sekd"),
            ("long descriptor", &[0x41, 0x00, 0xff, 0xfb, 0x50, 0xc4], 258, "sekd"),
            ("interleaved", &[50, 0x02, 0x1b, 0x50, 0xc4], 51, "sekd"),
            ("its first part", &[0x41, 0x00, 0xff, 0xfb, 0x50, 0xc4], 200, "skd"),
            ("a later part", &[0xc1, 0x00, 7], 90, "kd"),
            ("reserved", &[50, 0xff, 0xf9, 0x50, 0xc4], 51, "MPA payload has a bad frame header"),
            ("cut", &[0x40, 9], 4, "MPA payload of 4 bytes ends inside its frame header"),
        ] {
            assert_eq!(said(head, len), expect, "{what}");
        }
    }
}
