//! The timing of a video file, read from its bytes as a download brings them: which frame is complete, when it is
//! decoded and shown. Nothing is decoded, and the coded media are not kept.
//!
//! A player needs this to know what it could play: how many seconds are in its buffer, and when it would stall.
//!
//! ```text
//! driver:  want() → feed(bytes) | ignored(count) | jumped(offset) → next_frame()… → want() → …
//! ```
//! The driver may always pass more than [`Want`] names, in pieces of any size, and may take the bytes between here and
//! the offset of [`Want::Jump`] in order, where that is ahead.
//!
//! Times are those of the file: after edit lists in MP4, as they are in transport streams, which begin anywhere.

mod error;
mod init;
mod known;
mod mp4;
mod scale;
mod shared;
mod ts;
mod webm;

use std::sync::Arc;

use throng_observation::{Codec, MediaKind};

pub use error::{Container, TimingError};
pub use init::InitSegment;
pub use known::{SegmentId, WholeSegment};
pub use mp4::{IndexedSegment, SegmentIndex};
pub use ts::Anomalies;

use crate::mark::Mark;
use error::CUT;
use known::{Known, KnownSegments, Recording, Way};
use mp4::Mp4;
use shared::Pool;
use ts::{Framing, Ts};
use webm::Webm;

/// What a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackInfo {
    /// Audio or video.
    pub kind: MediaKind,
    /// Its codec.
    pub codec: Codec,
}

/// A frame of video, or of audio (a coded block of samples), of which the last byte has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedFrame {
    /// Its track, an index of [`TimingReader::tracks`].
    pub track: u16,
    /// When it is decoded, microseconds. Equal to [`Self::presentation_us`] in Matroska, which has no such time.
    pub decode_us: i64,
    /// When it is shown or heard, microseconds. Negative, or after the end, when an edit list leaves it out: then it is
    /// only decoded, as audio is that primes a decoder.
    pub presentation_us: i64,
    /// How long, microseconds; 0 where the file does not say.
    pub duration_us: u32,
    /// Its coded size, bytes.
    pub bytes: u32,
    /// A decoder can begin with it.
    pub is_key: bool,
}

/// A picture with a mark of the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedFrame {
    /// When it is decoded, microseconds, as [`TimedFrame::decode_us`].
    pub decode_us: i64,
    /// The mark.
    pub mark: Mark,
}

/// What should come next, from [`TimingReader::position`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// These bytes are to be read: pass them to [`TimingReader::feed`]. `u64::MAX`: all there are.
    Deliver(u64),
    /// These bytes have to be received, and their contents do not matter: [`TimingReader::ignored`].
    Ignore(u64),
    /// What is needed next is elsewhere: request it from this offset on, then call [`TimingReader::jumped`].
    Jump(u64),
    /// Nothing: all frames are complete.
    Done,
}

/// Indexes of files, shared by all readers that were given clones of this one: the same index is kept and read once,
/// as long as a reader uses it. So is the timing of the last segments ([`TimingReader::identify`]).
#[derive(Clone, Debug, Default)]
pub struct IndexCache {
    movies: Pool<mp4::SharedMovie>,
    segments: Pool<mp4::SharedSegmentIndex>,
    cues: Pool<webm::SharedCues>,
    known: KnownSegments,
}

/// Bytes that tell formats apart.
const SNIFF_LEN: usize = 1_024;

/// Of a segment that is read for others too, so many bytes are read at a time: as exactly they learn when its frames are
/// complete.
const RECORDED_LEN: usize = 4_096;

/// Reads the timing of one download.
#[derive(Debug)]
pub struct TimingReader {
    indexes: IndexCache,
    total_bytes: Option<u64>,
    format: Format,
    failed: Option<TimingError>,
    sharing: Sharing,
}

/// What a reader has of others, or others of it.
#[derive(Debug)]
enum Sharing {
    Nothing,
    Records(Box<Recording>),
    Knows(Box<Known>),
}

#[derive(Debug)]
enum Format {
    /// The first bytes of the file.
    Unknown(Vec<u8>),
    Mp4(Box<Mp4>),
    Ts(Box<Ts>),
    Webm(Box<Webm>),
}

