//! How long the search for the cause of a run takes, and its memory; reading the run is not
//! included.
//!
//! ```text
//! watched_run runs/held --holds && explain runs/held
//! ```

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use throng_observation::Goal;
use throng_store::RunFolder;

/// The run to explain.
#[derive(Parser)]
struct Arguments {
    /// The run folder.
    folder: PathBuf,
}

#[expect(clippy::print_stdout, reason = "the figures are its result")]
fn main() -> Result<()> {
    let began = Instant::now();
    let run = RunFolder::read(&Arguments::parse().folder)?;
    let read_s = began.elapsed().as_secs_f64();
    let before = resident_bytes();
    let began = Instant::now();
    let found = throng_analysis::bottleneck::explain(&run, Goal::Acceptable);
    let explained_s = began.elapsed().as_secs_f64();
    println!("samples   {}", run.host.samples.len());
    println!("reading   {read_s:.2} s, {:.0} MB", before as f64 / 1e6);
    println!("explain   {explained_s:.2} s, {:.0} MB peak with the run", peak_bytes() as f64 / 1e6);
    println!("verdict   {} ({:?})", found.bottleneck.title, found.bottleneck.verdict);
    println!("demands   {}", found.demand.len());
    Ok(())
}

fn status(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn resident_bytes() -> u64 {
    status("VmRSS")
}

fn peak_bytes() -> u64 {
    status("VmHWM")
}
