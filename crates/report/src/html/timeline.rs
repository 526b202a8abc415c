//! The run's rows as points over time, at most [`POINTS_MAX`] of them: percentiles of a point are
//! those of all its samples.

use std::collections::BTreeMap;

use throng_observation::run::{RunData, SeriesRow, SourceFps};
use throng_observation::{
    Distribution, MediaKind, OneWayDelay, PlaybackCounters, PlaybackRow, Received, TrackCounters,
};

use super::chat::ChatPoint;
use crate::server::Grid;
use crate::{health, server};

/// Most points of a chart: more than a screen has pixels for only make the page larger.
pub(crate) const POINTS_MAX: i64 = 600;

/// A stretch of seconds.
#[derive(Default)]
pub(crate) struct Point {
    pub(crate) seconds: u64,
    pub(crate) crowd: Option<[f64; 4]>,
    pub(crate) video: Tracks,
    pub(crate) audio: Tracks,
    pub(crate) playback: PlayersPoint,
    pub(crate) chat: ChatPoint,
    /// Received by all participants, bits per second.
    pub(crate) received_bps: Option<f64>,
    /// Busiest thread's share of a core.
    pub(crate) thread_cpu: BTreeMap<u16, f64>,
    pub(crate) lag_ms: Option<f64>,
    pub(crate) rss_bytes: Option<f64>,
}

/// The tracks of a kind in it.
#[derive(Default)]
pub(crate) struct Tracks {
    pub(crate) is_present: bool,
    pub(crate) counters: TrackCounters,
    pub(crate) relative: Distribution,
    pub(crate) absolute: OneWayDelay,
    pub(crate) fps_milli: Distribution,
    pub(crate) picture_lines: Distribution,
    pub(crate) source_fps: SourceFps,
}

impl Tracks {
    fn add(&mut self, row: &SeriesRow) {
        self.is_present |= row.tracks > 0;
        self.counters += row.counters;
        self.relative.merge(&row.relative_delay_us);
        self.absolute.merge(&row.absolute_delay);
        self.fps_milli.merge(&row.fps_milli);
        self.picture_lines.merge(&row.picture_lines);
        self.source_fps += row.source_fps;
    }
}

/// The players in it.
#[derive(Default)]
pub(crate) struct PlayersPoint {
    /// Players, players that stalled, and players that waited for playback, summed over seconds.
    pub(crate) players: u64,
    pub(crate) stalled: u64,
    pub(crate) starting: u64,
    pub(crate) counters: PlaybackCounters,
    pub(crate) buffer_us: Distribution,
    pub(crate) shortfall_ppm: Distribution,
    pub(crate) latency_us: Distribution,
    pub(crate) edge_latency_us: Distribution,
}

impl PlayersPoint {
    fn add(&mut self, row: &PlaybackRow) {
        self.players += u64::from(row.players);
        self.stalled += u64::from(row.stalled);
        self.starting += u64::from(row.starting);
        self.counters += row.counters;
        self.buffer_us.merge(&row.buffer_us);
        self.shortfall_ppm.merge(&row.shortfall_ppm);
        self.latency_us.merge(&row.latency_us);
        self.edge_latency_us.merge(&row.edge_latency_us);
    }

    /// `part` of the players; `None` without players.
    pub(crate) fn share(&self, part: u64) -> Option<f64> {
        (self.players > 0).then(|| part as f64 / self.players as f64)
    }
}

/// All points in order.
pub(crate) struct Timeline {
    pub(crate) starts: Vec<i64>,
    pub(crate) points: Vec<Point>,
}

impl Timeline {
    /// The first and the last second of a run, and how many seconds a point has.
    fn span(run: &RunData) -> (i64, i64, i64) {
        let seconds =
            || run.crowd.iter().map(|r| r.second).chain(run.series.iter().map(|r| r.second));
        let (first, last) = (seconds().min().unwrap_or(0), seconds().max().unwrap_or(-1));
        // Watched hosts are seen from before the crowd comes: all charts of a page share that axis.
        let first = server::first_second(run).map_or(first, |second| first.min(second));
        (first, last, ((last - first) / POINTS_MAX + 1).max(1))
    }

    /// The seconds at which points begin.
    pub(crate) fn starts_of(run: &RunData) -> Vec<i64> {
        let (first, last, width) = Self::span(run);
        (first..=last).step_by(usize::try_from(width).unwrap_or(1)).collect()
    }

