//! The room of a conference, where the run creates it.

use crate::secret::TokenSource;

/// Most rooms of a run: each has its own time series.
pub const ROOMS_MAX: u32 = 1_000;

/// A room that the first participant creates and the last one destroys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoomConfig {
    /// The key that the server requires to create rooms (Janus: `admin_key`).
    pub admin_key: Option<TokenSource>,
    /// Most publishers; `None` for twice the crowd.
    pub publishers: Option<u32>,
    /// The bit rate that the server allows each publisher (REMB), bits per second; `None` for
    /// unlimited.
    pub bits_per_s: Option<f64>,
    /// The video codecs of the room, such as `vp8`; empty for those of the crowd.
    pub video_codecs: Vec<String>,
}
