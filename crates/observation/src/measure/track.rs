//! Received tracks, with the names of W3C webrtc-stats (`RTCInboundRtpStreamStats`) where they
//! exist.

use super::{bps, counters, ratio};

counters! {
    /// Sums over an interval; all add up over time and over tracks.
    TrackCounters {
        /// RTP packets received in their first transmission: no duplicates, no retransmissions.
        packets_original: u64 = Count was "packets_received";
        /// RTP payload bytes of every packet, without padding and headers: repeats, on an RTX
        /// stream or not, and duplicates are included.
        payload_bytes: u64 = Bytes as "W3C bytesReceived";
        /// RTP headers, extensions and padding of the same packets.
        header_bytes: u64 = Bytes as "W3C headerBytesReceived";
        /// Bytes on the wire of every datagram of this track: with RTP header, SRTP tag, UDP and IP
        /// header.
        wire_bytes: u64 = Bytes;
        /// Packets expected from the sequence numbers less those received; negative within one
        /// interval when packets counted lost earlier arrived late.
        packets_lost: i64 = Count as "RFC 3550 A.3";
        /// Packets that arrived after they had been counted lost, but not because of a NACK.
        packets_late: u64 = Count;
        /// Packets that had arrived before.
        packets_duplicate: u64 = Count;
        /// Packets with a lower sequence number than one before them, that were not counted lost.
        packets_reordered: u64 = Count as "RFC 4737 type-P-reordered";
        /// Packets recovered by retransmission, on an RTX stream or the original one.
        packets_recovered: u64 = Count;
        /// RTCP Generic NACK messages sent.
        nack_sent: u64 = Count as "W3C nackCount, RFC 4585 6.2.1" csv "nack_sent";
        /// Picture Loss Indications sent.
        pli_sent: u64 = Count as "W3C pliCount, RFC 4585 6.3.1";
        /// Full Intra Requests sent.
        fir_sent: u64 = Count as "W3C firCount, RFC 5104 4.3.1";
        /// Frames of which every packet arrived.
        frames_complete: u64 = Count;
        /// Complete frames whose references were all decodable too.
        frames_decodable: u64 = Count;
        /// Decodable key frames.
        key_frames: u64 = Count;
        /// Incomplete frames that were abandoned: a packet did not arrive in time.
        frames_dropped: u64 = Count;
        /// Freezes begun.
        freeze_count: u64 = Count as "W3C freezeCount" chart "Freezes" of "freezes begun";
        /// Time frozen in this interval, freezes in progress included, so that a picture that never
        /// returns counts in every interval.
        freeze_us: u64 = Microseconds as "W3C totalFreezesDuration";
        /// Time of this interval in which the track was meant to play.
        active_us: u64 = Microseconds;
        /// Datagrams of this track that could not be decrypted or parsed.
        packets_unreadable: u64 = Count was "packets_discarded";
        /// Time of this interval in which the track was expected and received nothing, after its
        /// time to start: part of `active_us`.
        missing_us: u64 = Microseconds since "missing time";
        /// Packets that arrived on an RTX stream (RFC 4588), needed or not.
        rtx_packets_received: u64 = Count as "W3C retransmittedPacketsReceived" since "RTX streams";
        /// Payload bytes of repeats, needed or not: of all packets but `packets_original`.
        repeated_bytes: u64 = Bytes since "repeated bytes" csv "repeated_bytes"
            chart "Repeats" of "payload bytes received again";
    }
}

impl TrackCounters {
    /// Packets that were missing at first: recovered by retransmission, or lost for good.
    #[must_use]
    pub fn packets_missed(&self) -> u64 {
        self.packets_recovered.saturating_add(self.packets_lost_for_good())
    }

    /// Packets lost after recovery; none where more came than were lost before.
    #[must_use]
    pub fn packets_lost_for_good(&self) -> u64 {
        self.packets_lost.max(0) as u64
    }

    /// Packets expected from the sequence numbers: received, recovered by retransmission, or lost.
    #[must_use]
    pub fn packets_expected(&self) -> u64 {
        self.packets_original.saturating_add(self.packets_missed())
    }

