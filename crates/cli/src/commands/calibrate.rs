//! `throng calibrate`: how many viewers this machine plays before the generator is the limit.
//!
//! The stage runs in a process of its own on the same machine, and viewers are added until the
//! generator passes one of its limits. Both share the cores, so a generator on a dedicated machine
//! reaches more; how many, follows from the measured cost of a viewer.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow};
use throng_engine::live::RunState;
use throng_engine::{LiveSnapshot, RunHandle};
use throng_observation::limits::THREAD_CPU_RATIO_MAX;
use throng_observation::units::{bit_rate, bytes};
use throng_process::{Ended, Started, end_throng_with_this_thread};
use throng_scenario::{Scenario, ScenarioFlags};

use super::stage;
use crate::args::{self, Common};
use crate::console::{CliError, Exit, Interrupt, print};
use crate::media;
use crate::session::{self, Joins, Prepared};

/// The interval between joins: long enough that joining costs little compared with playing.
const JOIN_EVERY: Duration = Duration::from_millis(50);
/// How long the full crowd is held if no limit is passed.
const HOLD: Duration = Duration::from_secs(10);
/// Loss of all viewers together from which the stage counts as full, not the generator.
const STAGE_LOSS_RATIO: f64 = 0.01;
/// A limit counts when it is passed in 3 of 5 seconds.
const WINDOW_SECONDS: usize = 5;
const BAD_SECONDS: usize = 3;

pub(crate) fn calibrate(command: &args::Calibrate) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    stage::card(&command.card)?;
    let stage = StageProcess::start(&command.card).map_err(CliError::invalid)?;
    let scenario = scenario(command, &stage.url)?;
    let plan = scenario.plan();
    let common = Common::default();
    session::print_warnings(&session::warnings(&plan, &media::Pages::default()));
    let prepared = Prepared::new(&scenario, &plan, &common)?;
    let (handle, rows, _) = session::start_engine(&prepared, Joins::Planned, None)?;
    // Rows are not stored: the live snapshot has all figures that are needed.
    let drain = std::thread::spawn(move || rows.iter().for_each(drop));
    let reached = ramp(&handle, &interrupt, command.up_to);
    handle.stop();
    let _ = handle.wait();
    let _ = drain.join();
    print(&report(command, &reached));
    Ok(if interrupt.is_set() { Exit::Interrupted } else { Exit::Met })
}

fn scenario(command: &args::Calibrate, url: &str) -> Result<Scenario, CliError> {
    let duration = JOIN_EVERY * command.up_to + HOLD;
    let form = ScenarioFlags {
        url: format!("whep+{url}"),
        size: Some(command.up_to),
        every: Some(format!("{}ms", JOIN_EVERY.as_millis())),
        duration: Some(format!("{}s", duration.as_secs())),
        ..ScenarioFlags::default()
    };
    Scenario::from_flags(&form).map_err(CliError::usage)
}

/// `throng stage` in a process of its own; ends when dropped.
struct StageProcess {
    child: Child,
    _registered: Started,
    url: String,
}

impl StageProcess {
    fn start(card: &str) -> anyhow::Result<Self> {
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["stage", "--listen", "127.0.0.1:0", "--card", card]);
        command.args(["--workers", &workers.to_string()]).process_group(0);
        end_throng_with_this_thread(&mut command, Ended::AtOnce);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the stage")?;
        let registered = Started::group(child.id());
        let said = child.stdout.take().ok_or_else(|| anyhow!("the stage printed nothing"))?;
        let url = BufReader::new(said)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.trim().strip_prefix("watch").map(|url| url.trim().to_owned()));
        let mut stage = Self { child, _registered: registered, url: String::new() };
        stage.url = url.ok_or_else(|| anyhow!("the stage ended before it listened"))?;
        Ok(stage)
    }
}

impl Drop for StageProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The largest crowd of the ramp, and why the ramp ended.
#[derive(Default)]
struct RampResult {
    /// The most viewers that played in a second without any limit passed.
    viewers: u32,
    /// CPU of the generator in that second, microseconds.
    cpu_us: u64,
    rss_bytes: u64,
    received_bps: f64,
    /// Why the ramp ended.
    why: String,
    /// Whether the generator was full.
    is_generator: bool,
}

