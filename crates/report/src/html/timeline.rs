//! The run's rows as points over time, at most [`POINTS_MAX`] of them: percentiles of a point are
//! those of all its samples.

use std::collections::BTreeMap;

use throng_observation::run::{CrowdRow, RunData, SeriesRow};
use throng_observation::{ChatRow, MediaKind, PlaybackRow, Received, SecondRow as _};

use super::chart::{Chart, Line, Scale};
use crate::server::Grid;
use crate::{health, server};

/// Most points of a chart: more than a screen has pixels for only make the page larger.
pub(crate) const POINTS_MAX: i64 = 600;

/// A stretch of seconds: the rows of media in it, added up.
#[derive(Default)]
pub(crate) struct Point {
    pub(crate) seconds: u64,
    pub(crate) crowd: Option<[f64; 4]>,
    pub(crate) video: SeriesRow,
    pub(crate) audio: SeriesRow,
    pub(crate) playback: PlaybackRow,
    /// `None` where nobody was in one.
    pub(crate) chat: Option<ChatRow>,
    /// Received by all participants, bits per second.
    pub(crate) received_bps: Option<f64>,
    /// Busiest thread's share of a core.
    pub(crate) thread_cpu: BTreeMap<u16, f64>,
    pub(crate) lag_ms: Option<f64>,
    pub(crate) rss_bytes: Option<f64>,
}

impl Point {
    /// Adds a second of a chat; they come in the order of their seconds. Who is in the room is a
    /// state, and not a sum: that of the last second.
    fn add_chat(&mut self, row: &ChatRow) {
        let chat = self.chat.get_or_insert_default();
        if chat.second != row.second {
            (chat.second, chat.joined) = (row.second, 0);
        }
        chat.add(row);
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
                point.add_chat(row);
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
        for (second, row) in CrowdRow::by_second(&run.crowd) {
            if let Some(point) = points.get_mut(place(second)) {
                // Participants that left, as in a search, are not intended any more.
                let wanted = row.intended.saturating_sub(row.left);
                let counts = [wanted, row.connected, row.playing, row.failed];
                point.crowd = Some(counts.map(f64::from));
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

    /// A chart over all of it.
    pub(crate) fn chart(
        &self,
        title: &str,
        unit: &str,
        scale: Scale,
        note: &str,
        lines: Vec<Line>,
    ) -> String {
        Chart { title, unit, note, scale, seconds: &self.starts, lines }.render()
    }

    /// A value for each point.
    pub(crate) fn each(&self, value: impl Fn(&Point) -> Option<f64>) -> Vec<Option<f64>> {
        self.points.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::run::SourceFps;
    use throng_observation::{ChatCounters, TrackCounters};

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
    fn who_is_in_a_room_is_a_state_and_counts_add_up() {
        let mut point = Point::default();
        for (second, cohort, joined, messages_due) in
            [(0, 0, 3, 1), (0, 1, 4, 1), (1, 0, 4, 2), (1, 1, 5, 0)]
        {
            let counters = ChatCounters { messages_due, ..ChatCounters::default() };
            let cohort = throng_observation::run::CohortId(cohort);
            point.add_chat(&ChatRow { second, cohort, joined, counters, ..ChatRow::default() });
        }
        let chat = point.chat.expect("a chat");
        assert_eq!((chat.joined, chat.counters.messages_due), (9, 4));
        let mut first = Point::default();
        first.add_chat(&ChatRow { joined: 2, ..ChatRow::default() });
        assert_eq!(first.chat.map(|chat| chat.joined), Some(2), "the first second is no other one");
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
