//! The configuration of a LiveKit participant.

use std::time::Duration;

use throng_observation::{Layer, Url};

use super::access::Access;
use super::remote_participants::quality;
use super::wire::VideoLayer;
use crate::signalling::RunMark;
use crate::signalling::room::{Subscription, Subscriptions};

/// The room of a participant, and what it does there.
#[derive(Clone, Debug)]
pub struct Config {
    /// `ws:` or `wss:` URL of the server's signalling endpoint (`/rtc`).
    pub url: Url,
    /// The token, or the key that signs one; both carry identity and room.
    pub access: Access,
    /// The suffix of the run's names.
    pub mark: RunMark,
    /// Whether it publishes.
    pub publishes: bool,
    /// Its subscriptions at the beginning.
    pub subscriptions: Subscriptions,
    /// The layers in which it sends its video, the smallest first; one without simulcast.
    pub layers: Vec<SentLayer>,
    /// How long the server may take to answer.
    pub answer_within: Duration,
}

/// A layer in which video is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentLayer {
    /// The layer that receivers select it by.
    pub layer: Layer,
    /// Its RID in the description; empty without simulcast.
    pub rid: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Bits per second.
    pub bitrate_bps: u32,
}

impl SentLayer {
    pub(super) fn to_wire(&self) -> VideoLayer {
        let mut layer = VideoLayer {
            width: self.width,
            height: self.height,
            bitrate: self.bitrate_bps,
            rid: self.rid.clone(),
            ..VideoLayer::default()
        };
        layer.set_quality(quality(self.layer));
        layer
    }
}

impl Config {
    /// Whether the server may subscribe the participant to every track, as clients do that show all
    /// participants.
    pub(super) fn is_automatic(&self) -> bool {
        self.subscriptions.audio == Subscription::All
            && self.subscriptions.video == Subscription::All
    }

    /// The URL of the WebSocket, with protocol version `protocol`.
    pub(super) fn join_url(&self, protocol: &str) -> Url {
        // The adapter sets these parameters itself; those in the scenario's URL are dropped.
        let ours = ["protocol", "auto_subscribe", "adaptive_stream"];
        let further: Vec<_> = self.url.in_clear().query_pairs().into_owned().collect();
        let subscribe = if self.is_automatic() { "1" } else { "0" };
        let mut url = self.url.clone();
        url.set_query(None);
        for (name, value) in further.iter().filter(|(name, _)| !ours.contains(&name.as_str())) {
            url.add_parameter(name, value);
        }
        for (name, value) in ours.into_iter().zip([protocol, subscribe, "0"]) {
            url.add_parameter(name, value);
        }
        url
    }
}
