//! The clock in the picture of a publisher: time of day (UTC) in seven-segment digits, `HHMMSSmmm`,
//! on a black panel in the lower left corner. It survives transcoding, which in-stream marks
//! ([`crate::mark`]) do not.

/// Number of digits.
pub const DIGITS: usize = 9;

/// The segments of each digit, a bit each: 0 top, 1 upper left, 2 upper right, 3 middle, 4 lower
/// left, 5 lower right, 6 bottom.
pub const SEGMENTS_OF_DIGIT: [u8; 10] = [
    0b111_0111, 0b010_0100, 0b101_1101, 0b110_1101, 0b010_1110, 0b110_1011, 0b111_1011, 0b010_0101,
    0b111_1111, 0b110_1111,
];

/// A day, milliseconds.
const DAY_MS: u64 = 86_400_000;

/// Pixels from the top left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// From the left.
    pub x: usize,
    /// From the top.
    pub y: usize,
    /// Width.
    pub width: usize,
    /// Height.
    pub height: usize,
}

/// Divisor and modulus by which a digit follows from the milliseconds since midnight.
#[must_use]
pub fn digit_divisor_ms(digit: usize) -> (u64, u64) {
    const DIVISORS: [(u64, u64); DIGITS] = [
        (36_000_000, 10),
        (3_600_000, 10),
        (600_000, 6),
        (60_000, 10),
        (10_000, 6),
        (1_000, 10),
        (100, 10),
        (10, 10),
        (1, 10),
    ];
    DIVISORS.get(digit).copied().unwrap_or((1, 10))
}

/// Where the digits are in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Thickness of a segment, pixels.
    unit: usize,
    left: usize,
    top: usize,
}

/// Width of a digit and of the gap after it, in units, and height of a digit.
const DIGIT_UNITS: (usize, usize, usize) = (4, 2, 7);

impl Layout {
    /// The layout in a picture of this size.
    #[must_use]
    pub fn of(width: usize, height: usize) -> Self {
        let (digit, gap, tall) = DIGIT_UNITS;
        // At most 45 % of the width; two units of margin on each side.
        let unit = (width * 45 / 100 / ((digit + gap) * DIGITS + 4)).max(2);
        let top = height.saturating_sub((tall + 4) * unit) / 2 * 2;
        Self { unit, left: 0, top }
    }

    /// The black panel.
    #[must_use]
    pub fn panel(&self) -> Area {
        let (digit, gap, tall) = DIGIT_UNITS;
        let (width, height) = (((digit + gap) * DIGITS + 2) * self.unit, (tall + 4) * self.unit);
        Area { x: self.left, y: self.top, width, height }
    }

    /// A segment of a digit.
    #[must_use]
    pub fn segment(&self, digit: usize, segment: usize) -> Area {
        let unit = self.unit;
        let (wide, gap, _) = DIGIT_UNITS;
        let x = self.left + (2 + digit * (wide + gap)) * unit;
        let y = self.top + 2 * unit;
        let (dx, dy, width, height) = match segment {
            0 => (0, 0, 4, 1),
            1 => (0, 0, 1, 4),
            2 => (3, 0, 1, 4),
            3 => (0, 3, 4, 1),
            4 => (0, 3, 1, 4),
            5 => (3, 3, 1, 4),
            _ => (0, 6, 4, 1),
        };
        Area { x: x + dx * unit, y: y + dy * unit, width: width * unit, height: height * unit }
    }

    /// The middle of a segment, away from the segments that cross it.
    fn probe(&self, digit: usize, segment: usize) -> Area {
        let area = self.segment(digit, segment);
        let unit = self.unit;
        if matches!(segment, 0 | 3 | 6) {
            Area { x: area.x + 3 * unit / 2, width: unit, ..area }
        } else {
            Area { y: area.y + 3 * unit / 2, height: unit, ..area }
        }
    }
}

/// Reads the clock: milliseconds since midnight (UTC). `luma` is the Y plane, a line every `stride`
/// bytes. `None` when there is no clock, or one that is damaged.
#[must_use]
pub fn read(luma: &[u8], stride: usize, width: usize, height: usize) -> Option<u64> {
    let layout = Layout::of(width, height);
    let mut ms = 0;
    for digit in 0..DIGITS {
        let mut segments = 0_u8;
        for segment in 0..7 {
            match mean(luma, stride, layout.probe(digit, segment))? {
                150.. => segments |= 1 << segment,
                0..=90 => {}
                _ => return None,
            }
        }
        let value = SEGMENTS_OF_DIGIT.iter().position(|known| *known == segments)?;
        ms += value as u64 * digit_divisor_ms(digit).0;
    }
    (ms < DAY_MS).then_some(ms)
}

fn mean(luma: &[u8], stride: usize, area: Area) -> Option<u32> {
    let (mut sum, mut count) = (0, 0);
    for line in area.y..area.y + area.height {
        let from = line.checked_mul(stride)?.checked_add(area.x)?;
        let pixels = luma.get(from..from + area.width)?;
        sum += pixels.iter().map(|pixel| u32::from(*pixel)).sum::<u32>();
        count += area.width as u32;
    }
    sum.checked_div(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(ms: u64, width: usize, height: usize) -> Vec<u8> {
        let mut luma = vec![0x80_u8; width * height];
        let mut fill = |area: Area, value: u8| {
            for line in area.y..area.y + area.height {
                luma[line * width + area.x..line * width + area.x + area.width].fill(value);
            }
        };
        let layout = Layout::of(width, height);
        fill(layout.panel(), 16);
        for digit in 0..DIGITS {
            let (divisor, modulus) = digit_divisor_ms(digit);
            let value = (ms / divisor % modulus) as usize;
            for segment in (0..7).filter(|segment| SEGMENTS_OF_DIGIT[value] >> segment & 1 == 1) {
                fill(layout.segment(digit, segment), 235);
            }
        }
        luma
    }

    #[test]
    fn what_is_drawn_reads_back_at_every_size_and_damage_does_not() {
        for (width, height) in [(256, 144), (426, 240), (640, 360), (1280, 720), (1920, 1080)] {
            let panel = Layout::of(width, height).panel();
            assert!(panel.x + panel.width <= width && panel.y + panel.height <= height, "{width}");
            for ms in [0, 1, 12_345_678, 36_610_909, DAY_MS - 1] {
                let mut luma = drawn(ms, width, height);
                assert_eq!(read(&luma, width, width, height), Some(ms), "{width}x{height}");
                let probe = Layout::of(width, height).probe(4, 3);
                luma[probe.y * width..(probe.y + probe.height) * width].fill(0x78);
                assert_eq!(read(&luma, width, width, height), None);
            }
        }
        assert_eq!(read(&vec![0x80; 640 * 360], 640, 640, 360), None);
        assert_eq!(read(&[0; 9], 3, 3, 3), None);
        assert_eq!(SEGMENTS_OF_DIGIT.iter().collect::<std::collections::BTreeSet<_>>().len(), 10);
    }
}
