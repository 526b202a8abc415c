//! The generator's own health: rows of threads and process, exceeded limits, and lost packets of
//! the host.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_observation::RunTime;
use throng_observation::limits::{BURST_DROPS_EVENT, RING_BURST_DROPS_EVENT};
use throng_observation::run::{EventRow, GeneratorRow};

use crate::health::{HostLosses, Machine, limits_passed};
use crate::memory_use::MemoryUse;

/// Health of open seconds, and losses of the host since the run began.
pub(super) struct Health {
    machine: Machine,
    rows: BTreeMap<i64, Vec<GeneratorRow>>,
    /// A sentence for each open second in which the host was past its limit.
    host: BTreeMap<i64, String>,
    losses: HostLosses,
    /// Datagrams that throng's own sockets dropped, without those of its rings, which the host
    /// counts nowhere.
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
        self.own_drops += row.socket_drops.saturating_sub(row.ring_drops);
        self.rows.entry(row.second).or_default().push(row);
    }

    /// What the process uses of the memory that it may use.
    pub(super) fn memory(&self) -> MemoryUse {
        self.machine.memory_use()
    }

    /// Reads the process's own health and the host's losses for `second`. Returns a sentence if the
    /// host lost too much.
    pub(super) fn measure(&mut self, second: i64) -> Option<String> {
        let (row, losses) = self.machine.measure(second);
        self.add(row);
        self.losses += losses;
        let host = losses.past_limit().filter(|_| second >= 0);
        self.host.extend(host.clone().map(|detail| (second, detail)));
        host
    }

    /// Takes the health rows up to `second`, late ones of earlier seconds included, and their
    /// exceeded limits.
    pub(super) fn take(&mut self, second: i64) -> (Vec<GeneratorRow>, Vec<String>) {
        let later = self.rows.split_off(&(second + 1));
        let rows = std::mem::replace(&mut self.rows, later).into_values().flatten();
        // Rows of the time before RunTime 0 are not part of the run.
        let rows: Vec<_> = rows.filter(|row| row.second >= 0).collect();
        let mut limits = limits_passed(&rows);
        let later = self.host.split_off(&(second + 1));
        limits.extend(std::mem::replace(&mut self.host, later).into_values());
        (rows, limits)
    }

    /// The event of datagrams that overflowed a receive buffer, or a ring, in a burst after
    /// silence. No reader is fast enough for such a burst, so it is no limit of the generator.
    pub(super) fn burst(
        &mut self,
        (second, thread): (i64, u16),
        dropped: u64,
        silent: Duration,
        by_ring: bool,
    ) -> EventRow {
        self.own_drops += if by_ring { 0 } else { dropped };
        let (kind, full) = if by_ring {
            (RING_BURST_DROPS_EVENT, "a full receive ring")
        } else {
            (BURST_DROPS_EVENT, "full receive buffers")
        };
        let detail = format!(
            "{dropped} datagrams that came at once, after their sender had been silent for {:.1} \
             s, found {full} of thread {thread}: the server's doing, and not counted as drops of \
             the generator",
            silent.as_secs_f64()
        );
        let count = u32::try_from(dropped).unwrap_or(u32::MAX);
        EventRow { count, ..event_of_second(second, kind, detail) }
    }

    /// The event of datagrams of other programs that this host dropped: a server or source on it
    /// may have missed them. Only a hint, since they were not throng's.
    pub(super) fn losses_of_others(&self, at: RunTime) -> Option<EventRow> {
        let HostLosses { unreceived, unsent, .. } = self.losses;
        let unreceived = unreceived.saturating_sub(self.own_drops);
        (unreceived + unsent > 0).then(|| {
            let detail = format!(
                "on this host {unreceived} datagrams found full receive buffers of other \
                 programs, and {unsent} were thrown away on their way out: what a server or \
                 source here lost was not lost by a network"
            );
            event_at(at, "host_buffers_full", detail)
        })
    }
}

/// An event of the generator itself in `second`.
pub(super) fn event_of_second(second: i64, kind: &str, detail: String) -> EventRow {
    event_at(RunTime(second.saturating_mul(1_000_000)), kind, detail)
}

fn event_at(at: RunTime, kind: &str, detail: String) -> EventRow {
    EventRow { at, participant: None, kind: kind.to_owned(), count: 1, detail: detail.into() }
}
