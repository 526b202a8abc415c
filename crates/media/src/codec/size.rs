//! Width and height of a picture, from the packet that begins a key frame: shows the simulcast
//! layer when a server forwards all layers as one stream.

use throng_observation::Codec;

use crate::octets::u16_at;

/// Size in pixels (width, height), where the payload of a packet contains it: the first packet of a
/// VP8 key frame (RFC 6386 section 9.1), or one with the sequence parameter set of H.264 (section
/// 7.3.2.1.1 of the specification).
#[must_use]
pub fn picture_size(codec: Codec, payload: &[u8]) -> Option<(u16, u16)> {
    let (width, height) = match codec {
        Codec::Vp8 => vp8(payload)?,
        Codec::H264 => h264(payload)?,
        _ => return None,
    };
    (width > 0 && height > 0).then_some((width, height))
}

/// Size in pixels in a sequence parameter set of H.264, a whole NAL unit.
#[must_use]
pub fn sps_size(sps: &[u8]) -> Option<(u16, u16)> {
    h264(sps).filter(|(width, height)| *width > 0 && *height > 0)
}

fn vp8(payload: &[u8]) -> Option<(u16, u16)> {
    let first = *payload.first()?;
    // The payload descriptor (RFC 7741 section 4.2): only the first partition's start has the
    // frame's header.
    if first & 0x17 != 0x10 {
        return None;
    }
    let mut at = 1;
    if first & 0x80 != 0 {
        let present = *payload.get(1)?;
        at = 2;
        if present & 0x80 != 0 {
            at += if payload.get(at)? & 0x80 != 0 { 2 } else { 1 };
        }
        at += usize::from(present & 0x40 != 0) + usize::from(present & 0x30 != 0);
    }
    let frame = payload.get(at..)?;
    if frame.first()? & 1 != 0 || frame.get(3..6)? != [0x9d, 0x01, 0x2a] {
        return None;
    }
    let little = |at: usize| u16_at(frame, at).map(|value| value.swap_bytes() & 0x3fff);
    Some((little(6)?, little(8)?))
}

const SPS: u8 = 7;
const STAP_A: u8 = 24;

fn h264(payload: &[u8]) -> Option<(u16, u16)> {
    match payload.first()? & 0x1f {
        SPS => sequence_parameters(payload.get(1..)?),
        STAP_A => {
            let mut units = payload.get(1..)?;
            while let Some(length) = u16_at(units, 0) {
                let unit = units.get(2..)?.get(..usize::from(length))?;
                if unit.first()? & 0x1f == SPS {
                    return sequence_parameters(unit.get(1..)?);
                }
                units = units.get(2 + usize::from(length)..)?;
            }
            None
        }
        _ => None,
    }
}

/// Profiles whose parameter sets contain the chroma format.
const WITH_CHROMA: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

fn sequence_parameters(sps: &[u8]) -> Option<(u16, u16)> {
    let mut bits = Bits { bytes: sps, at: 0 };
    let profile = bits.take(8)?;
    bits.take(16)?; // constraints and level
    bits.exp_golomb()?; // id
    let mut chroma = 1;
    if WITH_CHROMA.contains(&profile) {
        chroma = bits.exp_golomb()?;
        if chroma == 3 {
            bits.take(1)?;
        }
        bits.exp_golomb()?; // bit depths
        bits.exp_golomb()?;
        bits.take(1)?;
        if bits.take(1)? == 1 {
            return None; // scaling matrices, which no sender of a meeting has
        }
    }
    bits.exp_golomb()?; // frame numbers
    match bits.exp_golomb()? {
        0 => drop(bits.exp_golomb()?),
        1 => {
            bits.take(1)?;
            bits.exp_golomb()?;
            bits.exp_golomb()?;
            for _ in 0..bits.exp_golomb()?.min(255) {
                bits.exp_golomb()?;
            }
        }
        _ => {}
    }
    bits.exp_golomb()?; // reference frames
    bits.take(1)?;
    let width_mbs = bits.exp_golomb()?.checked_add(1)?;
    let height_units = bits.exp_golomb()?.checked_add(1)?;
    let frames_only = bits.take(1)?;
    if frames_only == 0 {
        bits.take(1)?;
    }
    bits.take(1)?;
    let height_mbs = height_units.checked_mul(2 - frames_only)?;
    let (mut width, mut height) = (width_mbs.checked_mul(16)?, height_mbs.checked_mul(16)?);
    if bits.take(1)? == 1 {
        let mut edge = || bits.exp_golomb();
        let (left, right, top, bottom) = (edge()?, edge()?, edge()?, edge()?);
        // In units of chroma samples (table 6-1).
        let unit_x = if matches!(chroma, 1 | 2) { 2 } else { 1 };
        let unit_y = if chroma == 1 { 2 } else { 1 } * (2 - frames_only);
        width = width.checked_sub(left.checked_add(right)?.checked_mul(unit_x)?)?;
        height = height.checked_sub(top.checked_add(bottom)?.checked_mul(unit_y)?)?;
    }
    Some((u16::try_from(width).ok()?, u16::try_from(height).ok()?))
}

