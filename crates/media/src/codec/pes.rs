//! PES packets of video in a transport stream (ISO/IEC 13818-1 section 2.4.3.6): when the picture
//! is shown, and what its first bytes say about it.

use super::mpeg_video::{self, PictureType};
use super::mpeg4_visual;
use super::program::VideoCoding;
use crate::octets::{chunk_at, u16_at};

/// Bytes up to and with the length of the optional fields.
pub(crate) const HEADER_LEN: usize = 9;

/// The beginning of a PES packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pes {
    /// When the picture is shown (PTS): the lower 32 of its 33 bits, at 90 kHz. `None`: it
    /// continues the picture before, or is its second field.
    pub(crate) shown_at: Option<u32>,
    /// Length of the whole PES packet; `None` when it ends where the next begins.
    pub(crate) len: Option<usize>,
    /// The picture refers to no other.
    pub(crate) key_frame: bool,
    /// No other refers to it.
    pub(crate) discardable: bool,
}

impl Pes {
    /// Reads the first bytes of a PES packet; `None` when none begins here.
    pub(crate) fn read(data: &[u8], coding: VideoCoding) -> Option<Self> {
        if !data.starts_with(&[0, 0, 1]) {
            return None;
        }
        let len = u16_at(data, 4)?;
        let (&flags, &fields_len) = (data.get(7)?, data.get(8)?);
        let video = data.get(HEADER_LEN + usize::from(fields_len)..).unwrap_or_default();
        let (key_frame, discardable) = picture(video, coding);
        Some(Self {
            shown_at: if flags & 0x80 != 0 { presentation_time(data) } else { None },
            len: (len > 0).then_some(6 + usize::from(len)),
            key_frame,
            discardable,
        })
    }
}

/// 33 bits in three pieces, each followed by a set bit; the lower 32 of them.
fn presentation_time(data: &[u8]) -> Option<u32> {
    time(data, HEADER_LEN).map(|time| time as u32)
}

/// The time stamp at `at`, 33 bits at 90 kHz.
pub(crate) fn time(data: &[u8], at: usize) -> Option<u64> {
    let bytes = chunk_at::<5>(data, at)?;
    let value = bytes.iter().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
    Some(value >> 3 & 0x1_c000_0000 | value >> 2 & 0x3fff_8000 | value >> 1 & 0x7fff)
}

/// Whether the picture that begins in `video` refers to no other, and whether no other refers to
/// it.
fn picture(video: &[u8], coding: VideoCoding) -> (bool, bool) {
    match coding {
        VideoCoding::Mpeg => match mpeg_video::picture_type(video) {
            Some(kind) => (kind.is_key(), kind == PictureType::B),
            // The headers before the picture fill the packet: then it is an I picture.
            None => (mpeg_video::begins_picture(video), false),
        },
        VideoCoding::Mpeg4Visual => mpeg4_visual::picture(video).unwrap_or_default(),
        VideoCoding::H264 => nal_units(video)
            .find_map(|head| match head & 0x1f {
                5 | 7 => Some((true, false)),
                1..5 => Some((false, head & 0x60 == 0)),
                _ => None,
            })
            .unwrap_or_default(),
        VideoCoding::H265 => {
            // IRAP pictures, and the parameter sets that precede them (ISO/IEC 23008-2 table 7-1).
            let kind = nal_units(video).map(|head| head >> 1 & 0x3f).find(|kind| *kind < 35);
            (kind.is_some_and(|kind| matches!(kind, 16..=21 | 32 | 33)), false)
        }
        VideoCoding::Other => (false, false),
    }
}

/// The first byte of each NAL unit that begins in `video` (annex B of H.264 and H.265).
fn nal_units(video: &[u8]) -> impl Iterator<Item = u8> + '_ {
    video.windows(4).filter_map(|bytes| match *bytes {
        [0, 0, 1, head] => Some(head),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_33_bits_of_which_32_remain() {
        for (bytes, expect) in [
            ([0x31, 0x00, 0x07, 0xef, 0xd1], 129_000), // ffmpeg's first picture, 1.433 s
            ([0x21, 0x00, 0x01, 0x00, 0x01], 0),
            ([0x2f, 0xff, 0xff, 0xff, 0xff], u32::MAX),
            ([0x29, 0x00, 0x01, 0x00, 0x03], 1), // 2^32 + 1
        ] {
            let data = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5][..], &bytes].concat();
            assert_eq!(
                Pes::read(&data, VideoCoding::H264).unwrap().shown_at,
                Some(expect),
                "{bytes:x?}"
            );
        }
        let without = [0, 0, 1, 0xe0, 0, 20, 0x80, 0, 0];
        let pes = Pes::read(&without, VideoCoding::H264).unwrap();
        assert_eq!((pes.shown_at, pes.len), (None, Some(26)));
        assert_eq!(Pes::read(&without[..8], VideoCoding::H264), None);
        assert_eq!(Pes::read(&without[1..], VideoCoding::H264), None);
    }

    #[test]
    fn pictures_show_their_type_in_their_first_bytes() {
        use VideoCoding::{H264, H265, Mpeg, Mpeg4Visual, Other};
        for (coding, video, expect) in [
            (Mpeg, &[0, 0, 1, 0xb3, 0x28][..], (true, false)),
            (Mpeg, &[0, 0, 1, 0xb8, 0, 8, 0, 0x40, 0, 0, 1, 0, 0, 0x0f], (true, false)),
            (Mpeg, &[0, 0, 1, 0, 0, 0x57], (false, false)),
            (Mpeg, &[0, 0, 1, 0, 0, 0x9f], (false, true)),
            (Mpeg4Visual, &[0, 0, 1, 0xb6, 0x10], (true, false)),
            (Mpeg4Visual, &[0, 0, 1, 0xb6, 0x90], (false, true)),
            (H264, &[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 0x64], (true, false)),
            (H264, &[0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x65, 0x88], (true, false)),
            (H264, &[0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x41, 0x9a], (false, false)),
            (H264, &[0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x01, 0x9e], (false, true)),
            (H264, &[0, 0, 0, 1, 9, 0xf0], (false, false)),
            (H265, &[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 0, 1, 0x40, 1], (true, false)),
            (H265, &[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 1, 0x26, 1], (true, false)),
            (H265, &[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 1, 0x02, 1], (false, false)),
            (Other, &[0, 0, 1, 0x65], (false, false)),
        ] {
            assert_eq!(picture(video, coding), expect, "{coding:?} {video:x?}");
        }
    }
}
