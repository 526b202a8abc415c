//! A narrow link: packets leave it at its rate, wait in its queue meanwhile, and are dropped when
//! the queue is full.
//!
//! A virtual clock, not a token bucket: a packet leaves when the previous one has left, plus its
//! own transmission time. The queue is bounded by time, as the buffer of a shaped link is.

use std::time::{Duration, Instant};

/// When packets leave a link of a given rate.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    bits_per_second: u64,
    queue_max: Duration,
    /// When all that was admitted has left.
    free_at: Instant,
}

impl Link {
    pub(crate) fn new(bits_per_second: u64, queue_max: Duration, now: Instant) -> Self {
        Self { bits_per_second: bits_per_second.max(1), queue_max, free_at: now }
    }

    /// When a packet of `bytes` that comes at `now` has left; `None` when it would wait longer than
    /// the queue is.
    pub(crate) fn admit(&mut self, now: Instant, bytes: usize) -> Option<Instant> {
        let begins = self.free_at.max(now);
        if begins.duration_since(now) > self.queue_max {
            return None;
        }
        let nanos = bytes as u128 * 8 * 1_000_000_000 / u128::from(self.bits_per_second);
        self.free_at = begins + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_idle_link_takes_only_the_time_of_the_bits() {
        let now = Instant::now();
        let mut link = Link::new(1_000_000, 100 * MS, now);
        assert_eq!(link.admit(now, 125), Some(now + MS));
        let later = now + 50 * MS;
        assert_eq!(link.admit(later, 125), Some(later + MS), "idle time is not saved up");
    }

    #[test]
    fn over_load_the_rate_holds_and_the_rest_is_dropped() {
        let start = Instant::now();
        let mut link = Link::new(1_000_000, 100 * MS, start);
        let (mut last, mut passed, mut dropped, mut worst) = (start, 0_u32, 0_u32, Duration::ZERO);
        for packet in 0..20_000_u32 {
            let now = start + packet * MS / 2; // twice the rate, for ten seconds
            match link.admit(now, 125) {
                Some(leaves) => {
                    assert!(leaves > last, "in order");
                    last = leaves;
                    passed += 1;
                    worst = worst.max(leaves - now);
                }
                None => dropped += 1,
            }
        }
        assert_eq!(passed + dropped, 20_000);
        assert!((10_000..=10_110).contains(&passed), "the rate, and one queue: {passed}");
        assert!(worst > 99 * MS && worst <= 102 * MS, "{worst:?}");
    }

    #[test]
    fn under_load_nothing_is_dropped() {
        let start = Instant::now();
        let mut link = Link::new(1_000_000, 10 * MS, start);
        assert!(
            (0..1_000_u32).all(|packet| link.admit(start + packet * MS * 11 / 10, 125).is_some())
        );
    }
}
