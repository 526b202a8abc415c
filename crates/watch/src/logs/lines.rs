//! Splits bytes into lines of bounded length; a longer line is marked as cut.

/// Maximum number of bytes kept of a line.
pub const LINE_BYTES_MAX: usize = 8 * 1024;

/// A line without its terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its bytes, at most [`LINE_BYTES_MAX`].
    pub bytes: &'a [u8],
    /// Whether the line was longer.
    pub cut: bool,
}

/// Splits a stream of bytes into lines. Both `\n` and `\r` end a line (ffmpeg rewrites its progress
/// in place); empty lines are left out.
#[derive(Debug, Default)]
pub struct Lines {
    /// The beginning of an incomplete line; at most [`LINE_BYTES_MAX`].
    begun: Vec<u8>,
    cut: bool,
}

impl Lines {
    /// Processes the next bytes and passes on each line that they complete.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.begun.is_empty() && !line.is_empty() {
                let kept = line.get(..LINE_BYTES_MAX).unwrap_or(line);
                each(Line { bytes: kept, cut: kept.len() < line.len() });
            } else if !self.begun.is_empty() {
                self.keep(line);
                each(Line { bytes: &self.begun, cut: self.cut });
            }
            self.begun.clear();
            self.cut = false;
        }
        self.keep(bytes);
    }

    /// Passes on an incomplete last line: the stream has ended, or the file was replaced.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if !self.begun.is_empty() {
            each(Line { bytes: &self.begun, cut: self.cut });
        }
        self.begun.clear();
        self.cut = false;
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX - self.begun.len();
        self.cut |= bytes.len() > room;
        self.begun.extend(bytes.iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(chunks: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut lines = Lines::default();
        let mut got = Vec::new();
        for chunk in chunks {
            lines.push(chunk, |line| got.push((line.bytes.to_vec(), line.cut)));
        }
        lines.finish(|line| got.push((line.bytes.to_vec(), line.cut)));
        got
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_come() {
        let text = b"one\ntwo\r\n\n\rframe=1\rframe=2\rlast";
        let expect: Vec<_> = ["one", "two", "frame=1", "frame=2", "last"]
            .iter()
            .map(|l| (l.as_bytes().to_vec(), false))
            .collect();
        for size in 1..=text.len() {
            assert_eq!(
                lines_of(&text.chunks(size).collect::<Vec<_>>()),
                expect,
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn a_huge_line_is_cut_and_costs_a_bounded_buffer() {
        let huge = vec![b'x'; 10 * LINE_BYTES_MAX];
        for chunks in
            [vec![&huge[..], b"\nnext\n"], huge.chunks(700).chain([&b"\nnext\n"[..]]).collect()]
        {
            let got = lines_of(&chunks);
            assert_eq!(got.len(), 2);
            assert_eq!((got[0].0.len(), got[0].1), (LINE_BYTES_MAX, true));
            assert_eq!(got[1], (b"next".to_vec(), false));
        }
        let mut whole = huge.clone();
        whole.extend(b"\n");
        assert_eq!(lines_of(&[&whole])[0].0.len(), LINE_BYTES_MAX);
    }

    #[test]
    fn a_line_of_exactly_the_maximum_length_is_not_cut() {
        let mut text = vec![b'x'; LINE_BYTES_MAX];
        text.push(b'\n');
        assert_eq!(lines_of(&[&text]), [(vec![b'x'; LINE_BYTES_MAX], false)]);
        assert_eq!(lines_of(&[&text[..5], &text[5..]]), [(vec![b'x'; LINE_BYTES_MAX], false)]);
    }
}
