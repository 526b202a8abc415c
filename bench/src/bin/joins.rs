//! Measures the CPU time of a join by throng and by a viewer on pion, on servers of four signalling
//! protocols, prints a table, and writes it into docs/measurements/joins.md.
//!
//! ```text
//! bench/joins.sh                                  # builds everything, then this
//! joins --throng T --pion P --servers srs,ome     # with the existing build
//! ```
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its steps and results"
)]

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Parser;
use throng_bench::generator::{Kind, Programs};
use throng_bench::joins::{KINDS, OnServer, Results};
use throng_bench::machine::{self, Machine};
use throng_bench::measure::{Joining, can_join, joining, repeated, repetition};
use throng_bench::page;
use throng_bench::process::{SERVER_CPU, ensure_can_measure, pin_to};
use throng_bench::server::{MEDIA, ServerKind, TestServer};
use throng_sim::namespace::Namespace;

/// The CPU time of a join on several servers; needs root (it makes a network namespace) and two
/// CPUs
#[derive(Parser)]
struct Arguments {
    /// The binary `throng`
    #[arg(long)]
    throng: PathBuf,
    /// The binary built from bench/pion-viewer
    #[arg(long)]
    pion: PathBuf,
    /// The servers
    #[arg(long, value_enum, value_delimiter = ',', default_value = "janus,livekit,ome,srs")]
    servers: Vec<ServerKind>,
    /// Viewers of a crowd, one each 20 ms
    #[arg(long, default_value_t = 100)]
    viewers: u32,
    /// Runs of each generator on each server; every other time in the opposite order
    #[arg(long, default_value_t = 2)]
    repeat: u32,
    /// The page whose table is replaced; without it no page is written
    #[arg(long)]
    page: Option<PathBuf>,
    /// Folder of the raw figures
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// The command line that the page names [default: this one]
    #[arg(long)]
    named: Option<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure_can_measure()?;
    ensure!(
        arguments.viewers > 1,
        "a join is what a second viewer costs: --viewers must be 2 or more"
    );
    ensure!(
        can_join(arguments.viewers),
        "the first would wait too long for media: take fewer --viewers"
    );
    let mut results = nothing_yet(&arguments);
    // Everything started from here on runs on the server's CPU unless pinned elsewhere.
    pin_to(SERVER_CPU)?;
    let folder = tempfile::tempdir()?;
    for &server in &arguments.servers {
        if let Err(error) = measure(&arguments, server, folder.path(), &mut results) {
            eprintln!("{}: {error:#}", server.name());
            results.not_measured.push(format!("{}: {error:#}", server.name()));
        }
    }
    std::fs::create_dir_all(&arguments.results)?;
    std::fs::write(arguments.results.join("joins.json"), serde_json::to_string_pretty(&results)?)?;
    let text = results.table();
    println!("\n{text}");
    arguments.page.as_deref().map_or(Ok(()), |page| page::put(page, "joins", &text))
}

fn nothing_yet(arguments: &Arguments) -> Results {
    let mut machine = Machine::read(Some(&arguments.throng), Some(&arguments.pion));
    machine.versions.extend(arguments.servers.iter().filter_map(|server| server.version()));
    let this = || std::env::args().collect::<Vec<_>>().join(" ");
    Results {
        date: machine::date(),
        command: arguments.named.clone().unwrap_or_else(this),
        machine,
        viewers: arguments.viewers,
        runs: Vec::new(),
        repeated: Vec::new(),
        not_measured: Vec::new(),
    }
}

/// All runs on one server, which has a namespace to itself.
fn measure(
    arguments: &Arguments,
    kind: ServerKind,
    folder: &Path,
    results: &mut Results,
) -> Result<()> {
    let namespace = Namespace::with_veth("joins", MEDIA)?;
    namespace.when_running()?;
    let server = TestServer::start(kind, &namespace, &arguments.throng, folder)?;
    server.clear()?;
    let programs =
        Programs { throng: Some(arguments.throng.clone()), pion: Some(arguments.pion.clone()) };
    let target = server.target();
    let run = |generator: Kind, viewers: u32| -> Result<Joining> {
        let run = joining(generator, viewers, arguments.viewers, |crowd| {
            programs.start(generator, &namespace, crowd, &target, folder)
        })?;
        server.clear()?;
        Ok(run)
    };
    for repeat in 0..arguments.repeat {
        let mut order = KINDS;
        // ABBA order: drift over time affects both alike.
        if repeat % 2 == 1 {
            order.reverse();
        }
        for generator in order {
            for viewers in [1, arguments.viewers] {
                let (joining, stolen) =
                    repeated(|run: &Joining| run.steal_ratio, || run(generator, viewers))?;
                show(kind, &joining);
                let what = format!("{}, {}, {viewers} viewers", kind.name(), generator.name());
                results.repeated.extend(repetition(&what, stolen));
                results.runs.push(OnServer { server: kind, joining });
            }
        }
    }
    Ok(())
}

fn show(server: ServerKind, run: &Joining) {
    println!(
        "{:<18} {:>4} {:<34} {:>6.0} ms of CPU to join, steal {:.0} %, load {:.1} {}",
        server.name(),
        run.viewers,
        run.kind.name(),
        run.cpu_us as f64 / 1_000.0,
        100.0 * run.steal_ratio,
        run.load,
        run.excluded().map_or(String::new(), |why| format!("EXCLUDED: {why}")),
    );
}
