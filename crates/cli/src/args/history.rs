//! The flags of `throng runs`, `throng serve` and `throng rerun`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};

use super::listen::ListenAddress;
use super::outputs::Outputs;
use super::parsers::{age, count, label};

/// Where runs are, unless `--output` says otherwise.
pub(crate) const RUNS: &str = "runs";

/// Where `throng serve` serves, unless it is told.
const SERVE_PORT: u16 = 7090;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Runs {
    /// The folder that holds run folders
    #[arg(default_value = RUNS)]
    pub(crate) folder: PathBuf,
    /// Only runs with this label; repeatable: with all of them
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub(crate) label: Vec<String>,
    /// Only runs with this outcome: met, missed, disputed, invalid, error, in_progress, unfinished,
    /// unreported, broken, done
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<String>,
    /// Only runs whose scenario's name contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) scenario: Option<String>,
    /// Print JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Give a run labels, by which runs are found and kept
    Label(LabelRun),
    /// Write a note on a run
    Note(NoteRun),
    /// Delete old runs; without --yes it only prints what it would delete
    Prune(Prune),
}

#[derive(Debug, Args)]
pub(crate) struct LabelRun {
    /// A run folder, or its name below runs/
    pub(crate) run: PathBuf,
    /// The labels
    #[arg(required = true, value_parser = label)]
    pub(crate) labels: Vec<String>,
    /// Take the labels away
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NoteRun {
    /// A run folder, or its name below runs/
    pub(crate) run: PathBuf,
    /// The note; an empty one takes it away
    pub(crate) text: String,
}

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// The folder that holds run folders
    #[arg(default_value = RUNS)]
    pub(crate) folder: PathBuf,
    /// Keep the N newest runs
    #[arg(long, value_name = "N", value_parser = count, required_unless_present = "older_than")]
    pub(crate) keep: Option<usize>,
    /// Delete only runs that are older, such as 12h, 30d or 4w
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Duration>,
    /// Also delete runs with labels, which are kept otherwise
    #[arg(long)]
    pub(crate) labelled: bool,
    /// With --labelled: keep runs with this label; repeatable
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub(crate) keep_label: Vec<String>,
    /// Delete them
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The folder that holds run folders, or one run folder, or its name below runs/; it can be
    /// left away before ADDRESS
    #[arg(default_value = RUNS)]
    pub(crate) folder: PathBuf,
    /// Where it serves. ADDRESS is PORT (of this machine alone) or HOST:PORT; port 0 is any that is
    /// free [default: 7090]
    pub(crate) address: Option<ListenAddress>,
}

impl Serve {
    /// The folder and the address that are meant: one argument alone that is no folder, but an
    /// address, is that.
    pub(crate) fn meant(&self, is_folder: impl Fn(&Path) -> bool) -> (PathBuf, ListenAddress) {
        if let Some(address) = &self.address {
            return (self.folder.clone(), address.clone());
        }
        let alone = self.folder.to_str().filter(|_| !is_folder(&self.folder));
        match alone.and_then(|text| text.parse().ok()) {
            Some(address) => (RUNS.into(), address),
            None => (self.folder.clone(), ListenAddress::of_this_machine(SERVE_PORT)),
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Rerun {
    /// A run folder, or its name below runs/
    pub(crate) run: PathBuf,
    /// Print the command and what differs; starts nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Give a value of the scenario anew: secrets, which are not kept, or a changed address;
    /// repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// The secret of the consent proof, as for `throng run`
    #[arg(long, value_name = "SECRET")]
    pub(crate) consent_secret: Option<String>,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_alone_that_is_no_folder_may_be_an_address() {
        for (folder, address, expect) in [
            ("runs", None, ("runs", "127.0.0.1:7090")),
            ("7091", None, ("runs", "127.0.0.1:7091")),
            ("loadgen.lan:7090", None, ("runs", "loadgen.lan:7090")),
            ("2026", None, ("2026", "127.0.0.1:7090")),
            ("nowhere", None, ("nowhere", "127.0.0.1:7090")),
            ("7091", Some("7092"), ("7091", "127.0.0.1:7092")),
        ] {
            let address = address.map(|text: &str| text.parse().unwrap());
            let (of, at) = Serve { folder: folder.into(), address }
                .meant(|folder| ["runs", "2026"].iter().any(|there| folder == Path::new(there)));
            assert_eq!((of.to_str(), at.to_string().as_str()), (Some(expect.0), expect.1));
        }
    }
}
