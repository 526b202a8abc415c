//! The flags of `throng export`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

/// The exit codes of `throng export`, for its help.
const EXITS: &str = "\
Exit codes:
    0  the tables are written; if the run is partial, a message says so
    2  usage error, the folder is there already, or this build cannot write the format
    4  the run cannot be read, or the tables could not be written";

#[derive(Debug, Args)]
#[command(after_help = EXITS, group(ArgGroup::new("format").required(true)))]
pub(crate) struct Export {
    /// A run folder, or its name below runs/
    pub(crate) run: PathBuf,
    /// The new folder of the tables, which have a file each
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    /// Write CSV
    #[arg(long, group = "format")]
    pub(crate) csv: bool,
    /// Write JSON lines: an object for each row
    #[arg(long, group = "format")]
    pub(crate) jsonl: bool,
    /// Write Parquet; only in builds with `--features parquet`
    #[arg(long, group = "format")]
    pub(crate) parquet: bool,
}
