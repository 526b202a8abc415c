//! The parameter sets of a clip, which SDP has in front of the media (`sprop-parameter-sets`).

use throng_observation::Codec;

use super::clip::Clip;
use crate::container::annexb::nal_units;
use crate::depacketise;

impl Clip {
    /// The parameter sets of its first frame that has any, as NAL units in their order: SPS and PPS
    /// of H.264, VPS, SPS and PPS of H.265. Empty for other codecs.
    #[must_use]
    pub fn parameter_sets(&self) -> Vec<Vec<u8>> {
        let is_set: fn(&[u8]) -> bool = match self.codec() {
            // ITU-T H.264 table 7-1 and H.265 table 7-1.
            Codec::H264 => |nal| nal.first().is_some_and(|head| matches!(head & 0x1f, 7 | 8)),
            Codec::H265 => {
                |nal| nal.first().is_some_and(|head| matches!(head >> 1 & 0x3f, 32..=34))
            }
            _ => return Vec::new(),
        };
        for payloads in self.frames() {
            let mut stream = Vec::new();
            if depacketise::frame(self.codec(), payloads, &mut stream).is_err() {
                continue;
            }
            let sets: Vec<_> =
                nal_units(&stream).filter(|nal| is_set(nal)).map(<[u8]>::to_vec).collect();
            if !sets.is_empty() {
                return sets;
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{Rung, picture, speech};

    #[test]
    fn the_test_card_in_h264_has_its_sets_and_other_codecs_have_none() {
        let sets = picture(Rung::P360, Codec::H264).unwrap().parameter_sets();
        let kinds: Vec<u8> = sets.iter().map(|nal| nal[0] & 0x1f).collect();
        assert_eq!(kinds, [7, 8]);
        assert!(picture(Rung::P360, Codec::Vp8).unwrap().parameter_sets().is_empty());
        assert!(speech().unwrap().parameter_sets().is_empty());
    }
}
