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
#[path = "crowd_tests.rs"]
mod tests;
