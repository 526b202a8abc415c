//! One run of one generator on Janus: the cost of a playing crowd, and of joins.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use throng_sim::namespace::Namespace;

use crate::generator::{Crowd, Generator, Kind, Programs, Target};
use crate::machine;
use crate::process::{CoreTime, GENERATOR_CPU, SERVER_CPU, Usage};
use crate::stream::Stream;

/// The share of the expected packets that a run must have received to count.
pub const PACKETS_NEEDED: f64 = 0.95;
/// The share of the generator's CPU that the hypervisor may withhold in a run that is not repeated
/// and not marked.
pub const STEAL_MAX: f64 = 0.1;
/// Between joins, when the cost of joins is measured: short enough for a crowd of 300 to join
/// within [`JOINING_MAX`].
const JOIN_EVERY: Duration = Duration::from_millis(20);
/// Time for joins in progress before their cost is read.
const LAST_JOIN: Duration = Duration::from_secs(2);
/// throng's viewers fail after ten seconds without media, so the first must not be older than this
/// when joins are counted.
const JOINING_MAX: Duration = Duration::from_secs(9);

/// The conditions of all runs of a benchmark.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The namespace of Janus and generators.
    pub namespace: &'a Namespace,
    /// Janus's process.
    pub server_pid: u32,
    /// The stream that viewers receive.
    pub stream: &'a Stream,
    /// The compared programs.
    pub programs: &'a Programs,
    /// Time between the joins of a playing crowd.
    pub every: Duration,
    /// Time from the last join to the window.
    pub settle: Duration,
    /// The window in which CPU time and packets are counted.
    pub window: Duration,
    /// Run folders go here.
    pub folder: PathBuf,
}

/// The cost of a playing crowd in one window.
#[derive(Clone, Debug, Serialize)]
pub struct Playing {
    /// Which generator.
    pub kind: Kind,
    /// Viewers requested.
    pub viewers: u32,
    /// Viewers connected.
    pub connected: u32,
    /// The window, seconds.
    pub window_s: f64,
    /// CPU time in it, microseconds.
    pub cpu_us: u64,
    /// Share of the window in which threads were runnable but had no CPU: contention by others.
    pub waited_ratio: f64,
    /// Packets received in it, by the generator's own count.
    pub packets: f64,
    /// Packets that went into Janus in it, times viewers.
    pub expected_packets: f64,
    /// Packets lost over the whole run, if the generator reports them.
    pub lost: Option<i64>,
    /// Datagrams that the generator's own sockets and rings dropped over the whole run, if it
    /// counts them.
    pub drops: Option<u64>,
    /// Why throng gave its ring up.
    pub gave_ring_up: Option<String>,
    /// Resident memory at its end, kB.
    pub rss_kb: u64,
    /// The part of it that is receive rings, kB.
    pub ring_kb: u64,
    /// The share of the generator's CPU that the hypervisor withheld in it.
    pub steal_ratio: f64,
    /// The share of one CPU that Janus used in it.
    pub server_cpu_ratio: f64,
    /// The share of it in which Janus's CPU, which feed and harness use as well, was not idle. Near
    /// 1 the server was full, and missing packets are not caused by the generator.
    pub server_core_busy_ratio: f64,
    /// Load average at its end.
    pub load: f64,
    /// The failure reasons of viewers.
    pub failures: Vec<String>,
}

impl Playing {
    /// CPU time per packet received, microseconds.
    #[must_use]
    pub fn us_per_packet(&self) -> f64 {
        self.cpu_us as f64 / self.packets
    }

