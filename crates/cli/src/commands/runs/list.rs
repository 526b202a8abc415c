//! The list of a folder's runs, newest first.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use throng_folder::is_at_work;
use throng_observation::units::{bytes, count};
use throng_observation::{calendar, shell, untrusted};
use throng_report::columns::columns;

use super::entry::Entry;
use crate::console::CliError;
use crate::kept::FolderKind;
use crate::page::{Stamp, stamp_of};

/// The runs of a folder.
pub(crate) struct Listed {
    /// Newest first.
    pub(crate) entries: Vec<Entry>,
    /// What could not be looked at, in sentences.
    pub(crate) unreadable: Vec<String>,
}

/// The files from which an entry is made; the folder itself has names come and go.
const FILES: [&str; 8] = [
    "",
    "run.db",
    "run.db-wal",
    "summary.json",
    "labels.json",
    "command.json",
    "matrix.json",
    "options.json",
];

/// The stamp of a folder's files, and whether a process is at work in it: nothing else changes when
/// one begins, or is killed.
type FolderStamp = (Stamp, bool);

/// Runs as they were listed before: as long as their stamps stay the same, so do they.
#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<PathBuf, (FolderStamp, Option<Entry>)>);

impl Known {
    fn entry(&self, path: &Path) -> (FolderStamp, Option<Entry>) {
        let stamp = (stamp_of(FILES.map(|name| path.join(name))), is_at_work(path));
        match self.0.get(path).filter(|(known, _)| *known == stamp) {
            Some((_, entry)) => (stamp, entry.clone()),
            None => (stamp, Entry::of(path)),
        }
    }
}

/// The runs of `folder`; links are not followed.
pub(super) fn of(folder: &Path) -> Result<Listed, CliError> {
    again(folder, &mut Known::default())
}

/// The same, where the folder was listed before.
pub(crate) fn again(folder: &Path, known: &mut Known) -> Result<Listed, CliError> {
    if let Some(kind) = FolderKind::of(folder) {
        let parent = folder
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        return Err(CliError::usage(format!(
            "{} is a {} itself; the list of its folder is: throng runs {}",
            folder.display(),
            kind.noun(),
            shell::path(parent)
        )));
    }
    let found = std::fs::read_dir(folder)
        .map_err(|error| CliError::usage(format!("{}: {error}", folder.display())))?;
    let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
    let mut seen = Known::default();
    for one in found {
        match one.and_then(|one| Ok((one.path(), one.file_type()?))) {
            Ok((path, kind)) if kind.is_dir() => {
                let (stamp, entry) = known.entry(&path);
                entries.extend(entry.clone());
                seen.0.insert(path, (stamp, entry));
            }
            Ok(_) => {}
            Err(error) => unreadable.push(format!("{}: {error}", folder.display())),
        }
    }
    *known = seen;
    entries.sort_by(|a, b| {
        b.started_at_unix_us.cmp(&a.started_at_unix_us).then_with(|| b.id.cmp(&a.id))
    });
    Ok(Listed { entries, unreadable })
}

/// The list as text.
pub(super) fn text(entries: &[&Entry], of: usize, folder: &Path) -> String {
    let rows: Vec<Vec<String>> = entries.iter().map(|entry| row(entry)).collect();
    let mut out = String::new();
    for (entry, line) in entries.iter().zip(columns(&rows).lines()) {
        let _ = writeln!(out, "{line}");
        for more in remarks(entry) {
            let _ = writeln!(out, "    {}", untrusted::line(&more));
        }
    }
    let runs = count(of as u64, "runs");
    let shown = if entries.len() == of { String::new() } else { format!("{} of ", entries.len()) };
    let _ = writeln!(out, "{shown}{runs} in {}", untrusted::line(&folder.display().to_string()));
    out
}

/// Labels and note of a run, and what is wrong with its folder.
pub(crate) fn remarks(entry: &Entry) -> Vec<String> {
    let labels = (!entry.labels.labels.is_empty() || entry.labels.note.is_some())
        .then(|| entry.labels.describe());
    let problems = entry.problems.iter().map(|problem| format!("problem: {problem}"));
    labels.into_iter().chain(problems).collect()
}

/// The outcome of a run, and its ending where that is another thing.
pub(crate) fn ended(entry: &Entry) -> String {
    let ending = entry
        .ending
        .as_deref()
        .filter(|ending| !entry.is_in_progress() && !["complete", &entry.outcome].contains(ending));
    match ending {
        Some(ending) => format!("{}, {ending}", entry.outcome),
        None => entry.outcome.clone(),
    }
}

fn row(entry: &Entry) -> Vec<String> {
    let outcome = ended(entry);
    vec![
        entry.started_at_unix_us.map_or_else(|| "?".into(), calendar::shown),
        untrusted::name(&entry.id).into_owned(),
        untrusted::name(&entry.kind).into_owned(),
        untrusted::name(&outcome).into_owned(),
        bytes(entry.size_bytes as f64),
        untrusted::escaped(entry.scenario.as_deref().unwrap_or("–"), 48).into_owned(),
        untrusted::name(entry.headline.as_deref().unwrap_or_default()).into_owned(),
    ]
}
