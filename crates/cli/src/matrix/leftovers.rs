//! What experiments left changed on this machine: that of this folder is put back, that of others
//! is told, with the command that puts it back.

use std::path::{Path, PathBuf};

use throng_rig::{Journal, LeftBehind, MachineResource, Undo, Unfinished};

use super::folder::MatrixFolder;
use super::machine::Machine;
use super::options::Kind;
use super::run::by_hand;
use super::shown;
use crate::console::{CliError, Exit, say};

/// The entry of an experiment in the list of those that are not finished.
pub(super) struct Listed {
    list: Option<Unfinished>,
    journal: PathBuf,
}

impl Listed {
    /// Enters it.
    pub(super) fn enter(journal: &Path) -> Self {
        let list = Unfinished::of_this_user();
        if let Some(Err(error)) = list.as_ref().map(|list| list.enter(journal)) {
            say(&format!(
                "warning: if this experiment is killed, later ones cannot undo what it changed: \
                 {error}"
            ));
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

/// Tells what experiments but that with the journal `own` left.
///
/// # Errors
/// If they left changed what this one shrinks: how it is otherwise is not known.
pub(super) fn check_others(own: &Path, machine: &Machine, kind: Kind) -> Result<(), CliError> {
    let mut left = Unfinished::of_this_user().map(|list| list.left(own)).unwrap_or_default();
    left.iter().for_each(|left| say(&told(left, kind)));
    for changes in left.iter_mut().filter_map(|left| left.changes.as_mut().ok()) {
        changes.retain(MachineResource::is_left);
    }
    refusal(&left, machine, kind).map_or(Ok(()), |why| Err(CliError::usage(why)))
}

/// After an undoing of all that this experiment left, `changes`.
///
/// # Errors
/// If what it shrinks is still changed. Whether a command of the user's that undoes something else
/// could be run does not matter: after a boot there may be nothing to undo.
pub(super) fn check_own(
    mut changes: Vec<Undo>,
    machine: &Machine,
    folder: &MatrixFolder,
) -> Result<(), CliError> {
    changes.retain(MachineResource::is_left);
    machine.put_back_by(&changes).map_or(Ok(()), |resource| {
        Err(CliError::usage(format!(
            "{resource} is still shrunk by {}, and its original setting is not known. \
             Put it back by hand (journal.jsonl has the commands), then continue",
            folder.path().display()
        )))
    })
}

/// Why a `machine` on which others `left` something shrinks nothing.
fn refusal(left: &[LeftBehind], machine: &Machine, kind: Kind) -> Option<String> {
    let of_one = |left: &LeftBehind| {
        let resource = machine.put_back_by(left.changes.as_deref().ok()?)?;
        let undo = undo_by_hand(left, kind);
        Some(format!("{resource} is as an earlier experiment left it; put it back first: {undo}"))
    };
    left.iter().find_map(of_one)
}

fn undo_by_hand(left: &LeftBehind, kind: Kind) -> String {
    let folder = left.journal.parent().map(shown).unwrap_or_default();
    by_hand(&[kind.command(), "--undo", &folder].map(str::to_owned))
}

/// What another experiment left, in a sentence.
fn told(left: &LeftBehind, kind: Kind) -> String {
    match &left.changes {
        Ok(changes) => {
            let (count, undo) = (changes.len(), undo_by_hand(left, kind));
            format!(
                "warning: an earlier experiment left this machine changed ({count}); to put it \
                 back: {undo}"
            )
        }
        Err(error) => {
            format!("warning: it is not known what an earlier experiment left changed: {error}")
        }
    }
}

/// Undoes what an earlier throng left changed, which was killed or could not undo it. Whether all
/// was undone, and nothing is left.
pub(super) fn undo_all(journal: &mut Journal) -> bool {
    let left = journal.left();
    if left == 0 {
        return true;
    }
    say(&format!(
        "an earlier throng with this folder left this machine changed ({left}): undoing it"
    ));
    let problems = journal.undo_all();
    problems.iter().for_each(|problem| say(&format!("  could not be undone: {problem}")));
    // What had itself failed is tried once, and then no longer left.
    problems.is_empty() && journal.left() == 0
}

/// `--undo FOLDER`.
pub(super) fn undo(folder: &Path) -> Result<Exit, CliError> {
    let folder = MatrixFolder::open(folder)?;
    folder.check_is_own()?;
    let path = folder.journal();
    let mut journal = Journal::open(&path).map_err(CliError::usage)?;
    // By the journal: the files of the experiment may have changed since.
    let _machine = Machine::taken_to_undo(&journal.undos())?;
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
    use throng_rig::line_rate_step;

    use super::*;

    fn left(changes: Vec<Undo>) -> LeftBehind {
        LeftBehind { journal: "/runs/a b/journal.jsonl".into(), changes: Ok(changes) }
    }

    fn filter(interface: &str) -> Undo {
        Undo::Command { words: line_rate_step(interface, 1e6).undo, cwd: "/".into() }
    }

    #[test]
    fn a_line_that_another_left_shrunk_is_not_taken_for_whole() {
        let line = |name: &str| format!("{name}-{}", std::process::id());
        let machine = Machine::taken_to_undo(&[filter(&line("left"))]).unwrap();
        let why = |changes| refusal(&[left(changes)], &machine, Kind::Proof);
        let said = why(vec![Undo::Processes("a".into()), filter(&line("left"))]).unwrap();
        assert!(
            said.contains("the line of left-") && said.ends_with("--undo '/runs/a b'"),
            "{said}"
        );
        assert_eq!(why(vec![filter(&line("other")), Undo::Processes("a".into())]), None);
        // What is put back is had by one.
        assert!(Machine::taken_to_undo(&[filter(&line("left"))]).is_err());
    }

    #[test]
    fn what_could_not_be_undone_is_told_though_it_is_tried_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        let words = ["sh", "-c", "exit 1"].map(str::to_owned).to_vec();
        let cwd = folder.path().to_owned();
        let change = journal.before(Undo::Command { words, cwd }).unwrap();
        journal.failed(change).unwrap();
        assert!(!undo_all(&mut journal));
        assert_eq!(journal.left(), 0);
        assert!(undo_all(&mut journal));
    }

    #[test]
    fn what_another_left_is_told_with_the_command_that_puts_it_back() {
        let left = left(vec![Undo::Processes("a".into()), Undo::Processes("b".into())]);
        let told = told(&left, Kind::Proof);
        assert!(told.contains("left this machine changed (2)"), "{told}");
        assert!(told.ends_with("to put it back: throng prove --undo '/runs/a b'"), "{told}");
    }
}
