//! The truth lab: plants one known limit after another in a real server, lets `throng find` look for it, and writes the
//! confusion matrix of `docs/truth.md`.
//!
//! `cargo run --release -p throng-lab -- --throng target/release/throng`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a table on the one, progress on the other")]

use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;

mod cgroup;
mod lesson;
mod planted;
mod search;
mod stage;
mod table;

use planted::{ALL, Planted};
use search::Lab;
use table::Judged;

/// Plants limits and lets throng look for them.
#[derive(Debug, Parser)]
struct Arguments {
    /// The throng to try
    #[arg(long, default_value = "target/release/throng")]
    throng: PathBuf,
    /// How long each search may take
    #[arg(long, default_value = "5m")]
    budget: String,
    /// Only those whose names contain this; repeatable
    #[arg(long)]
    only: Vec<String>,
    /// Only the quick ones, as in `make test`: wrong answers are an error
    #[arg(long)]
    short: bool,
    /// Keep the run folders here
    #[arg(long)]
    keep: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let wanted = |planted: &&Planted| {
        let is_named =
            arguments.only.is_empty() || arguments.only.iter().any(|name| planted.name.contains(name));
        is_named && (!arguments.short || planted.is_short)
    };
    let lab = Lab::new(&arguments.throng, arguments.budget, arguments.keep)?;
    let mut judged = Vec::new();
    for planted in ALL.iter().filter(wanted) {
        eprintln!("{}: {}", planted.name, planted.what);
        let began = Instant::now();
        match (planted.plant)(&lab) {
            Ok(outcome) => {
                let one = Judged::of(planted, outcome, began.elapsed());
                eprintln!("  {}", one.line());
                judged.push(one);
            }
            Err(error) => eprintln!("  not tried: {error:#}"),
        }
    }
    print!("{}", table::markdown(&judged));
    let wrong = judged.iter().filter(|one| !one.is_right()).count();
    anyhow::ensure!(
        !arguments.short || (wrong == 0 && !judged.is_empty()),
        "{wrong} of {} wrong",
        judged.len()
    );
    Ok(())
}
