//! The workload: frames of one size or of sizes from a list, at an offered rate or at full speed.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::frame::{HEADER_BYTES, TAIL_BYTES};

/// The smallest frame: the marks at its edges must fit.
pub const FRAME_BYTES_MIN: u32 = (HEADER_BYTES + TAIL_BYTES) as u32;

/// The largest frame: 8K video of three planes with 16 bit is 199 MB; a producer keeps six frames
/// in memory.
pub const FRAME_BYTES_MAX: u32 = 200 << 20;

/// Most sizes of a list; a producer cycles through it.
const SIZES_MAX: usize = 100_000;

/// Why a workload cannot be used; each message has the accepted form.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// Not a frame size.
    #[error(
        "`{0}` is no frame size: write WIDTHxHEIGHT:FORMAT such as 1920x1080:i420, or bytes such \
         as 1200 or 3MB"
    )]
    Frame(String),
    /// An unknown pixel format.
    #[error("`{format}` is no known pixel format: use one of {known}")]
    Format {
        /// What was written.
        format: String,
        /// What could be written.
        known: String,
    },
    /// Outside the range that can be measured.
    #[error(
        "a frame of {bytes} bytes cannot be measured: {FRAME_BYTES_MIN} to {FRAME_BYTES_MAX} \
         bytes can"
    )]
    Size {
        /// Its size, bytes.
        bytes: u64,
    },
    /// A line of the list of sizes is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: Box<WorkloadError>,
    },
    /// The list has no size.
    #[error("there is no frame size in the list: write one a line, such as 1200 or 1280x720:nv12")]
    Empty,
    /// The list is too long.
    #[error("line {0}: a list holds at most {SIZES_MAX} sizes")]
    TooMany(usize),
}

/// Pixel formats and the bits that a pixel takes on average.
const FORMATS: [(&str, u64); 18] = [
    ("i420", 12),
    ("yv12", 12),
    ("nv12", 12),
    ("nv21", 12),
    ("i422", 16),
    ("yuy2", 16),
    ("uyvy", 16),
    ("i444", 24),
    ("i420p10", 24),
    ("p010", 24),
    ("i422p10", 32),
    ("i444p10", 48),
    ("rgb24", 24),
    ("bgr24", 24),
    ("rgba", 32),
    ("bgra", 32),
    ("argb", 32),
    ("gray8", 8),
];

/// The size of a frame, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameSize(u32);

impl FrameSize {
    /// A frame of this many bytes.
    ///
    /// # Errors
    /// [`WorkloadError::Size`] outside of [`FRAME_BYTES_MIN`] to [`FRAME_BYTES_MAX`].
    pub fn bytes(bytes: u64) -> Result<Self, WorkloadError> {
        u32::try_from(bytes)
            .ok()
            .filter(|bytes| (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(bytes))
            .map(Self)
            .ok_or(WorkloadError::Size { bytes })
    }

    /// Reads `1920x1080:i420` (the picture without padding), or bytes: `1200`, `1200B`, `64KiB`,
    /// `3MB`.
    ///
    /// # Errors
    /// Names what cannot be read and what can.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let text = text.trim();
        let unreadable = || WorkloadError::Frame(text.to_owned());
        if let Some((geometry, format)) = text.split_once(':') {
            let (width, height) = geometry.split_once('x').ok_or_else(unreadable)?;
            let side =
                |text: &str| text.parse::<NonZeroU32>().map(|side| u64::from(side.get())).ok();
            let (width, height) = side(width)
                .zip(side(height))
                .filter(|(w, h)| *w <= 65_536 && *h <= 65_536)
                .ok_or_else(unreadable)?;
            return Self::bytes(picture_bytes(width, height, format)?);
        }
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit.trim() {
            "" | "B" => 1,
            "kB" | "KB" => 1_000,
            "KiB" => 1 << 10,
            "MB" => 1_000_000,
            "MiB" => 1 << 20,
            _ => return Err(unreadable()),
        };
        let number: u64 = number.parse().map_err(|_| unreadable())?;
        Self::bytes(number.saturating_mul(factor))
    }

    /// The size in bytes.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

/// Planes are rounded up as codecs do: a picture of 3x3 in 4:2:0 has chroma planes of 2x2.
fn picture_bytes(width: u64, height: u64, format: &str) -> Result<u64, WorkloadError> {
    let wanted = format.to_ascii_lowercase();
    let bits = FORMATS.iter().find(|(name, _)| *name == wanted).map(|(_, bits)| *bits).ok_or_else(
        || WorkloadError::Format {
            format: format.to_owned(),
            known: FORMATS.map(|(name, _)| name).join(", "),
        },
    )?;
    let chroma = width.div_ceil(2) * height.div_ceil(2) * 2;
    let half_chroma = width.div_ceil(2) * height * 2;
    Ok(match wanted.as_str() {
        "i420" | "yv12" | "nv12" | "nv21" => width * height + chroma,
        "i420p10" | "p010" => 2 * (width * height + chroma),
        "i422" => width * height + half_chroma,
        "i422p10" => 2 * (width * height + half_chroma),
        "yuy2" | "uyvy" => width.div_ceil(2) * 4 * height,
        _ => width * height * bits / 8,
    })
}

/// The sizes of frames, in order, repeated cyclically.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameSizes {
    sizes: Vec<FrameSize>,
}

