//! Assigns packets to tracks, and opens tracks.

use std::time::Instant;

use throng_media::assemble::FrameAssembler;
use throng_media::codec::PayloadReader;
use throng_media::quality::{TrackConfig, TrackMeter};
use throng_media::rtp::{Extensions, RtpHeader};
use throng_observation::{MediaKind, Observation, TrackId};

use super::anomalies::AnomalyKind;
use super::{Receiver, Role, SOURCES_MAX, SenderState, Source, Track};
use crate::webrtc::layer_switches::LayerSwitches;
use crate::webrtc::payload::Assignment;
use crate::webrtc::srtp::IndexEstimator;

impl Receiver {
    /// Finds or opens the track of a packet with a new SSRC or a new payload type.
    pub(super) fn bind(
        &mut self,
        header: &RtpHeader,
        extensions: &Extensions<'_>,
        now: Instant,
    ) -> Role {
        let section = self.assignments.section(header.ssrc, extensions.mid);
        let Some(assignment) = self.assignments.find(header.payload_type, section).cloned() else {
            self.anomaly(
                AnomalyKind::UnknownPayload,
                "rtp",
                format_args!("payload type {} was not agreed", header.payload_type),
            );
            return Role::Ignored;
        };
        if self.assignments.is_unannounced(header.ssrc, assignment.section) {
            self.anomaly(
                AnomalyKind::Unannounced,
                "rtp",
                format_args!("SSRC {} was not announced", header.ssrc),
            );
        }
        let of_section =
            |track: &Track| track.section == assignment.section && track.codec == assignment.codec;
        let existing = self.tracks.iter().position(of_section);
        match (assignment.is_retransmission, existing) {
            (true, Some(at)) if self.tracks[at].has_begun() => Role::Retransmission(at),
            (true, _) => Role::Ignored,
            (false, Some(at)) => {
                let track = &mut self.tracks[at];
                if track.ssrc != header.ssrc {
                    track.ssrc = header.ssrc;
                    track.report_state.source_changed();
                    track.payloads = PayloadReader::new(track.codec);
                    track.assembler.iter_mut().for_each(|assembler| assembler.restart());
                    track.meter.source_changed(now);
                }
                Role::Media(at)
            }
            (false, None) => {
                // Expected media arrives late, possibly in another format than assumed.
                let at = self.unseen_track(assignment.section).unwrap_or(self.tracks.len());
                let track = self.track(at, &assignment, header.ssrc, SenderState::Active, now);
                self.put(at, track);
                Role::Media(at)
            }
        }
    }

    /// Track number `at` in its state before the first packet.
    pub(super) fn track(
        &mut self,
        at: usize,
        assignment: &Assignment,
        ssrc: u32,
        sender_state: SenderState,
        now: Instant,
    ) -> Track {
        let track = TrackId(self.first_track.saturating_add(at as u16));
        let config = TrackConfig {
            track,
            kind: assignment.kind,
            codec: assignment.codec,
            clock_rate_hz: assignment.clock_rate_hz,
            nack: assignment.feedback.nack,
        };
        Track {
            meter: TrackMeter::new(config, self.clock, now),
            ssrc,
            section: assignment.section,
            codec: assignment.codec,
            kind: assignment.kind,
            report_state: self.reporter.report_state(assignment.kind, assignment.feedback, now),
            payloads: PayloadReader::new(assignment.codec),
            layer_switches: LayerSwitches::default(),
            first_frame_told: false,
            config,
            sender_state,
            assembler: (self.is_tapped && assignment.kind == MediaKind::Video)
                .then(|| Box::new(FrameAssembler::new(assignment.codec))),
        }
    }

    /// Puts a track in place `at`: the first free one, or that of a track without packets.
    pub(super) fn put(&mut self, at: usize, track: Track) {
        let (track_id, kind, codec) = (track.config.track, track.kind, track.codec);
        match self.tracks.get_mut(at) {
            Some(unseen_track) => *unseen_track = track,
            None => {
                // Most have audio and video.
                if self.tracks.is_empty() {
                    self.tracks.reserve_exact(2);
                }
                self.tracks.push(track);
            }
        }
        let opened = Observation::TrackOpened { track: track_id, kind, codec, is_recording: false };
        self.observed.push(opened);
    }

    pub(super) fn add_source(&mut self, ssrc: u32) -> Option<usize> {
        if self.sources.len() == SOURCES_MAX {
            self.anomaly(
                AnomalyKind::TooManySources,
                "rtp",
                format_args!("more than {SOURCES_MAX} SSRCs"),
            );
            return None;
        }
        let source = Source {
            ssrc,
            payload_type: u8::MAX,
            index: IndexEstimator::default(),
            role: Role::Ignored,
        };
        self.sources.push(source);
        Some(self.sources.len() - 1)
    }
}
