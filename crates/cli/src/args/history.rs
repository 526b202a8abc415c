//! The flags of `throng runs`, `throng serve` and `throng rerun`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::listen::ListenAddress;
use super::parsers::{age, count, label};

/// Where runs are, unless `--output` says otherwise.
const RUNS: &str = "runs";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Runs {
    /// The folder that holds run folders
    #[arg(default_value = RUNS)]
    pub(crate) folder: PathBuf,
    /// Only runs with this label; repeatable: with all of them
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub(crate) label: Vec<String>,
    /// Only runs with this outcome: met, missed, disputed, invalid, error, unfinished, unreported,
    /// broken, done
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
    /// The folder that holds run folders, or one run folder
    #[arg(default_value = RUNS)]
    pub(crate) folder: PathBuf,
    /// Where: a port of this machine alone, such as 7090, 127.0.0.1:0 (any free port), or
    /// HOST:PORT, such as loadgen.lan:7090
    #[arg(default_value = "7090")]
    pub(crate) address: ListenAddress,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Rerun {
    /// A run folder, or its name below runs/
    pub(crate) run: PathBuf,
    /// Print the command and what differs; starts nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Run folder to make [default: a new one under runs/]
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Give a value of the scenario anew: secrets, which are not kept, or a changed address;
    /// repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// The secret of the consent proof, as for `throng run`
    #[arg(long, value_name = "SECRET")]
    pub(crate) consent_secret: Option<String>,
    /// Plain summary lines even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print nothing while it runs
    #[arg(short, long, conflicts_with = "plain")]
    pub(crate) quiet: bool,
    /// Print summary.json at the end instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
}
