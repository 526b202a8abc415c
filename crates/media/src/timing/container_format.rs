//! Which format a file has, told by its first bytes, and the reader of each format.

use super::error::Container;
use super::mp4::{self, Mp4};
use super::packed::{self, Packed};
use super::ts::{Framing, Ts};
use super::webm::{self, Webm};
use super::{MarkedFrame, TimedFrame, TimingError, TimingReader, Want, missed};

/// Bytes that tell formats apart.
const SNIFF_LEN: usize = 1_024;

#[derive(Debug)]
pub(super) enum Format {
    /// The first bytes of the file.
    Unknown(Vec<u8>),
    Mp4(Box<Mp4>),
    Ts(Box<Ts>),
    Packed(Box<Packed>),
    Webm(Box<Webm>),
}

impl TimingReader {
    pub(super) fn read_position(&self) -> u64 {
        match &self.format {
            Format::Unknown(first) => first.len() as u64,
            Format::Mp4(reader) => reader.position(),
            Format::Ts(reader) => reader.position(),
            Format::Packed(reader) => reader.position(),
            Format::Webm(reader) => reader.position(),
        }
    }

    pub(super) fn wanted(&self) -> Want {
        match &self.format {
            Format::Unknown(first) => {
                Want::Deliver((SNIFF_LEN - first.len().min(SNIFF_LEN - 1)) as u64)
            }
            Format::Mp4(reader) => reader.want(),
            Format::Ts(reader) => reader.want(),
            Format::Packed(reader) => reader.want(),
            Format::Webm(reader) => reader.want(),
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), TimingError> {
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
            Format::Packed(reader) => reader.feed(bytes),
            Format::Webm(reader) => reader.feed(bytes),
        }
    }

    /// The format is known: reads what was kept of it.
    fn begin(&mut self, container: Container) -> Result<(), TimingError> {
        let Format::Unknown(first) = &mut self.format else { return Ok(()) };
        let first = std::mem::take(first);
        self.format = match container {
            Container::Mp4 => Format::Mp4(Box::new(Mp4::new(&self.indexes, self.total_bytes))),
            Container::Matroska => {
                Format::Webm(Box::new(Webm::new(&self.indexes, self.total_bytes)))
            }
            Container::TransportStream => {
                let framing = Framing::find(&first).ok_or_else(|| unknown(&first))?;
                let mut reader = Ts::new(framing, self.total_bytes);
                self.program.iter().for_each(|program| reader.go_on_with(program));
                Format::Ts(Box::new(reader))
            }
            Container::PackedAudio => Format::Packed(Box::new(Packed::new(self.total_bytes))),
            Container::Other(name) => return Err(not_read(name)),
            Container::Unknown => return Err(unknown(&first)),
        };
        self.read(&first)
    }

    pub(super) fn format_ignored(format: &mut Format, count: u64) -> Result<(), TimingError> {
        match format {
            Format::Unknown(_) if count == 0 => Ok(()),
            Format::Unknown(first) => Err(missed(Container::Unknown, first.len() as u64)),
            Format::Mp4(reader) => reader.ignored(count),
            Format::Webm(reader) => reader.ignored(count),
            Format::Ts(_) | Format::Packed(_) if count == 0 => Ok(()),
            Format::Packed(reader) => Err(missed(Container::PackedAudio, reader.position())),
            Format::Ts(reader) => Err(missed(Container::TransportStream, reader.position())),
        }
    }

    pub(super) fn read_frame(&mut self) -> Option<TimedFrame> {
        match &mut self.format {
            Format::Unknown(_) => None,
            Format::Mp4(reader) => reader.next_frame(),
            Format::Ts(reader) => reader.next_frame(),
            Format::Packed(reader) => reader.next_frame(),
            Format::Webm(reader) => reader.next_frame(),
        }
    }

    pub(super) fn read_mark(&mut self) -> Option<MarkedFrame> {
        match &mut self.format {
            Format::Mp4(reader) => reader.take_marked(),
            Format::Ts(reader) => reader.take_marked(),
            Format::Unknown(_) | Format::Packed(_) | Format::Webm(_) => None,
        }
    }

    pub(super) fn end(&mut self) -> Result<(), TimingError> {
        if let Format::Unknown(first) = &self.format {
            let container = container(first, true).ok_or_else(|| unknown(first))?;
            self.begin(container)?;
        }
        match &mut self.format {
            Format::Unknown(first) => Err(unknown(first)),
            Format::Mp4(reader) => reader.finish(),
            Format::Ts(reader) => reader.finish(),
            Format::Packed(reader) => reader.finish(),
            Format::Webm(reader) => reader.finish(),
        }
    }
}

/// The format that a file with these first bytes has; `None` when more are needed, unless they are
/// `all`.
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
    let other = || {
        if packed::begins(first) {
            Container::PackedAudio
        } else if Framing::find(first).is_some() {
            Container::TransportStream
        } else {
            other_format(first).map_or(Container::Unknown, Container::Other)
        }
    };
    is_enough.then(other)
}

/// The name of a format that players know and that is not read here, by its first bytes.
fn other_format(first: &[u8]) -> Option<&'static str> {
    const FORMATS: [(&[u8], &str); 5] = [
        (&[0, 0, 1, 0xba], "MPEG program stream"), // pack header: ISO/IEC 13818-1 section 2.5.3.3
        (b"FLV\x01", "FLV"),
        (b"OggS", "Ogg"),
        (b"RIFF", "RIFF (AVI, WAV)"),
        (b"fLaC", "FLAC"),
    ];
    FORMATS.iter().find(|(begin, _)| first.starts_with(begin)).map(|(_, name)| *name)
}

fn not_read(name: &'static str) -> TimingError {
    TimingError {
        container: Container::Other(name),
        place: "format".into(),
        offset: 0,
        problem: "is not read by throng".into(),
        hint: "offer it as MP4, MPEG-TS or WebM",
    }
}

fn unknown(first: &[u8]) -> TimingError {
    let begins = first.get(..first.len().min(8)).unwrap_or_default();
    TimingError {
        container: Container::Unknown,
        place: "format".into(),
        offset: 0,
        problem: format!(
            "is neither MP4, MPEG-TS, WebM nor packed audio: begins with \"{}\"",
            begins.escape_ascii()
        )
        .into(),
        hint: "the URL may lead to a web page, a playlist or an error message",
    }
}
