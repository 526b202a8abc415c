//! The flags of experiments with the media server.

use std::path::PathBuf;

use clap::Args;

use super::listen::ListenAddress;
use super::parsers::count_from_one;

#[derive(Debug, Args)]
pub(crate) struct Matrix {
    /// The file (TOML): docs/matrix.md, docs/prove.md
    #[arg(required_unless_present_any = ["resume", "undo"])]
    pub(crate) file: Option<PathBuf>,
    /// Folder to make, with a run folder for each run [default: a new one under runs/]
    #[arg(short, long, value_name = "FOLDER", conflicts_with = "resume")]
    pub(crate) output: Option<PathBuf>,
    /// Continue what was interrupted in this folder, after undoing what a killed throng left
    /// changed
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["file", "allow_target", "threads"])]
    pub(crate) resume: Option<PathBuf>,
    /// Put back what a killed throng left changed by the experiment in this folder, and end
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["file", "resume", "output", "plan"])]
    pub(crate) undo: Option<PathBuf>,
    /// Print the runs and their order; starts nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Override a value of the scenario in all runs, such as crowd.size=50, or env:NAME or
    /// file:PATH, which hold that; repeatable. With --resume: a secret again
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Also allow this private network (CIDR, or one address); repeatable
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_target: Vec<String>,
    /// Threads that drive participants [default: by the crowd and the cores]
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) threads: Option<usize>,
    /// The secret of the target's consent proof, as for `throng run`; only public targets need one
    #[arg(long, value_name = "SECRET")]
    pub(crate) consent_secret: Option<String>,
    /// Print nothing but addresses and problems while it runs
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Also add the answer as Markdown to the end of this file, such as $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Serve the page of the answer while the runs are made, at http://ADDRESS/; the address that
    /// is printed has the token by which the command can be ended there; docs/serve.md. ADDRESS is
    /// PORT (of this machine alone) or HOST:PORT; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) serve: Option<ListenAddress>,
    /// Print matrix.json at the end instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fleet: super::Fleet,
}

#[derive(Debug, Args)]
pub(crate) struct Prove {
    #[command(flatten)]
    pub(crate) experiment: Matrix,
    /// In place of the file's variants: the first one with less of a resource (cpu, memory, disk,
    /// network, nofile, rmem), 0.8 of it without a share, and with less of another one, the placebo
    #[arg(long, value_name = "RESOURCE[=SHARE]", conflicts_with = "resume")]
    pub(crate) shrink: Option<String>,
}
