//! One direction of a link: when each packet arrives, and which are lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::Conditions;

/// One direction of a link.
#[derive(Debug)]
pub(super) struct Queue {
    conditions: Conditions,
    random: fastrand::Rng,
    /// By delivery time, then by arrival: without jitter no packet overtakes another.
    packets: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>>,
    arrivals: u64,
    /// When the line has sent all queued packets.
    line_free_at: Option<Instant>,
}

impl Queue {
    pub(super) fn new(conditions: Conditions) -> Self {
        let random = fastrand::Rng::with_seed(7);
        Self { conditions, random, packets: BinaryHeap::new(), arrivals: 0, line_free_at: None }
    }

    /// Queues a packet, or loses it.
    pub(super) fn push(&mut self, now: Instant, packet: &[u8]) {
        let Conditions { delay_ms, jitter_ms, loss_percent, rate_kbps, queue_packets } =
            self.conditions;
        if self.packets.len() >= queue_packets || self.random.f64() * 100.0 < loss_percent {
            return;
        }
        let mut sent_at = now;
        if let Some(time_ns) = (packet.len() as u64 * 8_000_000).checked_div(rate_kbps) {
            sent_at =
                self.line_free_at.map_or(now, |free| free.max(now)) + Duration::from_nanos(time_ns);
            self.line_free_at = Some(sent_at);
        }
        let jitter_ms = jitter_ms * (self.random.f64() * 2.0 - 1.0);
        let due = sent_at + Duration::from_secs_f64((delay_ms + jitter_ms).max(0.0) / 1e3);
        self.arrivals += 1;
        self.packets.push(Reverse((due, self.arrivals, packet.to_vec())));
    }

    /// When the next packet arrives at the far end.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.packets.peek().map(|Reverse((due, ..))| *due)
    }

    /// A packet that has arrived at the far end by `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.next_due()? > now {
            return None;
        }
        self.packets.pop().map(|Reverse((_, _, packet))| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_arrives_after_the_delay_and_in_order() {
        let (mut queue, t0) = (Queue::new(Conditions::delay(20.0)), Instant::now());
        queue.push(t0, b"a");
        queue.push(t0, b"b");
        assert_eq!(queue.pop_due(t0 + Duration::from_millis(19)), None);
        assert_eq!(queue.next_due(), Some(t0 + Duration::from_millis(20)));
        let at = t0 + Duration::from_millis(20);
        assert_eq!(
            (queue.pop_due(at), queue.pop_due(at)),
            (Some(b"a".to_vec()), Some(b"b".to_vec()))
        );
    }

    #[test]
    fn a_line_rate_spaces_packets_and_a_full_queue_drops() {
        let conditions = Conditions { rate_kbps: 800, queue_packets: 3, ..Conditions::delay(0.0) };
        let (mut queue, t0) = (Queue::new(conditions), Instant::now());
        (0..9).for_each(|_| queue.push(t0, &[0; 1000])); // 10 ms each at 800 kbit/s
        let due = std::iter::from_fn(|| {
            let due = queue.next_due()?;
            queue.pop_due(due).map(|_| (due - t0).as_millis())
        });
        assert_eq!(due.collect::<Vec<_>>(), [10, 20, 30]);
    }

    #[test]
    fn loss_and_jitter_stay_within_their_settings() {
        let conditions =
            Conditions { loss_percent: 5.0, jitter_ms: 5.0, ..Conditions::delay(20.0) };
        let (mut queue, t0) = (Queue::new(conditions), Instant::now());
        (0..10_000).for_each(|_| queue.push(t0, b"x"));
        let arrived = queue.packets.len();
        assert!((9_400..9_600).contains(&arrived), "{arrived}");
        let range = Duration::from_millis(15)..=Duration::from_millis(25);
        assert!(queue.packets.iter().all(|Reverse((due, ..))| range.contains(&(*due - t0))));
    }
}
