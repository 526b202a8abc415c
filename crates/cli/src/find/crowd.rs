//! Brings the crowd to the load that the search wants: adds missing participants at the scenario's
//! rate of joins, removes surplus ones.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use throng_observation::RunTime;
use throng_observation::run::{CohortId, ParticipantId};
use throng_scenario::Cohort;

use super::seconds::Failed;

/// Which participants a load consists of.
#[derive(Clone, Debug)]
pub(super) enum LoadShape {
    /// The load is the size of the whole crowd.
    Cohort {
        /// Cohorts that stay as they are.
        fixed: Vec<(CohortId, u32)>,
        /// The cohort whose size is searched.
        varying: CohortId,
    },
    /// The load is the number of users in whole rooms; the cohorts of each room.
    Rooms(Vec<Vec<(CohortId, u32)>>),
    /// The load is the number, from 1, of a value of the scenario; the cohorts of each, of which
    /// one crowd exists at a time.
    Values(Vec<Vec<(CohortId, u32)>>),
}

/// What the crowd consists of, and how it grows.
#[derive(Clone, Debug)]
pub(super) struct CrowdConfig {
    pub(super) shape: LoadShape,
    /// Joins a second.
    pub(super) joins_per_s: f64,
    /// The local addresses that participants bind to in turn; with none the kernel chooses.
    pub(super) source_ips: Vec<IpAddr>,
    /// How long a join may take before the participant counts as not connected.
    pub(super) patience: Duration,
    /// When the first of the varying cohort may come: a viewer needs the stream of a cohort that
    /// publishes.
    pub(super) varying_from: RunTime,
}

/// A change of the crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrowdAction {
    Call { cohort: CohortId, place: u32, at: RunTime, source_ip: Option<IpAddr> },
    Dismiss(ParticipantId),
}

/// The current crowd.
#[derive(Debug)]
pub(super) struct Crowd {
    config: CrowdConfig,
    /// The cohort of each slot whose cohort is fixed; all other slots belong to the varying cohort.
    owners: Vec<CohortId>,
    /// The participant of each slot, in the same order; `None` while it is free.
    slots: Vec<Option<ParticipantId>>,
    /// The number of each participant in its cohort, by which URLs may differ.
    places: BTreeMap<ParticipantId, (CohortId, u32)>,
    /// Failed participants, which count as users until the load ends.
    failed: BTreeSet<ParticipantId>,
    /// Those of them that failed because this host had no resources.
    failed_by_generator: BTreeSet<ParticipantId>,
    called: u64,
    next_at: RunTime,
    /// Since when the crowd has the wanted size and is judged by the bounds of the search.
    right_since: Option<RunTime>,
    /// When a participant was last added, by whoever plays the crowd.
    called_at: Option<RunTime>,
    /// Whether that was not confirmed yet.
    is_calling: bool,
    wants: u32,
}

impl Crowd {
    pub(super) fn new(config: CrowdConfig) -> Self {
        let owners = match &config.shape {
            LoadShape::Cohort { fixed, .. } => cohort_per_slot(fixed),
            LoadShape::Rooms(rooms) => {
                rooms.iter().flat_map(|room| cohort_per_slot(room)).collect()
            }
            LoadShape::Values(_) => Vec::new(),
        };
        Self {
            config,
            owners,
            slots: Vec::new(),
            places: BTreeMap::new(),
            failed: BTreeSet::new(),
            failed_by_generator: BTreeSet::new(),
            called: 0,
            next_at: RunTime(0),
            right_since: None,
            called_at: None,
            is_calling: false,
            wants: 0,
        }
    }

    /// The smallest possible crowd: its fixed cohorts.
    pub(super) fn fixed(&self) -> u32 {
        match &self.config.shape {
            LoadShape::Cohort { .. } => self.owners.len() as u32,
            LoadShape::Rooms(_) | LoadShape::Values(_) => 0,
        }
    }

    /// Notes failed participants: they are the first to be removed.
    pub(super) fn note_failed(&mut self, failed: Failed) {
        self.failed.extend(failed.all);
        self.failed_by_generator.extend(failed.by_generator);
    }

