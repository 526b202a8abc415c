//! Judges objectives by the figures.

use throng_observation::{MediaKind, TrackCounters};
use throng_scenario::objective::{EachOnce, Quantile, Whole};
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
    let entry = metric.entry();
    let Some(quantile) = at.quantile() else { return whole(entry.whole?, figures) };
    let measured = at_quantile(entry.quantile?, figures, quantile)?;
    if !is_of_source {
        return Some(measured);
    }
    figures.video.source_fps.mean().filter(|source| *source > 0.0).map(|source| measured / source)
}

/// One figure for the whole run.
fn whole(of: Whole, figures: &Figures<'_>) -> Option<f64> {
    match of {
        Whole::OfRows(figure) => figure(&figures.rows()),
        Whole::Failed => {
            let intended = figures.intended.len();
            (intended > 0).then(|| figures.failed() as f64 / intended as f64)
        }
    }
}

/// A quantile.
fn at_quantile(of: Quantile, figures: &Figures<'_>, q: f64) -> Option<f64> {
    let each = match of {
        Quantile::UserSeconds(figure) | Quantile::Frames(figure) | Quantile::Messages(figure) => {
            return figure(&figures.rows(), q);
        }
        Quantile::Latency => return figures.playback.latency_ms(q),
        Quantile::Participants(each) => each,
    };
    match each {
        EachOnce::Connect => figures.connect.quantile_ms(q),
        EachOnce::FirstFrame => figures.first_frame.quantile_ms(q),
        EachOnce::Startup => figures.startup.quantile_ms(q),
        EachOnce::Freeze => freeze_quantile(figures, q),
        EachOnce::StallRatio => figures.playback.stall_ratio_quantile(&figures.players, q),
        EachOnce::Stalls => figures.playback.stalls_quantile(&figures.players, q),
    }
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
