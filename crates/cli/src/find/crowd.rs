//! Brings the crowd to the size that the search wants: calls who is missing at the rate of the scenario, dismisses who is
//! too many.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use throng_observation::RunTime;
use throng_observation::run::{CohortId, ParticipantId};

/// Who is there under a load.
#[derive(Clone, Debug)]
pub(super) enum Who {
    /// As many as the load says.
    Sized {
        /// Cohorts that stay as they are, with their sizes.
        fixed: Vec<(CohortId, u32)>,
        /// The cohort whose size is searched.
        varying: CohortId,
    },
    /// Loads from 1 on are crowds of their own, each of whole cohorts; one of them is there at a time.
    Valued(Vec<Vec<(CohortId, u32)>>),
}

/// How the crowd is made up.
#[derive(Clone, Debug)]
pub(super) struct MakeUp {
    pub(super) who: Who,
    /// Joins a second.
    pub(super) joins_per_s: f64,
    /// The local addresses that participants are dealt in turn; empty lets the kernel choose.
    pub(super) source_ips: Vec<IpAddr>,
    /// After so long somebody who was called counts, whatever became of the join.
    pub(super) patience: Duration,
}

/// What the crowd is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Call { cohort: CohortId, at: RunTime, source_ip: Option<IpAddr> },
    Dismiss(ParticipantId),
}

/// The crowd as it is.
#[derive(Debug)]
pub(super) struct Crowd {
    make_up: MakeUp,
    /// Who is there of the varying cohort, the oldest first.
    present: VecDeque<ParticipantId>,
    /// Who failed, and still counts.
    failed: BTreeSet<ParticipantId>,
    /// Of whole cohorts, who has yet to be called.
    whole_left: Vec<CohortId>,
    /// Who is there of cohorts that come and go as a whole.
    whole: Vec<ParticipantId>,
    fixed: u32,
    called: u64,
    next_at: RunTime,
    /// Since when the crowd has the size that is wanted.
    right_since: Option<RunTime>,
    /// When somebody was last called.
    called_at: Option<RunTime>,
    wants: u32,
}

impl Crowd {
    pub(super) fn new(make_up: MakeUp) -> Self {
        let whole_left = match &make_up.who {
            Who::Sized { fixed, .. } => heads(fixed),
            Who::Valued(_) => Vec::new(),
        };
        Self {
            fixed: whole_left.len() as u32,
            make_up,
            present: VecDeque::new(),
            failed: BTreeSet::new(),
            whole_left,
            whole: Vec::new(),
            called: 0,
            next_at: RunTime(0),
            right_since: None,
            called_at: None,
            wants: 0,
        }
    }

    /// The smallest crowd that there can be.
    pub(super) fn fixed(&self) -> u32 {
        self.fixed
    }

    /// Notes who failed: they are the first to go.
    pub(super) fn note_failed(&mut self, failed: BTreeSet<ParticipantId>) {
        self.failed.extend(failed);
    }

    /// Whether the crowd had the wanted size, and everybody the time to join, throughout the second that ends at `end`.
    pub(super) fn was_complete(&self, end: RunTime) -> bool {
        let patience_us = i64::try_from(self.make_up.patience.as_micros()).unwrap_or(i64::MAX);
        let begin_us = end.0 - 1_000_000;
        let is_right = self.right_since.is_some_and(|since| begin_us >= since.0);
        is_right && self.called_at.is_none_or(|at| begin_us >= at.0.saturating_add(patience_us))
    }

    /// The steps towards `wants` participants that are due at `now`. `did` does a step and tells who was called.
    pub(super) fn aim(
        &mut self,
        wants: u32,
        now: RunTime,
        mut did: impl FnMut(Step) -> Option<ParticipantId>,
    ) {
        if wants != self.wants {
            self.wants = wants;
            self.right_since = None;
            // A new load begins with a whole crowd: who failed under the old one makes room for somebody new.
            self.replace_failed(&mut did);
            self.replace_whole(&mut did);
            self.next_at = self.next_at.max(now);
        }
        let (varying, of_varying) = match self.make_up.who {
            Who::Sized { varying, .. } => (varying, wants.saturating_sub(self.fixed) as usize),
            Who::Valued(_) => (CohortId(0), 0),
        };
        while self.present.len() > of_varying {
            if let Some(participant) = self.present.pop_back() {
                did(Step::Dismiss(participant));
            }
        }
        let gap_us = (1e6 / self.make_up.joins_per_s.max(0.001)) as i64;
        while self.next_at <= now && (!self.whole_left.is_empty() || self.present.len() < of_varying) {
            let (is_whole, cohort) = match self.whole_left.pop() {
                Some(cohort) => (true, cohort),
                None => (false, varying),
            };
            let called = did(Step::Call { cohort, at: self.next_at, source_ip: self.source_ip() });
            self.called += 1;
            self.called_at = Some(now);
            self.next_at = RunTime(self.next_at.0 + gap_us);
            match called {
                Some(participant) if is_whole => self.whole.push(participant),
                Some(participant) => self.present.push_back(participant),
                None => {}
            }
        }
        if self.whole_left.is_empty() && self.present.len() == of_varying {
            self.right_since.get_or_insert(now);
        }
    }

    fn replace_failed(&mut self, did: &mut impl FnMut(Step) -> Option<ParticipantId>) {
        let failed = std::mem::take(&mut self.failed);
        self.present.retain(|participant| {
            let is_failed = failed.contains(participant);
            if is_failed {
                did(Step::Dismiss(*participant));
            }
            !is_failed
        });
    }

