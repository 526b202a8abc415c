//! Planted disk limit: each viewer has a file and is sent media no faster than that file is read,
//! past the page cache.
//!
//! One thread reads for all viewers in the order of their requests, as a file server with one
//! reader does. As many bytes are read as are sent; their content is not used: the test card's
//! packets are sent.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Bytes of one read.
const BLOCK_LEN: usize = 32 * 1024;
/// Bytes left at which a viewer requests the next block: half a second of the standard card.
const AHEAD_LEN: i64 = 64 * 1024;
/// How often the reader checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Alignment of addresses, offsets and lengths for direct reads: a page suffices for every file
/// system.
const ALIGNMENT: usize = 4096;

/// The files, and the channel to the reading thread.
pub(crate) struct MediaFolder {
    files: Vec<Arc<File>>,
    asks: Sender<ReadRequest>,
    dealt: AtomicUsize,
}

/// A viewer's file and read position.
pub(crate) struct MediaFile {
    file: Arc<File>,
    at: u64,
    state: Arc<State>,
    asks: Sender<ReadRequest>,
}

/// A viewer's state that reader and worker share.
#[derive(Default)]
struct State {
    /// Bytes read and not yet sent.
    credit: AtomicI64,
    is_asked: AtomicBool,
}

/// A request to read a block.
pub(crate) struct ReadRequest {
    file: Arc<File>,
    at: u64,
    state: Arc<State>,
}

impl MediaFolder {
    /// The files of `folder`, opened for direct reading.
    pub(crate) fn open(folder: &Path) -> io::Result<(Self, Receiver<ReadRequest>)> {
        let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        let mut paths: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
        paths.sort();
        // A file system may have a `lost+found` folder.
        paths.retain(|path| path.is_file());
        let open = |path: &PathBuf| {
            File::options().read(true).custom_flags(libc::O_DIRECT).open(path).map(Arc::new)
        };
        let files: Vec<Arc<File>> = paths.iter().map(open).collect::<io::Result<_>>()?;
        let is_long =
            |file: &Arc<File>| file.metadata().is_ok_and(|known| known.len() >= BLOCK_LEN as u64);
        if files.is_empty() || !files.iter().all(is_long) {
            let why = format!("needs files of at least {BLOCK_LEN} bytes, one for each viewer");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let (asks, asked) = channel();
        Ok((Self { files, asks, dealt: AtomicUsize::new(0) }, asked))
    }

    /// The next viewer's file; with more viewers than files, files are reused in turn.
    pub(crate) fn deal(&self) -> Option<MediaFile> {
        let turn = self.dealt.fetch_add(1, Relaxed).checked_rem(self.files.len())?;
        let file = Arc::clone(self.files.get(turn)?);
        Some(MediaFile { file, at: 0, state: Arc::default(), asks: self.asks.clone() })
    }
}

impl MediaFile {
    /// Requests the next block when little is left.
    pub(crate) fn read_ahead(&mut self) {
        if self.state.credit.load(Relaxed) < AHEAD_LEN && !self.state.is_asked.swap(true, Relaxed) {
            let (file, state) = (Arc::clone(&self.file), Arc::clone(&self.state));
            let _ = self.asks.send(ReadRequest { file, at: self.at, state });
            self.at += BLOCK_LEN as u64;
        }
    }

    /// Takes `len` bytes of what was read; false if fewer have been read.
    pub(crate) fn take(&mut self, len: usize) -> bool {
        let has_them = self.state.credit.load(Relaxed) >= len as i64;
        if has_them {
            self.state.credit.fetch_sub(len as i64, Relaxed);
        }
        has_them
    }
}

/// Serves read requests until `stop`, or until no viewer can send one.
pub(crate) fn read_all(asked: &Receiver<ReadRequest>, stop: &AtomicBool) {
    let mut memory = vec![0; BLOCK_LEN + ALIGNMENT];
    let skipped = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
    let Some(block) = memory.get_mut(skipped..skipped + BLOCK_LEN) else { return };
    while !stop.load(Relaxed) {
        let ReadRequest { file, at, state } = match asked.recv_timeout(LOOK_EVERY) {
            Ok(ask) => ask,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let blocks = file.metadata().map_or(0, |known| known.len()) / BLOCK_LEN as u64;
        let at = (at / BLOCK_LEN as u64).checked_rem(blocks).unwrap_or(0) * BLOCK_LEN as u64;
        match file.read_at(block, at) {
            Ok(read) => {
                state.credit.fetch_add(read as i64, Relaxed);
            }
            Err(error) => tracing::warn!(%error, "a viewer's file cannot be read"),
        }
        state.is_asked.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_is_sent_to_as_fast_as_its_file_is_read_and_the_file_goes_round() {
        let folder = tempfile::tempdir().unwrap();
        assert!(MediaFolder::open(folder.path()).is_err(), "an empty folder");
        std::fs::create_dir(folder.path().join("lost+found")).unwrap();
        std::fs::write(folder.path().join("a"), vec![7; 2 * BLOCK_LEN]).unwrap();
        let (library, asked) = MediaFolder::open(folder.path()).unwrap();
        let mut file = library.deal().unwrap();
        assert!(!file.take(1_000), "nothing was read yet");
        drop(library);
        let reader = std::thread::spawn(move || read_all(&asked, &AtomicBool::new(false)));
        let mut taken = 0;
        while taken < 5 * BLOCK_LEN {
            file.read_ahead();
            if file.take(1_024) {
                taken += 1_024;
            } else {
                std::thread::yield_now();
            }
        }
        drop(file);
        reader.join().unwrap();
    }
}
