//! Guards that abort a run: when nearly all joins fail, and when the bit rate exceeds its cap.

use std::collections::VecDeque;

use throng_observation::RunTime;

use crate::config::Guards;

/// Most join results kept; dropping the oldest only shortens the window of a very fast ramp.
const DECISIONS_MAX: usize = 100_000;

/// Aborts a run in which nearly all joins fail.
#[derive(Debug)]
pub(crate) struct JoinFailureGuard {
    guards: Guards,
    decided: VecDeque<(RunTime, bool)>,
    since: Option<RunTime>,
}

impl JoinFailureGuard {
    pub(crate) fn new(guards: Guards) -> Self {
        Self { guards, decided: VecDeque::new(), since: None }
    }

    /// Records that a join succeeded or failed, once per join.
    pub(crate) fn decided(&mut self, at: RunTime, succeeded: bool) {
        self.since.get_or_insert(at);
        if self.decided.len() >= DECISIONS_MAX {
            self.decided.pop_front();
        }
        self.decided.push_back((at, succeeded));
    }

    /// The reason to abort the run, if there is one.
    pub(crate) fn reason_to_abort(&mut self, now: RunTime) -> Option<String> {
        let window = RunTime::after_start(self.guards.connect_failure_window).0;
        while self.decided.front().is_some_and(|(at, ..)| at.0 < now.0 - window) {
            self.decided.pop_front();
        }
        let attempts = self.decided.len();
        let failed = self.decided.iter().filter(|(.., succeeded)| !succeeded).count();
        // A whole window must have passed: a server may be slow to start.
        let whole = self.since.is_some_and(|since| now.0 - since.0 >= window);
        let too_many = failed as f64 > self.guards.connect_failure_ratio_max * attempts as f64;
        (whole && attempts >= self.guards.connect_attempts_min as usize && too_many).then(|| {
            format!("{failed} of the last {attempts} joins failed within {} s", window / 1_000_000)
        })
    }
}

/// Aborts a run whose bit rate exceeds its cap.
#[derive(Debug)]
pub(crate) struct LoadGuard {
    guards: Guards,
    seconds_above: u32,
}

impl LoadGuard {
    pub(crate) fn new(guards: Guards) -> Self {
        Self { guards, seconds_above: 0 }
    }

    /// Records the bytes on the wire of a second, received and sent; returns a reason to abort the
    /// run, if any.
    pub(crate) fn second(&mut self, bytes: u64) -> Option<String> {
        let max = self.guards.mbit_per_s_max?;
        let mbit_per_s = bytes as f64 * 8.0 / 1e6;
        self.seconds_above = if mbit_per_s > max { self.seconds_above + 1 } else { 0 };
        (self.seconds_above >= self.guards.mbit_per_s_seconds.max(1)).then(|| {
            format!(
                "{mbit_per_s:.1} Mbit/s were received and sent, more than the {max} Mbit/s \
                 allowed, for {} s",
                self.seconds_above
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rate_that_stays_above_what_is_allowed_ends_the_run() {
        const ABOVE: u64 = 1_300_000;
        const WITHIN: u64 = 1_250_000;
        for (seconds, expect) in [
            (&[ABOVE, ABOVE, WITHIN, ABOVE, ABOVE][..], false),
            (&[WITHIN, ABOVE, ABOVE, ABOVE], true),
            (&[WITHIN; 10], false),
        ] {
            let ends = |max| {
                let mut watch = LoadGuard::new(Guards { mbit_per_s_max: max, ..Guards::default() });
                seconds.iter().any(|bytes| watch.second(*bytes).is_some())
            };
            assert_eq!((ends(Some(10.0)), ends(None)), (expect, false), "{seconds:?}");
        }
    }

    #[test]
    fn a_target_that_refuses_nearly_everybody_for_a_whole_window_ends_the_run() {
        for (every_ms, seconds, good_every, expect) in [
            (100, 11, 1000, true),   // all fail
            (100, 9, 1000, false),   // not long enough
            (1000, 30, 1000, false), // too few in a window
            (100, 30, 5, false),     // one of five succeeds
        ] {
            let mut watch = JoinFailureGuard::new(Guards::default());
            let mut ended = false;
            for n in 1..=(seconds * 1000 / every_ms) {
                let at = RunTime(i64::from(n * every_ms) * 1000);
                watch.decided(at, n % good_every == 0);
                ended |= watch.reason_to_abort(at).is_some();
            }
            assert_eq!(
                ended, expect,
                "every {every_ms} ms for {seconds} s, one in {good_every} good"
            );
        }
    }
}
