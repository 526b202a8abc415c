//! Makes the seconds that a search judges from the rows of a run on their way to the store.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use throng_analysis::windows::SecondQuality;
use throng_observation::limits::GENERATOR_LIMITED_EVENT;
use throng_observation::run::{CrowdRow, ParticipantId, ParticipantRow, Row};
use throng_observation::{Failure, FailureReason, MediaKind, Outcome, RunTime, Unloaded};

/// The figures of one second, all cohorts together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SecondSummary {
    pub(super) second: i64,
    pub(super) quality: SecondQuality,
    /// The worst that tracks were.
    pub(super) media: Unloaded,
    pub(super) delay_ms: Option<f64>,
    pub(super) is_limited: bool,
}

/// Reads the rows on their way to the store; clones share the result.
#[derive(Clone, Debug, Default)]
pub(super) struct Seconds(Arc<Mutex<OpenSeconds>>);

#[derive(Debug, Default)]
struct OpenSeconds {
    /// Median delay in the open second: of video if there is any.
    delay_ms: Option<f64>,
    /// The worst that tracks were in it.
    media: Unloaded,
    closed: VecDeque<SecondSummary>,
    failed: Failed,
    /// What the generator lacked when it was last the limit, in words.
    limited_by: Option<String>,
    reach: TargetReach,
}

/// Whether the target can be reached at all, by what came of everybody so far.
#[derive(Debug, Default)]
struct TargetReach {
    /// Somebody was connected, or failed for a reason that another load might not have.
    is_possible: bool,
    /// Participants of the open second: whose join began so far, and who failed so far.
    began: u32,
    gone: u32,
    /// Why the first of them failed.
    first: Option<Failure>,
    /// The seconds in a row, up to the last one, in which all who had come had failed.
    seconds: u32,
    /// How many these were.
    refused: u32,
    /// Whether others were asked to try in their place.
    has_tried_again: bool,
}

/// So many who fail by the target say it of all; of a smaller crowd all of it, and as many who try
/// in its place.
const REFUSED_MIN: u32 = 3;
/// For so many seconds, where more are wanted than have come.
const SECONDS_MIN: u32 = 2;

/// The participants that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) all: BTreeSet<ParticipantId>,
    /// Those that failed because this host had no descriptors, ports or memory, or were lost with
    /// their machine: not the server's fault.
    pub(super) by_generator: BTreeSet<ParticipantId>,
}

impl Seconds {
    /// Takes in a row.
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

    /// By what the generator was the limit, and by how much, when it last was.
    pub(super) fn limited_by(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).limited_by.clone()
    }

    /// Why nobody can be served, whatever the load: all who came of the first `wanted` have failed
    /// by the target, and nobody was ever connected.
    pub(super) fn unreachable(&self, wanted: u32) -> Option<Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).reach.refused_of(wanted).cloned()
    }

    /// Whether others are to try in the place of the first `wanted`, who all failed by the target
    /// and are too few to say it of all: true once, and only when [`Self::take_failed`] has said
    /// who failed.
    pub(super) fn tries_again(&self, wanted: u32) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.failed.all.is_empty() && open.reach.tries_again(wanted)
    }
}

impl OpenSeconds {
    fn observe(&mut self, row: &Row) {
        match row {
            Row::Crowd(row) => self.reach.crowd(row),
            Row::Series(row) => {
                // Video if there is any: audio is light enough to arrive when video no longer does.
                let is_better = row.kind == Some(MediaKind::Video) || self.delay_ms.is_none();
                if let Some(us) = row.relative_delay_us.quantile(0.5).filter(|_| is_better) {
                    self.delay_ms = Some(us as f64 / 1e3);
                }
                self.media = self.media.worst(Unloaded::of(row));
            }
            Row::Participant(row) => {
                self.reach.participant(row);
                let Some(Outcome::Failed(failure)) = &row.outcome else { return };
                self.failed.all.insert(row.participant);
                if matches!(failure.reason, FailureReason::Generator | FailureReason::WorkerLost) {
                    self.failed.by_generator.insert(row.participant);
                    self.limited_by = Some(failure.to_string());
                }
            }
            Row::Event(event) if event.kind == GENERATOR_LIMITED_EVENT => {
                self.limited_by = Some(event.detail.to_string());
            }
            Row::SecondClosed(closed) => {
                let (delay_ms, media) = (self.delay_ms.take(), std::mem::take(&mut self.media));
                self.reach.close();
                if !closed.experience.is_empty() {
                    let mut quality = SecondQuality::default();
                    closed.experience.iter().for_each(|row| quality += SecondQuality::from(row));
                    self.closed.push_back(SecondSummary {
                        second: closed.second,
                        quality,
                        media,
                        delay_ms,
                        is_limited: closed.is_generator_limited,
                    });
                }
            }
            Row::Event(_)
            | Row::Sent(_)
            | Row::Playback(_)
            | Row::Chat(_)
            | Row::Track(_)
            | Row::Player(_)
            | Row::HttpRequests(_)
            | Row::LayerSwitch(_)
            | Row::Generator(_)
            | Row::Hold(_)
            | Row::Canary(_)
            | Row::Host(_) => {}
        }
    }
}

impl TargetReach {
    fn crowd(&mut self, row: &CrowdRow) {
        self.began += row.started;
        self.gone += row.failed;
        self.is_possible |= row.connected > 0;
    }

    fn participant(&mut self, row: &ParticipantRow) {
        let was_connected = row.was_connected();
        match &row.outcome {
            Some(Outcome::Failed(failure)) if failure.reason.is_of_target() && !was_connected => {
                self.first.get_or_insert_with(|| failure.clone());
            }
            Some(Outcome::Failed(_) | Outcome::Completed) => self.is_possible = true,
            // Its row comes again when it has ended.
            None => self.is_possible |= was_connected,
        }
    }

    /// All rows of the second have been seen.
    fn close(&mut self) {
        let (began, gone) = (std::mem::take(&mut self.began), std::mem::take(&mut self.gone));
        let are_all_gone = !self.is_possible && began > 0 && gone == began;
        self.seconds = if are_all_gone { self.seconds + 1 } else { 0 };
        self.refused = gone;
    }

    fn refused_of(&self, wanted: u32) -> Option<&Failure> {
        let is_enough = if wanted < REFUSED_MIN {
            // One who fails may have met what the next does not.
            self.refused >= 2 * wanted.max(1)
        } else {
            self.refused >= wanted || self.refused >= REFUSED_MIN && self.seconds >= SECONDS_MIN
        };
        self.first.as_ref().filter(|_| self.seconds > 0 && is_enough)
    }

    fn tries_again(&mut self, wanted: u32) -> bool {
        let are_all_few = wanted < REFUSED_MIN && self.refused >= wanted.max(1);
        let is_due = self.first.is_some() && self.seconds > 0 && are_all_few;
        is_due && !std::mem::replace(&mut self.has_tried_again, true)
    }
}

impl SecondSummary {
    /// The end of the second.
    pub(super) fn ends_at(&self) -> RunTime {
        RunTime((self.second + 1) * 1_000_000)
    }

    /// Participants that should be served.
    pub(super) fn users(&self) -> u32 {
        u32::try_from(self.quality.users).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
#[path = "seconds_tests.rs"]
mod tests;
