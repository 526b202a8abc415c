//! `throng serve`: the pages of a folder of runs, or of one run.

mod history;
mod named;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::Serve;
use crate::console::{CliError, Exit, Interrupt, say};
use crate::http_server::Listener;
use crate::kept::{FolderKind, run_folder};
use crate::page::{RunSite, Source};
use history::HistorySite;

/// How often it is looked whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Serves until a signal ends it.
pub(crate) fn serve(command: &Serve) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let (folder, address) = command.meant(|folder| run_folder(folder).is_dir());
    let folder = found(&folder)?;
    let port = Listener::bind("throng serve", &address)?;
    let address = port.authority();
    let _server = match FolderKind::of(&folder) {
        Some(kind) => port.serve("page", RunSite::of_folder(Source::of(kind, folder))?)?,
        None => port.serve("page", HistorySite::of(&folder)?)?,
    };
    say(&format!("pages       http://{address}/"));
    while !interrupt.is_set() {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(Exit::Met)
}

/// The folder that is meant by a path or a name.
fn found(path: &Path) -> Result<PathBuf, CliError> {
    let folder = run_folder(path);
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(CliError::usage(format!(
        "{}: there is no such folder\n  help: runs are in runs/ of the folder in which throng ran, \
         or where --output says; throng serve FOLDER [ADDRESS] takes that, or one run folder",
        path.display()
    )))
}
