//! `/proc/P/io`: what a process read and wrote.

use super::scan::find;

/// Bytes since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Returned by read calls.
    pub read_chars: u64,
    /// Given to write calls.
    pub write_chars: u64,
    /// Fetched from storage.
    pub read_bytes: u64,
    /// Sent to storage.
    pub write_bytes: u64,
}

/// The counters; `None` when one is missing.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Io> {
    Some(Io {
        read_chars: find(text, b"rchar")?,
        write_chars: find(text, b"wchar")?,
        read_bytes: find(text, b"read_bytes")?,
        write_bytes: find(text, b"write_bytes")?,
    })
}