impl TimingReader {
    /// A reader of a file of `total_bytes`, if that is known, from its first byte on. The first bytes show the format.
    #[must_use]
    pub fn new(indexes: IndexCache, total_bytes: Option<u64>) -> Self {
        Self {
            indexes,
            total_bytes,
            format: Format::Unknown(Vec::new()),
            failed: None,
            sharing: Sharing::Nothing,
        }
    }

    /// A reader of one media segment of HLS or DASH, from its first byte on: a transport stream, or what follows an
    /// initialisation segment. Offsets count from the beginning of the segment.
    #[must_use]
    pub fn segment(indexes: IndexCache, init: Option<&InitSegment>) -> Self {
        let mut reader = Self::new(indexes, None);
        if let Some(init) = init {
            reader.format = init.format(&reader.indexes);
        }
        reader
    }

    /// A [`Self::segment`] of which nothing was read yet is this version of it. Where another reader has read it whole, only
    /// its first bytes are wanted; else it is read for others too.
    pub fn identify(&mut self, id: SegmentId) {
        self.sharing = match self.indexes.known.way(id) {
            Way::Known(known) => Sharing::Knows(Box::new(known)),
            Way::Record(recording) => Sharing::Records(Box::new(recording)),
            Way::Read => Sharing::Nothing,
        };
    }

    /// A [`Self::segment`] of which nothing was read yet is read for others who get it from this reader
    /// ([`Self::whole`]), whatever its server says of its version.
    pub fn share_alike(&mut self) {
        if matches!(self.sharing, Sharing::Nothing) {
            self.sharing = Sharing::Records(Box::new(Recording::new(None, Arc::default())));
        }
    }

    /// The segment, once it was read whole and is shared ([`Self::identify`], [`Self::share_alike`]).
    #[must_use]
    pub fn whole(&self) -> Option<WholeSegment> {
        match &self.sharing {
            Sharing::Knows(known) => Some(known.segment()),
            Sharing::Nothing | Sharing::Records(_) => None,
        }
    }

    /// A reader that has received all of a segment at once, from another one who read it.
    #[must_use]
    pub fn received(segment: &WholeSegment) -> Self {
        let mut reader = Self::new(IndexCache::default(), Some(segment.bytes()));
        reader.sharing = Sharing::Knows(Box::new(Known::whole(segment)));
        reader
    }

    /// The format of the file, as far as it is known.
    #[must_use]
    pub fn container(&self) -> Container {
        if let Sharing::Knows(known) = &self.sharing {
            return known.container();
        }
        match &self.format {
            Format::Unknown(_) => Container::Unknown,
            Format::Mp4(_) => Container::Mp4,
            Format::Ts(_) => Container::TransportStream,
            Format::Webm(_) => Container::Matroska,
        }
    }

