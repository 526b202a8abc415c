//! Measures throng against a viewer on pion and against the floor, on a real Janus and on throng's
//! own stage, and writes docs/measurements/webrtc-viewers.md.
//!
//! ```text
//! bench/run.sh                        # everything, with the defaults
//! compare --viewers 100 --repeat 4    # with the existing build
//! ```
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its steps and results"
)]

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use throng_bench::floor::{self, Floor};
use throng_bench::generator::{Kind, Programs, Receive};
use throng_bench::machine::{self, Machine};
use throng_bench::measure::{Bench, Joining, Playing, can_join, repeated, repetition};
use throng_bench::process::{SERVER_CPU, ensure_can_measure, pin_to};
use throng_bench::results::Results;
use throng_bench::stage::{self, Card, OnFloor, OnStage};
use throng_bench::stream::{Rate, Stream};
use throng_bench::{page, profile};
use throng_sim::janus::Janus;
use throng_sim::namespace::Namespace;

/// The address of Janus's media: an address of the namespace only.
const MEDIA: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Between runs, so that Janus frees the viewers of the last one.
const PAUSE: Duration = Duration::from_secs(2);

/// Compares the cost of viewers on a real Janus; needs root (it makes network namespaces) and two
/// CPUs
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
    /// Also run these numbers of viewers on throng's stage, with the floors: of the standard card,
    /// and of the low one where the stage is full
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        num_args = 0..=1,
        default_missing_value = "300,900"
    )]
    stage_compare: Option<Vec<u32>>,
    /// Also run these numbers of viewers on throng's stage, without the floors
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        num_args = 0..=1,
        default_missing_value = "1000,2500"
    )]
    stage_viewers: Option<Vec<u32>>,
    /// The test card of --stage-viewers
    #[arg(long, value_enum, default_value = "low")]
    card: Card,
    /// Also profile throng at the largest number of viewers
    #[arg(long)]
    profile: bool,
    /// The page whose tables are replaced
    #[arg(long, default_value = "docs/measurements/webrtc-viewers.md")]
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
    ensure_can_measure()?;
    let programs = Programs { throng: arguments.throng.clone(), pion: arguments.pion.clone() };
    let machine = Machine::read(programs.throng.as_deref(), programs.pion.as_deref());
    // Everything started from here on runs on the server's CPU unless pinned elsewhere.
    pin_to(SERVER_CPU)?;
    let folder = tempfile::tempdir()?;
    let uses_stage = arguments.stage_compare.is_some() || arguments.stage_viewers.is_some();
    let stream = if !arguments.no_compare || arguments.profile {
        on_janus(&arguments, &programs, machine, folder.path())?
    } else if uses_stage {
        // Only its packets' size is asked for: nobody receives it.
        let namespace = Namespace::new("bench")?;
        Stream::start(&namespace, folder.path())?.rate(Duration::from_secs(5))?
    } else {
        return Ok(());
    };
    if let Some(sizes) = &arguments.stage_compare {
        stage_part(&arguments, "stage-comparison", &stream, folder.path(), |bench, results| {
            sizes.iter().try_for_each(|viewers| compare_on_stage(bench, *viewers, results))
        })?;
    }
    if let Some(sizes) = &arguments.stage_viewers {
        stage_part(&arguments, "stage", &stream, folder.path(), |bench, results| {
            for &viewers in sizes {
                both_ways(bench, arguments.card, viewers, results)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns the stream that the viewers received.
fn on_janus(
    arguments: &Arguments,
    programs: &Programs,
    machine: Machine,
    folder: &Path,
) -> Result<Rate> {
    let namespace = Namespace::with_veth("bench", MEDIA)?;
    let janus = Janus::start(&namespace, MEDIA)?;
    let stream = Stream::start(&namespace, folder)?;
    std::thread::sleep(Duration::from_secs(2));
    let rate = stream.rate(Duration::from_secs(10))?;
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
        let results = compare(arguments, &bench, machine, rate)?;
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
    Ok(rate)
}

fn command_line(arguments: &Arguments) -> String {
    arguments.named.clone().unwrap_or_else(|| std::env::args().collect::<Vec<_>>().join(" "))
}

fn compare(
    arguments: &Arguments,
    bench: &Bench,
    machine: Machine,
    stream: Rate,
) -> Result<Results> {
    let kinds = bench.programs.kinds();
    let mut results = Results {
        date: machine::date(),
        command: command_line(arguments),
        machine,
        stream,
        alone: Vec::new(),
        playing: Vec::new(),
        joining: Vec::new(),
        floor: Vec::new(),
        floor_ring: Vec::new(),
        repeated: Vec::new(),
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
                let (run, stolen) =
                    repeated(|run: &Playing| run.steal_ratio, || played(bench, *kind, viewers))?;
                note(
                    &mut results.repeated,
                    &format!("{}, {viewers} viewers playing", kind.name()),
                    stolen,
                );
                results.playing.push(run);
            }
            for receive in Receive::ALL {
                let Results { stream, repeated, .. } = &mut results;
                let run =
                    run_floor(bench.namespace, bench.window, receive, viewers, stream, repeated)?;
                match receive {
                    Receive::Sockets => results.floor.push(run),
                    Receive::Ring => results.floor_ring.push(run),
                }
            }
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
        "{viewers:>5} {:<34} {:>6.2} µs/packet {:>6} MB {:>6.1} % of packets, Janus {:.0} % (busy \
         {:.0} %), waited {:.0} %, steal {:.0} %, load {:.1} {}",
        kind.name(),
        run.us_per_packet(),
        run.rss_kb / 1024,
        100.0 * run.packets / run.expected_packets,
        100.0 * run.server_cpu_ratio,
        100.0 * run.server_core_busy_ratio,
        100.0 * run.waited_ratio,
        100.0 * run.steal_ratio,
        run.load,
        run.excluded().map_or(String::new(), |why| format!("EXCLUDED: {why}")),
    );
    if let Some(first) = run.failures.first() {
        eprintln!("      {} viewers failed, the first of: {first}", run.failures.len());
    }
    std::thread::sleep(PAUSE);
    Ok(run)
}

/// Notes a run that was repeated, if one was.
fn note(notes: &mut Vec<String>, what: &str, stolen: Option<f64>) {
    if let Some(note) = repetition(what, stolen) {
        println!("      repeated for CPU steal: {note}");
        notes.push(note);
    }
}

fn run_floor(
    namespace: &Namespace,
    window: Duration,
    receive: Receive,
    viewers: u32,
    stream: &Rate,
    notes: &mut Vec<String>,
) -> Result<Floor> {
    let program = std::env::current_exe()?.with_file_name("floor");
    ensure!(program.exists(), "{} has not been built", program.display());
    let (run, stolen) = repeated(
        |run: &Floor| run.steal_ratio,
        || floor::run(&program, namespace, receive, viewers, stream, window),
    )?;
    note(notes, &format!("{}, {viewers} viewers", Floor::name(receive)), stolen);
    println!(
        "{viewers:>5} {:<34} {:>6.2} µs/packet {:>27.0} packets/s, steal {:.0} %",
        Floor::name(receive),
        run.cpu_us_per_packet,
        run.packets_per_s,
        100.0 * run.steal_ratio,
    );
    Ok(run)
}

fn join(bench: &Bench, kind: Kind, viewers: u32, results: &mut Results) -> Result<()> {
    if !can_join(viewers) {
        eprintln!("{viewers:>5} {}: joins not measured, they take too long", kind.name());
        return Ok(());
    }
    for crowd in [1, viewers] {
        let (run, stolen) = repeated(
            |run: &Joining| run.steal_ratio,
            || {
                let run = bench.joining(kind, crowd, viewers)?;
                std::thread::sleep(PAUSE);
                Ok(run)
            },
        )?;
        note(&mut results.repeated, &format!("{}, {crowd} viewers joining", kind.name()), stolen);
        println!(
            "{crowd:>5} {:<34} {:>6.0} ms of CPU to join {}",
            kind.name(),
            run.cpu_us as f64 / 1_000.0,
            run.excluded().map_or(String::new(), |why| format!("EXCLUDED: {why}")),
        );
        results.joining.push(run);
    }
    Ok(())
}

/// Measures a part of the page on throng's stage, and writes it.
fn stage_part(
    arguments: &Arguments,
    part: &str,
    janus_stream: &Rate,
    folder: &Path,
    measure: impl FnOnce(&stage::Bench, &mut stage::Results) -> Result<()>,
) -> Result<()> {
    let throng = arguments.throng.as_deref().context("viewers of the stage need --throng")?;
    let namespace = Namespace::new("bench")?;
    let window = Duration::from_secs(arguments.window_s);
    let bench = stage::Bench { throng, namespace: &namespace, window, folder: folder.to_owned() };
    let mut results = stage::Results {
        date: machine::date(),
        command: command_line(arguments),
        janus_stream: *janus_stream,
        alone: Vec::new(),
        playing: Vec::new(),
        floor: Vec::new(),
        repeated: Vec::new(),
    };
    measure(&bench, &mut results)?;
    let text = results.table();
    println!("\n{text}");
    page::put(&arguments.page, part, &text)?;
    std::fs::create_dir_all(&arguments.results)?;
    let raw = serde_json::to_string_pretty(&results)?;
    std::fs::write(arguments.results.join(format!("{part}.json")), raw)?;
    Ok(())
}

/// `viewers` of the standard card and the floors; if the stage was full, of the low card as well.
fn compare_on_stage(
    bench: &stage::Bench,
    viewers: u32,
    results: &mut stage::Results,
) -> Result<()> {
    for card in [Card::Standard, Card::Low] {
        let is_full = both_ways(bench, card, viewers, results)?;
        let Some(stream) = results.alone.iter().find(|one| one.card == card).map(OnStage::rate)
        else {
            continue;
        };
        for receive in Receive::ALL {
            let notes = &mut results.repeated;
            let floor = run_floor(bench.namespace, bench.window, receive, viewers, &stream, notes)?;
            results.floor.push(OnFloor { card, floor });
        }
        if !is_full {
            break;
        }
    }
    Ok(())
}

/// `viewers` by sockets and by the ring, and one before, if there was none yet. Whether the stage
/// was full.
fn both_ways(
    bench: &stage::Bench,
    card: Card,
    viewers: u32,
    results: &mut stage::Results,
) -> Result<bool> {
    let mut is_full = false;
    for receive in Receive::ALL {
        if !results.alone.iter().any(|one| (one.card, one.receive) == (card, receive)) {
            results.alone.push(on_stage(bench, card, receive, 1)?);
        }
        let (run, stolen) =
            repeated(|run: &OnStage| run.steal_ratio, || on_stage(bench, card, receive, viewers))?;
        let what =
            format!("throng, {}, {viewers} viewers of the {} card", receive.name(), card.name());
        note(&mut results.repeated, &what, stolen);
        is_full |= run.is_stage_full();
        results.playing.push(run);
    }
    Ok(is_full)
}

fn on_stage(bench: &stage::Bench, card: Card, receive: Receive, viewers: u32) -> Result<OnStage> {
    let run = bench.run(card, receive, viewers)?;
    println!(
        "{viewers:>5} throng, {:<26} {:>6.2} µs/packet {:>6} MB, {} connected, {} drops, stage's \
         core busy {:.0} %, steal {:.0} %",
        receive.name(),
        run.us_per_packet(),
        run.rss_kb / 1024,
        run.connected,
        run.drops,
        100.0 * run.stage_core_busy_ratio,
        100.0 * run.steal_ratio,
    );
    Ok(run)
}
