//! MP4 and QuickTime (ISO/IEC 14496-12). The index (`moov`) is read wherever it is; from then on the position alone
//! shows which frames are complete.

mod boxes;
mod codec;
mod edits;
mod movie;
mod table;
mod track;

use std::ops::Range;
use std::sync::Arc;

use super::error::{Container, DAMAGED};
use super::shared::{Joining, Shared};
use super::{IndexCache, TimedFrame, TimingError, TrackInfo, Want, cut, missed};
use crate::octets::chunk_at;
use boxes::{BoxError, FourCc, HEADER_LEN, Head, LONG_HEADER_LEN};
use movie::Movie;
use track::Cursor;

/// What was read from a `moov` box.
#[derive(Debug)]
pub(super) struct SharedMovie(Result<Movie, BoxError>);

impl SharedMovie {
    fn read(bytes: &[u8]) -> Self {
        Self(Movie::read(bytes))
    }
}

/// Largest index: several times that of a film of four hours with many languages.
const INDEX_LEN_MAX: u64 = 64 << 20;

/// Whether a file begins like this.
pub(super) fn begins(first: &[u8]) -> bool {
    let kinds =
        [b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"sidx", b"emsg"];
    chunk_at(first, 4).is_some_and(|kind| kinds.contains(&kind))
}

/// Reads one file.
#[derive(Debug)]
pub(super) struct Mp4 {
    indexes: IndexCache,
    total_bytes: Option<u64>,
    position: u64,
    /// Since here bytes were received without a gap.
    run_start: u64,
    step: Step,
    /// Where what is needed next is, when it is not at the position.
    jump: Option<u64>,
    index: Option<Index>,
}

/// What is at the position.
#[derive(Debug)]
enum Step {
    /// The header of a box, of which so many bytes were received.
    Head([u8; LONG_HEADER_LEN], usize),
    /// Contents that are not read, to this offset.
    Skip(u64),
    /// The contents of `moov`, which begin here.
    Movie(u64, Joining<SharedMovie>),
}

const NEXT_BOX: Step = Step::Head([0; LONG_HEADER_LEN], 0);

/// The index, and the next frame of each track.
#[derive(Debug)]
struct Index {
    movie: Arc<Shared<SharedMovie>>,
    tracks: Vec<TrackInfo>,
    /// `None`: there are no more.
    cursors: Vec<Option<Cursor>>,
}

impl Index {
    fn get(&self) -> Option<(&[u8], &Movie)> {
        let (bytes, movie) = self.movie.get()?;
        Some((bytes, movie.0.as_ref().ok()?))
    }

    /// Places all tracks at their first frames from `offset` on.
    fn place(&mut self, offset: u64) {
        let Some((bytes, SharedMovie(Ok(movie)))) = self.movie.get() else { return };
        let cursors = movie.tracks.iter().map(|track| Cursor::at_offset(&track.samples, bytes, offset));
        self.cursors = cursors.collect();
    }

    /// The next frame that lies between these offsets.
    fn next_frame(&mut self, run_start: u64, position: u64) -> Option<TimedFrame> {
        let (bytes, SharedMovie(Ok(movie))) = self.movie.get()? else { return None };
        let mut first: Option<(usize, track::Sample)> = None;
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
        Some(track.frame(number as u16, &sample))
    }
}