    /// The loss that a browser counts: W3C `packetsLost`, by RFC 3550 6.4.1 expected less received
    /// on the track's own SSRC. A repeat on that SSRC cancels its loss, and so does a duplicate;
    /// one on an RTX stream does not.
    #[must_use]
    pub fn packets_lost_on_ssrc(&self) -> i64 {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.packets_lost
            .saturating_add(signed(self.rtx_packets_received))
            .saturating_sub(signed(self.packets_duplicate))
    }

    /// Packets lost ÷ packets expected, after recovery; `None` when nothing was expected.
    #[must_use]
    pub fn packet_loss_ratio(&self) -> Option<f64> {
        ratio(self.packets_lost_for_good(), self.packets_expected())
    }

    /// Packets that were missing at first ÷ packets expected; `None` when nothing was expected.
    #[must_use]
    pub fn missed_ratio(&self) -> Option<f64> {
        ratio(self.packets_missed(), self.packets_expected())
    }

    /// Payload bytes of repeats ÷ payload bytes: what the repair of losses takes of the line.
    /// `None` when nothing came, and for media that does not come as packets.
    #[must_use]
    pub fn repeat_ratio(&self) -> Option<f64> {
        ratio(self.repeated_bytes, self.payload_bytes).filter(|_| self.has_packets())
    }

    /// Time in which an expected track received nothing ÷ active time; `None` when never active.
    #[must_use]
    pub fn missing_ratio(&self) -> Option<f64> {
        ratio(self.missing_us, self.active_us).map(|missing| missing.min(1.0))
    }

