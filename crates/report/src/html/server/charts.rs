//! Shared by the charts of a watched host: the host, the axis of time, colours.

use super::super::chart::{Line, Scale};
use super::super::timeline::Timeline;
use crate::server::{Grid, Host, Knowledge, MeasuredSeries, Threads};

/// The most lines of a chart.
pub(super) const LINES_MAX: usize = 5;
pub(super) const COLOURS: [u8; LINES_MAX] = [1, 4, 3, 2, 5];

/// The data that all parts of the section draw.
pub(super) struct ServerCharts<'a> {
    pub(super) host: &'a Host<'a>,
    pub(super) threads: &'a Threads<'a>,
    pub(super) knowledge: &'a Knowledge,
    pub(super) time: &'a Timeline,
    pub(super) grid: Grid,
}

impl ServerCharts<'_> {
    /// A chart on the shared axis; nothing where no line has a value. Zeroes are values: they say
    /// that the metric was read.
    pub(super) fn chart(
        &self,
        title: &str,
        unit: &str,
        scale: Scale,
        note: &str,
        lines: Vec<Line>,
    ) -> String {
        if lines.iter().all(|line| line.values.iter().all(Option::is_none)) {
            return String::new();
        }
        self.time.chart(title, unit, scale, note, lines)
    }

    /// A value that does not change, such as a limit.
    pub(super) fn level(&self, value: Option<f64>) -> Option<Vec<Option<f64>>> {
        value.map(|value| vec![Some(value); self.grid.count])
    }

    /// The sum of series at each point, times `factor`.
    pub(super) fn sum<'a>(
        &self,
        series: impl IntoIterator<Item = MeasuredSeries<'a>>,
        factor: f64,
    ) -> Vec<Option<f64>> {
        self.fold(series, factor, |a, b| a + b)
    }

    /// The values of series at each point, times `factor`, put together by `join`.
    pub(super) fn fold<'a>(
        &self,
        series: impl IntoIterator<Item = MeasuredSeries<'a>>,
        factor: f64,
        join: impl Fn(f64, f64) -> f64,
    ) -> Vec<Option<f64>> {
        let mut folded: Vec<Option<f64>> = vec![None; self.grid.count];
        for series in series {
            for (folded, value) in folded.iter_mut().zip(series.on(self.grid)) {
                if let Some(value) = value.map(|value| value * factor) {
                    *folded = Some(folded.map_or(value, |folded| join(folded, value)));
                }
            }
        }
        folded
    }
}
