//! Clips from recorded RTP: packets are sorted into order, incomplete frames left out.

use std::collections::BTreeMap;

use throng_observation::Codec;

use super::clip::{Clip, ClipBuilder, ClipError};
use super::reorder::ReorderBuffer;
use crate::codec::PayloadReader;
use crate::container::mjr::MjrReader;
use crate::container::pcap::PcapReader;
use crate::rtp::RtpHeader;

/// Most streams of a capture that are distinguished.
const STREAMS_MAX: usize = 64;

/// A recording of Janus. A truncated recording is played up to its end.
pub(super) fn mjr(file: &[u8]) -> Result<Clip, ClipError> {
    let reader = MjrReader::new(file)?;
    let codec = reader.codec;
    let mut stream = ReorderBuffer::default();
    for packet in reader.map_while(Result::ok) {
        stream.take(packet.rtp);
    }
    clip(stream, codec)
}

/// The RTP stream of a capture with the most packets, or that of `ssrc`; its codec is `codec`,
/// because a capture does not contain it.
pub(super) fn pcap(file: &[u8], codec: Codec, ssrc: Option<u32>) -> Result<Clip, ClipError> {
    let mut streams: BTreeMap<u32, ReorderBuffer> = BTreeMap::new();
    for datagram in PcapReader::new(file)? {
        let datagram = datagram?;
        // RTCP has the packet type where RTP has marker and payload type (RFC 5761 section 4).
        let Ok(header) = RtpHeader::parse(datagram.payload) else { continue };
        if (64..=95).contains(&header.payload_type)
            || ssrc.is_some_and(|wanted| wanted != header.ssrc)
        {
            continue;
        }
        if streams.len() < STREAMS_MAX || streams.contains_key(&header.ssrc) {
            streams.entry(header.ssrc).or_default().take(datagram.payload);
        }
    }
    let largest = streams.into_iter().max_by_key(|(_, stream)| stream.len());
    let (_, stream) = largest.ok_or_else(|| match ssrc {
        Some(ssrc) => ClipError::Stream(format!("the capture has no RTP stream with SSRC {ssrc}")),
        None => ClipError::Stream("the capture has no RTP stream".into()),
    })?;
    clip(stream, codec)
}

/// Makes a clip of the packets of a stream.
fn clip(packets: ReorderBuffer, codec: Codec) -> Result<Clip, ClipError> {
    let (clock_rate, is_audio) = match codec {
        Codec::Opus => (48_000, true),
        Codec::Pcmu | Codec::Pcma => (8_000, true),
        Codec::H264 | Codec::H265 | Codec::Vp8 | Codec::Vp9 | Codec::Av1 => (90_000, false),
        Codec::Other => return Err(ClipError::Codec { codec: "unknown".into(), format: "RTP" }),
        _ => return Err(ClipError::Codec { codec: codec.name().into(), format: "RTP" }),
    };
    let mut builder = ClipBuilder::new(codec, clock_rate);
    let mut reader = PayloadReader::new(codec);
    let mut timeline = Timeline::new(clock_rate);
    // After a frame was left out, those that refer to it are left out as well.
    let mut is_broken = false;
    let mut frames = frames(packets, is_audio);
    // A recording that ends within a picture: its parts cannot be shown, and would break the turn
    // of the loop. Without markers at the ends of pictures this is not detected.
    let are_marked = frames.iter().any(|frame| frame.is_marked);
    if !is_audio && are_marked && frames.pop_if(|last| !last.is_marked).is_some() {
        builder.skip_frame()?;
    }
    if are_marked {
        leave_out_the_cut(&mut frames);
    }
    for frame in frames {
        let at = timeline.at(&frame);
        let facts = frame.payloads.iter().filter_map(|payload| reader.read(payload).ok());
        let (mut is_key, mut layer) = (is_audio, 0);
        for facts in facts {
            is_key |= facts.key_frame;
            layer = layer.max(facts.temporal_layer);
        }
        is_broken = ((is_broken || frame.begins_anew) && !is_key) || !frame.is_whole;
        is_broken &= !is_audio;
        // An empty payload is padding that a bandwidth probe sent.
        let payloads =
            frame.payloads.iter().map(Vec::as_slice).filter(|payload| !payload.is_empty());
        if is_broken {
            builder.skip_frame()?;
        } else {
            builder.frame(at, is_key, layer == 0, payloads)?;
        }
    }
    builder.finish(u64::from(clock_rate / 50))
}

