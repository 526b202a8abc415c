//! Names of JIT-compiled code, from the map that Node, Java and Python write for profilers.
//!
//! `/tmp/perf-PID.map` has a line `start size name` for each piece of code, with hexadecimal
//! numbers; PID and `/tmp` are as the process itself sees them
//! (`tools/perf/Documentation/jit-interface.txt`).

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// Maximum size of a map, bytes; that of a long-running Node has some MB.
const MAP_BYTES_MAX: u64 = 64 << 20;

/// Opens the map of a process; `None` if there is none.
pub(crate) fn open(pid: u32) -> Option<File> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let path = format!("/proc/{pid}/root/tmp/perf-{}.map", inner_pid(&status).unwrap_or(pid));
    // Symbolic links are not followed: they could point anywhere.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// The process's PID in its innermost PID namespace.
fn inner_pid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Reads the map as far as possible.
pub(crate) fn read(file: &File) -> String {
    let mut bytes = Vec::new();
    // The part that was read before an error is still useful.
    let _ = file.take(MAP_BYTES_MAX).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The name of the code at each of `addresses`.
pub(crate) fn name(map: &str, addresses: &[u64]) -> Vec<Option<String>> {
    // Later lines replace earlier ones: the memory was reused.
    let mut pieces: Vec<(u64, u64, usize, &str)> = map
        .lines()
        .enumerate()
        .filter_map(|(nth, line)| {
            let mut fields = line.splitn(3, ' ');
            let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
            let (start, size) = (hex(fields.next()?)?, hex(fields.next()?)?);
            Some((start, size, nth, fields.next()?.trim()))
        })
        .collect();
    pieces.sort_unstable_by_key(|(start, _, nth, _)| (*start, *nth));
    let at = |address: &u64| {
        let above = pieces.partition_point(|(start, ..)| start <= address);
        let mut below = pieces.get(..above)?.iter().rev().take(64);
        below.find(|(start, size, ..)| address - start < *size).map(|(.., name)| (*name).to_owned())
    };
    addresses.iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_name_the_code_that_was_there_last() {
        let map = "1000 100 LazyCompile:~old x.js:1\nbroken\n1000 100 LazyCompile:*hot x.js:2\n2000 10 Stub: a b\nff";
        let named = name(map, &[0x1000, 0x10ff, 0x1100, 0x2008, 0x10]);
        let named: Vec<_> = named.iter().map(Option::as_deref).collect();
        let hot = Some("LazyCompile:*hot x.js:2");
        assert_eq!(named, [hot, hot, None, Some("Stub: a b"), None]);
    }

    #[test]
    fn the_process_is_known_by_its_own_number() {
        assert_eq!(inner_pid("Name:\tnode\nNSpid:\t4242\t17\n"), Some(17));
        assert_eq!(inner_pid("Name:\tnode\n"), None);
    }
}
