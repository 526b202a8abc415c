//! The flags of `throng watch`.

use std::path::PathBuf;

use clap::Args;
use throng_scenario::PortRange;

use super::listen::ListenAddress;

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Processes of this name, with their descendants; repeatable. Without any target only the
    /// machine is watched
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Vec<String>,
    /// Processes of this systemd unit; repeatable
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Vec<String>,
    /// Processes of this control group; repeatable
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Vec<String>,
    /// This process, without descendants; repeatable
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<String>,
    /// The processes that listen on this port; repeatable
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Vec<String>,
    /// Count the lines of this log by pattern: a path, or journal:UNIT; repeatable
    #[arg(long, value_name = "LOG")]
    pub(crate) log: Vec<String>,
    /// Account the requests of this access log (nginx, Caddy, lighttpd, Apache); repeatable
    #[arg(long, value_name = "PATH")]
    pub(crate) access_log: Vec<String>,
    /// Scrape this endpoint, [KIND+]URL[#KEY=VALUE&...] as in docs/watch-logs.md; repeatable
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) metrics: Vec<String>,
    /// Endpoints and event handlers may also be in this private network (CIDR, or one address);
    /// repeatable
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_target: Vec<String>,
    /// Also use the knowledge packs (*.toml) of this folder; docs/knowledge-packs.md
    #[arg(long, value_name = "DIR")]
    pub(crate) packs: Option<PathBuf>,
    /// The server's knowledge pack, such as janus [default: chosen by the processes]
    #[arg(long, value_name = "NAME")]
    pub(crate) pack: Option<String>,
    /// How long, such as 60s [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "listen")]
    pub(crate) lasts: Option<String>,
    /// Write everything into this file (SQLite, the host tables of run.db)
    #[arg(short, long, value_name = "FILE", conflicts_with = "listen")]
    pub(crate) output: Option<PathBuf>,
    /// How often everything is read; the hot threads and main figures come each 100 ms
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) every: String,
    /// Plain lines even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print nothing before the end
    #[arg(short, long, conflicts_with = "plain")]
    pub(crate) quiet: bool,
    /// Serve the live figures to Prometheus, at http://ADDRESS/metrics; docs/metrics.md. ADDRESS is
    /// PORT (of this machine alone) or HOST:PORT; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", conflicts_with = "listen")]
    pub(crate) prometheus: Option<ListenAddress>,
    /// Send metrics to this collector of OpenTelemetry, by OTLP over HTTP: http://127.0.0.1:4318;
    /// its key in OTEL_EXPORTER_OTLP_HEADERS; docs/metrics.md
    #[arg(long, value_name = "URL", conflicts_with = "listen")]
    pub(crate) otlp: Option<String>,
    /// Serve a page of what is watched, at http://ADDRESS/, made from the file of --output;
    /// docs/serve.md. ADDRESS is PORT (of this machine alone) or HOST:PORT; port 0 is any that is
    /// free
    #[arg(long, value_name = "ADDRESS", requires = "output", conflicts_with = "listen")]
    pub(crate) serve: Option<ListenAddress>,
    /// Be the agent of runs on other machines, which reach it here. ADDRESS is PORT (of this
    /// machine alone) or HOST:PORT; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<ListenAddress>,
    /// What runs must present: a token of 16 characters or more, or env:NAME, or file:PATH
    /// [default: random]
    #[arg(long, value_name = "TOKEN", requires = "listen")]
    pub(crate) token: Option<String>,
    /// Without TLS; only on loopback
    #[arg(long, requires = "listen")]
    pub(crate) no_tls: bool,
    /// Agree to load on these ports of this host while the agent runs, such as
    /// 8188,10000-10100/udp: signalling and media; repeatable
    #[arg(long, value_name = "PORTS", value_delimiter = ',', requires = "listen")]
    pub(crate) allow_load: Vec<PortRange>,
    /// Agree to at most N users
    #[arg(long, value_name = "N", requires = "allow_load")]
    pub(crate) max_users: Option<u32>,
    /// Agree to at most this rate of joins, such as 5/s
    #[arg(long, value_name = "RATE", requires = "allow_load")]
    pub(crate) max_joins: Option<String>,
    /// Agree to at most this bit rate, such as 100Mbit/s
    #[arg(long, value_name = "RATE", requires = "allow_load")]
    pub(crate) max_bit_rate: Option<String>,
    /// Agree to at most this length of a run, such as 30m
    #[arg(long, value_name = "TIME", requires = "allow_load")]
    pub(crate) max_duration: Option<String>,
    /// A command to start and to watch; it ends with the watcher
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
