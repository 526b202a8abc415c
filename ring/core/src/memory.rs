//! The shared memory: creates, checks and maps it. All pointers into a ring are made here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::error::RingError;
use crate::layout::{
    ABI_MAJOR, ARENA_ALIGNMENT, ARENA_MAX, CONTROL_OFFSET, Control, Geometry, HEADER_BYTES,
    HEADER_OFFSET, Header, MAGIC, ROWS, ROWS_OFFSET, Row, SLOTS_MAX, SLOTS_MIN, SLOTS_OFFSET, Slot,
};
use crate::packed::UNIT;

/// Name of the memfd, as it shows in `/proc/PID/fd` after `memfd:`.
pub(crate) const MEMFD_NAME: &str = "throng-ring";

/// Unmapped addresses on both sides of a mapping, so that an access beyond it ends the process
/// instead of reaching other memory. As large as the largest page in use.
const GUARD_BYTES: usize = ARENA_ALIGNMENT;

/// The side that maps: the consumer never writes payload, so its payload pages are read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Producer,
    Consumer,
}

/// A ring in this process's address space.
///
/// `control`, `slots` and `rows` consist of atomics only, so that shared references to them are
/// sound whatever another process writes. The arena is mapped twice, back to back: a frame of up to
/// the whole arena is contiguous wherever it starts, and an offset that was masked is in bounds by
/// construction.
#[derive(Debug)]
pub(crate) struct Memory {
    control: NonNull<Control>,
    slots: NonNull<Slot>,
    rows: NonNull<Row>,
    arena: NonNull<u8>,
    geometry: Geometry,
    lane: u64,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    /// One reservation that holds everything, with a guard at both ends.
    Mapped { base: NonNull<u8>, bytes: usize, huge_pages: bool },
    /// Private memory, for Miri and loom, which have no `mmap`. The second half of the arena is no
    /// mirror there, which makes no difference: a frame is read at the offset at which it was
    /// written.
    #[cfg(test)]
    Heap { arena: *mut [u64] },
}

// SAFETY: the pointers stay valid until drop and do not depend on the thread; what they
// release_batch to is atomics, or payload whose owner the protocol decides.
unsafe impl Send for Memory {}
// SAFETY: as above; no method hands out `&mut`.
unsafe impl Sync for Memory {}

impl Memory {
    /// Makes a sealed memfd that holds an empty ring.
    pub(crate) fn create(
        geometry: Geometry,
        lane: u64,
        prefault: bool,
    ) -> Result<OwnedFd, RingError> {
        check_geometry(geometry.slots.into(), geometry.arena_bytes as u64)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Kernels before 6.3 do not have the flag (not executable) that newer ones ask for.
        let memfd = rustix::fs::memfd_create(MEMFD_NAME, flags | MemfdFlags::NOEXEC_SEAL)
            .or_else(|_| rustix::fs::memfd_create(MEMFD_NAME, flags))
            .map_err(RingError::io("making a memfd"))?;
        rustix::fs::ftruncate(&memfd, geometry.total_bytes() as u64)
            .map_err(RingError::io("sizing the memfd"))?;
        if prefault {
            let mode = rustix::fs::FallocateFlags::empty();
            rustix::fs::fallocate(&memfd, mode, 0, geometry.total_bytes() as u64)
                .map_err(RingError::io("reserving the ring's memory"))?;
        }
        rustix::io::pwrite(&memfd, &geometry.header(lane).to_bytes(), HEADER_OFFSET as u64)
            .map_err(RingError::io("writing the header"))?;
        rustix::fs::fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(RingError::io("sealing the memfd"))?;
        Ok(memfd)
    }

    /// Maps a ring that another process made, after checking seals, size and header; the header is
    /// read once.
    pub(crate) fn attach(
        memfd: BorrowedFd<'_>,
        access: Access,
        huge_pages: bool,
    ) -> Result<Self, RingError> {
        let (geometry, lane) = inspect(memfd)?;
        Self::map(memfd, geometry, lane, access, huge_pages)
    }

