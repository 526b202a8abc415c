//! Counters of the stage: workers increment them without locks, and `/stats` serves a snapshot.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A snapshot of the stage. Counts are totals since it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageStats {
    /// Milliseconds since the stage started.
    pub uptime_ms: u64,
    /// Sessions at `/whep` that were answered and have not ended.
    pub viewers: u64,
    /// Those of them whose ICE and DTLS are done.
    pub viewers_connected: u64,
    /// Sessions at `/whep` ever answered.
    pub viewers_total: u64,
    /// Offers refused with 503 because of `max_viewers`.
    pub viewers_refused: u64,
    /// Whether there is a publisher; otherwise the test card plays.
    pub publishing: bool,
    /// Media packets given to the kernel, retransmissions included.
    pub packets_sent: u64,
    /// Their UDP payload bytes.
    pub bytes_sent: u64,
    /// Packets dropped because the limited link's queue was full (`egress_bps`, `egress_queue_ms`).
    pub link_drops: u64,
    /// Packets that the kernel did not take (full socket buffer, unreachable viewer).
    pub send_errors: u64,
    /// Frames that a worker never sent because it was too far behind (bounded queue before each
    /// worker).
    pub worker_frame_drops: u64,
    /// Sequence numbers that viewers reported missing (generic NACK, RFC 4585 §6.2.1).
    pub nacks_received: u64,
    /// Packets retransmitted in response.
    pub packets_resent: u64,
    /// NACKed packets that were too old to be sent again.
    pub resend_misses: u64,
    /// Key frame requests (PLI, FIR) of viewers.
    pub key_frame_requests: u64,
    /// Receiver reports of viewers.
    pub receiver_reports: u64,
    /// Mean of the `fraction lost` of those reports, 0.0–1.0.
    pub reported_loss_ratio: f64,
    /// Datagrams taken from the workers' sockets.
    #[serde(default)]
    pub datagrams_received: u64,
    /// Datagrams that belonged to no session or did not authenticate.
    pub datagrams_refused: u64,
    /// Media packets received from the publisher.
    pub published_packets: u64,
    /// By worker.
    pub workers: Vec<WorkerStats>,
}

/// A worker thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerStats {
    /// The thread's name, as `top -H` shows it.
    pub name: String,
    /// Viewers that it serves.
    pub viewers: u64,
    /// Share of the last full second in which it was not waiting, 0.0–1.0.
    pub busy_ratio: f64,
    /// Packets sent by it.
    pub packets_sent: u64,
    /// How late its last frame began to be sent, microseconds after the media clock made it.
    pub frame_lag_us: u64,
    /// CPU time that its thread has used, microseconds (CLOCK_THREAD_CPUTIME_ID).
    pub cpu_us: u64,
}

macro_rules! worker_counters {
    (summed: $($summed:ident)+; own: $($own:ident)+) => {
        /// Counters of one worker, written only by its thread.
        #[derive(Debug, Default)]
        pub(crate) struct WorkerCounters {
            $(pub(crate) $summed: AtomicU64,)+
            $(pub(crate) $own: AtomicU64,)+
        }

        impl StageStats {
            fn add_sums(&mut self, worker: &WorkerCounters) {
                $(self.$summed += worker.$summed.load(Relaxed);)+
            }
        }
    };
}

// A snapshot has the sums of the first ones by the same names.
worker_counters! {
    summed: viewers_connected packets_sent bytes_sent link_drops send_errors nacks_received
        packets_resent resend_misses key_frame_requests datagrams_received datagrams_refused
        published_packets;
    own: viewers frame_drops receiver_reports fraction_lost_sum busy_permille frame_lag_us cpu_us
}

/// Adds to a counter that only this thread writes.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Relaxed);
}

impl StageStats {
    /// Adds what one worker counted.
    pub(crate) fn absorb(&mut self, name: String, worker: &WorkerCounters) {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        self.add_sums(worker);
        self.worker_frame_drops += get(&worker.frame_drops);
        let reports = get(&worker.receiver_reports);
        if reports > 0 {
            // Fractions are eighths of bits: 256 is everything (RFC 3550 §6.4.1).
            let earlier = self.reported_loss_ratio * self.receiver_reports as f64;
            let sum = get(&worker.fraction_lost_sum) as f64 / 256.0;
            self.receiver_reports += reports;
            self.reported_loss_ratio = (earlier + sum) / self.receiver_reports as f64;
        }
        self.workers.push(WorkerStats {
            name,
            viewers: get(&worker.viewers),
            busy_ratio: get(&worker.busy_permille) as f64 / 1000.0,
            packets_sent: get(&worker.packets_sent),
            frame_lag_us: get(&worker.frame_lag_us),
            cpu_us: get(&worker.cpu_us),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_loss_is_the_mean_over_all_reports_of_all_workers() {
        let worker = |reports, fractions| WorkerCounters {
            receiver_reports: AtomicU64::new(reports),
            fraction_lost_sum: AtomicU64::new(fractions),
            ..WorkerCounters::default()
        };
        let mut stats = StageStats::default();
        stats.absorb("a".into(), &worker(3, 0));
        stats.absorb("b".into(), &worker(1, 128));
        stats.absorb("idle".into(), &worker(0, 0));
        assert_eq!(stats.receiver_reports, 4);
        assert!((stats.reported_loss_ratio - 0.125).abs() < 1e-9);
        assert_eq!(stats.workers.len(), 3);
    }
}
