//! HLS playlists (RFC 8216 and its second edition, draft-pantos-hls-rfc8216bis).
//!
//! Unknown tags are ignored. Known tags with a value that cannot be read are errors, but for what
//! players accept, of which hls.js is taken as the measure:
//! - blank lines and a byte order mark before `#EXTM3U`, blanks at the ends of lines, bytes that
//!   are not UTF-8;
//! - attribute values with or without quotes, whatever their type, and blanks around them;
//! - no `BANDWIDTH` (0), no `EXT-X-VERSION`, fractions in `EXTINF` whatever the version, no comma
//!   after it;
//! - tags of the whole playlist anywhere in it; tags of the other kind of playlist;
//! - a date that cannot be read (the segment has none), a rendition report that cannot be read
//!   (left out), a URI without `EXTINF` (left out);
//! - a byte range without offset after a segment of another file (from its first byte).

mod attributes;
mod lines;
mod master;
mod media;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{MANIFEST_LEN_MAX, ManifestError};
use lines::Lines;
pub use master::{MasterPlaylist, Rendition, RenditionKind, Variant};
pub use media::{
    HintKind, InitSection, Key, MediaPlaylist, Part, PlaylistKind, PreloadHint, RenditionReport,
    Segment, ServerControl,
};

/// A playlist of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Playlist {
    /// The variants of a presentation; RFC 8216bis calls it multivariant.
    Master(MasterPlaylist),
    /// The segments of one rendition.
    Media(Arc<MediaPlaylist>),
}

/// Where playback should begin (`EXT-X-START`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// Microseconds from the beginning; when negative, from the end of the last segment.
    pub time_offset_us: i64,
    /// Not before that moment, even within a segment.
    pub is_precise: bool,
}

/// Variables for `EXT-X-DEFINE` that are not defined in the playlist itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// Those of the master playlist, for `IMPORT`.
    pub imported: BTreeMap<String, String>,
    /// The query parameters of the playlist's own URI, decoded, for `QUERYPARAM`.
    pub query: BTreeMap<String, String>,
}

impl Playlist {
    /// Reads a playlist that imports no variables.
    ///
    /// # Errors
    /// [`ManifestError`] with the line and the tag.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        Self::parse_with(bytes, &Variables::default())
    }

    /// Reads a playlist.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_with(bytes: &[u8], variables: &Variables) -> Result<Self, ManifestError> {
        if bytes.len() > MANIFEST_LEN_MAX {
            return Err(ManifestError::new(
                1,
                "playlist",
                format!("has {} bytes; 16 MiB are read", bytes.len()),
            ));
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}');
        let first = (1..).zip(text.lines()).find(|(_, line)| !line.trim().is_empty());
        match first {
            Some((_, line))
                if line.trim_end().trim_start_matches('\u{feff}').starts_with("#EXTM3U") => {}
            first => {
                let (line, text) = first.unwrap_or((1, ""));
                let problem = format!("is missing; it begins with \"{}\"", super::excerpt(text));
                return Err(ManifestError::new(line, "#EXTM3U", problem));
            }
        }
        // What tells the kinds apart in hls.js.
        let has = |tag: &str| text.lines().any(|line| line.trim_start().starts_with(tag));
        let lines = Lines::new(text, variables);
        if has("#EXTINF:") || has("#EXT-X-TARGETDURATION:") {
            media::read(lines).map(Arc::new).map(Self::Media)
        } else {
            master::read(lines).map(Self::Master)
        }
    }
}

#[cfg(test)]
mod tests;
