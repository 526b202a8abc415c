//! A profile by `perf` of throng with a playing crowd.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::generator::Kind;
use crate::machine;
use crate::measure::Bench;

/// Symbols that are listed.
const LISTED: usize = 15;

/// A line of `perf report`.
#[derive(Clone, Debug, PartialEq)]
struct Symbol {
    percent: f64,
    kernel: bool,
    name: String,
}

/// Profiles throng with `viewers` playing, and returns it in Markdown.
///
/// # Errors
/// When perf is absent or fails, or throng cannot be started.
pub fn profile(bench: &Bench, viewers: u32) -> Result<String> {
    let perf = Path::new("/usr/bin/perf");
    ensure!(perf.exists(), "there is no /usr/bin/perf: it comes with the package linux-perf");
    let generator = bench.playing_crowd(Kind::Throng, viewers)?;
    let data = bench.folder.join("perf.data");
    let mut record = Command::new(perf);
    record.args("record -q -e cpu-clock -F 999 -g -p".split(' ')).arg(generator.pid().to_string());
    record.arg("-o").arg(&data).args(["--", "sleep", &bench.window.as_secs().to_string()]);
    let recorded = record.output()?;
    ensure!(
        recorded.status.success(),
        "perf record: {}",
        String::from_utf8_lossy(&recorded.stderr)
    );
    let account = generator.account()?;
    let own = symbols(&report(perf, &data, "--no-children")?);
    let with_callees = symbols(&report(perf, &data, "--children")?);
    let kernel: f64 = own.iter().filter(|symbol| symbol.kernel).map(|symbol| symbol.percent).sum();
    let all: f64 = own.iter().map(|symbol| symbol.percent).sum();
    ensure!(all > 50.0, "perf took no samples that can be read");
    let mut out = format!(
        "{viewers} viewers on Janus ({} connected): {:.0} % of the samples in the kernel, {:.0} % \
         in throng itself; load average {:.1}.\n\n",
        account.connected,
        100.0 * kernel / all,
        100.0 * (all - kernel) / all,
        machine::load(),
    );
    out += "| Own time, % | Where | Symbol |\n|---:|---|---|\n";
    for symbol in own.iter().take(LISTED) {
        let place = if symbol.kernel { "kernel" } else { "throng" };
        let _ = writeln!(out, "| {:.1} | {place} | `{}` |", symbol.percent, shown(&symbol.name));
    }
    out +=
        "\nThe kernel by system call, with all that it calls:\n\n| % | System call |\n|---:|---|\n";
    for symbol in with_callees.iter().filter(|symbol| symbol.percent >= 0.5) {
        if let Some(call) = symbol.name.strip_prefix("__x64_sys_") {
            let _ = writeln!(out, "| {:.1} | `{call}` |", symbol.percent);
        }
    }
    Ok(out)
}

fn report(perf: &Path, data: &Path, children: &str) -> Result<String> {
    let mut command = Command::new(perf);
    command
        .args(["report", "-q", "--stdio", "-g", "none", "--sort", "symbol", children, "-i"])
        .arg(data);
    let output = command.output().context("perf report")?;
    ensure!(output.status.success(), "perf report: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lines such as `  9.20%  [k] _copy_to_iter`; with callees, a second percentage precedes the
/// bracket.
fn symbols(report: &str) -> Vec<Symbol> {
    let parse = |line: &str| {
        let (numbers, name) = line.split_once('[')?;
        let percent = numbers.split_whitespace().next()?.strip_suffix('%')?.parse().ok()?;
        let (level, name) = name.split_once("] ")?;
        // Columns of other sorts may follow, two spaces or more away.
        let name = name.split("  ").next()?.trim();
        Some(Symbol { percent, kernel: level == "k", name: name.to_owned() })
    };
    report.lines().filter_map(parse).collect()
}

/// A name in a form that fits into a table.
fn shown(name: &str) -> String {
    let mut shown: String = name.replace('|', "¦").chars().take(90).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_report_is_read_with_and_without_callees() {
        let check = |line: &str, expect: Option<(f64, bool, &str)>| {
            let expect =
                expect.map(|(percent, kernel, name)| Symbol { percent, kernel, name: name.into() });
            assert_eq!(symbols(line).pop(), expect, "{line}");
        };
        check("     9.20%  [k] _copy_to_iter", Some((9.2, true, "_copy_to_iter")));
        check("    12.00%     3.00%  [.] a::b<[u8]>", Some((12.0, false, "a::b<[u8]>")));
        check(
            "     4.30%     0.00%  [k] __x64_sys_sendto       -      -",
            Some((4.3, true, "__x64_sys_sendto")),
        );
        check("     2.00%  [.] <a as b>::c      ", Some((2.0, false, "<a as b>::c")));
        check("# Samples: 3K of event 'cpu-clock'", None);
        check("", None);
    }
}