    /// Why this run must not count; `None` if it counts.
    #[must_use]
    pub fn excluded(&self) -> Option<String> {
        let ratio = self.packets / self.expected_packets;
        if self.connected < self.viewers {
            Some(format!("{} of {} viewers connected", self.connected, self.viewers))
        } else if let Some(why) = self.gave_ring_up.as_ref().filter(|_| self.kind == Kind::Throng) {
            Some(format!("it gave its ring up: {why}"))
        } else if !ratio.is_finite() || ratio < PACKETS_NEEDED {
            Some(format!(
                "{:.1} % of the expected packets; Janus used {:.0} % of its CPU, which was busy \
                 for {:.0} %",
                ratio * 100.0,
                self.server_cpu_ratio * 100.0,
                self.server_core_busy_ratio * 100.0,
            ))
        } else {
            None
        }
    }
}

/// The cost of joins without media.
#[derive(Clone, Debug, Serialize)]
pub struct Joining {
    /// Which generator.
    pub kind: Kind,
    /// Viewers requested.
    pub viewers: u32,
    /// Viewers connected.
    pub connected: u32,
    /// CPU time from the start of the process until all had joined, microseconds.
    pub cpu_us: u64,
    /// The share of the generator's CPU that the hypervisor withheld in that time.
    pub steal_ratio: f64,
    /// Load average at the end.
    pub load: f64,
}

impl Joining {
    /// Why this run must not count; `None` if it counts.
    #[must_use]
    pub fn excluded(&self) -> Option<String> {
        let all = self.connected >= self.viewers;
        (!all).then(|| format!("{} of {} viewers joined", self.connected, self.viewers))
    }
}

/// Runs what `run` measures, and once more if the first result has too much of what `steal` reads
/// from it. Returns the last result, and the share stolen from the one that it replaces.
///
/// # Errors
/// Those of `run`.
pub fn repeated<T>(
    steal: impl Fn(&T) -> f64,
    mut run: impl FnMut() -> Result<T>,
) -> Result<(T, Option<f64>)> {
    let first = run()?;
    let stolen = steal(&first);
    if stolen <= STEAL_MAX {
        return Ok((first, None));
    }
    Ok((run()?, Some(stolen)))
}

/// What a page says of a run of `what` that was repeated; `None` if it was not.
#[must_use]
pub fn repetition(what: &str, stolen: Option<f64>) -> Option<String> {
    stolen.map(|stolen| format!("{what} ({:.0} %)", 100.0 * stolen))
}

impl Bench<'_> {
    fn start(&self, kind: Kind, crowd: Crowd) -> Result<Generator> {
        let target = Target::new("janus+ws://127.0.0.1:8188/streaming/1");
        self.programs.start(kind, self.namespace, crowd, &target, &self.folder)
    }

    /// Starts `viewers` of `kind` and waits until they play; returns with the whole window and a
    /// bit more to come.
    ///
    /// # Errors
    /// When the generator cannot be started.
    pub fn playing_crowd(&self, kind: Kind, viewers: u32) -> Result<Generator> {
        let before = self.every * viewers + self.settle;
        let crowd = Crowd {
            viewers,
            every: self.every,
            lasts: before + self.window + Duration::from_secs(3),
        };
        let generator = self.start(kind, crowd)?;
        std::thread::sleep(before);
        Ok(generator)
    }

    /// Runs `viewers` that play, and measures them in the window.
    ///
    /// # Errors
    /// If the generator cannot be started or ends early.
    pub fn playing(&self, kind: Kind, viewers: u32) -> Result<Playing> {
        let generator = self.playing_crowd(kind, viewers)?;
        let ended = || format!("{} ended early", kind.name());
        let (server_before, core_before) = (Usage::of(self.server_pid)?, CoreTime::of(SERVER_CPU)?);
        let own_core_before = CoreTime::of(GENERATOR_CPU)?;
        let (before, fed_before) =
            (Usage::of(generator.pid()).with_context(ended)?, self.stream.count());
        std::thread::sleep(self.window);
        let (after, fed) = (Usage::of(generator.pid()).with_context(ended)?, self.stream.count());
        let (server, core) = (Usage::of(self.server_pid)?, CoreTime::of(SERVER_CPU)?);
        let steal_ratio = CoreTime::of(GENERATOR_CPU)?.steal_since(own_core_before);
        let load = machine::load();
        // pion counts once a second: its next line closes the window.
        std::thread::sleep(Duration::from_millis(1_100));
        let account = generator.account()?;
        let window_s = after.at_s - before.at_s;
        Ok(Playing {
            kind,
            viewers,
            connected: account.connected,
            window_s,
            cpu_us: after.cpu_us - before.cpu_us,
            waited_ratio: after.waited_us.saturating_sub(before.waited_us) as f64 / 1e6 / window_s,
            packets: account.packets_between(before.at_s, after.at_s),
            expected_packets: fed.since(&fed_before).packets_per_s()
                * window_s
                * f64::from(viewers),
            lost: account.lost,
            drops: account.drops,
            gave_ring_up: account.gave_ring_up,
            rss_kb: after.rss_kb,
            ring_kb: after.ring_kb,
            steal_ratio,
            server_cpu_ratio: (server.cpu_us - server_before.cpu_us) as f64
                / 1e6
                / (server.at_s - server_before.at_s),
            server_core_busy_ratio: core.busy_since(core_before),
            load,
            failures: account.failures,
        })
    }

    /// Runs `viewers` that join while nothing plays, as [`joining`] does.
    ///
    /// # Errors
    /// If the generator cannot be started or ends early.
    pub fn joining(&self, kind: Kind, viewers: u32, for_viewers: u32) -> Result<Joining> {
        self.stream.set_open(false);
        let run = joining(kind, viewers, for_viewers, |crowd| self.start(kind, crowd));
        self.stream.set_open(true);
        run
    }
}