/// A sender that restarted within a picture left that picture incomplete.
fn leave_out_the_cut(frames: &mut [RecordedFrame]) {
    let mut next_begins_anew = false;
    for frame in frames.iter_mut().rev() {
        frame.is_whole &= frame.is_marked || !next_begins_anew;
        next_begins_anew = frame.begins_anew;
    }
}

struct RecordedFrame {
    timestamp: u32,
    payloads: Vec<Vec<u8>>,
    /// No packet is missing within it or before it.
    is_whole: bool,
    /// Its last packet has the marker.
    is_marked: bool,
    /// The sender restarted with it.
    begins_anew: bool,
}

/// Consecutive packets of one timestamp are a frame (RFC 6184 section 5.1), wherever the marker is;
/// in audio that is one packet.
fn frames(packets: ReorderBuffer, is_audio: bool) -> Vec<RecordedFrame> {
    let mut frames: Vec<RecordedFrame> = Vec::new();
    let mut last: Option<(usize, i64, bool)> = None;
    for (epoch, index, packet) in packets.into_packets() {
        let same = last.filter(|(of, ..)| *of == epoch);
        // Nothing is missing before the first packet of an epoch, as before that of the recording.
        let (follows, ended) =
            same.map_or((true, true), |(_, before, marker)| (before + 1 == index, marker));
        match frames.last_mut() {
            Some(frame)
                if frame.timestamp == packet.timestamp
                    && !(ended && follows && (is_audio || same.is_none())) =>
            {
                frame.is_whole &= follows;
                // Padding repeats the timestamp of the picture before it.
                if !packet.payload.is_empty() {
                    frame.is_marked = packet.marker;
                }
                frame.payloads.push(packet.payload);
            }
            _ => frames.push(RecordedFrame {
                timestamp: packet.timestamp,
                payloads: vec![packet.payload],
                is_whole: follows,
                is_marked: packet.marker,
                begins_anew: last.is_some() && same.is_none(),
            }),
        }
        last = Some((epoch, index, packet.marker));
    }
    frames
}

/// Timestamps as a growing line, on which a restarted sender continues where it stopped.
struct Timeline {
    last: Option<(u32, u64)>,
    /// From the frame before last to the last.
    step: u64,
}

impl Timeline {
    fn new(clock_rate: u32) -> Self {
        Self { last: None, step: u64::from(clock_rate / 50) }
    }

