//! The reader of one download: it passes bytes to the reader of the file's format, or to what is
//! known of the segment.

use throng_observation::MediaKind;

use super::container_format::Format;
use super::segment_sharing::Sharing;
use super::{
    Anomalies, Container, IndexCache, InitSegment, MarkedFrame, Program, TimedFrame, TimingError,
    TrackInfo, Want, missed,
};

/// Reads the timing of one download.
#[derive(Debug)]
pub struct TimingReader {
    pub(super) indexes: IndexCache,
    pub(super) total_bytes: Option<u64>,
    pub(super) format: Format,
    /// What a transport stream goes on with.
    pub(super) program: Option<Program>,
    failed: Option<TimingError>,
    pub(super) sharing: Sharing,
}

impl TimingReader {
    /// A reader of a file of `total_bytes`, if that is known, from its first byte on. The first
    /// bytes show the format.
    #[must_use]
    pub fn new(indexes: IndexCache, total_bytes: Option<u64>) -> Self {
        Self {
            indexes,
            total_bytes,
            format: Format::Unknown(Vec::new()),
            program: None,
            failed: None,
            sharing: Sharing::Nothing,
        }
    }

    /// A reader of one media segment of HLS or DASH, from its first byte on: a transport stream, or
    /// what follows an initialisation segment. Offsets count from the beginning of the segment.
    #[must_use]
    pub fn segment(indexes: IndexCache, init: Option<&InitSegment>) -> Self {
        let mut reader = Self::new(indexes, None);
        if let Some(init) = init {
            reader.format = init.format(&reader.indexes);
        }
        reader
    }

    /// A [`Self::segment`] of which nothing was read yet goes on with the streams of the one before
    /// ([`Self::program`]), where it is a transport stream: it needs no tables of its own.
    pub fn go_on_with(&mut self, program: Program) {
        self.program = Some(program);
    }

    /// The streams of a transport stream that was read here, or by others, for the segment that
    /// follows it.
    #[must_use]
    pub fn program(&self) -> Option<Program> {
        if let Sharing::Knows(known) = &self.sharing {
            return known.program();
        }
        match &self.format {
            Format::Ts(reader) => reader.streams(),
            Format::Unknown(_) | Format::Mp4(_) | Format::Packed(_) | Format::Webm(_) => None,
        }
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
            Format::Packed(_) => Container::PackedAudio,
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

    /// Takes the bytes at [`Self::position`].
    ///
    /// # Errors
    /// [`TimingError`] when the file cannot be read. The frames before it remain; every later call
    /// fails as well.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), TimingError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.share(bytes);
        self.remember(result)
    }

