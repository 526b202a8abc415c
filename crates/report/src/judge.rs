//! Judges objectives by the figures.

use throng_observation::{MediaKind, TrackCounters};
use throng_scenario::objective::Whole;
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
    let Some(quantile) = at.quantile() else { return whole(metric.entry().whole?, figures) };
    let measured = at_quantile(metric)?(figures, quantile)?;
    if !is_of_source {
        return Some(measured);
    }
    figures.video.source_fps.mean().filter(|source| *source > 0.0).map(|source| measured / source)
}

/// One figure for the whole run.
fn whole(of: Whole, figures: &Figures<'_>) -> Option<f64> {
    match of {
        Whole::Tracks(MediaKind::Video, ratio) => ratio(&figures.video.counters),
        Whole::Tracks(MediaKind::Audio, ratio) => ratio(&figures.audio.counters),
        Whole::Players(ratio) => ratio(&figures.playback.window.counters),
        Whole::Chat(ratio) => ratio(&figures.chat.window.counters),
        Whole::Failed => {
            let intended = figures.intended.len();
            (intended > 0).then(|| figures.failed() as f64 / intended as f64)
        }
    }
}

/// A quantile of a metric.
type AtQuantile = fn(&Figures<'_>, f64) -> Option<f64>;

/// What measures quantiles of a metric; `None` if it has none.
fn at_quantile(metric: Metric) -> Option<AtQuantile> {
    let measure: AtQuantile = match metric {
        Metric::VideoLoss => |of, q| of.video.loss_ratio_at(q),
        Metric::AudioLoss => |of, q| of.audio.loss_ratio_at(q),
        Metric::VideoDelay => |of, q| of.video.relative_delay_us.quantile_in(q, 1e3),
        Metric::AudioDelay => |of, q| of.audio.relative_delay_us.quantile_in(q, 1e3),
        // The server's own reports do not cover the path from the source, so they cannot judge an
        // end-to-end objective.
        Metric::VideoOneWayDelay => |of, q| {
            let delay = &of.video.absolute_delay;
            delay.basis().filter(|basis| basis.is_end_to_end())?;
            delay.quantile_ms(q)
        },
        Metric::VideoJitter => |of, q| of.video.jitter_us.quantile_in(q, 1e3),
        Metric::AudioJitter => |of, q| of.audio.jitter_us.quantile_in(q, 1e3),
        Metric::VideoFps => |of, q| of.video.fps_milli.quantile_in(q, 1e3),
        // What a distribution leaves out of a size is below it: 720 is not missed by 719.
        Metric::VideoResolution => {
            |of, q| of.video.picture_lines.lowest_at(q).map(|lines| lines as f64)
        }
        Metric::VideoFreeze => freeze_quantile,
        Metric::Connect => |of, q| of.connect.quantile_ms(q),
        Metric::FirstFrame => |of, q| of.first_frame.quantile_ms(q),
        Metric::Startup => |of, q| of.startup.quantile_ms(q),
        Metric::StallRatio => |of, q| of.playback.stall_ratio_quantile(&of.players, q),
        Metric::Stalls => |of, q| of.playback.stalls_quantile(&of.players, q),
        Metric::Delivery => |of, q| of.playback.window.delivery_ratio(q),
        Metric::Latency => |of, q| of.playback.latency_ms(q),
        Metric::ChatDelivery => |of, q| of.chat.window.delivery_ms(q),
        // One value for the whole run.
        Metric::ChatMissing | Metric::Failed => return None,
    };
    Some(measure)
}

/// Over those who play media as it arrives, each by its video tracks; one that failed without video
/// counts as frozen throughout.
fn freeze_quantile(figures: &Figures<'_>, quantile: f64) -> Option<f64> {
    let mut by_participant = std::collections::BTreeMap::new();
    for track in figures.tracks.iter().filter(|track| track.kind == MediaKind::Video) {
        let sum: &mut TrackCounters = by_participant.entry(track.participant).or_default();
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

#[cfg(test)]
mod tests {
    use throng_scenario::objective::{CATALOGUE, Population};

    use super::*;

    #[test]
    fn every_metric_is_measured_by_quantiles_or_over_the_whole_run() {
        for entry in CATALOGUE {
            let has_quantiles = entry.population != Population::Run;
            assert_eq!(at_quantile(entry.metric).is_some(), has_quantiles, "{:?}", entry.metric);
            assert!(has_quantiles || entry.whole.is_some(), "{:?}", entry.metric);
        }
    }
}
