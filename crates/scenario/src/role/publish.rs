//! `publish` of a cohort in a file.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use throng_observation::Codec;

use super::{CARD_SIZES, MEDIA_ENDINGS, MediaCodec, MediaFile, PublishConfig};
use crate::keys::Usual::{LeftOut, Said, Stored};
use crate::keys::{
    AsFile, By, Flag, Keyed, Maybe, Named as _, Table, Whole, Word, in_any_case, keys,
};
use crate::read::{Fields, Node, Reader, Span, Value};

const EXAMPLE: &str = "\"none\", or a table such as { video = \"240p\", audio = true }";
/// How many sizes are sent at once, at least and at most.
const SIMULCAST_SIZES: (usize, usize) = (2, 3);
/// Largest SSRC.
const SSRC_MAX: u64 = 0xffff_ffff;

/// How it is read, written and described.
pub(super) const PUBLISH: AsFile<Option<PublishConfig>, PublishFile> = AsFile {
    read: |reader, node, path| Some(read(reader, node, path)),
    write: |publish| match publish {
        Some(publish) => PublishFile::Table(Table::of(&PublishTable::of(publish))),
        None => PublishFile::Word(Nothing::None),
    },
};

/// Media that a participant of a conference sends.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum PublishFile {
    /// Nothing.
    Word(Nothing),
    /// Video, audio, or both.
    Table(Table<PublishTable>),
}

/// `none`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Nothing {
    /// Nothing.
    None,
}

/// The table: its keys describe the test card as well as files.
pub(crate) struct PublishTable {
    /// A size of the test card, or the path of a file.
    video: Option<String>,
    simulcast: Vec<String>,
    audio: AudioFile,
    codec: Option<MediaCodec>,
    adapts: bool,
    burns_clock: bool,
    fps_milli: Option<u32>,
    ssrc: Option<u32>,
    audio_ssrc: Option<u32>,
}

/// Audio.
#[derive(PartialEq, Serialize)]
#[serde(untagged)]
enum AudioFile {
    /// Speech-like audio, or none.
    Speech(bool),
    /// A file.
    File(String),
}

impl Keyed for PublishTable {
    const NAME: &'static str = "PublishTable";
    const MEANING: &'static str = "Video, audio, or both.";

    keys! {
        /// a size of the test card (`144p`, `180p`, `240p`, `360p`, `720p`, `1080p`), or a file
        "video": video = Maybe(VIDEO), Said("no video");
        /// in place of `video`, two or three sizes of the test card sent at once, `["144p", "240p",
        /// "720p"]` (LiveKit, Janus, WHIP)
        "simulcast": simulcast = SIMULCAST, Said("one encoding");
        /// `true` for speech-like audio, `false`, or a file
        "audio": audio = AUDIO, Stored;
        /// `vp8` or `h264` for the test card; the codec of a byte stream (`h264`, `h265`) or a
        /// capture. Without video it is an error
        "codec": codec = Maybe(Word), Said("`vp8`; by RTMP and SRT `h264`");
        /// `true` sends smaller sizes of the test card, or fewer simulcast layers, when the server
        /// or the network allows less; `false` always sends what is configured. A file has one rate
        "adapt": adapts = Flag, LeftOut;
        /// RTMP and SRT: FFmpeg encodes the picture again, with a clock in it
        /// ([ingest.md](ingest.md#two-clocks))
        "burn_clock": burns_clock = Flag, LeftOut;
        /// frame rate of a byte stream, 0.1 to 1000. Without a file as `video` it is an error
        "fps": fps_milli = Maybe(FPS), Said("30");
        /// the SSRC of the video in a capture. Without a file as `video` it is an error
        "ssrc": ssrc = Maybe(Whole(0, SSRC_MAX)), Said("the largest stream");
        /// the SSRC of the audio in a capture. Without a file as `audio` it is an error
        "audio_ssrc": audio_ssrc = Maybe(Whole(0, SSRC_MAX)), Said("the largest stream");
    }

    fn usual() -> Self {
        Self {
            video: None,
            simulcast: Vec::new(),
            audio: AudioFile::Speech(true),
            codec: None,
            adapts: true,
            burns_clock: false,
            fps_milli: None,
            ssrc: None,
            audio_ssrc: None,
        }
    }
}

