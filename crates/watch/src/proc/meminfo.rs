//! `/proc/meminfo`: memory use of the machine.

use super::scan::{key_and_number, lines};

/// Memory of the machine, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Usable memory.
    pub total: u64,
    /// Unused memory.
    pub free: u64,
    /// Memory available without swapping; free + page cache on kernels before 3.14, which do not
    /// estimate it.
    pub available: u64,
    /// Page cache: `Cached` + `Buffers`.
    pub cached: u64,
    /// Memory waiting to be written back: `Dirty` + `Writeback`.
    pub dirty: u64,
    /// Swap space.
    pub swap_total: u64,
    /// Unused swap space.
    pub swap_free: u64,
}

/// Parses the file; `None` if it is not a meminfo file.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Memory> {
    let (mut memory, mut total, mut available) = (Memory::default(), None, None);
    for (key, kib) in lines(text).filter_map(key_and_number) {
        let bytes = kib.saturating_mul(1024);
        match key {
            b"MemTotal" => total = Some(bytes),
            b"MemFree" => memory.free = bytes,
            b"MemAvailable" => available = Some(bytes),
            b"Cached" | b"Buffers" => memory.cached = memory.cached.saturating_add(bytes),
            b"Dirty" | b"Writeback" => memory.dirty = memory.dirty.saturating_add(bytes),
            b"SwapTotal" => memory.swap_total = bytes,
            b"SwapFree" => memory.swap_free = bytes,
            _ => {}
        }
    }
    memory.total = total?;
    memory.available = available.unwrap_or_else(|| memory.free.saturating_add(memory.cached));
    Some(memory)
}