    pub(crate) fn of(run: &RunData) -> Self {
        let (first, last, width) = Self::span(run);
        let starts = Self::starts_of(run);
        let count = starts.len();
        let mut points: Vec<Point> = (0..count).map(|_| Point::default()).collect();
        let place =
            |second: i64| usize::try_from((second - first).div_euclid(width)).unwrap_or(usize::MAX);
        let received = Received::of_run(run);
        for (index, point) in points.iter_mut().enumerate() {
            let start = first + index as i64 * width;
            let end = last.saturating_add(1).min(start.saturating_add(width));
            point.received_bps = received.bps(start..end);
            point.seconds = end.abs_diff(start);
        }
        Self::add_crowd(run, &mut points, place);
        for row in &run.series {
            if let Some(point) = points.get_mut(place(row.second)) {
                match row.kind {
                    Some(MediaKind::Video) => point.video.add(row),
                    Some(MediaKind::Audio) => point.audio.add(row),
                    None => {}
                }
            }
        }
        for row in &run.playback {
            if let Some(point) = points.get_mut(place(row.second)) {
                point.playback.add(row);
            }
        }
        for row in &run.chat {
            if let Some(point) = points.get_mut(place(row.second)) {
                point.chat.add(row);
            }
        }
        for row in &run.generator {
            let Some(point) = points.get_mut(place(row.second)) else { continue };
            let most = |old: Option<f64>, new: f64| Some(old.map_or(new, |old| old.max(new)));
            point.lag_ms = most(point.lag_ms, health::lag_ms(row));
            match row.thread {
                Some(thread) => {
                    let share = point.thread_cpu.entry(thread).or_insert(0.0);
                    *share = share.max(health::cpu_ratio(row));
                }
                None => point.rss_bytes = most(point.rss_bytes, row.rss_bytes as f64),
            }
        }
        Self { starts, points }
    }

    /// The state at the last second of each point, all cohorts together.
    fn add_crowd(run: &RunData, points: &mut [Point], place: impl Fn(i64) -> usize) {
        let mut by_second: BTreeMap<i64, [f64; 4]> = BTreeMap::new();
        for row in &run.crowd {
            let sums = by_second.entry(row.second).or_default();
            // Participants that left, as in a search, are not intended any more.
            let wanted = row.intended.saturating_sub(row.left);
            for (sum, count) in
                sums.iter_mut().zip([wanted, row.connected, row.playing, row.failed])
            {
                *sum += f64::from(count);
            }
        }
        for (second, sums) in by_second {
            if let Some(point) = points.get_mut(place(second)) {
                point.crowd = Some(sums);
            }
        }
    }

    /// The same points for the series of a host.
    pub(crate) fn grid(&self) -> Grid {
        let width_s = match self.starts.as_slice() {
            [first, second, ..] => second - first,
            _ => 1,
        };
        Grid {
            first_us: self.starts.first().copied().unwrap_or(0).saturating_mul(1_000_000),
            width_us: width_s.max(1).saturating_mul(1_000_000),
            count: self.starts.len(),
        }
    }

    /// Whether media came as packets: not where all viewers are players that fetch it.
    pub(crate) fn has_packets(&self) -> bool {
        let of_packets = |point: &Point| {
            point.video.counters.has_packets() || point.audio.counters.has_packets()
        };
        self.points.iter().all(|point| point.playback.players == 0)
            || self.points.iter().any(of_packets)
    }

    /// A value for each point.
    pub(crate) fn each(&self, value: impl Fn(&Point) -> Option<f64>) -> Vec<Option<f64>> {
        self.points.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::run::CrowdRow;

    use super::*;

    #[test]
    fn the_chart_has_the_frame_rate_of_the_source_that_the_text_has() {
        // Of most tracks of the first row the source's rate is not known.
        let rows = [(9, 1, 30_000), (3, 3, 60_000)].map(|(tracks, known, sum_milli)| SeriesRow {
            kind: Some(MediaKind::Video),
            tracks,
            source_fps: SourceFps { tracks: known, sum_milli },
            ..SeriesRow::default()
        });
        let run = RunData { series: rows.into(), ..RunData::default() };
        let of_chart = Timeline::of(&run).each(|point| point.video.source_fps.mean());
        assert_eq!(of_chart, [Some(22.5)]);
        assert_eq!(crate::summarise(&run, &[], Duration::ZERO).video.source_fps, Some(22.5));
    }

    #[test]
    fn a_point_of_two_seconds_of_which_one_has_a_row_has_half_of_its_rate() {
        let counters = TrackCounters { wire_bytes: 1_000, ..TrackCounters::default() };
        let run = RunData {
            series: vec![SeriesRow { counters, ..SeriesRow::default() }],
            crowd: [0, POINTS_MAX * 2 - 1]
                .map(|second| CrowdRow { second, ..CrowdRow::default() })
                .into(),
            ..RunData::default()
        };
        let of_chart = Timeline::of(&run).each(|point| point.received_bps);
        assert_eq!(of_chart.get(..2), Some([Some(4_000.0), None].as_slice()));
    }

    #[test]
    fn a_participant_that_left_is_no_longer_expected() {
        let crowd = [(0, 20, 0), (1, 35, 20)].map(|(second, intended, left)| CrowdRow {
            second,
            intended,
            left,
            ..CrowdRow::default()
        });
        let time = Timeline::of(&RunData { crowd: crowd.into(), ..RunData::default() });
        assert_eq!(time.each(|point| point.crowd.map(|sums| sums[0])), [Some(20.0), Some(15.0)]);
    }
}
