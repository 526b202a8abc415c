//! The cost of the profiler: its own CPU time, and the slowdown of the programs that it samples.
//!
//! Two programs repeat the same fixed work, in turns without and with each sampling method. CPU
//! time of the same work is compared, not elapsed time, so other programs on the machine disturb
//! little.
//!
//! `cargo run --release -p throng-bench --bin profiler_cost`

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use throng_observation::host::ProfileMethod;
use throng_watch::profiler::{self, Options};

/// Programs that work at a time, and how often each method is measured.
const PROGRAMS: usize = 2;
const ROUNDS: usize = 9;
/// Steps of the work that a program does at a time: some two seconds of CPU time.
const STEPS: u64 = 1_500_000_000;

/// A sampling method; `None`: no sampling.
type Way = Option<Options>;

#[expect(clippy::print_stdout, reason = "the table is its result")]
fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("work") {
        return work();
    }
    let clock = |frequency_hz, unwind| {
        Some(Options {
            frequency_hz,
            unwind,
            method: Some(ProfileMethod::CpuClock),
            ..Options::default()
        })
    };
    let state = Some(Options { method: Some(ProfileMethod::ThreadState), ..Options::default() });
    let ways: [(&str, Way); 5] = [
        ("no sampling", None),
        ("clock, 99 Hz, frame pointers", clock(99, false)),
        ("clock, 99 Hz, unwinding", clock(99, true)),
        ("clock, 997 Hz, unwinding", clock(997, true)),
        ("thread states, 20 Hz", state),
    ];
    let mut workers = (0..PROGRAMS).map(|_| Worker::start()).collect::<Result<Vec<_>>>()?;
    let mut measured: Vec<Vec<Measured>> = ways.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, way), into) in ways.iter().zip(&mut measured) {
            into.push(measure(way, &mut workers)?);
        }
    }
    println!(
        "| sampling | own CPU, % of a core | finding names, ms CPU | the programs' CPU for the \
         same work |"
    );
    println!("|---|---|---|---|");
    let (_, plain) = (&ways[0], measured[0].clone());
    for ((name, _), rounds) in ways.iter().zip(&measured) {
        let own = median(rounds.iter().map(|m| 100.0 * m.sampling_cpu_s / m.elapsed_s));
        let naming = median(rounds.iter().map(|m| 1e3 * m.naming_cpu_s));
        let changes: Vec<f64> = rounds
            .iter()
            .zip(&plain)
            .map(|(m, p)| 100.0 * (m.work_cpu_s / p.work_cpu_s - 1.0))
            .collect();
        let (low, high) = quartiles(&changes);
        println!(
            "| {name} | {own:.2} | {naming:.0} | {:+.2} % ({low:+.2} to {high:+.2}) |",
            median(changes.into_iter())
        );
    }
    println!("\n{ROUNDS} rounds, {PROGRAMS} programs that work without pause; median (quartiles).");
    Ok(())
}

/// One round of work.
#[derive(Clone, Copy, Debug)]
struct Measured {
    elapsed_s: f64,
    work_cpu_s: f64,
    sampling_cpu_s: f64,
    naming_cpu_s: f64,
}

fn measure(way: &Way, workers: &mut [Worker]) -> Result<Measured> {
    let pids: Vec<u32> = workers.iter().map(|worker| worker.child.id()).collect();
    let sampling = way.clone().map(|options| profiler::start(&pids, options)).transpose()?;
    let started = Instant::now();
    for worker in workers.iter_mut() {
        worker.begin()?;
    }
    let mut work_cpu_s = 0.0;
    for worker in workers {
        work_cpu_s += worker.end()?;
    }
    let elapsed_s = started.elapsed().as_secs_f64();
    let cost = sampling.map(|sampling| sampling.stop_with_cost().1).unwrap_or_default();
    Ok(Measured {
        elapsed_s,
        work_cpu_s,
        sampling_cpu_s: cost.sampling_cpu.as_secs_f64(),
        naming_cpu_s: cost.naming_cpu.as_secs_f64(),
    })
}

/// This program as a child process that does the work.
struct Worker {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("work")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answers = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Self { child, answers })
    }

    fn begin(&mut self) -> Result<()> {
        Ok(self.child.stdin.as_mut().context("its input")?.write_all(b"w")?)
    }

    /// CPU time of the work, seconds.
    fn end(&mut self) -> Result<f64> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        line.trim().parse().context("the worker's answer")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Works when a byte arrives, and prints the CPU time of the work.
#[expect(clippy::print_stdout, reason = "the answer")]
fn work() -> Result<()> {
    let mut byte = [0];
    while std::io::stdin().read(&mut byte)? > 0 {
        let before = own_cpu();
        std::hint::black_box(
            (0..STEPS).fold(1_u64, |x, n| std::hint::black_box(x.wrapping_mul(31).wrapping_add(n))),
        );
        println!("{}", (own_cpu() - before).as_secs_f64());
    }
    Ok(())
}

fn own_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec that the call fills in.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "every Linux has this clock");
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn quartiles(values: &[f64]) -> (f64, f64) {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = |share: usize| values.get(values.len() * share / 4).copied().unwrap_or(f64::NAN);
    (at(1), at(3))
}
