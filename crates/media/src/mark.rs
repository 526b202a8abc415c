//! An in-media mark: frame number and capture time carried inside the coded stream.

/// The frame number and capture time that a throng source wrote into the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the frame since the source started.
    pub frame: u32,
    /// Capture time, nanoseconds since the Unix epoch on the clock of the source.
    pub captured_unix_ns: u64,
}
