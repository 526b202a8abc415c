//! Media that has to be read: each viewer has a file, and is sent to no faster than that file is read, past the page cache.
//!
//! One thread reads for all, in the order in which they ask, as a file server's pool of one does. What is read is as much
//! as is sent and is not looked at: the test card's own bytes go out.

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
/// A viewer asks for the next block when so little is left: half a second of the standard card.
const AHEAD_LEN: i64 = 64 * 1024;
/// How often the reader looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// What direct reads want of addresses, offsets and lengths: a page holds for every file system.
const ALIGNMENT: usize = 4096;

/// The files, and the way to the thread that reads them.
pub(crate) struct Library {
    files: Vec<Arc<File>>,
    asks: Sender<Ask>,
    dealt: AtomicUsize,
}

/// A viewer's place in its file.
pub(crate) struct Reel {
    file: Arc<File>,
    at: u64,
    state: Arc<State>,
    asks: Sender<Ask>,
}

/// What reader and worker share of a viewer.
#[derive(Default)]
struct State {
    /// Bytes that were read and not yet sent.
    credit: AtomicI64,
    is_asked: AtomicBool,
}

/// A block that is wanted.
pub(crate) struct Ask {
    file: Arc<File>,
    at: u64,
    state: Arc<State>,
}

impl Library {
    /// The files of `folder`, opened for direct reading.
    pub(crate) fn open(folder: &Path) -> io::Result<(Self, Receiver<Ask>)> {
        let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        let mut paths: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
        paths.sort();
        // A file system has a folder of its own for what is lost.
        paths.retain(|path| path.is_file());
        let open =
            |path: &PathBuf| File::options().read(true).custom_flags(libc::O_DIRECT).open(path).map(Arc::new);
        let files: Vec<Arc<File>> = paths.iter().map(open).collect::<io::Result<_>>()?;
        let is_long = |file: &Arc<File>| file.metadata().is_ok_and(|known| known.len() >= BLOCK_LEN as u64);
        if files.is_empty() || !files.iter().all(is_long) {
            let why = format!("wants files of {BLOCK_LEN} bytes or more, one for each viewer");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let (asks, asked) = channel();
        Ok((Self { files, asks, dealt: AtomicUsize::new(0) }, asked))
    }

    /// The next viewer's file; with more viewers than files, they go round.
    pub(crate) fn deal(&self) -> Option<Reel> {
        let turn = self.dealt.fetch_add(1, Relaxed).checked_rem(self.files.len())?;
        let file = Arc::clone(self.files.get(turn)?);
        Some(Reel { file, at: 0, state: Arc::default(), asks: self.asks.clone() })
    }
}

impl Reel {
    /// Asks for the next block when little is left.
    pub(crate) fn read_ahead(&mut self) {
        if self.state.credit.load(Relaxed) < AHEAD_LEN && !self.state.is_asked.swap(true, Relaxed) {
            let (file, state) = (Arc::clone(&self.file), Arc::clone(&self.state));
            let _ = self.asks.send(Ask { file, at: self.at, state });
            self.at += BLOCK_LEN as u64;
        }
    }

    /// Takes `len` bytes of what was read; false when the disk has not given so many yet.
    pub(crate) fn take(&mut self, len: usize) -> bool {
        let has_them = self.state.credit.load(Relaxed) >= len as i64;
        if has_them {
            self.state.credit.fetch_sub(len as i64, Relaxed);
        }
        has_them
    }
}

/// Reads what is asked for until `stop`, or until nobody can ask any more.
pub(crate) fn read_all(asked: &Receiver<Ask>, stop: &AtomicBool) {
    let mut memory = vec![0; BLOCK_LEN + ALIGNMENT];
    let skipped = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
    let Some(block) = memory.get_mut(skipped..skipped + BLOCK_LEN) else { return };
    while !stop.load(Relaxed) {
        let Ask { file, at, state } = match asked.recv_timeout(LOOK_EVERY) {
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
        assert!(Library::open(folder.path()).is_err(), "an empty folder");
        std::fs::create_dir(folder.path().join("lost+found")).unwrap();
        std::fs::write(folder.path().join("a"), vec![7; 2 * BLOCK_LEN]).unwrap();
        let (library, asked) = Library::open(folder.path()).unwrap();
        let mut reel = library.deal().unwrap();
        assert!(!reel.take(1_000), "nothing was read yet");
        drop(library);
        let reader = std::thread::spawn(move || read_all(&asked, &AtomicBool::new(false)));
        let mut taken = 0;
        while taken < 5 * BLOCK_LEN {
            reel.read_ahead();
            if reel.take(1_024) {
                taken += 1_024;
            } else {
                std::thread::yield_now();
            }
        }
        drop(reel);
        reader.join().unwrap();
    }
}
