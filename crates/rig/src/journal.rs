//! What has to be put back, written down before it is changed. A throng that was killed undoes
//! nothing; the next start with the same folder reads what it left.
//!
//! One JSON object a line, appended and synced: `{"change":3,"undo":{…}}` before,
//! `{"change":3,"undone":true}` after, `{"change":3,"failed":true}` if the change itself failed.
//!
//! It holds commands, which are run as whoever starts throng: one that another user could have
//! written is refused.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use throng_folder::Stranger;

use crate::control_group;
use crate::processes::Marker;
use crate::setup::run_to_end;

/// How long the undoing of one change may take.
const UNDO_WITHIN: Duration = Duration::from_secs(60);
/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// How long another process may have it that only looks at it.
const LOOKED_AT_FOR: Duration = Duration::from_millis(100);
/// A longer journal is damaged.
const BYTES_MAX: u64 = 64 << 20;

/// How a change is undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// By a command.
    Command {
        /// Program and arguments.
        words: Vec<String>,
        /// Its working directory.
        cwd: PathBuf,
    },
    /// By killing all processes with this mark.
    Processes(String),
    /// By removing these control groups.
    ControlGroups(Vec<PathBuf>),
}

/// A change that is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Change(u64);

/// The journal of a folder. Only one process has it open.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Changes that are not undone, the oldest first.
    open: Vec<Left>,
    next: u64,
}

/// A change that is not undone.
#[derive(Debug)]
struct Left {
    change: Change,
    undo: Undo,
    /// The change failed, perhaps before it changed anything: that it cannot be undone then says
    /// nothing.
    has_failed: bool,
    /// An earlier process made it, whose children are not known.
    is_inherited: bool,
}

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has it.
    #[error("{0} is in use by another throng")]
    InUse(PathBuf),
    /// What lists the journals is perhaps not from this user.
    #[error("{0}: this list of unfinished experiments is not used")]
    ForeignList(Stranger),
    /// What it says to run is perhaps not from this user.
    #[error("{0}: the commands of this journal are not run")]
    Foreign(#[from] Stranger),
    /// The file cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct Line {
    change: Change,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo: Option<Undo>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    undone: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
}

impl Journal {
    /// Opens or makes the journal at `path`.
    ///
    /// # Errors
    /// If another process has it open, it cannot be read or written, is a link, or another user
    /// could have written what is in it.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let named = |error: io::Error| JournalError::Io { path: path.to_owned(), error };
        let mut file = throng_folder::append(path).map_err(named)?;
        let bytes = contents(&mut file, path)?;
        // Whoever owns it can write to it later, whatever is in it.
        let owner = file.metadata().map_err(named)?.uid();
        let own = rustix::process::geteuid().as_raw();
        if owner != own && owner != 0 {
            return Err(Stranger::Owner { path: path.to_owned(), owner, own }.into());
        }
        // A line that was cut off must not take the next one with it.
        if bytes.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n").map_err(named)?;
        }
        let (open, next) = unfinished(&String::from_utf8_lossy(&bytes));
        Ok(Self { file, path: path.to_owned(), open, next })
    }

    /// What the journal at `path` says is not undone. Nothing is written: whoever named it may mean
    /// any file.
    ///
    /// # Errors
    /// Those of [`Self::open`]; if there is none.
    pub fn look(path: &Path) -> Result<Vec<Undo>, JournalError> {
        let named = |error: io::Error| JournalError::Io { path: path.to_owned(), error };
        let mut file = throng_folder::read(path).map_err(named)?;
        let bytes = contents(&mut file, path)?;
        let (open, _) = unfinished(&String::from_utf8_lossy(&bytes));
        Ok(open.into_iter().map(|left| left.undo).collect())
    }

    /// How many changes are not undone.
    #[must_use]
    pub fn left(&self) -> usize {
        self.open.len()
    }

    /// How the changes that are not undone are, the oldest first.
    #[must_use]
    pub fn undos(&self) -> Vec<Undo> {
        self.open.iter().map(|left| left.undo.clone()).collect()
    }

    /// Writes down how the next change is undone. Returns after it is on the disk.
    ///
    /// # Errors
    /// If it cannot be written: then the change must not be made.
    pub fn before(&mut self, undo: Undo) -> Result<Change, JournalError> {
        let change = Change(self.next);
        self.next += 1;
        self.write(&Line { change, undo: Some(undo.clone()), undone: false, failed: false })?;
        self.open.push(Left { change, undo, has_failed: false, is_inherited: false });
        Ok(change)
    }

    /// Writes down that a change failed by itself: it may be half done or not at all, so that its
    /// undoing is tried, and not again if that fails too.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn failed(&mut self, change: Change) -> Result<(), JournalError> {
        self.open.iter_mut().filter(|left| left.change == change).for_each(Left::fail);
        self.write(&Line { change, undo: None, undone: false, failed: true })
    }

    /// Writes down that a change was undone otherwise.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn undone(&mut self, change: Change) -> Result<(), JournalError> {
        self.open.retain(|left| left.change != change);
        self.write(&Line { change, undo: None, undone: true, failed: false })
    }

    /// Undoes the changes that are left, the last one first. What could not be undone is returned,
    /// and stays in the journal for the next time.
    pub fn undo_all(&mut self) -> Vec<String> {
        self.undo_down_to(0)
    }

    /// The same for the changes since `first`, which stays.
    pub fn undo_down_to(&mut self, first: usize) -> Vec<String> {
        let mut problems = Vec::new();
        let mut kept = Vec::new();
        for left in self.open.split_off(first.min(self.open.len())).into_iter().rev() {
            let hidden: fn() -> Vec<(u32, String)> =
                if left.is_inherited { Marker::hidden } else { Vec::new };
            let failure = perform(&left.undo, hidden).err();
            let is_over = failure.is_none() || left.has_failed;
            problems.extend(failure);
            if is_over {
                problems.extend(self.undone(left.change).err().map(|error| error.to_string()));
            } else {
                kept.push(left);
            }
        }
        self.open.extend(kept.into_iter().rev());
        problems
    }

    fn write(&mut self, line: &Line) -> Result<(), JournalError> {
        let write = |file: &mut File| {
            let mut text = serde_json::to_string(line)?;
            text.push('\n');
            file.write_all(text.as_bytes())?;
            file.sync_data()
        };
        write(&mut self.file).map_err(|error| JournalError::Io { path: self.path.clone(), error })
    }
}

