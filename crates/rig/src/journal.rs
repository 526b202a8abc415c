//! What has to be put back, written down before it is changed. A throng that was killed undoes
//! nothing; the next start with the same folder reads what it left.
//!
//! One JSON object a line, appended and synced: `{"change":3,"undo":{…}}` before,
//! `{"change":3,"undone":true}` after.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::control_group;
use crate::processes::Marker;
use crate::setup::run_to_end;

/// How long the undoing of one change may take.
const UNDO_WITHIN: Duration = Duration::from_secs(60);
/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);
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
    open: Vec<(Change, Undo)>,
    next: u64,
}

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has it.
    #[error("{0} is in use by another throng")]
    InUse(PathBuf),
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
    #[serde(default)]
    undone: bool,
}

impl Journal {
    /// Opens or makes the journal at `path`.
    ///
    /// # Errors
    /// If another process has it open, or it cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let named = |error: io::Error| JournalError::Io { path: path.to_owned(), error };
        let mut file =
            File::options().read(true).append(true).create(true).open(path).map_err(named)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(JournalError::InUse(path.to_owned()));
        }
        file.seek(SeekFrom::Start(0)).map_err(named)?;
        let mut bytes = Vec::new();
        (&file).take(BYTES_MAX).read_to_end(&mut bytes).map_err(named)?;
        // A line that was cut off must not take the next one with it.
        if bytes.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n").map_err(named)?;
        }
        let (open, next) = unfinished(&String::from_utf8_lossy(&bytes));
        Ok(Self { file, path: path.to_owned(), open, next })
    }

    /// How many changes are not undone.
    #[must_use]
    pub fn left(&self) -> usize {
        self.open.len()
    }

    /// Writes down how the next change is undone. Returns after it is on the disk.
    ///
    /// # Errors
    /// If it cannot be written: then the change must not be made.
    pub fn before(&mut self, undo: Undo) -> Result<Change, JournalError> {
        let change = Change(self.next);
        self.next += 1;
        self.write(&Line { change, undo: Some(undo.clone()), undone: false })?;
        self.open.push((change, undo));
        Ok(change)
    }

    /// Writes down that a change was undone otherwise.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn undone(&mut self, change: Change) -> Result<(), JournalError> {
        self.open.retain(|(known, _)| *known != change);
        self.write(&Line { change, undo: None, undone: true })
    }

    /// Undoes the changes that are left, the last one first. Each is tried once and then no longer
    /// in the journal; what failed is returned, for the person who has to do it.
    pub fn undo_all(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        while let Some((change, undo)) = self.open.pop() {
            problems.extend(perform(&undo).err());
            problems.extend(self.undone(change).err().map(|error| error.to_string()));
        }
        problems
    }

    /// The same for the changes since `first`, which stays.
    pub fn undo_down_to(&mut self, first: usize) -> Vec<String> {
        let earlier: Vec<_> = self.open.drain(..first.min(self.open.len())).collect();
        let problems = self.undo_all();
        self.open = earlier;
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

/// The changes that are not undone, and the number of the next one. The last line may be cut off.
fn unfinished(text: &str) -> (Vec<(Change, Undo)>, u64) {
    let mut open: Vec<(Change, Undo)> = Vec::new();
    let mut next = 0;
    for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
        next = next.max(line.change.0.saturating_add(1));
        match line.undo {
            Some(undo) if !line.undone => open.push((line.change, undo)),
            _ => open.retain(|(known, _)| *known != line.change),
        }
    }
    (open, next)
}

fn perform(undo: &Undo) -> Result<(), String> {
    match undo {
        Undo::Command { words, cwd } => run_to_end(words, cwd, None, UNDO_WITHIN, &|| false),
        Undo::Processes(mark) => {
            let _ = Marker::new(mark.as_str()).kill_all(GONE_WITHIN);
            let left = Marker::new(mark.as_str()).processes();
            if left.is_empty() {
                Ok(())
            } else {
                Err(format!("{} processes could not be killed", left.len()))
            }
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

    #[test]
    fn what_cannot_be_undone_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&folder.path().join("journal.jsonl")).unwrap();
        let words = ["sh", "-c", "echo busy >&2; exit 3"].map(str::to_owned).to_vec();
        journal.before(Undo::Command { words, cwd: folder.path().to_owned() }).unwrap();
        let problems = journal.undo_all();
        assert!(
            matches!(problems.as_slice(), [one] if one.contains("busy") && one.contains("exit status: 3")),
            "{problems:?}"
        );
        assert!(journal.undo_all().is_empty());
    }

    #[test]
    fn damaged_lines_are_passed_over() {
        let text = "{\"change\":1,\"undo\":{\"processes\":\"a\"}}\nnonsense\n{}\n{\"change\":18446744073709551615,\"undone\":true}\n";
        let (open, next) = unfinished(text);
        assert_eq!((open.len(), next), (1, u64::MAX));
    }
}
