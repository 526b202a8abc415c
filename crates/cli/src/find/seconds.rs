//! Sums up the rows of each second, on their way to the store, for the search.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use throng_observation::run::{ParticipantId, Row};
use throng_observation::{FailureReason, MediaKind, Outcome, RunTime};

/// Seconds after which the collector has certainly closed a second.
const SECONDS_KEPT: i64 = 10;

/// A second of all cohorts together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SecondSummary {
    pub(super) second: i64,
    pub(super) users: u32,
    pub(super) bad: f64,
    pub(super) delay_ms: Option<f64>,
    pub(super) is_limited: bool,
}

/// Collects seconds from the rows; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Seconds(Arc<Mutex<OpenSeconds>>);

#[derive(Debug)]
struct OpenSeconds {
    cohorts: u16,
    delays_ms: BTreeMap<i64, f64>,
    limited: BTreeSet<i64>,
    open: SecondSummary,
    closed: VecDeque<SecondSummary>,
    failed: Failed,
}

/// Participants that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) all: BTreeSet<ParticipantId>,
    /// Those of them for which this host had no descriptors, ports or memory: their seconds say nothing about the server.
    pub(super) by_generator: BTreeSet<ParticipantId>,
}

impl Seconds {
    pub(super) fn new(cohorts: u16) -> Self {
        Self(Arc::new(Mutex::new(OpenSeconds {
            cohorts: cohorts.max(1),
            delays_ms: BTreeMap::new(),
            limited: BTreeSet::new(),
            open: SecondSummary::default(),
            closed: VecDeque::new(),
            failed: Failed::default(),
        })))
    }

    pub(super) fn observe(&self, row: &Row) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).observe(row);
    }

    /// The seconds that have closed since the last call.
    pub(super) fn take(&self) -> VecDeque<SecondSummary> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).closed)
    }

    /// The participants that failed since the last call.
    pub(super) fn take_failed(&self) -> Failed {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).failed)
    }
}

impl OpenSeconds {
    fn observe(&mut self, row: &Row) {
        match row {
            Row::Series(row) => {
                // Video if there is any: audio is light enough to come through when video no longer does.
                let is_better =
                    row.kind == Some(MediaKind::Video) || !self.delays_ms.contains_key(&row.second);
                if let Some(us) = row.relative_delay_us.quantile(0.5).filter(|_| is_better) {
                    self.delays_ms.insert(row.second, us as f64 / 1e3);
                }
            }
            Row::Event(event) if event.kind == "generator_limited" => {
                self.limited.insert(event.at.second());
            }
            Row::Participant(row) => {
                let Some(Outcome::Failed(failure)) = &row.outcome else { return };
                self.failed.all.insert(row.participant);
                if failure.reason == FailureReason::Generator {
                    self.failed.by_generator.insert(row.participant);
                }
            }
            // The last rows of a second: one for each cohort, in order.
            Row::Experience(row) => {
                if row.cohort.0 == 0 {
                    self.open = SecondSummary { second: row.second, ..SecondSummary::default() };
                }
                self.open.users += row.users;
                self.open.bad += row.bad_users();
                if row.cohort.0 + 1 == self.cohorts {
                    self.close();
                }
            }
            _ => {}
        }
    }

    fn close(&mut self) {
        let second = self.open.second;
        self.open.delay_ms = self.delays_ms.get(&second).copied();
        self.open.is_limited = self.limited.contains(&second);
        self.closed.push_back(self.open);
        self.delays_ms = self.delays_ms.split_off(&(second - SECONDS_KEPT));
        self.limited = self.limited.split_off(&(second - SECONDS_KEPT));
    }
}

impl SecondSummary {
    pub(super) fn ends_at(&self) -> RunTime {
        RunTime((self.second + 1) * 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::run::{CohortId, EventRow, SeriesRow};
    use throng_observation::{Distribution, ExperienceRow};

    #[test]
    fn a_second_closes_with_its_last_cohort_and_knows_its_delay_and_the_generators_state() {
        let seconds = Seconds::new(2);
        let delay = |kind, second, us| {
            let mut relative_delay_us = Distribution::new();
            relative_delay_us.record(us);
            Row::Series(Box::new(SeriesRow {
                second,
                kind: Some(kind),
                relative_delay_us,
                ..SeriesRow::default()
            }))
        };
        let experience = |cohort, users, bad| {
            Row::Experience(ExperienceRow {
                second: 4,
                cohort: CohortId(cohort),
                users,
                bad,
                ..Default::default()
            })
        };
        seconds.observe(&delay(MediaKind::Video, 4, 20_000));
        seconds.observe(&delay(MediaKind::Audio, 4, 1_000));
        seconds.observe(&Row::Event(EventRow {
            at: RunTime(4_500_000),
            participant: None,
            kind: "generator_limited".into(),
            count: 1,
            detail: String::new(),
        }));
        seconds.observe(&experience(0, 3, 1));
        assert!(seconds.take().is_empty());
        seconds.observe(&experience(1, 5, 2));
        let seen = seconds.take();
        assert_eq!((seen[0].users, seen[0].bad, seen[0].is_limited), (8, 3.0, true));
        assert!(seen[0].delay_ms.is_some_and(|ms| (ms - 20.0).abs() < 0.5), "{seen:?}");
        assert_eq!(seen[0].ends_at(), RunTime(5_000_000));
    }
}
