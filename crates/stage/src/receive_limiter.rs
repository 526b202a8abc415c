//! Limits how fast a worker reads its socket, if a slow reader is planted.

use std::time::Instant;

/// Time that a slow reader may catch up, seconds; much less would be lost to timer granularity.
const BURST_S: f64 = 0.05;

/// The rate limit of a worker's reads.
pub(crate) enum ReceiveLimiter {
    Free,
    Slow { per_s: f64, allowance: f64, at: Instant },
}

impl ReceiveLimiter {
    pub(crate) fn new(per_s: Option<u32>, now: Instant) -> Self {
        per_s.map_or(Self::Free, |per_s| Self::Slow {
            per_s: per_s.into(),
            allowance: 0.0,
            at: now,
        })
    }

    /// How many datagrams may be read at `now`.
    pub(crate) fn allowed(&mut self, now: Instant) -> usize {
        match self {
            Self::Free => usize::MAX,
            Self::Slow { per_s, allowance, at } => {
                let more = now.saturating_duration_since(*at).as_secs_f64() * *per_s;
                *allowance = (*allowance + more).min((*per_s * BURST_S).max(1.0));
                *at = now;
                *allowance as usize
            }
        }
    }

    /// Notes that `count` datagrams were read.
    pub(crate) fn took(&mut self, count: usize) {
        if let Self::Slow { allowance, .. } = self {
            *allowance -= count as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_slow_reader_keeps_its_rate_and_saves_up_little() {
        let start = Instant::now();
        let mut receive_limiter = ReceiveLimiter::new(Some(300), start);
        assert_eq!(receive_limiter.allowed(start), 0);
        let mut taken = 0;
        for ms in (10..=10_000).step_by(10) {
            let allowed = receive_limiter.allowed(start + Duration::from_millis(ms));
            receive_limiter.took(allowed);
            taken += allowed;
        }
        assert!((2_999..=3_000).contains(&taken), "{taken}");
        assert_eq!(receive_limiter.allowed(start + Duration::from_secs(100)), 15);
        assert_eq!(ReceiveLimiter::new(None, start).allowed(start), usize::MAX);
    }
}
