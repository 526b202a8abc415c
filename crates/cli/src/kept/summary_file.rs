//! The answers of a folder: the few keys of `summary.json` and `matrix.json` that a list shows.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// A longer file is not read: a summary has some kilobytes.
const BYTES_MAX: u64 = 32 << 20;

/// Of `summary.json`.
#[derive(Debug, Deserialize)]
pub(crate) struct SummaryFile {
    pub(crate) outcome: String,
    pub(crate) headline: String,
    pub(crate) ending: String,
    /// It was made while the run went on.
    #[serde(default)]
    pub(crate) in_progress: bool,
    pub(crate) started_at_unix_us: i64,
    pub(crate) target: String,
    /// Present for a search.
    #[serde(default)]
    pub(crate) capacity: Option<IgnoredAny>,
    /// What limited the server.
    #[serde(default)]
    pub(crate) bottleneck: Option<Cause>,
}

/// What limited a server.
#[derive(Debug, Deserialize)]
pub(crate) struct Cause {
    pub(crate) title: String,
}

/// Of `matrix.json`.
#[derive(Debug, Deserialize)]
pub(crate) struct MatrixFile {
    pub(crate) headline: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    pub(crate) partial: bool,
}

/// Of `options.json` of a matrix or a proof.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct OptionsFile {
    /// The file that was asked; templates and scenario are next to it.
    #[serde(default)]
    pub(crate) file: PathBuf,
    pub(crate) options: Kind,
}

/// What a folder of cells is one of.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Kind {
    /// `matrix` or `proof`.
    #[serde(default)]
    pub(crate) kind: Option<String>,
}

impl OptionsFile {
    /// What the folder is, and the command that made it.
    pub(crate) fn kind(&self) -> (&'static str, &'static str) {
        match self.options.kind.as_deref() {
            Some("proof") => ("proof", "prove"),
            _ => ("matrix", "matrix"),
        }
    }
}

/// A JSON file of a folder; `None` if there is none. An error is a sentence.
pub(crate) fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, String> {
    let path = folder.join(name);
    let wrong = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let file = match throng_folder::read(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(&error)),
    };
    if file.metadata().map_err(|error| wrong(&error))?.len() > BYTES_MAX {
        return Err(wrong(&"too long"));
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).map_err(|error| wrong(&error))?;
    serde_json::from_slice(&text).map(Some).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_or_a_pipe_is_not_read_and_what_is_not_there_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let read = |name: &str| read::<IgnoredAny>(folder.path(), name);
        std::fs::write(at("a.json"), "{}").unwrap();
        assert!(matches!(read("a.json"), Ok(Some(_))) && matches!(read("b.json"), Ok(None)));
        std::os::unix::fs::symlink(at("a.json"), at("link.json")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe.json")).status();
        assert!(made.unwrap().success());
        for (name, expect) in [
            ("link.json", "link.json: is a link, which is not followed"),
            ("pipe.json", "pipe.json: is no ordinary file"),
        ] {
            assert_eq!(read(name).err().as_deref(), Some(expect));
        }
    }
}
