//! The objectives during a run, judged by the last seconds of media and by the last joins. The rows
//! for them are kept in memory, because reading the run folder would take longer and longer.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use throng_observation::run::{ParticipantId, Row, RunData, RunInfo, TrackRow};
use throng_observation::{Distribution, OneWayDelay, TrackId};
use throng_report::ObjectiveResult;

use crate::report;

/// The window of media that is judged, seconds.
const SECONDS: i64 = 10;
/// The most participants, and the most tracks, that are kept: the newest.
const KEPT_MAX: usize = 20_000;

/// The rows of the window; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RollingObjectives(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    run: RunData,
    participants: Places<ParticipantId>,
    tracks: Places<(ParticipantId, TrackId)>,
}

/// The index of each key's row in a list of rows.
#[derive(Debug)]
struct Places<K> {
    by_key: HashMap<K, usize>,
    keys: Vec<K>,
    /// The index that is overwritten next when the list is full.
    next: usize,
}

impl RollingObjectives {
    pub(crate) fn new(info: RunInfo) -> Self {
        let run = RunData { info, ..RunData::default() };
        Self(Arc::new(Mutex::new(Kept { run, participants: Places::new(), tracks: Places::new() })))
    }

    /// Adds a row.
    pub(crate) fn take(&self, row: &Row) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(row);
    }

    /// Judges the objectives.
    pub(crate) fn judge(&self) -> Vec<ObjectiveResult> {
        report::summary(&self.0.lock().unwrap_or_else(PoisonError::into_inner).run).objectives
    }
}

impl Kept {
    fn take(&mut self, row: &Row) {
        let run = &mut self.run;
        match row {
            Row::Crowd(row) => {
                run.crowd.retain(|kept| kept.second > row.second - SECONDS);
                run.crowd.push(*row);
            }
            Row::Series(row) => {
                run.series.retain(|kept| kept.second > row.second - SECONDS);
                run.series.push((**row).clone());
            }
            Row::Playback(row) => {
                run.playback.retain(|kept| kept.second > row.second - SECONDS);
                run.playback.push((**row).clone());
            }
            Row::Player(row) if run.players.stalls().len() < KEPT_MAX => run.players.add(row),
            Row::Participant(row) => {
                self.participants.put(&mut run.participants, row.participant, (**row).clone());
            }
            Row::Track(row) => {
                // Objectives use only the sums of a track.
                let sums = TrackRow {
                    relative_delay_us: Distribution::default(),
                    absolute_delay: OneWayDelay::default(),
                    ..(**row).clone()
                };
                self.tracks.put(&mut run.tracks, (row.participant, row.track), sums);
            }
            _ => {}
        }
    }
}

impl<K: Copy + Eq + Hash> Places<K> {
    fn new() -> Self {
        Self { by_key: HashMap::new(), keys: Vec::new(), next: 0 }
    }

    /// Replaces the row with the same key, or, in a full list, the oldest.
    fn put<R>(&mut self, rows: &mut Vec<R>, key: K, row: R) {
        if let Some(kept) = self.by_key.get(&key).and_then(|at| rows.get_mut(*at)) {
            *kept = row;
        } else if rows.len() < KEPT_MAX {
            self.by_key.insert(key, rows.len());
            self.keys.push(key);
            rows.push(row);
        } else if let (Some(given_up), Some(kept)) =
            (self.keys.get_mut(self.next), rows.get_mut(self.next))
        {
            self.by_key.remove(given_up);
            self.by_key.insert(key, self.next);
            (*given_up, *kept) = (key, row);
            self.next = (self.next + 1) % KEPT_MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::run::SeriesRow;
    use throng_observation::{MediaKind, TrackCounters};

    #[test]
    fn of_a_day_of_comers_and_goers_the_last_are_kept() {
        let (mut places, mut rows) = (Places::new(), Vec::new());
        for key in 0..3 * KEPT_MAX {
            places.put(&mut rows, key, (key, false));
            places.put(&mut rows, key, (key, true));
        }
        assert_eq!(
            (rows.len(), places.by_key.len(), places.keys.len()),
            (KEPT_MAX, KEPT_MAX, KEPT_MAX)
        );
        assert!(rows.iter().all(|(key, is_new)| *is_new && *key >= 2 * KEPT_MAX));
    }

    #[test]
    fn the_present_forgets_what_is_past() {
        let scenario = "objectives = [\"video.loss < 1%\"]\n[target]\nurl = \"whep+http://127.0.0.1/whep\"\n\
                        [crowd]\nsize = 1\n";
        let rolling =
            RollingObjectives::new(RunInfo { scenario: scenario.into(), ..RunInfo::default() });
        let second = |second, packets_lost| {
            let counters =
                TrackCounters { packets_received: 100, packets_lost, ..TrackCounters::default() };
            let kind = Some(MediaKind::Video);
            Row::Series(Box::new(SeriesRow {
                second,
                kind,
                tracks: 1,
                counters,
                ..SeriesRow::default()
            }))
        };
        assert_eq!(rolling.judge()[0].result, "not_measured");
        rolling.take(&second(0, 50));
        assert_eq!(rolling.judge()[0].result, "missed");
        (1..=SECONDS).for_each(|at| rolling.take(&second(at, 0)));
        assert_eq!(rolling.judge()[0].result, "met");
        assert!(rolling.0.lock().unwrap().run.series.len() <= SECONDS as usize);
    }
}
