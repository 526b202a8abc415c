//! The flags of runs that several machines play together.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use throng_scenario::Network;

use super::parsers::{count_from_one, fleet_name, image, namespace, secret_name};

/// Where the bus of a fleet is, and who we are on it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Bus {
    /// The bus of the fleet: a NATS server with JetStream, such as nats://10.0.0.5 or
    /// tls://bus.example; or env:NAME or file:PATH, which hold that; of a worker also `-`, the
    /// first line of its input
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    pub(crate) fleet: Option<String>,
    /// Credentials file of the bus (.creds)
    #[arg(long, value_name = "FILE", requires = "fleet", help_heading = "Fleet")]
    pub(crate) fleet_creds: Option<PathBuf>,
    /// File with the seed of an NKey for the bus
    #[arg(
        long,
        value_name = "FILE",
        requires = "fleet",
        conflicts_with = "fleet_creds",
        help_heading = "Fleet"
    )]
    pub(crate) fleet_nkey: Option<PathBuf>,
    /// Use TLS on the bus, and trust these certificates (PEM) too
    #[arg(long, value_name = "FILE", requires = "fleet", help_heading = "Fleet")]
    pub(crate) fleet_ca: Option<PathBuf>,
}

/// How a command uses a fleet.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Fleet {
    #[command(flatten)]
    pub(crate) bus: Bus,
    /// How many workers play, each its share
    #[arg(
        long,
        value_name = "N",
        value_parser = count_from_one,
        requires = "fleet",
        help_heading = "Fleet"
    )]
    pub(crate) workers: Option<usize>,
    /// Start a worker on each of these hosts by ssh, for this run, with a bus of their own
    /// (nats-server must be installed here)
    #[arg(
        long,
        value_name = "HOST,…",
        value_delimiter = ',',
        conflicts_with_all = ["fleet", "workers"],
        help_heading = "Fleet"
    )]
    pub(crate) on: Vec<String>,
    /// The ssh of --on with its options, such as "ssh -p 2222" [default: ssh]
    #[arg(long, value_name = "COMMAND", requires = "on", help_heading = "Fleet")]
    pub(crate) ssh: Option<String>,
    /// The program on the hosts of --on [default: throng]
    #[arg(long, value_name = "PATH", requires = "on", help_heading = "Fleet")]
    pub(crate) remote_throng: Option<String>,
    /// How long to wait for workers, and before that for the bus [default: 30s, and not for the
    /// bus]
    #[arg(long, value_name = "TIME", help_heading = "Fleet")]
    pub(crate) fleet_wait: Option<String>,
    /// When a worker is lost: end the run, go on with the others, or let the others play its
    /// participants too [default: abort]
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Fleet")]
    pub(crate) on_loss: Option<OnLoss>,
    /// This host's clock is within so much of true time (UTC), as its owner knows, such as by PTP
    /// [default: what chrony says]
    #[arg(long, value_name = "TIME", help_heading = "Fleet")]
    pub(crate) clock_error: Option<String>,
}

impl Fleet {
    /// Whether this process plays the crowd, and no workers.
    pub(crate) fn plays_here(&self) -> bool {
        self.bus.fleet.is_none() && self.on.is_empty()
    }
}

/// What happens when a worker is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnLoss {
    /// The run ends: it is not the one that was asked for any more.
    #[default]
    Abort,
    /// The others go on.
    GoOn,
    /// The others go on, and play its participants too.
    Reassign,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Worker {
    #[command(flatten)]
    pub(crate) bus: Bus,
    /// How long to wait for the bus [default: not at all]
    #[arg(long, value_name = "TIME")]
    pub(crate) fleet_wait: Option<String>,
    /// What people call this worker [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Its share of the crowd relative to other workers, such as the viewers that `throng
    /// calibrate` found [default: its cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) weight: Option<u32>,
    /// This host's clock is within so much of true time (UTC), as its owner knows, such as by PTP
    /// [default: what chrony says]
    #[arg(long, value_name = "TIME")]
    pub(crate) clock_error: Option<String>,
    /// Its number among the workers, from 0, such as the completion index of an Indexed Job
    #[arg(long, value_name = "N", env = "JOB_COMPLETION_INDEX")]
    pub(crate) index: Option<u16>,
    /// End after one run
    #[arg(long)]
    pub(crate) once: bool,
    /// Allow this private network (CIDR, or one address) as a target, whatever the plans of
    /// coordinators say; repeatable
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_target: Vec<String>,
    /// Let plans use this secret of this machine, as they name it: env:NAME or file:PATH;
    /// repeatable
    #[arg(long, value_name = "REFERENCE")]
    pub(crate) allow_secret: Vec<String>,
    /// Play no share with more participants at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_users: Option<u32>,
    /// The secret of the consent proof that a public target's owner published, or env:NAME, or
    /// file:PATH
    #[arg(long, value_name = "SECRET")]
    pub(crate) consent_secret: Option<String>,
    /// Trust these certificates (PEM) in addition to the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Threads that drive participants [default: by the crowd and the cores]
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) threads: Option<usize>,
    /// How the datagrams of playing participants are received
    #[arg(long, value_enum, default_value_t)]
    pub(crate) receive: super::ReceiveWay,
    /// Megabytes of rows that are kept while the bus is away
    #[arg(
        long,
        value_name = "MB",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    pub(crate) spool_mb: u32,
    /// Also keep rows that the bus has not taken in files of this folder, at most --spool-mb for
    /// each run: a worker with the same folder hands them in later
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FleetCommands {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Print what runs a scenario in a Kubernetes cluster: a bus, an Indexed Job of workers, a
    /// coordinator; or write it as a chart of Helm
    Manifest(Manifest),
}

#[derive(Debug, Args)]
pub(crate) struct Manifest {
    /// The scenario (TOML)
    pub(crate) file: PathBuf,
    /// How many workers play, each its share
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) workers: u16,
    /// The image with throng as its entry point, such as deploy/image/build.sh makes it
    #[arg(long, value_name = "IMAGE", default_value = "throng:latest", value_parser = image)]
    pub(crate) image: String,
    /// Print this namespace too, and put everything into it [default: that of kubectl]
    #[arg(long, value_name = "NS", value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// What all names begin with; two fleets of one namespace need two
    #[arg(long, value_name = "NAME", default_value = "throng", value_parser = fleet_name)]
    pub(crate) name: String,
    /// Allow the pods this private network (CIDR, or one address) as a target; repeatable
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_target: Vec<Network>,
    /// No worker plays a share with more participants at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_users: Option<u32>,
    /// The Secret whose key `secret` is that of the consent proof of a public target
    #[arg(long, value_name = "SECRET", value_parser = secret_name)]
    pub(crate) consent_secret_name: Option<String>,
    /// Use this bus with TLS, such as tls://bus.example or tls://user@bus.example; its password and
    /// certificate are in the Secret NAME-bus [default: print one too]
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Print nothing, and write a chart of Helm into this new folder: its values are those of these
    /// flags, and all names begin with that of the release
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "namespace"])]
    pub(crate) helm: Option<PathBuf>,
}
