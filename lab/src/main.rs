//! The truth lab: plants one known limit after another in a real server, runs `throng find` on it,
//! and prints the confusion matrix of `docs/measurements/truth-lab.md`.
//!
//! `cargo run --release -p throng-lab -- --throng target/release/throng`

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a table on the one, progress on the other"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use throng_sim::cpu_steal::CpuTime;

mod cgroup;
mod conference;
mod pion;
mod planted;
mod publisher;
mod search;
mod stability;
mod stage;
mod table;

use planted::{ALL, Planted};
use search::Lab;
use stability::Names;
use table::Judged;

/// Exit code with `--short` or `--repeat` if an answer was undecided and none was wrong.
const UNDECIDED: u8 = 4;

/// Plants limits and runs throng on them.
#[derive(Debug, Parser)]
struct Arguments {
    /// The throng under test
    #[arg(long, default_value = "target/release/throng")]
    throng: PathBuf,
    /// How long each search may take [default: 5m, with --short 60s]
    #[arg(long)]
    budget: Option<String>,
    /// Only the plants whose names contain this; repeatable
    #[arg(long)]
    only: Vec<String>,
    /// Only the quick ones, as in `make test`: wrong answers are an error; exit code 4: an answer
    /// was undecided
    #[arg(long)]
    short: bool,
    /// Plant each limit N times: more than one name for it is an error
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    repeat: Option<u32>,
    /// Keep the run folders here
    #[arg(long)]
    keep: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let wanted = |planted: &&Planted| {
        let is_named = arguments.only.is_empty()
            || arguments.only.iter().any(|name| planted.name.contains(name));
        is_named && (!arguments.short || planted.is_short)
    };
    let budget =
        arguments.budget.unwrap_or_else(|| if arguments.short { "60s" } else { "5m" }.to_owned());
    let lab = Lab::new(&arguments.throng, arguments.short, budget, arguments.keep)?;
    let wanted: Vec<&Planted> = ALL.iter().filter(wanted).collect();
    if let Some(times) = arguments.repeat {
        return repeated(&lab, &wanted, times);
    }
    if arguments.short {
        return short(&lab, &wanted);
    }
    let judged: Vec<Judged> =
        wanted.into_iter().filter_map(|planted| judge(&lab, planted)).collect();
    print!("{}", table::markdown(&judged));
    Ok(ExitCode::SUCCESS)
}

/// Plants a limit, searches, and judges the answer; `None` if the limit could not be planted.
fn judge(lab: &Lab, planted: &Planted) -> Option<Judged> {
    eprintln!("{}: {}", planted.name, planted.what);
    let (began, cpu_before) = (Instant::now(), CpuTime::so_far());
    match (planted.plant)(lab) {
        Ok(outcome) => {
            let steal_ratio = CpuTime::so_far().steal_ratio_since(cpu_before);
            let one = Judged::of(planted, outcome, began.elapsed(), steal_ratio);
            eprintln!("  {} {:.1} % of the CPU time was stolen", one.line(), steal_ratio * 100.0);
            Some(one)
        }
        Err(error) => {
            eprintln!("  {} not tried: {error:#}", planted.name);
            None
        }
    }
}

/// Runs one after another; a wrong answer is repeated once, because other load may have been the
/// reason. An undecided answer is no error, nor one that names the generator under CPU steal.
fn short(lab: &Lab, wanted: &[&Planted]) -> anyhow::Result<ExitCode> {
    let judge_twice = |planted: &&Planted| match judge(lab, planted) {
        Some(one) if one.is_right() => Some(one),
        _ => judge(lab, planted),
    };
    let judged: Vec<Judged> = wanted.iter().filter_map(judge_twice).collect();
    print!("{}", table::markdown(&judged));
    let not_right: Vec<&Judged> = judged.iter().filter(|one| !one.is_right()).collect();
    let undecided = not_right.iter().filter(|one| one.is_undecided()).count();
    anyhow::ensure!(
        !judged.is_empty() && judged.len() == wanted.len(),
        "{} of {} tried",
        judged.len(),
        wanted.len()
    );
    anyhow::ensure!(
        not_right.len() == undecided,
        "{} of {} wrong",
        not_right.len() - undecided,
        judged.len()
    );
    Ok(if undecided > 0 { ExitCode::from(UNDECIDED) } else { ExitCode::SUCCESS })
}

/// Plants each limit so many times, and compares the names that it was given.
fn repeated(lab: &Lab, wanted: &[&Planted], times: u32) -> anyhow::Result<ExitCode> {
    let named = |planted: &&Planted| {
        Names::of(planted.name, times, (0..times).filter_map(|_| judge(lab, planted)))
    };
    let all: Vec<Names> = wanted.iter().map(named).collect();
    print!("{}", stability::markdown(&all));
    anyhow::ensure!(!all.is_empty(), "no plant has such a name");
    anyhow::ensure!(
        all.iter().all(Names::is_stable),
        "one limit has several names, or a wrong answer"
    );
    let is_decided = all.iter().all(Names::is_decided);
    Ok(if is_decided { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}