    /// Whether a participant that counts as badly served failed because this host lacked resources.
    pub(super) fn has_failed_by_generator(&self) -> bool {
        !self.failed_by_generator.is_empty()
    }

    /// Whether, throughout the second that ends at `end`, the crowd had the wanted size and each
    /// participant had had its time to join.
    pub(super) fn was_complete(&self, end: RunTime) -> bool {
        let patience_us = i64::try_from(self.config.patience.as_micros()).unwrap_or(i64::MAX);
        let begin_us = end.0 - 1_000_000;
        let is_right = self.right_since.is_some_and(|since| begin_us >= since.0);
        is_right && self.called_at.is_none_or(|at| begin_us >= at.0.saturating_add(patience_us))
    }

    /// The actions at `now` towards the load `wants`. `did` performs one and returns an added
    /// participant. The load is there once they are [confirmed](Self::confirmed).
    pub(super) fn adjust(
        &mut self,
        wants: u32,
        now: RunTime,
        mut did: impl FnMut(CrowdAction) -> Option<ParticipantId>,
    ) {
        if wants != self.wants {
            self.wants = wants;
            self.right_since = None;
            // A new load begins with a whole crowd: new participants replace those that failed
            // under the old one.
            self.replace_failed(&mut did);
            self.resize_slots(&mut did);
            let present_now: BTreeSet<ParticipantId> =
                self.slots.iter().flatten().copied().collect();
            self.places.retain(|participant, _| present_now.contains(participant));
            self.next_at = self.next_at.max(now);
        }
        let gap_us = (1e6 / self.config.joins_per_s.max(0.001)) as i64;
        while self.next_at <= now
            && let Some(slot) = self.slots.iter().position(Option::is_none)
        {
            if slot >= self.owners.len() {
                self.next_at = self.next_at.max(self.config.varying_from);
                if self.next_at > now {
                    break;
                }
            }
            let cohort = self.owner(slot);
            let place = self.free_place(cohort);
            let step =
                CrowdAction::Call { cohort, place, at: self.next_at, source_ip: self.source_ip() };
            self.called += 1;
            (self.called_at, self.is_calling) = (Some(now), true);
            self.next_at = RunTime(self.next_at.0 + gap_us);
            let called = did(step);
            self.places.extend(called.map(|participant| (participant, (cohort, place))));
            if let Some(free) = self.slots.get_mut(slot) {
                *free = called;
            }
        }
    }

    /// The load begins anew with the next adjustment: others take the place of those that failed.
    pub(super) fn begin_anew(&mut self) {
        self.wants = 0;
    }

    /// At `now` all actions so far have been made: by this process at once, by workers elsewhere
    /// later, or much later while nothing reaches them. Until then the seconds are those of another
    /// load.
    pub(super) fn confirmed(&mut self, now: RunTime) {
        if std::mem::take(&mut self.is_calling) {
            self.called_at = Some(now);
        }
        if self.slots.iter().all(Option::is_some) {
            self.right_since.get_or_insert(now);
        }
    }

    /// The bounds by which its seconds are judged have changed: those until that is
    /// [confirmed](Self::confirmed) may be judged by the ones before.
    pub(super) fn judged_anew(&mut self) {
        self.right_since = None;
    }

    fn replace_failed(&mut self, did: &mut impl FnMut(CrowdAction) -> Option<ParticipantId>) {
        let failed = std::mem::take(&mut self.failed);
        self.failed_by_generator.clear();
        for slot in &mut self.slots {
            if let Some(participant) = slot.take_if(|participant| failed.contains(participant)) {
                did(CrowdAction::Dismiss(participant));
            }
        }
        if matches!(self.config.shape, LoadShape::Cohort { .. }) {
            // These slots are alike: a smaller crowd need not refill a free one.
            let mut alike = self.slots.split_off(self.owners.len().min(self.slots.len()));
            alike.retain(Option::is_some);
            self.slots.append(&mut alike);
        }
    }

