//! Parses the records of a perf ring buffer. Lengths in the records are not trusted.
//!
//! The layout follows `include/uapi/linux/perf_event.h` (`enum perf_event_type`) for the sample
//! type that [`super::attr`] configures.

use super::attr::{REGISTERS, REGISTERS_COUNT, SAMPLE_ID_BYTES};

/// The record types that are parsed; all others are skipped.
mod kind {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    pub(super) const LOST_SAMPLES: u32 = 13;
}

/// `PERF_RECORD_MISC_COMM_EXEC`: the name changed by an exec.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`: the record has a build id instead of device and inode.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
/// Callchain entries above this are markers (`PERF_CONTEXT_MAX` is -4095), not addresses.
const CONTEXT_FIRST: u64 = (-4095_i64).cast_unsigned();
const CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512_i64).cast_unsigned();
/// Maximum number of frames in a stack; the kernel's default limit is 127.
pub(super) const FRAMES_MAX: usize = 128;
/// `struct perf_event_header`.
const HEADER_BYTES: usize = 8;

/// Process and thread id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ids {
    /// Process.
    pub(crate) pid: u32,
    /// Thread.
    pub(crate) tid: u32,
}

/// An executable mapping of a file in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mmap {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// The file's inode number; 0 if unknown.
    pub(crate) inode: u64,
    pub(crate) path: Vec<u8>,
}

/// User registers and stack of a sample, for unwinding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserStack {
    /// In the order of [`REGISTERS`].
    pub(crate) registers: [u64; REGISTERS_COUNT],
    /// Memory from the stack pointer upwards.
    pub(crate) bytes: Vec<u8>,
}

/// A sample of a running thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) ids: Ids,
    /// Kernel addresses, innermost first.
    pub(crate) kernel: Vec<u64>,
    /// User space addresses by frame pointers, innermost first.
    pub(crate) user: Vec<u64>,
    /// Registers and stack for unwinding, if requested.
    pub(crate) stack: Option<UserStack>,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Sample(Sample),
    Mmap(Ids, Mmap),
    /// A thread was renamed; `exec` if by executing another program.
    Name {
        ids: Ids,
        name: String,
        exec: bool,
    },
    /// A thread started; a process if `child.pid` differs from `parent.pid`.
    Fork {
        parent: Ids,
        child: Ids,
    },
    Exit(Ids),
    /// Number of records that did not fit into the ring.
    Lost(u64),
    /// The kernel throttled sampling to bound its own cost.
    Throttled,
}

/// A record with its timestamp, nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) at_ns: u64,
    pub(crate) event: Event,
}

/// Parses the record at the front of `bytes`: its size and the record, or the size alone for an
/// unknown or invalid record. `None` if the bytes cannot be a record.
pub(crate) fn parse(bytes: &[u8]) -> Option<(usize, Option<Record>)> {
    let mut header = Reader(bytes);
    let (kind, misc, size) = (header.u32()?, header.u16()?, usize::from(header.u16()?));
    let body = bytes.get(HEADER_BYTES..size)?;
    Some((size, record(kind, misc, body)))
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Option<Record> {
    let mut r = Reader(body);
    if kind == kind::SAMPLE {
        return sample(r);
    }
    // All other records end with the thread id and the time (`sample_id_all`).
    let id = body.len().checked_sub(SAMPLE_ID_BYTES)?;
    let at_ns = Reader(body.get(id + 8..)?).u64()?;
    r.0 = body.get(..id)?;
    let event = match kind {
        kind::LOST => {
            let _event_id = r.u64()?;
            Event::Lost(r.u64()?)
        }
        kind::LOST_SAMPLES => Event::Lost(r.u64()?),
        kind::THROTTLE => Event::Throttled,
        kind::COMM => {
            let ids = r.ids()?;
            let name = String::from_utf8_lossy(until_nul(r.0)).into_owned();
            Event::Name { ids, name, exec: misc & MISC_COMM_EXEC != 0 }
        }
        kind::FORK | kind::EXIT => {
            let (pid, ppid, tid, ptid) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
            let child = Ids { pid, tid };
            if kind == kind::EXIT {
                Event::Exit(child)
            } else {
                Event::Fork { parent: Ids { pid: ppid, tid: ptid }, child }
            }
        }
        kind::MMAP2 => {
            let ids = r.ids()?;
            let (start, length, offset) = (r.u64()?, r.u64()?, r.u64()?);
            let (_device, inode, _generation) = (r.u64()?, r.u64()?, r.u64()?);
            let _protection_and_flags = r.u64()?;
            let inode = if misc & MISC_MMAP_BUILD_ID == 0 { inode } else { 0 };
            let end = start.checked_add(length)?;
            Event::Mmap(ids, Mmap { start, end, offset, inode, path: until_nul(r.0).to_vec() })
        }
        _ => return None,
    };
    Some(Record { at_ns, event })
}

fn sample(mut r: Reader<'_>) -> Option<Record> {
    let ip = r.u64()?;
    let ids = r.ids()?;
    let at_ns = r.u64()?;
    let mut sample = Sample { ids, ..Sample::default() };
    let entries = r.u64()?;
    let mut is_kernel = false;
    for _ in 0..entries {
        match r.u64()? {
            CONTEXT_KERNEL => is_kernel = true,
            CONTEXT_USER => is_kernel = false,
            // Guest and hypervisor frames are skipped.
            entry if entry >= CONTEXT_FIRST => {}
            entry if is_kernel && sample.kernel.len() < FRAMES_MAX => sample.kernel.push(entry),
            entry if !is_kernel && sample.user.len() < FRAMES_MAX => sample.user.push(entry),
            _ => {}
        }
    }
    if sample.kernel.is_empty() && sample.user.is_empty() {
        sample.user.push(ip);
    }
    sample.stack = user_stack(&mut r);
    Some(Record { at_ns, event: Event::Sample(sample) })
}

fn user_stack(r: &mut Reader<'_>) -> Option<UserStack> {
    // 32-bit programs are not unwound (`PERF_SAMPLE_REGS_ABI_64` is 2).
    if REGISTERS == 0 || r.u64()? != 2 {
        return None;
    }
    let mut stack = UserStack::default();
    for register in &mut stack.registers {
        *register = r.u64()?;
    }
    let size = usize::try_from(r.u64()?).ok()?;
    let bytes = r.take(size)?;
    // The kernel adds how many bytes it could copy.
    let filled = if size == 0 { 0 } else { usize::try_from(r.u64()?).ok()?.min(size) };
    stack.bytes = bytes.get(..filled)?.to_vec();
    Some(stack)
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Reads numbers in native byte order from the front of a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_ne_bytes)
    }

    fn ids(&mut self) -> Option<Ids> {
        Some(Ids { pid: self.u32()?, tid: self.u32()? })
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
