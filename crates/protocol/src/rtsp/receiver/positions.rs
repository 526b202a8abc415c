//! Which packets are of which position of a recording: pauses, seeks, and playing it again.

use std::time::{Duration, Instant};

use throng_media::quality::TrackMeter;
use throng_media::rtp::RtpHeader;

use super::Receiver;
use super::arrivals::Arrivals;

/// How long after the answer to PLAY packets of the position before may come: on other sockets.
const BREAK_PATIENCE: Duration = Duration::from_millis(200);

impl Receiver {
    /// No media is expected until [`Self::resume`] or [`Self::go_on`].
    pub(in crate::rtsp) fn pause(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.is_paused, true) {
            self.tracks.iter_mut().for_each(|track| track.meter.pause());
            self.end_intervals(now, TrackMeter::take_interval);
        }
        self.expected = None;
    }

    /// The same, and what comes next is of another position of the recording: it has other
    /// pictures, and may have other sequence numbers and timestamps. It may come before PLAY is
    /// answered.
    pub(in crate::rtsp) fn end_position(&mut self, now: Instant) {
        self.tracks.iter_mut().for_each(|track| track.meter.source_changed(now));
        self.pause(now);
        // A server may take another source for each position.
        self.source_changes = 0;
    }

    /// Media is expected again, from another position.
    pub(in crate::rtsp) fn resume(&mut self, now: Instant) {
        self.is_paused = false;
        self.last_media_at = self.last_media_at.map(|_| now);
        for track in &mut self.tracks {
            track.meter.resume(now);
            (track.silent_since, track.has_media) = (now, false);
        }
    }

    /// Media is expected again from where it was paused: it may come before PLAY is answered, and
    /// servers leave packets out where they paused.
    pub(in crate::rtsp) fn go_on(&mut self, now: Instant) {
        for track in &mut self.tracks {
            track.meter.timeline_shifted();
            track.meter.may_break(now + BREAK_PATIENCE);
        }
        self.resume(now);
    }

    /// The viewer seeks: media of another position is expected from now on, and none of the present
    /// one wanted.
    pub(in crate::rtsp) fn seek(&mut self, now: Instant) {
        self.end_position(now);
        self.resume(now);
        self.arrivals = Arrivals::Unwanted;
    }

    /// The other position was requested.
    pub(in crate::rtsp) fn await_position(&mut self) {
        if matches!(self.arrivals, Arrivals::Unwanted) {
            self.arrivals = Arrivals::Held(Vec::new());
        }
    }

    /// PLAY was answered: what comes begins with these sequence numbers, where the server says
    /// them; packets before are of the old position. Where it does not, only a break tells them
    /// apart. What said that the old one ended says nothing of this one.
    pub(in crate::rtsp) fn begin_position(&mut self, now: Instant, first: &[Option<u16>]) {
        for (at, track) in self.tracks.iter_mut().enumerate() {
            track.has_ended = false;
            if first.get(at).copied().flatten().is_none() {
                track.meter.may_break(now + BREAK_PATIENCE);
            }
        }
        let Arrivals::Held(held) = std::mem::replace(&mut self.arrivals, Arrivals::Metered) else {
            return;
        };
        for packet in held {
            let first = first.get(packet.at).copied().flatten();
            let is_old = RtpHeader::parse(&packet.bytes).is_ok_and(|header| {
                first.is_some_and(|first| header.sequence.wrapping_sub(first) > u16::MAX / 2)
            });
            if !is_old {
                self.meter(packet.at, packet.arrived_at, packet.overhead_bytes, &packet.bytes);
            }
        }
    }
}
