//! How fast a worker takes in what has come to its socket: as fast as it can, or, where that is planted, as a slow reader.

use std::time::Instant;

/// What a slow reader that was away may make up for: a twentieth of a second. Much less would be lost to the timers' grain.
const BURST_S: f64 = 0.05;

/// What a worker may take in now.
pub(crate) enum Intake {
    Free,
    Slow { per_s: f64, allowance: f64, at: Instant },
}

impl Intake {
    pub(crate) fn new(per_s: Option<u32>, now: Instant) -> Self {
        per_s.map_or(Self::Free, |per_s| Self::Slow { per_s: per_s.into(), allowance: 0.0, at: now })
    }

    /// How many datagrams may be taken at `now`.
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

    /// Notes that so many were taken.
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
        let mut intake = Intake::new(Some(300), start);
        assert_eq!(intake.allowed(start), 0);
        let mut taken = 0;
        for ms in (10..=10_000).step_by(10) {
            let allowed = intake.allowed(start + Duration::from_millis(ms));
            intake.took(allowed);
            taken += allowed;
        }
        assert!((2_999..=3_000).contains(&taken), "{taken}");
        assert_eq!(intake.allowed(start + Duration::from_secs(100)), 15);
        assert_eq!(Intake::new(None, start).allowed(start), usize::MAX);
    }
}
