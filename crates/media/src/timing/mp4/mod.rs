//! MP4 and QuickTime (ISO/IEC 14496-12). The index (`moov`) is read wherever it is; from then on
//! the position alone shows which frames are complete.

mod boxes;
mod codec;
mod edits;
mod fragment;
mod index;
mod movie;
mod segment_index;
mod table;
mod track;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use throng_observation::{Codec, MediaKind};

use super::error::{Container, DAMAGED};
use super::shared::{Joining, Shared};
use super::{IndexCache, MarkedFrame, TimedFrame, TimingError, TrackInfo, Want, cut, missed};
use crate::mark::{Mark, MarkFinder};
use crate::octets::chunk_at;
pub(super) use segment_index::SharedSegmentIndex;
pub use segment_index::{IndexedSegment, SegmentIndex};

use boxes::{FourCc, HEADER_LEN, Head, LONG_HEADER_LEN};
use fragment::{Continues, Fragment};
use index::Index;
pub(super) use index::SharedMovie;

/// Largest index: several times that of a film of four hours with many languages.
const INDEX_LEN_MAX: u64 = 64 << 20;

/// Largest segment index: 65,535 segments of 12 bytes fit.
const SEGMENT_INDEX_LEN_MAX: u64 = 1 << 20;

/// Largest fragment, without its data.
const FRAGMENT_LEN_MAX: u64 = 16 << 20;

/// Bytes of fragments whose data have not come, or whose frames were not taken.
const PENDING_MAX: usize = 64 << 20;

/// Whether a file begins like this.
pub(super) fn begins(first: &[u8]) -> bool {
    let kinds = [
        b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"sidx",
        b"emsg",
    ];
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
    segments: Option<SegmentIndex>,
    fragments: VecDeque<Fragment>,
    /// How each track goes on after the fragments.
    continues: Vec<Continues>,
    /// Of the first picture of the first fragment.
    finder: MarkFinder,
    mark: Option<Mark>,
    marked: Option<MarkedFrame>,
}

/// What is at the position.
#[derive(Debug)]
enum Step {
    /// The header of a box, of which so many bytes were received.
    Head([u8; LONG_HEADER_LEN], usize),
    /// Contents that are not read, to this offset.
    Skip(u64),
    /// The first bytes of media, to the first offset, which may have a mark; the contents go on to
    /// the second.
    Mark(u64, u64),
    /// The contents of `moov`, which begin here.
    Movie(u64, Joining<SharedMovie>),
    /// The contents of `sidx`.
    SegmentIndex(Joining<SharedSegmentIndex>),
    /// A `moof` box that begins here, the length of its contents, and what was received of them.
    Fragment(u64, usize, Vec<u8>),
}

const NEXT_BOX: Step = Step::Head([0; LONG_HEADER_LEN], 0);

impl Mp4 {
    /// A reader at the first byte of a file.
    pub(super) fn new(indexes: &IndexCache, total_bytes: Option<u64>) -> Self {
        Self {
            indexes: indexes.clone(),
            total_bytes,
            position: 0,
            run_start: 0,
            step: NEXT_BOX,
            jump: None,
            index: None,
            segments: None,
            fragments: VecDeque::new(),
            continues: Vec::new(),
            finder: MarkFinder::default(),
            mark: None,
            marked: None,
        }
    }

    /// A reader at the first byte of a segment of this movie.
    pub(super) fn segment(indexes: &IndexCache, movie: Arc<Shared<SharedMovie>>) -> Self {
        let index = Index::new(movie);
        let continues = vec![Continues::default(); index.tracks.len()];
        Self { index: Some(index), continues, ..Self::new(indexes, None) }
    }

