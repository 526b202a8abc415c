//! Measures the cost of conferences on a real Janus: publishers compared with pion's, one receiver
//! of many streams compared with many of one, and a conference of 25; prints tables with the goals,
//! and writes them into docs/measurements/conferences.md.
//!
//! ```text
//! bench/conference.sh            # builds everything, then this; some four minutes
//! ```
#![expect(clippy::print_stdout, reason = "a benchmark prints its steps and results")]

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use throng_bench::conference::{Bench, Crowd, EVERY, Measured, has};
use throng_bench::machine::{self, Machine};
use throng_bench::page;
use throng_bench::process::{GENERATOR_CPU, SERVER_CPU, ensure_can_measure, pin_to};
use throng_bench::results::Spread;
use throng_sim::janus::Janus;
use throng_sim::namespace::Namespace;

/// The address of Janus's media: an address of the namespace only.
const MEDIA: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Between runs, so that Janus frees the participants of the last one.
const PAUSE: Duration = Duration::from_secs(2);
/// The number of others that one participant receives in a conference of 100.
const OTHERS: u32 = 99;

/// The cost of conferences on a real Janus; needs root (it makes network namespaces) and two CPUs
#[derive(Parser)]
struct Arguments {
    /// The binary `throng`
    #[arg(long)]
    throng: PathBuf,
    /// The binary built from bench/pion-publisher; without it pion is left out
    #[arg(long)]
    pion: Option<PathBuf>,
    /// The folder of the test card's files
    #[arg(long, default_value = "crates/media/clips")]
    clips: PathBuf,
    /// Publishers that are compared
    #[arg(long, default_value_t = 60)]
    publishers: u32,
    /// Participants of the conference
    #[arg(long, default_value_t = 25)]
    conference: u32,
    /// Runs of each; every other time in the opposite order
    #[arg(long, default_value_t = 2)]
    repeat: u32,
    /// Seconds in which CPU time and packets are counted
    #[arg(long, default_value_t = 10)]
    window_s: u64,
    /// The page whose tables are replaced; without it no page is written
    #[arg(long)]
    page: Option<PathBuf>,
    /// Folder of the raw figures
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure_can_measure()?;
    has("janus")?;
    let machine = Machine::read(Some(&arguments.throng), arguments.pion.as_deref());
    // Everything started from here on runs on the server's CPU unless pinned elsewhere.
    pin_to(SERVER_CPU)?;
    let folder = tempfile::tempdir()?;
    let namespace = Namespace::with_veth("bench", MEDIA)?;
    let janus = Janus::start(&namespace, MEDIA)?;
    let bench = Bench {
        namespace: &namespace,
        address: MEDIA,
        server_pid: janus.pid(),
        throng: &arguments.throng,
        pion: arguments.pion.as_deref(),
        clips: &arguments.clips,
        window: Duration::from_secs(arguments.window_s),
        folder: folder.path().to_owned(),
    };
    let mut all = publishers(&arguments, &bench)?;
    all.extend(receivers(&arguments, &bench)?);
    all.push(shown(&bench, Crowd::Conference(arguments.conference))?);
    std::fs::create_dir_all(&arguments.results)?;
    std::fs::write(arguments.results.join("conference.json"), serde_json::to_string_pretty(&all)?)?;
    let text = render(&arguments, &machine, &all);
    println!("\n{text}");
    if let Some(page) = &arguments.page {
        page::put(page, "conference", &text)?;
    }
    Ok(())
}

fn publishers(arguments: &Arguments, bench: &Bench<'_>) -> Result<Vec<Measured>> {
    let crowds = |size| {
        let pion = arguments.pion.is_some().then_some(Crowd::PionPublishers(size));
        [Some(Crowd::Publishers(size)), pion].into_iter().flatten()
    };
    // A crowd of one of each kind: the cost of the process itself.
    let mut order: Vec<Crowd> = crowds(1).collect();
    for repeat in 0..arguments.repeat {
        let mut next: Vec<Crowd> = crowds(arguments.publishers).collect();
        // ABBA order: drift over time affects all crowds alike.
        if repeat % 2 == 1 {
            next.reverse();
        }
        order.extend(next);
    }
    order.into_iter().map(|crowd| shown(bench, crowd)).collect()
}

/// One receiver of many streams, and many receivers of one: the same number of streams in both.
fn receivers(arguments: &Arguments, bench: &Bench<'_>) -> Result<Vec<Measured>> {
    let mut all = Vec::new();
    for repeat in 0..arguments.repeat {
        let mut order = [(OTHERS, 1), (1, OTHERS)];
        if repeat % 2 == 1 {
            order.reverse();
        }
        for (senders, receivers) in order {
            let sends = Crowd::Publishers(senders);
            let sending = bench.start(sends, bench.window + Duration::from_secs(60), SERVER_CPU)?;
            std::thread::sleep(EVERY * senders + PAUSE);
            all.push(shown(bench, Crowd::Receivers(receivers))?);
            sending.stop();
            // No participant leaves explicitly: Janus sees the WebSockets close.
            std::thread::sleep(PAUSE);
        }
    }
    Ok(all)
}

