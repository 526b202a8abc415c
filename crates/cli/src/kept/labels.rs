//! Labels and a note of a run: `labels.json` in its folder. Text of people, and of whoever wrote
//! the folder.

use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use throng_observation::untrusted;
use throng_store::RunFolder;

use crate::console::CliError;

const FILE: &str = "labels.json";
/// A longer file was not written by throng.
const BYTES_MAX: u64 = 64 << 10;
const LABELS_MAX: usize = 100;
const NOTE_CHARS_MAX: usize = 1_000;

/// Labels and a note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Labels {
    /// In alphabetical order.
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    #[serde(default)]
    pub(crate) note: Option<String>,
}

impl Labels {
    /// Those of a folder; none if it has no file. An error is a sentence.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join(FILE);
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = match throng_folder::read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(wrong(&error)),
        };
        let mut text = String::new();
        file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(wrong(&"too long for labels"));
        }
        let mut labels: Self = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        labels.labels.truncate(LABELS_MAX);
        Ok(labels)
    }

    /// Adds a label, or takes it away.
    pub(crate) fn set(&mut self, label: &str, is_on: bool) {
        self.labels.retain(|known| known != label);
        if is_on {
            self.labels.push(label.to_owned());
            self.labels.sort();
        }
    }

    /// With this note; without one if it is empty.
    pub(crate) fn with_note(self, text: &str) -> Result<Self, CliError> {
        if text.chars().count() > NOTE_CHARS_MAX {
            return Err(CliError::usage(format!("a note has at most {NOTE_CHARS_MAX} characters")));
        }
        Ok(Self { note: Some(text.trim().to_owned()).filter(|text| !text.is_empty()), ..self })
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), CliError> {
        if self.labels.len() > LABELS_MAX {
            return Err(CliError::usage(format!("a run has at most {LABELS_MAX} labels")));
        }
        let json = serde_json::to_string_pretty(self).map_err(CliError::invalid)?;
        RunFolder::open(folder)
            .and_then(|folder| folder.put(FILE, json))
            .map_err(CliError::invalid)?;
        Ok(())
    }

    /// Both in a line.
    pub(crate) fn describe(&self) -> String {
        let labels: Vec<String> =
            self.labels.iter().map(|label| format!("[{}]", untrusted::name(label))).collect();
        let labels = if labels.is_empty() { "no label".to_owned() } else { labels.join(" ") };
        match &self.note {
            Some(note) => format!("{labels}, note: {}", untrusted::line(note)),
            None => labels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test that waits for a writer does not end.
    #[test]
    fn labels_are_read_of_no_link_and_no_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(Labels::read(folder.path()), Ok(Labels::default()));
        // A link could lead to a device that never ends.
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let refused = || Labels::read(folder.path()).unwrap_err();
        assert!(refused().ends_with("labels.json: is a link, which is not followed"));
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(refused().ends_with("labels.json: is no ordinary file"));
    }
}