/// The bits of a NAL unit without its emulation prevention bytes (00 00 03).
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<u32> {
        if self.at.is_multiple_of(8) {
            let byte = self.at / 8;
            let zeros = byte.checked_sub(2).and_then(|from| self.bytes.get(from..byte));
            if zeros == Some(&[0, 0]) && self.bytes.get(byte) == Some(&3) {
                self.at += 8;
            }
        }
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(u32::from(bit))
    }

    fn take(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0_u32, |value, _| Some(value << 1 | self.bit()?))
    }

    /// An unsigned Exp-Golomb code (section 9.1).
    fn exp_golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.bit()? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        (1_u32 << zeros).checked_add(self.take(zeros)?).map(|value| value - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{self, Rung};

    #[test]
    fn every_size_of_the_test_card_is_read_off_its_key_frames() {
        for (rung, codec) in
            Rung::ALL.into_iter().flat_map(|rung| [(rung, Codec::Vp8), (rung, Codec::H264)])
        {
            let clip = card::picture(rung, codec).unwrap();
            let mut player =
                crate::source::Player::starting_at(clip.clone(), std::time::Duration::ZERO);
            player.request_key_frame();
            let frame = player.advance();
            assert!(clip.is_key(&frame));
            let sizes: Vec<_> = (0..clip.packet_count(&frame))
                .filter_map(|packet| {
                    let mut payload = Vec::new();
                    assert!(clip.write_payload(&frame, packet, 0, &mut payload));
                    picture_size(codec, &payload)
                })
                .collect();
            assert_eq!(sizes, [(rung.width() as u16, rung.height() as u16)], "{rung:?} {codec:?}");
        }
    }

    #[test]
    fn what_begins_no_key_frame_says_nothing() {
        for (codec, payload) in [
            (Codec::Vp8, &[][..]),
            (Codec::Vp8, &[0x10, 1, 0, 0, 0x9d, 1, 0x2a, 0, 1, 0, 1]), // not a key frame
            (Codec::Vp8, &[0x10, 0, 0, 0, 0x9d, 1, 0x2b, 0, 1, 0, 1]), // not its start code
            (Codec::Vp8, &[0x10, 0, 0, 0, 0x9d, 1, 0x2a, 0, 1, 0]),    // cut off
            (Codec::H264, &[0x65, 0x88, 7]),
            (Codec::H264, &[0x67, 0x42, 0, 0x1f]),
            (Codec::H264, &[0x67, 0x42, 0, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0]),
            (Codec::H264, &[0x78, 0xff, 0xff, 0x67]),
            (Codec::Opus, &[0x10, 0, 0, 0, 0x9d, 1, 0x2a, 0, 1, 0, 1]),
        ] {
            assert_eq!(picture_size(codec, payload), None, "{payload:x?}");
        }
        assert_eq!(
            picture_size(Codec::Vp8, &[0x10, 0, 0, 0, 0x9d, 1, 0x2a, 0, 1, 0x80, 0]),
            Some((256, 128))
        );
    }
}