    /// The offset in the file of the next byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        if let Sharing::Knows(known) = &self.sharing {
            return known.position();
        }
        self.read_position()
    }

    fn read_position(&self) -> u64 {
        match &self.format {
            Format::Unknown(first) => first.len() as u64,
            Format::Mp4(reader) => reader.position(),
            Format::Ts(reader) => reader.position(),
            Format::Webm(reader) => reader.position(),
        }
    }

    /// What should come next.
    #[must_use]
    pub fn want(&self) -> Want {
        if self.failed.is_some() {
            return Want::Done;
        }
        match &self.sharing {
            Sharing::Nothing => self.wanted(),
            Sharing::Records(recording) => recording.want(self.read_position(), self.wanted()),
            Sharing::Knows(known) => known.want(),
        }
    }

    fn wanted(&self) -> Want {
        match &self.format {
            Format::Unknown(first) => Want::Deliver((SNIFF_LEN - first.len().min(SNIFF_LEN - 1)) as u64),
            Format::Mp4(reader) => reader.want(),
            Format::Ts(reader) => reader.want(),
            Format::Webm(reader) => reader.want(),
        }
    }

    /// Takes the bytes at [`Self::position`].
    ///
    /// # Errors
    /// [`TimingError`] when the file cannot be read. The frames before it remain; every later call fails as well.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), TimingError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.share(bytes);
        self.remember(result)
    }

    /// Reads for others too, or compares with what others have read.
    fn share(&mut self, bytes: &[u8]) -> Result<(), TimingError> {
        let position = self.position();
        match &mut self.sharing {
            Sharing::Nothing => self.read(bytes),
            Sharing::Records(recording) => {
                recording.bytes(position, bytes);
                for piece in bytes.chunks(RECORDED_LEN) {
                    self.read(piece)?;
                    self.record();
                }
                Ok(())
            }
            Sharing::Knows(known) => {
                let Err(first) = known.feed(bytes) else { return Ok(()) };
                // Another segment with the same validator.
                self.sharing = Sharing::Nothing;
                self.read(&first)?;
                self.read(bytes)
            }
        }
    }

    /// Records the frames that are complete.
    fn record(&mut self) {
        let position = self.read_position();
        while let Some(frame) = self.read_frame() {
            if let Sharing::Records(recording) = &mut self.sharing {
                recording.frame(position, frame);
            }
        }
        if let Some(marked) = self.read_mark()
            && let Sharing::Records(recording) = &mut self.sharing
        {
            recording.marked(marked);
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), TimingError> {
        match &mut self.format {
            Format::Unknown(first) => {
                let (head, rest) = bytes.split_at((SNIFF_LEN - first.len()).min(bytes.len()));
                first.extend_from_slice(head);
                let Some(container) = container(first, false) else { return Ok(()) };
                self.begin(container)?;
                self.read(rest)
            }
            Format::Mp4(reader) => reader.feed(bytes),
            Format::Ts(reader) => reader.feed(bytes),
            Format::Webm(reader) => reader.feed(bytes),
        }
    }

    /// The format is known: reads what was kept of it.
    fn begin(&mut self, container: Container) -> Result<(), TimingError> {
        let Format::Unknown(first) = &mut self.format else { return Ok(()) };
        let first = std::mem::take(first);
        self.format = match container {
            Container::Mp4 => Format::Mp4(Box::new(Mp4::new(&self.indexes, self.total_bytes))),
            Container::Matroska => Format::Webm(Box::new(Webm::new(&self.indexes, self.total_bytes))),
            Container::TransportStream => {
                let framing = Framing::find(&first).ok_or_else(|| unknown(&first))?;
                Format::Ts(Box::new(Ts::new(framing, self.total_bytes)))
            }
            Container::Unknown => return Err(unknown(&first)),
        };
        self.read(&first)
    }

    fn remember<T>(&mut self, result: Result<T, TimingError>) -> Result<T, TimingError> {
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    /// So many bytes at [`Self::position`] were received, but not kept. When they were wanted, the reader fails at the
    /// next [`Self::feed`].
    pub fn ignored(&mut self, count: u64) {
        let result = match (&mut self.sharing, &mut self.format) {
            (Sharing::Knows(known), _) => known.ignored(count),
            (_, format) => Self::format_ignored(format, count),
        };
        if self.failed.is_none() {
            let _ = self.remember(result);
        }
        if matches!(self.sharing, Sharing::Records(_)) {
            self.record();
        }
    }

    fn format_ignored(format: &mut Format, count: u64) -> Result<(), TimingError> {
        match format {
            Format::Unknown(_) if count == 0 => Ok(()),
            Format::Unknown(first) => Err(missed(Container::Unknown, first.len() as u64)),
            Format::Mp4(reader) => reader.ignored(count),
            Format::Webm(reader) => reader.ignored(count),
            Format::Ts(_) if count == 0 => Ok(()),
            Format::Ts(reader) => Err(missed(Container::TransportStream, reader.position())),
        }
    }

    /// The next bytes come from `offset`: after [`Want::Jump`], or to seek, then with an offset of [`Self::offset_for`].
    /// Frames between are not reported.
    pub fn jumped(&mut self, offset: u64) {
        // Who leaves parts of a segment out cannot share it.
        self.sharing = Sharing::Nothing;
        match &mut self.format {
            Format::Unknown(first) if offset == 0 => first.clear(),
            Format::Unknown(first) => {
                let error = missed(Container::Unknown, first.len() as u64);
                self.failed.get_or_insert(error);
            }
            Format::Mp4(reader) => reader.jumped(offset),
            Format::Ts(reader) => reader.jumped(offset),
            Format::Webm(reader) => reader.jumped(offset),
        }
    }

    /// What was wrong with a transport stream, and passed over; zeros for other formats.
    #[must_use]
    pub fn anomalies(&self) -> Anomalies {
        match (&self.sharing, &self.format) {
            (Sharing::Knows(known), _) => known.anomalies(),
            (_, Format::Ts(reader)) => reader.anomalies(),
            _ => Anomalies::default(),
        }
    }

    /// The tracks of audio and video, once they are known. More may be added when a transport stream changes.
    #[must_use]
    pub fn tracks(&self) -> Option<&[TrackInfo]> {
        if let Sharing::Knows(known) = &self.sharing {
            return known.tracks();
        }
        match &self.format {
            Format::Unknown(_) => None,
            Format::Mp4(reader) => reader.tracks(),
            Format::Ts(reader) => reader.tracks(),
            Format::Webm(reader) => reader.tracks(),
        }
    }

    /// How long the presentation is, if the file says so.
    #[must_use]
    pub fn duration_us(&self) -> Option<u64> {
        match &self.format {
            Format::Unknown(_) | Format::Ts(_) => None,
            Format::Mp4(reader) => reader.duration_us(),
            Format::Webm(reader) => reader.duration_us(),
        }
    }

    /// The next frame whose last byte has been received, delivered or not; those of a track in decoding order.
    pub fn next_frame(&mut self) -> Option<TimedFrame> {
        match &mut self.sharing {
            Sharing::Nothing => self.read_frame(),
            Sharing::Records(recording) => recording.next_frame(),
            Sharing::Knows(known) => known.next_frame(),
        }
    }

    fn read_frame(&mut self) -> Option<TimedFrame> {
        match &mut self.format {
            Format::Unknown(_) => None,
            Format::Mp4(reader) => reader.next_frame(),
            Format::Ts(reader) => reader.next_frame(),
            Format::Webm(reader) => reader.next_frame(),
        }
    }

    /// The first picture of a segment, if its publisher marked it, once the frame was reported; told once. A mark costs a
    /// look at the first kilobyte.
    pub fn take_marked(&mut self) -> Option<MarkedFrame> {
        match &mut self.sharing {
            Sharing::Nothing => self.read_mark(),
            Sharing::Records(recording) => recording.take_marked(),
            Sharing::Knows(known) => known.take_marked(),
        }
    }

    fn read_mark(&mut self) -> Option<MarkedFrame> {
        match &mut self.format {
            Format::Mp4(reader) => reader.take_marked(),
            Format::Ts(reader) => reader.take_marked(),
            Format::Unknown(_) | Format::Webm(_) => None,
        }
    }

    /// The file has ended.
    ///
    /// # Errors
    /// [`TimingError`] when it ends inside a box, an element or a frame, or before its format was known.
    pub fn finish(&mut self) -> Result<(), TimingError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = match &self.sharing {
            Sharing::Knows(known) => known.finish(),
            Sharing::Nothing | Sharing::Records(_) => self.end(),
        };
        self.remember(result)?;
        self.publish();
        Ok(())
    }

    /// Gives others what was recorded, and goes on with it.
    fn publish(&mut self) {
        if !matches!(self.sharing, Sharing::Records(_)) {
            return;
        }
        self.record();
        let bytes = self.read_position();
        if !matches!(&self.sharing, Sharing::Records(recording) if recording.is_whole(bytes)) {
            return;
        }
        let (container, anomalies) = (self.container(), self.anomalies());
        let tracks = self.tracks().unwrap_or_default().to_vec();
        if let Sharing::Records(recording) = std::mem::replace(&mut self.sharing, Sharing::Nothing) {
            let known = recording.finish(&self.indexes.known, bytes, container, tracks, anomalies);
            self.sharing = Sharing::Knows(Box::new(known));
        }
    }

    fn end(&mut self) -> Result<(), TimingError> {
        if let Format::Unknown(first) = &self.format {
            let container = container(first, true).ok_or_else(|| unknown(first))?;
            self.begin(container)?;
        }
        match &mut self.format {
            Format::Unknown(first) => Err(unknown(first)),
            Format::Mp4(reader) => reader.finish(),
            Format::Ts(reader) => reader.finish(),
            Format::Webm(reader) => reader.finish(),
        }
    }

    /// Where to continue in order to play from this time on, and the time of the key frame there: at or before it.
    /// `None` when the file has no index, or it has not been read.
    #[must_use]
    pub fn offset_for(&self, time_us: u64) -> Option<(u64, u64)> {
        match &self.format {
            Format::Unknown(_) => None,
            Format::Mp4(reader) => reader.offset_for(time_us),
            Format::Ts(reader) => reader.offset_for(time_us),
            Format::Webm(reader) => reader.offset_for(time_us),
        }
    }

    /// Where the index for [`Self::offset_for`] begins, when it is known and has not been read: at the end of most
    /// WebM files. A player that wants to seek jumps there, delivers the index, and jumps to where it leads.
    #[must_use]
    pub fn seek_index(&self) -> Option<u64> {
        if let Format::Webm(reader) = &self.format { reader.seek_index() } else { None }
    }
}

