//! Loading memory into the CPU's caches before it is read.

/// Bytes of a cache line, of all CPUs that count.
const LINE: usize = 64;

/// Has the CPU load so many bytes from `start` on, and does not wait for them. The address need not
/// be valid: a CPU ignores what it cannot load.
pub fn prefetch(start: *const u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let first = start.addr() & !(LINE - 1);
    for line in (first..start.addr().saturating_add(bytes)).step_by(LINE) {
        load(start.with_addr(line));
    }
}

#[cfg(target_arch = "x86_64")]
fn load(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction changes no memory, and does not fault whatever the address is.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[cfg(target_arch = "aarch64")]
fn load(line: *const u8) {
    // SAFETY: the instruction changes no memory, and does not fault whatever the address is.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{line}]",
            line = in(reg) line,
            options(nostack, preserves_flags, readonly)
        );
    }
}

/// Other CPUs are left to guess.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn load(_line: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_loaded_is_as_before_and_what_is_none_does_no_harm() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for (start, length) in [(0, 1000), (1, 63), (999, 1), (500, 0)] {
            prefetch(bytes[start..].as_ptr(), length);
        }
        assert!(bytes.iter().zip((0..=255_u8).cycle()).all(|(byte, expect)| *byte == expect));
        prefetch(std::ptr::null(), 100);
        prefetch(std::ptr::without_provenance(1 << 20), 4096);
    }
}
