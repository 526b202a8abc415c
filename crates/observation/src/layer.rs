//! The layers of a simulcast that a receiver can request, and how long a change took to appear.

use crate::TrackId;
use crate::keyed::keyed;
use std::time::Instant;

keyed! {
    /// A simulcast layer (RFC 8853), as servers name them.
    Layer {
        /// None for now, as for a participant that is scrolled out of view; the subscription
        /// remains.
        Off = "off",
        /// The smallest.
        Low = "low",
        /// The middle one, or the larger of two.
        Medium = "medium",
        /// The largest.
        High = "high",
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
