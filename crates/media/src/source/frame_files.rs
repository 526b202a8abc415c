//! Clips from files of coded frames.

use throng_observation::Codec;

use super::clip::{Clip, ClipBuilder, ClipError, PAYLOAD_MAX};
use crate::container::adts::{AdtsReader, FRAME_SAMPLES};
use crate::container::annexb::h264_access_units;
use crate::container::annexb::nal_units;
use crate::container::ivf::IvfReader;
use crate::container::ogg::{OggReader, OpusHead};
use crate::mark::Mark;
use crate::packetise;

const VIDEO_CLOCK: u32 = 90_000;
const OPUS_CLOCK: u32 = 48_000;
/// 20 ms of Opus: the assumed duration of a file's only packet.
const OPUS_PACKET: u64 = 960;

/// An H.264 byte stream, which has no times: `fps` frames a second.
pub(super) fn h264(stream: &[u8], fps: f64) -> Result<Clip, ClipError> {
    let mut builder = ClipBuilder::new(Codec::H264, VIDEO_CLOCK);
    let mut mark = Vec::with_capacity(Mark::H264_NAL_LEN);
    Mark { frame: 0, captured_unix_ns: 0 }.write_h264(&mut mark);
    let mut payloads = Vec::new();
    for (number, unit) in h264_access_units(stream).enumerate() {
        let is_slice = |nal: &&[u8]| nal.first().is_some_and(|head| matches!(head & 0x1f, 1..=5));
        let nals = marked(unit.nals, &mark, is_slice, |nal| Mark::find_h264(nal).is_some());
        payloads.clear();
        packetise::h264::packetise(&nals, PAYLOAD_MAX, &mut payloads);
        let payloads = payloads.iter().map(Vec::as_slice);
        builder.frame(frame_time(number, fps), unit.key_frame, true, payloads)?;
    }
    builder.finish(frame_time(1, fps))
}

/// An H.265 byte stream; access units begin as in clause 7.4.2.4.4 of H.265, as far as encoders use
/// it: after a slice, with a parameter set, a delimiter, a prefix SEI or the first slice of a
/// picture.
pub(super) fn h265(stream: &[u8], fps: f64) -> Result<Clip, ClipError> {
    let mut builder = ClipBuilder::new(Codec::H265, VIDEO_CLOCK);
    let mut mark = Vec::with_capacity(Mark::H265_NAL_LEN);
    Mark { frame: 0, captured_unix_ns: 0 }.write_h265(&mut mark);
    let kind = |nal: &[u8]| nal.first().map_or(63, |head| head >> 1 & 0x3f);
    let is_slice = |nal: &&[u8]| kind(nal) < 32;
    let (mut unit, mut has_slice, mut number) = (Vec::new(), false, 0);
    let mut payloads = Vec::new();
    let mut close = |nals: Vec<&[u8]>, number: usize| {
        // IRAP pictures have types 16 to 23.
        let is_key = nals.iter().any(|nal| (16..=23).contains(&kind(nal)));
        let nals = marked(nals, &mark, is_slice, |nal| Mark::find_h265(nal).is_some());
        payloads.clear();
        packetise::h265::packetise(&nals, PAYLOAD_MAX, &mut payloads);
        builder.frame(frame_time(number, fps), is_key, true, payloads.iter().map(Vec::as_slice))
    };
    for nal in nal_units(stream) {
        let first_slice = is_slice(&nal) && nal.get(2).is_some_and(|byte| byte & 0x80 != 0);
        if has_slice && (first_slice || matches!(kind(nal), 32..=35 | 39 | 41..=44 | 48..=55)) {
            close(std::mem::take(&mut unit), number)?;
            (has_slice, number) = (false, number + 1);
        }
        has_slice |= is_slice(&nal);
        unit.push(nal);
    }
    if has_slice {
        close(unit, number)?;
    }
    builder.finish(frame_time(1, fps))
}

/// The access unit with throng's mark before its first slice, and without marks of an earlier
/// sender.
fn marked<'a>(
    mut nals: Vec<&'a [u8]>,
    mark: &'a [u8],
    is_slice: impl Fn(&&[u8]) -> bool,
    is_mark: impl Fn(&[u8]) -> bool,
) -> Vec<&'a [u8]> {
    nals.retain(|nal| !is_mark(nal));
    let before = nals.iter().take_while(|nal| !is_slice(nal)).count();
    nals.insert(before, mark);
    nals
}

