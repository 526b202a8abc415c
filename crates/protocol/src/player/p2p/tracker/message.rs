//! Messages to and from a WebTorrent tracker (`bittorrent-tracker`), one JSON object each.

use serde::{Deserialize, Serialize};

/// An announcement; members in the order in which the client of WebTorrent writes them.
#[derive(Serialize)]
pub(super) struct Announce {
    pub(super) numwant: usize,
    pub(super) uploaded: u64,
    pub(super) downloaded: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<&'static str>,
    pub(super) action: &'static str,
    pub(super) info_hash: String,
    pub(super) peer_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) offers: Vec<Offer>,
}

#[derive(Serialize)]
pub(super) struct Offer {
    pub(super) offer: Description,
    pub(super) offer_id: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Description {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) sdp: String,
}

/// The answer to an offer of another peer.
#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) action: &'static str,
    pub(super) info_hash: String,
    pub(super) peer_id: String,
    pub(super) to_peer_id: String,
    pub(super) answer: Description,
    pub(super) offer_id: String,
}

/// What a tracker says.
#[derive(Deserialize)]
pub(super) struct TrackerMessage {
    pub(super) action: Option<String>,
    pub(super) info_hash: Option<String>,
    pub(super) peer_id: Option<String>,
    pub(super) offer_id: Option<String>,
    pub(super) offer: Option<Description>,
    pub(super) answer: Option<Description>,
    pub(super) interval: Option<f64>,
    #[serde(rename = "min interval")]
    pub(super) min_interval: Option<f64>,
    #[serde(rename = "failure reason")]
    pub(super) failure: Option<String>,
    #[serde(rename = "warning message")]
    pub(super) warning: Option<String>,
}