fn ramp(handle: &RunHandle, interrupt: &Interrupt, up_to: u32) -> RampResult {
    let mut reached = RampResult {
        why: format!("no more than {up_to} viewers were asked for"),
        ..RampResult::default()
    };
    let (mut last, mut limits) = (None, VecDeque::new());
    while !handle.is_finished() && !interrupt.is_set() {
        std::thread::sleep(Duration::from_millis(100));
        let live = handle.live();
        if live.second == last || live.state != RunState::Running {
            continue;
        }
        last = live.second;
        let limit = limit(&live);
        if limit.is_none() && live.crowd.playing >= reached.viewers {
            let process = &live.generator.process;
            reached.viewers = live.crowd.playing;
            (reached.cpu_us, reached.rss_bytes) = (process.cpu_us, process.rss_bytes);
            reached.received_bps = live.history.back().map_or(0.0, |point| point.received_bps);
        }
        limits.push_back(limit);
        if limits.len() > WINDOW_SECONDS {
            limits.pop_front();
        }
        let passed: Vec<&(bool, String)> = limits.iter().flatten().collect();
        if passed.len() >= BAD_SECONDS
            && let Some((is_generator, why)) = passed.last()
        {
            (reached.is_generator, reached.why) = (*is_generator, why.clone());
            return reached;
        }
    }
    reached
}

/// Which limit a second passed, if any, and whether it is the generator's.
fn limit(live: &LiveSnapshot) -> Option<(bool, String)> {
    if let Some(why) = live.generator.limited.first() {
        return Some((true, why.clone()));
    }
    let lost = [&live.video, &live.audio].map(|tracks| tracks.last.counters.loss_ratio());
    let is_lossy = lost.into_iter().flatten().any(|ratio| ratio > STAGE_LOSS_RATIO);
    is_lossy.then(|| {
        (false, "the stage, on the same cores, began to drop before the generator was full".into())
    })
}

fn report(command: &args::Calibrate, reached: &RampResult) -> String {
    if reached.viewers == 0 {
        return format!("No viewer played: {}\n", reached.why);
    }
    let viewers = f64::from(reached.viewers);
    let cpu_ms = reached.cpu_us as f64 / 1e3 / viewers;
    let at_limit = THREAD_CPU_RATIO_MAX * 1e3 / cpu_ms.max(1e-3);
    let at_least = if reached.is_generator { "" } else { "at least " };
    format!(
        "This machine as a generator, {} card ({} a viewer):\n\x20 plays     {at_least}{} viewers \
         ({} in all)\n\x20 ended     {}\n\x20 costs     {cpu_ms:.2} ms of CPU per viewer-second, \
         {} per viewer\n\x20 predicts  about {at_limit:.0} viewers for each core that it has to \
         itself, at {:.0} % of the core (an extrapolation)\n",
        command.card,
        bit_rate(reached.received_bps / viewers),
        reached.viewers,
        bit_rate(reached.received_bps),
        reached.why,
        bytes(reached.rss_bytes as f64 / viewers),
        THREAD_CPU_RATIO_MAX * 100.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_limit_outranks_loss() {
        let mut live = LiveSnapshot::default();
        assert!(limit(&live).is_none());
        let counters = &mut live.video.last.counters;
        (counters.packets_original, counters.packets_lost) = (95, 5);
        assert!(matches!(limit(&live), Some((false, _))));
        live.generator.limited = vec!["thread 0 used 80 % of its core".into()];
        assert!(matches!(limit(&live), Some((true, _))));
    }

    #[test]
    fn what_was_not_the_generator_is_a_lower_bound() {
        let command = args::Calibrate { card: "low".into(), up_to: 50 };
        let mut reached = RampResult {
            viewers: 50,
            cpu_us: 100_000,
            why: "asked".into(),
            ..RampResult::default()
        };
        assert!(report(&command, &reached).contains("at least 50 viewers"));
        reached.is_generator = true;
        let text = report(&command, &reached);
        assert!(
            text.contains("plays     50 viewers") && text.contains("about 350 viewers"),
            "{text}"
        );
    }
}
