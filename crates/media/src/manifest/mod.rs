//! Manifests of streaming over HTTP: the playlists of HLS and the MPD of DASH. They say which files
//! a player fetches, and when. URIs stay as they are written; the caller resolves them.

mod cache;

pub mod dash;
pub mod hls;

use std::borrow::Cow;

pub use cache::PlaylistCache;
use throng_observation::masked::masked_beginning;

/// Why a manifest cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {place} {problem}")]
pub struct ManifestError {
    /// The line, from 1 on.
    pub line: u32,
    /// The tag of HLS, or the element or attribute of DASH.
    pub place: String,
    /// What is wrong with it, and what it has to be.
    pub problem: Cow<'static, str>,
    is_unsupported: bool,
}

impl ManifestError {
    fn new(line: u32, place: impl Into<String>, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { line, place: place.into(), problem: problem.into(), is_unsupported: false }
    }

    /// The same of what the specification allows and is not read here.
    fn unsupported(self) -> Self {
        Self { is_unsupported: true, ..self }
    }

    /// Whether the manifest has what its specification allows and is not read here: nothing is
    /// wrong with it.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.is_unsupported
    }
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// Its first byte.
    pub offset: u64,
    /// Its length, bytes.
    pub bytes: u64,
}

impl ByteRange {
    /// The first byte after it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

/// The largest manifest that is read, bytes: a day of segments of two seconds is a third of it.
pub const MANIFEST_LEN_MAX: usize = 16 << 20;

/// What a server sent, shortened for a message; secrets of its URLs are hidden before it is cut.
fn excerpt(text: &str) -> String {
    masked_beginning(text).chars().take(60).flat_map(char::escape_debug).collect()
}

/// Seconds as microseconds; `None` when negative, not a number, or longer than a year.
fn seconds_us(seconds: f64) -> Option<u64> {
    (0.0..=31_622_400.0).contains(&seconds).then(|| (seconds * 1e6).round() as u64)
}