/// The format that a file with these first bytes has; `None` when more are needed, unless they are `all`.
fn container(first: &[u8], all: bool) -> Option<Container> {
    if first.len() < 8 && !all {
        return None;
    }
    if mp4::begins(first) {
        return Some(Container::Mp4);
    }
    if webm::begins(first) {
        return Some(Container::Matroska);
    }
    let is_enough = all || first.len() >= SNIFF_LEN;
    let other =
        || if Framing::find(first).is_some() { Container::TransportStream } else { Container::Unknown };
    is_enough.then(other)
}

fn unknown(first: &[u8]) -> TimingError {
    let begins = first.get(..first.len().min(8)).unwrap_or_default();
    TimingError {
        container: Container::Unknown,
        place: "format".into(),
        offset: 0,
        problem: format!("is neither MP4, MPEG-TS nor WebM: begins with \"{}\"", begins.escape_ascii())
            .into(),
        hint: "the URL may lead to a web page, a playlist or an error message",
    }
}

/// Bytes that were needed were not delivered.
fn missed(container: Container, offset: u64) -> TimingError {
    TimingError {
        container,
        place: "headers".into(),
        offset,
        problem: "were received and not delivered".into(),
        hint: "the player that reads this file must deliver what `Want::Deliver` names",
    }
}

