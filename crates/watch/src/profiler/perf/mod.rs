//! Samples every CPU by `perf_event_open`: one clock and one ring buffer for each CPU, whatever the
//! number of threads.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

mod attr;
mod counter;
mod record;
mod ring;

pub use counter::TracepointCounter;
pub(crate) use record::{Event, Ids, Mmap, Record, Sample, UserStack};
pub(crate) use ring::RingError;

use attr::Attr;
use ring::Ring;

/// How long the reader may be delayed before samples are lost, milliseconds.
const READER_DELAY_MS: u64 = 300;
/// Size of a sample with a copy of the stack, and without; the deepest callchain takes 1 KiB.
const SAMPLE_WITH_STACK_BYTES: u64 = 17 * 1024;
const SAMPLE_BYTES: u64 = 1_100;
/// Minimum and maximum size of a ring.
const RING_BYTES_MIN: usize = 64 * 1024;
const RING_BYTES_MAX: usize = 4 << 20;

/// Size of a ring for the samples of [`READER_DELAY_MS`]. At 99 Hz with stacks it is 512 KiB: with
/// the control page just what a process without `CAP_IPC_LOCK` may lock for each CPU
/// (`kernel.perf_event_mlock_kb`, 516 by default).
fn ring_bytes(frequency_hz: u32, with_stacks: bool) -> usize {
    let sample = if with_stacks { SAMPLE_WITH_STACK_BYTES } else { SAMPLE_BYTES };
    let bytes = u64::from(frequency_hz) * sample * READER_DELAY_MS / 1_000;
    usize::try_from(bytes)
        .unwrap_or(RING_BYTES_MAX)
        .clamp(RING_BYTES_MIN, RING_BYTES_MAX)
        .next_power_of_two()
}

/// The sampling clocks of all CPUs.
pub(crate) struct Clocks {
    rings: Vec<Ring>,
    bytes: Vec<u8>,
}

impl Clocks {
    /// Starts a clock of `frequency_hz` on every CPU of `cpus`; `with_stacks` copies user stacks
    /// for unwinding.
    pub(crate) fn start(
        cpus: &[u32],
        frequency_hz: u32,
        with_stacks: bool,
    ) -> Result<Self, RingError> {
        let mut bytes = ring_bytes(frequency_hz, with_stacks);
        let rings = loop {
            match open(cpus, frequency_hz, with_stacks, bytes) {
                // Over the limit of locked memory: a smaller ring loses samples sooner, and counts
                // them.
                Err(RingError::Map(_)) if bytes > RING_BYTES_MIN => bytes /= 2,
                opened => break opened?,
            }
        };
        for ring in &rings {
            ring.enable().map_err(RingError::Open)?;
        }
        Ok(Self { rings, bytes: Vec::new() })
    }

    /// Waits until a ring is a quarter full, `wake` is readable, or the time is over.
    pub(crate) fn wait(&self, wake: BorrowedFd<'_>, at_most: Duration) -> io::Result<()> {
        let mut fds: Vec<_> =
            self.rings.iter().map(|ring| PollFd::new(ring, PollFlags::IN)).collect();
        fds.push(PollFd::from_borrowed_fd(wake, PollFlags::IN));
        let timeout = Timespec {
            tv_sec: at_most.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Stops the clocks; their records can still be read.
    pub(crate) fn stop(&self) {
        for ring in &self.rings {
            // A clock that cannot be stopped ends when its descriptor is closed.
            let _ = ring.disable();
        }
    }

    /// Appends the records of all rings to `records`, unordered across rings; returns the number of
    /// rings with invalid positions and of invalid records.
    pub(crate) fn read(&mut self, records: &mut Vec<Record>) -> u64 {
        let mut broken = 0;
        for ring in &mut self.rings {
            if !ring.drain(&mut self.bytes) {
                broken += 1;
            }
            let mut rest = self.bytes.as_slice();
            while !rest.is_empty() {
                let Some((size, record)) = record::parse(rest) else {
                    broken += 1;
                    break;
                };
                records.extend(record);
                rest = rest.get(size..).unwrap_or_default();
            }
        }
        broken
    }
}

fn open(
    cpus: &[u32],
    frequency_hz: u32,
    with_stacks: bool,
    bytes: usize,
) -> Result<Vec<Ring>, RingError> {
    let attr = Attr::cpu_clock(frequency_hz, with_stacks, (bytes / 4) as u32);
    let pages = bytes / rustix::param::page_size().max(1);
    let mut rings = Vec::with_capacity(cpus.len());
    for cpu in cpus {
        match Ring::open(&attr, *cpu, pages) {
            Ok(ring) => rings.push(ring),
            // The CPU may have gone offline since it was listed.
            Err(RingError::Open(error)) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_at_the_default_frequency_fits_the_default_memlock_limit() {
        assert_eq!(ring_bytes(99, true), 512 * 1024);
        assert!(ring_bytes(99, false) <= 128 * 1024);
        assert_eq!(ring_bytes(u32::MAX, true), RING_BYTES_MAX);
        assert_eq!(ring_bytes(1, false), RING_BYTES_MIN);
    }
}
