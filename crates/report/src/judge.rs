//! Judges objectives by the figures.

use throng_observation::run::SeriesRow;
use throng_observation::{MediaKind, TrackCounters};
use throng_scenario::{Metric, Objective, ObjectiveOutcome, Statistic, Threshold};

use crate::figures::{Figures, ranked};
use crate::summary::ObjectiveResult;

/// Judges one objective.
pub(crate) fn judge(objective: &Objective, figures: &Figures<'_>) -> ObjectiveResult {
    let is_of_source = matches!(objective.threshold, Threshold::OfSource(_));
    let measured = measure(objective.metric, objective.statistic, is_of_source, figures);
    let verdict = objective.evaluate(measured);
    ObjectiveResult {
        text: objective.text.clone(),
        measured: measured.filter(|figure| figure.is_finite()),
        measured_text: measured_text(measured, objective.threshold),
        result: match verdict {
            ObjectiveOutcome::Met => "met",
            ObjectiveOutcome::Missed => "missed",
            ObjectiveOutcome::NotMeasured => "not_measured",
        }
        .into(),
        met: verdict == ObjectiveOutcome::Met,
    }
}

/// A statistic of a metric: infinite where it lies among participants that failed. With
/// `is_of_source` a frame rate is a ratio of the source's.
pub(crate) fn measure(
    metric: Metric,
    at: Statistic,
    is_of_source: bool,
    figures: &Figures<'_>,
) -> Option<f64> {
    let (video, audio) = (&figures.video, &figures.audio);
    match metric {
        Metric::VideoLoss => loss(video, at),
        Metric::AudioLoss => loss(audio, at),
        Metric::VideoDelay => video.relative_delay_us.quantile_in(at.quantile()?, 1e3),
        Metric::AudioDelay => audio.relative_delay_us.quantile_in(at.quantile()?, 1e3),
        // The server's own reports do not cover the path from the source, so they cannot judge an
        // end-to-end objective.
        Metric::VideoOneWayDelay => {
            let delay = &video.absolute_delay;
            delay.basis().filter(|basis| basis.is_end_to_end())?;
            delay.quantile_ms(at.quantile()?)
        }
        Metric::VideoJitter => video.jitter_us.quantile_in(at.quantile()?, 1e3),
        Metric::AudioJitter => audio.jitter_us.quantile_in(at.quantile()?, 1e3),
        Metric::VideoFps => {
            let fps = video.fps_milli.quantile_in(at.quantile()?, 1e3)?;
            if is_of_source {
                video.source_fps.mean().filter(|source| *source > 0.0).map(|source| fps / source)
            } else {
                Some(fps)
            }
        }
        // What a distribution leaves out of a size is below it: 720 is not missed by 719.
        Metric::VideoResolution => {
            video.picture_lines.lowest_at(at.quantile()?).map(|lines| lines as f64)
        }
        Metric::VideoFreeze => match at.quantile() {
            None => video.counters.freeze_ratio(),
            Some(q) => freeze_quantile(figures, q),
        },
        Metric::Connect => at.quantile().and_then(|q| figures.connect.quantile_ms(q)),
        Metric::FirstFrame => at.quantile().and_then(|q| figures.first_frame.quantile_ms(q)),
        Metric::Startup => at.quantile().and_then(|q| figures.startup.quantile_ms(q)),
        Metric::StallRatio => match at.quantile() {
            None => figures.playback.window.counters.stall_ratio(),
            Some(q) => figures.playback.stall_ratio_quantile(&figures.players, q),
        },
        Metric::Stalls => figures.playback.stalls_quantile(&figures.players, at.quantile()?),
        Metric::Delivery => match at.quantile() {
            None => figures.playback.window.counters.delivery_ratio(),
            Some(q) => figures.playback.window.delivery_ratio(q),
        },
        Metric::Latency => figures.playback.latency_ms(at.quantile()?),
        Metric::ChatDelivery => figures.chat.window.delivery_ms(at.quantile()?),
        Metric::ChatMissing => figures.chat.window.counters.missing_ratio(),
        Metric::Failed => {
            let intended = figures.intended.len();
            (intended > 0).then(|| figures.failed() as f64 / intended as f64)
        }
    }
}

fn loss(tracks: &SeriesRow, at: Statistic) -> Option<f64> {
    match at.quantile() {
        None => tracks.counters.loss_ratio(),
        Some(quantile) => tracks.loss_ratio_at(quantile),
    }
}

/// Over those who play media as it arrives, each by its video tracks; one that failed without video
/// counts as frozen throughout.
fn freeze_quantile(figures: &Figures<'_>, quantile: f64) -> Option<f64> {
    let mut by_participant = std::collections::BTreeMap::new();
    for track in figures.tracks.iter().filter(|track| track.kind == MediaKind::Video) {
        let sum: &mut throng_observation::TrackCounters =
            by_participant.entry(track.participant).or_default();
        *sum += track.counters;
    }
    let ratios = figures.receivers.iter().filter_map(|row| {
        let of_tracks = by_participant.get(&row.participant).and_then(TrackCounters::freeze_ratio);
        match of_tracks.or_else(|| figures.aggregated.freeze_ratio(row.participant)) {
            None if row.failure().is_some() => Some(1.0),
            ratio => ratio,
        }
    });
    ranked(ratios, quantile)
}

fn measured_text(measured: Option<f64>, threshold: Threshold) -> String {
    match measured {
        None => "not measured".into(),
        Some(figure) if figure.is_infinite() => "never, because too many failed".into(),
        Some(figure) => threshold.unit().show(figure),
    }
}