    fn remember<T>(&mut self, result: Result<T, TimingError>) -> Result<T, TimingError> {
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    /// So many bytes at [`Self::position`] were received, but not kept. When they were wanted, the
    /// reader fails at the next [`Self::feed`].
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

    /// The next bytes come from `offset`: after [`Want::Jump`], or to seek, then with an offset of
    /// [`Self::offset_for`]. Frames between are not reported, and what could not be read before is
    /// forgotten: a file that is cut off can be played again.
    pub fn jumped(&mut self, offset: u64) {
        // Who leaves parts of a segment out cannot share it.
        self.sharing = Sharing::Nothing;
        self.failed = None;
        match &mut self.format {
            Format::Unknown(first) if offset == 0 => first.clear(),
            Format::Unknown(first) => {
                let error = missed(Container::Unknown, first.len() as u64);
                self.failed.get_or_insert(error);
            }
            Format::Mp4(reader) => reader.jumped(offset),
            Format::Ts(reader) => reader.jumped(offset),
            Format::Packed(reader) => reader.jumped(offset),
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

    /// The tracks of audio and video, once they are known. More may be added when a transport
    /// stream changes.
    #[must_use]
    pub fn tracks(&self) -> Option<&[TrackInfo]> {
        if let Sharing::Knows(known) = &self.sharing {
            return known.tracks();
        }
        match &self.format {
            Format::Unknown(_) => None,
            Format::Mp4(reader) => reader.tracks(),
            Format::Ts(reader) => reader.tracks(),
            Format::Packed(reader) => reader.tracks(),
            Format::Webm(reader) => reader.tracks(),
        }
    }

    /// Width and height of the pictures of the first track of video, pixels, once they are known.
    #[must_use]
    pub fn picture_size(&self) -> Option<(u16, u16)> {
        self.tracks()?.iter().find(|track| track.kind == MediaKind::Video)?.size
    }

    /// Whether the index of the file says that no frame of this track, an index of
    /// [`Self::tracks`], is still to come: it may end long before others.
    #[must_use]
    pub fn has_ended(&self, track: u16) -> bool {
        if let Format::Mp4(reader) = &self.format { reader.has_ended(track) } else { false }
    }

    /// How long the presentation is, if the file says so.
    #[must_use]
    pub fn duration_us(&self) -> Option<u64> {
        match &self.format {
            Format::Unknown(_) | Format::Ts(_) | Format::Packed(_) => None,
            Format::Mp4(reader) => reader.duration_us(),
            Format::Webm(reader) => reader.duration_us(),
        }
    }

    /// The next frame whose last byte has been received, delivered or not; those of a track in
    /// decoding order.
    pub fn next_frame(&mut self) -> Option<TimedFrame> {
        match &mut self.sharing {
            Sharing::Nothing => self.read_frame(),
            Sharing::Records(recording) => recording.next_frame(),
            Sharing::Knows(known) => known.next_frame(),
        }
    }

    /// The first picture of a segment, if its publisher marked it, once the frame was reported;
    /// told once. A mark costs a look at the first kilobyte.
    pub fn take_marked(&mut self) -> Option<MarkedFrame> {
        match &mut self.sharing {
            Sharing::Nothing => self.read_mark(),
            Sharing::Records(recording) => recording.take_marked(),
            Sharing::Knows(known) => known.take_marked(),
        }
    }

    /// The file has ended.
    ///
    /// # Errors
    /// [`TimingError`] when it ends inside a box, an element or a frame, or before its format was
    /// known.
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

    /// Where to continue in order to play from this time on, and the time of the key frame there:
    /// at or before it. `None` when the file has no index, or it has not been read.
    #[must_use]
    pub fn offset_for(&self, time_us: u64) -> Option<(u64, u64)> {
        match &self.format {
            Format::Unknown(_) => None,
            Format::Mp4(reader) => reader.offset_for(time_us),
            Format::Ts(reader) => reader.offset_for(time_us),
            Format::Packed(reader) => reader.offset_for(time_us),
            Format::Webm(reader) => reader.offset_for(time_us),
        }
    }

    /// Where the index for [`Self::offset_for`] begins, when it is known and has not been read: at
    /// the end of most WebM files. A player that wants to seek jumps there, delivers the index, and
    /// jumps to where it leads.
    #[must_use]
    pub fn seek_index(&self) -> Option<u64> {
        if let Format::Webm(reader) = &self.format { reader.seek_index() } else { None }
    }
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
            (
                &b""[..],
                "media file: format at offset 0 is neither MP4, MPEG-TS, WebM nor packed audio: begins with \"\"",
            ),
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
    fn a_file_that_is_cut_off_can_be_played_again() {
        let file = b"ID3\x04\0\0\0\0\0\0\xff\xf1\x4c\x80\x02\x1f\xfc.........\xff\xf1\x4c";
        let mut reader = TimingReader::new(IndexCache::default(), Some(file.len() as u64));
        for _ in 0..2 {
            reader.feed(file).unwrap();
            let error = reader.finish().unwrap_err();
            assert!(error.to_string().contains("is cut off"), "{error}");
            assert_eq!(reader.next_frame().map(|frame| frame.decode_us), Some(0));
            reader.jumped(0);
            assert!(matches!(reader.want(), Want::Deliver(_)));
        }
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