    fn map(
        memfd: BorrowedFd<'_>,
        geometry: Geometry,
        lane: u64,
        access: Access,
        huge_pages: bool,
    ) -> Result<Self, RingError> {
        let head = geometry.arena_offset();
        let arena = geometry.arena_bytes;
        let bytes = GUARD_BYTES + head + 2 * arena + GUARD_BYTES;
        let reservation = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new private mapping at an address of the kernel's choice; nothing else lives
        // there.
        let base = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::empty(), reservation)
        }
        .map_err(RingError::io("reserving address space"))?;
        let reserved = NonNull::new(base.cast::<u8>())
            .ok_or(RingError::BadHandshake { what: "mapped at zero" })?;
        let base = at(reserved, GUARD_BYTES);
        // From here on the drop of `memory` frees the reservation, also when mapping into it fails.
        let mut memory = Self {
            control: at(base, CONTROL_OFFSET).cast(),
            slots: at(base, SLOTS_OFFSET).cast(),
            rows: at(base, ROWS_OFFSET).cast(),
            arena: at(base, head),
            geometry,
            lane,
            backing: Backing::Mapped { base: reserved, bytes, huge_pages: false },
        };
        let read_write = ProtFlags::READ | ProtFlags::WRITE;
        let payload = if access == Access::Producer { read_write } else { ProtFlags::READ };
        let parts = [
            (0, head, read_write, 0),
            (head, arena, payload, head),
            (head + arena, arena, payload, head),
        ];
        for (to, length, protection, from) in parts {
            // SAFETY: [to, to + length) lies within our own reservation, which nothing else uses.
            unsafe {
                rustix::mm::mmap(
                    at(base, to).as_ptr().cast(),
                    length,
                    protection,
                    MapFlags::SHARED | MapFlags::FIXED,
                    memfd,
                    from as u64,
                )
            }
            .map_err(RingError::io("mapping the ring"))?;
        }
        if huge_pages {
            // Optional: a sandbox, or shmem_enabled=never, refuses, and nothing else changes.
            // SAFETY: advice on our own mapping; the contents stay.
            let advised = unsafe {
                rustix::mm::madvise(
                    at(base, head).as_ptr().cast(),
                    2 * arena,
                    Advice::LinuxHugepage,
                )
            };
            memory.backing = Backing::Mapped { base: reserved, bytes, huge_pages: advised.is_ok() };
        }
        Ok(memory)
    }

    /// A ring in private memory, whose counters start at `first`.
    #[cfg(test)]
    pub(crate) fn heap(geometry: Geometry, first: crate::packed::Position) -> Self {
        use crate::layout::{CachePadded, ConsumerWords, REASONS};
        use crate::sync::{AtomicU32, AtomicU64};
        let word = || AtomicU64::new(0);
        let half = || AtomicU32::new(0);
        let control = Control {
            reserve: CachePadded(word()),
            release: CachePadded(word()),
            consumer_sleep: CachePadded(half()),
            producer_sleep: CachePadded(half()),
            consumer: CachePadded(ConsumerWords {
                epoch: half(),
                pid: half(),
                closed: half(),
                wakes: half(),
                sleeps: word(),
                delivered_frames: word(),
                delivered_bytes: word(),
                abandoned_claims: word(),
                evicts: half(),
                reserved: half(),
                done: word(),
            }),
        };
        let slot = || Slot {
            state: word(),
            start: word(),
            units: half(),
            len: half(),
            stream: half(),
            kind_flags: half(),
            timestamp_ns: word(),
            sequence: word(),
            user_data: word(),
            reserved: word(),
        };
        let row = || Row {
            session: half(),
            pid: half(),
            sleeps: half(),
            claiming: half(),
            committed_frames: word(),
            committed_bytes: word(),
            aborted_frames: word(),
            wakes: word(),
            dropped: std::array::from_fn::<_, REASONS, _>(|_| word()),
        };
        let slots: Box<[Slot]> = (0..geometry.slots).map(|_| slot()).collect();
        let rows: Box<[Row]> = (0..ROWS).map(|_| row()).collect();
        crate::layout::start(&control, &slots, first);
        let arena = Box::into_raw(vec![0u64; 2 * geometry.arena_bytes / 8].into_boxed_slice());
        let leaked = |pointer: *mut u8| NonNull::new(pointer).expect("a box is never null");
        Self {
            control: leaked(Box::into_raw(Box::new(control)).cast()).cast(),
            slots: leaked(Box::into_raw(slots).cast()).cast(),
            rows: leaked(Box::into_raw(rows).cast()).cast(),
            arena: leaked(arena.cast()),
            geometry,
            lane: 0,
            backing: Backing::Heap { arena },
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    pub(crate) fn lane(&self) -> u64 {
        self.lane
    }

    /// Whether the kernel took the advice to use huge pages.
    pub(crate) fn has_huge_pages(&self) -> bool {
        matches!(self.backing, Backing::Mapped { huge_pages: true, .. })
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: points at a mapped, aligned `Control` of atomics that lives as long as `self`.
        unsafe { self.control.as_ref() }
    }

    /// All slots, by index.
    pub(crate) fn slots(&self) -> &[Slot] {
        // SAFETY: `geometry.slots` slots stand there, checked against the size of the memfd, which
        // is sealed.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), self.geometry.slots as usize) }
    }

    /// The slot of a sequence number: any number is in bounds.
    pub(crate) fn slot(&self, sequence: u32) -> &Slot {
        let index = sequence & (self.geometry.slots - 1);
        // SAFETY: slots are a power of two, so the masked index is below their number.
        unsafe { self.slots.add(index as usize).as_ref() }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        // SAFETY: the table of `ROWS` rows has a fixed place in every ring.
        unsafe { std::slice::from_raw_parts(self.rows.as_ptr(), ROWS) }
    }

    /// Address of the payload of a unit. Up to a whole arena may be accessed from there.
    pub(crate) fn payload(&self, unit: u32) -> NonNull<u8> {
        let offset = (unit & (self.geometry.units() - 1)) as usize * UNIT;
        // SAFETY: the masked offset is below the arena's length, of which two are mapped.
        unsafe { self.arena.add(offset) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.backing {
            Backing::Mapped { base, bytes, .. } => {
                // SAFETY: our own reservation; all references into it borrow `self`.
                let unmapped = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
                debug_assert!(unmapped.is_ok());
            }
            #[cfg(test)]
            Backing::Heap { arena } => {
                let count = self.geometry.slots as usize;
                // SAFETY: each pointer came from `Box::into_raw` with this type and length, and is
                // freed once.
                unsafe {
                    drop(Box::from_raw(self.control.as_ptr()));
                    drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                        self.slots.as_ptr(),
                        count,
                    )));
                    drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                        self.rows.as_ptr(),
                        ROWS,
                    )));
                    drop(Box::from_raw(arena));
                }
            }
        }
    }
}