    /// Makes as many slots as the load has. Participants of removed slots leave, the newest first.
    fn resize_slots(&mut self, did: &mut impl FnMut(CrowdAction) -> Option<ParticipantId>) {
        let size = match &self.config.shape {
            LoadShape::Cohort { .. } => (self.wants as usize).max(self.owners.len()),
            LoadShape::Rooms(_) => (self.wants as usize).min(self.owners.len()),
            // Another value: the whole crowd leaves, and that of the value joins.
            LoadShape::Values(crowds) => {
                for participant in self.slots.drain(..).flatten() {
                    did(CrowdAction::Dismiss(participant));
                }
                let crowd =
                    (self.wants as usize).checked_sub(1).and_then(|place| crowds.get(place));
                self.owners = crowd.map_or_else(Vec::new, |crowd| cohort_per_slot(crowd));
                self.owners.len()
            }
        };
        while self.slots.len() > size {
            if let Some(participant) = self.slots.pop().flatten() {
                did(CrowdAction::Dismiss(participant));
            }
        }
        self.slots.resize(size, None);
    }

    fn owner(&self, slot: usize) -> CohortId {
        match (self.owners.get(slot), &self.config.shape) {
            (Some(cohort), _) => *cohort,
            (None, LoadShape::Cohort { varying, .. }) => *varying,
            (None, _) => CohortId(0),
        }
    }

    /// The smallest number in the cohort that no present participant has.
    fn free_place(&self, cohort: CohortId) -> u32 {
        let of_cohort = |participant: &ParticipantId| {
            self.places.get(participant).filter(|(of, _)| *of == cohort).map(|(_, place)| *place)
        };
        let taken: BTreeSet<u32> = self.slots.iter().flatten().filter_map(of_cohort).collect();
        (0..)
            .zip(&taken)
            .find(|(place, taken)| place != *taken)
            .map_or(taken.len() as u32, |(place, _)| place)
    }

    fn source_ip(&self) -> Option<IpAddr> {
        let all = &self.config.source_ips;
        let turn = usize::try_from(self.called).unwrap_or(0).checked_rem(all.len())?;
        all.get(turn).copied()
    }
}

/// The cohort of each slot: one slot for each participant of the cohorts.
fn cohort_per_slot(cohorts: &[(CohortId, u32)]) -> Vec<CohortId> {
    cohorts.iter().flat_map(|(cohort, size)| std::iter::repeat_n(*cohort, *size as usize)).collect()
}

pub(super) fn cohort_id(index: usize) -> CohortId {
    CohortId(u16::try_from(index).unwrap_or(u16::MAX))
}

