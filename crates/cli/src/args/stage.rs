//! The flags of the embedded media server, and of the calibration against it.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::listen::ListenAddress;
use super::parsers::{count, viewers};

#[derive(Debug, Args)]
pub(crate) struct Stage {
    /// The address of HTTP; media uses the same IP. ADDRESS is PORT (of this machine alone) or
    /// HOST:PORT; port 0 is any that is free
    #[arg(long, default_value = "127.0.0.1:7080", value_name = "ADDRESS")]
    pub(crate) listen: ListenAddress,
    /// The IP of media, if it is another one [default when HTTP listens on all: one of this
    /// machine's]
    #[arg(long, value_name = "IP")]
    pub(crate) media_ip: Option<IpAddr>,
    /// Allow an address that other machines can reach
    #[arg(long)]
    pub(crate) listen_any: bool,
    /// Threads that encrypt and send
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = count)]
    pub(crate) workers: usize,
    /// Limit what leaves the stage, such as 40Mbit/s: queueing delay, then loss, as on a full line
    #[arg(long, value_name = "RATE")]
    pub(crate) egress_cap: Option<String>,
    /// The longest queueing delay of that limit before it drops, milliseconds
    #[arg(long, default_value_t = 200, value_name = "MS")]
    pub(crate) egress_queue_ms: u32,
    /// Answer further viewers with 503
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = count)]
    pub(crate) max_viewers: usize,
    #[command(flatten)]
    pub(crate) planted: Planted,
    /// Test card: standard (640x360, 30 fps, 1 Mbit/s) or low (320x180, 15 fps, 100 kbit/s)
    #[arg(long, default_value = "standard", value_name = "CARD")]
    pub(crate) card: String,
    /// Ask viewers and publishers for this bearer token
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Answer as another server: srs (7.0.121 and later), srs-silent (before: a refusal closes the
    /// connection)
    #[arg(long = "as", default_value = "stage", value_name = "SERVER")]
    pub(crate) emulates: String,
}

/// Limits of the stage that are planted on purpose.
#[derive(Debug, Args)]
#[command(next_help_heading = "Planted limits, for tests that need a server with a known limit")]
pub(crate) struct Planted {
    /// Further encryption passes over each packet, so that a worker is full at a lower load
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) work_per_packet: u32,
    /// Copy KB kilobytes for each packet, so that a worker mostly copies
    #[arg(long, default_value_t = 0, value_name = "KB")]
    pub(crate) copy_per_packet_kb: u32,
    /// All workers take one lock around that work
    #[arg(long)]
    pub(crate) shared_lock: bool,
    /// Megabytes that each viewer holds
    #[arg(long, default_value_t = 0, value_name = "MB")]
    pub(crate) memory_per_viewer_mb: u32,
    /// Abort when N viewers are connected at a time
    #[arg(long, value_name = "N")]
    pub(crate) crash_at: Option<usize>,
    /// Connections that may wait to be accepted
    #[arg(long, value_name = "N")]
    pub(crate) backlog: Option<u32>,
    /// How long accepting sleeps after each connection, milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub(crate) accept_pause_ms: u32,
    /// Send buffer of each worker's socket, KiB: what does not fit is not sent
    #[arg(long, value_name = "KIB")]
    pub(crate) send_buffer_kb: Option<u32>,
    /// Receive buffer of each worker's socket, KiB
    #[arg(long, value_name = "KIB")]
    pub(crate) receive_buffer_kb: Option<u32>,
    /// Datagrams that each worker takes from its socket at most, a second
    #[arg(long, value_name = "N")]
    pub(crate) receive_rate: Option<u32>,
    /// A folder with a file for each viewer, which is read as fast as the viewer is sent to
    #[arg(long, value_name = "DIR")]
    pub(crate) media_folder: Option<PathBuf>,
    /// Send the picture to N viewers at a time; further ones negotiate it and get only sound
    #[arg(long, value_name = "N")]
    pub(crate) pictures_max: Option<usize>,
    /// Send each viewer sound for only S seconds
    #[arg(long, value_name = "S")]
    pub(crate) sound_ends_after_s: Option<u32>,
    /// Serve N viewers well at a time; further ones get a picture that stutters
    #[arg(long, value_name = "N")]
    pub(crate) stutters_beyond: Option<usize>,
    /// Negotiate no RTX: retransmissions come on the stream's own SSRC
    #[arg(long)]
    pub(crate) no_rtx: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// Test card to play: standard or low
    #[arg(long, default_value = "standard", value_name = "CARD")]
    pub(crate) card: String,
    /// Stop at this many viewers
    #[arg(long, default_value_t = 2_000, value_name = "N", value_parser = viewers)]
    pub(crate) up_to: u32,
}
