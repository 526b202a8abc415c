//! The spool of a worker as a file, so that it survives the worker: frames that are only appended.
//!
//! A frame is its length (of what follows the check sum), the check sum (CRC-32 of that), a byte
//! for what it is, a number, and the bytes of a batch; integers are little-endian. A process that
//! is killed within a write leaves a torn frame at the end, which is found by its length and
//! dropped. A whole frame with another check sum is damage: nothing behind it is read. The file
//! shrinks when everything in it was confirmed: [`SpoolFile::begin_again`].

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::Crc;

use crate::spool::{Batch, BatchKind};

/// Largest frame that is read: larger lengths are damaged or foreign.
const FRAME_MAX: u32 = 64 << 20;

/// Bytes before the part with the check sum: length and check sum.
const HEAD: usize = 8;

/// Bytes of the kind and the number.
const LABEL: usize = 9;

/// The frame of how the worker's part ended, as its message has it: no batch follows it.
const END: u8 = 0xfd;

/// The frame of all batches below its number being confirmed.
const CONFIRMED: u8 = 0xfe;

/// The first frame: the number of the first batch that may follow, and what the file is.
const BEGIN: u8 = 0xff;

/// What the first frame holds besides its number.
const MAGIC: &[u8] = b"throng spool 1";

/// Something to write a spool to: a file, or bytes in memory.
pub trait SpoolStorage: Read + Write + Seek {
    /// Cuts it off at `length` bytes.
    ///
    /// # Errors
    /// Those of the storage.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl SpoolStorage for std::fs::File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

impl SpoolStorage for io::Cursor<Vec<u8>> {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.get_mut().truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// Why a spool file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The file could not be read or written.
    #[error("the spool file could not be used: {0}")]
    Io(#[from] io::Error),
    /// The file has something else in it.
    #[error("the file is not a spool of throng")]
    NotASpool,
    /// The file has its size.
    #[error("the spool file has its {bytes} bytes (--spool-mb)")]
    FileFull {
        /// Its length.
        bytes: u64,
    },
    /// Files of earlier runs fill the folder.
    #[error(
        "earlier runs have left {bytes} bytes of rows in the folder (four times --spool-mb at most)"
    )]
    FolderFull {
        /// Their lengths together.
        bytes: u64,
    },
    /// A batch is larger than a frame may be.
    #[error("a batch of {bytes} bytes is too large for a spool")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
}

/// What was in a file when it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The batches that were not confirmed, ascending.
    pub batches: Vec<Batch>,
    /// The number of the next batch.
    pub next: u64,
    /// How the worker's part ended, if that was written.
    pub end: Option<Vec<u8>>,
    /// Bytes at the end that are no whole frame, such as a torn one.
    pub torn_bytes: u64,
    /// These bytes are not what a killed process leaves.
    pub is_damaged: bool,
}

/// What is in a file, which is not changed. A torn frame at the end counts as in
/// [`SpoolFile::open`].
///
/// # Errors
/// [`SpoolError::NotASpool`]; [`SpoolError::Io`].
pub fn read(storage: &mut (impl Read + Seek)) -> Result<Found, SpoolError> {
    let (scan, length) = scan(storage)?;
    Ok(scan.found(length))
}

/// An open spool file.
#[derive(Debug)]
pub struct SpoolFile<F> {
    storage: F,
    end: u64,
}

impl<F: SpoolStorage> SpoolFile<F> {
    /// Opens a file, and reads what is in it; an empty one is begun. A torn frame at the end is cut
    /// off.
    ///
    /// # Errors
    /// [`SpoolError::NotASpool`] for a file of something else, which is not changed;
    /// [`SpoolError::Io`].
    pub fn open(mut storage: F) -> Result<(Self, Found), SpoolError> {
        let (scan, length) = scan(&mut storage)?;
        storage.cut(scan.end)?;
        let mut file = Self { storage, end: scan.end };
        if !scan.has_begun {
            file.append(BEGIN, 0, MAGIC)?;
        }
        Ok((file, scan.found(length)))
    }

    /// Writes a batch at the end. When that fails (disk full) the file is as before.
    ///
    /// # Errors
    /// [`SpoolError::TooLarge`]; [`SpoolError::Io`].
    pub fn push(&mut self, batch: &Batch) -> Result<(), SpoolError> {
        self.append(batch.kind.to_byte(), batch.number, &batch.bytes)
    }

    /// Notes that all batches below `end` are confirmed.
    ///
    /// # Errors
    /// [`SpoolError::Io`].
    pub fn confirm(&mut self, end: u64) -> Result<(), SpoolError> {
        self.append(CONFIRMED, end, &[])
    }

