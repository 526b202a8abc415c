//! The seconds of a run that are still open, and the crowd's totals up to the last one that was closed.

use std::collections::BTreeMap;

use throng_observation::run::{CohortId, CrowdRow, SeriesRow};
use throng_observation::{MediaKind, TrackInterval};

use super::member::fps;

/// Open seconds, by number.
pub(super) struct Seconds {
    cohorts: u16,
    open: BTreeMap<i64, Open>,
    totals: Vec<Change>,
}

/// How a second changed the crowd of a cohort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) started: i32,
    pub(super) connected: i32,
    pub(super) failed: i32,
    pub(super) left: i32,
    pub(super) playing: i32,
    pub(super) ice: [i32; 6],
}

#[derive(Default)]
struct Open {
    crowd: BTreeMap<u16, Change>,
    series: BTreeMap<(u16, MediaKind), Sums>,
}

#[derive(Default)]
struct Sums {
    row: SeriesRow,
    source_fps_milli: u64,
    sources: u64,
}

/// What a second came to.
#[derive(Debug, Default)]
pub(super) struct Closed {
    pub(super) crowd: Vec<CrowdRow>,
    pub(super) series: Vec<SeriesRow>,
}

impl Seconds {
    pub(super) fn new(cohorts: u16) -> Self {
        let cohorts = cohorts.max(1);
        Self { cohorts, open: BTreeMap::new(), totals: vec![Change::default(); usize::from(cohorts)] }
    }

    /// The crowd's changes in `second`. What comes for a second that was closed is closed with the next one.
    pub(super) fn crowd(&mut self, second: i64, cohort: CohortId) -> &mut Change {
        self.open.entry(second).or_default().crowd.entry(cohort.0).or_default()
    }

    /// Adds what a track did to the second in which it mostly lies.
    pub(super) fn interval(&mut self, second: i64, cohort: CohortId, interval: &TrackInterval) {
        let open = self.open.entry(second).or_default();
        let sums = open.series.entry((cohort.0, interval.kind)).or_default();
        let row = &mut sums.row;
        row.tracks += 1;
        row.counters += interval.counters;
        interval.relative_delay_us.iter().for_each(|us| row.relative_delay_us.record(u64::from(*us)));
        // A negative one-way delay says that the clocks disagree by more than the delay: it is below any we can tell.
        let absolute = interval.absolute_delay_us.iter();
        absolute.for_each(|us| row.absolute_delay_us.record(u64::try_from(*us).unwrap_or(0)));
        interval.jitter_us.iter().for_each(|us| row.jitter_us.record(u64::from(*us)));
        interval.oven_delay_us.iter().for_each(|us| row.oven_delay_us.record(u64::from(*us)));
        let lost = interval.counters.packets_lost.max(0) as u64;
        let expected = interval.counters.packets_received.saturating_add(lost);
        if let Some(ppm) = lost.saturating_mul(1_000_000).checked_div(expected) {
            row.loss_ppm.record(ppm);
        }
        let Some(fps) = fps(&interval.counters).filter(|_| interval.kind == MediaKind::Video) else { return };
        row.fps_milli.record((fps * 1e3) as u64);
        if let Some(source) = interval.source_fps.filter(|fps| fps.is_finite() && *fps > 0.0) {
            row.tracks_below_source_fps += u32::from(fps < 0.9 * f64::from(source));
            sums.source_fps_milli += (source * 1e3) as u64;
            sums.sources += 1;
        }
    }

