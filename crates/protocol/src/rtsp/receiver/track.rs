//! A received stream: its source, its pictures, its frames for the tap and its intervals.

use std::time::Instant;

use throng_media::assemble::{FrameAssembler, MediaPacket};
use throng_media::codec::PayloadReader;
use throng_media::quality::{Packet, TrackConfig, TrackMeter, WallClock};
use throng_observation::{Missing, Observation, TrackId, TrackInterval};

use super::ends::Expected;
use crate::reports::{LastSenderReport, coded_frame};
use crate::rtsp::description::Companion;
use crate::shown_size::{Shown, ShownSize};

/// One received stream.
pub(super) struct Track {
    pub(super) id: TrackId,
    pub(super) config: TrackConfig,
    pub(super) payload_type: u8,
    pub(super) companions: Vec<Companion>,
    pub(super) meter: TrackMeter,
    pub(super) payloads: PayloadReader,
    pub(super) ssrc: Option<u32>,
    pub(super) last_sender_report: LastSenderReport,
    pub(super) next_report_at: Instant,
    /// When its last packet came, or media was expected anew.
    pub(super) silent_since: Instant,
    /// Media came since it was last expected anew.
    pub(super) has_media: bool,
    /// The first and the last second whose interval was put off since then, because it may be over.
    pub(super) put_off: Option<(Instant, Instant)>,
    pub(super) first_frame_reported: bool,
    /// The server has sent RTCP BYE: its end was reached.
    pub(super) has_ended: bool,
    pub(super) assembler: Option<Box<FrameAssembler>>,
    pub(super) picture: ShownSize,
}

/// Changes of a stream's source that are followed; more are an anomaly.
const SOURCE_CHANGES_MAX: u8 = 100;

impl Track {
    /// A packet comes from this source. False where there were too many others before.
    pub(super) fn comes_from(&mut self, ssrc: u32, now: Instant, source_changes: &mut u8) -> bool {
        if self.ssrc == Some(ssrc) {
            return true;
        }
        if self.ssrc.is_some() {
            *source_changes = source_changes.saturating_add(1);
            if *source_changes > SOURCE_CHANGES_MAX {
                return false;
            }
            self.meter.source_changed(now);
        }
        self.ssrc = Some(ssrc);
        self.last_sender_report = LastSenderReport::default();
        true
    }

    /// The size of its picture has changed, as a packet of this payload shows or one before.
    pub(super) fn size_change(&mut self, timestamp: u32, payload: &[u8]) -> Option<Observation> {
        // Parameter sets may come in packets of their own.
        self.picture.packet(self.config.codec, timestamp, payload);
        if !self.picture.awaits_key_frame() {
            return None;
        }
        let (timestamp, at) = self.meter.last_key_frame()?;
        let (from, to) = self.picture.shown(timestamp).and_then(Shown::change)?;
        Some(Observation::SizeChanged { track: self.id, from, to, at })
    }

    /// Adds a packet to the frames of the tap.
    pub(super) fn assemble(
        &mut self,
        packet: &Packet,
        payload: &[u8],
        clock: &WallClock,
        observed: &mut Vec<Observation>,
    ) {
        let Some(assembler) = &mut self.assembler else { return };
        let Packet { arrived_at, sequence, timestamp, marker, facts, captured, .. } = *packet;
        let packet =
            MediaPacket { arrived_at, sequence, timestamp, marker, facts, captured, payload };
        let (id, codec) = (self.id, self.config.codec);
        assembler.packet(&packet, |frame| observed.push(coded_frame(id, codec, clock, frame)));
    }

    /// Its interval that ends at `now`.
    pub(super) fn interval(
        &mut self,
        expected: Option<Expected>,
        now: Instant,
        take: fn(&mut TrackMeter, Instant) -> TrackInterval,
    ) -> Observation {
        let due = expected.filter(|due| !due.is_stopping && self.meter.is_quiet(now));
        let has_stopped = self.meter.has_begun();
        let mut interval = take(&mut self.meter, now);
        interval.missing = due.map(|due| Missing { since: due.since, has_stopped });
        interval.picture_lines = self.picture.lines();
        Observation::Interval(Box::new(interval))
    }
}
