//! Why the timing of a file cannot be read: which box, element or packet, where, and what to look
//! at.

use std::borrow::Cow;
use std::fmt;

/// Which format a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Container {
    /// MP4, QuickTime and their fragmented form (ISO/IEC 14496-12).
    Mp4,
    /// MPEG transport stream (ISO/IEC 13818-1).
    TransportStream,
    /// Matroska (RFC 9559), of which WebM is a subset.
    Matroska,
    /// A format of media that is not read here, by its name.
    Other(&'static str),
    /// Frames of audio in no container (RFC 8216 section 3.4).
    PackedAudio,
    /// Not known yet.
    #[default]
    Unknown,
}

impl Container {
    /// The name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mp4 => "MP4",
            Self::TransportStream => "MPEG-TS",
            Self::Matroska => "Matroska",
            Self::Other(name) => name,
            Self::PackedAudio => "packed audio",
            Self::Unknown => "media file",
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why the timing of a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{container}: {place} at offset {offset} {problem}; {hint}")]
pub struct TimingError {
    /// The format that the file has, or seems to have.
    pub container: Container,
    /// The box, element or packet, as in its specification.
    pub place: String,
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// What is wrong with it.
    pub problem: Cow<'static, str>,
    /// What that may come from.
    pub hint: &'static str,
}

impl TimingError {
    /// Whether the file is media of a format that is not read here: nothing is wrong with it.
    #[must_use]
    pub fn is_of_other_format(&self) -> bool {
        matches!(self.container, Container::Other(_))
    }
}

/// The hint for what no muxer writes.
pub(super) const DAMAGED: &str =
    "the file is damaged, or the server sends other bytes than those of the file";

/// The hint for what ends early.
pub(super) const CUT: &str = "the file was cut off, or the server sent less than it announced";
