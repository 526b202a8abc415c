//! Selects the rows that a report shows one by one, and sums up the others, so that memory depends
//! on what is shown and not on the length of the run. Samples are summed over intervals that no
//! figure divides, so that the figures stay the same.

use std::collections::BTreeSet;

use throng_analysis::windows;
use throng_observation::RowSelector;
use throng_observation::run::{ParticipantId, RunData, TrackRow};

use crate::html::{Timeline, WORST_MAX, trouble};
use crate::{canary, planned};

/// The row selector of a report.
#[derive(Debug, Default)]
pub struct ReportRows {
    /// Participants whose tracks were decoded as well.
    tapped: BTreeSet<ParticipantId>,
    /// The participants with most trouble so far, the worst first, with all their tracks.
    worst: Vec<(f64, Vec<TrackRow>)>,
}

impl RowSelector for ReportRows {
    fn stretches(&mut self, run: &RunData) -> Vec<i64> {
        self.tapped = run.decoded.iter().map(|row| row.participant).collect();
        let warm_up_s = planned::warm_up_s(run);
        let mut begin: BTreeSet<i64> = Timeline::starts_of(run).into_iter().collect();
        begin.insert(planned::counted_from(warm_up_s));
        begin.extend(windows::edges(run));
        begin.extend(canary::edges(run, warm_up_s));
        begin.into_iter().collect()
    }

    fn tracks(&mut self, tracks: Vec<TrackRow>, run: &mut RunData) {
        let is_shown = |track: &TrackRow| {
            track.from.as_deref().and_then(ParticipantId::from_name).is_some()
                || self.tapped.contains(&track.participant)
        };
        if tracks.iter().any(is_shown) {
            run.tracks.extend(tracks);
            return;
        }
        let Some(bad) = tracks.iter().filter_map(trouble).reduce(f64::max) else {
            run.aggregated.add(&tracks);
            return;
        };
        // Of participants with equal trouble, the first is shown.
        let at = self.worst.partition_point(|(other, _)| other.total_cmp(&bad).is_ge());
        self.worst.insert(at, (bad, tracks));
        for (_, tracks) in self.worst.drain(WORST_MAX.min(self.worst.len())..) {
            run.aggregated.add(&tracks);
        }
    }

    fn finish(&mut self, run: &mut RunData) {
        run.tracks.extend(self.worst.drain(..).flat_map(|(_, tracks)| tracks));
        run.tracks.sort_by_key(|track| (track.participant, track.track));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::{MediaKind, SecondRow as _};
    use throng_scenario::Scenario;

    use super::*;
    use crate::{Summary, example, html, oven_rtc_tester, summarise};

    /// What is left of `run` when it is read through the selector, as the store does it.
    fn sifted(run: &RunData) -> RunData {
        let mut shown = ReportRows::default();
        let mut left = RunData { tracks: Vec::new(), ..run.clone() };
        for row in &mut left.series {
            for samples in [
                &mut row.relative_delay_us,
                &mut row.jitter_us,
                &mut row.fps_milli,
                &mut row.loss_ppm,
                &mut row.oven_rtc_tester_delay_us,
                &mut row.picture_lines,
            ] {
                *samples = throng_observation::Distribution::new();
            }
            row.absolute_delay = throng_observation::OneWayDelay::default();
        }
        let stretches = shown.stretches(&left);
        let stretch = |second: i64| stretches.partition_point(|start| *start <= second);
        for row in &run.series {
            let of = |sums: &&mut throng_observation::run::SeriesRow| {
                (stretch(sums.second), sums.cohort, sums.kind)
                    == (stretch(row.second), row.cohort, row.kind)
            };
            let sums = left.series.iter_mut().find(of).unwrap();
            sums.add_samples(row);
        }
        for row in &mut left.playback {
            (row.buffer_us, row.shortfall_ppm) = Default::default();
            (row.latency_us, row.edge_latency_us, row.capture_latency_us) = Default::default();
        }
        for row in &run.playback {
            let of = |sums: &&mut throng_observation::PlaybackRow| {
                (stretch(sums.second), sums.cohort) == (stretch(row.second), row.cohort)
            };
            left.playback.iter_mut().find(of).unwrap().add_samples(row);
        }
        for tracks in run.tracks.chunk_by(|a, b| a.participant == b.participant) {
            shown.tracks(tracks.to_vec(), &mut left);
        }
        shown.finish(&mut left);
        left
    }

    fn rendered(run: &RunData) -> (Summary, String, String) {
        let mut objectives = example::objectives();
        let freeze = "objectives = [\"video.freeze p99 < 1%\"]\n[target]\nurl = \"whep+http://127.0.0.1/whep\"\n\
                      [crowd]\nsize = 1\n";
        objectives.extend(Scenario::parse_stored(freeze).unwrap().objectives);
        let summary = summarise(run, &objectives, Duration::from_secs(0));
        let page = html::render(run, &summary);
        (summary, page, oven_rtc_tester::summary(run))
    }

    #[test]
    fn a_report_of_what_is_left_is_the_report_of_the_run() {
        let mut many = example::healthy(200, 30);
        // Some are troubled, several of them alike: more than are shown.
        for track in many.tracks.iter_mut().filter(|track| track.participant.0 % 7 == 3) {
            track.counters.packets_lost = i64::from(track.participant.0 % 3) * 10;
            track.counters.freeze_us = u64::from(track.participant.0 % 2) * 1_000_000;
        }
        let mut long = example::healthy(5, 1_900);
        let scenario = "[target]\nurl = \"whep+http://127.0.0.1/whep\"\n[crowd]\nsize = 5\n\
                        [run]\nwarm_up = \"7s\"\n";
        example::plan(&mut long, scenario);
        let lesson = crate::conference::tests::lesson(6, 40, |_| 1.0);
        let players = crate::playback::tests::players(20);
        let all = [
            many,
            long,
            lesson,
            players,
            example::degraded(),
            example::audio_only(),
            example::all_failed(),
        ];
        for (number, run) in all.iter().enumerate() {
            let left = sifted(run);
            assert_eq!(rendered(run), rendered(&left), "run {number}");
            let held = |run: &RunData| {
                run.series.iter().filter(|row| !row.relative_delay_us.is_empty()).count()
            };
            assert!(
                held(&left) <= 2 * 700,
                "run {number}: {} of {} rows hold samples",
                held(&left),
                held(run)
            );
        }
        assert!(sifted(&all[0]).tracks.len() <= 2 * WORST_MAX && all[0].tracks.len() == 400);
        assert_eq!(sifted(&all[0]).aggregated.of(MediaKind::Video).tracks, 190);
    }
}
