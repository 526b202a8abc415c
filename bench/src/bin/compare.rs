//! Measures throng against a viewer on pion and against the floor, on a real Janus, and writes docs/performance.md.
//!
//! ```text
//! bench/run.sh                        # everything, with the defaults
//! compare --viewers 100 --repeat 4    # with the existing build
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its steps and results")]

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use throng_bench::generator::{Kind, Programs};
use throng_bench::machine::{self, Machine};
use throng_bench::measure::{Bench, Playing};
use throng_bench::process::{GENERATOR_CPU, SERVER_CPU, pin_to};
use throng_bench::results::Results;
use throng_bench::stream::Stream;
use throng_bench::{floor, page, profile, stage};
use throng_sim::janus::Janus;
use throng_sim::namespace::Namespace;

/// The address of Janus's media: an address of the namespace only.
const MEDIA: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Between runs, so that Janus frees the viewers of the last one.
const PAUSE: Duration = Duration::from_secs(2);

/// Compares the cost of viewers on a real Janus; needs root (it makes network namespaces) and two CPUs
#[derive(Parser)]
struct Arguments {
    /// Numbers of viewers
    #[arg(long, value_delimiter = ',', default_value = "100,300")]
    viewers: Vec<u32>,
    /// Runs of each generator at each number of viewers; every other time in the opposite order
    #[arg(long, default_value_t = 2)]
    repeat: u32,
    /// Seconds in which CPU time and packets are counted
    #[arg(long, default_value_t = 10)]
    window_s: u64,
    /// Seconds from the last join to the window
    #[arg(long, default_value_t = 3)]
    settle_s: u64,
    /// Milliseconds between the joins of a crowd that is to play
    #[arg(long, default_value_t = 40)]
    every_ms: u64,
    /// The binary `throng`; without it only pion and the floor are measured
    #[arg(long)]
    throng: Option<PathBuf>,
    /// The binary built from bench/pion-viewer; without it pion is left out
    #[arg(long)]
    pion: Option<PathBuf>,
    /// Leave the comparison out
    #[arg(long)]
    no_compare: bool,
    /// Also run 1,000 viewers of throng's stage at a low bit rate
    #[arg(long)]
    stage_1000: bool,
    /// Also profile throng at the largest number of viewers
    #[arg(long)]
    profile: bool,
    /// The page whose tables are replaced
    #[arg(long, default_value = "docs/performance.md")]
    page: PathBuf,
    /// Folder of the raw figures
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// The command line that the page names [default: this one]
    #[arg(long)]
    named: Option<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    ensure!(root, "this needs root: server and viewers run in a network namespace of their own");
    let cores = std::thread::available_parallelism()?.get();
    ensure!(cores > GENERATOR_CPU, "this needs two CPUs: one for the generator, one for the server");
    let programs = Programs { throng: arguments.throng.clone(), pion: arguments.pion.clone() };
    let machine = Machine::read(programs.throng.as_deref(), programs.pion.as_deref());
    // Everything started from here on runs on the server's CPU unless pinned elsewhere.
    pin_to(SERVER_CPU)?;
    let folder = tempfile::tempdir()?;
    if !arguments.no_compare || arguments.profile {
        on_janus(&arguments, &programs, machine, folder.path())?;
    }
    if arguments.stage_1000 {
        on_stage(&arguments, folder.path())?;
    }
    Ok(())
}

fn on_janus(arguments: &Arguments, programs: &Programs, machine: Machine, folder: &Path) -> Result<()> {
    let namespace = Namespace::with_veth("bench", MEDIA)?;
    let janus = Janus::start(&namespace, MEDIA)?;
    let stream = Stream::start(&namespace, folder)?;
    std::thread::sleep(Duration::from_secs(2));
    let bench = Bench {
        namespace: &namespace,
        server_pid: janus.pid(),
        stream: &stream,
        programs,
        every: Duration::from_millis(arguments.every_ms),
        settle: Duration::from_secs(arguments.settle_s),
        window: Duration::from_secs(arguments.window_s),
        folder: folder.to_owned(),
    };
    if !arguments.no_compare {
        let results = compare(arguments, &bench, machine)?;
        println!("raw figures: {}", results.save(&arguments.results)?.display());
        let text = page::comparison(&results);
        println!("\n{text}");
        page::put(&arguments.page, "comparison", &text)?;
    }
    if arguments.profile {
        let viewers = arguments.viewers.iter().copied().max().unwrap_or(1);
        let text = profile::profile(&bench, viewers)?;
        println!("\n{text}");
        page::put(&arguments.page, "profile", &text)?;
    }
    Ok(())
}

