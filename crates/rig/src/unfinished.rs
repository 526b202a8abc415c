//! The experiments of this user that have changed this machine and not put it back, wherever their
//! folders are: an experiment that was killed is forgotten, and what it left stays.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use throng_folder::Folder;

use crate::journal::{Journal, JournalError, Undo};

/// Where root's are.
const OF_ROOT: &str = "/var/lib";
/// Where those of others are, in their home.
const OF_USER: &str = ".local/state";
/// A longer entry is none.
const BYTES_MAX: u64 = 64 << 10;
/// What the names of entries end in.
const ENDING: &str = "json";

/// The list: a file for each.
#[derive(Clone, Debug)]
pub struct Unfinished {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    journal: PathBuf,
}

/// What an experiment left.
#[derive(Debug)]
pub struct LeftBehind {
    /// Its journal.
    pub journal: PathBuf,
    /// What undoes the changes that are not undone, or why that is not known.
    pub changes: Result<Vec<Undo>, JournalError>,
}

impl Unfinished {
    /// That of this user: in `$XDG_STATE_HOME`, else in `/var/lib` (root) or `~/.local/state`.
    /// `None` for a user without a home.
    #[must_use]
    pub fn of_this_user() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let state = set("XDG_STATE_HOME").filter(|path| path.is_absolute());
        let usual = || {
            if rustix::process::geteuid().is_root() {
                return Some(PathBuf::from(OF_ROOT));
            }
            set("HOME").map(|home| home.join(OF_USER))
        };
        Some(Self::at(state.or_else(usual)?.join("throng/unfinished")))
    }

    /// The one in this folder, which is made with the first entry.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Enters the experiment with this journal: it may change the machine from now on.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn enter(&self, journal: &Path) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let journal = journal.canonicalize()?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        throng_folder::check_own(&self.folder).map_err(io::Error::other)?;
        let text = serde_json::to_string(&Entry { journal: journal.clone() })?;
        Folder::open(&self.folder)?.put(&name_of(&journal), text.as_bytes())
    }

    /// Takes it out: nothing of it is left.
    pub fn forget(&self, journal: &Path) {
        let journal = journal.canonicalize().unwrap_or_else(|_| journal.to_owned());
        // One that stays is taken out by the next that looks.
        let _ = Folder::open(&self.folder).and_then(|folder| folder.remove(name_of(&journal)));
    }

    /// What the others left whose process has ended, but for the one with journal `own`. Entries
    /// whose folder is gone, or that have nothing left, are taken out. Of a list that another user
    /// could have written only that is told.
    #[must_use]
    pub fn left(&self, own: &Path) -> Vec<LeftBehind> {
        if !self.folder.exists() {
            return Vec::new();
        }
        // Root, with the variables of another user, would look at what that one names.
        if let Err(error) = throng_folder::check_own(&self.folder) {
            let changes = Err(JournalError::ForeignList(error));
            return vec![LeftBehind { journal: self.folder.clone(), changes }];
        }
        let own = own.canonicalize().unwrap_or_else(|_| own.to_owned());
        let names = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut names: Vec<PathBuf> = names.map(|entry| entry.file_name().into()).collect();
        names.sort();
        names.retain(|name| name.extension().is_some_and(|ending| ending == ENDING));
        let journals = names.iter().filter_map(|name| self.read(name).ok());
        journals
            .filter(|journal| *journal != own)
            .filter_map(|journal| self.look(journal))
            .collect()
    }

    fn look(&self, journal: PathBuf) -> Option<LeftBehind> {
        if !journal.is_file() {
            self.forget(&journal);
            return None;
        }
        match Journal::look(&journal) {
            Ok(changes) if changes.is_empty() => {
                self.forget(&journal);
                None
            }
            // Its process lives, and will put back what it changes.
            Err(JournalError::InUse(_)) => None,
            changes => Some(LeftBehind { journal, changes }),
        }
    }

    fn read(&self, name: &Path) -> io::Result<PathBuf> {
        let mut text = String::new();
        let file = Folder::open(&self.folder)?.read(name)?;
        file.take(BYTES_MAX).read_to_string(&mut text)?;
        Ok(serde_json::from_str::<Entry>(&text)?.journal)
    }
}

