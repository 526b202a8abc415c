//! The room of a conference, where the run creates it.

use serde_json::json;
use throng_observation::MediaKind;

use crate::keys::Usual::Said;
use crate::keys::{By, Keyed, Maybe, Named as _, SECRET_LEFT_OUT, Whole, bit_rate, keys};
use crate::role::MediaCodec;
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

impl Keyed for RoomConfig {
    const NAME: &'static str = "RoomFile";
    const MEANING: &'static str = "The room of a conference, which the first participant creates \
        and the last one destroys.";

    keys! {
        /// the key that Janus requires to create rooms: `"env:NAME"`, `"file:PATH"`, or the key
        /// itself
        "admin_key": admin_key = Maybe(SECRET_LEFT_OUT), Said("none");
        /// the largest number of publishers
        "publishers": publishers = Maybe(Whole(1, 100_000)), Said("twice the crowd of a room");
        /// the bit rate that the server allows each publisher (REMB), `"256kbit/s"`
        "bitrate": bits_per_s = Maybe(bit_rate("256kbit/s")), Said("unlimited");
        /// the video codecs of the room, `["vp8", "h264"]`
        "video_codecs": video_codecs = CODECS, Said("those of the crowd");
    }

    fn usual() -> Self {
        Self::default()
    }
}

/// The names of the video codecs of a room.
fn video_codecs() -> Vec<&'static str> {
    let video = MediaCodec::ALL.iter().filter(|(codec, _)| codec.kind() == MediaKind::Video);
    video.map(|(_, name)| *name).collect()
}

/// A video codec, or a list of several.
const CODECS: By<Vec<String>> = By {
    read: |reader, fields, key| {
        let path = fields.path_of(key);
        let known = video_codecs();
        let expected = format!("a list of codecs, each one of \"{}\"", known.join("\", \""));
        let mut codecs = Vec::new();
        for (codec, node) in reader.texts(fields, key, &expected) {
            if !known.contains(&codec.as_str()) {
                let message = format!("`{path}` is not {expected}");
                reader.fail(node.span, message, "write video_codecs = [\"vp8\"]");
            }
            codecs.push(codec);
        }
        Some(codecs)
    },
    write: |codecs| Some(codecs.clone().into()),
    schema: |_| {
        let codec = json!({ "type": "string", "enum": video_codecs() });
        json!({ "anyOf": [codec, { "type": "array", "items": codec }] })
    },
};
