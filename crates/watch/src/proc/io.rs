//! `/proc/P/io`: bytes read and written by a process.

use super::scan::find;

/// Bytes since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes returned by read calls.
    pub read_chars: u64,
    /// Bytes passed to write calls.
    pub write_chars: u64,
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes sent to storage.
    pub write_bytes: u64,
}

/// Parses the counters; `None` if one is missing.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Io> {
    Some(Io {
        read_chars: find(text, b"rchar")?,
        write_chars: find(text, b"wchar")?,
        read_bytes: find(text, b"read_bytes")?,
        write_bytes: find(text, b"write_bytes")?,
    })
}
