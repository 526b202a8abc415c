//! `throng runs`: the runs of a folder, their labels and notes.
//!
//! The index is the folders themselves: nothing is kept that could be stale. A list reads only the
//! small files of each folder.

mod entry;
mod list;
mod prune;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::args::{Runs, RunsCommand};
use crate::console::{CliError, Exit, print, print_json, say};
use crate::kept::{Labels, run_folder};
pub(super) use entry::Entry;
pub(super) use list::{Known, again, ended, remarks};

/// `throng runs`.
pub(crate) fn runs(command: &Runs) -> Result<Exit, CliError> {
    match &command.command {
        None => list(command),
        Some(RunsCommand::Label(label)) => {
            let folder = labelled(&label.run)?;
            let mut labels = Labels::read(&folder).map_err(CliError::usage)?;
            for word in &label.labels {
                labels.set(word, !label.remove);
            }
            labels.write(&folder)?;
            print(&format!("{}: {}\n", folder.display(), labels.describe()));
            Ok(Exit::Met)
        }
        Some(RunsCommand::Note(note)) => {
            let folder = labelled(&note.run)?;
            let labels = Labels::read(&folder).map_err(CliError::usage)?.with_note(&note.text)?;
            labels.write(&folder)?;
            print(&format!("{}: {}\n", folder.display(), labels.describe()));
            Ok(Exit::Met)
        }
        Some(RunsCommand::Prune(command)) => prune::prune(command),
    }
}

fn list(command: &Runs) -> Result<Exit, CliError> {
    let listed = list::of(&command.folder)?;
    let is_wanted = |entry: &&Entry| {
        command.label.iter().all(|label| entry.labels.labels.contains(label))
            && command.outcome.as_ref().is_none_or(|outcome| entry.outcome == *outcome)
            && command
                .scenario
                .as_ref()
                .is_none_or(|part| entry.scenario.as_ref().is_some_and(|name| name.contains(part)))
    };
    let wanted: Vec<&Entry> = listed.entries.iter().filter(is_wanted).collect();
    if command.json {
        let json = serde_json::to_string_pretty(&wanted).map_err(CliError::invalid)?;
        print_json(&format!("{json}\n"));
    } else {
        print(&list::text(&wanted, listed.entries.len(), &command.folder));
    }
    listed.unreadable.iter().for_each(|problem| say(problem));
    Ok(Exit::Met)
}

/// The folder of a run that is to be labelled.
fn labelled(path: &Path) -> Result<PathBuf, CliError> {
    let folder = run_folder(path);
    match Entry::of(&folder) {
        Some(_) => Ok(folder),
        None => Err(CliError::usage(format!("{} is not a run folder", folder.display()))),
    }
}