impl From<FrameSize> for FrameSizes {
    fn from(size: FrameSize) -> Self {
        Self { sizes: vec![size] }
    }
}

impl FrameSizes {
    /// Reads a list: one size per line as [`FrameSize::parse`] takes it; empty lines and text after
    /// `#` are ignored.
    ///
    /// # Errors
    /// The first wrong line, by its number.
    pub fn read_list(text: &str) -> Result<Self, WorkloadError> {
        let mut sizes = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let size = line.split('#').next().unwrap_or_default().trim();
            if size.is_empty() {
                continue;
            }
            if sizes.len() == SIZES_MAX {
                return Err(WorkloadError::TooMany(index + 1));
            }
            let size = FrameSize::parse(size).map_err(|problem| WorkloadError::Line {
                line: index + 1,
                problem: Box::new(problem),
            })?;
            sizes.push(size);
        }
        if sizes.is_empty() { Err(WorkloadError::Empty) } else { Ok(Self { sizes }) }
    }

    /// The size of a producer's frame number `index`: producers begin at different positions of a
    /// list.
    pub(crate) fn of(&self, producer: u8, producers: u8, index: u64) -> usize {
        let len = self.sizes.len().max(1) as u64;
        let first = len * u64::from(producer) / u64::from(producers.max(1));
        let at = (first + index % len) % len;
        // A list read from elsewhere could be empty; the smallest frame is a size that always
        // works.
        self.sizes.get(at as usize).map_or(FRAME_BYTES_MIN, |size| size.get()) as usize
    }

    /// The largest of them, bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u32 {
        self.sizes.iter().map(|size| size.get()).max().unwrap_or(FRAME_BYTES_MIN)
    }

    /// Their mean, bytes.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        self.sizes.iter().map(|size| f64::from(size.get())).sum::<f64>()
            / self.sizes.len().max(1) as f64
    }

    /// Number of sizes in the list; 1 for frames of one size.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.sizes.len()
    }
}

/// What each producer sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// The frames' sizes.
    pub sizes: FrameSizes,
    /// Frames a second that each producer offers; `None`: as fast as the transport takes them.
    pub fps: Option<f64>,
    /// Number of sending processes.
    pub producers: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_sizes_are_read_as_written() {
        for (text, bytes) in [
            ("1920x1080:i420", 3_110_400),
            ("1920x1080:I420", 3_110_400),
            ("1280x720:nv12", 1_382_400),
            ("3840x2160:p010", 24_883_200),
            ("1920x1080:rgba", 8_294_400),
            ("33x33:i420", 33 * 33 + 17 * 17 * 2),
            ("33x33:yuy2", 34 * 2 * 33),
            ("1200", 1200),
            (" 1200B ", 1200),
            ("64KiB", 65_536),
            ("3MB", 3_000_000),
        ] {
            assert_eq!(FrameSize::parse(text).map(FrameSize::get), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_frame_size_is_named_with_the_mend() {
        for (text, says) in [
            ("", "no frame size"),
            ("big", "no frame size"),
            ("1920x1080", "no frame size"),
            ("0x1080:i420", "no frame size"),
            ("99999x99999:i420", "no frame size"),
            ("1920x1080:h264", "use one of i420"),
            ("47", "48 to 209715200 bytes"),
            ("99999999999MiB", "48 to 209715200 bytes"),
            ("99999999999999999999999", "no frame size"),
            ("-5", "no frame size"),
            ("12 parsecs", "no frame size"),
        ] {
            let error = FrameSize::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_wrong_line_is_named_by_its_number() {
        let list = "# a phone's call\n1200\n\n640x360:i420 # its picture\n12 parsecs\n";
        let error = FrameSizes::read_list(list).unwrap_err();
        assert!(error.to_string().starts_with("line 5: `12 parsecs` is no frame size"), "{error}");
        assert_eq!(FrameSizes::read_list("# nothing\n"), Err(WorkloadError::Empty));
        let long = "1200\n".repeat(SIZES_MAX + 1);
        assert_eq!(FrameSizes::read_list(&long), Err(WorkloadError::TooMany(SIZES_MAX + 1)));
    }

    #[test]
    fn producers_walk_the_list_from_different_places() {
        let sizes = FrameSizes::read_list("100\n200\n300\n400\n").unwrap();
        let walk = |producer| (0..5).map(|i| sizes.of(producer, 2, i)).collect::<Vec<_>>();
        assert_eq!(walk(0), [100, 200, 300, 400, 100]);
        assert_eq!(walk(1), [300, 400, 100, 200, 300]);
        assert_eq!((sizes.max_bytes(), sizes.mean_bytes()), (400, 250.0));
        assert_eq!(sizes.of(1, 2, u64::MAX), 200);
    }
}