impl Left {
    fn fail(&mut self) {
        self.has_failed = true;
    }
}

/// What is in a journal, of which this process takes the lock. Others can have written none of it.
fn contents(file: &mut File, path: &Path) -> Result<Vec<u8>, JournalError> {
    let named = |error: io::Error| JournalError::Io { path: path.to_owned(), error };
    if !is_locked(file) {
        return Err(JournalError::InUse(path.to_owned()));
    }
    file.seek(SeekFrom::Start(0)).map_err(named)?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(named)?;
    if !bytes.is_empty() {
        throng_folder::check_own(path)?;
    }
    Ok(bytes)
}

/// Takes the lock, which another process may have for a moment.
fn is_locked(file: &File) -> bool {
    let give_up_at = Instant::now() + LOOKED_AT_FOR;
    while flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() >= give_up_at {
            return false;
        }
        std::thread::sleep(LOOKED_AT_FOR / 10);
    }
    true
}

/// The changes that are not undone, and the number of the next one. The last line may be cut off.
fn unfinished(text: &str) -> (Vec<Left>, u64) {
    let mut open: Vec<Left> = Vec::new();
    let mut next = 0;
    for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
        next = next.max(line.change.0.saturating_add(1));
        if line.undone {
            open.retain(|left| left.change != line.change);
        } else if line.failed {
            open.iter_mut().filter(|left| left.change == line.change).for_each(Left::fail);
        } else if let Some(undo) = line.undo {
            let change = line.change;
            open.push(Left { change, undo, has_failed: false, is_inherited: true });
        }
    }
    (open, next)
}

