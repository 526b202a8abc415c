//! `/proc/P/status` and `/proc/P/task/T/status`: context switches, peak memory.

use super::scan::find;

/// Context switches of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It waited for something.
    pub voluntary: u64,
    /// It was taken off its CPU.
    pub involuntary: u64,
}

/// The switches; `None` when the file does not have them.
#[must_use]
pub fn switches(text: &[u8]) -> Option<Switches> {
    Some(Switches {
        voluntary: find(text, b"voluntary_ctxt_switches")?,
        involuntary: find(text, b"nonvoluntary_ctxt_switches")?,
    })
}

/// The largest resident set so far, bytes.
#[must_use]
pub fn peak_resident_bytes(text: &[u8]) -> Option<u64> {
    find(text, b"VmHWM").map(|kib| kib.saturating_mul(1024))
}
