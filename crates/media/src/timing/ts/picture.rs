//! Whether a decoder can begin with a picture, and how large it is, from the start codes at its
//! beginning.

use crate::codec::program::VideoCoding;
use crate::codec::sps_size;

/// Bytes looked at: headers before a picture, with what captions and encoders add.
const LEN_MAX: u32 = 4_096;

/// Looks at the first bytes of a picture until its type is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct PictureType {
    /// The last four bytes.
    word: u32,
    looked_at: u32,
    /// After the start code of a picture: bytes until that with its type.
    until_type: u8,
    is_key: Option<bool>,
}

impl PictureType {
    /// A picture of which the transport said whether a decoder can begin with it, if it said so.
    pub(super) fn new(coding: VideoCoding, random_access: bool) -> Self {
        let is_known = random_access || coding == VideoCoding::Other;
        Self {
            word: u32::MAX,
            looked_at: 0,
            until_type: 0,
            is_key: is_known.then_some(random_access),
        }
    }

    pub(super) fn is_key(&self) -> bool {
        self.is_key == Some(true)
    }

    #[inline]
    pub(super) fn feed(&mut self, bytes: &[u8], coding: VideoCoding) {
        if self.is_key.is_some() || self.looked_at >= LEN_MAX {
            return;
        }
        for &byte in bytes {
            self.looked_at += 1;
            self.word = self.word << 8 | u32::from(byte);
            if self.until_type > 0 {
                self.until_type -= 1;
                if self.until_type == 0 {
                    self.is_key = Some(is_intra(byte, coding));
                    return;
                }
            } else if self.word >> 8 == 1 {
                self.start_code(byte, coding);
                if self.is_key.is_some() {
                    return;
                }
            }
        }
    }

    fn start_code(&mut self, code: u8, coding: VideoCoding) {
        match coding {
            // temporal_reference has 10 bits, picture_coding_type the next 3 (ISO/IEC 13818-2
            // section 6.2.3).
            VideoCoding::Mpeg if code == 0 => self.until_type = 2,
            VideoCoding::Mpeg4Visual if code == 0xb6 => self.until_type = 1,
            // A slice, or the parameter sets before an IDR picture or a recovery point (table 7-1
            // of H.264).
            VideoCoding::H264 => {
                self.is_key = match code & 0x1f {
                    5 | 7 => Some(true),
                    1..5 => Some(false),
                    _ => None,
                }
            }
            // IRAP pictures and the parameter sets before them (ISO/IEC 23008-2 table 7-1).
            VideoCoding::H265 => {
                self.is_key = match code >> 1 & 0x3f {
                    16..=21 | 32 | 33 => Some(true),
                    0..32 => Some(false),
                    _ => None,
                }
            }
            _ => {}
        }
    }
}

/// Width and height, pixels, by the first sequence parameter set among the first bytes of a picture
/// of H.264.
pub(super) fn size(bytes: &[u8]) -> Option<(u16, u16)> {
    let is_set = |word: &[u8]| matches!(word, [0, 0, 1, head] if head & 0x1f == 7);
    let at = bytes.windows(4).position(is_set)?;
    sps_size(bytes.get(at + 3..)?)
}

fn is_intra(byte: u8, coding: VideoCoding) -> bool {
    match coding {
        VideoCoding::Mpeg => matches!(byte >> 3 & 7, 1 | 4),
        _ => byte >> 6 == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_parameter_set_has_the_size() {
        // Baseline, 1280×720.
        let set = [0x67, 0x42, 0xc0, 0x1f, 0xda, 0x01, 0x40, 0x16, 0xe4];
        let picture = [&[0, 0, 0, 1, 9, 0xf0, 0, 0, 1][..], &set, &[0, 0, 1, 0x65, 0x88]].concat();
        assert_eq!(size(&picture), Some((1_280, 720)));
        for without in [&picture[..4], &picture[..12], &[0, 0, 1, 0x65, 0x88, 7], &[]] {
            assert_eq!(size(without), None, "{without:x?}");
        }
    }

    #[test]
    fn pictures_show_their_type_in_pieces_of_any_size() {
        use VideoCoding::{H264, H265, Mpeg, Mpeg4Visual, Other};
        for (coding, video, expect) in [
            (
                Mpeg,
                &[0, 0, 1, 0xb3, 9, 9, 0, 0, 1, 0xb8, 8, 0, 0x40, 0, 0, 1, 0, 0, 0x0f][..],
                true,
            ),
            (Mpeg, &[0, 0, 1, 0, 0, 0x57], false),
            (Mpeg4Visual, &[0, 0, 1, 0xb0, 1, 0, 0, 1, 0xb6, 0x10], true),
            (Mpeg4Visual, &[0, 0, 1, 0xb6, 0x90], false),
            (H264, &[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 6, 5, 9, 0, 0, 1, 0x65], true),
            (H264, &[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 0x64], true),
            (H264, &[0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x41, 0x9a, 0, 0, 1, 0x65], false),
            (H265, &[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 1, 0x26, 1], true),
            (H265, &[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 1, 0x02, 1], false),
            (Other, &[0, 0, 1, 0x65], false),
        ] {
            for piece in 1..video.len() {
                let mut picture = PictureType::new(coding, false);
                video.chunks(piece).for_each(|piece| picture.feed(piece, coding));
                assert_eq!(picture.is_key(), expect, "{coding:?} {video:x?}");
            }
            assert!(PictureType::new(coding, true).is_key());
        }
        let mut long = PictureType::new(H264, false);
        long.feed(&[9; 9_000], H264);
        long.feed(&[0, 0, 1, 0x65], H264);
        assert!(!long.is_key());
    }
}
