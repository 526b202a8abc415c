//! What viewers got from each other.

use throng_observation::PlaybackCounters;
use throng_observation::units::{bit_rate, bytes, noun, percent};

use crate::requests::grouped;
use crate::sums::summed;

summed! {
    /// Peer-to-peer delivery between the viewers of a run.
    Peers of PlaybackCounters {
        /// Bytes of media that other viewers sent ÷ all bytes of media; `null` without media.
        ratio: Option<f64> = PlaybackCounters::peer_ratio;
        bytes = peer_bytes;
        segments = peer_segments;
        failures = peer_failures;
        #[serde(default)] hash_reloads;
        uploaded_bytes;
        #[serde(default)] channel_received_bytes;
        #[serde(default)] channel_sent_bytes;
        /// Data channels of a viewer, on average over its time and over all viewers; part of
        /// `degree`.
        #[serde(default)]
        channels: Option<f64> = |sums| sums.per_player(sums.channels_us);
        /// Peers of a viewer, on average over its time.
        degree: Option<f64> = |sums| sums.per_player(sums.peers_us);
        /// Bits per second that the server sent to each viewer, media only.
        server_bps_per_viewer: Option<f64> = |sums| sums.bps_per_player(sums.media_bytes);
        /// Bits per second of media that each viewer received, from whomever: what the server would
        /// send without peers.
        media_bps_per_viewer: Option<f64> = |sums| sums.bps_per_player(sums.all_media_bytes());
        announces;
        offers_received;
        answers_received;
        tracker_bytes_sent;
        tracker_bytes_received;
        tracker_reconnects;
    }
}

impl Peers {
    /// `None` where viewers had no peers and asked no tracker.
    pub(crate) fn of_viewers(sums: &PlaybackCounters) -> Option<Self> {
        let has_any = sums.peers_us > 0 || sums.announces > 0 || sums.tracker_reconnects > 0;
        has_any.then(|| Self::of(sums))
    }

    /// What came from whom, in a line.
    pub(crate) fn line(&self) -> String {
        let mut parts = vec![match self.ratio {
            None => "no media".to_owned(),
            Some(ratio) => format!("{} of the media from other viewers", percent(ratio)),
        }];
        if let (Some(server), Some(all)) = (self.server_bps_per_viewer, self.media_bps_per_viewer) {
            parts.push(format!(
                "the server sent {} of {} to each",
                bit_rate(server),
                bit_rate(all)
            ));
        }
        if let Some(degree) = self.degree {
            parts.push(format!("{degree:.1} peers each"));
        }
        if self.failures > 0 {
            parts.push(format!("{} segments of peers broke off", self.failures));
        }
        parts.join("; ")
    }

    /// What was really sent and received, in a line; `None` without data channels.
    pub(crate) fn channel_line(&self) -> Option<String> {
        let channels = self.channels.filter(|channels| *channels > 0.0)?;
        let (received, sent) = (self.channel_received_bytes as f64, self.channel_sent_bytes as f64);
        Some(format!(
            "{} received and {} sent over {channels:.1} each",
            bytes(received),
            bytes(sent)
        ))
    }

    /// What late hashes cost, in a line; `None` where they came in time.
    pub(crate) fn hashes_line(&self) -> Option<String> {
        (self.hash_reloads > 0).then(|| {
            let (count, of) = (grouped(self.hash_reloads), noun(self.hash_reloads, "segments"));
            format!(
                "late: {count} {of} came from the server and {was} loaded again, since the list \
                 of hashes did not name {it} in time",
                was = if self.hash_reloads == 1 { "was" } else { "were" },
                it = if self.hash_reloads == 1 { "it" } else { "them" },
            )
        })
    }

    /// The tracker, in a line; `None` where none was asked.
    pub(crate) fn tracker_line(&self) -> Option<String> {
        let broken = match self.tracker_reconnects {
            0 => String::new(),
            count => format!(", {count} connections broken or refused"),
        };
        let all = self.tracker_bytes_sent + self.tracker_bytes_received;
        (self.announces + self.tracker_reconnects > 0).then(|| {
            format!(
                "{} announcements, {} offers and {} answers of others, {}{broken}",
                self.announces,
                self.offers_received,
                self.answers_received,
                bytes(all as f64)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_viewers_sent_is_not_what_the_server_sent() {
        let counters = PlaybackCounters {
            active_us: 10_000_000,
            media_bytes: 1_000_000,
            peer_bytes: 3_000_000,
            peers_us: 45_000_000,
            channels_us: 20_000_000,
            channel_received_bytes: 2_000_000,
            announces: 2,
            ..PlaybackCounters::default()
        };
        let peers = Peers::of_viewers(&counters).unwrap();
        assert_eq!((peers.ratio, peers.degree), (Some(0.75), Some(4.5)));
        assert_eq!(
            peers.line(),
            "75.0 % of the media from other viewers; the server sent 800 kbit/s of 3.20 Mbit/s to each; 4.5 peers each"
        );
        assert_eq!(peers.channel_line().unwrap(), "2.00 MB received and 0 B sent over 2.0 each");
        assert!(peers.tracker_line().unwrap().starts_with("2 announcements"));
        assert_eq!(peers.hashes_line(), None);
        let late = Peers { hash_reloads: 1_204, ..peers };
        assert!(
            late.hashes_line()
                .unwrap()
                .starts_with("late: 1,204 segments came from the server and were loaded")
        );
        let alone = PlaybackCounters { media_bytes: 7, ..PlaybackCounters::default() };
        assert_eq!(Peers::of_viewers(&alone), None);
    }
}
