//! A presentation in segments, whatever its manifest: renditions, and the segments of each.

use std::sync::Arc;

use url::Url;

/// What a lane downloads.
#[derive(Clone, Debug)]
pub(super) enum LanePlan {
    /// One of these renditions at a time, in segments; they are sorted by bitrate.
    Segments(Vec<Rendition>),
    /// One of these files, progressively; they are sorted by bitrate.
    File(Vec<Url>),
}

/// A resource, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) url: Url,
    /// First and last byte, inclusive; `None` for all of it.
    pub(super) range: Option<(u64, u64)>,
}

/// A segment of media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) media: Resource,
    /// Where its media begins on the time axis of the presentation, microseconds.
    pub(super) starts_us: i64,
    pub(super) duration_us: u64,
    /// What must be read before it (`EXT-X-MAP`, `Initialization`).
    pub(super) init: Option<Arc<Resource>>,
    /// Time stamps go on from one segment to the next as long as this is the same.
    pub(super) discontinuity: u64,
}

/// One encoding of the media.
#[derive(Clone, Debug)]
pub(super) struct Rendition {
    pub(super) bandwidth_bps: u64,
    pub(super) segments: Segments,
}

/// The segments of a rendition.
#[derive(Clone, Debug)]
pub(super) enum Segments {
    /// They are in this playlist (HLS).
    Playlist(Url),
    /// These.
    Known(Arc<[Segment]>),
}

impl Rendition {
    pub(super) fn known(&self) -> Option<&[Segment]> {
        match &self.segments {
            Segments::Known(segments) => Some(segments),
            Segments::Playlist(_) => None,
        }
    }
}

/// Length of the media in all segments, microseconds.
pub(super) fn duration_us(segments: &[Segment]) -> u64 {
    let end = |segment: &Segment| segment.starts_us.saturating_add_unsigned(segment.duration_us);
    segments.iter().map(end).max().and_then(|end_us| u64::try_from(end_us).ok()).unwrap_or(0)
}
