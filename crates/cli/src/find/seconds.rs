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
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use throng_observation::run::{CohortId, EventRow, SeriesRow};
    use throng_observation::{Clause, Distribution, ExperienceRow, Phase, SecondClosed};

    /// A second at whose end `began` participants have begun and `gone` have failed, one of them
    /// for each of `reasons` in it.
    fn crowd_of(seconds: &Seconds, began: u32, gone: u32, reasons: &[FailureReason]) {
        for reason in reasons {
            seconds.observe(&Row::Participant(Box::new(ParticipantRow {
                participant: ParticipantId(0),
                cohort: CohortId(0),
                intended_at: RunTime(0),
                reached: BTreeMap::from([(Phase::Started, RunTime(0))]),
                ended_at: Some(RunTime(1)),
                outcome: Some(Outcome::Failed(Failure::new(reason.clone(), "127.0.0.1:9"))),
                local_address: None,
            })));
        }
        seconds.observe(&Row::Crowd(CrowdRow {
            started: began,
            failed: gone,
            ..CrowdRow::default()
        }));
        seconds.observe(&Row::SecondClosed(SecondClosed::default()));
    }

    #[test]
    fn a_target_where_all_fail_alike_is_not_reached_by_any_load() {
        use FailureReason as F;
        let why = |seconds: &Seconds| seconds.unreachable(3).map(|failure| failure.reason);
        let closed_port = Seconds::default();
        crowd_of(&closed_port, 0, 0, &[]);
        assert_eq!(why(&closed_port), None, "the baseline of the idle server");
        crowd_of(&closed_port, 3, 2, &[F::Tcp, F::Tcp]);
        assert_eq!(why(&closed_port), None, "one is still on its way");
        crowd_of(&closed_port, 3, 3, &[F::Tcp]);
        assert_eq!(why(&closed_port), Some(F::Tcp));
        let full = Seconds::default();
        crowd_of(&full, 2, 2, &[F::HttpStatus(503), F::Tcp]);
        assert_eq!(why(&full), None, "another load may be served");
        let connected = Seconds::default();
        connected.observe(&Row::Crowd(CrowdRow {
            started: 1,
            connected: 1,
            ..CrowdRow::default()
        }));
        connected.observe(&Row::SecondClosed(SecondClosed::default()));
        crowd_of(&connected, 1, 1, &[F::Tcp]);
        assert_eq!(why(&connected), None, "a server that went away was there");
    }

    /// One who fails may have met what no other does: a name server that was slow, a connection
    /// that was reset.
    #[test]
    fn one_of_many_that_fails_does_not_end_a_search() {
        use FailureReason as F;
        let seconds = Seconds::default();
        let is_over = |wanted| seconds.unreachable(wanted).is_some();
        crowd_of(&seconds, 1, 1, &[F::Tcp]);
        assert!(!is_over(1) && !is_over(10), "the whole crowd, or one of ten");
        crowd_of(&seconds, 1, 1, &[]);
        assert!(!is_over(10), "for two seconds, and still one");
        crowd_of(&seconds, 3, 3, &[F::Tcp, F::Tcp]);
        assert!(is_over(10), "three, and all for three seconds");
        crowd_of(&seconds, 4, 3, &[]);
        assert!(!is_over(10), "the fourth is on its way");
        crowd_of(&seconds, 4, 4, &[F::Tcp]);
        assert!(!is_over(10), "for a second");
    }

    #[test]
    fn a_search_that_begins_with_one_tries_twice_before_it_ends() {
        use FailureReason as F;
        let closed_port = Seconds::default();
        let ends = |seconds: &Seconds| seconds.unreachable(1).is_some();
        assert!(!closed_port.tries_again(1), "nobody has tried");
        crowd_of(&closed_port, 1, 1, &[F::Dns]);
        assert!(!closed_port.tries_again(1), "the crowd does not know yet who failed");
        closed_port.take_failed();
        assert!(closed_port.tries_again(1) && !closed_port.tries_again(1) && !ends(&closed_port));
        crowd_of(&closed_port, 2, 1, &[]);
        assert!(!ends(&closed_port), "the second is on its way");
        crowd_of(&closed_port, 2, 2, &[F::Dns]);
        closed_port.take_failed();
        assert!(ends(&closed_port) && !closed_port.tries_again(1));

        let by_chance = Seconds::default();
        crowd_of(&by_chance, 1, 1, &[F::Tcp]);
        by_chance.take_failed();
        assert!(by_chance.tries_again(1));
        by_chance.observe(&Row::Crowd(CrowdRow {
            started: 2,
            failed: 1,
            connected: 1,
            ..CrowdRow::default()
        }));
        by_chance.observe(&Row::SecondClosed(SecondClosed::default()));
        assert!(!ends(&by_chance), "the second is served");
        let crowd = Seconds::default();
        crowd_of(&crowd, 3, 3, &[F::Tcp]);
        crowd.take_failed();
        assert!(!crowd.tries_again(3), "three say it of all");
    }

    /// A participant without WebRTC is connected by the request that is answered.
    #[test]
    fn who_was_connected_by_any_protocol_met_a_target_that_is_there() {
        for phase in Phase::CONNECTED {
            let seconds = Seconds::default();
            seconds.observe(&Row::Participant(Box::new(ParticipantRow {
                participant: ParticipantId(0),
                cohort: CohortId(0),
                intended_at: RunTime(0),
                reached: BTreeMap::from([(phase, RunTime(0))]),
                ended_at: Some(RunTime(1)),
                outcome: Some(Outcome::Failed(Failure::new(FailureReason::Tcp, "127.0.0.1:9"))),
                local_address: None,
            })));
            crowd_of(&seconds, 3, 3, &[FailureReason::Tcp, FailureReason::Tcp]);
            crowd_of(&seconds, 3, 3, &[]);
            assert_eq!(seconds.unreachable(3), None, "{phase:?}");
        }
    }

    #[test]
    fn what_the_generator_lacked_last_is_known() {
        let seconds = Seconds::default();
        crowd_of(&seconds, 1, 1, &[FailureReason::Tcp]);
        assert_eq!(seconds.limited_by(), None, "the target's");
        crowd_of(&seconds, 2, 2, &[FailureReason::Generator]);
        assert_eq!(seconds.limited_by().as_deref(), Some("generator: 127.0.0.1:9"));
        let late = "thread 0 was 31.0 ms late (p99), more than 20 ms";
        seconds.observe(&Row::Event(EventRow {
            at: RunTime(0),
            participant: None,
            kind: GENERATOR_LIMITED_EVENT.to_owned(),
            count: 1,
            detail: late.into(),
        }));
        assert_eq!(seconds.limited_by().as_deref(), Some(late));
    }

    #[test]
    fn a_closed_second_sums_its_cohorts_and_has_its_delay_and_the_generators_state() {
        let seconds = Seconds::default();
        let delay = |kind, second, us| {
            let mut relative_delay_us = Distribution::new();
            relative_delay_us.record(us);
            let row =
                SeriesRow { second, kind: Some(kind), relative_delay_us, ..SeriesRow::default() };
            Row::Series(Box::new(row))
        };
        let experience = |cohort, users, bad| {
            let mut row = ExperienceRow {
                second: 4,
                cohort: CohortId(cohort),
                users,
                bad,
                ..Default::default()
            };
            row.clauses[Clause::Stall as usize] = bad;
            row
        };
        seconds.observe(&delay(MediaKind::Video, 4, 20_000));
        seconds.observe(&delay(MediaKind::Audio, 4, 1_000));
        assert!(seconds.take().is_empty());
        let closed = |second, experience| {
            Row::SecondClosed(SecondClosed { second, experience, is_generator_limited: true })
        };
        seconds.observe(&closed(4, vec![experience(0, 3, 1), experience(1, 5, 2)]));
        seconds.observe(&delay(MediaKind::Audio, 5, 1_000));
        seconds.observe(&closed(5, Vec::new()));
        seconds.observe(&closed(6, vec![experience(0, 3, 1)]));
        let seen = seconds.take();
        assert_eq!((seen.len(), seen[0].users(), seen[0].is_limited), (2, 8, true));
        let quality = seen[0].quality;
        assert_eq!((quality.bad_users(), quality.clauses[Clause::Stall as usize]), (3.0, 3));
        assert!(seen[0].delay_ms.is_some_and(|ms| (ms - 20.0).abs() < 0.5), "{seen:?}");
        assert_eq!((seen[0].ends_at(), seen[1].delay_ms), (RunTime(5_000_000), None));
        assert_eq!((seen[0].quality.bad_by_patterns(), seen[1].media), (0.0, Unloaded::default()));
        assert!((19_500..20_500).contains(&seen[0].media.delay_us), "{seen:?}");
    }
}
