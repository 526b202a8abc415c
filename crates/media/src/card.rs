//! The test card: video at several rates and audio, made once by `clips/make.sh` and included in
//! the program.

use std::sync::{Arc, OnceLock};

use throng_observation::Codec;

use crate::source::{Clip, ClipError, Format, read};

/// A size and rate of the test card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// 256 × 144, 15 frames a second, 64 kbit/s.
    P144,
    /// 320 × 180, 15 frames a second, 90 kbit/s.
    P180,
    /// 426 × 240, 20 frames a second, 256 kbit/s.
    P240,
    /// 640 × 360, 30 frames a second, 1 Mbit/s.
    P360,
    /// 1280 × 720, 30 frames a second, 2.5 Mbit/s.
    P720,
    /// 1920 × 1080, 30 frames a second, 4.5 Mbit/s.
    P1080,
}

impl Rung {
    /// All of them, the smallest first.
    pub const ALL: [Rung; 6] =
        [Rung::P144, Rung::P180, Rung::P240, Rung::P360, Rung::P720, Rung::P1080];

    /// Its name, its width and height in pixels, its frames a second, and the rate that it was
    /// encoded for, bits per second.
    fn facts(self) -> (&'static str, (u32, u32), u32, u32) {
        match self {
            Rung::P144 => ("144p", (256, 144), 15, 64_000),
            Rung::P180 => ("180p", (320, 180), 15, 90_000),
            Rung::P240 => ("240p", (426, 240), 20, 256_000),
            Rung::P360 => ("360p", (640, 360), 30, 1_000_000),
            Rung::P720 => ("720p", (1280, 720), 30, 2_500_000),
            Rung::P1080 => ("1080p", (1920, 1080), 30, 4_500_000),
        }
    }

    /// The name: its height, such as `240p`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// The rung of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rung| rung.name() == name)
    }

    /// Pixels from left to right.
    #[must_use]
    pub fn width(self) -> u32 {
        self.size().0
    }

    /// Pixels from top to bottom.
    #[must_use]
    pub fn height(self) -> u32 {
        self.size().1
    }

    /// Frames a second.
    #[must_use]
    pub fn fps(self) -> u32 {
        self.facts().2
    }

    /// The rate that it was encoded for, bits per second.
    #[must_use]
    pub fn bitrate_bps(self) -> u32 {
        self.facts().3
    }

    /// The rung of that size in pixels.
    #[must_use]
    pub fn from_size(width: u32, height: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|rung| rung.size() == (width, height))
    }

    /// Width and height, pixels.
    #[must_use]
    pub fn size(self) -> (u32, u32) {
        self.facts().1
    }

    /// Number of pictures in a turn of the loop; they are numbered from 0 in each turn.
    #[must_use]
    pub fn pictures(self) -> u32 {
        3 * self.fps()
    }

    fn file(self, codec: Codec) -> Option<&'static [u8]> {
        macro_rules! clips {
            ($($rung:ident $name:literal),*) => {
                match (self, codec) {
                    $((Rung::$rung, Codec::H264) => {
                        include_bytes!(concat!("../clips/card-", $name, ".h264"))
                    }
                    (Rung::$rung, Codec::Vp8) => {
                        include_bytes!(concat!("../clips/card-", $name, ".ivf"))
                    })*
                    _ => return None,
                }
            };
        }
        let file: &[u8] = clips!(
            P144 "144p", P180 "180p", P240 "240p", P360 "360p", P720 "720p", P1080 "1080p"
        );
        Some(file)
    }
}

/// The file of the test card: an Annex-B stream (H.264) or IVF (VP8); `None` for other codecs.
#[must_use]
pub fn file(rung: Rung, codec: Codec) -> Option<&'static [u8]> {
    rung.file(codec)
}

/// The video of the test card; all callers share one clip.
///
/// # Errors
/// [`ClipError::Codec`] for any codec but H.264 and VP8.
pub fn picture(rung: Rung, codec: Codec) -> Result<Arc<Clip>, ClipError> {
    static H264: [OnceLock<Arc<Clip>>; Rung::ALL.len()] =
        [const { OnceLock::new() }; Rung::ALL.len()];
    static VP8: [OnceLock<Arc<Clip>>; Rung::ALL.len()] =
        [const { OnceLock::new() }; Rung::ALL.len()];
    let unknown = || ClipError::Codec { codec: codec.name().into(), format: "the test card" };
    let file = rung.file(codec).ok_or_else(unknown)?;
    let clips = if codec == Codec::H264 { &H264 } else { &VP8 };
    let slot = clips.get(rung as usize).ok_or_else(unknown)?;
    shared(slot, file, &Format { codec: None, fps: Some(f64::from(rung.fps())), ssrc: None })
}

/// The video of the test card at `rung` and at all rungs below it, the smallest first; all callers
/// share the clips.
///
/// # Errors
/// As [`picture`].
pub fn ladder(rung: Rung, codec: Codec) -> Result<Vec<Arc<Clip>>, ClipError> {
    Rung::ALL
        .into_iter()
        .filter(|lower| *lower <= rung)
        .map(|lower| picture(lower, codec))
        .collect()
}