    /// The movie, once its index was read.
    pub(super) fn movie(&self) -> Option<Arc<Shared<SharedMovie>>> {
        self.index.as_ref().map(|index| Arc::clone(&index.movie))
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn tracks(&self) -> Option<&[TrackInfo]> {
        self.index.as_ref().map(|index| &index.tracks[..])
    }

    pub(super) fn duration_us(&self) -> Option<u64> {
        let (_, movie) = self.index.as_ref()?.get()?;
        movie.duration_us.or_else(|| {
            let last = self.segments.as_ref()?.segments().last()?;
            Some(last.time_us.saturating_add(last.duration_us))
        })
    }

    pub(super) fn offset_for(&self, time_us: u64) -> Option<(u64, u64)> {
        let (bytes, movie) = self.index.as_ref()?.get()?;
        if movie.is_fragmented {
            // An index may be that of a part of the file only.
            let segment = self.segments.as_ref()?.segment_for(time_us)?;
            let is_within = time_us < segment.time_us.saturating_add(segment.duration_us);
            return is_within.then_some((segment.offset, segment.time_us));
        }
        movie.offset_for(bytes, time_us)
    }

    pub(super) fn take_marked(&mut self) -> Option<MarkedFrame> {
        self.marked.take()
    }

    pub(super) fn next_frame(&mut self) -> Option<TimedFrame> {
        let frame = self.next_received()?;
        let is_video = |track: &TrackInfo| track.kind == MediaKind::Video;
        if self
            .tracks()
            .and_then(|tracks| tracks.get(usize::from(frame.track)))
            .is_some_and(is_video)
        {
            let decode_us = frame.decode_us;
            self.marked =
                self.mark.take().map(|mark| MarkedFrame { decode_us, mark }).or(self.marked.take());
        }
        Some(frame)
    }

    fn next_received(&mut self) -> Option<TimedFrame> {
        // Frames behind an index that was jumped to are read again after the jump back.
        if self.jump.is_some() {
            return None;
        }
        let index = self.index.as_mut()?;
        if let Some(frame) = index.next_frame(self.run_start, self.position) {
            return Some(frame);
        }
        if !index.is_over() {
            return None;
        }
        let (_, movie) = index.get()?;
        loop {
            let fragment = self.fragments.front_mut()?;
            if let Some(frame) = fragment.next_frame(movie, self.run_start, self.position) {
                return Some(frame);
            }
            if !fragment.is_over() {
                return None;
            }
            self.fragments.pop_front();
        }
    }

    /// Whether no frame of this track is still to come.
    pub(super) fn has_ended(&self, track: u16) -> bool {
        let is_told = self.index.as_ref().is_some_and(|index| index.has_ended(track));
        is_told && self.jump.is_none() && self.media().is_some()
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
        match self.step {
            Step::Skip(_) => Want::Ignore(self.missing()),
            _ => Want::Deliver(self.missing()),
        }
    }

    /// Bytes that the step takes.
    fn missing(&self) -> u64 {
        match &self.step {
            Step::Head(_, received) if *received < HEADER_LEN => (HEADER_LEN - received) as u64,
            Step::Head(_, received) => (LONG_HEADER_LEN - received) as u64,
            Step::Skip(until) | Step::Mark(until, _) => until - self.position,
            Step::Movie(_, joining) => joining.missing() as u64,
            Step::SegmentIndex(joining) => joining.missing() as u64,
            Step::Fragment(_, len, bytes) => (len - bytes.len()) as u64,
        }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), TimingError> {
        while !bytes.is_empty() {
            let missing = usize::try_from(self.missing()).unwrap_or(usize::MAX);
            let (piece, rest) = bytes.split_at(missing.min(bytes.len()));
            self.position += piece.len() as u64;
            self.take(piece)?;
            bytes = rest;
        }
        Ok(())
    }

    /// Takes no more than what the step misses; the position is after it.
    fn take(&mut self, piece: &[u8]) -> Result<(), TimingError> {
        match &mut self.step {
            Step::Head(head, received) => {
                let end = *received + piece.len();
                head.get_mut(*received..end).unwrap_or_default().copy_from_slice(piece);
                *received = end;
                let head = *head;
                self.begin_box(head.get(..end).unwrap_or_default())?;
            }
            Step::Skip(_) => self.end_skip(),
            Step::Mark(until, end) => {
                let (until, end) = (*until, *end);
                self.finder.feed(piece);
                if until == self.position {
                    self.mark = self.finder.finish();
                    self.step = Step::Skip(end);
                    self.end_skip();
                }
            }
            Step::Movie(start, joining) => {
                let start = *start;
                if let Some(movie) = joining.feed(piece, SharedMovie::read) {
                    self.begin_movie(movie, start)?;
                }
            }
            Step::SegmentIndex(joining) => {
                if let Some(read) = joining.feed(piece, SharedSegmentIndex::read) {
                    // The first is that of the whole file, where there is one. A damaged one
                    // forbids seeks only.
                    self.segments.get_or_insert_with(|| SegmentIndex::new(read, self.position));
                    self.step = NEXT_BOX;
                }
            }
            Step::Fragment(start, len, bytes) => {
                bytes.extend_from_slice(piece);
                if bytes.len() == *len {
                    let (start, bytes) = (*start, std::mem::take(bytes));
                    self.begin_fragment(start, bytes)?;
                }
            }
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
        let kind = FourCc(chunk_at(header, 4).copied().unwrap_or_default());
        let error = |problem: &'static str, hint| TimingError {
            container: Container::Mp4,
            place: kind.to_string(),
            offset: start,
            problem: problem.into(),
            hint,
        };
        let Some(head) = Head::read(header).map_err(|problem| error(problem, DAMAGED))? else {
            return Ok(());
        };
        let end = head.body_len.map_or(Some(u64::MAX), |len| self.position.checked_add(len));
        let end = end.ok_or_else(|| error("is longer than any file", DAMAGED))?;
        // A box without a size ends with the file.
        let body_len =
            head.body_len.or(self.total_bytes.map(|total| total.saturating_sub(self.position)));
        let body_len = body_len.unwrap_or(u64::MAX);
        self.step = match &kind.0 {
            b"moov" if self.index.is_none() => {
                if body_len == 0 || body_len > INDEX_LEN_MAX {
                    return Err(error("is empty, or larger than 64 MiB", DAMAGED));
                }
                Step::Movie(self.position, Joining::new(&self.indexes.movies, body_len as usize))
            }
            b"mdat" if self.index.is_none() => {
                if end == u64::MAX || self.total_bytes.is_some_and(|total| end >= total) {
                    let hint = "the recording was not finished, or the upload was cut off";
                    return Err(error(
                        "goes on to the end of the file, which has no index (`moov`)",
                        hint,
                    ));
                }
                self.jump = Some(end);
                Step::Skip(end)
            }
            b"moof" if self.index.is_none() => {
                let hint = "a segment is read after its initialisation segment (EXT-X-MAP, or \
                            DASH's Initialization)";
                return Err(error("comes before any `moov`", hint));
            }
            b"moof" if body_len > FRAGMENT_LEN_MAX => {
                return Err(error("is larger than 16 MiB", DAMAGED));
            }
            b"moof" if body_len > 0 => Step::Fragment(start, body_len as usize, Vec::new()),
            b"sidx"
                if self.segments.is_none() && (1..=SEGMENT_INDEX_LEN_MAX).contains(&body_len) =>
            {
                Step::SegmentIndex(Joining::new(&self.indexes.segments, body_len as usize))
            }
            b"mdat" if !self.finder.is_over() && self.is_marked() => {
                Step::Mark(end.min(self.position + MarkFinder::BYTES_MAX as u64), end)
            }
            _ => Step::Skip(end),
        };
        self.end_skip();
        Ok(())
    }

    /// Whether the media of a fragment begin, and of a codec that has marks.
    fn is_marked(&self) -> bool {
        let has_marks = |track: &TrackInfo| matches!(track.codec, Codec::H264 | Codec::H265);
        !self.fragments.is_empty()
            && self.tracks().is_some_and(|tracks| tracks.iter().any(has_marks))
    }

    fn begin_movie(
        &mut self,
        movie: Arc<Shared<SharedMovie>>,
        start: u64,
    ) -> Result<(), TimingError> {
        if let Some((_, SharedMovie(Err(error)))) = movie.get() {
            return Err(error.in_file(start));
        }
        let index = self.index.insert(Index::new(movie));
        self.continues = vec![Continues::default(); index.tracks.len()];
        let Some((_, movie)) = index.get() else { return Ok(()) };
        // Without fragments the boxes that follow have no meaning: the index says where everything
        // is.
        self.step = if movie.is_fragmented { NEXT_BOX } else { Step::Skip(u64::MAX) };
        let first = movie.media.start;
        self.jump = (!movie.media.is_empty() && first < self.run_start).then_some(first);
        Ok(())
    }

    fn begin_fragment(&mut self, start: u64, bytes: Vec<u8>) -> Result<(), TimingError> {
        let Some((_, movie)) = self.index.as_ref().and_then(Index::get) else { return Ok(()) };
        let contents_at = self.position - bytes.len() as u64;
        let fragment = Fragment::read(bytes, start, movie, &mut self.continues);
        self.fragments.push_back(fragment.map_err(|error| error.in_file(contents_at))?);
        self.step = NEXT_BOX;
        if self.fragments.iter().map(Fragment::len).sum::<usize>() > PENDING_MAX {
            return Err(TimingError {
                container: Container::Mp4,
                place: FourCc(*b"moof").to_string(),
                offset: start,
                problem: "follows 64 MiB of others without their data".into(),
                hint: DAMAGED,
            });
        }
        Ok(())
    }

    pub(super) fn ignored(&mut self, count: u64) -> Result<(), TimingError> {
        match self.step {
            _ if count == 0 => Ok(()),
            Step::Mark(_, end) if count <= end - self.position => {
                self.mark = self.finder.finish();
                self.step = Step::Skip(end);
                self.position += count;
                self.end_skip();
                Ok(())
            }
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
        let is_whole = self.media().is_some();
        self.step = if is_whole { Step::Skip(u64::MAX) } else { NEXT_BOX };
        self.fragments.clear();
        if let Some(index) = &mut self.index {
            index.place(offset);
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), TimingError> {
        let cut = |place: &str| Err(cut(Container::Mp4, place, self.position));
        if let Some(media) = self.media() {
            return if self.position < media.end { cut("box `mdat`") } else { Ok(()) };
        }
        match &self.step {
            _ if self.index.is_none() => cut("index (box `moov`)"),
            _ if self.fragments.iter().any(|fragment| fragment.end > self.position) => {
                cut("box `mdat`")
            }
            Step::Head(_, 0) | Step::Skip(u64::MAX) => Ok(()),
            _ => cut("box"),
        }
    }
}

#[cfg(test)]
mod tests;