const VIDEO: By<String> = By {
    read: |reader, fields, key| {
        file(reader, fields, key).or_else(|| reader.word(fields, key, &CARD_SIZES))
    },
    write: |video| Some(video.as_str().into()),
    schema: |_| {
        let sizes = CARD_SIZES.join("|");
        json!({ "type": "string", "pattern": format!("^({sizes})$|{}", file_pattern()) })
    },
};

const SIMULCAST: By<Vec<String>> = By {
    read: |reader, fields, key| Some(simulcast(reader, fields, key)),
    write: |sizes| Some(sizes.clone().into()),
    schema: |_| {
        let size = json!({ "type": "string", "enum": CARD_SIZES });
        let (least, most) = SIMULCAST_SIZES;
        json!({
            "type": "array", "minItems": least, "maxItems": most, "uniqueItems": true,
            "items": size,
        })
    },
};

const AUDIO: By<AudioFile> = By {
    read: |reader, fields, key| {
        let path = file(reader, fields, key).map(AudioFile::File);
        path.or_else(|| reader.boolean(fields, key).map(AudioFile::Speech))
    },
    write: |audio| serde_json::to_value(audio).ok(),
    schema: |_| {
        json!({ "anyOf": [
            { "type": "boolean" },
            { "type": "string", "pattern": file_pattern() },
        ] })
    },
};

/// The frame rate in thousandths.
const FPS: By<u32> = By {
    read: |reader, fields, key| {
        let fps = reader.positive(fields, key)?;
        if !(0.1..=1_000.0).contains(&fps) {
            let message = format!("`{}` must be from 0.1 to 1000", fields.path_of(key));
            reader.fail(fields.span_of(key), message, "write fps = 30");
        }
        Some((fps * 1e3).round() as u32)
    },
    write: |milli| Some((f64::from(*milli) / 1e3).into()),
    schema: |_| json!({ "type": "number", "minimum": 0.1, "maximum": 1_000 }),
};

/// The pattern of the path of a media file.
fn file_pattern() -> String {
    format!("({})$", MEDIA_ENDINGS.map(in_any_case).join("|"))
}

/// Whether a text is meant as the path of a file: a size of the test card has neither of these.
fn is_file(text: &str) -> bool {
    text.contains(['.', '/'])
}

impl PublishTable {
    /// As a file says it.
    fn of(publish: &PublishConfig) -> Self {
        let PublishConfig {
            video,
            simulcast,
            codec,
            audio,
            video_file,
            audio_file,
            adapts,
            burns_clock,
        } = publish;
        let has_card = video.is_some() || !simulcast.is_empty();
        let of_card = || MediaCodec::of_name(&codec.name().to_ascii_lowercase());
        let (of_video, of_audio) = (video_file.as_ref(), audio_file.as_ref());
        let audio_path = of_audio.map(|file| AudioFile::File(file.path.clone()));
        Self {
            video: of_video.map(|file| file.path.clone()).or_else(|| video.clone()),
            simulcast: simulcast.clone(),
            audio: audio_path.unwrap_or(AudioFile::Speech(*audio)),
            codec: match of_video {
                Some(file) => file.codec,
                None => has_card.then(of_card).flatten(),
            },
            adapts: *adapts,
            burns_clock: *burns_clock,
            fps_milli: of_video.and_then(|file| file.fps_milli),
            ssrc: of_video.and_then(|file| file.ssrc),
            audio_ssrc: of_audio.and_then(|file| file.ssrc),
        }
    }

    /// What is sent; the codec of the test card is VP8.
    fn config(self) -> PublishConfig {
        let Self {
            video,
            simulcast,
            audio,
            codec,
            adapts,
            burns_clock,
            fps_milli,
            ssrc,
            audio_ssrc,
        } = self;
        let (video_file, video) = match video {
            Some(path) if is_file(&path) => {
                (Some(MediaFile { path, codec, fps_milli, ssrc }), None)
            }
            video => (None, video),
        };
        let (audio_file, audio) = match audio {
            AudioFile::File(path) => {
                let codec = Some(MediaCodec::Opus);
                (Some(MediaFile { path, codec, fps_milli: None, ssrc: audio_ssrc }), true)
            }
            AudioFile::Speech(is_on) => (None, is_on),
        };
        let codec = Codec::Vp8;
        PublishConfig {
            video,
            simulcast,
            codec,
            audio,
            video_file,
            audio_file,
            adapts,
            burns_clock,
        }
    }
}

