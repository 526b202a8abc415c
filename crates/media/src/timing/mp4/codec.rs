//! Which codec a sample entry (`stsd`, ISO/IEC 14496-12 section 8.5.2) stands for.

use throng_observation::{Codec, MediaKind};

use crate::octets::{chunk_at, u16_at};

/// The codec of the first sample entry in the contents of an `stsd` box.
pub(super) fn of(description: &[u8], kind: MediaKind) -> Codec {
    let entry = description.get(8..).unwrap_or_default();
    let Some(format) = chunk_at::<4>(entry, 4) else { return Codec::Other };
    // Encrypted media: the format before is in `sinf` (section 8.12.2).
    let format = match format {
        b"encv" | b"enca" => chunk_at(after(entry, b"frma"), 0).unwrap_or(format),
        _ => format,
    };
    match format {
        b"avc1" | b"avc2" | b"avc3" | b"avc4" | b"dvav" | b"dva1" => Codec::H264,
        b"hvc1" | b"hev1" | b"hvc2" | b"hev2" | b"dvh1" | b"dvhe" => Codec::H265,
        b"vp08" => Codec::Vp8,
        b"vp09" => Codec::Vp9,
        b"av01" => Codec::Av1,
        b"mp4v" | b"mp4a" => object_type(after(entry, b"esds")).map_or(
            if kind == MediaKind::Audio { Codec::Aac } else { Codec::Mpeg4Visual },
            of_object_type,
        ),
        b"m2v1" | b"mp2v" | b"m1v1" | b"mpg1" | b"mpg2" | b"mpeg" => Codec::MpegVideo,
        b"jpeg" | b"mjpa" | b"mjpb" => Codec::Jpeg,
        b"Opus" => Codec::Opus,
        b".mp3" | b".mp2" | b".mp1" => Codec::MpegAudio,
        b"ulaw" => Codec::Pcmu,
        b"alaw" => Codec::Pcma,
        _ => Codec::Other,
    }
}

/// Width and height, pixels, that the first sample entry of video says (section 12.1.3).
pub(super) fn size(description: &[u8]) -> Option<(u16, u16)> {
    let entry = description.get(8..)?;
    let size = (u16_at(entry, 32)?, u16_at(entry, 34)?);
    Some(size).filter(|(width, height)| *width > 0 && *height > 0)
}

/// The contents of the box of this type somewhere in a sample entry. What precedes it depends on
/// the version of QuickTime that wrote the entry, and on whether it is inside `wave`, so its name
/// is searched for.
fn after<'a>(entry: &'a [u8], name: &[u8; 4]) -> &'a [u8] {
    let at = entry.windows(4).position(|word| word == name);
    at.and_then(|at| entry.get(at + 4..)).unwrap_or_default()
}

/// `objectTypeIndication` in an `esds` box (ISO/IEC 14496-1 sections 7.2.6.5 and 7.2.6.6).
fn object_type(body: &[u8]) -> Option<u8> {
    let descriptor = descriptor(body.get(4..)?, 3)?;
    let flags = *descriptor.get(2)?;
    let mut at = 3 + if flags & 0x80 == 0 { 0 } else { 2 };
    if flags & 0x40 != 0 {
        at += 1 + usize::from(*descriptor.get(at)?); // a URL
    }
    at += if flags & 0x20 == 0 { 0 } else { 2 };
    self::descriptor(descriptor.get(at..)?, 4)?.first().copied()
}

/// The contents of a descriptor with this tag; their length has up to four bytes of seven bits.
fn descriptor(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let (&first, rest) = bytes.split_first()?;
    let len_len = 1 + rest.iter().take(3).take_while(|byte| **byte & 0x80 != 0).count();
    if first == tag { rest.get(len_len..) } else { None }
}

