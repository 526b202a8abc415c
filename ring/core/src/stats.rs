//! Statistics of a lane, read from the memfd by any process that can open it, without mapping it or
//! involving either side.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::drop_reason::DropReason;
use crate::error::RingError;
use crate::layout::{CONTROL_OFFSET, REASONS, ROWS, ROWS_OFFSET, Row};
use crate::memory::{MEMFD_NAME, inspect};
use crate::packed::{Position, UNIT};

/// Counters of a lane since it was made. Each is exact; together they are of slightly different
/// moments, since producers and consumer go on while they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneStats {
    /// Its number, given by its consumer.
    pub lane: u64,
    /// Size of the arena, bytes.
    pub arena_bytes: usize,
    /// Most frames in flight.
    pub descriptors: u32,
    /// Frames that are claimed, committed or held at the moment, and small ones that the consumer
    /// released and has not published yet: at most 16 and an eighth of the lane.
    pub frames_in_flight: u32,
    /// Bytes of the arena that those take, in whole units of 64.
    pub bytes_in_flight: u64,
    /// Consumers so far: 2 after one restart.
    pub consumer_epoch: u32,
    /// Process id of the latest consumer, as it sees itself.
    pub consumer_pid: u32,
    /// The consumer closed it because a producer corrupted it.
    pub closed: bool,
    /// Frames that the consumer released.
    pub delivered_frames: u64,
    /// Bytes of their payload.
    pub delivered_bytes: u64,
    /// Claims of dead producers that were skipped.
    pub abandoned_claims: u64,
    /// How often the consumer slept.
    pub consumer_sleeps: u64,
    /// How often the consumer woke producers (a system call each).
    pub consumer_wakes: u32,
    /// Rows of the producer table that are or were in use.
    pub producers: Vec<ProducerStats>,
}

/// Counters of the producers that used one row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerStats {
    /// Number of the row.
    pub row: u16,
    /// Session of the process that uses it; 0 when it is free.
    pub session: u32,
    /// Process id of its latest user, as that sees itself.
    pub pid: u32,
    /// Frames committed.
    pub committed_frames: u64,
    /// Bytes of their payload.
    pub committed_bytes: u64,
    /// Aborted claims.
    pub aborted_frames: u64,
    /// Frames dropped, by reason, in the order of [`DropReason::ALL`].
    pub dropped: [u64; REASONS],
    /// How often it slept for lack of room.
    pub sleeps: u32,
    /// How often it woke the consumer (a system call each).
    pub wakes: u64,
}

impl ProducerStats {
    /// Frames dropped for a reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Frames dropped for any reason.
    pub fn dropped_frames(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

impl LaneStats {
    /// Reads a lane's memfd.
    ///
    /// # Errors
    /// It is no ring, or one of another version.
    pub fn read(memfd: BorrowedFd<'_>) -> Result<Self, RingError> {
        let (geometry, lane) = inspect(memfd)?;
        let mut bytes = [0; ROWS_OFFSET - CONTROL_OFFSET + ROWS * size_of::<Row>()];
        let read = rustix::io::pread(memfd, &mut bytes[..], CONTROL_OFFSET as u64)
            .map_err(RingError::io("reading the statistics"))?;
        if read < bytes.len() {
            return Err(RingError::Truncated { found: read as u64, expected: bytes.len() as u64 });
        }
        let words = Words { bytes: &bytes };
        let reserve = Position::unpack(words.u64(0));
        let release = Position::unpack(words.u64(128));
        Ok(Self {
            lane,
            arena_bytes: geometry.arena_bytes,
            descriptors: geometry.slots,
            frames_in_flight: reserve.sequence.wrapping_sub(release.sequence),
            bytes_in_flight: u64::from(reserve.unit.wrapping_sub(release.unit)) * UNIT as u64,
            consumer_epoch: words.u32(512),
            consumer_pid: words.u32(516),
            closed: words.u32(520) != 0,
            consumer_wakes: words.u32(524),
            consumer_sleeps: words.u64(528),
            delivered_frames: words.u64(536),
            delivered_bytes: words.u64(544),
            abandoned_claims: words.u64(552),
            producers: (0..ROWS).filter_map(|row| words.producer(row)).collect(),
        })
    }

    /// Reads the lane behind a path such as `/proc/PID/fd/N`.
    ///
    /// # Errors
    /// It cannot be opened (other users' processes need root), or as [`LaneStats::read`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RingError> {
        let file = File::open(path).map_err(RingError::io("opening the ring"))?;
        Self::read(file.as_fd())
    }

    /// Frames committed by all producers.
    pub fn committed_frames(&self) -> u64 {
        self.producers.iter().map(|producer| producer.committed_frames).sum()
    }

    /// Frames dropped for a reason by all producers.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.producers.iter().map(|producer| producer.dropped(reason)).sum()
    }
}

/// Paths of the rings that a process has open, one for each ring.
///
/// # Errors
/// There is no such process, or it belongs to another user.
pub fn rings_of_process(pid: u32) -> Result<Vec<PathBuf>, RingError> {
    let folder = format!("/proc/{pid}/fd");
    let entries =
        std::fs::read_dir(folder).map_err(RingError::io("listing the process's descriptors"))?;
    let name = format!("/memfd:{MEMFD_NAME}");
    let mut rings: Vec<(u64, PathBuf)> = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ring =
            std::fs::read_link(&path).is_ok_and(|to| to.to_string_lossy().starts_with(&name));
        let Some(inode) = is_ring.then(|| inode(&path)).flatten() else { continue };
        if rings.iter().all(|(known, _)| *known != inode) {
            rings.push((inode, path));
        }
    }
    Ok(rings.into_iter().map(|(_, path)| path).collect())
}

fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| metadata.ino())
}

/// Control block and producer table as bytes.
struct Words<'a> {
    bytes: &'a [u8],
}

impl Words<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|i| self.bytes[at + i]))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.bytes[at + i]))
    }

    /// A row that is or was in use.
    fn producer(&self, row: usize) -> Option<ProducerStats> {
        let at = ROWS_OFFSET - CONTROL_OFFSET + row * size_of::<Row>();
        let pid = self.u32(at + 4);
        (pid != 0).then(|| ProducerStats {
            row: row as u16,
            session: self.u32(at),
            pid,
            sleeps: self.u32(at + 8),
            committed_frames: self.u64(at + 16),
            committed_bytes: self.u64(at + 24),
            aborted_frames: self.u64(at + 32),
            wakes: self.u64(at + 40),
            dropped: std::array::from_fn(|reason| self.u64(at + 48 + 8 * reason)),
        })
    }
}
