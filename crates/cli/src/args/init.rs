//! The flags of `throng init`.

use std::path::PathBuf;

use clap::Args;

use super::run::{Common, ReceiveWay};

/// The exit codes of `throng init`, for its help.
const EXITS: &str = "\
Exit codes:
    0  the scenario is written
    2  usage error, or the file is there already or cannot be written
    3  nothing that throng knows was recognised, or the target is unreachable or not allowed
    4  throng failed
  130  interrupted; nothing is written";

#[derive(Debug, Args)]
#[command(after_help = format!("{}\n{EXITS}", super::targets()))]
pub(crate) struct Init {
    /// The server: a target's URL (see the list below), any http, https, ws or wss URL of it, or
    /// HOST:PORT
    pub(crate) url: String,
    /// The scenario to write; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "throng.toml")]
    pub(crate) output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Only ask what the server is, and play no viewer for 4 s
    #[arg(long)]
    pub(crate) no_play: bool,
    /// Bearer token of the viewer, as env:NAME or file:PATH, which the scenario repeats
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Also allow this private network (CIDR, or one address); repeatable
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_target: Vec<String>,
    /// Accept any TLS certificate
    #[arg(long)]
    pub(crate) tls_insecure: bool,
    /// Trust these certificates (PEM) in addition to the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The secret of the consent proof that the target's owner published, or env:NAME, or
    /// file:PATH; only public targets need one
    #[arg(long, value_name = "SECRET")]
    pub(crate) consent_secret: Option<String>,
}

impl Init {
    /// What its own participants have in common with those of runs; `set` is as of `--set`.
    pub(crate) fn common(&self, set: &[&str]) -> Common {
        Common {
            set: set.iter().map(|set| (*set).to_owned()).collect(),
            tls_ca: self.tls_ca.clone(),
            consent_secret: self.consent_secret.clone(),
            receive: ReceiveWay::Sockets,
            ..Common::default()
        }
    }
}
