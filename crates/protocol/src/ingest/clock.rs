//! A clock in the picture, drawn by FFmpeg: hours, minutes, seconds and milliseconds of UTC in
//! seven segments, for people, for photographs of two screens, and for
//! [`throng_media::picture_clock`], which reads it back after any transcoder.
//!
//! It is drawn with boxes, not with text: FFmpeg's `drawtext` needs a font, which servers do not
//! have.

use std::fmt::Write as _;

use throng_media::picture_clock::{DIGITS, Layout, SEGMENTS_OF_DIGIT, digit_divisor_ms};

/// The filter that draws the clock into pictures of this size. The picture of time 0 is captured
/// `midnight_ms` after midnight.
pub(super) fn filter(width: u32, height: u32, midnight_ms: u64) -> String {
    let layout = Layout::of(width as usize, height as usize);
    let panel = layout.panel();
    let mut filter = format!(
        "drawbox=x={}:y={}:w={}:h={}:color=black:t=fill",
        panel.x, panel.y, panel.width, panel.height
    );
    for digit in 0..DIGITS {
        let (divisor, modulus) = digit_divisor_ms(digit);
        // Half a millisecond against times that lie just below a whole one.
        let value = format!("mod(floor(({midnight_ms}+t*1000+0.5)/{divisor}),{modulus})");
        for segment in 0..7 {
            let shown = (0..10).filter(|value| SEGMENTS_OF_DIGIT[*value] >> segment & 1 == 1);
            let mut enable = String::new();
            for value_shown in shown {
                let plus = if enable.is_empty() { "" } else { "+" };
                let _ = write!(enable, "{plus}eq({value},{value_shown})");
            }
            let area = layout.segment(digit, segment);
            let _ = write!(
                filter,
                ",drawbox=x={}:y={}:w={}:h={}:color=white:t=fill:enable='{enable}'",
                area.x, area.y, area.width, area.height
            );
        }
    }
    filter
}