    /// Another value: everybody leaves, and its own crowd comes.
    fn replace_whole(&mut self, did: &mut impl FnMut(Step) -> Option<ParticipantId>) {
        let Who::Valued(crowds) = &self.make_up.who else { return };
        for participant in self.whole.drain(..) {
            did(Step::Dismiss(participant));
        }
        let place = (self.wants as usize).checked_sub(1);
        self.whole_left =
            place.and_then(|place| crowds.get(place)).map_or_else(Vec::new, |crowd| heads(crowd));
    }

    fn source_ip(&self) -> Option<IpAddr> {
        let all = &self.make_up.source_ips;
        let turn = usize::try_from(self.called).unwrap_or(0).checked_rem(all.len())?;
        all.get(turn).copied()
    }
}

/// A place for each participant of the cohorts, the first cohort's last: they are taken from the end.
fn heads(cohorts: &[(CohortId, u32)]) -> Vec<CohortId> {
    cohorts.iter().rev().flat_map(|(cohort, size)| std::iter::repeat_n(*cohort, *size as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(fixed: u32) -> Crowd {
        of(Who::Sized { fixed: vec![(CohortId(1), fixed)], varying: CohortId(0) })
    }

    fn of(who: Who) -> Crowd {
        Crowd::new(MakeUp {
            who,
            joins_per_s: 10.0,
            source_ips: Vec::new(),
            patience: Duration::from_secs(3),
        })
    }

    /// Aims and tells who was called of which cohort, and who was dismissed.
    fn aim(crowd: &mut Crowd, wants: u32, at_ms: i64, next: &mut u32) -> (Vec<(u16, i64)>, Vec<u32>) {
        let (mut called, mut dismissed) = (Vec::new(), Vec::new());
        crowd.aim(wants, RunTime(at_ms * 1000), |step| match step {
            Step::Call { cohort, at, .. } => {
                called.push((cohort.0, at.0 / 1000));
                *next += 1;
                Some(ParticipantId(*next - 1))
            }
            Step::Dismiss(participant) => {
                dismissed.push(participant.0);
                None
            }
        });
        (called, dismissed)
    }

    #[test]
    fn the_fixed_cohorts_come_first_and_joins_keep_their_rate() {
        let (mut crowd, mut next) = (crowd(1), 0);
        let (called, _) = aim(&mut crowd, 4, 0, &mut next);
        assert_eq!(called, [(1, 0)]);
        let (called, _) = aim(&mut crowd, 4, 250, &mut next);
        assert_eq!(called, [(0, 100), (0, 200)]);
        assert!(!crowd.was_complete(RunTime(100_000_000)));
        aim(&mut crowd, 4, 300, &mut next);
        assert!(!crowd.was_complete(RunTime(4_200_000)) && crowd.was_complete(RunTime(4_300_000)));
    }

    #[test]
    fn the_newest_leave_first_and_the_failed_before_all() {
        let (mut crowd, mut next) = (crowd(0), 0);
        aim(&mut crowd, 5, 0, &mut next);
        aim(&mut crowd, 5, 1000, &mut next);
        assert_eq!(crowd.present.len(), 5);
        crowd.note_failed([ParticipantId(1)].into());
        let (_, dismissed) = aim(&mut crowd, 3, 1000, &mut next);
        assert_eq!(dismissed, [1, 4]);
        assert_eq!(crowd.present, [0, 2, 3].map(ParticipantId));
        // The same size again calls nobody.
        assert_eq!(aim(&mut crowd, 3, 2000, &mut next), (vec![], vec![]));
    }

    #[test]
    fn a_larger_crowd_replaces_who_failed() {
        let (mut crowd, mut next) = (crowd(0), 0);
        aim(&mut crowd, 2, 0, &mut next);
        aim(&mut crowd, 2, 1000, &mut next);
        crowd.note_failed([ParticipantId(0)].into());
        let (called, dismissed) = aim(&mut crowd, 3, 5000, &mut next);
        assert_eq!((called.len(), dismissed), (1, vec![0]));
        aim(&mut crowd, 3, 5100, &mut next);
        assert_eq!(crowd.present, [1, 2, 3].map(ParticipantId));
    }

    #[test]
    fn another_value_is_another_crowd() {
        let two = |cohort| vec![(CohortId(cohort), 1), (CohortId(cohort + 1), 2)];
        let (mut crowd, mut next) = (of(Who::Valued(vec![two(0), two(2)])), 0);
        let (called, dismissed) = aim(&mut crowd, 1, 0, &mut next);
        assert_eq!((called, dismissed), (vec![(0, 0)], vec![]));
        let (called, _) = aim(&mut crowd, 1, 200, &mut next);
        assert_eq!(called, [(1, 100), (1, 200)]);
        assert!(crowd.was_complete(RunTime(4_200_000)));
        // Who has not come yet of the one value stays away when the other begins.
        let (called, dismissed) = aim(&mut crowd, 2, 5000, &mut next);
        assert_eq!((called, dismissed), (vec![(2, 5000)], vec![0, 1, 2]));
        let (called, dismissed) = aim(&mut crowd, 1, 5100, &mut next);
        assert_eq!((called, dismissed), (vec![(0, 5100)], vec![3]));
        assert!(!crowd.was_complete(RunTime(8_100_000)));
    }
}
