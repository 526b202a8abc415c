//! Master playlists (RFC 8216bis section 4.4.6).

use std::collections::BTreeMap;

use super::Start;
use super::attributes::Attributes;
use super::lines::{Line, Lines, What};
use super::media::start;
use crate::manifest::ManifestError;

/// Variants and renditions of a playlist.
const ENTRIES_MAX: usize = 10_000;

/// A master playlist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MasterPlaylist {
    /// The variants, in the order of the playlist.
    pub variants: Vec<Variant>,
    /// Alternative renditions, which variants refer to by their groups.
    pub renditions: Vec<Rendition>,
    /// Every segment can be decoded without those before it.
    pub is_independent: bool,
    /// Where playback should begin.
    pub start: Option<Start>,
    /// The variables, which media playlists may import ([`super::Variables::imported`]).
    pub variables: BTreeMap<String, String>,
}

/// A variant (`EXT-X-STREAM-INF`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Its media playlist.
    pub uri: String,
    /// Peak bit rate of all that is played with it; 0 when the playlist does not say.
    pub bandwidth_bps: u64,
    /// Average bit rate.
    pub average_bandwidth_bps: Option<u64>,
    /// Codecs in the form of RFC 6381, separated by commas.
    pub codecs: Option<String>,
    /// Width and height, pixels.
    pub resolution: Option<(u32, u32)>,
    /// Highest frame rate, Hz.
    pub frame_rate_hz: Option<f64>,
    /// The group of its audio renditions.
    pub audio: Option<String>,
    /// The group of its video renditions.
    pub video: Option<String>,
    /// The group of its subtitles.
    pub subtitles: Option<String>,
}

/// What a rendition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenditionKind {
    /// Audio.
    Audio,
    /// Video.
    Video,
    /// Subtitles.
    Subtitles,
    /// Captions within the video.
    ClosedCaptions,
}

/// An alternative rendition (`EXT-X-MEDIA`).
#[derive(Clone, Debug, PartialEq)]
pub struct Rendition {
    /// What it is.
    pub kind: RenditionKind,
    /// Its group.
    pub group: String,
    /// Its name.
    pub name: String,
    /// Its media playlist; `None`: it is in the variant's own.
    pub uri: Option<String>,
    /// RFC 5646.
    pub language: Option<String>,
    /// Played unless the user chooses another.
    pub is_default: bool,
    /// May be chosen without the user, by language for example.
    pub is_autoselect: bool,
    /// Number of channels and more.
    pub channels: Option<String>,
}

pub(super) fn read(mut lines: Lines<'_>) -> Result<MasterPlaylist, ManifestError> {
    let mut playlist = MasterPlaylist::default();
    let mut variant: Option<(Variant, Line<'_>)> = None;
    let mut last = 1;
    while let Some(line) = lines.next()? {
        last = line.number;
        match &line.what {
            What::Uri(uri) => {
                if let Some((variant, _)) = variant.take() {
                    playlist.variants.push(Variant { uri: uri.clone().into_owned(), ..variant });
                }
            }
            What::Tag("EXT-X-STREAM-INF", value) => {
                let read =
                    Attributes::parse(value).and_then(|attributes| self::variant(&attributes));
                variant = Some((read.map_err(|problem| line.error(problem))?, line.clone()));
            }
            What::Tag("EXT-X-MEDIA", value) => {
                let read = Attributes::parse(value).and_then(|attributes| rendition(&attributes));
                playlist.renditions.push(read.map_err(|problem| line.error(problem))?);
            }
            What::Tag("EXT-X-INDEPENDENT-SEGMENTS", _) => playlist.is_independent = true,
            What::Tag("EXT-X-START", value) => {
                playlist.start = Some(start(value).map_err(|problem| line.error(problem))?);
            }
            What::Tag(..) => {}
        }
        if playlist.variants.len() + playlist.renditions.len() > ENTRIES_MAX {
            return Err(line.error(format!("is one of more than {ENTRIES_MAX}")));
        }
    }
    if let Some((_, line)) = variant {
        return Err(line.error("is not followed by a URI"));
    }
    if playlist.variants.is_empty() {
        return Err(ManifestError::new(
            last,
            "playlist",
            "has neither segments (#EXTINF) nor variants (#EXT-X-STREAM-INF)",
        ));
    }
    playlist.variables = std::mem::take(&mut lines.defined);
    Ok(playlist)
}

fn variant(attributes: &Attributes<'_>) -> Result<Variant, std::borrow::Cow<'static, str>> {
    let resolution = attributes.get("RESOLUTION").map(|text| {
        let sides = text.split_once(['x', 'X']).and_then(|(width, height)| {
            Some((width.trim().parse().ok()?, height.trim().parse().ok()?))
        });
        sides.ok_or_else(|| {
            format!("has RESOLUTION=\"{}\", not widthxheight", crate::manifest::excerpt(text))
        })
    });
    Ok(Variant {
        uri: String::new(),
        bandwidth_bps: attributes.number("BANDWIDTH")?.unwrap_or_default(),
        average_bandwidth_bps: attributes.number("AVERAGE-BANDWIDTH")?,
        codecs: attributes.text("CODECS"),
        resolution: resolution.transpose()?,
        frame_rate_hz: attributes
            .number::<f64>("FRAME-RATE")?
            .filter(|hz| hz.is_finite() && *hz > 0.0),
        audio: attributes.text("AUDIO"),
        video: attributes.text("VIDEO"),
        subtitles: attributes.text("SUBTITLES"),
    })
}

fn rendition(attributes: &Attributes<'_>) -> Result<Rendition, std::borrow::Cow<'static, str>> {
    let kind = match attributes.required("TYPE")? {
        "AUDIO" => RenditionKind::Audio,
        "VIDEO" => RenditionKind::Video,
        "SUBTITLES" => RenditionKind::Subtitles,
        "CLOSED-CAPTIONS" => RenditionKind::ClosedCaptions,
        other => return Err(format!("has TYPE=\"{}\"", crate::manifest::excerpt(other)).into()),
    };
    Ok(Rendition {
        kind,
        group: attributes.required("GROUP-ID")?.to_owned(),
        name: attributes.text("NAME").unwrap_or_default(),
        uri: attributes.text("URI"),
        language: attributes.text("LANGUAGE"),
        is_default: attributes.is_yes("DEFAULT"),
        is_autoselect: attributes.is_yes("AUTOSELECT") || attributes.is_yes("DEFAULT"),
        channels: attributes.text("CHANNELS"),
    })
}
