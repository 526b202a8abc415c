//! What the objectives come to at present: the last seconds of media, everybody's joins so far. Kept beside the run
//! folder, because reading that back would cost the more the longer the run is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use throng_observation::run::{ParticipantId, Row, RunData, RunInfo, TrackRow};
use throng_observation::{Distribution, OneWayDelay, TrackId};
use throng_report::ObjectiveResult;

use crate::report;

/// How much of the run the present is, seconds.
const SECONDS: i64 = 10;
/// Participants beyond which a run of comers and goers is judged by those who came first.
const PARTICIPANTS_MAX: usize = 100_000;

/// The present of a run; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Present(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    run: RunData,
    participants: HashMap<ParticipantId, usize>,
    tracks: HashMap<(ParticipantId, TrackId), usize>,
}

impl Present {
    pub(crate) fn new(info: RunInfo) -> Self {
        let run = RunData { info, ..RunData::default() };
        Self(Arc::new(Mutex::new(Kept { run, participants: HashMap::new(), tracks: HashMap::new() })))
    }

    /// Takes in a row on its way to the run folder.
    pub(crate) fn take(&self, row: &Row) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(row);
    }

    /// The objectives, judged by what is kept.
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
            Row::Participant(row) => {
                put(&mut run.participants, &mut self.participants, row.participant, (**row).clone());
            }
            Row::Track(row) => {
                // Objectives ask a track for its sums only.
                let sums = TrackRow {
                    relative_delay_us: Distribution::default(),
                    absolute_delay: OneWayDelay::default(),
                    ..(**row).clone()
                };
                put(&mut run.tracks, &mut self.tracks, (row.participant, row.track), sums);
            }
            _ => {}
        }
    }
}

/// Puts `row` in the place of the one with the same key.
fn put<K: Eq + std::hash::Hash, R>(rows: &mut Vec<R>, places: &mut HashMap<K, usize>, key: K, row: R) {
    if let Some(kept) = places.get(&key).and_then(|at| rows.get_mut(*at)) {
        *kept = row;
    } else if rows.len() < PARTICIPANTS_MAX {
        places.insert(key, rows.len());
        rows.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::run::SeriesRow;
    use throng_observation::{MediaKind, TrackCounters};

    #[test]
    fn the_present_forgets_what_is_past() {
        let scenario = "objectives = [\"video.loss < 1%\"]\n[target]\nurl = \"whep+http://127.0.0.1/whep\"\n\
                        [crowd]\nsize = 1\n";
        let present = Present::new(RunInfo { scenario: scenario.into(), ..RunInfo::default() });
        let second = |second, packets_lost| {
            let counters = TrackCounters { packets_received: 100, packets_lost, ..TrackCounters::default() };
            let kind = Some(MediaKind::Video);
            Row::Series(Box::new(SeriesRow { second, kind, tracks: 1, counters, ..SeriesRow::default() }))
        };
        assert_eq!(present.judge()[0].verdict, "not_measured");
        present.take(&second(0, 50));
        assert_eq!(present.judge()[0].verdict, "missed");
        (1..=SECONDS).for_each(|at| present.take(&second(at, 0)));
        assert_eq!(present.judge()[0].verdict, "met");
        assert!(present.0.lock().unwrap().run.series.len() <= SECONDS as usize);
    }
}