    /// The same with so many bytes more, which mean nothing: that they could be written shows that
    /// there is room for a batch of them.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn confirm_with_room(&mut self, end: u64, bytes: usize) -> Result<(), SpoolError> {
        self.append(CONFIRMED, end, &vec![0; bytes])
    }

    /// Writes how the worker's part ended, as its message has it.
    ///
    /// # Errors
    /// [`SpoolError::TooLarge`]; [`SpoolError::Io`].
    pub fn end(&mut self, message: &[u8]) -> Result<(), SpoolError> {
        self.append(END, 0, message)
    }

    /// Drops everything, all of which was confirmed; the next batch has the number `next`.
    ///
    /// # Errors
    /// [`SpoolError::Io`].
    pub fn begin_again(&mut self, next: u64) -> Result<(), SpoolError> {
        self.storage.cut(0)?;
        self.end = 0;
        self.append(BEGIN, next, MAGIC)
    }

    /// As a disk leaves it that was full while the file began again.
    #[cfg(test)]
    pub(crate) fn without_begin(storage: F) -> Self {
        Self { storage, end: 0 }
    }

    /// Bytes of the file; none when it could not begin again, which has to be done before anything
    /// else is written.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.end
    }

    /// The storage, to sync or to close it.
    pub fn into_storage(self) -> F {
        self.storage
    }

    fn append(&mut self, kind: u8, number: u64, bytes: &[u8]) -> Result<(), SpoolError> {
        let too_large = || SpoolError::TooLarge { bytes: bytes.len() };
        let length = u32::try_from(LABEL + bytes.len()).ok().filter(|length| *length <= FRAME_MAX);
        let length = length.ok_or_else(too_large)?;
        let mut frame = vec![0; HEAD];
        frame.push(kind);
        frame.extend(number.to_le_bytes());
        frame.extend(bytes);
        let check = check_sum(frame.get(HEAD..).unwrap_or_default());
        let head = [length.to_le_bytes(), check.to_le_bytes()].concat();
        frame.splice(..HEAD, head);
        self.storage.seek(SeekFrom::Start(self.end))?;
        let written = self.storage.write_all(&frame).and_then(|()| self.storage.flush());
        if let Err(error) = written {
            // What follows a torn frame could not be read.
            self.storage.cut(self.end)?;
            return Err(error.into());
        }
        self.end += frame.len() as u64;
        Ok(())
    }
}

/// What the frames so far add up to.
#[derive(Default)]
struct Scan {
    batches: BTreeMap<u64, Batch>,
    next: u64,
    has_begun: bool,
    ended: Option<Vec<u8>>,
    /// Where the last good frame ends.
    end: u64,
    /// What follows is more than a frame that was not written to its end.
    is_damaged: bool,
}

impl Scan {
    /// Takes a frame without its head; `false` when nothing of a spool looks like it.
    fn take(&mut self, frame: &[u8]) -> bool {
        let Some((&kind, rest)) = frame.split_first() else { return false };
        let Some((number, bytes)) = rest.split_first_chunk() else { return false };
        let number = u64::from_le_bytes(*number);
        match kind {
            BEGIN if !self.has_begun && bytes == MAGIC => {
                (self.has_begun, self.next) = (true, number);
            }
            END if self.has_begun => self.ended = Some(bytes.to_vec()),
            CONFIRMED if self.has_begun => self.confirm(number),
            kind => {
                let Some(kind) = BatchKind::from_byte(kind).filter(|_| self.has_begun) else {
                    return false;
                };
                self.batches.insert(number, Batch { number, kind, bytes: bytes.to_vec() });
                self.next = self.next.max(number.saturating_add(1));
            }
        }
        self.end += (HEAD + frame.len()) as u64;
        true
    }

    /// Drops the batches below `end`, one by one: `split_off` counts all that it leaves, so that a
    /// file of many frames would take the square of their number.
    fn confirm(&mut self, end: u64) {
        while let Some(first) = self.batches.first_entry().filter(|first| *first.key() < end) {
            first.remove();
        }
    }

    /// What a file of this length holds.
    fn found(self, length: u64) -> Found {
        let torn_bytes = length.saturating_sub(self.end);
        Found {
            batches: self.batches.into_values().collect(),
            next: self.next,
            end: self.ended,
            torn_bytes,
            is_damaged: self.is_damaged,
        }
    }
}

/// Reads frames until one is torn or damaged, or none; with the length of the file.
fn scan(storage: &mut (impl Read + Seek)) -> Result<(Scan, u64), SpoolError> {
    let length = storage.seek(SeekFrom::End(0))?;
    storage.seek(SeekFrom::Start(0))?;
    let mut scan = Scan::default();
    let mut frame = Vec::new();
    while scan.end < length {
        let next = read_frame(storage, length - scan.end, &mut frame)?;
        if next == Next::Whole && scan.take(&frame) {
            continue;
        }
        scan.is_damaged = next != Next::Torn;
        break;
    }
    // A file that was torn within its first frame has had no batch.
    let is_foreign = !scan.has_begun && length > frame_length(MAGIC.len());
    if is_foreign { Err(SpoolError::NotASpool) } else { Ok((scan, length)) }
}

fn frame_length(bytes: usize) -> u64 {
    (HEAD + LABEL + bytes) as u64
}

/// What is next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Whole,
    /// The file ends within the frame.
    Torn,
    Damaged,
}

/// Reads a frame without its head. `left` is how much of the file is left.
fn read_frame(from: &mut impl Read, left: u64, frame: &mut Vec<u8>) -> io::Result<Next> {
    let mut word = [0; 4];
    if left < HEAD as u64 {
        return Ok(Next::Torn);
    }
    from.read_exact(&mut word)?;
    let length = u32::from_le_bytes(word);
    from.read_exact(&mut word)?;
    let check = u32::from_le_bytes(word);
    if !(LABEL as u32..=FRAME_MAX).contains(&length) {
        return Ok(Next::Damaged);
    }
    if u64::from(length) + HEAD as u64 > left {
        return Ok(Next::Torn);
    }
    frame.clear();
    from.take(length.into()).read_to_end(frame)?;
    let is_whole = frame.len() == length as usize && check_sum(frame) == check;
    Ok(if is_whole { Next::Whole } else { Next::Damaged })
}

fn check_sum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
#[path = "spool_file_tests.rs"]
mod tests;
