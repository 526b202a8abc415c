//! The lives of the watched processes, and which of them are the server's.
//!
//! Processes come and go on a busy host: a transcoder ends with its job, beside a bad second or
//! not. The server is what was there when the crowd was small, and what took its place.

use std::collections::{BTreeSet, HashMap};

use throng_observation::host::{HowEnded, Life, measured::Host};

use crate::windows::Windows;

/// Where there is no baseline, the server is what is found as soon as the first process: its parts
/// are within a pass or two.
const TOGETHER_US: i64 = 2_000_000;
/// The longest time in which a supervisor starts a server again.
const RESTART_US_MAX: i64 = 60_000_000;
/// One pass of the watcher may find the next process before it sees that the last one ended.
const NOTICED_US: i64 = 3_000_000;

/// The lives of a host's watched processes, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    all: Vec<Life>,
    /// Which of them are the server's.
    own: Vec<bool>,
}

impl Lives {
    pub(super) fn of(host: &Host<'_>, windows: &Windows) -> Self {
        let all = host.lives();
        let own = are_own(&all, windows.base.map(|base| base.window.until_us));
        Self { all, own }
    }

    pub(crate) fn all(&self) -> &[Life] {
        &self.all
    }

    /// Those of the server: found by the end of the baseline, and their successors.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Life> {
        self.all.iter().zip(&self.own).filter(|(_, is_own)| **is_own).map(|(life, _)| life)
    }
}

fn are_own(lives: &[Life], baseline_us: Option<i64>) -> Vec<bool> {
    let first_us = lives.iter().filter_map(|life| life.found).map(|at| at.0).min();
    let known_by_us = baseline_us.or(first_us.map(|at| at.saturating_add(TOGETHER_US)));
    let mut places = Places::default();
    let is_own = |life: &Life| {
        let was_there =
            life.found.zip(known_by_us).is_none_or(|(found, known_by_us)| found.0 <= known_by_us);
        let is_own = was_there || places.has_one_for(life);
        if is_own {
            places.left_by(life);
        }
        is_own
    };
    lives.iter().map(is_own).collect()
}

/// When lives of the server ended, and so left their place to a successor, microseconds.
#[derive(Default)]
struct Places {
    by_kind: HashMap<(u32, String), BTreeSet<i64>>,
    /// Of those that run on as another program.
    by_pid: HashMap<u32, BTreeSet<i64>>,
}

impl Places {
    fn left_by(&mut self, life: &Life) {
        let (Some(ended), Some(end)) = (life.ended, life.end()) else { return };
        let ends = match end.how {
            HowEnded::Replaced => self.by_pid.entry(life.process.pid).or_default(),
            HowEnded::Exit { .. } | HowEnded::Signal { .. } | HowEnded::Unknown => {
                self.by_kind.entry(kind(life)).or_default()
            }
        };
        ends.insert(ended.0);
    }

    /// Whether `life` took a place that was left.
    fn has_one_for(&self, life: &Life) -> bool {
        let Some(found) = life.found else { return false };
        let left_us = found.0.saturating_sub(RESTART_US_MAX)..=found.0.saturating_add(NOTICED_US);
        let ends = [self.by_kind.get(&kind(life)), self.by_pid.get(&life.process.pid)];
        ends.into_iter().flatten().any(|ends| ends.range(left_us.clone()).next().is_some())
    }
}

fn kind(life: &Life) -> (u32, String) {
    let (target, name) = life.kind();
    (target, name.to_owned())
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;
    use throng_observation::host::{ProcessEnd, ProcessEvent};

    use super::*;

    fn life(name: &str, pid: u32, from_s: i64, until_s: Option<i64>, how: HowEnded) -> Life {
        let at = |s: i64| RunTime(s * 1_000_000);
        let end = until_s.map(|_| ProcessEnd::new(how));
        let process = ProcessEvent { target: 0, name: name.into(), pid, end };
        Life { process, found: Some(at(from_s)), ended: until_s.map(at) }
    }

    #[test]
    fn a_successor_takes_the_place_of_its_kind_and_a_job_takes_none() {
        let exit = HowEnded::Exit { code: 0 };
        let lives = [
            life("sh", 7, 0, Some(1), HowEnded::Replaced),
            life("worker", 8, 0, Some(100), exit),
            life("worker", 9, 0, None, exit),
            life("media", 7, 2, None, exit),
            life("job", 20, 50, Some(51), exit),
            life("job", 21, 52, Some(53), exit),
            // A place that another worker of the kind left, which lives on.
            life("worker", 10, 101, None, exit),
            // No place was left within a minute.
            life("worker", 11, 170, None, exit),
        ];
        let own = are_own(&lives, Some(1_000_000));
        assert_eq!(own, [true, true, true, true, false, false, true, false]);
    }

    #[test]
    fn many_jobs_that_follow_each_other_are_told_in_a_moment() {
        let exit = HowEnded::Exit { code: 0 };
        let jobs = (0..50_000).map(|n| life("job", n, i64::from(n), Some(i64::from(n) + 1), exit));
        let own = are_own(&jobs.collect::<Vec<_>>(), Some(1_000_000));
        assert!(own.iter().all(|is_own| *is_own));
    }
}
