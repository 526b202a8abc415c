//! The ring buffer of one CPU, shared with the kernel; every position is validated.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::attr::Attr;

/// `PERF_FLAG_FD_CLOEXEC`.
const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
pub(super) const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_DISABLE: libc::Ioctl = 0x2401;
/// Offsets of the positions in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// Why a ring could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RingError {
    /// The kernel refused the event.
    #[error("perf_event_open: {0}")]
    Open(#[source] io::Error),
    /// The kernel refused the memory of the ring.
    #[error("mmap of the perf ring: {0}")]
    Map(#[source] io::Error),
}

/// Opens an event of `pid` (0: this process, -1: all) on `cpu` (-1: any).
pub(super) fn open(attr: &Attr, pid: libc::pid_t, cpu: libc::c_int) -> io::Result<File> {
    // SAFETY: `attr` is a live `perf_event_attr` that carries its own size; the other arguments are
    // plain numbers.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attr),
            pid,
            cpu,
            -1 as libc::c_int,
            FLAG_FD_CLOEXEC,
        )
    };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above returned this descriptor, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Enables or disables an event.
pub(super) fn control(event: &File, request: libc::Ioctl) -> io::Result<()> {
    // SAFETY: both requests take a plain number and access no memory of this process.
    match unsafe { libc::ioctl(event.as_raw_fd(), request, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The sampling clock of one CPU with its ring buffer.
pub(super) struct Ring {
    event: File,
    map: NonNull<u8>,
    page_bytes: usize,
    /// A power of two.
    data_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and its shared words are only touched through
// atomics.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens a disabled clock on `cpu` for all processes.
    pub(super) fn open(attr: &Attr, cpu: u32, data_pages: usize) -> Result<Self, RingError> {
        let cpu = libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX);
        let event = open(attr, -1, cpu).map_err(RingError::Open)?;
        let page_bytes = rustix::param::page_size();
        let data_bytes = data_pages.next_power_of_two() * page_bytes;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page_bytes + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(map.cast::<u8>()) {
            Some(map) if map.as_ptr() != libc::MAP_FAILED.cast() => {
                Ok(Self { event, map, page_bytes, data_bytes })
            }
            _ => Err(RingError::Map(io::Error::last_os_error())),
        }
    }

    pub(super) fn enable(&self) -> io::Result<()> {
        control(&self.event, IOC_ENABLE)
    }

    pub(super) fn disable(&self) -> io::Result<()> {
        control(&self.event, IOC_DISABLE)
    }

    /// Replaces the content of `out` by the bytes written since the last call, and frees their
    /// space. Returns false and discards the bytes if the positions are invalid.
    pub(super) fn drain(&mut self, out: &mut Vec<u8>) -> bool {
        out.clear();
        // SYNC POINT: this acquire pairs with the kernel's barrier before it stores `data_head`
        // (`perf_output_put_handle`): the bytes below it are written.
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
        let waiting = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX);
        let is_sound = waiting <= self.data_bytes;
        if is_sound {
            // data_bytes is a power of two, so the low bits are the place in the ring.
            let from = (tail & (self.data_bytes as u64 - 1)) as usize;
            let first = waiting.min(self.data_bytes - from);
            self.copy(from, first, out);
            self.copy(0, waiting - first, out);
        }
        // SYNC POINT: this release pairs with the kernel's control dependency on `data_tail`: it
        // writes there only after this read.
        self.position(DATA_TAIL).store(head, Ordering::Release);
        is_sound
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.page_bytes);
        // SAFETY: the first page is mapped as long as `self` lives, the offset is within it and a
        // multiple of 8.
        unsafe { AtomicU64::from_ptr(self.map.as_ptr().add(offset).cast()) }
    }

    fn copy(&self, from: usize, bytes: usize, out: &mut Vec<u8>) {
        debug_assert!(from + bytes <= self.data_bytes);
        // SAFETY: from + bytes <= data_bytes is within the mapping, and the kernel does not write
        // between tail and head until tail moves.
        let slice = unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().add(self.page_bytes + from), bytes)
        };
        out.extend_from_slice(slice);
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `open`, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}
