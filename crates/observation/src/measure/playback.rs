//! Players. Terms are those of HTML media elements (WHATWG HTML section 4.8.11) and CTA-2066.

use super::{bps, counters, ratio};

/// Of less than this share of its time a player's wish for media says nothing about the rate at
/// which it comes.
const WANTED_SHARE_MIN: u64 = 100;

counters! {
    /// Sums over an interval; all add up over time and over players.
    PlaybackCounters {
        /// Time in which the player was meant to play: startup, playback and stalls; not the pauses
        /// that its user made.
        active_us: u64 = Microseconds;
        /// Part of `active_us` before playback began, or began again after a seek: the wait for
        /// enough data to start.
        startup_us: u64 = Microseconds csv "waited_to_start_s";
        /// Part of `active_us` in which playback had begun and waited for data (`waiting` event): a
        /// stall.
        stall_us: u64 = Microseconds csv "stalled_s";
        /// Stalls begun.
        stall_count: u64 = Count csv "stalls";
        /// Media time that was played.
        played_us: u64 = Microseconds;
        /// Time of the pauses that its user made.
        paused_us: u64 = Microseconds;
        /// Media time that playback jumped over: it never came, or had left the live playlist
        /// before it did.
        skipped_us: u64 = Microseconds since "live streams";
        /// Seeks that users made.
        seek_count: u64 = Count csv "seeks";
        /// Bytes of response bodies that hold media, received.
        media_bytes: u64 = Bytes;
        /// Bytes of other response bodies: playlists, manifests, keys, the page around the player.
        other_bytes: u64 = Bytes;
        /// Media time that became playable by what was received.
        media_us: u64 = Microseconds;
        /// Time in which the player wanted more media than it had: its buffer was below the target.
        wanted_us: u64 = Microseconds;
        /// Requests sent, those that were sent again included.
        requests: u64 = Count;
        /// Requests without a usable response: refused, broken off, timed out.
        requests_failed: u64 = Count;
        /// Connections opened.
        connections: u64 = Count;
        /// Segments or packets that the generator's host sent again on them (`tcpi_total_retrans`).
        retransmitted: u64 = Count;
        /// Segments that arrived out of order (`tcpi_rcv_ooopack`), a sign of loss on the way from
        /// the server.
        received_out_of_order: u64 = Count;
        /// Changes of the rendition.
        switches: u64 = Count;
        /// Responses over HTTP/1.1.
        responses_http1: u64 = Count since "live streams";
        /// Responses over HTTP/2.
        responses_http2: u64 = Count since "live streams";
        /// Responses over HTTP/3.
        responses_http3: u64 = Count since "live streams";
        /// Segments, playlists, manifests and keys of live streams that were due and given up:
        /// after the repeats that players make, or because a segment had left the playlist.
        missed: u64 = Count since "live streams";
        /// Segments, or parts of segments, that were received whole.
        segments: u64 = Count since "live streams";
        /// Time from the request of each of them to its last byte.
        segment_download_us: u64 = Microseconds since "live streams";
        /// Media time in them.
        segment_media_us: u64 = Microseconds since "live streams";
        /// Requests for the page around the player and what it contains; part of `requests`.
        page_requests: u64 = Count since "recorded pages";
        /// Those of them that failed; part of `requests_failed`.
        page_requests_failed: u64 = Count since "recorded pages";
        /// Bytes of their response bodies; part of `other_bytes`.
        page_bytes: u64 = Bytes since "recorded pages";
        /// Bytes of media that other viewers sent, which the server did not; not part of
        /// `media_bytes`.
        peer_bytes: u64 = Bytes since "peers";
        /// Segments that other viewers sent; part of all segments once they are played.
        peer_segments: u64 = Count since "peers";
        /// Segments that they began to send and that did not come whole.
        peer_failures: u64 = Count since "peers";
        /// Segments of the server that were loaded again because their hash came too late, or not
        /// at all.
        hash_reloads: u64 = Count since "peers";
        /// Bytes of media sent to other viewers.
        uploaded_bytes: u64 = Bytes since "peers";
        /// Time connected with other viewers, summed over them: divided by `active_us` it is the
        /// number of peers.
        peers_us: u64 = Microseconds since "peers";
        /// Announcements to the tracker.
        announces: u64 = Count since "peers";
        /// Offers of others that the tracker brought.
        offers_received: u64 = Count since "peers";
        /// Answers of others to offers of this viewer.
        answers_received: u64 = Count since "peers";
        /// Bytes of messages to the tracker.
        tracker_bytes_sent: u64 = Bytes since "peers";
        /// Bytes of messages of the tracker.
        tracker_bytes_received: u64 = Bytes since "peers";
        /// Connections to the tracker that broke, or could not be made.
        tracker_reconnects: u64 = Count since "peers";
        /// Of the bytes that other viewers sent, those that came over data channels: from browsers,
        /// or viewers of other processes.
        channel_received_bytes: u64 = Bytes since "data channels";
        /// Part of `uploaded_bytes` that was sent over data channels.
        channel_sent_bytes: u64 = Bytes since "data channels";
        /// Time connected with peers over data channels, summed over them; part of `peers_us`.
        channels_us: u64 = Microseconds since "data channels";
    }
}