    /// Closes `second` and everything before it; `intended` says how many joins of a cohort have come.
    pub(super) fn close(&mut self, second: i64, intended: impl Fn(u16) -> u32) -> Closed {
        let later = self.open.split_off(&(second + 1));
        let mut playing = vec![0; usize::from(self.cohorts)];
        let mut series: BTreeMap<(u16, MediaKind), Sums> = BTreeMap::new();
        for (number, open) in std::mem::replace(&mut self.open, later) {
            for (cohort, change) in open.crowd {
                let cohort = usize::from(cohort);
                if let Some(total) = self.totals.get_mut(cohort) {
                    total.add(&change);
                }
                if let Some(playing) = playing.get_mut(cohort).filter(|_| number == second) {
                    *playing += change.playing;
                }
            }
            series.extend(open.series);
        }
        let crowd =
            (0..self.cohorts).zip(&self.totals).zip(playing).map(|((cohort, total), playing)| CrowdRow {
                second,
                cohort: CohortId(cohort),
                intended: intended(cohort),
                started: count(total.started),
                connected: count(total.connected),
                playing: count(playing),
                failed: count(total.failed),
                left: count(total.left),
                ice: total.ice.map(count),
            });
        let series = series.into_iter().map(|((cohort, kind), sums)| SeriesRow {
            second,
            cohort: CohortId(cohort),
            kind: Some(kind),
            source_fps_milli: sums.source_fps_milli.checked_div(sums.sources).map(|fps| fps as u32),
            ..sums.row
        });
        Closed { crowd: crowd.collect(), series: series.collect() }
    }
}

impl Change {
    fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.connected += other.connected;
        self.failed += other.failed;
        self.left += other.left;
        self.ice.iter_mut().zip(other.ice).for_each(|(mine, theirs)| *mine += theirs);
    }
}

fn count(signed: i32) -> u32 {
    u32::try_from(signed).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use throng_observation::{TrackCounters, TrackId};

    use super::*;

    fn interval(received: u64, lost: i64, frames: u64) -> TrackInterval {
        TrackInterval {
            track: TrackId(0),
            kind: MediaKind::Video,
            ended_at: Instant::now(),
            counters: TrackCounters {
                packets_received: received,
                packets_lost: lost,
                frames_decodable: frames,
                active_us: 1_000_000,
                ..TrackCounters::default()
            },
            jitter_us: Some(1000),
            relative_delay_us: vec![10_000, 20_000],
            absolute_delay_us: vec![-5],
            oven_delay_us: None,
            source_fps: Some(30.0),
        }
    }

    #[test]
    fn a_second_holds_the_sums_and_all_samples_of_its_tracks() {
        let mut seconds = Seconds::new(1);
        seconds.interval(3, CohortId(0), &interval(90, 10, 30));
        seconds.interval(3, CohortId(0), &interval(100, 0, 20));
        seconds.interval(4, CohortId(0), &interval(1, 0, 0));
        let closed = seconds.close(3, |_| 2);
        let [row] = closed.series.as_slice() else { panic!("{closed:?}") };
        assert_eq!((row.tracks, row.tracks_below_source_fps, row.counters.packets_received), (2, 1, 190));
        assert_eq!((row.relative_delay_us.count(), row.loss_ppm.quantile(1.0).unwrap() / 1000), (4, 100));
        assert_eq!(row.source_fps_milli, Some(30_000));
        assert_eq!(row.absolute_delay_us.quantile(1.0), Some(0));
    }

    #[test]
    fn the_crowd_is_counted_up_and_late_news_is_not_lost() {
        let mut seconds = Seconds::new(2);
        seconds.crowd(0, CohortId(1)).started += 5;
        seconds.crowd(1, CohortId(1)).connected += 3;
        seconds.crowd(1, CohortId(1)).playing += 2;
        let crowd = seconds.close(0, |_| 7).crowd;
        assert_eq!((crowd[1].intended, crowd[1].started, crowd[1].connected, crowd[0].started), (7, 5, 0, 0));
        seconds.crowd(0, CohortId(1)).failed += 1; // late
        let crowd = seconds.close(1, |_| 7).crowd;
        assert_eq!((crowd[1].started, crowd[1].connected, crowd[1].playing, crowd[1].failed), (5, 3, 2, 1));
    }
}
