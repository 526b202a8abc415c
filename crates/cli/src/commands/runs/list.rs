//! The list of a folder's runs, newest first.

use std::fmt::Write as _;
use std::path::Path;

use throng_observation::units::bytes;
use throng_observation::{calendar, shell, untrusted};
use throng_report::columns::columns;

use super::entry::Entry;
use crate::console::CliError;

/// The runs of a folder.
pub(super) struct Listed {
    /// Newest first.
    pub(super) entries: Vec<Entry>,
    /// What could not be looked at, in sentences.
    pub(super) unreadable: Vec<String>,
}

/// The runs of `folder`; links are not followed.
pub(super) fn of(folder: &Path) -> Result<Listed, CliError> {
    if folder.join("run.db").is_file() {
        let parent = folder
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        return Err(CliError::usage(format!(
            "{} is a run itself; the list of its folder is: throng runs {}",
            folder.display(),
            shell::path(parent)
        )));
    }
    let found = std::fs::read_dir(folder)
        .map_err(|error| CliError::usage(format!("{}: {error}", folder.display())))?;
    let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
    for one in found {
        match one.and_then(|one| Ok((one.path(), one.file_type()?))) {
            Ok((path, kind)) if kind.is_dir() => entries.extend(Entry::of(&path)),
            Ok(_) => {}
            Err(error) => unreadable.push(format!("{}: {error}", folder.display())),
        }
    }
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
        let labels = (!entry.labels.labels.is_empty() || entry.labels.note.is_some())
            .then(|| entry.labels.describe());
        for more in labels
            .into_iter()
            .chain(entry.problems.iter().map(|problem| format!("problem: {problem}")))
        {
            let _ = writeln!(out, "    {}", untrusted::line(&more));
        }
    }
    let runs = if of == 1 { "run" } else { "runs" };
    let shown = if entries.len() == of { String::new() } else { format!("{} of ", entries.len()) };
    let _ =
        writeln!(out, "{shown}{of} {runs} in {}", untrusted::line(&folder.display().to_string()));
    out
}

fn row(entry: &Entry) -> Vec<String> {
    let ending =
        entry.ending.as_deref().filter(|ending| !["complete", &entry.outcome].contains(ending));
    let outcome = match ending {
        Some(ending) => format!("{}, {ending}", entry.outcome),
        None => entry.outcome.clone(),
    };
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
