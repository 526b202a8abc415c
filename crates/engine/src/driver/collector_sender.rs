//! Sends the observations of an engine thread to the collector: in batches, bounded, without
//! blocking.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use throng_observation::run::GeneratorRow;
use throng_observation::{Observation, Outcome};

use crate::requests::RequestTable;

/// An event of a participant, identified by its index in the plan, or of the thread itself.
#[derive(Debug)]
pub(crate) enum DriverEvent {
    Started {
        id: u32,
        at: Instant,
    },
    Observed {
        id: u32,
        at: Instant,
        observation: Observation,
    },
    LocalAddress {
        id: u32,
        address: SocketAddr,
    },
    RefusedSend {
        id: u32,
        at: Instant,
        to: SocketAddr,
    },
    UnreachableSend {
        id: u32,
        at: Instant,
        to: SocketAddr,
        why: ErrorKind,
    },
    Ended {
        id: u32,
        at: Instant,
        outcome: Outcome,
    },
    Health(GeneratorRow),
    /// Requests of players that have ended.
    Requests(RequestTable),
    /// The way changed in which datagrams are received.
    Receive {
        at: Instant,
        thread: u16,
        kind: &'static str,
        detail: String,
    },
    /// Datagrams that overflowed receive buffers, or a ring, because a silent sender resumed with a
    /// burst.
    Burst {
        second: i64,
        thread: u16,
        dropped: u64,
        silent: Duration,
        by_ring: bool,
    },
}

/// Capacity of the channel to the collector, batches of all threads together.
pub(crate) const BATCHES_MAX: usize = 256;

/// Events in a full batch.
const BATCH: usize = 512;

/// How often a partial batch is sent. Each batch wakes the collector, and intervals are a second
/// long.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// Events held while the collector is behind, not counting those that must not be lost.
const HELD_MAX: usize = 16 * BATCH;

/// A thread's end of the channel.
pub(crate) struct CollectorSender {
    held: Vec<DriverEvent>,
    to: SyncSender<Vec<DriverEvent>>,
    dropped: u64,
    flushed_at: Option<Instant>,
}

impl CollectorSender {
    pub(crate) fn new(to: SyncSender<Vec<DriverEvent>>) -> Self {
        Self { held: Vec::with_capacity(BATCH), to, dropped: 0, flushed_at: None }
    }

    pub(crate) fn push(&mut self, seen: DriverEvent) {
        self.held.push(seen);
        if self.held.len().is_multiple_of(BATCH) {
            self.flush();
        }
    }

    /// Sends what is held once [`FLUSH_EVERY`] has passed.
    pub(crate) fn flush_in_time(&mut self, now: Instant) {
        let waits = |at: Instant| now.saturating_duration_since(at) < FLUSH_EVERY;
        if !self.flushed_at.is_some_and(waits) {
            self.flushed_at = Some(now);
            self.flush();
        }
    }

    /// Sends what is held. While the collector is behind, keeps it; beyond [`HELD_MAX`] drops
    /// intervals and anomalies. Starts and ends of participants are never dropped: their number is
    /// bounded.
    fn flush(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut self.held, Vec::with_capacity(BATCH));
        if let Err(TrySendError::Full(batch)) = self.to.try_send(batch) {
            self.held = batch;
            if self.held.len() >= HELD_MAX {
                let before = self.held.len();
                self.held.retain(must_not_be_lost);
                self.dropped += (before - self.held.len()) as u64;
            }
        }
    }

    /// Sends what is held and blocks until the collector takes it; for the end of the run.
    pub(crate) fn finish(mut self) {
        let _ = self.to.send(std::mem::take(&mut self.held));
    }

    /// Events dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

fn must_not_be_lost(seen: &DriverEvent) -> bool {
    match seen {
        DriverEvent::Started { .. }
        | DriverEvent::Ended { .. }
        | DriverEvent::LocalAddress { .. } => true,
        DriverEvent::Health(_) | DriverEvent::Burst { .. } | DriverEvent::Requests(_) => true,
        DriverEvent::Receive { .. } => true,
        DriverEvent::Observed { observation, .. } => {
            matches!(
                observation,
                Observation::Reached(..)
                    | Observation::TrackOpened { .. }
                    | Observation::Mutes { .. }
                    | Observation::Ice(_)
            )
        }
        // Counted as dropped observations.
        DriverEvent::RefusedSend { .. } | DriverEvent::UnreachableSend { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_collector_that_does_not_keep_up_costs_anomalies_but_no_lives() {
        let (to, from) = mpsc::sync_channel(1);
        let mut collector = CollectorSender::new(to);
        let at = Instant::now();
        let odd = || Observation::ProtocolAnomaly { place: "test", detail: "".into() };
        for id in 0..40_000 {
            collector.push(DriverEvent::Observed { id, at, observation: odd() });
            if id % 1000 == 0 {
                collector.push(DriverEvent::Ended { id, at, outcome: Outcome::Completed });
            }
        }
        assert!(collector.held.len() <= HELD_MAX + BATCH);
        let dropped = collector.take_dropped();
        assert!(dropped > 20_000, "{dropped}");
        let mut ended = 0;
        let mut count = |batch: Vec<DriverEvent>| {
            ended += batch.iter().filter(|s| matches!(s, DriverEvent::Ended { .. })).count();
        };
        count(from.recv().unwrap());
        collector.finish();
        from.iter().for_each(count);
        assert_eq!(ended, 40);
    }
}