/// Object types of the MP4 registration authority.
fn of_object_type(object_type: u8) -> Codec {
    match object_type {
        0x20 => Codec::Mpeg4Visual,
        0x21 => Codec::H264,
        0x23 => Codec::H265,
        0x40 | 0x66..=0x68 => Codec::Aac,
        0x60..=0x65 | 0x6a => Codec::MpegVideo,
        0x69 | 0x6b => Codec::MpegAudio,
        0x6c => Codec::Jpeg,
        0xad => Codec::Opus,
        0xb1 => Codec::Vp9,
        _ => Codec::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(format: &[u8; 4], rest: &[u8]) -> Vec<u8> {
        [&[0; 4][..], &[0, 0, 0, 1], &(rest.len() as u32 + 8).to_be_bytes(), format, rest].concat()
    }

    #[test]
    fn sample_entries_name_their_codec() {
        for (format, expect) in [
            (b"avc1", Codec::H264),
            (b"avc3", Codec::H264),
            (b"hvc1", Codec::H265),
            (b"hev1", Codec::H265),
            (b"vp08", Codec::Vp8),
            (b"vp09", Codec::Vp9),
            (b"av01", Codec::Av1),
            (b"Opus", Codec::Opus),
            (b".mp3", Codec::MpegAudio),
            (b"mp4v", Codec::Mpeg4Visual),
            (b"xxxx", Codec::Other),
        ] {
            assert_eq!(of(&description(format, &[0; 70]), MediaKind::Video), expect);
        }
        assert_eq!(of(&description(b"mp4a", &[0; 28]), MediaKind::Audio), Codec::Aac);
        assert_eq!(of(&[0; 9], MediaKind::Audio), Codec::Other);
        let encrypted =
            description(b"encv", &[&[0; 70][..], b"\0\0\0\x14sinf\0\0\0\x0cfrmahvc1"].concat());
        assert_eq!(of(&encrypted, MediaKind::Video), Codec::H265);
    }

    #[test]
    fn sample_entries_of_video_say_its_size() {
        let mut rest = [0; 70];
        assert_eq!(size(&description(b"avc1", &rest)), None);
        rest[24..28].copy_from_slice(&[0x05, 0x00, 0x02, 0xd0]);
        assert_eq!(size(&description(b"avc1", &rest)), Some((1_280, 720)));
        assert_eq!(size(&description(b"avc1", &rest[..27])), None);
    }

    #[test]
    fn the_object_type_decides_between_mpeg_codecs() {
        for (format, esds, kind, expect) in [
            // ffmpeg, with lengths in four bytes
            (
                b"mp4a",
                &[0, 0, 0, 0, 3, 0x80, 0x80, 0x80, 0x25, 0, 2, 0, 4, 0x80, 0x80, 0x80, 0x17, 0x40]
                    [..],
                MediaKind::Audio,
                Codec::Aac,
            ),
            (
                b"mp4a",
                &[0, 0, 0, 0, 3, 0x19, 0, 0, 0, 4, 0x11, 0x6b],
                MediaKind::Audio,
                Codec::MpegAudio,
            ),
            (
                b"mp4v",
                &[0, 0, 0, 0, 3, 0x19, 0, 0, 0, 4, 0x11, 0x61],
                MediaKind::Video,
                Codec::MpegVideo,
            ),
            (
                b"mp4v",
                &[0, 0, 0, 0, 3, 0x19, 0, 0, 0, 4, 0x11, 0x20],
                MediaKind::Video,
                Codec::Mpeg4Visual,
            ),
            (
                b"mp4v",
                &[0, 0, 0, 0, 3, 0x19, 0, 0, 0xe0, 9, 9, 1, 7, 9, 9, 4, 1, 0x6c],
                MediaKind::Video,
                Codec::Jpeg,
            ),
            (b"mp4a", &[0, 0, 0, 0, 5, 1], MediaKind::Audio, Codec::Aac),
        ] {
            let entry = description(format, &[&[0; 32][..], b"esds", esds].concat());
            assert_eq!(of(&entry, kind), expect, "{esds:x?}");
        }
    }
}
