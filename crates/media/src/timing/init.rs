//! Initialisation segments: what all media segments of a rendition have in common.

use std::sync::Arc;

use super::error::CUT;
use super::mp4::{Mp4, SharedMovie};
use super::shared::Shared;
use super::webm::{Tracks, Webm};
use super::{Format, IndexCache, TimingError, TimingReader, TrackInfo};

/// An initialisation segment (`EXT-X-MAP` of HLS, `Initialization` of DASH): the tracks, without
/// frames.
#[derive(Clone, Debug)]
pub struct InitSegment(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Mp4(Arc<Shared<SharedMovie>>, Vec<TrackInfo>),
    Webm(Arc<Tracks>),
}

impl InitSegment {
    /// Reads a whole initialisation segment.
    ///
    /// # Errors
    /// [`TimingError`] when it is damaged, incomplete, or of a format that is not read.
    pub fn parse(bytes: &[u8]) -> Result<Self, TimingError> {
        let mut reader = TimingReader::new(IndexCache::default(), Some(bytes.len() as u64));
        reader.feed(bytes)?;
        let finished = reader.finish();
        let kind = match &reader.format {
            Format::Mp4(mp4) => mp4
                .movie()
                .zip(mp4.tracks())
                .map(|(movie, tracks)| Kind::Mp4(movie, tracks.to_vec())),
            Format::Webm(webm) => webm.shared_tracks().map(Kind::Webm),
            Format::Unknown(_) | Format::Ts(_) | Format::Packed(_) => None,
        };
        kind.map(Self).ok_or_else(|| match finished {
            Err(error) => error,
            Ok(()) => TimingError {
                container: reader.container(),
                place: "initialisation segment".into(),
                offset: bytes.len() as u64,
                problem: "has no tracks".into(),
                hint: CUT,
            },
        })
    }

    /// What each track is.
    #[must_use]
    pub fn tracks(&self) -> &[TrackInfo] {
        match &self.0 {
            Kind::Mp4(_, tracks) => tracks,
            Kind::Webm(tracks) => &tracks.infos,
        }
    }

    pub(super) fn format(&self, indexes: &IndexCache) -> Format {
        match &self.0 {
            Kind::Mp4(movie, _) => Format::Mp4(Box::new(Mp4::segment(indexes, Arc::clone(movie)))),
            Kind::Webm(tracks) => {
                Format::Webm(Box::new(Webm::segment(indexes, Arc::clone(tracks))))
            }
        }
    }
}