/// The cohorts with their sizes, but for the one that varies.
pub(super) fn sizes(cohorts: &[Cohort], varying: Option<usize>) -> Vec<(CohortId, u32)> {
    let others = cohorts.iter().enumerate().filter(|(index, _)| Some(*index) != varying);
    others.map(|(index, cohort)| (cohort_id(index), cohort.size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(fixed: u32) -> Crowd {
        of(LoadShape::Cohort { fixed: vec![(CohortId(1), fixed)], varying: CohortId(0) })
    }

    fn of(shape: LoadShape) -> Crowd {
        Crowd::new(CrowdConfig {
            shape,
            joins_per_s: 10.0,
            source_ips: Vec::new(),
            patience: Duration::from_secs(3),
            varying_from: RunTime(0),
        })
    }

    fn failed(who: u32) -> Failed {
        Failed { all: [ParticipantId(who)].into(), by_generator: [ParticipantId(who)].into() }
    }

    fn present(crowd: &Crowd) -> Vec<u32> {
        crowd.slots.iter().flatten().map(|participant| participant.0).collect()
    }

    /// Adjusts the crowd; returns the added participants with their cohorts, and the removed ones.
    fn aim(
        crowd: &mut Crowd,
        wants: u32,
        at_ms: i64,
        next: &mut u32,
    ) -> (Vec<(u16, i64)>, Vec<u32>) {
        let (mut called, mut dismissed) = (Vec::new(), Vec::new());
        crowd.adjust(wants, RunTime(at_ms * 1000), |step| match step {
            CrowdAction::Call { cohort, at, .. } => {
                called.push((cohort.0, at.0 / 1000));
                *next += 1;
                Some(ParticipantId(*next - 1))
            }
            CrowdAction::Dismiss(participant) => {
                dismissed.push(participant.0);
                None
            }
        });
        crowd.confirmed(RunTime(at_ms * 1000));
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
    fn viewers_wait_for_the_stream_of_the_cohort_that_publishes_and_come_at_their_rate() {
        let (mut crowd, mut next) = (crowd(1), 0);
        crowd.config.varying_from = RunTime(10_000_000);
        let (called, _) = aim(&mut crowd, 4, 0, &mut next);
        assert_eq!(called, [(1, 0)]);
        assert!(aim(&mut crowd, 4, 9_900, &mut next).0.is_empty());
        assert!(!crowd.was_complete(RunTime(9_900_000)));
        let (called, _) = aim(&mut crowd, 4, 10_150, &mut next);
        assert_eq!(called, [(0, 10_000), (0, 10_100)]);
        assert_eq!(aim(&mut crowd, 4, 10_200, &mut next).0, [(0, 10_200)]);
    }

    #[test]
    fn a_load_counts_from_when_its_last_change_is_confirmed() {
        let (mut crowd, mut next) = (crowd(0), 0);
        let mut ask = |crowd: &mut Crowd, wants: u32, at_s: i64| {
            crowd.adjust(wants, RunTime(at_s * 1_000_000), |_| {
                next += 1;
                Some(ParticipantId(next))
            });
        };
        let at = |s: i64| RunTime(s * 1_000_000);
        ask(&mut crowd, 1, 0);
        assert!(!crowd.was_complete(at(60)));
        crowd.confirmed(at(5));
        // The join has its time from then on.
        assert!(!crowd.was_complete(RunTime(8_900_000)) && crowd.was_complete(at(9)));
        ask(&mut crowd, 1, 10);
        assert!(crowd.was_complete(at(10)), "nothing has changed");
        ask(&mut crowd, 2, 20);
        ask(&mut crowd, 1, 30);
        assert!(!crowd.was_complete(at(60)));
        // Whoever leaves needs no time, but who was called before has not joined either.
        crowd.confirmed(at(31));
        assert!(!crowd.was_complete(RunTime(34_900_000)) && crowd.was_complete(at(35)));
        ask(&mut crowd, 0, 40);
        crowd.confirmed(at(41));
        assert!(crowd.was_complete(at(42)));
    }

    #[test]
    fn a_load_counts_anew_from_when_it_is_judged_by_other_bounds() {
        let (mut crowd, mut next) = (crowd(0), 0);
        aim(&mut crowd, 1, 0, &mut next);
        let at = |s: i64| RunTime(s * 1_000_000);
        assert!(crowd.was_complete(at(20)));
        crowd.judged_anew();
        assert!(!crowd.was_complete(at(20)));
        crowd.confirmed(RunTime(20_100_000));
        // The second in which they came to apply is judged by either.
        assert!(!crowd.was_complete(at(21)) && crowd.was_complete(RunTime(21_100_000)));
    }

    #[test]
    fn the_newest_leave_first_and_the_failed_before_all() {
        let (mut crowd, mut next) = (crowd(0), 0);
        aim(&mut crowd, 5, 0, &mut next);
        aim(&mut crowd, 5, 1000, &mut next);
        assert_eq!(present(&crowd).len(), 5);
        crowd.note_failed(failed(1));
        assert!(crowd.has_failed_by_generator());
        let (_, dismissed) = aim(&mut crowd, 3, 1000, &mut next);
        assert_eq!(dismissed, [1, 4]);
        assert!(!crowd.has_failed_by_generator(), "under another load it is forgotten");
        assert_eq!(present(&crowd), [0, 2, 3]);
        // An unchanged size adds no participant.
        assert_eq!(aim(&mut crowd, 3, 2000, &mut next), (vec![], vec![]));
    }

    #[test]
    fn a_join_gets_the_least_free_number_of_its_cohort() {
        let (mut crowd, mut next) = (crowd(1), 0);
        let mut numbers = |crowd: &mut Crowd, wants: u32, at_ms: i64| {
            let mut called = Vec::new();
            crowd.adjust(wants, RunTime(at_ms * 1000), |step| {
                let CrowdAction::Call { cohort, place, .. } = step else { return None };
                called.push((cohort.0, place));
                next += 1;
                Some(ParticipantId(next - 1))
            });
            called
        };
        numbers(&mut crowd, 5, 0);
        assert_eq!(numbers(&mut crowd, 5, 1_000), [(0, 0), (0, 1), (0, 2), (0, 3)]);
        let all = [ParticipantId(0), ParticipantId(2)].into();
        crowd.note_failed(Failed { all, ..Failed::default() });
        numbers(&mut crowd, 6, 1_000);
        assert_eq!(numbers(&mut crowd, 6, 2_000), [(0, 1), (0, 4)]);
    }

    #[test]
    fn a_larger_crowd_replaces_failed_participants() {
        let (mut crowd, mut next) = (crowd(0), 0);
        aim(&mut crowd, 2, 0, &mut next);
        aim(&mut crowd, 2, 1000, &mut next);
        crowd.note_failed(failed(0));
        let (called, dismissed) = aim(&mut crowd, 3, 5000, &mut next);
        assert_eq!((called.len(), dismissed), (1, vec![0]));
        aim(&mut crowd, 3, 5100, &mut next);
        assert_eq!(present(&crowd), [1, 2, 3]);
    }

    #[test]
    fn a_load_that_begins_anew_has_others_in_the_place_of_those_that_failed() {
        let (mut crowd, mut next) = (crowd(0), 0);
        aim(&mut crowd, 1, 0, &mut next);
        crowd.note_failed(failed(0));
        assert_eq!(aim(&mut crowd, 1, 1000, &mut next), (vec![], vec![]));
        crowd.begin_anew();
        assert_eq!(aim(&mut crowd, 1, 2000, &mut next), (vec![(0, 2000)], vec![0]));
        assert_eq!(present(&crowd), [1]);
        // It has its time to join.
        assert!(!crowd.was_complete(RunTime(5_900_000)) && crowd.was_complete(RunTime(6_000_000)));
    }

    #[test]
    fn another_value_is_another_crowd() {
        let two = |cohort| vec![(CohortId(cohort), 1), (CohortId(cohort + 1), 2)];
        let (mut crowd, mut next) = (of(LoadShape::Values(vec![two(0), two(2)])), 0);
        let (called, dismissed) = aim(&mut crowd, 1, 0, &mut next);
        assert_eq!((called, dismissed), (vec![(0, 0)], vec![]));
        let (called, _) = aim(&mut crowd, 1, 200, &mut next);
        assert_eq!(called, [(1, 100), (1, 200)]);
        assert!(crowd.was_complete(RunTime(4_200_000)));
        // Participants of the first value that have not joined yet are not added once the second
        // value begins.
        let (called, dismissed) = aim(&mut crowd, 2, 5000, &mut next);
        assert_eq!((called, dismissed), (vec![(2, 5000)], vec![0, 1, 2]));
        let (called, dismissed) = aim(&mut crowd, 1, 5100, &mut next);
        assert_eq!((called, dismissed), (vec![(0, 5100)], vec![3]));
        assert!(!crowd.was_complete(RunTime(8_100_000)));
    }

    #[test]
    fn rooms_fill_one_after_the_other_and_a_failure_is_replaced_in_the_same_room() {
        let room = |number: u16| vec![(CohortId(2 * number), 1), (CohortId(2 * number + 1), 2)];
        let (mut crowd, mut next) = (of(LoadShape::Rooms((0..3).map(room).collect())), 0);
        let (called, _) = aim(&mut crowd, 6, 10_000, &mut next);
        assert_eq!(called.iter().map(|(cohort, _)| *cohort).collect::<Vec<_>>(), [0]);
        let (called, _) = aim(&mut crowd, 6, 20_000, &mut next);
        assert_eq!(called.iter().map(|(cohort, _)| *cohort).collect::<Vec<_>>(), [1, 1, 2, 3, 3]);
        crowd.note_failed(failed(3));
        aim(&mut crowd, 9, 30_000, &mut next);
        let (called, dismissed) = aim(&mut crowd, 9, 40_000, &mut next);
        assert_eq!((called.len(), dismissed.len()), (3, 0));
        assert_eq!(present(&crowd), [0, 1, 2, 6, 4, 5, 7, 8, 9]);
        let (called, dismissed) = aim(&mut crowd, 3, 50_000, &mut next);
        assert_eq!((called.len(), dismissed), (0, vec![9, 8, 7, 5, 4, 6]));
    }
}
