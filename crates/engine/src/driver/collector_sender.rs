//! What a thread saw on its way to the collector: gathered, bounded, never waited for.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use throng_observation::run::GeneratorRow;
use throng_observation::{Observation, Outcome};

/// Something seen of the participant at this place of the plan, or of the thread itself.
#[derive(Debug)]
pub(crate) enum DriverEvent {
    Started {
        who: u32,
        at: Instant,
    },
    Observed {
        who: u32,
        at: Instant,
        observation: Observation,
    },
    LocalAddress {
        who: u32,
        address: SocketAddr,
    },
    RefusedSend {
        who: u32,
        at: Instant,
        to: SocketAddr,
    },
    UnreachableSend {
        who: u32,
        at: Instant,
        to: SocketAddr,
        why: ErrorKind,
    },
    Ended {
        who: u32,
        at: Instant,
        outcome: Outcome,
    },
    Health(GeneratorRow),
    /// What came at once after its sender had been silent, and found full receive buffers.
    Burst {
        second: i64,
        thread: u16,
        dropped: u64,
        silent: Duration,
    },
}

/// Batches that may wait for the collector, of all threads together.
pub(crate) const BATCHES_MAX: usize = 256;

/// A batch goes out when it holds this many, or at the next flush.
const BATCH: usize = 512;

/// A batch that is not full goes out this often: each wakes the collector, and an interval is a second long.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// What is kept at most while the collector does not keep up, besides what must not be lost.
const HELD_MAX: usize = 16 * BATCH;

/// The thread's end.
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

    /// Hands over what is held, when it has waited long enough.
    pub(crate) fn flush_in_time(&mut self, now: Instant) {
        let waits = |at: Instant| now.saturating_duration_since(at) < FLUSH_EVERY;
        if !self.flushed_at.is_some_and(waits) {
            self.flushed_at = Some(now);
            self.flush();
        }
    }

    /// Hands over what is held; when the collector is behind, keeps it, and beyond [`HELD_MAX`] drops intervals and
    /// anomalies first. How participants live and end is never dropped: that is bounded by their number.
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

    /// Hands over what is held, waiting for the collector: at the end, when there is nothing left to be late for.
    pub(crate) fn finish(mut self) {
        let _ = self.to.send(std::mem::take(&mut self.held));
    }

    /// How many were dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

fn must_not_be_lost(seen: &DriverEvent) -> bool {
    match seen {
        DriverEvent::Started { .. } | DriverEvent::Ended { .. } | DriverEvent::LocalAddress { .. } => true,
        DriverEvent::Health(_) | DriverEvent::Burst { .. } => true,
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
        let odd = || Observation::ProtocolAnomaly { place: "test", detail: String::new() };
        for who in 0..40_000 {
            collector.push(DriverEvent::Observed { who, at, observation: odd() });
            if who % 1000 == 0 {
                collector.push(DriverEvent::Ended { who, at, outcome: Outcome::Completed });
            }
        }
        assert!(collector.held.len() <= HELD_MAX + BATCH);
        let dropped = collector.take_dropped();
        assert!(dropped > 20_000, "{dropped}");
        let mut ended = 0;
        let mut count = |batch: Vec<DriverEvent>| {
            ended += batch.iter().filter(|s| matches!(s, DriverEvent::Ended { .. })).count()
        };
        count(from.recv().unwrap());
        collector.finish();
        from.iter().for_each(count);
        assert_eq!(ended, 40);
    }
}