    fn at(&mut self, frame: &RecordedFrame) -> u64 {
        let at = self.last.map_or(0, |(before, at)| {
            if !frame.begins_anew {
                let step = frame.timestamp.wrapping_sub(before) as i32;
                self.step = u64::try_from(step).unwrap_or(0);
            }
            at.saturating_add(self.step)
        });
        self.last = Some((frame.timestamp, at));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::super::Player;
    use super::*;
    use crate::container::{mjr, pcap};
    use std::sync::Arc;

    /// VP8 with a picture id of 7 bits and TL0PICIDX: a frame of `packets` packets.
    fn frame(sequence: u16, timestamp: u32, is_key: bool, packets: u16) -> Vec<Vec<u8>> {
        (0..packets)
            .map(|index| {
                let mut packet = vec![0x80, u8::from(index + 1 == packets) << 7 | 96];
                packet.extend(sequence.wrapping_add(index).to_be_bytes());
                packet.extend(timestamp.to_be_bytes());
                packet.extend([0, 0, 0, 5]);
                packet.extend([0x80 | u8::from(index == 0) << 4, 0xc0, 3, 200, u8::from(!is_key)]);
                packet
            })
            .collect()
    }

    fn recording(packets: &[Vec<u8>]) -> Vec<u8> {
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        mjr::tests::file(r#"{"t":"v","c":"vp8"}"#, &packets)
    }

    fn scene() -> Vec<Vec<u8>> {
        let start = u32::MAX - 4_000;
        [
            frame(65_533, start, true, 2),
            frame(65_535, start.wrapping_add(3_000), false, 1),
            frame(0, start.wrapping_add(6_000), false, 3),
            frame(3, start.wrapping_add(9_000), true, 1),
        ]
        .concat()
    }

    #[test]
    fn a_recording_loops_with_its_numbers_going_on() {
        let mut packets = scene();
        packets.swap(3, 5); // overtaken on the way
        packets.push(packets[2].clone()); // and one twice
        let clip = Arc::new(super::mjr(&recording(&packets)).unwrap());
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (4, 0));
        assert!((clip.duration_s() - 12_000.0 / 90_000.0).abs() < 1e-9);
        let mut player = Player::new(Arc::clone(&clip));
        for number in 0..300_u32 {
            let frame = player.advance();
            assert_eq!(frame.timestamp, number * 3_000);
            let mut payload = Vec::new();
            clip.write_payload(&frame, 0, 0, &mut payload);
            assert_eq!(payload[2..4], [number as u8 & 0x7f, (number + 1) as u8], "{number}");
        }
    }

    #[test]
    fn what_lacks_a_packet_is_left_out_up_to_the_next_key_frame() {
        let mut packets = scene();
        packets.remove(4); // the middle of the third frame
        let clip = super::mjr(&recording(&packets)).unwrap();
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (3, 1));
        let mut packets = scene();
        packets.remove(2); // the whole second frame: the third refers to it
        let clip = super::mjr(&recording(&packets)).unwrap();
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (2, 1));
    }

    #[test]
    fn a_recording_that_ends_within_a_picture_loops_without_that_picture() {
        let mut packets = scene();
        packets.extend(frame(4, 10_000, false, 3).drain(..2)); // its last packet came after the end
        let clip = super::mjr(&recording(&packets)).unwrap();
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (4, 1));
        // A sender that never sets the marker may have meant the picture to be complete.
        packets.iter_mut().for_each(|packet| packet[1] &= 0x7f);
        assert_eq!(super::mjr(&recording(&packets)).unwrap().skipped_frames(), 0);
    }

    #[test]
    fn a_capture_plays_its_largest_stream_or_the_one_asked_for() {
        let mut packets = scene();
        let mut other = frame(9, 9, true, 1);
        other[0][11] = 6;
        packets.extend(other);
        packets.push(vec![0x80, 200, 0, 1, 0, 0, 0, 5]); // RTCP
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        let file = pcap::tests::file(&packets);
        assert_eq!(super::pcap(&file, Codec::Vp8, None).unwrap().frame_count(), 4);
        assert_eq!(super::pcap(&file, Codec::Vp8, Some(6)).unwrap().frame_count(), 1);
        let error = super::pcap(&file, Codec::Vp8, Some(7)).unwrap_err().to_string();
        assert_eq!(error, "the capture has no RTP stream with SSRC 7");
    }

    /// Fifty frames of a picture each, from these numbers on; every tenth is a key frame.
    fn stint(ssrc: u8, sequence: u16, timestamp: u32) -> Vec<Vec<u8>> {
        let of = |number: u16| {
            let at = timestamp.wrapping_add(u32::from(number) * 3_000);
            let mut packets =
                frame(sequence.wrapping_add(number * 2), at, number.is_multiple_of(10), 2);
            packets.iter_mut().for_each(|packet| packet[11] = ssrc);
            packets
        };
        (0..50).flat_map(of).collect()
    }

    /// All frames are there, in the order in which they were sent, 1/30 s apart.
    fn assert_all_there(clip: &Arc<Clip>, stints: u32, what: &str) {
        assert_eq!(
            (clip.frame_count(), clip.skipped_frames()),
            (50 * stints as usize, 0),
            "{what}"
        );
        let mut player = Player::new(Arc::clone(clip));
        for number in 0..50 * stints {
            let frame = player.advance();
            assert_eq!(
                (frame.timestamp, clip.packet_count(&frame)),
                (number * 3_000, 2),
                "{what}: {number}"
            );
            assert_eq!(clip.is_key(&frame), number.is_multiple_of(10), "{what}: {number}");
        }
    }

    #[test]
    fn a_sender_that_begins_anew_is_followed_wherever_its_numbers_lead() {
        let first = || stint(5, 30_000, 7_000);
        let restarts = [
            ("far ahead", stint(5, 60_000, 3_000_000_000)),
            ("far back", stint(5, 9_000, 3_000_000_000)),
            ("a little ahead", stint(5, 31_000, 3_000_000_000)),
            ("a little back, timestamps back too", stint(5, 29_000, 3_000_000_000)),
            ("among the numbers before", stint(5, 30_020, 1_000)),
            ("the same numbers, another time", stint(5, 30_000, 3_000_000_000)),
        ];
        for (what, second) in restarts {
            let packets =
                [first(), second, stint(5, 50_000, 5), stint(5, 20_000, 1 << 31)].concat();
            assert_all_there(&Arc::new(super::mjr(&recording(&packets)).unwrap()), 4, what);
            let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
            let capture = pcap::tests::file(&packets);
            assert_all_there(&Arc::new(super::pcap(&capture, Codec::Vp8, None).unwrap()), 4, what);
        }
    }

    #[test]
    fn another_source_in_a_recording_is_a_sender_that_begins_anew() {
        // Numbers that would be the next, a gap, or far away.
        for (sequence, timestamp) in
            [(30_100, 157_000), (30_110, 160_000), (30_050, 80_000), (7, 7)]
        {
            let packets = [stint(5, 30_000, 7_000), stint(6, sequence, timestamp)].concat();
            let clip = Arc::new(super::mjr(&recording(&packets)).unwrap());
            assert_all_there(&clip, 2, &format!("{sequence}"));
        }
    }

    #[test]
    fn what_comes_late_after_a_restart_and_stray_packets_break_nothing() {
        let mut packets = [stint(5, 30_000, 7_000), stint(5, 1_000, 3_000_000_000)].concat();
        packets.swap(99, 100); // the last of the first stint comes after the first of the second
        packets.swap(40, 45);
        assert_all_there(&Arc::new(super::mjr(&recording(&packets)).unwrap()), 2, "late");
        let mut strays = stint(5, 30_000, 7_000);
        strays.insert(31, frame(5, 5, false, 1).remove(0));
        strays.insert(77, frame(50_000, 1 << 31, false, 1).remove(0));
        let clip = super::mjr(&recording(&strays)).unwrap();
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (50, 2));
    }

    #[test]
    fn after_a_restart_within_pictures_the_next_key_frame_is_the_first_that_is_shown() {
        let mut second = stint(5, 1_000, 3_000_000_000);
        second.drain(..3); // begins with the second packet of a picture that is no key frame
        let clip = super::mjr(&recording(&[stint(5, 30_000, 7_000), second].concat())).unwrap();
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (90, 9));
        let mut first = stint(5, 30_000, 7_000);
        first.pop(); // the sender stopped within its last picture
        let clip = super::mjr(&recording(&[first, stint(5, 1_000, 5)].concat())).unwrap();
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (99, 1));
    }

    #[test]
    fn a_gap_and_a_long_pause_are_no_restart() {
        let mut packets = stint(5, 30_000, 7_000);
        packets.extend(stint(5, 30_100, 500_000_000)); // nothing was sent for an hour and a half
        let clip = super::mjr(&recording(&packets)).unwrap();
        assert_eq!((clip.frame_count(), clip.skipped_frames()), (100, 0));
        assert!((clip.duration_s() - (98.0 * 3_000.0 / 90_000.0 + 10.0 + 1.0 / 30.0)).abs() < 1e-6);
        packets.drain(20..40); // ten frames are lost: up to the next key frame all refer to them
        let clip = super::mjr(&recording(&packets)).unwrap();
        assert_eq!(clip.frame_count() + clip.skipped_frames() as usize, 90);
    }
}
