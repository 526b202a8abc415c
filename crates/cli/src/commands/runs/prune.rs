//! `throng runs prune`: deletes old run folders, and nothing else.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use throng_observation::units::{self, bytes};
use throng_observation::{calendar, untrusted};

use super::entry::Entry;
use super::list;
use crate::args::Prune;
use crate::console::{CliError, Exit, print};

pub(super) fn prune(command: &Prune) -> Result<Exit, CliError> {
    let listed = list::of(&command.folder)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (old, kept) = chosen(&listed.entries, command, now);
    let mut out = String::new();
    for (entry, why) in kept {
        let _ = writeln!(out, "keeps    {}: {}", untrusted::name(&entry.id), untrusted::line(&why));
    }
    let verb = if command.yes { "deletes" } else { "would delete" };
    let (mut freed, mut failed) = (0, 0);
    for entry in &old {
        let headline = entry.headline.as_deref().unwrap_or_default();
        let at = entry.started_at_unix_us.map_or_else(|| "?".into(), calendar::shown);
        let (id, size) = (untrusted::name(&entry.id), bytes(entry.size_bytes as f64));
        let _ =
            writeln!(out, "{verb}  {id}  {at}  {size}  {}", untrusted::name(headline).trim_end());
        if !command.yes {
            freed += entry.size_bytes;
            continue;
        }
        match delete(&entry.path) {
            Ok(()) => freed += entry.size_bytes,
            Err(error) => {
                failed += 1;
                let _ = writeln!(out, "  not deleted: {}", untrusted::line(&error.to_string()));
            }
        }
    }
    let (count, size) = (old.len() - failed, bytes(freed as f64));
    let runs = units::count(count as u64, "runs");
    let _ = match (command.yes, count) {
        (_, 0) => writeln!(out, "nothing to delete"),
        (true, _) => writeln!(out, "deleted {runs}, {size}"),
        (false, _) => writeln!(out, "{runs}, {size}; nothing was deleted: add --yes"),
    };
    print(&out);
    Ok(if failed > 0 { Exit::Invalid } else { Exit::Met })
}

/// The runs to delete, and those that would be old enough but are kept, with the reason.
fn chosen<'a>(
    entries: &'a [Entry],
    command: &Prune,
    now: Duration,
) -> (Vec<&'a Entry>, Vec<(&'a Entry, String)>) {
    let is_old = |entry: &Entry| {
        command.older_than.is_none_or(|age| {
            let at = entry
                .started_at_unix_us
                .and_then(|at| u64::try_from(at).ok())
                .map(Duration::from_micros);
            // Without a time nothing says that it is old.
            at.is_some_and(|at| now.saturating_sub(at) > age)
        })
    };
    let (mut old, mut kept) = (Vec::new(), Vec::new());
    for entry in entries.iter().skip(command.keep.unwrap_or(0)).filter(|entry| is_old(entry)) {
        let named = entry.labels.labels.iter().find(|label| command.keep_label.contains(label));
        let is_labelled = !entry.labels.labels.is_empty();
        let why = match (&entry.kept_because, named) {
            (Some(why), _) => Some(why.clone()),
            (None, Some(label)) => Some(format!("it has the label {label}")),
            (None, None) if is_labelled && !command.labelled => {
                Some("it has a label (--labelled)".to_owned())
            }
            (None, None) if entry.has_unread_labels && !command.labelled => {
                Some("its labels cannot be read".to_owned())
            }
            _ => None,
        };
        match why {
            Some(why) => kept.push((entry, why)),
            None => old.push(entry),
        }
    }
    (old, kept)
}

/// Deletes a run folder. Links in it are removed, not followed.
fn delete(path: &Path) -> std::io::Result<()> {
    // It may have become a link, or another folder, since it was listed.
    let found = path.symlink_metadata()?;
    if !found.is_dir() || Entry::of(path).is_none_or(|entry| entry.kept_because.is_some()) {
        return Err(std::io::Error::other("it has changed"));
    }
    std::fs::remove_dir_all(path)
}
