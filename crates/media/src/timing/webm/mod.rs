//! Matroska and WebM (RFC 9559). Of the clusters only the headers of blocks are read.

mod block;
mod cues;
mod ebml;
mod ids;
mod tracks;

use std::collections::VecDeque;
use std::sync::Arc;

use throng_observation::{Codec, MediaKind};

use super::error::{Container, DAMAGED};
use super::shared::{Joining, Shared};
use super::{IndexCache, TimedFrame, TimingError, TrackInfo, Want, cut, missed};
use crate::codec::OpusPacket;
use block::Block;
pub(super) use cues::SharedCues;
use ebml::{HEADER_LEN_MAX, Head, children, unsigned};
use ids::{
    ATTACHMENTS, BLOCK, BLOCK_DURATION, BLOCK_GROUP, CHAPTERS, CLUSTER, CUES, EBML, INFO,
    REFERENCE_BLOCK, SEEK, SEEK_HEAD, SEEK_ID, SEEK_POSITION, SEGMENT, SIMPLE_BLOCK, TAGS,
    TIMESTAMP, TRACKS, name,
};
pub(super) use tracks::Tracks;

/// Largest element that is read as a whole: codec configurations and fonts are in others.
const WHOLE_LEN_MAX: u64 = 4 << 20;

/// Largest index.
const CUES_LEN_MAX: u64 = 16 << 20;

/// What the contents of a cluster begin with (RFC 9559 section 5.1.3, RFC 8794 section 11.3):
/// `Timestamp`, `PrevSize`, `Position`, `CRC-32` or `Void`. By it the id of a cluster is told from
/// the same bytes elsewhere.
const FIRST_IN_CLUSTER: [u8; 5] = [0xe7, 0xab, 0xa7, 0xbf, 0xec];

/// Bytes of a block that mostly contain its header.
const BLOCK_HEAD_LEN: usize = 8;

/// Whether a file begins like this.
pub(super) fn begins(first: &[u8]) -> bool {
    first.starts_with(&EBML.to_be_bytes())
}

/// Reads one file.
#[derive(Debug)]
pub(super) struct Webm {
    indexes: IndexCache,
    total_bytes: Option<u64>,
    position: u64,
    step: Step,
    tracks: Arc<Tracks>,
    /// `Tracks` was read.
    is_known: bool,
    /// Where the contents of `Segment` begin, from which positions count, and where they end, if it
    /// says so.
    segment: Option<(u64, Option<u64>)>,
    /// Where `Cues` are, as `SeekHead` says.
    cues_at: Option<u64>,
    cues: Option<Arc<Shared<SharedCues>>>,
    cluster: Option<Cluster>,
    group: Option<Group>,
    frames: VecDeque<TimedFrame>,
}

/// What is at the position.
#[derive(Debug)]
enum Step {
    /// The header of an element, of which so many bytes were received.
    Head([u8; HEADER_LEN_MAX], usize),
    /// Anything: the next cluster is looked for, in these bytes so far.
    Search(Vec<u8>),
    /// Contents that are not read, to this offset.
    Skip(u64),
    /// The rest of a block of which the frames are known.
    Frames(u64, Box<Block>, u32),
    /// The contents of a small element, and their length.
    Whole(u32, usize, Vec<u8>),
    Cues(Joining<SharedCues>),
    /// A block that ends here, the bytes of it that are read next, and those that were.
    Block {
        end: u64,
        wanted: usize,
        bytes: Vec<u8>,
        is_simple: bool,
    },
}

const NEXT_ELEMENT: Step = Step::Head([0; HEADER_LEN_MAX], 0);

#[derive(Clone, Copy, Debug)]
struct Cluster {
    ticks: u64,
    end: Option<u64>,
}

/// A `BlockGroup`, of which the frames are known when it ends.
#[derive(Debug)]
struct Group {
    end: u64,
    block: Option<(Box<Block>, u32)>,
    /// Ticks of the whole block.
    duration: Option<u64>,
    refers: bool,
}

impl Webm {
    pub(super) fn new(indexes: &IndexCache, total_bytes: Option<u64>) -> Self {
        Self {
            indexes: indexes.clone(),
            total_bytes,
            position: 0,
            step: NEXT_ELEMENT,
            tracks: Arc::default(),
            is_known: false,
            segment: None,
            cues_at: None,
            cues: None,
            cluster: None,
            group: None,
            frames: VecDeque::new(),
        }
    }

