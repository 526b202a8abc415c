//! Whether somebody is at work in a folder: a lock on it, which ends with its process, however that
//! ends.
//!
//! Linux: flock(2). The folder itself is locked and no file in it: there is none to be left behind,
//! and the locks of a database are other ones.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

/// How often, and after which pauses, the lock is asked for, a second in all: who only asks has it
/// for a moment, which may be a long one where the cores are busy.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// That this process is at work in a folder, until it is dropped.
#[derive(Debug)]
pub struct AtWork {
    _locked: OwnedFd,
}

impl AtWork {
    /// Says so to who asks [`is_at_work`].
    ///
    /// # Errors
    /// Those of the file system, of which some have no locks; `WouldBlock` if another one is at
    /// work there.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        let folder = opened(folder)?;
        for _ in 0..TRIES {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _locked: folder }),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::WOULDBLOCK.into())
    }
}

/// Whether a process of this machine is at work in a folder; `false` where nobody can know it.
#[must_use]
pub fn is_at_work(folder: &Path) -> bool {
    let Ok(folder) = opened(folder) else { return false };
    // Who only asks keeps no other from asking.
    flock(&folder, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

fn opened(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_at_work_is_seen_until_it_ends_and_alone() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_at_work(folder.path()));
        let at_work = AtWork::begin(folder.path()).unwrap();
        assert!(is_at_work(folder.path()) && is_at_work(folder.path()));
        let second = AtWork::begin(folder.path()).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        drop(at_work);
        assert!(!is_at_work(folder.path()));
        assert!(AtWork::begin(folder.path()).is_ok());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it leaves nothing");
    }

    #[test]
    fn who_has_it_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let first = AtWork::begin(folder.path()).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| AtWork::begin(folder.path()).is_ok());
            std::thread::sleep(20 * PAUSE);
            drop(first);
            assert!(second.join().unwrap());
        });
    }

    #[test]
    fn nobody_is_at_work_in_what_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [&file, &folder.path().join("absent")] {
            assert!(!is_at_work(path) && AtWork::begin(path).is_err());
        }
    }
}
