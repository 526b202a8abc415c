//! From recorded RTP to a clip: packets come back into order, frames that lack a packet are left out.

use std::collections::BTreeMap;

use throng_observation::Codec;

use super::clip::{Clip, ClipBuilder, ClipError};
use crate::codec::PayloadReader;
use crate::container::mjr::{MjrError, MjrReader};
use crate::container::pcap::{PcapError, PcapReader};
use crate::rtp::RtpHeader;

/// How far packets may be out of order: as many as half the space of sequence numbers would be ambiguous.
const REORDER_MAX: i64 = 0x4000;
/// The most streams that are told apart in a capture.
const STREAMS_MAX: usize = 64;

impl From<MjrError> for ClipError {
    fn from(error: MjrError) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl From<PcapError> for ClipError {
    fn from(error: PcapError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// A recording of Janus. A recording that was cut off is played as far as it goes.
pub(super) fn mjr(file: &[u8]) -> Result<Clip, ClipError> {
    let reader = MjrReader::new(file)?;
    let codec = reader.codec;
    let mut stream = Stream::default();
    for packet in reader.map_while(Result::ok) {
        stream.take(packet.rtp);
    }
    stream.clip(codec)
}

/// The RTP stream of a capture that has the most packets, or that of `ssrc`; `codec` says what it is coded with, which a
/// capture does not.
pub(super) fn pcap(file: &[u8], codec: Codec, ssrc: Option<u32>) -> Result<Clip, ClipError> {
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    for datagram in PcapReader::new(file)? {
        let datagram = datagram?;
        // RTCP has packet types where RTP has marker and payload type (RFC 5761 section 4).
        let Ok(header) = RtpHeader::parse(datagram.payload) else { continue };
        if (64..=95).contains(&header.payload_type) || ssrc.is_some_and(|wanted| wanted != header.ssrc) {
            continue;
        }
        if streams.len() < STREAMS_MAX || streams.contains_key(&header.ssrc) {
            streams.entry(header.ssrc).or_default().take(datagram.payload);
        }
    }
    let largest = streams.into_iter().max_by_key(|(_, stream)| stream.packets.len());
    let (_, stream) = largest.ok_or_else(|| match ssrc {
        Some(ssrc) => ClipError::Stream(format!("the capture has no RTP stream with SSRC {ssrc}")),
        None => ClipError::Stream("the capture has no RTP stream".into()),
    })?;
    stream.clip(codec)
}

/// The packets of one stream, by extended sequence number.
#[derive(Default)]
struct Stream {
    packets: BTreeMap<i64, Recorded>,
    newest: Option<i64>,
}

struct Recorded {
    timestamp: u32,
    marker: bool,
    payload: Vec<u8>,
}

impl Stream {
    fn take(&mut self, packet: &[u8]) {
        let Ok(header) = RtpHeader::parse(packet) else { return };
        let Ok(padding) = header.padding_len(packet) else { return };
        let payload = packet.get(header.header_len..packet.len().saturating_sub(padding)).unwrap_or_default();
        let newest = self.newest.unwrap_or(i64::from(header.sequence));
        let step = i64::from(header.sequence.wrapping_sub(newest as u16) as i16);
        // A sender that began anew: its packets follow those before, with a gap.
        let index = if step.abs() > REORDER_MAX { newest + 2 } else { newest + step };
        self.newest = Some(newest.max(index));
        let recorded =
            Recorded { timestamp: header.timestamp, marker: header.marker, payload: payload.to_vec() };
        self.packets.entry(index).or_insert(recorded);
    }

    fn clip(self, codec: Codec) -> Result<Clip, ClipError> {
        let (clock_rate, is_audio) = match codec {
            Codec::Opus => (48_000, true),
            Codec::Pcmu | Codec::Pcma => (8_000, true),
            Codec::Other => return Err(ClipError::Codec { codec: "unknown".into(), format: "RTP" }),
            _ => (90_000, false),
        };
        let mut builder = ClipBuilder::new(codec, clock_rate);
        let mut reader = PayloadReader::new(codec);
        let mut timeline = Timeline::default();
        // After a frame was left out, those that refer to it are as well.
        let mut is_broken = false;
        let mut frames = frames(self.packets);
        // A recording that ends within a picture: its parts cannot be shown, and would break the turn of the loop. Where
        // nobody marks the ends of pictures it is not known.
        let are_marked = frames.iter().any(|frame| frame.is_marked);
        if !is_audio && are_marked && frames.pop_if(|last| !last.is_marked).is_some() {
            builder.leave_out()?;
        }
        for frame in frames {
            let at = timeline.at(frame.timestamp);
            let facts = frame.payloads.iter().filter_map(|payload| reader.read(payload).ok());
            let (mut is_key, mut layer) = (is_audio, 0);
            for facts in facts {
                is_key |= facts.key_frame;
                layer = layer.max(facts.temporal_layer);
            }
            is_broken = (is_broken && !is_key) || !(frame.is_whole || is_audio);
            // An empty payload is padding that a bandwidth probe sent.
            let payloads = frame.payloads.iter().map(Vec::as_slice).filter(|payload| !payload.is_empty());
            if is_broken {
                builder.leave_out()?;
            } else {
                builder.frame(at, is_key, layer == 0, payloads)?;
            }
        }
        builder.finish(u64::from(clock_rate / 50))
    }
}

struct RecordedFrame {
    timestamp: u32,
    payloads: Vec<Vec<u8>>,
    /// No packet is missing within it or before it.
    is_whole: bool,
    /// Its last packet says that it is the last.
    is_marked: bool,
}

/// Packets of one timestamp in a row are a frame; for audio each packet is its own.
fn frames(packets: BTreeMap<i64, Recorded>) -> Vec<RecordedFrame> {
    let mut frames: Vec<RecordedFrame> = Vec::new();
    let mut last: Option<(i64, bool)> = None;
    for (index, packet) in packets {
        let (follows, ended) = last.map_or((true, true), |(before, marker)| (before + 1 == index, marker));
        match frames.last_mut() {
            Some(frame) if frame.timestamp == packet.timestamp && !(ended && follows) => {
                frame.is_whole &= follows;
                frame.is_marked = packet.marker;
                frame.payloads.push(packet.payload);
            }
            _ => frames.push(RecordedFrame {
                timestamp: packet.timestamp,
                payloads: vec![packet.payload],
                is_whole: follows,
                is_marked: packet.marker,
            }),
        }
        last = Some((index, packet.marker));
    }
    frames
}

/// Timestamps as a line that only grows.
#[derive(Default)]
struct Timeline {
    last: Option<(u32, u64)>,
}

impl Timeline {
    fn at(&mut self, timestamp: u32) -> u64 {
        let at = self.last.map_or(0, |(before, at)| {
            let step = timestamp.wrapping_sub(before) as i32;
            at.saturating_add(u64::try_from(step).unwrap_or(0))
        });
        self.last = Some((timestamp, at));
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
        assert_eq!((clip.frame_count(), clip.left_out()), (4, 0));
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
        assert_eq!((clip.frame_count(), clip.left_out()), (3, 1));
        let mut packets = scene();
        packets.remove(2); // the whole second frame: the third refers to it
        let clip = super::mjr(&recording(&packets)).unwrap();
        assert_eq!((clip.frame_count(), clip.left_out()), (2, 1));
    }

    #[test]
    fn a_recording_that_ends_within_a_picture_loops_without_that_picture() {
        let mut packets = scene();
        packets.extend(frame(4, 10_000, false, 3).drain(..2)); // its last packet came after the end
        let clip = super::mjr(&recording(&packets)).unwrap();
        assert_eq!((clip.frame_count(), clip.left_out()), (4, 1));
        // Who never marks the end of a picture may have meant it whole.
        packets.iter_mut().for_each(|packet| packet[1] &= 0x7f);
        assert_eq!(super::mjr(&recording(&packets)).unwrap().left_out(), 0);
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
}
