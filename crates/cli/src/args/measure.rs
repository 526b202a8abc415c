//! The flags of commands that measure this machine, or look at a run or a program in progress.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::parsers::{count, not_negative, positive, viewers};

#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// The number of streams at a time, such as 25, or several as 5,10,25 [default: search for the
    /// largest]
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(crate) streams: Vec<u32>,
    /// The video to decode: CODEC:WIDTHxHEIGHT@FPS:RATE, codec vp8, vp9, av1 or h264
    #[arg(
        long,
        default_value = "vp8:320x240@30:256k",
        value_name = "VIDEO",
        conflicts_with = "run"
    )]
    pub(crate) video: String,
    /// Decode the streams that this run's tap kept (--tap N --set tap.keep=true) instead
    #[arg(long, value_name = "FOLDER")]
    pub(crate) run: Option<PathBuf>,
    /// How long each count is measured, after all decoders have started
    #[arg(long = "for", default_value = "5s", value_name = "TIME")]
    pub(crate) duration: String,
    /// A picture decoded later than this after its presentation time is late
    #[arg(long, default_value = "100ms", value_name = "TIME")]
    pub(crate) late: String,
    /// The largest count that is searched
    #[arg(
        long,
        default_value_t = 256,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(crate) up_to: u32,
    /// A decoder of FFmpeg's, such as libvpx or vp8_v4l2m2m, or hwaccel:vaapi [default: FFmpeg's
    /// choice]
    #[arg(long, value_name = "NAME")]
    pub(crate) decoder: Option<String>,
    /// The FFmpeg that encodes and decodes
    #[arg(long, value_name = "PROGRAM", default_value = "ffmpeg")]
    pub(crate) ffmpeg: PathBuf,
    /// Print JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

/// The exit codes of `throng doctor`, for its help.
const DOCTOR_EXITS: &str = "\
Exit codes:
    0  the limits are printed; with -n N: N viewers fit
    2  usage error
    4  with -n N: N viewers do not fit";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXITS)]
pub(crate) struct Doctor {
    /// How many viewers are to play; exit code 4 if the machine does not allow them
    #[arg(short = 'n', long, value_name = "N", value_parser = viewers)]
    pub(crate) viewers: Option<u32>,
    /// Local addresses that they use in turn, such as 127.0.0.2-127.0.0.20; repeatable
    #[arg(long, value_name = "RANGE")]
    pub(crate) source_ip: Vec<String>,
    /// Print JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tap {
    /// The folder of a running run that has a tap: --tap N --set tap.decode=false
    pub(crate) run: PathBuf,
    /// Only the first N participants that send frames
    #[arg(long, value_name = "N")]
    pub(crate) participants: Option<usize>,
    /// Decode; the default without --keep
    #[arg(long)]
    pub(crate) decode: bool,
    /// Keep the coded streams in RUN/tap/, as Matroska
    #[arg(long)]
    pub(crate) keep: bool,
    /// Compare pictures of the test card with their source (SSIM)
    #[arg(long)]
    pub(crate) ssim: bool,
    /// The most streams; further ones are left alone
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = count)]
    pub(crate) streams_max: usize,
    /// The FFmpeg that decodes
    #[arg(long, value_name = "PROGRAM", default_value = "ffmpeg")]
    pub(crate) ffmpeg: PathBuf,
    /// A decoder of FFmpeg's, such as libvpx, or hwaccel:vaapi [default: FFmpeg's choice]
    #[arg(long, value_name = "NAME")]
    pub(crate) decoder: Option<String>,
    /// Started by the run, which makes the report itself
    #[arg(long, hide = true)]
    pub(crate) of_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ring {
    #[command(subcommand)]
    pub(crate) command: RingCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RingCommand {
    /// Print what a ring's producers and consumer have done: frames, drops by reason, wake-ups
    Stat(RingStat),
}

#[derive(Debug, Args)]
pub(crate) struct RingStat {
    /// An inherited descriptor's number, a path such as /proc/PID/fd/N, or /proc/PID for all rings
    /// of a process
    #[arg(value_name = "FD|PATH")]
    pub(crate) ring: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ipc {
    /// The frame: WIDTHxHEIGHT:FORMAT (i420, nv12, rgba, ...), or bytes such as 1200 or 3MB
    #[arg(long, default_value = "1920x1080:i420", value_name = "FRAME", conflicts_with = "sizes")]
    pub(crate) frame: String,
    /// A file with one frame size per line instead; producers repeat the list
    #[arg(long, value_name = "FILE")]
    pub(crate) sizes: Option<PathBuf>,
    /// Frames a second that each producer offers [default: as fast as the transport takes them]
    #[arg(long, value_name = "FPS", value_parser = positive)]
    pub(crate) fps: Option<f64>,
    /// The number of processes that send to the receiver
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=16)
    )]
    pub(crate) producers: u8,
    /// How long each transport is measured, such as 3s
    #[arg(long = "for", default_value = "3s", value_name = "TIME")]
    pub(crate) duration: String,
    /// Measure everything N times in turn; a row is the median of its rounds
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=99)
    )]
    pub(crate) rounds: u32,
    /// Only these transports, such as --only ring,tcp
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// What the consumer does: edges (checks both edges, leaves the payload alone) or all (reads
    /// and checks every byte)
    #[arg(long, default_value = "edges", value_name = "WHAT", value_parser = ["edges", "all"])]
    pub(crate) read: String,
    /// What a core costs an hour, in your currency
    #[arg(
        long,
        default_value_t = 0.05,
        value_name = "PRICE",
        value_parser = not_negative,
        allow_negative_numbers = true
    )]
    pub(crate) price_core_hour: f64,
    /// For how many streams the year is priced
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) streams: u32,
    /// Frames a second of a priced stream [default: that of --fps, or 30]
    #[arg(long, value_name = "FPS", value_parser = positive)]
    pub(crate) price_fps: Option<f64>,
    /// The Python whose websockets package is measured [default: python3, then /usr/bin/python3]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) python: Option<PathBuf>,
    /// Leave out the second, short pass that counts system calls
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print ipc.json instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder for ipc.json and report.html; created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// Processes, by number
    #[arg(required_unless_present = "process")]
    pub(crate) pid: Vec<u32>,
    /// Processes by the name of the program; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Vec<String>,
    /// How long to sample
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    pub(crate) duration: String,
    /// Samples a second on each CPU
    #[arg(long, value_name = "HZ", default_value_t = throng_watch::profiler::FREQUENCY_HZ)]
    pub(crate) hz: u32,
    /// How to sample [default: the clock where it is allowed, else the states of threads]
    #[arg(long, value_enum)]
    pub(crate) method: Option<ProfileMethod>,
    /// Leave out the processes that the named ones start
    #[arg(long)]
    pub(crate) no_children: bool,
    /// Follow only frame pointers, so that the kernel copies no stacks
    #[arg(long)]
    pub(crate) no_unwind: bool,
    /// The name of this moment on the page, such as "300 viewers"
    #[arg(long, value_name = "WORDS")]
    pub(crate) moment: Option<String>,
    /// Compare with an earlier profile, as --json printed it
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Also write a page with flame graphs
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print the profile as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ProfileMethod {
    /// A clock on each CPU: samples of what runs (root or CAP_PERFMON)
    Clock,
    /// The states of threads: what they wait in
    State,
}