    /// A reader at the first byte of a segment with these tracks.
    pub(super) fn segment(indexes: &IndexCache, tracks: Arc<Tracks>) -> Self {
        Self { tracks, is_known: true, ..Self::new(indexes, None) }
    }

    /// What an initialisation segment says.
    pub(super) fn shared_tracks(&self) -> Option<Arc<Tracks>> {
        self.is_known.then(|| Arc::clone(&self.tracks))
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn tracks(&self) -> Option<&[TrackInfo]> {
        self.is_known.then_some(&self.tracks.infos[..])
    }

    pub(super) fn duration_us(&self) -> Option<u64> {
        self.tracks.duration_us
    }

    pub(super) fn next_frame(&mut self) -> Option<TimedFrame> {
        self.frames.pop_front()
    }

    pub(super) fn offset_for(&self, time_us: u64) -> Option<(u64, u64)> {
        let (bytes, _) = self.cues.as_ref()?.get()?;
        let (start, _) = self.segment?;
        cues::find(bytes, start, &self.tracks, time_us)
    }

    /// Where the index is, while it has not been read.
    pub(super) fn seek_index(&self) -> Option<u64> {
        self.cues_at.filter(|_| self.cues.is_none())
    }

    pub(super) fn want(&self) -> Want {
        let left = self.total_bytes.map_or(u64::MAX, |total| total.saturating_sub(self.position));
        if left == 0 {
            return Want::Done;
        }
        match &self.step {
            Step::Skip(until) | Step::Frames(until, ..) => Want::Ignore(until - self.position),
            Step::Head(_, received) => Want::Deliver(left.min((HEADER_LEN_MAX - received) as u64)),
            Step::Search(_) => Want::Deliver(left),
            _ => Want::Deliver(self.missing()),
        }
    }

    /// Bytes that the step takes; of a header no more than one, because it ends anywhere.
    fn missing(&self) -> u64 {
        match &self.step {
            Step::Head(..) => 1,
            Step::Search(_) => u64::MAX,
            Step::Skip(until) | Step::Frames(until, ..) => until - self.position,
            Step::Whole(_, len, bytes) | Step::Block { wanted: len, bytes, .. } => {
                (len - bytes.len()) as u64
            }
            Step::Cues(joining) => joining.missing() as u64,
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

    pub(super) fn ignored(&mut self, count: u64) -> Result<(), TimingError> {
        match &self.step {
            _ if count == 0 => Ok(()),
            Step::Skip(until) | Step::Frames(until, ..) if count <= until - self.position => {
                self.position += count;
                self.take(&[])
            }
            _ => Err(missed(Container::Matroska, self.position)),
        }
    }

    /// Looks for a cluster in what was received, and goes on with it.
    fn search(&mut self) -> Result<(), TimingError> {
        let Step::Search(bytes) = &mut self.step else { return Ok(()) };
        let Some(at) = cluster_in(bytes) else {
            // Its header may have begun.
            let passed = bytes.len().saturating_sub(CLUSTER_START_LEN_MAX);
            bytes.drain(..passed);
            return Ok(());
        };
        let bytes = std::mem::take(bytes);
        let cluster = bytes.get(at..).unwrap_or_default();
        self.position -= cluster.len() as u64;
        self.step = NEXT_ELEMENT;
        self.feed(cluster)
    }

    /// Takes no more than what the step misses; the position is after it.
    fn take(&mut self, piece: &[u8]) -> Result<(), TimingError> {
        match &mut self.step {
            Step::Search(bytes) => {
                bytes.extend_from_slice(piece);
                return self.search();
            }
            Step::Head(head, received) => {
                let end = *received + piece.len();
                head.get_mut(*received..end).unwrap_or_default().copy_from_slice(piece);
                *received = end;
                let head = *head;
                return self.begin(head.get(..end).unwrap_or_default());
            }
            Step::Skip(until) | Step::Frames(until, ..) if *until > self.position => return Ok(()),
            Step::Skip(_) => self.step = NEXT_ELEMENT,
            Step::Frames(..) => {
                if let Step::Frames(_, block, ticks) =
                    std::mem::replace(&mut self.step, NEXT_ELEMENT)
                {
                    let is_key = block.is_key;
                    self.emit(&block, ticks, None, is_key);
                }
            }
            Step::Whole(id, len, bytes) => {
                bytes.extend_from_slice(piece);
                if bytes.len() < *len {
                    return Ok(());
                }
                let (id, bytes) = (*id, std::mem::take(bytes));
                self.step = NEXT_ELEMENT;
                self.whole(id, &bytes);
            }
            Step::Cues(joining) => {
                let Some(cues) = joining.feed(piece, |_| SharedCues) else { return Ok(()) };
                (self.cues, self.step) = (Some(cues), NEXT_ELEMENT);
            }
            Step::Block { wanted, bytes, .. } => {
                bytes.extend_from_slice(piece);
                if bytes.len() < *wanted {
                    return Ok(());
                }
                self.block()?;
            }
        }
        self.end_group();
        Ok(())
    }

    fn error(
        &self,
        id: u32,
        offset: u64,
        problem: &'static str,
        hint: &'static str,
    ) -> TimingError {
        TimingError {
            container: Container::Matroska,
            place: name(id),
            offset,
            problem: problem.into(),
            hint,
        }
    }

    /// The header of an element, or a part of it, was received.
    fn begin(&mut self, header: &[u8]) -> Result<(), TimingError> {
        let start = self.position - header.len() as u64;
        let place = header.iter().take(4).fold(0, |id, byte| id << 8 | u32::from(*byte));
        let head =
            Head::read(header).map_err(|problem| self.error(place, start, problem, DAMAGED))?;
        let Some(Head { id, body_len, .. }) = head else { return Ok(()) };
        let end = body_len.map(|len| self.position.checked_add(len));
        if end == Some(None) {
            return Err(self.error(id, start, "is longer than any file", DAMAGED));
        }
        let end = end.flatten();
        // A cluster of known or unknown size ends where an element of the level above begins.
        let is_above = matches!(
            id,
            EBML | SEGMENT
                | SEEK_HEAD
                | INFO
                | TRACKS
                | CUES
                | TAGS
                | ATTACHMENTS
                | CHAPTERS
                | CLUSTER
        );
        let is_over =
            self.cluster.is_some_and(|cluster| cluster.end.is_some_and(|end| start >= end));
        if is_above || is_over {
            (self.cluster, self.group) = (None, None);
        }
        let around = self
            .group
            .as_ref()
            .map(|group| group.end)
            .or(self.cluster.and_then(|cluster| cluster.end));
        if around.zip(end).is_some_and(|(around, end)| end > around) {
            return Err(self.error(id, start, "is longer than the element around it", DAMAGED));
        }
        match (id, end) {
            (SEGMENT, _) => {
                self.segment = Some((self.position, end));
                self.step = NEXT_ELEMENT;
                return Ok(());
            }
            (CLUSTER, _) => {
                if !self.is_known {
                    let hint = "a segment is read after its initialisation segment";
                    return Err(self.error(id, start, "comes before `Tracks`", hint));
                }
                self.cluster = Some(Cluster { ticks: 0, end });
                self.step = NEXT_ELEMENT;
                return Ok(());
            }
            (_, None) => {
                return Err(self.error(
                    id,
                    start,
                    "has an unknown size, which only clusters may have",
                    DAMAGED,
                ));
            }
            (_, Some(end)) => self.step = self.body(id, start, end)?,
        }
        if self.missing() == 0 {
            return self.take(&[]);
        }
        Ok(())
    }

    /// What to do with the contents of an element of known size.
    fn body(&mut self, id: u32, start: u64, end: u64) -> Result<Step, TimingError> {
        let len = end - self.position;
        let whole = |max: u64| {
            if len <= max { Some(Step::Whole(id, len as usize, Vec::new())) } else { None }
        };
        let is_in_cluster = self.cluster.is_some();
        let step = match id {
            TRACKS | INFO if !self.is_known => whole(WHOLE_LEN_MAX)
                .ok_or_else(|| self.error(id, start, "is larger than 4 MiB", DAMAGED))?,
            SEEK_HEAD => whole(WHOLE_LEN_MAX).unwrap_or(Step::Skip(end)),
            CUES if self.cues.is_none() && (1..=CUES_LEN_MAX).contains(&len) => {
                Step::Cues(Joining::new(&self.indexes.cues, len as usize))
            }
            TIMESTAMP if is_in_cluster => whole(8)
                .ok_or_else(|| self.error(id, start, "has more than eight bytes", DAMAGED))?,
            BLOCK_DURATION if self.group.is_some() => whole(8).unwrap_or(Step::Skip(end)),
            REFERENCE_BLOCK => {
                if let Some(group) = &mut self.group {
                    group.refers = true;
                }
                Step::Skip(end)
            }
            BLOCK_GROUP if is_in_cluster => {
                self.group = Some(Group { end, block: None, duration: None, refers: false });
                NEXT_ELEMENT
            }
            SIMPLE_BLOCK | BLOCK if is_in_cluster => {
                let wanted = usize::try_from(len).unwrap_or(usize::MAX).min(BLOCK_HEAD_LEN);
                Step::Block { end, wanted, bytes: Vec::new(), is_simple: id == SIMPLE_BLOCK }
            }
            _ => Step::Skip(end),
        };
        Ok(step)
    }

    /// The contents of a small element are there.
    fn whole(&mut self, id: u32, body: &[u8]) {
        match id {
            INFO => Arc::make_mut(&mut self.tracks).info(body),
            TRACKS => {
                Arc::make_mut(&mut self.tracks).tracks(body);
                self.is_known = true;
            }
            SEEK_HEAD => {
                for (_, seek) in children(body).filter(|(id, _)| *id == SEEK) {
                    let field = |wanted: u32| {
                        children(seek).find(|(id, _)| *id == wanted).map(|(_, body)| unsigned(body))
                    };
                    if field(SEEK_ID) == Some(CUES.into())
                        && let (Some(position), Some((start, _))) =
                            (field(SEEK_POSITION), self.segment)
                    {
                        self.cues_at = start.checked_add(position);
                    }
                }
            }
            TIMESTAMP => {
                if let Some(cluster) = &mut self.cluster {
                    cluster.ticks = unsigned(body);
                }
            }
            BLOCK_DURATION => {
                if let Some(group) = &mut self.group {
                    group.duration = Some(unsigned(body));
                }
            }
            _ => {}
        }
    }

    /// The first bytes of a block are there.
    fn block(&mut self) -> Result<(), TimingError> {
        let Step::Block { end, wanted, bytes, is_simple } = &mut self.step else { return Ok(()) };
        let (end, is_simple) = (*end, *is_simple);
        let start = self.position - bytes.len() as u64;
        let id = if is_simple { SIMPLE_BLOCK } else { BLOCK };
        let whole_len = end - start;
        let read = Block::read(bytes, whole_len);
        let is_all = bytes.len() as u64 >= whole_len || bytes.len() >= block::HEADER_LEN_MAX;
        match read {
            Err(problem) => Err(self.error(id, start, problem, DAMAGED)),
            Ok(None) if is_all => Err(self.error(id, start, "ends inside its header", DAMAGED)),
            Ok(None) => {
                *wanted = usize::try_from(whole_len).unwrap_or(usize::MAX).min(2 * *wanted);
                Ok(())
            }
            Ok(Some(block)) => {
                let duration_us = self.opus_duration_us(&block, &self.step);
                if is_simple {
                    self.step = Step::Frames(end, Box::new(block), duration_us);
                } else {
                    if let Some(group) = &mut self.group {
                        group.block = Some((Box::new(block), duration_us));
                    }
                    self.step = Step::Skip(end);
                }
                if self.missing() == 0 { self.take(&[]) } else { Ok(()) }
            }
        }
    }

    /// The duration that the first bytes of an Opus packet have; 0 where they are not there.
    fn opus_duration_us(&self, block: &Block, step: &Step) -> u32 {
        let track = self.tracks.tracks.iter().find(|track| track.number == block.track);
        let Step::Block { bytes, .. } = step else { return 0 };
        let is_opus = track.is_some_and(|track| track.codec == Codec::Opus && track.is_plain);
        let packet = bytes.get(block.len..).filter(|_| is_opus);
        packet
            .and_then(|packet| OpusPacket::parse(packet).ok())
            .map_or(0, |packet| packet.duration_samples * 125 / 6)
    }

    fn end_group(&mut self) {
        if self.group.as_ref().is_some_and(|group| self.position >= group.end)
            && let Some(Group { block: Some((block, first_us)), duration, refers, .. }) =
                self.group.take()
        {
            self.emit(&block, first_us, duration, !refers);
        }
    }

    /// All bytes of a block were received.
    fn emit(&mut self, block: &Block, first_us: u32, ticks: Option<u64>, is_key: bool) {
        let Some(cluster) = self.cluster else { return };
        let mut tracks = self.tracks.tracks.iter().enumerate();
        let Some((number, track)) = tracks.find(|(_, track)| track.number == block.track) else {
            return;
        };
        let count = block.frames.len() as u64;
        let of_block = ticks.map(|ticks| {
            self.tracks.us(i64::try_from(ticks).unwrap_or(i64::MAX)).unsigned_abs() / count
        });
        let of_track = Some(track.frame_ns / 1_000).filter(|us| *us > 0);
        let duration_us = of_block.or(of_track).unwrap_or(first_us.into());
        let ticks =
            i64::try_from(cluster.ticks).unwrap_or(i64::MAX).saturating_add(block.ticks.into());
        let delay_us = i64::try_from(track.delay_ns / 1_000).unwrap_or(i64::MAX);
        let mut time_us = self.tracks.us(ticks).saturating_sub(delay_us);
        for bytes in &block.frames {
            self.frames.push_back(TimedFrame {
                track: number as u16,
                decode_us: time_us,
                presentation_us: time_us,
                duration_us: u32::try_from(duration_us).unwrap_or(u32::MAX),
                bytes: *bytes,
                is_key: is_key || track.kind == MediaKind::Audio,
            });
            time_us = time_us.saturating_add(i64::try_from(duration_us).unwrap_or(i64::MAX));
        }
    }

    pub(super) fn jumped(&mut self, offset: u64) {
        self.position = offset;
        // Elsewhere is a cluster, or a place that was estimated.
        let begins_element = offset == 0 || self.cues_at == Some(offset);
        self.step = if begins_element { NEXT_ELEMENT } else { Step::Search(Vec::new()) };
        (self.cluster, self.group) = (None, None);
    }

    pub(super) fn finish(&mut self) -> Result<(), TimingError> {
        let is_short = |end: Option<u64>| end.is_some_and(|end| self.position < end);
        let inside = match &self.step {
            Step::Head(_, 0) if self.group.is_some() => Some(BLOCK_GROUP),
            Step::Head(_, 0) if is_short(self.cluster.and_then(|cluster| cluster.end)) => {
                Some(CLUSTER)
            }
            Step::Head(_, 0) if is_short(self.segment.and_then(|(_, end)| end)) => Some(SEGMENT),
            Step::Head(_, 0) if !self.is_known => Some(TRACKS),
            Step::Head(_, 0) => None,
            Step::Whole(id, ..) => Some(*id),
            Step::Cues(_) => Some(CUES),
            Step::Frames(..) | Step::Block { is_simple: true, .. } => Some(SIMPLE_BLOCK),
            Step::Block { .. } => Some(BLOCK),
            Step::Head(..) | Step::Skip(_) if self.cluster.is_some() => Some(CLUSTER),
            Step::Head(..) | Step::Skip(_) => Some(SEGMENT),
            Step::Search(_) => None,
        };
        inside.map_or(Ok(()), |id| Err(cut(Container::Matroska, name(id), self.position)))
    }
}

/// The longest beginning of a cluster that is looked for: its header, and the id of its first
/// element.
const CLUSTER_START_LEN_MAX: usize = HEADER_LEN_MAX + 1;

/// Where a cluster begins in these bytes, of which enough are there to tell.
fn cluster_in(bytes: &[u8]) -> Option<usize> {
    let id = CLUSTER.to_be_bytes();
    (0..bytes.len()).find(|at| {
        let rest = bytes.get(*at..).unwrap_or_default();
        let head = rest.starts_with(&id).then(|| Head::read(rest));
        let Some(Ok(Some(head))) = head else { return false };
        rest.get(head.len).is_some_and(|first| FIRST_IN_CLUSTER.contains(first))
    })
}

#[cfg(test)]
mod tests;
