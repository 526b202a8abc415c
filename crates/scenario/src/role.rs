//! What the participants of a conference do: what they send, and whom they receive.

use std::time::Duration;

use throng_observation::{Codec, Layer};

use crate::script::ScriptStep;

/// What a participant of a conference sends and receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// What it sends; `None` for who only watches.
    pub publish: Option<PublishConfig>,
    /// Whom it sees.
    pub video: SubscribePolicy,
    /// Whom it hears.
    pub audio: SubscribePolicy,
    /// It receives each of the others on a peer connection of its own, as clients of older servers did.
    pub connection_per_feed: bool,
    /// Which layer of the others' simulcast it asks for, and when, in order; empty to take what the server gives.
    pub layers: Vec<LayerRequest>,
    /// How often it speaks beside others of weight 1, where there is a conversation model; 0 for who only listens.
    pub speaking_weight: u32,
    /// What it does at which moments.
    pub script: Vec<ScriptStep>,
    /// Its room: 0 is that of the target's URL.
    pub room: u32,
}

/// What a participant sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishConfig {
    /// Its picture: a size of the test card, such as `240p`; `None` for sound only.
    pub video: Option<String>,
    /// Sizes of the same picture that it sends side by side (RFC 8853), two or three, the smallest first; empty
    /// without simulcast. `video` is `None` then.
    pub simulcast: Vec<String>,
    /// What the picture is coded with: H.264 or VP8.
    pub codec: Codec,
    /// It sends sound: like speech, or that of [`Self::audio_file`].
    pub audio: bool,
    /// The file that is its picture, in place of the test card.
    pub video_file: Option<MediaFile>,
    /// The file that is its sound.
    pub audio_file: Option<MediaFile>,
    /// It sends less when the server or the path allow less, where it has less to send.
    pub adapts: bool,
}

impl PublishConfig {
    /// It sends a picture.
    #[must_use]
    pub fn has_video(&self) -> bool {
        self.video.is_some() || self.video_file.is_some() || !self.simulcast.is_empty()
    }

    /// The files that it plays.
    pub fn files(&self) -> impl Iterator<Item = &MediaFile> {
        [&self.video_file, &self.audio_file].into_iter().flatten()
    }
}

/// A file that is played in a loop, and what has to be known of one that does not say it itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MediaFile {
    /// Where it lies, as the scenario says.
    pub path: String,
    /// What a byte stream or a capture is coded with.
    pub codec: Option<MediaCodec>,
    /// Frames a second of a byte stream, in thousandths.
    pub fps_milli: Option<u32>,
    /// Which stream of a capture to play.
    pub ssrc: Option<u32>,
}

/// A codec that a file can be told to be coded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MediaCodec(usize);

impl MediaCodec {
    /// All of them, as a scenario writes them.
    pub const NAMES: [&str; 6] = ["vp8", "h264", "h265", "vp9", "av1", "opus"];

    /// The codec that a scenario writes so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|known| *known == name).map(Self)
    }

    /// How a scenario writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.get(self.0).copied().unwrap_or_default()
    }

    /// The codec.
    #[must_use]
    pub fn codec(self) -> Codec {
        Codec::from_name(self.name())
    }
}

/// A layer that a participant asks for, of all simulcast pictures that it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerRequest {
    /// How long after its join.
    pub after: Duration,
    /// Which.
    pub layer: Layer,
}

/// Whom a participant receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubscribePolicy {
    /// Everybody.
    #[default]
    All,
    /// Nobody.
    Nobody,
    /// So many of those who spoke last.
    LastSpeakers(u16),
}

impl SubscribePolicy {
    /// How the file writes it.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            SubscribePolicy::All => "all".into(),
            SubscribePolicy::Nobody => "none".into(),
            SubscribePolicy::LastSpeakers(count) => format!("last_speakers({count})"),
        }
    }

    /// Whom a file means.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let count = |text: &str| text.strip_prefix("last_speakers(")?.strip_suffix(')')?.trim().parse().ok();
        match name {
            "all" => Some(SubscribePolicy::All),
            "none" => Some(SubscribePolicy::Nobody),
            _ => count(name).filter(|count| *count > 0).map(SubscribePolicy::LastSpeakers),
        }
    }

    /// How many of `others` it receives at a time.
    #[must_use]
    pub fn count_of(self, others: u64) -> u64 {
        match self {
            SubscribePolicy::All => others,
            SubscribePolicy::Nobody => 0,
            SubscribePolicy::LastSpeakers(count) => others.min(u64::from(count)),
        }
    }
}

/// The sizes of the test card, as a file names them.
pub const CARD_SIZES: [&str; 5] = ["144p", "180p", "240p", "360p", "720p"];
/// What each of [`CARD_SIZES`] is encoded for, bits per second.
pub const CARD_BITS_PER_S: [u32; 5] = [64_000, 90_000, 256_000, 1_000_000, 2_500_000];
/// The file endings that are taken for media files.
pub(crate) const MEDIA_ENDINGS: [&str; 11] =
    [".mjr", ".ivf", ".h264", ".264", ".h265", ".265", ".hevc", ".ogg", ".opus", ".pcap", ".cap"];

impl Default for Role {
    /// A pupil of a lesson: a small picture and sound, everybody seen and heard.
    fn default() -> Self {
        Self {
            publish: Some(PublishConfig {
                video: Some("240p".into()),
                simulcast: Vec::new(),
                codec: Codec::Vp8,
                audio: true,
                video_file: None,
                audio_file: None,
                adapts: true,
            }),
            video: SubscribePolicy::All,
            audio: SubscribePolicy::All,
            connection_per_feed: false,
            layers: Vec::new(),
            speaking_weight: 1,
            script: Vec::new(),
            room: 0,
        }
    }
}