fn shown(bench: &Bench<'_>, crowd: Crowd) -> Result<Measured> {
    let run = bench.measure(crowd)?;
    println!(
        "{:<28} {:>3} connected {:>6.2} µs/packet {:>6.0} packets/s sent {:>7.0} received {:>5} \
         lost {:>5.1} MB, {:.0} % of a CPU, Janus {:.0} % (busy {:.0} %), waited {:.0} % {}",
        crowd.name(),
        run.connected,
        run.us_per_packet(),
        run.sent / run.window_s,
        run.received / run.window_s,
        run.lost,
        run.rss_kb as f64 / 1024.0,
        100.0 * run.cpu_ratio(),
        100.0 * run.server_cpu_ratio,
        100.0 * run.server_core_busy_ratio,
        100.0 * run.waited_ratio,
        run.excluded().map_or(String::new(), |why| format!("EXCLUDED: {why}")),
    );
    std::thread::sleep(PAUSE);
    Ok(run)
}

/// The tables with the goals.
fn render(arguments: &Arguments, machine: &Machine, all: &[Measured]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "{}, by `bench/conference.sh`. {}, {} cores, Linux {}. {}. Load average {:.1}. The \
         generator had CPU {GENERATOR_CPU} to itself, Janus and the participants that only send \
         CPU {SERVER_CPU}. 240p VP8 at 256 kbit/s and Opus from each sender; median of {} runs \
         (lowest to highest) of {} s.\n",
        machine::date(),
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.versions.join(" · "),
        machine::load(),
        arguments.repeat,
        arguments.window_s,
    );
    out += "| What | throng | compared with | ratio | goal | |\n|---|---:|---:|---:|---:|---|\n";
    let of =
        |crowd: Crowd| all.iter().filter(move |run| run.crowd == crowd && run.excluded().is_none());
    let cost = |crowd: Crowd| Spread::of(of(crowd).map(Measured::us_per_packet));
    let size = arguments.publishers;
    let own = cost(Crowd::Publishers(size));
    let pion = cost(Crowd::PionPublishers(size));
    row(
        &mut out,
        &format!("a packet sent, of {size} publishers, µs of CPU (against pion)"),
        own,
        pion,
        0.5,
    );
    let memory = |one: Crowd, many: Crowd| {
        let alone = Spread::of(of(one).map(|run| run.rss_kb as f64))?;
        let others = f64::from(size.saturating_sub(1).max(1));
        Spread::of(of(many).map(|run| (run.rss_kb as f64 - alone.median) / others))
    };
    let own = memory(Crowd::Publishers(1), Crowd::Publishers(size));
    let pion = memory(Crowd::PionPublishers(1), Crowd::PionPublishers(size));
    row(&mut out, "a further publisher, kB (against pion)", own, pion, 0.125);
    let many = cost(Crowd::Receivers(1));
    let each = cost(Crowd::Receivers(OTHERS));
    let what = format!(
        "a packet at one receiver of {OTHERS} streams, µs of CPU (against {OTHERS} receivers of \
         one)"
    );
    row(&mut out, &what, many, each, 1.1);
    if let Some(run) = all.iter().find(|run| run.crowd == Crowd::Conference(arguments.conference)) {
        let expected = run.sent * f64::from(arguments.conference - 1);
        let _ = writeln!(
            out,
            "\nA conference of {}: {} of {} streams played, {:.0} packets/s sent and {:.0} \
             received ({:.1} % of those expected), {} lost, for {:.0} % of the generator's one \
             CPU ({:.2} µs a packet, {:.0} MB; goal: on one CPU); Janus used {:.0} % of its own, \
             which was busy for {:.0} % of the time.",
            arguments.conference,
            run.streams.0,
            run.streams.1,
            run.sent / run.window_s,
            run.received / run.window_s,
            100.0 * run.received / expected.max(1.0),
            run.lost,
            100.0 * run.cpu_ratio(),
            run.us_per_packet(),
            run.rss_kb as f64 / 1024.0,
            100.0 * run.server_cpu_ratio,
            100.0 * run.server_core_busy_ratio,
        );
    }
    let excluded = all.iter().filter_map(|run| Some((run.crowd.name(), run.excluded()?)));
    for (name, why) in excluded {
        let _ = writeln!(out, "\nExcluded: {name}, {why}.");
    }
    out
}

fn row(out: &mut String, what: &str, own: Option<Spread>, peer: Option<Spread>, goal: f64) {
    let cell = |spread: Option<Spread>| {
        spread.map_or("not measured".into(), |s| {
            format!("{:.2} ({:.2}–{:.2})", s.median, s.min, s.max)
        })
    };
    let ratio = own.zip(peer).map(|(own, peer)| own.median / peer.median);
    let verdict = ratio.map_or("", |ratio| if ratio <= goal { "met" } else { "**missed**" });
    let ratio = ratio.map_or("–".into(), |ratio| format!("{ratio:.2}"));
    let _ = writeln!(
        out,
        "| {what} | {} | {} | {ratio} | ≤ {goal} | {verdict} |",
        cell(own),
        cell(peer)
    );
}
