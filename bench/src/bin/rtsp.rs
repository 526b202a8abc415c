//! The CPU time and memory of RTSP viewers, over UDP and over TCP, compared with as many `ffmpeg -c
//! copy -f null` and GStreamer `rtspsrc`, and with the floor (`rtsp_floor`), on the same live
//! stream of 2 Mbit/s of a real gst-rtsp-server. Needs two CPUs.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use throng_bench::process::{GENERATOR_CPU, Running, SERVER_CPU, Usage, pin_to};
use throng_sim::rtsp::{GstRtspServer, Options};

/// Compares the cost of RTSP viewers on a real gst-rtsp-server; needs two CPUs
#[derive(Parser)]
struct Arguments {
    /// The binary `throng`
    #[arg(long)]
    throng: PathBuf,
    /// Viewers
    #[arg(long, default_value_t = 100)]
    viewers: u32,
    /// Runs of each; every other time in the opposite order
    #[arg(long, default_value_t = 2)]
    repeat: u32,
    /// Seconds in which CPU time is counted
    #[arg(long, default_value_t = 10)]
    window_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Throng,
    Ffmpeg,
    GStreamer,
    Floor,
}

impl Kind {
    /// Whether all viewers are in one process.
    fn is_one_process(self) -> bool {
        matches!(self, Self::Throng | Self::Floor)
    }
}

/// From the last start to the window: everything plays then.
const SETTLE: Duration = Duration::from_secs(4);

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    pin_to(SERVER_CPU)?;
    let server = GstRtspServer::start(&Options::default()).context("gst-rtsp-server")?;
    println!(
        "| Transport | Viewers of one live stream | CPU, ms per viewer-second | against throng | \
         a further viewer, kB |"
    );
    println!("|---|---|---:|---:|---:|");
    for transport in ["udp", "tcp"] {
        let mut all: Vec<(Kind, Vec<Cost>)> =
            [Kind::Throng, Kind::Ffmpeg, Kind::GStreamer, Kind::Floor]
                .map(|kind| (kind, Vec::new()))
                .into();
        for round in 0..arguments.repeat {
            let mut order: Vec<usize> = (0..all.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let Some((kind, costs)) = all.get_mut(at) else { continue };
                costs.push(measure(*kind, &server.url("/live-2m"), transport, &arguments)?);
            }
        }
        let own = all.first().map_or(0.0, |(_, costs)| median(costs, |cost| cost.cpu_ms));
        for (kind, costs) in &all {
            let cpu_ms = median(costs, |cost| cost.cpu_ms);
            let (low, high) = range(costs, |cost| cost.cpu_ms);
            let kb = median(costs, |cost| cost.kb_each);
            println!(
                "| {transport} | {kind:?} | {cpu_ms:.3} ({low:.3}–{high:.3}) | {:.1} | {kb:.0} |",
                cpu_ms / own
            );
        }
    }
    Ok(())
}

/// The cost of a generator at steady state.
struct Cost {
    /// Milliseconds of CPU per viewer-second.
    cpu_ms: f64,
    /// Memory of a further viewer, kB.
    kb_each: f64,
}

fn measure(kind: Kind, url: &str, transport: &str, arguments: &Arguments) -> Result<Cost> {
    let alone = run(kind, url, transport, 1, arguments)?;
    let crowd = run(kind, url, transport, arguments.viewers, arguments)?;
    let viewers = f64::from(arguments.viewers);
    let kb_each = if kind.is_one_process() {
        (crowd.rss_kb - alone.rss_kb) / (viewers - 1.0)
    } else {
        crowd.rss_kb / viewers
    };
    Ok(Cost { cpu_ms: crowd.cpu_ms / viewers / arguments.window_s as f64, kb_each })
}

struct Used {
    cpu_ms: f64,
    rss_kb: f64,
}

fn run(
    kind: Kind,
    url: &str,
    transport: &str,
    viewers: u32,
    arguments: &Arguments,
) -> Result<Used> {
    let window = Duration::from_secs(arguments.window_s);
    let folder = tempfile::tempdir()?;
    let lasts = (SETTLE + window).as_secs() + 5 + u64::from(viewers) / 20;
    pin_to(GENERATOR_CPU)?;
    let mut processes = Vec::new();
    let commands = if kind.is_one_process() { 1 } else { viewers };
    for _ in 0..commands {
        let mut command = match kind {
            Kind::Throng => {
                let mut command = Command::new(&arguments.throng);
                command.args([
                    "view",
                    url,
                    "-n",
                    &viewers.to_string(),
                    "--every",
                    "50ms",
                    "--for",
                    &format!("{lasts}s"),
                ]);
                command.args([
                    "--set",
                    &format!("target.rtsp_transport={transport}"),
                    "--plain",
                    "--output",
                ]);
                command.arg(folder.path().join("run"));
                command
            }
            Kind::Ffmpeg => {
                let mut command = Command::new("ffmpeg");
                command.args(["-nostdin", "-v", "error", "-rtsp_transport", transport, "-i", url]);
                command.args(["-c", "copy", "-f", "null", "-"]);
                command
            }
            Kind::GStreamer => {
                let mut command = Command::new("gst-launch-1.0");
                command.args([
                    "-q",
                    "rtspsrc",
                    "name=s",
                    &format!("location={url}"),
                    &format!("protocols={transport}"),
                ]);
                command.args(["s.", "!", "fakesink", "s.", "!", "fakesink"]);
                command
            }
            Kind::Floor => {
                let mut command = Command::new(arguments.throng.with_file_name("rtsp_floor"));
                command.args([url, "-n", &viewers.to_string(), "--transport", transport]);
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        processes.push(Running::start(&mut command)?);
        if !kind.is_one_process() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    pin_to(SERVER_CPU)?;
    if kind.is_one_process() {
        std::thread::sleep(Duration::from_millis(50) * viewers);
    }
    std::thread::sleep(SETTLE);
    let before = usage(&processes)?;
    std::thread::sleep(window);
    let after = usage(&processes)?;
    ensure!(after.cpu_ms > before.cpu_ms, "{kind:?} does nothing");
    Ok(Used { cpu_ms: after.cpu_ms - before.cpu_ms, rss_kb: after.rss_kb })
}

fn usage(processes: &[Running]) -> Result<Used> {
    let mut sum = Used { cpu_ms: 0.0, rss_kb: 0.0 };
    for process in processes {
        let usage = Usage::of(process.id()).context("a viewer has ended")?;
        sum.cpu_ms += usage.cpu_us as f64 / 1e3;
        sum.rss_kb += usage.rss_kb as f64;
    }
    Ok(sum)
}

fn median(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> f64 {
    let mut all: Vec<f64> = costs.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

fn range(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> (f64, f64) {
    costs.iter().map(of).fold((f64::MAX, 0.0), |(low, high), cost| (low.min(cost), high.max(cost)))
}