fn at(base: NonNull<u8>, offset: usize) -> NonNull<u8> {
    // SAFETY: every caller stays within the reservation that starts at `base`.
    unsafe { base.add(offset) }
}

/// Reads and checks a memfd's seals, size and header before any of it is mapped.
pub(crate) fn inspect(memfd: BorrowedFd<'_>) -> Result<(Geometry, u64), RingError> {
    let seals = rustix::fs::fcntl_get_seals(memfd).map_err(|_| RingError::NotAMemfd)?;
    let missing: Vec<_> =
        [(SealFlags::SHRINK, "SHRINK"), (SealFlags::GROW, "GROW"), (SealFlags::SEAL, "SEAL")]
            .into_iter()
            .filter_map(|(seal, name)| (!seals.contains(seal)).then_some(name))
            .collect();
    if !missing.is_empty() {
        return Err(RingError::SealsMissing { missing: missing.join("|") });
    }
    let size = size_of_file(memfd)?;
    let mut bytes = [0; HEADER_BYTES];
    let read = rustix::io::pread(memfd, &mut bytes, HEADER_OFFSET as u64)
        .map_err(RingError::io("reading the header"))?;
    if read < HEADER_BYTES {
        return Err(RingError::Truncated { found: size, expected: ARENA_ALIGNMENT as u64 });
    }
    let geometry = check_header(&Header::from_bytes(&bytes))?;
    let expected = geometry.total_bytes() as u64;
    if size < expected {
        return Err(RingError::Truncated { found: size, expected });
    }
    Ok((geometry, Header::from_bytes(&bytes).lane))
}

