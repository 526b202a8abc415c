//! A profile in the terminal: threads by the CPU time they took, and the functions it went to.

use std::fmt::Write as _;

use throng_observation::host::{Change, Frame, Profile, ProfileMethod, SelfTime};
use throng_observation::untrusted;

use crate::columns::{Align, aligned, said};

/// Threads printed, and functions of each.
const THREADS: usize = 12;
const FUNCTIONS: usize = 8;
/// Functions below this share of their thread are left out.
const SHARE_MIN: f64 = 0.005;
/// Longest name printed.
const NAME_CHARS_MAX: usize = 70;

/// The profile as a table.
#[must_use]
pub fn text(profile: &Profile) -> String {
    let time = SelfTime::of(profile);
    let mut out = format!("{}\n", how(profile, &time));
    said(&mut out, "  note: ", &profile.limits);
    for thread in time.threads.iter().take(THREADS) {
        let many = if thread.threads > 1 {
            format!(" (of {} threads)", thread.threads)
        } else {
            String::new()
        };
        let cores = thread.cores.map_or_else(String::new, |cores| format!("{cores:.2} cores, "));
        let name = untrusted::escaped(&thread.thread, NAME_CHARS_MAX);
        let _ = writeln!(out, "\n{name}{many}: {cores}{} of the samples", percent(thread.share));
        let shown = thread.symbols.iter().take(FUNCTIONS);
        let shown = shown.filter(|symbol| symbol.share >= SHARE_MIN).map(|symbol| {
            let family =
                symbol.family.map_or_else(String::new, |family| format!("  {}", family.words()));
            vec![percent(symbol.share), function(&symbol.frame) + &family]
        });
        let rows: Vec<_> = shown.collect();
        said(&mut out, "  ", aligned(&rows, &[Align::Right, Align::Left]).lines());
    }
    if let Some(hidden) = time.threads.len().checked_sub(THREADS).filter(|hidden| *hidden > 0) {
        let _ = writeln!(out, "\n{hidden} further names of threads");
    }
    let kinds: Vec<String> = time
        .families
        .iter()
        .filter(|family| family.share() >= SHARE_MIN)
        .map(|family| format!("{} {}", family.family.words(), percent(family.share())))
        .collect();
    if !kinds.is_empty() {
        let _ = writeln!(out, "\nkinds of work: {}", kinds.join(", "));
    }
    out
}

/// Changes beyond the error of sampling, as a table: share before, share after, function.
#[must_use]
pub fn changes(changes: &[Change]) -> String {
    let mut clear = changes.iter().filter(|change| change.is_clear()).take(20).peekable();
    if clear.peek().is_none() {
        return "  no change beyond the sampling error\n".to_owned();
    }
    let mut rows = vec![["before", "after", "function"].map(str::to_owned).to_vec()];
    rows.extend(clear.map(|change| {
        vec![percent(change.before), percent(change.after), function(&change.frame)]
    }));
    let mut out = String::new();
    said(&mut out, "  ", aligned(&rows, &[Align::Right, Align::Right, Align::Left]).lines());
    out
}

/// A function and its file, as far as names are printed.
fn function(frame: &Frame) -> String {
    let name = untrusted::escaped(&frame.symbol, NAME_CHARS_MAX);
    format!("{name}  ({})", untrusted::escaped(&frame.module, 32))
}

/// How and for how long was sampled, in a sentence.
pub(crate) fn how(profile: &Profile, time: &SelfTime) -> String {
    let seconds = profile.duration_us as f64 / 1e6;
    let (samples, hz) = (time.samples, profile.frequency_hz);
    let mut text = match profile.method {
        ProfileMethod::CpuClock => {
            format!(
                "{seconds:.1} s at {hz} Hz on each CPU: {samples} samples, {:.2} cores",
                time.cores.unwrap_or(0.0)
            )
        }
        ProfileMethod::ThreadState => {
            format!(
                "{seconds:.1} s of thread states, sampled up to {hz} times a second: {samples} \
                 samples"
            )
        }
    };
    if profile.samples_lost > 0 {
        let _ = write!(text, "; {} records of all processes were lost", profile.samples_lost);
    }
    text
}

/// A share of samples in percent, with one digit: more would be below the error of sampling.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
#[path = "profile_tests.rs"]
pub(crate) mod tests;