    /// The loss in all reports: packets lost after recovery, with time in which an expected track
    /// received nothing as total loss. `None` when nothing was expected.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        match (self.packet_loss_ratio(), self.missing_ratio().filter(|missing| *missing > 0.0)) {
            (Some(lost), Some(missing)) => Some(missing + (1.0 - missing) * lost),
            (lost, missing) => lost.or(missing),
        }
    }

    /// Whether the track was expected and no packet of it ever arrived.
    #[must_use]
    pub fn never_received(&self) -> bool {
        self.missing_us > 0 && self.packets_original == 0 && self.packets_recovered == 0
    }

    /// Whether its media came, or should have come, as packets. Media that a player fetches by HTTP
    /// does not, so that its loss, delay, jitter and freezes do not exist.
    #[must_use]
    pub fn has_packets(&self) -> bool {
        self.packets_expected() > 0 || self.missing_us > 0
    }

    /// Whether a player fetched it: media came, and none of it as packets.
    #[must_use]
    pub fn is_fetched(&self) -> bool {
        self.payload_bytes > 0 && !self.has_packets()
    }

    /// Decodable frames for each key frame; `None` without one.
    #[must_use]
    pub fn gop(&self) -> Option<f64> {
        ratio(self.frames_decodable, self.key_frames)
    }

    /// Frozen ÷ active time; `None` when never active, and for media that does not come as packets.
    #[must_use]
    pub fn freeze_ratio(&self) -> Option<f64> {
        let frozen = ratio(self.freeze_us, self.active_us).map(|frozen| frozen.min(1.0));
        frozen.filter(|_| self.has_packets() || self.freeze_us > 0)
    }

    /// Decodable frames per second of `due_us`, the time in which frames were expected: the frame
    /// rate in all reports. `None` when none was.
    #[must_use]
    pub fn fps(&self, due_us: u64) -> Option<f64> {
        (due_us > 0).then(|| self.frames_decodable as f64 * 1e6 / due_us as f64)
    }

    /// Decodable frames per second of active time, with the wait for the first of them, and pauses;
    /// `None` when never active. Sums over seconds have no other.
    #[must_use]
    pub fn fps_of_active(&self) -> Option<f64> {
        self.fps(self.active_us)
    }

    /// Payload bits per second of active time; `None` when never active.
    #[must_use]
    pub fn payload_bps(&self) -> Option<f64> {
        bps(self.payload_bytes, self.active_us)
    }

    /// Adds another track of the same participant: both ran at the same time, so their times do not
    /// add up.
    pub fn add_concurrent(&mut self, other: &Self) {
        let active_us = self.active_us.max(other.active_us);
        *self += *other;
        self.active_us = active_us;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_a_share_of_what_was_expected_and_silence_is_all_of_it() {
        let packets = |received, recovered, lost| TrackCounters {
            packets_original: received,
            packets_recovered: recovered,
            packets_lost: lost,
            active_us: 1_000_000,
            ..TrackCounters::default()
        };
        for (counters, packet_loss, loss) in [
            (packets(90, 0, 10), Some(0.1), Some(0.1)),
            (packets(80, 10, 10), Some(0.1), Some(0.1)),
            (packets(0, 0, 10), Some(1.0), Some(1.0)),
            // What was counted lost in the second before arrived in this one.
            (packets(100, 0, -3), Some(0.0), Some(0.0)),
            (TrackCounters { missing_us: 500_000, ..packets(90, 0, 10) }, Some(0.1), Some(0.55)),
            (TrackCounters { missing_us: 1_000_000, ..packets(0, 0, 0) }, None, Some(1.0)),
            (packets(0, 0, 0), None, None),
        ] {
            assert_eq!(counters.packet_loss_ratio(), packet_loss, "{counters:?}");
            assert_eq!(counters.loss_ratio(), loss, "{counters:?}");
        }
        assert_eq!(packets(80, 10, 10).missed_ratio(), Some(0.2));
        assert_eq!(packets(0, 0, 0).missed_ratio(), None);
    }

    #[test]
    fn repeats_are_a_share_of_the_payload_and_media_without_packets_has_none() {
        let came = |packets_original, payload_bytes, repeated_bytes| TrackCounters {
            packets_original,
            payload_bytes,
            repeated_bytes,
            ..TrackCounters::default()
        };
        for (counters, expect) in [
            (came(90, 100_000, 10_000), Some(0.1)),
            (came(100, 100_000, 0), Some(0.0)),
            // What a player fetched.
            (came(0, 100_000, 0), None),
            (came(0, 0, 0), None),
        ] {
            assert_eq!(counters.repeat_ratio(), expect, "{counters:?}");
        }
        let is_fetched = [(90, 100_000), (0, 100_000), (0, 0)]
            .map(|(packets, bytes)| came(packets, bytes, 0).is_fetched());
        assert_eq!(is_fetched, [false, true, false]);
    }

    #[test]
    fn a_gop_has_the_frames_to_a_key_frame() {
        let of = |frames_decodable, key_frames| TrackCounters {
            frames_decodable,
            key_frames,
            ..TrackCounters::default()
        };
        assert_eq!((of(90, 3).gop(), of(90, 0).gop()), (Some(30.0), None));
    }

    #[test]
    fn sums_at_their_largest_value_have_figures() {
        let largest = TrackCounters {
            packets_original: u64::MAX,
            packets_recovered: u64::MAX,
            packets_lost: i64::MAX,
            rtx_packets_received: u64::MAX,
            missing_us: u64::MAX,
            ..TrackCounters::default()
        };
        assert_eq!((largest.packets_missed(), largest.packets_expected()), (u64::MAX, u64::MAX));
        assert_eq!((largest.packets_lost_on_ssrc(), largest.never_received()), (i64::MAX, false));
        let late =
            TrackCounters { packets_lost: i64::MIN, packets_duplicate: 9, ..Default::default() };
        assert_eq!(late.packets_lost_on_ssrc(), i64::MIN);
    }

    #[test]
    fn a_frame_rate_is_of_the_time_in_which_frames_were_due_or_of_all() {
        let counters = TrackCounters {
            frames_decodable: 15,
            active_us: 1_000_000,
            ..TrackCounters::default()
        };
        assert_eq!((counters.fps(500_000), counters.fps_of_active()), (Some(30.0), Some(15.0)));
        assert_eq!((counters.fps(0), TrackCounters::default().fps_of_active()), (None, None));
    }

    #[test]
    fn a_bit_rate_is_of_active_time_which_is_that_of_the_longest_of_concurrent_tracks() {
        let track = |payload_bytes, active_us| TrackCounters {
            payload_bytes,
            active_us,
            ..TrackCounters::default()
        };
        let mut both = track(1_000, 2_000_000);
        both.add_concurrent(&track(500, 1_000_000));
        assert_eq!((both.payload_bps(), track(9, 0).payload_bps()), (Some(6_000.0), None));
    }
}