fn size_of_file(fd: impl AsFd) -> Result<u64, RingError> {
    let stat = rustix::fs::fstat(fd).map_err(RingError::io("asking for the memfd's size"))?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

fn check_header(header: &Header) -> Result<Geometry, RingError> {
    if header.magic != MAGIC {
        return Err(RingError::WrongMagic { found: header.magic, expected: MAGIC });
    }
    if header.abi_major != ABI_MAJOR {
        return Err(RingError::UnsupportedVersion {
            found: header.abi_major,
            supported: ABI_MAJOR,
        });
    }
    let geometry = check_geometry(header.slots.into(), header.arena_bytes)?;
    let fixed = |field, value, expected, rule| {
        if value == expected { Ok(()) } else { Err(RingError::BadGeometry { field, value, rule }) }
    };
    fixed("rows", header.rows.into(), ROWS as u64, "layout version 2 has 32 rows for producers")?;
    fixed(
        "unit_bytes",
        header.unit_bytes.into(),
        UNIT as u64,
        "layout version 2 counts in units of 64 bytes",
    )?;
    let arena = geometry.arena_offset() as u64;
    fixed(
        "arena_offset",
        header.arena_offset,
        arena,
        "the arena follows the slots at the next multiple of 65,536",
    )?;
    Ok(geometry)
}

fn check_geometry(slots: u64, arena_bytes: u64) -> Result<Geometry, RingError> {
    let in_range = |field, value: u64, low: u64, high: u64, rule| {
        if value.is_power_of_two() && (low..=high).contains(&value) {
            Ok(())
        } else {
            Err(RingError::BadGeometry { field, value, rule })
        }
    };
    let rule = "must be a power of two from 2 to 65,536";
    in_range("slots", slots, SLOTS_MIN.into(), SLOTS_MAX.into(), rule)?;
    let rule = "must be a power of two from 65,536 to 4,294,967,296";
    in_range("arena_bytes", arena_bytes, ARENA_ALIGNMENT as u64, ARENA_MAX as u64, rule)?;
    let arena_bytes =
        usize::try_from(arena_bytes).ok().filter(|bytes| bytes.checked_mul(3).is_some());
    let rule = "must fit twice into this machine's address space";
    let arena_bytes = arena_bytes.ok_or(RingError::BadGeometry {
        field: "arena_bytes",
        value: u64::MAX,
        rule,
    })?;
    Ok(Geometry { slots: slots as u32, arena_bytes })
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    /// What `/proc/self/maps` allows at an address, such as `rw-s`.
    fn permissions(address: usize) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            (number(from)..number(to)).contains(&address).then(|| rest[..4].to_owned())
        })
    }

    #[test]
    fn a_mapping_is_guarded_at_both_ends() {
        let geometry = Geometry { slots: 8, arena_bytes: 65_536 };
        let memfd = Memory::create(geometry, 1, false).unwrap();
        let memory = Memory::attach(memfd.as_fd(), Access::Consumer, false).unwrap();
        let end = memory.payload(0).as_ptr() as usize + 2 * geometry.arena_bytes;
        let start = memory.control.as_ptr() as usize - CONTROL_OFFSET;
        for (address, expect) in [
            (start - GUARD_BYTES, "---p"),
            (start - 1, "---p"),
            (start, "rw-s"),
            (end - 1, "r--s"),
            (end, "---p"),
            (end + GUARD_BYTES - 1, "---p"),
        ] {
            assert_eq!(
                permissions(address).as_deref(),
                Some(expect),
                "{:#x}",
                address.wrapping_sub(start)
            );
        }
    }
}
