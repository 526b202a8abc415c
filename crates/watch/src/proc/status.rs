//! `/proc/P/status` and `/proc/P/task/T/status`: context switches, peak memory.

use super::scan::find;

/// Context switches of a thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The thread waited for something.
    pub voluntary: u64,
    /// The thread was preempted.
    pub involuntary: u64,
}

/// Parses the context switches; `None` if the file has none.
#[must_use]
pub fn switches(text: &[u8]) -> Option<Switches> {
    Some(Switches {
        voluntary: find(text, b"voluntary_ctxt_switches")?,
        involuntary: find(text, b"nonvoluntary_ctxt_switches")?,
    })
}

/// The peak resident set (`VmHWM`), bytes.
#[must_use]
pub fn peak_resident_bytes(text: &[u8]) -> Option<u64> {
    find(text, b"VmHWM").map(|kib| kib.saturating_mul(1024))
}