/// The name of a journal's entry: the same for the same path, and of no length that a file system
/// refuses (FNV-1a).
fn name_of(journal: &Path) -> String {
    let bytes = journal.as_os_str().as_encoded_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}.{ENDING}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, name: &str) -> Undo {
        Undo::Command { words: vec!["touch".into(), name.into()], cwd: folder.to_owned() }
    }

    /// An experiment that changed something.
    fn begun(list: &Unfinished, folder: &Path) -> (PathBuf, Journal) {
        let path = folder.join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        list.enter(&path).unwrap();
        journal.before(touch(folder, "undone")).unwrap();
        (path, journal)
    }

    #[test]
    fn a_killed_experiment_is_told_until_it_is_undone() {
        let place = tempfile::tempdir().unwrap();
        let list = Unfinished::at(place.path().join("state/unfinished"));
        let other = place.path().join("other");
        assert!(list.left(&other).is_empty());
        let (path, journal) = begun(&list, place.path());
        assert!(list.left(&other).is_empty(), "its process lives");
        // As after kill -9.
        drop(journal);
        let left = list.left(&other);
        assert!(
            matches!(left.as_slice(), [one] if one.journal == path.canonicalize().unwrap() && one.changes.as_ref().is_ok_and(|changes| changes.len() == 1)),
            "{left:?}"
        );
        assert!(list.left(&path).is_empty(), "its own folder is told otherwise");
        assert!(Journal::open(&path).unwrap().undo_all().is_empty());
        assert!(list.left(&other).is_empty());
        assert_eq!(std::fs::read_dir(&list.folder).unwrap().count(), 0, "nothing to tell is left");
    }

    #[test]
    fn what_could_not_be_undone_stays_in_the_list() {
        let place = tempfile::tempdir().unwrap();
        let list = Unfinished::at(place.path().join("unfinished"));
        let (path, mut journal) = begun(&list, place.path());
        let words = ["sh", "-c", "exit 1"].map(str::to_owned).to_vec();
        journal.before(Undo::Command { words, cwd: place.path().to_owned() }).unwrap();
        assert_eq!(journal.undo_all().len(), 1);
        drop(journal);
        let left = list.left(&place.path().join("other"));
        let counts: Vec<Option<usize>> =
            left.iter().map(|left| left.changes.as_ref().ok().map(Vec::len)).collect();
        assert_eq!(counts, [Some(1)], "{left:?}");
        list.forget(&path);
        assert!(list.left(&place.path().join("other")).is_empty());
    }

    #[test]
    fn looking_changes_no_file_whatever_an_entry_names() {
        let place = tempfile::tempdir().unwrap();
        let list = Unfinished::at(place.path().join("unfinished"));
        let victim = place.path().join("victim");
        std::fs::write(&victim, "a line that was cut").unwrap();
        list.enter(&victim).unwrap();
        assert!(list.left(&place.path().join("other")).is_empty());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "a line that was cut");
    }

    #[test]
    fn a_list_that_others_may_write_is_told_and_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let list = Unfinished::at(place.path().join("unfinished"));
        let (path, journal) = begun(&list, place.path());
        drop(journal);
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&list.folder, open).unwrap();
        let left = list.left(&place.path().join("other"));
        let [LeftBehind { changes: Err(error), .. }] = left.as_slice() else {
            panic!("{left:?}");
        };
        assert!(error.to_string().contains("can be written by every user"), "{error}");
        assert!(list.enter(&path).is_err());
    }

    #[test]
    fn a_folder_that_is_gone_is_forgotten() {
        let (place, gone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let list = Unfinished::at(place.path().join("unfinished"));
        drop(begun(&list, gone.path()));
        drop(gone);
        assert!(list.left(&place.path().join("other")).is_empty());
        assert_eq!(std::fs::read_dir(&list.folder).unwrap().count(), 0);
    }
}
