//! The numbers on the test card, picture by picture: in sequence, repeated, skipped.

use throng_media::card::{self, Rung};

use crate::ffmpeg::Picture;

/// Reads the numbers of pictures and counts their steps.
#[derive(Clone, Debug, Default)]
pub struct CardNumbers {
    last: Option<(u8, u32)>,
    /// Counted since the last [`Self::take`].
    counted: NumberCounts,
}

/// Counts of the steps between numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberCounts {
    /// Pictures with a number.
    pub read: u64,
    /// Steps of one.
    pub next: u64,
    /// The same number again.
    pub repeated: u64,
    /// Numbers skipped.
    pub skipped: u64,
}

impl CardNumbers {
    /// Adds a picture; returns its number, if it has one.
    pub fn picture(&mut self, picture: &Picture) -> Option<u8> {
        let (width, height) = (picture.width as usize, picture.height as usize);
        let number = card::read_number(&picture.luma, width, width, height)?;
        // Numbers restart with each turn of the loop; at unknown sizes they wrap at eight bits.
        let turn = Rung::from_size(picture.width, picture.height).map_or(256, Rung::pictures);
        self.counted.read += 1;
        if let Some((last, of)) = self.last.replace((number, turn))
            && of == turn
        {
            match (u32::from(number) + turn).saturating_sub(u32::from(last)) % turn {
                0 => self.counted.repeated += 1,
                1 => self.counted.next += 1,
                step => self.counted.skipped += u64::from(step) - 1,
            }
        }
        Some(number)
    }

    /// The counts since the last call.
    pub fn take(&mut self) -> NumberCounts {
        std::mem::take(&mut self.counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Only the number strip of the test card, as `clips/make.sh` draws it.
    fn picture(number: u8, width: u32, height: u32) -> Picture {
        let white = |column: u32| match column {
            0 | 11 => true,
            9 => false,
            10 => number.count_ones() % 2 == 1,
            _ => number >> (8 - column) & 1 == 1,
        };
        let line: Vec<u8> =
            (0..width).map(|x| if white(x * 12 / width) { 235 } else { 16 }).collect();
        Picture {
            index: 0,
            width,
            height,
            luma: line.repeat(height as usize),
            decoded_at: Instant::now(),
        }
    }

    #[test]
    fn steps_are_counted_within_and_across_turns() {
        let mut numbers = CardNumbers::default();
        for number in [57, 58, 58, 59, 0, 1, 5] {
            assert_eq!(numbers.picture(&picture(number, 426, 240)), Some(number));
        }
        assert_eq!(numbers.take(), NumberCounts { read: 7, next: 4, repeated: 1, skipped: 3 });
        let grey = Picture { luma: vec![0x80; 426 * 240], ..picture(0, 426, 240) };
        assert_eq!(numbers.picture(&grey), None);
        // A switch to another size is not counted as a step.
        assert_eq!(numbers.picture(&picture(40, 640, 360)), Some(40));
        assert_eq!(numbers.take(), NumberCounts { read: 1, ..NumberCounts::default() });
    }
}
