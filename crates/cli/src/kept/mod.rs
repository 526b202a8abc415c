//! What throng keeps in a run folder beside the rows: how the run was asked for, labels and a note,
//! and the few keys of its answers that are read again; and by which files a folder is one of
//! throng's.

mod command;
mod folder_kind;
mod hidden;
mod labels;
mod own;
mod summary_file;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub(crate) use command::{
    CONSENT, KeptCommand, SCENARIO, is_kept, sha256 as file_sha256, written_out,
};
pub(crate) use folder_kind::{FolderKind, MATRIX, OPTIONS};
pub(crate) use hidden::{Hidden, covers, is_same_file};
pub(crate) use labels::Labels;
pub(crate) use own::check_own;
pub(crate) use summary_file::{MatrixFile, OptionsFile, SummaryFile, read as read_json};

use crate::args::RUNS;

/// The folder of a run: the path itself, or the name of a folder below runs/.
pub(crate) fn run_folder(path: &Path) -> PathBuf {
    let below = Path::new(RUNS).join(path);
    if path.is_relative() && !path.is_dir() && below.is_dir() { below } else { path.to_owned() }
}
