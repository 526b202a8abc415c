//! Figures of the live views in words.

use throng_engine::LiveSnapshot;
use throng_engine::live::{HistoryPoint, Spread};
use throng_observation::Quantiles;
use throng_observation::run::SeriesRow;
use throng_observation::units::duration_ms;

/// Its title, its value of a second, and whether high values are bad.
pub(super) type Chart = (String, fn(&HistoryPoint) -> f64, bool);

/// The last point of the charts.
pub(super) fn last(live: &LiveSnapshot) -> HistoryPoint {
    live.history.back().copied().unwrap_or_default()
}

pub(super) fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), duration_ms)
}

pub(super) fn fps(tracks: &SeriesRow) -> String {
    match (tracks.fps_milli.quantile_in(0.5, 1e3), tracks.source_fps.mean()) {
        (Some(fps), Some(source)) => format!("{fps:.1} of {source:.1}"),
        (Some(fps), None) => format!("{fps:.1}"),
        (None, _) => "–".into(),
    }
}

pub(super) fn quantiles_ms(quantiles: Option<&Quantiles>) -> String {
    quantiles
        .map_or_else(|| "–".into(), |q| format!("{} (p99 {})", ms(Some(q.p50)), ms(Some(q.p99))))
}

pub(super) fn quantiles(quantiles: Option<Quantiles>, unit: fn(f64) -> String) -> String {
    quantiles.map_or_else(
        || "–".into(),
        |q| {
            format!(
                "p50 {} p95 {} p99 {} max {}",
                unit(q.p50),
                unit(q.p95),
                unit(q.p99),
                unit(q.max)
            )
        },
    )
}

/// Average, maximum and minimum, as OvenRtcTester prints them.
pub(super) fn spread(spread: Option<Spread>, unit: fn(f64) -> String) -> String {
    spread.map_or_else(
        || "–".into(),
        |s| format!("avg {} max {} min {}", unit(s.mean), unit(s.max), unit(s.min)),
    )
}