impl Mp4 {
    /// A reader at the first byte of a file.
    pub(super) fn new(indexes: &IndexCache, total_bytes: Option<u64>) -> Self {
        let indexes = indexes.clone();
        Self { indexes, total_bytes, position: 0, run_start: 0, step: NEXT_BOX, jump: None, index: None }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn tracks(&self) -> Option<&[TrackInfo]> {
        self.index.as_ref().map(|index| &index.tracks[..])
    }

    pub(super) fn duration_us(&self) -> Option<u64> {
        self.index.as_ref()?.get()?.1.duration_us
    }

    pub(super) fn offset_for(&self, time_us: u64) -> Option<(u64, u64)> {
        let (bytes, movie) = self.index.as_ref()?.get()?;
        movie.offset_for(bytes, time_us)
    }

    pub(super) fn next_frame(&mut self) -> Option<TimedFrame> {
        self.index.as_mut()?.next_frame(self.run_start, self.position)
    }

    /// Whether all there is of the index has been read, and where the media are.
    fn media(&self) -> Option<Range<u64>> {
        let (_, movie) = self.index.as_ref()?.get()?;
        (!movie.is_fragmented).then(|| movie.media.clone())
    }

    pub(super) fn want(&self) -> Want {
        if let Some(offset) = self.jump {
            return Want::Jump(offset);
        }
        if let Some(media) = self.media() {
            let left = media.end.saturating_sub(self.position);
            return if left == 0 { Want::Done } else { Want::Ignore(left) };
        }
        if self.total_bytes.is_some_and(|total| self.position >= total) {
            return Want::Done;
        }
        match &self.step {
            Step::Head(_, received) => {
                let len = if *received < HEADER_LEN { HEADER_LEN } else { LONG_HEADER_LEN };
                Want::Deliver((len - received) as u64)
            }
            Step::Skip(until) => Want::Ignore(until - self.position),
            Step::Movie(_, joining) => Want::Deliver(joining.missing() as u64),
        }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), TimingError> {
        while !bytes.is_empty() {
            let taken = match &mut self.step {
                Step::Head(head, received) => {
                    let len = if *received < HEADER_LEN { HEADER_LEN } else { LONG_HEADER_LEN };
                    let taken = (len - *received).min(bytes.len());
                    let room = head.get_mut(*received..*received + taken).unwrap_or_default();
                    room.copy_from_slice(&bytes[..taken]);
                    *received += taken;
                    let (head, received) = (*head, *received);
                    self.position += taken as u64;
                    self.begin_box(&head[..received])?;
                    bytes = &bytes[taken..];
                    continue;
                }
                Step::Skip(until) => {
                    usize::try_from(*until - self.position).unwrap_or(usize::MAX).min(bytes.len())
                }
                Step::Movie(start, joining) => {
                    let (start, taken) = (*start, joining.missing().min(bytes.len()));
                    if let Some(movie) = joining.feed(&bytes[..taken], SharedMovie::read) {
                        self.position += taken as u64;
                        self.begin_movie(movie, start)?;
                        bytes = &bytes[taken..];
                        continue;
                    }
                    taken
                }
            };
            self.position += taken as u64;
            self.end_skip();
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// The next box begins where the skipped bytes end.
    fn end_skip(&mut self) {
        if matches!(self.step, Step::Skip(until) if until == self.position) {
            self.step = NEXT_BOX;
            // The bytes up to the place to jump to were received.
            self.jump = self.jump.filter(|offset| *offset != self.position);
        }
    }

    /// The header of a box, or a part of it, was received.
    fn begin_box(&mut self, header: &[u8]) -> Result<(), TimingError> {
        let start = self.position - header.len() as u64;
        let error = |kind: FourCc, problem: &'static str, hint| TimingError {
            container: Container::Mp4,
            place: kind.to_string(),
            offset: start,
            problem: problem.into(),
            hint,
        };
        let kind = FourCc(chunk_at(header, 4).copied().unwrap_or_default());
        let Some(head) = Head::read(header).map_err(|problem| error(kind, problem, DAMAGED))? else {
            return Ok(());
        };
        let end = head.body_len.map_or(Some(u64::MAX), |len| self.position.checked_add(len));
        let end = end.ok_or_else(|| error(kind, "is longer than any file", DAMAGED))?;
        match &kind.0 {
            b"moov" if self.index.is_none() => {
                let len = head.body_len.unwrap_or_else(|| {
                    self.total_bytes.map_or(0, |total| total.saturating_sub(self.position))
                });
                if len == 0 || len > INDEX_LEN_MAX {
                    return Err(error(kind, "is empty, or larger than 64 MiB", DAMAGED));
                }
                self.step = Step::Movie(self.position, Joining::new(&self.indexes.movies, len as usize));
            }
            b"mdat" if self.index.is_none() => {
                let is_last = end == u64::MAX || self.total_bytes.is_some_and(|total| end >= total);
                if is_last {
                    let hint = "the recording was not finished, or the upload was cut off";
                    return Err(error(
                        kind,
                        "goes on to the end of the file, which has no index (`moov`)",
                        hint,
                    ));
                }
                (self.step, self.jump) = (Step::Skip(end), Some(end));
            }
            _ => self.step = Step::Skip(end),
        }
        self.end_skip();
        Ok(())
    }

    fn begin_movie(&mut self, movie: Arc<Shared<SharedMovie>>, start: u64) -> Result<(), TimingError> {
        let Some((bytes, read)) = movie.get() else { return Ok(()) };
        let read = read.0.as_ref().map_err(|error| error.in_file(start))?;
        let tracks = read.infos();
        let cursors = read.tracks.iter().map(|track| Cursor::first(&track.samples, bytes)).collect();
        // Without fragments the boxes that follow have no meaning: the index says where everything is.
        self.step = if read.is_fragmented { NEXT_BOX } else { Step::Skip(u64::MAX) };
        self.jump =
            Some(read.media.start).filter(|_| !read.media.is_empty() && read.media.start < self.run_start);
        self.index = Some(Index { movie, tracks, cursors });
        Ok(())
    }

    pub(super) fn ignored(&mut self, count: u64) -> Result<(), TimingError> {
        match self.step {
            _ if count == 0 => Ok(()),
            Step::Skip(until) if count <= until - self.position => {
                self.position += count;
                self.end_skip();
                Ok(())
            }
            _ => Err(missed(Container::Mp4, self.position)),
        }
    }

    pub(super) fn jumped(&mut self, offset: u64) {
        (self.position, self.run_start, self.jump) = (offset, offset, None);
        self.step = NEXT_BOX;
        let is_whole = self.media().is_some();
        if let Some(index) = &mut self.index {
            index.place(offset);
        }
        if is_whole {
            self.step = Step::Skip(u64::MAX);
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), TimingError> {
        if let Some(media) = self.media() {
            return if self.position < media.end {
                Err(cut(Container::Mp4, FourCc(*b"mdat").to_string(), self.position))
            } else {
                Ok(())
            };
        }
        match &self.step {
            _ if self.index.is_none() => Err(cut(Container::Mp4, "index (box `moov`)", self.position)),
            Step::Head(_, 0) | Step::Skip(u64::MAX) => Ok(()),
            _ => Err(cut(Container::Mp4, "box", self.position)),
        }
    }
}
