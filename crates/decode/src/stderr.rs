//! The error stream of FFmpeg: a line for each picture (its `showinfo` filter), and errors.

/// A picture that FFmpeg announces; its pixels follow on the output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    /// The timestamp of the coded frame.
    pub(crate) index: u64,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Largest picture that is accepted, pixels.
const PIXELS_MAX: u64 = 8_192 * 8_192;

/// The picture that a line announces; `None` for any other line.
pub(crate) fn announced(line: &str) -> Option<Announced> {
    let fields = line.strip_prefix("[Parsed_showinfo_")?.split_once("] ")?.1;
    if !fields.starts_with("n:") {
        return None;
    }
    let after = |key: &str| Some(fields.split_once(key)?.1.trim_start());
    let word = |text: &'_ str| text.split_whitespace().next().map(str::to_owned);
    let index = word(after(" pts:")?)?.parse().ok()?;
    let size = word(after(" s:")?)?;
    let (width, height) = size.split_once('x')?;
    let (width, height) = (width.parse::<u32>().ok()?, height.parse::<u32>().ok()?);
    let pixels = u64::from(width) * u64::from(height);
    (1..=PIXELS_MAX).contains(&pixels).then_some(Announced { index, width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_announced_with_index_and_size() {
        let line = "[Parsed_showinfo_1 @ 0x55d] n:   7 pts:     41 pts_time:0.041   duration:     33 \
                    duration_time:0.033 pos:      900 fmt:gray sar:1/1 s:426x240 i:P iskey:0 type:P ";
        assert_eq!(announced(line), Some(Announced { index: 41, width: 426, height: 240 }));
        for line in [
            "[Parsed_showinfo_1 @ 0x55d] config in time_base: 1/1000, frame_rate: 0/0",
            "[Parsed_showinfo_1 @ 0x55d] color_range:unknown color_space:unknown",
            "[Parsed_showinfo_1 @ 0x55d] n: 7 pts: NOPTS s:426x240",
            "[Parsed_showinfo_1 @ 0x55d] n: 7 pts: 1 s:99999999x99999",
            "[Parsed_showinfo_1 @ 0x55d] n: 7 pts: 1 s:0x9",
            "[vp8 @ 0x1] Truncated packet or corrupt partition",
            "",
        ] {
            assert_eq!(announced(line), None, "{line}");
        }
    }
}
