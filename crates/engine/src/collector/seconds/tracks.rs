//! Received tracks.

use std::collections::{BTreeMap, HashMap};

use throng_observation::run::{CohortId, SeriesRow, SourceFps};
use throng_observation::{MediaKind, TrackCounters, TrackId, TrackInterval};

use super::{Family, Interval, OpenSecond};

/// Active time below which a track (a join or leave within the second) gives no sample of a rate:
/// one frame more or less would be half of it. Its counts are in the sums.
const RATE_STRETCH_US_MIN: u64 = 500_000;

/// Those of a kind.
#[derive(Default)]
pub(in crate::collector) struct Tracks {
    row: SeriesRow,
    each: HashMap<(u32, TrackId), TrackSecond>,
}

/// All intervals of one track in the second.
#[derive(Default)]
struct TrackSecond {
    counters: TrackCounters,
    frames_due_us: u64,
    jitter_us: Option<u32>,
    oven_rtc_tester_delay_us: Option<u32>,
    source_fps: Option<f32>,
    picture_lines: Option<u16>,
}

impl Interval for TrackInterval {
    type Open = BTreeMap<MediaKind, Tracks>;
    type Row = SeriesRow;

    fn family(second: &mut OpenSecond) -> &mut Family<Self> {
        &mut second.series
    }

    fn add_to(&self, open: &mut Self::Open, id: u32) {
        let Tracks { row, each } = open.entry(self.kind).or_default();
        row.counters += self.counters;
        self.relative_delay_us.iter().for_each(|us| row.relative_delay_us.record(u64::from(*us)));
        if let Some(basis) = self.capture_basis {
            self.absolute_delay_us.iter().for_each(|us| row.absolute_delay.record(basis, *us));
        }
        each.entry((id, self.track)).or_default().add(self);
    }

    fn rows(open: Self::Open, second: i64, cohort: CohortId) -> Vec<SeriesRow> {
        let row = |(kind, tracks): (_, Tracks)| SeriesRow {
            second,
            cohort,
            kind: Some(kind),
            ..tracks.row(kind)
        };
        open.into_iter().map(row).collect()
    }
}

impl TrackSecond {
    fn add(&mut self, interval: &TrackInterval) {
        self.counters += interval.counters;
        self.frames_due_us += interval.frames_due_us;
        self.jitter_us = interval.jitter_us.or(self.jitter_us);
        self.oven_rtc_tester_delay_us =
            interval.oven_rtc_tester_delay_us.or(self.oven_rtc_tester_delay_us);
        self.source_fps =
            interval.source_fps.filter(|fps| fps.is_finite() && *fps > 0.0).or(self.source_fps);
        self.picture_lines = interval.picture_lines.or(self.picture_lines);
    }
}

impl Tracks {
    /// The row, with one sample of each figure per track.
    fn row(self, kind: MediaKind) -> SeriesRow {
        let (mut row, mut source_fps) = (self.row, SourceFps::default());
        row.tracks = u32::try_from(self.each.len()).unwrap_or(u32::MAX);
        for track in self.each.values() {
            track.jitter_us.iter().for_each(|us| row.jitter_us.record(u64::from(*us)));
            track
                .oven_rtc_tester_delay_us
                .iter()
                .for_each(|us| row.oven_rtc_tester_delay_us.record(u64::from(*us)));
            if track.counters.active_us < RATE_STRETCH_US_MIN {
                continue;
            }
            if let Some(ratio) = track.counters.loss_ratio() {
                row.loss_ppm.record((ratio * 1e6) as u64);
            }
            // The wait for the first frame counts as join time.
            if kind != MediaKind::Video || track.frames_due_us < RATE_STRETCH_US_MIN {
                continue;
            }
            let fps = track.counters.fps(track.frames_due_us);
            fps.iter().for_each(|fps| row.fps_milli.record((fps * 1e3) as u64));
            let shown = track.picture_lines.filter(|_| track.counters.frames_decodable > 0);
            shown.iter().for_each(|lines| row.picture_lines.record(u64::from(*lines)));
            if track.counters.missing_us > 0 {
                row.tracks_below_source_fps += 1;
            } else if let Some(source) = track.source_fps.map(f64::from) {
                let (frames, due_us) = (track.counters.frames_decodable, track.frames_due_us);
                let near = TrackInterval::FPS_NEAR_SOURCE;
                let is_below = TrackInterval::is_below_source(frames, due_us, source, near);
                row.tracks_below_source_fps += u64::from(is_below);
                source_fps += SourceFps { tracks: 1, sum_milli: (source * 1e3) as u64 };
            }
        }
        row.source_fps = source_fps;
        row
    }
}
