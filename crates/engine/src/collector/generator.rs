//! The generator's own health: rows of its threads and of the process, the limits that they pass, and what the host lost.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_observation::RunTime;
use throng_observation::limits::{BURST_DROPS_EVENT, HOST_DROPS_EVENT, MEMORY_EVENT};
use throng_observation::run::{EventRow, GeneratorRow};

use super::Collector;
use crate::health::{HostLosses, Machine, limits_passed};

/// What is known of seconds that are still open, and of the host since the run began.
pub(super) struct Health {
    machine: Machine,
    rows: BTreeMap<i64, Vec<GeneratorRow>>,
    /// Sentences of seconds in which the host was past its limit.
    host: BTreeMap<i64, String>,
    losses: HostLosses,
    /// Datagrams that our own sockets dropped.
    own_drops: u64,
}

impl Health {
    pub(super) fn begin() -> Self {
        Self {
            machine: Machine::begin(),
            rows: BTreeMap::new(),
            host: BTreeMap::new(),
            losses: HostLosses::default(),
            own_drops: 0,
        }
    }

    pub(super) fn add(&mut self, row: GeneratorRow) {
        self.own_drops += row.socket_drops;
        self.rows.entry(row.second).or_default().push(row);
    }
}

impl Collector {
    /// Reads the process's own health and the host's losses for `second`, and lets the guards judge.
    pub(super) fn measure(&mut self, second: i64) {
        let (row, losses) = self.health.machine.measure(second);
        let memory = self.health.machine.memory_ratio(row.rss_bytes);
        self.health.add(row);
        self.health.losses += losses;
        if let Some(detail) = losses.past_limit().filter(|_| second >= 0) {
            self.health.host.insert(second, detail.clone());
            self.event_of_second(second, HOST_DROPS_EVENT, detail);
        }
        let now = self.now();
        if memory > self.config.guards.memory_ratio_max && self.config.control.stopped().is_none() {
            let why = format!("the generator uses {:.0} % of the machine's memory", memory * 100.0);
            self.abort(&why);
            self.event_of_second(second, MEMORY_EVENT, why);
        } else if let Some(why) = self.joins.reason_to_abort(now) {
            self.abort(&why);
        }
    }

    /// Health rows up to `second`, those of earlier seconds among them, and the limits passed, which become an event.
    pub(super) fn take_health(&mut self, second: i64) -> (Vec<GeneratorRow>, Vec<String>) {
        let later = self.health.rows.split_off(&(second + 1));
        let rows = std::mem::replace(&mut self.health.rows, later).into_values().flatten();
        // What threads did before the run began is not of the run.
        let rows: Vec<_> = rows.filter(|row| row.second >= 0).collect();
        let mut limits = limits_passed(&rows);
        let later = self.health.host.split_off(&(second + 1));
        limits.extend(std::mem::replace(&mut self.health.host, later).into_values());
        if !limits.is_empty() {
            self.event_of_second(second, "generator_limited", limits.join("; "));
        }
        (rows, limits)
    }

    /// A hint and no verdict: these datagrams were not ours, but a server or a source beside us may have missed them.
    pub(super) fn write_host_losses(&mut self, at: RunTime) {
        let HostLosses { unreceived, unsent, .. } = self.health.losses;
        let unreceived = unreceived.saturating_sub(self.health.own_drops);
        if unreceived + unsent > 0 {
            let detail = format!(
                "on this host {unreceived} datagrams found full receive buffers of other programs, and {unsent} were \
                 thrown away on their way out: what a server or source here lost was not lost by a network"
            );
            let kind = "host_buffers_full".to_owned();
            self.event_row(EventRow { at, participant: None, kind, count: 1, detail });
        }
    }

    /// No reader takes in at once what a server sends at once after it stood still: that says nothing of the generator.
    pub(super) fn burst(&mut self, second: i64, thread: u16, dropped: u64, silent: Duration) {
        self.health.own_drops += dropped;
        let detail = format!(
            "{dropped} datagrams that came at once, after their sender had been silent for {:.1} s, found full receive buffers \
             of thread {thread}: the server's doing, and not counted as drops of the generator",
            silent.as_secs_f64()
        );
        let (at, kind) = (RunTime(second.saturating_mul(1_000_000)), BURST_DROPS_EVENT.to_owned());
        let count = u32::try_from(dropped).unwrap_or(u32::MAX);
        self.event_row(EventRow { at, participant: None, kind, count, detail });
    }

    fn event_of_second(&mut self, second: i64, kind: &str, detail: String) {
        let at = RunTime(second.saturating_mul(1_000_000));
        self.event_row(EventRow { at, participant: None, kind: kind.to_owned(), count: 1, detail });
    }
}
