//! What a proof needs of this machine, said before it begins: an hour later its pairs are discarded
//! for what could be seen at once.

use std::time::{Duration, Instant};

use throng_analysis::experiment::OTHERS_MAX;
use throng_observation::limits::STEAL_RATIO_MAX;
use throng_observation::units::percent;
use throng_rig::CpuTimes;

use crate::console::Interrupt;

/// How long this machine is watched.
const WATCHED_FOR: Duration = Duration::from_secs(1);

/// The use of this machine while nothing of a proof runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    cores: usize,
    /// Share of all CPU time that is used: by others, for nothing of the run before is left.
    pub(super) busy_ratio: f64,
    /// Share that a hypervisor takes.
    steal_ratio: f64,
}

impl Machine {
    /// As it is now.
    pub(super) fn now(interrupt: &Interrupt) -> Self {
        let (before, began) = (CpuTimes::so_far(), Instant::now());
        while began.elapsed() < WATCHED_FOR && !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let now = CpuTimes::so_far();
        Self {
            cores: throng_rig::cpus_allowed(),
            busy_ratio: now.busy_ratio_since(before),
            steal_ratio: now.steal_ratio_since(before),
        }
    }

    /// What a proof needs whose planned runs take between these times, in sentences; the last ones
    /// are what it does not have. Two runs of a pair may differ by `busy_difference` in what others
    /// use.
    pub(super) fn said(&self, [least, most]: [Duration; 2], busy_difference: f64) -> Vec<String> {
        let cores = self.cores as f64;
        let left = cores * (1.0 - self.busy_ratio).clamp(0.0, 1.0);
        let mut said = vec![format!(
            "needs {} to {} min (pairs that do not count are made once more); ends sooner once it \
             is decided; other processes leave {left:.1} of {cores} cores",
            minutes(least),
            minutes(most * 2),
        )];
        if self.busy_ratio > OTHERS_MAX {
            said.push(format!(
                "warning: other processes use {} of the CPU time, which server and crowd may \
                 need; a pair counts only if its runs differ in that by at most {}, and some CPU \
                 time was left in both",
                percent(self.busy_ratio),
                percent(busy_difference)
            ));
        }
        if self.steal_ratio > STEAL_RATIO_MAX {
            said.push(format!(
                "warning: a hypervisor takes {} of the CPU time; pairs in which that differs do \
                 not count",
                percent(self.steal_ratio)
            ));
        }
        said
    }
}

/// Whole minutes, at least one: nobody waits by the second.
pub(super) fn minutes(takes: Duration) -> u64 {
    takes.as_secs().div_ceil(60).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_lacks_is_said_before_the_first_run() {
        let said = |busy_ratio: f64, steal_ratio: f64| {
            Machine { cores: 2, busy_ratio, steal_ratio }.said([Duration::from_secs(208); 2], 0.25)
        };
        let quiet = said(0.02, 0.01);
        assert_eq!(quiet.len(), 1, "{quiet:?}");
        assert!(
            quiet[0].starts_with("needs 4 to 7 min (")
                && quiet[0].ends_with("once it is decided; other processes leave 2.0 of 2 cores"),
            "{quiet:?}"
        );
        assert_eq!([0, 60, 61].map(|s| minutes(Duration::from_secs(s))), [1, 1, 2]);
        let taken = said(0.51, 0.01);
        assert!(taken.len() == 2 && taken[1].contains("processes use 51"), "{taken:?}");
        assert!(taken[0].ends_with("processes leave 1.0 of 2 cores"), "{taken:?}");
        let stolen = said(0.02, 0.12);
        assert!(stolen.len() == 2 && stolen[1].contains("a hypervisor takes 12"), "{stolen:?}");
    }
}
