//! The layers of a simulcast that a receiver can request, and how long a change took to appear.

use crate::TrackId;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A simulcast layer (RFC 8853), as servers name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// None for now, as for a participant that is scrolled out of view; the subscription remains.
    Off,
    /// The smallest.
    Low,
    /// The middle one, or the larger of two.
    Medium,
    /// The largest.
    High,
}

impl Layer {
    /// All with their stable keys, the smallest first.
    pub const NAMED: &'static [(Self, &'static str)] = &[
        (Self::Off, Self::Off.key()),
        (Self::Low, Self::Low.key()),
        (Self::Medium, Self::Medium.key()),
        (Self::High, Self::High.key()),
    ];

    /// The stable key: `off`, `low`, `medium`, `high`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Layer::Off => "off",
            Layer::Low => "low",
            Layer::Medium => "medium",
            Layer::High => "high",
        }
    }

    /// The layer of a stable key.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == key).map(|(layer, _)| *layer)
    }
}

/// A request for another layer, and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSwitch {
    /// The received track.
    pub track: TrackId,
    /// The requested layer.
    pub layer: Layer,
    /// When the request was sent.
    pub requested_at: Instant,
    /// When the first decodable frame of that layer was complete, and its width and height in
    /// pixels; `None` when none arrived before the next request or the end. Where the server does
    /// not send the sizes of its layers, the first frame of another size than before counts (any,
    /// after [`Layer::Off`]).
    pub shown: Option<(Instant, u16, u16)>,
}
