//! The command line in other forms, which packages ship: completions of shells, manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Arguments;

/// How help texts write `{n}`, which clap takes for the end of a line.
const PARTICIPANT: (&str, &str) = ("⟨n⟩", "{n}");

/// Help texts as they are printed.
pub(crate) fn as_printed(text: &str) -> String {
    text.replace(PARTICIPANT.0, PARTICIPANT.1)
}

/// The command line without what throng starts of itself, and packages make.
pub(crate) fn for_users() -> clap::Command {
    let all = Arguments::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut users = clap::Command::new("throng")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .subcommands(shown);
    if let Some(about) = all.get_about() {
        users = users.about(about.clone());
    }
    if let Some(after) = all.get_after_help() {
        users = users.after_help(after.clone());
    }
    users
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
