//! `throng serve`: the pages of a folder of runs, or of one run.

mod history;
mod named;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use crate::args::Serve;
use crate::console::{CliError, Exit, Interrupt, say};
use crate::http_server::Listener;
use crate::page::{RunSite, Source};
use history::HistorySite;

/// How often it is looked whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Serves until a signal ends it.
pub(crate) fn serve(command: &Serve) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let port = Listener::bind("throng serve", &command.address)?;
    let address = port.address();
    let _server = match one(&command.folder) {
        Some(source) => port.serve("page", RunSite::of_folder(source)?)?,
        None => port.serve("page", HistorySite::of(&command.folder)?)?,
    };
    say(&format!("pages       http://{address}/"));
    while !interrupt.is_set() {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(Exit::Met)
}

/// What a folder is that is a run itself, or a matrix.
fn one(folder: &Path) -> Option<Source> {
    let is_file = |name: &str| folder.join(name).is_file();
    if is_file("run.db") {
        return Some(Source::Run(folder.to_owned()));
    }
    let is_matrix = is_file("matrix.toml") && is_file("options.json");
    is_matrix.then(|| Source::Matrix(folder.to_owned()))
}
