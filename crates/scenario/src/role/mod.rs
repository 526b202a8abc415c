//! The behaviour of participants in a conference: the media that they publish and receive.

use std::time::Duration;

use throng_observation::{Codec, Layer, MediaKind};

pub use throng_observation::SubscribePolicy;

use crate::chat::ChatConfig;
use crate::keys::named;
use crate::player::PlayerConfig;
use crate::script::ScriptStep;
use crate::target::{Part, Protocol};

mod keys;
mod layers;
pub(crate) mod publish;
mod script;
mod subscribe;
#[cfg(test)]
mod tests;

/// The role of a participant in a conference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// What it sends; `None` for a pure viewer.
    pub publish: Option<PublishConfig>,
    /// Whom it receives.
    pub subscribe: Subscription,
    /// One peer connection per received participant, as clients of older servers.
    pub connection_per_feed: bool,
    /// The simulcast layers that it requests, in order of time; empty: the server's choice.
    pub layers: Vec<LayerRequest>,
    /// How often it speaks in a conversation, relative to participants of weight 1; 0: never.
    pub speaking_weight: u32,
    /// Its timed actions.
    pub script: Vec<ScriptStep>,
    /// How it plays HTTP video.
    pub player: PlayerConfig,
    /// What it does in a chat.
    pub chat: ChatConfig,
    /// The index of its room; 0 is that of the target's URL.
    pub room: u32,
}

impl Role {
    /// Whether it is in a chat, where its target has `protocol`: a chat itself, one beside a video,
    /// or that of a page.
    #[must_use]
    pub fn is_in_chat(&self, protocol: Protocol) -> bool {
        match protocol.part() {
            Part::Chat => true,
            Part::Visit => self.chat.is_wanted,
            Part::Watch | Part::Publish | Part::Confer => self.chat.beside.is_some(),
        }
    }
}

/// Whose video and audio a participant receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// Whose video.
    pub video: SubscribePolicy,
    /// Whose audio.
    pub audio: SubscribePolicy,
}

impl Subscription {
    /// Nobody's.
    pub const NONE: Self = Self { video: SubscribePolicy::None, audio: SubscribePolicy::None };
}

/// The media that a participant sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishConfig {
    /// A size of the test card, such as `240p`; `None` without the test card, and with simulcast.
    pub video: Option<String>,
    /// Two or three sizes of the test card that it sends at once (RFC 8853), in ascending order;
    /// empty without simulcast.
    pub simulcast: Vec<String>,
    /// The codec of the video.
    pub codec: Codec,
    /// Sends audio: speech-like, or that of [`Self::audio_file`].
    pub audio: bool,
    /// The file of the video, in place of the test card.
    pub video_file: Option<MediaFile>,
    /// The file of the audio.
    pub audio_file: Option<MediaFile>,
    /// Sends a smaller encoding, where there is one, when the server or the network allows less.
    pub adapts: bool,
    /// RTMP and SRT: FFmpeg encodes the picture again, with a clock in it.
    pub burns_clock: bool,
}

impl PublishConfig {
    /// Whether it sends video.
    #[must_use]
    pub fn has_video(&self) -> bool {
        self.video.is_some() || self.video_file.is_some() || !self.simulcast.is_empty()
    }

    /// The files of video and audio.
    pub fn files(&self) -> impl Iterator<Item = &MediaFile> {
        [&self.video_file, &self.audio_file].into_iter().flatten()
    }
}

/// A media file that is played in a loop, and the parameters that its format does not contain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MediaFile {
    /// Its path, as in the scenario.
    pub path: String,
    /// The codec of a byte stream or a capture.
    pub codec: Option<MediaCodec>,
    /// Frame rate of a byte stream, in thousandths of a frame per second.
    pub fps_milli: Option<u32>,
    /// The SSRC of the stream of a capture.
    pub ssrc: Option<u32>,
}

impl MediaFile {
    /// SHA-256 (FIPS 180-4) of the contents of a media file, 64 hexadecimal digits: runs with other
    /// contents under the same path are not the same test.
    #[must_use]
    pub fn digest(contents: &[u8]) -> String {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, contents);
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The codec of a media file, as the scenario gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MediaCodec {
    /// VP8.
    Vp8,
    /// H.264.
    H264,
    /// H.265.
    H265,
    /// VP9.
    Vp9,
    /// AV1.
    Av1,
    /// Opus.
    Opus,
}

named! {
    MediaCodec: Vp8 = "vp8", H264 = "h264", H265 = "h265", Vp9 = "vp9", Av1 = "av1", Opus = "opus",
}

impl MediaCodec {
    /// The codec.
    #[must_use]
    pub fn codec(self) -> Codec {
        Codec::from_name(self.name())
    }

    /// What it is of.
    #[must_use]
    pub fn kind(self) -> MediaKind {
        match self {
            Self::Vp8 | Self::H264 | Self::H265 | Self::Vp9 | Self::Av1 => MediaKind::Video,
            Self::Opus => MediaKind::Audio,
        }
    }
}

/// A request for a layer of all simulcast video that a participant receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerRequest {
    /// Time after its join.
    pub after: Duration,
    /// The layer.
    pub layer: Layer,
}

/// The sizes of the test card.
pub const CARD_SIZES: [&str; 6] = ["144p", "180p", "240p", "360p", "720p", "1080p"];
/// The bit rate of each of [`CARD_SIZES`], bits per second.
pub const CARD_BITS_PER_S: [u32; 6] = [64_000, 90_000, 256_000, 1_000_000, 2_500_000, 4_500_000];
/// The extensions of media files.
pub(crate) const MEDIA_ENDINGS: [&str; 11] =
    [".mjr", ".ivf", ".h264", ".264", ".h265", ".265", ".hevc", ".ogg", ".opus", ".pcap", ".cap"];

impl Default for Role {
    /// Sends small video and audio, and receives all participants.
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
                burns_clock: false,
            }),
            subscribe: Subscription::default(),
            connection_per_feed: false,
            layers: Vec::new(),
            speaking_weight: 1,
            script: Vec::new(),
            player: PlayerConfig::default(),
            chat: ChatConfig::default(),
            room: 0,
        }
    }
}
