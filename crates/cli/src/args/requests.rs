//! The flags of `throng requests`.

use std::path::PathBuf;

use clap::Args;

/// The exit codes of `throng requests`, for its help.
const EXITS: &str = "\
Exit codes:
    0  the requests are printed; with a log: it has the same, but for requests that players gave \
                     up or cut off
    1  the log has other requests
    2  usage error
    4  there is nothing to compare";

#[derive(Debug, Args)]
#[command(after_help = EXITS)]
pub(crate) struct Requests {
    /// A run folder
    pub(crate) run: PathBuf,
    /// The server's access log of the run's time: combined, JSON (nginx, Caddy) or of S3; `-` is
    /// standard input; repeat it for rotated files
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Vec<PathBuf>,
    /// Compare only requests of the run to this host, as its URLs name it: HOST or HOST:PORT
    #[arg(long, value_name = "HOST", requires = "access_log")]
    pub(crate) host: Option<String>,
    /// Compare only paths that begin with this
    #[arg(long, value_name = "PATH", default_value = "", requires = "access_log")]
    pub(crate) prefix: String,
    /// Compare only user agents that begin with this, where the log has them
    #[arg(long, value_name = "NAME", default_value = "throng/", requires = "access_log")]
    pub(crate) user_agent: String,
    /// Print too what the log has by kind of URI, of all user agents, and its answers 5xx by minute
    #[arg(long, requires = "access_log", conflicts_with_all = ["json", "csv"])]
    pub(crate) by_kind: bool,
    /// Print so many URIs
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Print JSON, with all URIs
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print CSV, with all URIs
    #[arg(long)]
    pub(crate) csv: bool,
}
