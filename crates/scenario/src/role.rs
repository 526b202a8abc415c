//! What the participants of a conference do: what they send, and whom they receive.

use std::time::Duration;

use throng_observation::{Codec, Layer};

/// What a participant of a conference sends and receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// What it sends; `None` for who only watches.
    pub publish: Option<Publish>,
    /// Whom it sees.
    pub video: Subscribe,
    /// Whom it hears.
    pub audio: Subscribe,
    /// It receives each of the others on a peer connection of its own, as clients of older servers did.
    pub connection_per_feed: bool,
    /// Which layer of the others' simulcast it asks for, and when, in order; empty to take what the server gives.
    pub layers: Vec<LayerWish>,
}

/// What a participant sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// Its picture: a size of the test card, such as `240p`; `None` for sound only.
    pub video: Option<String>,
    /// Sizes of the same picture that it sends side by side (RFC 8853), two or three, the smallest first; empty
    /// without simulcast. `video` is `None` then.
    pub simulcast: Vec<String>,
    /// What the picture is coded with: H.264 or VP8.
    pub codec: Codec,
    /// It sends sound like speech.
    pub audio: bool,
}

/// A layer that a participant asks for, of all simulcast pictures that it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerWish {
    /// How long after its join.
    pub after: Duration,
    /// Which.
    pub layer: Layer,
}

/// Whom a participant receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subscribe {
    /// Everybody.
    #[default]
    All,
    /// Nobody.
    Nobody,
}

impl Subscribe {
    /// How the file writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Subscribe::All => "all",
            Subscribe::Nobody => "none",
        }
    }
}

/// The sizes of the test card, as a file names them.
pub const CARD_SIZES: [&str; 5] = ["144p", "180p", "240p", "360p", "720p"];

impl Default for Role {
    /// A pupil of a lesson: a small picture and sound, everybody seen and heard.
    fn default() -> Self {
        Self {
            publish: Some(Publish {
                video: Some("240p".into()),
                simulcast: Vec::new(),
                codec: Codec::Vp8,
                audio: true,
            }),
            video: Subscribe::All,
            audio: Subscribe::All,
            connection_per_feed: false,
            layers: Vec::new(),
        }
    }
}
