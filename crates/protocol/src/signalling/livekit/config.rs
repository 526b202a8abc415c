//! What a participant of a LiveKit room is told beforehand.

use std::time::Duration;

use throng_observation::Layer;
use url::Url;

use super::access::Access;
use super::remote_participants::quality;
use super::wire::VideoLayer;
use crate::signalling::RunMark;
use crate::signalling::room::{Subscription, Subscriptions};

/// What a participant does in which room.
#[derive(Clone, Debug)]
pub struct Config {
    /// `ws:` or `wss:` URL of the server's signalling endpoint (`/rtc`).
    pub url: Url,
    /// The token, or the key that makes one: identity and room are in it.
    pub access: Access,
    /// The mark of the run's names.
    pub mark: RunMark,
    /// It publishes.
    pub publishes: bool,
    /// What it subscribes to at first.
    pub subscriptions: Subscriptions,
    /// The sizes in which it sends its picture, the smallest first; one without simulcast.
    pub layers: Vec<SentLayer>,
    /// How long the server may take for an answer.
    pub answer_within: Duration,
}

/// A size in which a picture is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentLayer {
    /// What receivers call it.
    pub layer: Layer,
    /// Its name in the description; empty without simulcast.
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
    /// Whether the server may subscribe us to everything by itself, as clients do that show everybody.
    pub(super) fn is_automatic(&self) -> bool {
        self.subscriptions.audio == Subscription::All && self.subscriptions.video == Subscription::All
    }

    /// Where to open the WebSocket, speaking version `protocol`.
    pub(super) fn join_url(&self, protocol: &str) -> Url {
        // What this participant does itself is not for the scenario's URL to say.
        let ours = ["protocol", "auto_subscribe", "adaptive_stream"];
        let further: Vec<_> = self.url.query_pairs().into_owned().collect();
        let further = further.into_iter().filter(|(key, _)| !ours.contains(&key.as_str()));
        let subscribe = if self.is_automatic() { "1" } else { "0" };
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .clear()
            .extend_pairs(further)
            .extend_pairs(ours.into_iter().zip([protocol, subscribe, "0"]));
        url
    }
}