/// An IVF file of VP8, VP9 or AV1.
pub(super) fn ivf(file: &[u8]) -> Result<Clip, ClipError> {
    let reader = IvfReader::new(file)?;
    let codec = match &reader.fourcc {
        b"VP80" => Codec::Vp8,
        b"VP90" => Codec::Vp9,
        b"AV01" => Codec::Av1,
        other => return Err(ClipError::Codec { codec: name(other), format: "IVF" }),
    };
    // Units of a picture's time: `scale / rate` seconds.
    let (rate, scale) = (u128::from(reader.rate.max(1)), u128::from(reader.scale.max(1)));
    let time = |pts: u64| (u128::from(pts) * u128::from(VIDEO_CLOCK) * scale / rate) as u64;
    let mut builder = ClipBuilder::new(codec, VIDEO_CLOCK);
    let (mut payloads, mut last) = (Vec::new(), 0);
    for frame in reader {
        let frame = frame?;
        payloads.clear();
        let is_key = match codec {
            Codec::Vp8 => {
                packetise::vp8::packetise(frame.data, 0, PAYLOAD_MAX, &mut payloads);
                packetise::vp8::is_key_frame(frame.data)
            }
            Codec::Vp9 => {
                packetise::vp9::packetise(frame.data, 0, PAYLOAD_MAX, &mut payloads);
                packetise::vp9::is_key_frame(frame.data)
            }
            _ => {
                packetise::av1::packetise(frame.data, PAYLOAD_MAX, &mut payloads);
                packetise::av1::starts_sequence(frame.data)
            }
        };
        last = time(frame.pts).max(last);
        builder.frame(last, is_key, true, payloads.iter().map(Vec::as_slice))?;
    }
    builder.finish(time(1).max(1))
}

/// The codec's name in the file, without control characters.
fn name(bytes: &[u8]) -> String {
    let name: String =
        String::from_utf8_lossy(bytes).chars().filter(|letter| !letter.is_control()).collect();
    if name.is_empty() { "an unknown codec".into() } else { name }
}

/// An Ogg file of Opus; its first two packets are header and tags (RFC 7845 section 3).
pub(super) fn opus(file: &[u8]) -> Result<Clip, ClipError> {
    let mut packets = OggReader::new(file);
    let head = packets.next().ok_or(ClipError::Empty)??;
    if OpusHead::parse(&head).is_none() {
        let codec = name(head.get(..7).unwrap_or(&head));
        return Err(ClipError::Codec { codec, format: "Ogg" });
    }
    let mut builder = ClipBuilder::new(Codec::Opus, OPUS_CLOCK);
    let mut at = 0;
    for packet in packets.skip(1) {
        let packet = packet?;
        match packetise::opus::duration_samples(&packet) {
            Some(samples) => {
                builder.frame(at, true, true, [&*packet])?;
                at += u64::from(samples);
            }
            None => builder.skip_frame()?,
        }
    }
    builder.finish(OPUS_PACKET)
}

/// An ADTS file of AAC; each frame becomes a payload in mode AAC-hbr (RFC 3640 section 3.3.6).
pub(super) fn aac(file: &[u8]) -> Result<Clip, ClipError> {
    let mut frames = AdtsReader::new(file).peekable();
    let (config, _) = frames.peek().ok_or(ClipError::Empty)?.clone()?;
    let mut builder = ClipBuilder::aac(config);
    let mut payload = Vec::new();
    for (number, frame) in frames.enumerate() {
        let (own, frame) = frame?;
        if own != config {
            return Err(ClipError::Damaged(
                "its sample rate or channels change in the middle".into(),
            ));
        }
        let size =
            u16::try_from(frame.len()).ok().filter(|size| usize::from(*size) + 4 <= PAYLOAD_MAX);
        let size = size.ok_or_else(|| {
            ClipError::Damaged(format!(
                "a frame of {} bytes: encode it at a lower rate",
                frame.len()
            ))
        })?;
        payload.clear();
        // 16 bits of headers follow: 13 of size, 3 of index.
        payload.extend_from_slice(&[0, 16]);
        payload.extend_from_slice(&(size << 3).to_be_bytes());
        payload.extend_from_slice(frame);
        builder.frame(number as u64 * u64::from(FRAME_SAMPLES), true, true, [&*payload])?;
    }
    builder.finish(u64::from(FRAME_SAMPLES))
}

/// Time of frame `number` at `fps`, units of the video clock.
fn frame_time(number: usize, fps: f64) -> u64 {
    (number as f64 * f64::from(VIDEO_CLOCK) / fps) as u64
}

#[cfg(test)]
mod tests {
    use super::super::Player;
    use super::*;
    use crate::codec::PayloadReader;
    use crate::container::{adts, ivf, ogg};
    use std::sync::Arc;

    /// Plays `turns` of the clip and reads each frame back: key frame, mark's frame number.
    fn play(clip: Clip, turns: usize) -> Vec<(bool, Option<u32>)> {
        let clip = Arc::new(clip);
        let mut player = Player::new(Arc::clone(&clip));
        let mut reader = PayloadReader::new(clip.codec());
        (0..turns * clip.frame_count())
            .map(|_| {
                let frame = player.advance();
                let (mut key, mut mark) = (false, None);
                for packet in 0..clip.packet_count(&frame) {
                    let mut payload = Vec::new();
                    assert!(clip.write_payload(&frame, packet, 77, &mut payload));
                    assert_eq!(payload.len(), clip.payload_len(&frame, packet));
                    assert!(payload.len() <= PAYLOAD_MAX);
                    let facts = reader.read(&payload).unwrap();
                    key |= facts.key_frame;
                    mark = mark.or(facts.mark);
                }
                assert_eq!(key, clip.is_key(&frame));
                assert!(mark.is_none_or(|mark| mark.captured_unix_ns == 77));
                (key, mark.map(|mark| mark.frame))
            })
            .collect()
    }

