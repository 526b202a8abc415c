//! The index of one reader: the movie that readers share, and the next frame of each track.

use std::sync::Arc;

use super::boxes::BoxError;
use super::movie::Movie;
use super::track::{Cursor, Sample};
use crate::timing::shared::Shared;
use crate::timing::{TimedFrame, TrackInfo};

/// What was read from a `moov` box.
#[derive(Debug)]
pub(in crate::timing) struct SharedMovie(pub(super) Result<Movie, BoxError>);

impl SharedMovie {
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self(Movie::read(bytes))
    }
}

/// The index, and the next frame of each track.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) movie: Arc<Shared<SharedMovie>>,
    pub(super) tracks: Vec<TrackInfo>,
    /// `None`: there are no more.
    cursors: Vec<Option<Cursor>>,
}

impl Index {
    /// At the first frames of a movie that was read.
    pub(super) fn new(movie: Arc<Shared<SharedMovie>>) -> Self {
        let mut index = Self { movie, tracks: Vec::new(), cursors: Vec::new() };
        let Some((bytes, movie)) = index.get() else { return index };
        let tracks = movie.infos();
        let cursors =
            movie.tracks.iter().map(|track| Cursor::first(&track.samples, bytes)).collect();
        (index.tracks, index.cursors) = (tracks, cursors);
        index
    }

    /// Whether all frames of the tables were told.
    pub(super) fn is_over(&self) -> bool {
        self.cursors.iter().all(Option::is_none)
    }

    /// Whether all frames of this track were told.
    pub(super) fn has_ended(&self, track: u16) -> bool {
        self.cursors.get(usize::from(track)).is_some_and(Option::is_none)
    }

    pub(super) fn get(&self) -> Option<(&[u8], &Movie)> {
        let (bytes, movie) = self.movie.get()?;
        Some((bytes, movie.0.as_ref().ok()?))
    }

    /// Places all tracks at their first frames from `offset` on.
    pub(super) fn place(&mut self, offset: u64) {
        let Some((bytes, SharedMovie(Ok(movie)))) = self.movie.get() else { return };
        let cursors =
            movie.tracks.iter().map(|track| Cursor::at_offset(&track.samples, bytes, offset));
        self.cursors = cursors.collect();
    }

    /// The next frame that lies between these offsets.
    pub(super) fn next_frame(&mut self, run_start: u64, position: u64) -> Option<TimedFrame> {
        let (bytes, SharedMovie(Ok(movie))) = self.movie.get()? else { return None };
        let mut first: Option<(usize, Sample)> = None;
        for (number, (track, slot)) in movie.tracks.iter().zip(&mut self.cursors).enumerate() {
            let Some(cursor) = slot else { continue };
            let mut sample = cursor.peek(&track.samples, bytes);
            while sample.is_some_and(|sample| sample.offset < run_start) {
                // Before the place that was jumped to, in a file whose chunks are out of order.
                cursor.advance(&track.samples, bytes);
                sample = cursor.peek(&track.samples, bytes);
            }
            match sample {
                None => *slot = None,
                Some(sample) if sample.end() > position => {}
                Some(sample) if first.is_some_and(|(_, first)| first.offset <= sample.offset) => {}
                Some(sample) => first = Some((number, sample)),
            }
        }
        let (number, sample) = first?;
        let track = movie.tracks.get(number)?;
        self.cursors.get_mut(number)?.as_mut()?.advance(&track.samples, bytes);
        Some(track.frame(number as u16, &sample, track.samples.lead))
    }
}
