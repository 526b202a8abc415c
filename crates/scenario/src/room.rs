//! The room of a conference, where the run makes it.

use crate::target::TokenSource;

/// A room that is made by who joins first, and destroyed by who leaves last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewRoom {
    /// The server's key for making rooms, where it asks for one (Janus: `admin_key`).
    pub admin_key: Option<TokenSource>,
    /// How many may publish; as many as the crowd has when the scenario does not say.
    pub publishers: Option<u32>,
    /// The rate that the server allows each publisher, bits per second; `None` for any.
    pub bits_per_s: Option<f64>,
    /// The picture codecs it takes, such as `vp8`; what the crowd sends when the scenario does not say.
    pub video_codecs: Vec<String>,
}
