//! What experiments left changed on this machine: that of this folder is put back, that of others
//! is told, with the command that puts it back.

use std::path::{Path, PathBuf};

use throng_rig::{Journal, LeftBehind, Unfinished};

use super::folder::MatrixFolder;
use super::machine::Machine;
use super::plan::Kind;
use super::run::by_hand;
use super::shown;
use crate::exit::Exit;
use crate::{CliError, say};

/// The entry of an experiment in the list of those that are not finished.
pub(super) struct Listed {
    list: Option<Unfinished>,
    journal: PathBuf,
}

impl Listed {
    /// Enters it, and tells what others left.
    pub(super) fn enter(journal: &Path, kind: Kind) -> Self {
        let list = Unfinished::of_this_user();
        if let Some(list) = &list {
            list.left(journal).iter().for_each(|left| say(&told(left, kind)));
            if let Err(error) = list.enter(journal) {
                say(&format!(
                    "warning: later experiments will not know what this one leaves if it is killed: {error}"
                ));
            }
        }
        Self { list, journal: journal.to_owned() }
    }

    /// Takes it out if nothing is left.
    pub(super) fn leave(self, journal: &Journal) {
        if let Some(list) = self.list.filter(|_| journal.left() == 0) {
            list.forget(&self.journal);
        }
    }
}

/// What another experiment left, in a sentence.
fn told(left: &LeftBehind, kind: Kind) -> String {
    let folder = left.journal.parent().map(shown).unwrap_or_default();
    match &left.changes {
        Ok(changes) => {
            let undo = by_hand(&[kind.command(), "--undo", &folder].map(str::to_owned));
            format!(
                "warning: an earlier experiment left this machine changed ({changes}); to put it back: {undo}"
            )
        }
        Err(error) => {
            format!("warning: it is not known what an earlier experiment left changed: {error}")
        }
    }
}

/// Undoes what an earlier throng left changed, which was killed or could not undo it. Whether
/// nothing is left.
pub(super) fn undo_all(journal: &mut Journal) -> bool {
    let left = journal.left();
    if left > 0 {
        say(&format!(
            "an earlier throng with this folder left this machine changed ({left}): undoing it"
        ));
        let problems = journal.undo_all();
        problems.iter().for_each(|problem| say(&format!("  could not be undone: {problem}")));
    }
    journal.left() == 0
}

/// `--undo FOLDER`.
pub(super) fn undo(folder: &Path) -> Result<Exit, CliError> {
    let folder = MatrixFolder::open(folder)?;
    folder.check_is_own()?;
    // Whoever shrinks the same meanwhile would go on with what is put back here.
    let _machine = folder.stored_plan().ok().map(|plan| Machine::taken_for(&plan)).transpose()?;
    let path = folder.journal();
    let mut journal = Journal::open(&path).map_err(CliError::usage)?;
    let is_undone = undo_all(&mut journal);
    let listed = Listed { list: Unfinished::of_this_user(), journal: path };
    listed.leave(&journal);
    if is_undone {
        say(&format!("{}: nothing is left changed", folder.path().display()));
    }
    Ok(if is_undone { Exit::Met } else { Exit::Invalid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_left_is_told_with_the_command_that_puts_it_back() {
        let left = LeftBehind { journal: "/runs/a b/journal.jsonl".into(), changes: Ok(2) };
        let told = told(&left, Kind::Proof);
        assert!(told.contains("left this machine changed (2)"), "{told}");
        assert!(told.ends_with("to put it back: throng prove --undo '/runs/a b'"), "{told}");
    }
}