fn compare(arguments: &Arguments, bench: &Bench, machine: Machine) -> Result<Results> {
    let kinds = bench.programs.kinds();
    let mut results = Results {
        date: machine::date(),
        command: arguments.named.clone().unwrap_or_else(|| std::env::args().collect::<Vec<_>>().join(" ")),
        machine,
        stream: bench.stream.rate(Duration::from_secs(10))?,
        alone: Vec::new(),
        playing: Vec::new(),
        joining: Vec::new(),
        floor: Vec::new(),
    };
    for kind in &kinds {
        results.alone.push(played(bench, *kind, 1)?);
    }
    for &viewers in &arguments.viewers {
        for repeat in 0..arguments.repeat {
            let mut order = kinds.clone();
            // ABBA order: drift over time affects all generators alike.
            if repeat % 2 == 1 {
                order.reverse();
            }
            for kind in &order {
                let run = played(bench, *kind, viewers)?;
                results.playing.push(run);
            }
            run_floor(bench, viewers, &mut results)?;
            for kind in order {
                join(bench, kind, viewers, &mut results)?;
            }
        }
    }
    Ok(results)
}

fn played(bench: &Bench, kind: Kind, viewers: u32) -> Result<Playing> {
    let run = bench.playing(kind, viewers)?;
    println!(
        "{viewers:>5} {:<34} {:>6.2} µs/packet {:>6} MB {:>6.1} % of packets, Janus {:.0} % (busy {:.0} %), waited {:.0} %, load {:.1} {}",
        kind.name(),
        run.us_per_packet(),
        run.rss_kb / 1024,
        100.0 * run.packets / run.expected_packets,
        100.0 * run.server_cpu_ratio,
        100.0 * run.server_core_busy_ratio,
        100.0 * run.waited_ratio,
        run.load,
        run.excluded().map_or(String::new(), |why| format!("EXCLUDED: {why}")),
    );
    if let Some(first) = run.failures.first() {
        eprintln!("      {} viewers failed, the first of: {first}", run.failures.len());
    }
    std::thread::sleep(PAUSE);
    Ok(run)
}

fn run_floor(bench: &Bench, viewers: u32, results: &mut Results) -> Result<()> {
    let program = std::env::current_exe()?.with_file_name("floor");
    ensure!(program.exists(), "{} has not been built", program.display());
    let run = floor::run(&program, bench.namespace, viewers, &results.stream, bench.window)?;
    println!(
        "{viewers:>5} {:<34} {:>6.2} µs/packet {:>27.0} packets/s",
        "floor", run.cpu_us_per_packet, run.packets_per_s
    );
    results.floor.push(run);
    Ok(())
}

fn join(bench: &Bench, kind: Kind, viewers: u32, results: &mut Results) -> Result<()> {
    if !bench.can_join(viewers) {
        eprintln!("{viewers:>5} {}: joins not measured, they take too long", kind.name());
        return Ok(());
    }
    for crowd in [1, viewers] {
        let run = bench.joining(kind, crowd, viewers)?;
        println!(
            "{crowd:>5} {:<34} {:>6.0} ms of CPU to join {}",
            kind.name(),
            run.cpu_us as f64 / 1_000.0,
            run.excluded().map_or(String::new(), |why| format!("EXCLUDED: {why}")),
        );
        results.joining.push(run);
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn on_stage(arguments: &Arguments, folder: &Path) -> Result<()> {
    let throng = arguments.throng.as_deref().context("--stage-1000 needs --throng")?;
    let namespace = Namespace::new("bench")?;
    let window = Duration::from_secs(arguments.window_s);
    let one = stage::run(throng, &namespace, 1, window, folder)?;
    let crowd = stage::run(throng, &namespace, stage::VIEWERS, window, folder)?;
    let text = stage::table(&machine::date(), &one, &crowd);
    println!("\n{text}");
    page::put(&arguments.page, "stage", &text)?;
    let raw = serde_json::to_string_pretty(&[&one, &crowd])?;
    std::fs::create_dir_all(&arguments.results)?;
    std::fs::write(arguments.results.join("stage-1000.json"), raw)?;
    Ok(())
}
