//! The RTP packets that arrive, on their way to the meters.

use std::time::Instant;

use throng_media::codec::PayloadFacts;
use throng_media::quality::Packet;
use throng_media::rtp::RtpHeader;
use throng_observation::{MediaKind, Observation, Phase};

use super::Receiver;
use super::anomalies::Anomaly;
use crate::rtsp::description::Companion;

/// What is done with RTP packets that arrive.
pub(super) enum Arrivals {
    Metered,
    /// They are of the position before a seek: the viewer does not want them any more.
    Unwanted,
    /// The seek is not answered yet: only its answer tells which position they are of.
    Held(Vec<HeldPacket>),
}

/// A packet whose position is not known yet.
pub(super) struct HeldPacket {
    pub(super) at: usize,
    pub(super) arrived_at: Instant,
    pub(super) overhead_bytes: u32,
    pub(super) bytes: Vec<u8>,
}

/// Packets that are held for a seek's answer, at most: 2 MB. More are metered as they come.
const HELD_MAX: usize = 1_500;

impl Receiver {
    /// Takes an RTP packet of track `at`; `overhead_bytes` are those of the headers below it on the
    /// wire.
    pub(in crate::rtsp) fn rtp(
        &mut self,
        at: usize,
        arrived_at: Instant,
        overhead_bytes: u32,
        bytes: &[u8],
    ) {
        match &mut self.arrivals {
            Arrivals::Metered => {}
            Arrivals::Unwanted => return,
            Arrivals::Held(held) if held.len() < HELD_MAX => {
                return held.push(HeldPacket {
                    at,
                    arrived_at,
                    overhead_bytes,
                    bytes: bytes.to_vec(),
                });
            }
            Arrivals::Held(_) => self.begin_position(arrived_at, &[]),
        }
        self.meter(at, arrived_at, overhead_bytes, bytes);
    }

    pub(super) fn meter(
        &mut self,
        at: usize,
        arrived_at: Instant,
        overhead_bytes: u32,
        bytes: &[u8],
    ) {
        let Some(track) = self.tracks.get_mut(at) else { return };
        let Ok(header) = RtpHeader::parse(bytes) else {
            return self.anomaly(Anomaly::BadRtp, "rtp", "an RTP packet is malformed");
        };
        let is_of = |it: &&Companion| it.payload_type == header.payload_type;
        let companion = track.companions.iter().find(is_of).copied();
        if header.payload_type != track.payload_type && companion.is_none() {
            return self.unknown_payload(at, arrived_at, overhead_bytes, &header, bytes);
        }
        track.goes_on(self.expected, &mut self.observed);
        track.silent_since = arrived_at;
        let Ok(payload) = header.payload(bytes) else {
            track.meter.discarded();
            return self.anomaly(Anomaly::BadRtp, "rtp", "padding is longer than the payload");
        };
        // What comes between the packets of the media has their numbers, and is no part of it.
        let is_video = track.config.kind == MediaKind::Video;
        let is_between = companion.is_some_and(|companion| !companion.has_media || is_video);
        let payload: &[u8] = if is_between { &[] } else { payload };
        if !track.comes_from(header.ssrc, arrived_at, &mut self.source_changes) {
            return self.anomaly(Anomaly::ManySources, "rtp", "its SSRC changes again and again");
        }
        // A malformed payload still counts as a packet of its frame.
        let read = match companion {
            Some(_) => Ok(PayloadFacts::default()),
            None => track.payloads.read(payload),
        };
        let packet = Packet {
            arrived_at,
            sequence: header.sequence,
            timestamp: header.timestamp,
            marker: header.marker,
            facts: read.unwrap_or_default(),
            payload_bytes: payload.len() as u32,
            header_bytes: (bytes.len() - payload.len()) as u32,
            wire_bytes: overhead_bytes + bytes.len() as u32,
            retransmitted: false,
            captured: None,
        };
        track.has_media = true;
        track.meter.packet_with_payload(&packet, payload);
        self.observed.extend(track.size_change(header.timestamp, payload));
        if read.is_ok() {
            track.assemble(&packet, payload, &self.options.clock, &mut self.observed);
        }
        self.last_media_at = Some(arrived_at);
        self.report_first(at, arrived_at);
        self.report_anomalies(at, read.err());
    }

    /// A packet of a payload type that was not described cannot be played. It is still one of the
    /// source that sends the track: it was not lost.
    fn unknown_payload(
        &mut self,
        at: usize,
        arrived_at: Instant,
        overhead_bytes: u32,
        header: &RtpHeader,
        bytes: &[u8],
    ) {
        let Some(track) = self.tracks.get_mut(at) else { return };
        if track.ssrc == Some(header.ssrc) {
            track.meter.packet(&Packet {
                arrived_at,
                sequence: header.sequence,
                timestamp: header.timestamp,
                marker: header.marker,
                facts: PayloadFacts::default(),
                payload_bytes: 0,
                header_bytes: bytes.len() as u32,
                wire_bytes: overhead_bytes + bytes.len() as u32,
                retransmitted: false,
                captured: None,
            });
        }
        let detail = format!(
            "payload type {} where {} was described",
            header.payload_type, track.payload_type
        );
        self.anomaly(Anomaly::UnknownPayload, "rtp", detail);
    }

    /// Reports the first packet and frame of the session and of track `at`.
    fn report_first(&mut self, at: usize, arrived_at: Instant) {
        if !self.first_packet_seen {
            self.first_packet_seen = true;
            self.observed.push(Observation::Reached(Phase::FirstPacket, arrived_at));
        }
        let expects_video = self.tracks.iter().any(|track| track.config.kind == MediaKind::Video);
        let Some(track) = self.tracks.get_mut(at) else { return };
        let Some(first_frame_at) = track.meter.first_frame_at() else { return };
        if !track.first_frame_reported {
            track.first_frame_reported = true;
            self.observed
                .push(Observation::TrackFirstFrame { track: track.id, at: first_frame_at });
        }
        if !self.first_frame_seen && (track.config.kind == MediaKind::Video || !expects_video) {
            self.first_frame_seen = true;
            self.observed.push(Observation::Reached(Phase::FirstFrame, first_frame_at));
        }
    }
}