/// Whether `viewers` join fast enough that the first still waits for media when the last has
/// joined.
#[must_use]
pub fn can_join(viewers: u32) -> bool {
    JOIN_EVERY * viewers + LAST_JOIN <= JOINING_MAX
}

/// Runs `viewers` of `kind`, which `start` sends at a server without media. `for_viewers` sets the
/// lifetime of the process, so that a baseline of one viewer lives as long as the crowd that it is
/// subtracted from.
///
/// # Errors
/// If the generator cannot be started or ends early.
pub fn joining(
    kind: Kind,
    viewers: u32,
    for_viewers: u32,
    start: impl FnOnce(Crowd) -> Result<Generator>,
) -> Result<Joining> {
    let joined = JOIN_EVERY * for_viewers + LAST_JOIN;
    let crowd = Crowd { viewers, every: JOIN_EVERY, lasts: joined + Duration::from_secs(2) };
    let core_before = CoreTime::of(GENERATOR_CPU)?;
    let generator = start(crowd)?;
    std::thread::sleep(joined);
    let usage =
        Usage::of(generator.pid()).with_context(|| format!("{} ended early", kind.name()))?;
    let steal_ratio = CoreTime::of(GENERATOR_CPU)?.steal_since(core_before);
    let load = machine::load();
    // pion counts once a second: its next line has all that joined.
    std::thread::sleep(Duration::from_millis(1_100));
    let connected = generator.account()?.connected;
    Ok(Joining { kind, viewers, connected, cpu_us: usage.cpu_us, steal_ratio, load })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_repeated_once_when_too_much_was_stolen_from_it() {
        let check = |stolen: &[f64], kept: f64, replaced: Option<f64>| {
            let mut left = stolen.iter().copied();
            let run = || left.next().context("no more runs were expected");
            assert_eq!(
                repeated(|stolen: &f64| *stolen, run).unwrap(),
                (kept, replaced),
                "{stolen:?}"
            );
            assert_eq!(left.next(), None, "{stolen:?}");
        };
        check(&[0.0], 0.0, None);
        check(&[STEAL_MAX], STEAL_MAX, None);
        check(&[0.3, 0.02], 0.02, Some(0.3));
        check(&[0.3, 0.4], 0.4, Some(0.3));
        assert!(repeated(|stolen: &f64| *stolen, || anyhow::bail!("it failed")).is_err());
    }
}