    #[test]
    fn h264_begins_at_its_key_frame_and_carries_marks() {
        let sps_idr: &[u8] = &[0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 1, 0x68, 1, 0, 0, 1, 0x65, 0x88, 7];
        let slice: &[u8] = &[0, 0, 1, 0x41, 0x9a, 9];
        let large = [&[0, 0, 1, 0x41, 0x9a][..], &[9; 3_000]].concat();
        let clip = h264(&[slice, sps_idr, slice, &large].concat(), 30.0).unwrap();
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (3, 1));
        assert!((clip.duration_s() - 0.1).abs() < 1e-6);
        let expect: Vec<_> = (0..6).map(|number| (number % 3 == 0, Some(number))).collect();
        assert_eq!(play(clip, 2), expect);
    }

    #[test]
    fn h265_is_cut_at_first_slices() {
        let nal = |kind: u8, body: &[u8]| [&[0, 0, 1, kind << 1, 1][..], body].concat();
        let stream = [
            nal(32, &[1]),
            nal(33, &[1]),
            nal(34, &[1]),
            nal(19, &[0x80, 5]),
            nal(19, &[0x10, 6]), // the picture's second slice
            nal(1, &[0x80, 7]),
        ]
        .concat();
        let clip = h265(&stream, 25.0).unwrap();
        assert_eq!(play(clip, 1), [(true, Some(0)), (false, Some(1))]);
    }

    #[test]
    fn ivf_brings_its_own_times() {
        let (key, inter) = ([0x10, 1, 2].as_slice(), [0x11, 1].as_slice());
        let clip = ivf(&ivf::tests::file(&[inter, key, inter])).unwrap();
        assert_eq!((clip.codec(), clip.frame_count(), clip.skipped_frames()), (Codec::Vp8, 2, 1));
        assert!((clip.duration_s() - 2.0 / 30.0).abs() < 1e-6);
        assert_eq!(
            play(clip, 2).iter().map(|(key, _)| *key).collect::<Vec<_>>(),
            [true, false, true, false]
        );
        assert_eq!(ivf_error(&[inter]), ClipError::NoKeyFrame);
        assert_eq!(ivf_error(&[]), ClipError::Empty);
    }

    fn ivf_error(frames: &[&[u8]]) -> ClipError {
        super::ivf(&ivf::tests::file(frames)).unwrap_err()
    }

    #[test]
    fn opus_lasts_as_its_packets_say() {
        let head = b"OpusHead\x01\x01\x38\x01\x80\xbb\0\0\0\0\0";
        let lens = [head.len() as u8, 8, 3, 3];
        let body = [&head[..], b"OpusTags", &[31 << 3, 1, 2], &[31 << 3, 3, 4]].concat();
        let clip = opus(&ogg::tests::page(1, 2, &lens, &body)).unwrap();
        assert_eq!((clip.frame_count(), clip.clock_rate()), (2, 48_000));
        assert!((clip.duration_s() - 0.04).abs() < 1e-9);
        let vorbis = ogg::tests::page(1, 2, &[7], b"\x01vorbis");
        assert_eq!(opus(&vorbis).unwrap_err().to_string(), "vorbis from Ogg cannot be sent");
        let noise = ogg::tests::page(1, 2, &[7], b"\x1b\n\r\0\x07\x08\x01");
        assert_eq!(
            opus(&noise).unwrap_err().to_string(),
            "an unknown codec from Ogg cannot be sent"
        );
    }

    #[test]
    fn aac_has_headers_of_its_access_units_and_lasts_as_its_frames() {
        let file = [adts::tests::frame(&[7; 9]), adts::tests::frame(&[8; 300])].concat();
        let clip = aac(&file).unwrap();
        assert_eq!((clip.codec(), clip.clock_rate(), clip.frame_count()), (Codec::Aac, 48_000, 2));
        assert!((clip.duration_s() - 2048.0 / 48_000.0).abs() < 1e-9);
        let payloads: Vec<_> = clip.frames().flatten().map(<[u8]>::to_vec).collect();
        assert_eq!(payloads[0], [&[0, 16, 0, 9 << 3][..], &[7; 9]].concat());
        assert_eq!(payloads[1].len(), 304);
        assert_eq!(play(clip, 1), [(true, None), (true, None)]);
        let error = aac(&adts::tests::frame(&[8; 1_200])).unwrap_err().to_string();
        assert_eq!(error, "a frame of 1200 bytes: encode it at a lower rate");
    }
}