fn read(reader: &mut Reader, node: &Node, path: &str) -> Option<PublishConfig> {
    if matches!(&node.value, Value::Text(text) if text == "none") {
        return None;
    }
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let table = crate::keys::read(reader, &mut fields, PublishTable::usual());
    let codec = table.codec;
    let publish = table.config();
    for (key, media, file) in [
        ("fps", "video", &publish.video_file),
        ("ssrc", "video", &publish.video_file),
        ("audio_ssrc", "audio", &publish.audio_file),
    ] {
        if let (None, Some(span)) = (file, fields.span_of(key)) {
            let message = format!("`{path}.{key}` has no effect: `{media}` is not a file");
            reader.fail(span, message, format!("remove {key}, or name a file as `{media}`"));
        }
    }
    let codec = test_card_codec(reader, &publish, codec, (path, fields.span_of("codec")))?;
    if !publish.has_video() && !publish.audio {
        reader.fail(
            node.span,
            format!("`{path}` sends neither video nor audio"),
            "write publish = \"none\"",
        );
    }
    if (publish.video.is_some() || publish.video_file.is_some()) && !publish.simulcast.is_empty() {
        let message = format!("`{path}` has both video and simulcast");
        reader.fail(node.span, message, "remove video: simulcast lists all sizes");
    }
    Some(PublishConfig { codec, ..publish })
}

/// The codec of the published video; `None` if there is no video. The test card comes in VP8 and
/// H.264, other codecs from files only.
fn test_card_codec(
    reader: &mut Reader,
    publish: &PublishConfig,
    codec: Option<MediaCodec>,
    (path, span): (&str, Option<Span>),
) -> Option<Codec> {
    let Some(codec) = codec else { return Some(Codec::Vp8) };
    if !publish.has_video() && reader.is_clean() {
        let video = if matches!(codec.name(), "vp8" | "h264") { "240p" } else { "FILE" };
        let message = format!("`{path}.codec` has no effect: `video` is missing");
        reader.fail(
            span,
            message,
            format!("add video = \"{video}\", or remove codec to send audio only"),
        );
        return None;
    }
    let codec = codec.codec();
    if !matches!(codec, Codec::Vp8 | Codec::H264) && publish.video_file.is_none() {
        let message = format!("`{path}.codec`: there is no test card in {}", codec.name());
        reader.fail(span, message, "write codec = \"vp8\" or \"h264\", or name a file as `video`");
    }
    Some(codec)
}

/// The path of a media file; `None` if the value is none.
fn file(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let Value::Text(text) = &node.value else { return None };
    let lower = text.to_ascii_lowercase();
    if MEDIA_ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
        return Some(text.clone());
    }
    if is_file(text) {
        let endings = MEDIA_ENDINGS.join(", ");
        let message = format!("`{path}` has no known file name extension");
        reader.fail(
            node.span,
            message,
            format!("name a file with one of the extensions {endings}"),
        );
        return Some(text.clone());
    }
    None
}

/// Two or three sizes of the test card, in ascending order.
fn simulcast(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Vec<String> {
    let path = fields.path_of(key);
    let help = format!("write two or three of \"{}\"", CARD_SIZES.join("\", \""));
    let texts = reader.texts(fields, key, "a list of sizes such as [\"180p\", \"720p\"]");
    let node = fields.get(key);
    let is_list = node.is_some_and(|node| matches!(node.value, Value::List(_)));
    if texts.is_empty() && !is_list {
        return Vec::new();
    }
    let mut places = Vec::new();
    for (text, node) in &texts {
        match CARD_SIZES.iter().position(|size| size == text) {
            Some(place) => places.push(place),
            None => {
                let shown: String = text.chars().take(60).collect();
                reader.fail(
                    node.span,
                    format!("`{path}`: `{shown}` is not a size of the test card"),
                    help.clone(),
                );
            }
        }
    }
    if places.len() != texts.len() {
        return Vec::new();
    }
    places.sort_unstable();
    places.dedup();
    let (least, most) = SIMULCAST_SIZES;
    if places.len() != texts.len() || !(least..=most).contains(&places.len()) {
        let first = texts.first().map(|(_, node)| *node).or(node).map(|node| node.span);
        reader.fail(first, format!("`{path}` must have two or three different sizes"), help);
        return Vec::new();
    }
    places
        .into_iter()
        .filter_map(|place| CARD_SIZES.get(place))
        .map(|size| (*size).to_owned())
        .collect()
}
