//! A thousand viewers in one process, against throng's own stage at a low bit rate.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use throng_sim::namespace::Namespace;

use crate::generator::{Crowd, Generator};
use crate::machine;
use crate::process::{Running, Usage};

/// Viewers of the large crowd.
pub const VIEWERS: u32 = 1_000;
const EVERY: Duration = Duration::from_millis(20);
const SETTLE: Duration = Duration::from_secs(5);

/// The cost of a crowd on the stage.
#[derive(Clone, Debug, Serialize)]
pub struct OnStage {
    /// Viewers requested.
    pub viewers: u32,
    /// Viewers connected.
    pub connected: u32,
    /// The failure reasons of viewers.
    pub failures: Vec<String>,
    /// The window, seconds.
    pub window_s: f64,
    /// Packets received in it.
    pub packets: f64,
    /// Packets lost over the whole run.
    pub lost: i64,
    /// CPU time in it, microseconds.
    pub cpu_us: u64,
    /// CPU time of the stage, microseconds.
    pub stage_cpu_us: u64,
    /// Share of the window in which the generator's threads waited for their CPU.
    pub waited_ratio: f64,
    /// Resident memory at its end, kB.
    pub rss_kb: u64,
    /// Load average at its end.
    pub load: f64,
}

/// Runs `viewers` of a stage of their own for `window`; the run folder is made in `folder`.
///
/// # Errors
/// If stage or viewers cannot be started.
pub fn run(
    throng: &Path,
    namespace: &Namespace,
    viewers: u32,
    window: Duration,
    folder: &Path,
) -> Result<OnStage> {
    let mut command = namespace.command(&throng.to_string_lossy());
    command.args(["stage", "--listen", "127.0.0.1:7080", "--card", "low"]);
    let mut stage = Running::start(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let output = stage.child().stdout.take().context("its output is not piped")?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let url = lines.find_map(|line| Some(format!("whep+{}", line.trim().strip_prefix("watch")?.trim())));
    let url = url.context("the stage did not start")?;
    let before = EVERY * viewers + SETTLE;
    let crowd = Crowd { viewers, every: EVERY, lasts: before + window + Duration::from_secs(3) };
    let run = folder.join(format!("stage-{viewers}"));
    let generator = Generator::throng(throng, namespace, crowd, &url, &run)?;
    std::thread::sleep(before);
    let (began, stage_began) = (Usage::of(generator.pid())?, Usage::of(stage.id())?);
    std::thread::sleep(window);
    let (ended, stage_ended) = (Usage::of(generator.pid())?, Usage::of(stage.id())?);
    let load = machine::load();
    let account = generator.account()?;
    let window_s = ended.at_s - began.at_s;
    Ok(OnStage {
        viewers,
        connected: account.connected,
        window_s,
        packets: account.packets_between(began.at_s, ended.at_s),
        lost: account.lost.unwrap_or(0),
        failures: account.failures,
        cpu_us: ended.cpu_us - began.cpu_us,
        stage_cpu_us: stage_ended.cpu_us - stage_began.cpu_us,
        waited_ratio: ended.waited_us.saturating_sub(began.waited_us) as f64 / 1e6 / window_s,
        rss_kb: ended.rss_kb,
        load,
    })
}

/// The crowd, and the single viewer for comparison, in Markdown.
#[must_use]
pub fn table(date: &str, one: &OnStage, crowd: &OnStage) -> String {
    let expected = one.packets / one.window_s * crowd.window_s * f64::from(crowd.viewers);
    let memory = crowd.rss_kb.saturating_sub(one.rss_kb) as f64 / f64::from(crowd.viewers - 1);
    let mut out = format!("{date}, by `bench/run.sh --stage-1000`; load average {:.1}.\n\n", crowd.load);
    out += "| Viewers | Connected | Failed | Lost | Packets, of one viewer's | µs/packet | CPU of the viewers | CPU of the \
            stage | Memory | kB/viewer |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    out += &format!(
        "| {} | {} | {} | {} | {:.1} % | {:.2} | {:.0} % of a core | {:.0} % of a core | {:.0} MB | {memory:.0} |\n",
        crowd.viewers,
        crowd.connected,
        crowd.failures.len(),
        crowd.lost,
        100.0 * crowd.packets / expected,
        crowd.cpu_us as f64 / crowd.packets,
        crowd.cpu_us as f64 / 1e4 / crowd.window_s,
        crowd.stage_cpu_us as f64 / 1e4 / crowd.window_s,
        crowd.rss_kb as f64 / 1024.0,
    );
    if let Some(first) = crowd.failures.first() {
        out += &format!("\n**Viewers failed**, the first of: {first}\n");
    }
    out
}