/// The file ends where it must not.
fn cut(container: Container, place: impl Into<String>, offset: u64) -> TimingError {
    TimingError { container, place: place.into(), offset, problem: "is cut off".into(), hint: CUT }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &[u8], piece: usize) -> Result<TimingReader, TimingError> {
        let mut reader = TimingReader::new(IndexCache::default(), Some(file.len() as u64));
        for piece in file.chunks(piece) {
            reader.feed(piece)?;
        }
        reader.finish()?;
        Ok(reader)
    }

    #[test]
    fn what_is_no_video_is_named() {
        for (file, expect) in [
            (&b""[..], "media file: format at offset 0 is neither MP4, MPEG-TS nor WebM: begins with \"\""),
            (b"<!DOCTYPE html>", "begins with \"<!DOCTYP\"; the URL may lead to a web page"),
            (b"\0\0\0\x10ftypisom\0\0\0\0", "MP4: index (box `moov`) at offset 16 is cut off"),
            (b"\0\0\0\x10ftypis", "MP4: index (box `moov`) at offset 10 is cut off"),
            (b"\x1a\x45\xdf\xa3\x80", "Matroska: element `Tracks` at offset 5 is cut off"),
        ] {
            for piece in [1, 3, 2_000] {
                let error = read(file, piece).unwrap_err().to_string();
                assert!(error.contains(expect), "{error}");
            }
        }
        let page = [b"<html>".repeat(200), b"more".to_vec()].concat();
        assert!(read(&page, 100).unwrap_err().problem.contains("<html>"));
    }

    #[test]
    fn an_error_is_told_again_and_nothing_more_is_wanted() {
        let mut reader = TimingReader::new(IndexCache::default(), None);
        assert_eq!(reader.want(), Want::Deliver(1_024));
        let error = reader.feed(&[b'x'; 2_000]).unwrap_err();
        assert_eq!((reader.feed(&[1]), reader.finish()), (Err(error.clone()), Err(error)));
        assert_eq!((reader.want(), reader.next_frame()), (Want::Done, None));
    }

    #[test]
    fn dropping_what_was_wanted_is_an_error_of_the_caller() {
        let mut reader = TimingReader::new(IndexCache::default(), None);
        reader.ignored(10);
        let error = reader.feed(&[1]).unwrap_err().to_string();
        assert!(error.contains("were received and not delivered"), "{error}");
        let mut reader = TimingReader::new(IndexCache::default(), None);
        reader.feed(b"\0\0\0\x10ftyp").unwrap();
        reader.ignored(8);
        assert_eq!(reader.position(), 16);
        reader.ignored(1);
        assert_eq!(reader.finish().unwrap_err().offset, 16);
    }
}