/// Audio like speech: noise in syllables, Opus, about 29 kbit/s.
///
/// # Errors
/// None if the included clips are intact.
pub fn speech() -> Result<Arc<Clip>, ClipError> {
    static SPEECH: OnceLock<Arc<Clip>> = OnceLock::new();
    shared(&SPEECH, include_bytes!("../clips/speech.opus.ogg"), &Format::default())
}

/// Two tones that beat once a second, so that a gap is audible: Opus, 32 kbit/s.
///
/// # Errors
/// None if the included clips are intact.
pub fn tone() -> Result<Arc<Clip>, ClipError> {
    static TONE: OnceLock<Arc<Clip>> = OnceLock::new();
    shared(&TONE, include_bytes!("../clips/tone.opus.ogg"), &Format::default())
}

/// The same two tones in AAC, 64 kbit/s, for protocols that do not carry Opus.
///
/// # Errors
/// None if the included clips are intact.
pub fn tone_aac() -> Result<Arc<Clip>, ClipError> {
    static TONE: OnceLock<Arc<Clip>> = OnceLock::new();
    shared(&TONE, include_bytes!("../clips/tone.aac"), &Format::default())
}

fn shared(
    slot: &OnceLock<Arc<Clip>>,
    file: &[u8],
    format: &Format,
) -> Result<Arc<Clip>, ClipError> {
    if let Some(clip) = slot.get() {
        return Ok(Arc::clone(clip));
    }
    let clip = Arc::new(read(file, format)?);
    Ok(Arc::clone(slot.get_or_init(|| clip)))
}

/// Columns of the strip with a frame's number.
const COLUMNS: usize = 12;
/// Columns that are always the same: (column, is white).
const FRAME: [(usize, bool); 3] = [(0, true), (9, false), (COLUMNS - 1, true)];

/// Reads the number of a frame from its decoded picture: eight bits in the strip at its top. `luma`
/// is the Y plane, a line every `stride` bytes. `None` when the strip is missing or damaged.
#[must_use]
pub fn read_number(luma: &[u8], stride: usize, width: usize, height: usize) -> Option<u8> {
    // A few pixels from the middle of each column, so that blur at its borders has no effect.
    let line = height / 18;
    let mean = |column: usize| {
        let middle = (2 * column + 1) * width / (2 * COLUMNS);
        let from = (line * stride).checked_add(middle.checked_sub(2)?)?;
        let pixels = luma.get(from..from + 4)?;
        Some(pixels.iter().map(|pixel| u32::from(*pixel)).sum::<u32>() / 4)
    };
    let is_white = |column| match mean(column)? {
        160.. => Some(true),
        0..=96 => Some(false),
        _ => None,
    };
    let framed = FRAME.iter().all(|(column, white)| is_white(*column) == Some(*white));
    let bits =
        (1..=8).try_fold(0_u8, |bits, column| Some(bits << 1 | u8::from(is_white(column)?)))?;
    (framed && is_white(10)? == (bits.count_ones() % 2 == 1)).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Player;

    #[test]
    fn every_rung_is_three_seconds_at_its_rate_with_a_key_frame_each() {
        for rung in Rung::ALL {
            for codec in [Codec::H264, Codec::Vp8] {
                let clip = picture(rung, codec).unwrap();
                assert_eq!(clip.frame_count(), 3 * rung.fps() as usize, "{rung:?} {codec:?}");
                assert!((clip.duration_s() - 3.0).abs() < 0.01, "{}", clip.duration_s());
                let rate = clip.bitrate_bps() / f64::from(rung.bitrate_bps());
                assert!((0.8..1.4).contains(&rate), "{rung:?} {codec:?} {rate}");
                let mut player = Player::new(Arc::clone(&clip));
                let keys =
                    (0..clip.frame_count()).filter(|_| clip.is_key(&player.advance())).count();
                assert_eq!(keys, 3, "{rung:?} {codec:?}");
            }
        }
        for sound in [speech().unwrap(), tone().unwrap(), tone_aac().unwrap()] {
            assert!((3.0..3.1).contains(&sound.duration_s()), "{}", sound.duration_s());
        }
        assert!(picture(Rung::P144, Codec::Av1).is_err());
    }

    #[test]
    fn the_strip_says_the_number_and_damage_says_nothing() {
        let (width, height, stride) = (120, 72, 128);
        let draw = |number: u8| {
            let mut luma = vec![0x80_u8; stride * height];
            for (column, white) in (0..COLUMNS).map(|column| match column {
                0 | 11 => (column, true),
                9 => (column, false),
                10 => (column, number.count_ones() % 2 == 1),
                _ => (column, number >> (8 - column) & 1 == 1),
            }) {
                for line in 0..height / 9 {
                    let from = line * stride + column * width / COLUMNS;
                    luma[from..from + width / COLUMNS].fill(if white { 230 } else { 20 });
                }
            }
            luma
        };
        for number in 0..=255 {
            let mut luma = draw(number);
            assert_eq!(read_number(&luma, stride, width, height), Some(number));
            for line in 0..8 {
                luma[line * stride + 30..line * stride + 40].fill(if number >> 5 & 1 == 1 {
                    20
                } else {
                    230
                });
            }
            assert_eq!(read_number(&luma, stride, width, height), None, "a bit turned over");
        }
        assert_eq!(read_number(&[0; 10], 4, 2, 2), None);
        assert_eq!(read_number(&vec![0x80; stride * height], stride, width, height), None);
    }
}