impl PlaybackCounters {
    /// Time that segments took ÷ media time in them: near 1 a server, or the way to it, is about to
    /// be too slow. `None` without segments.
    #[must_use]
    pub fn segment_ratio(&self) -> Option<f64> {
        ratio(self.segment_download_us, self.segment_media_us)
    }

    /// Stalled ÷ (stalled + playing) time, the rebuffering ratio of CTA-2066; `None` before
    /// playback began.
    #[must_use]
    pub fn stall_ratio(&self) -> Option<f64> {
        let begun_us = self.active_us.saturating_sub(self.startup_us);
        ratio(self.stall_us, begun_us).map(|stalled| stalled.min(1.0))
    }

    /// Stalled, or waiting for playback to begin ÷ time in which it was meant to play; `None`
    /// without time.
    #[must_use]
    pub fn waiting_ratio(&self) -> Option<f64> {
        ratio(self.stall_us.saturating_add(self.startup_us), self.active_us)
    }

    /// Media time received ÷ time in which it was wanted: below 1 the server delivers less than the
    /// media's own bit rate. `None` when nothing was wanted, or hardly ever, as at the end of a
    /// live stream.
    #[must_use]
    pub fn delivery_ratio(&self) -> Option<f64> {
        let is_wanted = self.wanted_us > self.active_us / WANTED_SHARE_MIN;
        ratio(self.media_us, self.wanted_us).filter(|_| is_wanted)
    }

    /// Media bytes from the server and from other viewers.
    #[must_use]
    pub fn all_media_bytes(&self) -> u64 {
        self.media_bytes.saturating_add(self.peer_bytes)
    }

    /// The media's own bit rate: bits received, from the server or from other viewers, ÷ media time
    /// in them; `None` without media.
    #[must_use]
    pub fn media_bps(&self) -> Option<f64> {
        let bytes = self.all_media_bytes();
        bps(bytes, self.media_us)
    }

    /// Bits per second of `bytes` for each player, of the time in which it was meant to play;
    /// `None` without such time.
    #[must_use]
    pub fn bps_per_player(&self, bytes: u64) -> Option<f64> {
        bps(bytes, self.active_us)
    }

    /// How many each player had of what was there for `us`, summed over all; `None` without time.
    #[must_use]
    pub fn per_player(&self, us: u64) -> Option<f64> {
        ratio(us, self.active_us)
    }

    /// Media bytes from other viewers ÷ all media bytes; `None` without media.
    #[must_use]
    pub fn peer_ratio(&self) -> Option<f64> {
        ratio(self.peer_bytes, self.all_media_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_leave_out_the_startup_and_are_absent_without_time() {
        let mut counters =
            PlaybackCounters { active_us: 3_000_000, startup_us: 3_000_000, ..Default::default() };
        assert_eq!((counters.stall_ratio(), counters.delivery_ratio()), (None, None));
        counters +=
            PlaybackCounters { active_us: 4_000_000, stall_us: 1_000_000, ..Default::default() };
        assert_eq!(counters.stall_ratio(), Some(0.25));
        assert_eq!(counters.waiting_ratio(), Some(4.0 / 7.0));
        counters +=
            PlaybackCounters { wanted_us: 2_000_000, media_us: 3_000_000, ..Default::default() };
        assert_eq!(counters.delivery_ratio(), Some(1.5));
        assert_eq!(counters.media_bps(), Some(0.0));
        let media = PlaybackCounters { media_bytes: 2_000_000, peer_bytes: 1_000_000, ..counters };
        assert_eq!((media.media_bps(), PlaybackCounters::default().media_bps()), (Some(8e6), None));
        assert_eq!(media.bps_per_player(7_000), Some(8_000.0));
    }

    #[test]
    fn sums_at_their_largest_value_have_figures() {
        let largest = PlaybackCounters {
            active_us: u64::MAX,
            stall_us: u64::MAX,
            startup_us: u64::MAX,
            media_bytes: u64::MAX,
            peer_bytes: u64::MAX,
            ..PlaybackCounters::default()
        };
        assert_eq!((largest.waiting_ratio(), largest.peer_ratio()), (Some(1.0), Some(1.0)));
        assert_eq!(largest.all_media_bytes(), u64::MAX);
    }
}
