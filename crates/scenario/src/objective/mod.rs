//! Objectives of a run: `video.loss p95 < 1%`.

use std::fmt;

use throng_observation::units;

mod measured;
pub use measured::{EachOnce, Quantile, Rows, Whole};

mod metric;
pub use metric::{Better, CATALOGUE, Metric, MetricEntry, Unit};

mod bad_if;
pub use bad_if::bad_if;

mod grammar;
pub use grammar::ObjectiveError;

/// One objective: `metric [quantile] op threshold`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The metric.
    pub metric: Metric,
    /// The statistic of the metric.
    pub statistic: Statistic,
    /// The comparison.
    pub comparison: Comparison,
    /// The threshold.
    pub threshold: Threshold,
    /// The text of the scenario, with single spaces.
    pub text: String,
}

/// A statistic of a metric's population.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Statistic {
    /// One value for the whole run (loss: lost over expected of all tracks), not a quantile.
    Whole,
    /// Smallest value.
    Min,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Largest value.
    Max,
}

impl Statistic {
    /// The quantiles of objectives.
    pub const QUANTILES: [Self; 6] =
        [Self::Min, Self::P50, Self::P90, Self::P95, Self::P99, Self::Max];

    /// The name in an objective; empty for [`Self::Whole`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }

    /// The quantile as a ratio (min 0, p95 0.95, max 1); `None` for [`Self::Whole`].
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Whole => None,
            Self::Min => Some(0.0),
            Self::P50 => Some(0.50),
            Self::P90 => Some(0.90),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::Max => Some(1.0),
        }
    }
}

/// The comparison of a measured value with the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// The operator, such as `<`.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    fn holds(self, measured: f64, threshold: f64) -> bool {
        match self {
            Self::Less => measured < threshold,
            Self::LessOrEqual => measured <= threshold,
            Self::Greater => measured > threshold,
            Self::GreaterOrEqual => measured >= threshold,
        }
    }
}

/// The threshold of an objective, in the unit of the measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A ratio from 0 to 1.
    Ratio(f64),
    /// Milliseconds.
    Milliseconds(f64),
    /// Frames per second.
    FramesPerSecond(f64),
    /// A ratio of the source's frame rate: the value is measured fps over source fps.
    OfSource(f64),
    /// Pixels of the shorter side of a picture.
    Lines(f64),
    /// A number of events.
    Count(f64),
    /// A multiple of the media's bit rate.
    OfBitRate(f64),
}

impl Threshold {
    /// The unit of the number.
    #[must_use]
    pub fn unit(self) -> units::Unit {
        match self {
            Self::Ratio(_) => units::Unit::Ratio,
            Self::Milliseconds(_) => units::Unit::Milliseconds,
            Self::FramesPerSecond(_) => units::Unit::FramesPerSecond,
            Self::OfSource(_) => units::Unit::OfSource,
            Self::Lines(_) => units::Unit::Lines,
            Self::Count(_) => units::Unit::Count,
            Self::OfBitRate(_) => units::Unit::OfBitRate,
        }
    }

    /// The number, in the threshold's unit.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Self::Ratio(value)
            | Self::Milliseconds(value)
            | Self::FramesPerSecond(value)
            | Self::OfSource(value)
            | Self::Lines(value)
            | Self::Count(value)
            | Self::OfBitRate(value) => value,
        }
    }
}

/// The outcome of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectiveOutcome {
    /// Met.
    Met,
    /// Missed.
    Missed,
    /// Not measured, which counts as not met: a run without video does not show that video is fine.
    NotMeasured,
}

impl Objective {
    /// Evaluates a measured value, in the unit of the [`Threshold`]; `None` or NaN: not measured.
    /// `f64::INFINITY` is a value: the connect time of a participant that never connected.
    #[must_use]
    pub fn evaluate(&self, measured: Option<f64>) -> ObjectiveOutcome {
        match measured {
            Some(figure) if !figure.is_nan() => {
                match self.comparison.holds(figure, self.threshold.value()) {
                    true => ObjectiveOutcome::Met,
                    false => ObjectiveOutcome::Missed,
                }
            }
            _ => ObjectiveOutcome::NotMeasured,
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_met_missed_or_not_measured() {
        for (objective, measured, expect) in [
            ("video.loss p95 < 1%", Some(0.009), ObjectiveOutcome::Met),
            ("video.loss p95 < 1%", Some(0.01), ObjectiveOutcome::Missed),
            ("video.loss p95 <= 1%", Some(0.01), ObjectiveOutcome::Met),
            ("fps min > 0.9 of source", Some(0.95), ObjectiveOutcome::Met),
            ("fps min >= 25", Some(24.9), ObjectiveOutcome::Missed),
            ("resolution min >= 720p", Some(720.0), ObjectiveOutcome::Met),
            ("resolution min >= 720p", Some(360.0), ObjectiveOutcome::Missed),
            ("connect p99 < 3s", Some(2999.0), ObjectiveOutcome::Met),
            ("connect p99 < 3s", Some(f64::INFINITY), ObjectiveOutcome::Missed),
            ("connect p99 < 3s", Some(f64::NAN), ObjectiveOutcome::NotMeasured),
            ("stalls p95 < 2", Some(2.0), ObjectiveOutcome::Missed),
            ("delivery min > 0.98", Some(0.99), ObjectiveOutcome::Met),
            ("failed < 1%", None, ObjectiveOutcome::NotMeasured),
        ] {
            let parsed: Objective = objective.parse().unwrap();
            assert_eq!(parsed.evaluate(measured), expect, "{objective} with {measured:?}");
        }
    }
}
