//! Media files: those that a scenario publishes, recordings of pages, and catalogues for servers of
//! files (`throng media make`).

mod catalogue;
mod clips;
mod encoder;
mod encoding;
mod make;
mod pages;

pub(crate) use clips::{Clips, clips, files, hashes};
pub(crate) use pages::Pages;

use crate::args::{Media, MediaCommand};
use crate::console::{CliError, Exit};

/// `throng media`.
pub(crate) fn media(command: &Media) -> Result<Exit, CliError> {
    match &command.command {
        MediaCommand::Make(command) => make::make(command),
    }
}
