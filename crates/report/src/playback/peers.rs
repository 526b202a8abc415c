//! What viewers got from each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::PlaybackCounters;
use throng_observation::units::{bit_rate, bytes, noun, percent};

use crate::requests::grouped;

/// Peer-to-peer delivery between the viewers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peers {
    /// Bytes of media that other viewers sent ÷ all bytes of media; `null` without media.
    pub ratio: Option<f64>,
    /// Bytes of media that other viewers sent.
    pub bytes: u64,
    /// Segments that they sent.
    pub segments: u64,
    /// Segments that they began to send and that did not come whole.
    pub failures: u64,
    /// Segments of the server that were loaded again because their hash came too late, or not at
    /// all.
    #[serde(default)]
    pub hash_reloads: u64,
    /// Bytes of media that the viewers sent to others.
    pub uploaded_bytes: u64,
    /// Part of `bytes` that came over data channels, from browsers or viewers of other processes.
    #[serde(default)]
    pub channel_received_bytes: u64,
    /// Part of `uploaded_bytes` that was sent over data channels.
    #[serde(default)]
    pub channel_sent_bytes: u64,
    /// Data channels of a viewer, on average over its time and over all viewers; part of `degree`.
    #[serde(default)]
    pub channels: Option<f64>,
    /// Peers of a viewer, on average over its time.
    pub degree: Option<f64>,
    /// Bits per second that the server sent to each viewer, media only.
    pub server_bps_per_viewer: Option<f64>,
    /// Bits per second of media that each viewer received, from whomever: what the server would
    /// send without peers.
    pub media_bps_per_viewer: Option<f64>,
    /// Announcements to the tracker.
    pub announces: u64,
    /// Offers of others that the tracker brought.
    pub offers_received: u64,
    /// Answers of others to offers.
    pub answers_received: u64,
    /// Bytes of messages to the tracker.
    pub tracker_bytes_sent: u64,
    /// Bytes of messages of the tracker.
    pub tracker_bytes_received: u64,
    /// Connections to the tracker that broke, or could not be made.
    pub tracker_reconnects: u64,
}

impl Peers {
    /// Of these counters; `None` where viewers had no peers and asked no tracker.
    pub(crate) fn of(c: &PlaybackCounters) -> Option<Self> {
        if c.peers_us == 0 && c.announces == 0 && c.tracker_reconnects == 0 {
            return None;
        }
        Some(Self {
            ratio: c.peer_ratio(),
            bytes: c.peer_bytes,
            segments: c.peer_segments,
            failures: c.peer_failures,
            hash_reloads: c.hash_reloads,
            uploaded_bytes: c.uploaded_bytes,
            channel_received_bytes: c.channel_received_bytes,
            channel_sent_bytes: c.channel_sent_bytes,
            channels: (c.active_us > 0).then(|| c.channels_us as f64 / c.active_us as f64),
            degree: (c.active_us > 0).then(|| c.peers_us as f64 / c.active_us as f64),
            server_bps_per_viewer: c.bps_per_player(c.media_bytes),
            media_bps_per_viewer: c.bps_per_player(c.all_media_bytes()),
            announces: c.announces,
            offers_received: c.offers_received,
            answers_received: c.answers_received,
            tracker_bytes_sent: c.tracker_bytes_sent,
            tracker_bytes_received: c.tracker_bytes_received,
            tracker_reconnects: c.tracker_reconnects,
        })
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
        let peers = Peers::of(&counters).unwrap();
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
        assert_eq!(Peers::of(&PlaybackCounters { media_bytes: 7, ..Default::default() }), None);
    }
}