/// `hidden`: the processes of which it cannot be known whether they have a mark.
fn perform(undo: &Undo, hidden: impl Fn() -> Vec<(u32, String)>) -> Result<(), String> {
    match undo {
        Undo::Command { words, cwd } => run_to_end(words, cwd, UNDO_WITHIN, &|| false),
        Undo::Processes(mark) => {
            let _ = Marker::new(mark.as_str()).kill_all(GONE_WITHIN);
            let left = Marker::new(mark.as_str()).processes();
            if !left.is_empty() {
                return Err(format!("{} processes could not be killed", left.len()));
            }
            let hidden: Vec<String> =
                hidden().iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
            if hidden.is_empty() {
                return Ok(());
            }
            Err(format!(
                "these processes may be left of it, and only root or a program with their \
                 capabilities can see that: {}",
                hidden.join(", ")
            ))
        }
        Undo::ControlGroups(folders) => {
            if control_group::remove(folders) {
                return Ok(());
            }
            let names: Vec<String> =
                folders.iter().map(|folder| folder.display().to_string()).collect();
            Err(format!("these control groups could not be removed: {}", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, name: &str) -> Undo {
        Undo::Command { words: vec!["touch".into(), name.into()], cwd: folder.to_owned() }
    }

    #[test]
    fn what_was_left_is_undone_by_the_next_start_the_last_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        let log = |text: &str| {
            let words = ["sh", "-c", &format!("echo {text} >> order")].map(str::to_owned).to_vec();
            Undo::Command { words, cwd: folder.path().to_owned() }
        };
        journal.before(log("first")).unwrap();
        let second = journal.before(touch(folder.path(), "never")).unwrap();
        journal.undone(second).unwrap();
        journal.before(log("third")).unwrap();
        // Without an end: as after kill -9.
        drop(journal);
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"change\":9,\"un")
            .unwrap();
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!(journal.left(), 2);
        assert_eq!(journal.undo_all(), Vec::<String>::new());
        assert_eq!(std::fs::read_to_string(folder.path().join("order")).unwrap(), "third\nfirst\n");
        assert!(!folder.path().join("never").exists());
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().left(), 0);
    }

    #[test]
    fn a_journal_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        assert!(matches!(Journal::open(&path), Err(JournalError::InUse(_))));
        drop(journal);
        assert!(Journal::open(&path).is_ok());
    }

    /// An undoing that works once `ready` is there.
    fn busy(folder: &Path) -> Undo {
        let words = ["sh", "-c", "[ -e ready ] || { echo busy >&2; exit 3; }"];
        Undo::Command { words: words.map(str::to_owned).to_vec(), cwd: folder.to_owned() }
    }

    #[test]
    fn what_cannot_be_undone_is_kept_and_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.before(touch(folder.path(), "earlier")).unwrap();
        journal.before(busy(folder.path())).unwrap();
        journal.before(touch(folder.path(), "later")).unwrap();
        let is_busy = |problems: Vec<String>| matches!(problems.as_slice(), [one] if one.contains("busy") && one.contains("exit status: 3"));
        assert!(is_busy(journal.undo_down_to(1)));
        assert!(folder.path().join("later").exists() && !folder.path().join("earlier").exists());
        assert_eq!(journal.left(), 2);
        drop(journal);
        let mut journal = Journal::open(&path).unwrap();
        assert!(is_busy(journal.undo_all()));
        assert_eq!(journal.left(), 1);
        std::fs::write(folder.path().join("ready"), "").unwrap();
        assert!(journal.undo_all().is_empty());
        assert_eq!(journal.left(), 0);
    }

    /// `umount` of what could not be mounted fails for ever.
    #[test]
    fn what_was_perhaps_never_done_is_tried_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        let change = journal.before(busy(folder.path())).unwrap();
        journal.failed(change).unwrap();
        drop(journal);
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!((journal.undo_all().len(), journal.left()), (1, 0));
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().left(), 0);
    }

    #[test]
    fn a_journal_that_is_a_link_or_that_all_may_replace_runs_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, victim) = (folder.path().join("journal.jsonl"), outside.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert!(matches!(Journal::open(&path), Err(JournalError::Io { .. })));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        std::fs::remove_file(&path).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        journal.before(touch(folder.path(), "never")).unwrap();
        drop(journal);
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let error = Journal::open(&path).unwrap_err();
        assert!(error.to_string().contains("can be written by every user"), "{error}");
        assert!(!folder.path().join("never").exists());
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn a_journal_of_another_user_runs_nothing() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root can give a file away");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        for own in [path.as_path(), folder.path()] {
            let mut journal = Journal::open(&path).unwrap();
            journal.before(touch(folder.path(), "never")).unwrap();
            drop(journal);
            std::os::unix::fs::chown(own, Some(4711), None).unwrap();
            let error = Journal::open(&path).unwrap_err();
            assert!(matches!(error, JournalError::Foreign(_)), "{error}");
            assert!(error.to_string().contains("belongs to user 4711"), "{error}");
            std::os::unix::fs::chown(own, Some(0), None).unwrap();
        }
    }

    /// A program with capabilities of its file shows its environment to few.
    #[test]
    fn processes_that_cannot_be_looked_at_are_not_taken_for_gone() {
        let undo = Undo::Processes(format!("throng-none-{}", std::process::id()));
        assert_eq!(perform(&undo, Vec::new), Ok(()));
        let why = perform(&undo, || vec![(4711, "throng".to_owned())]).unwrap_err();
        assert!(why.ends_with("can see that: throng (4711)"), "{why}");
    }

    #[test]
    fn damaged_lines_are_passed_over() {
        let text = "{\"change\":1,\"undo\":{\"processes\":\"a\"}}\nnonsense\n{}\n{\"change\":18446744073709551615,\"undone\":true}\n";
        let (open, next) = unfinished(text);
        assert_eq!((open.len(), next), (1, u64::MAX));
    }
}
