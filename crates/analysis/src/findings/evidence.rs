//! A line of evidence: a counter, what it was at the floor, at the load that passed and at the one that failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::Unit;
use throng_observation::units::{bit_rate, bytes, duration_ms, percent};

use crate::context::{Change, Reading};

/// A counter in the three windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What was counted, of whom: `thread.cpu of hloop 1 (4012)`.
    pub counter: String,
    /// What it is counted in: `ratio` (CPU: 1 = a core), `B/s`, `B`, `1/s`, `count`, `ms`.
    pub unit: String,
    /// At the floor; `null` where it was not seen, here and below.
    pub baseline: Option<f64>,
    /// At the largest load that passed.
    pub pass: Option<f64>,
    /// At the first load that failed.
    pub fail: Option<f64>,
    /// What cannot be passed, where that is known.
    pub limit: Option<f64>,
    /// The second of the run at which it crossed into saturation, near the failing load.
    pub crossed_at_s: Option<f64>,
    /// Whether the finding stands or falls with it: see [`super::gate`].
    #[serde(skip)]
    pub(crate) decides: bool,
    #[serde(skip)]
    kind: Unit,
    /// It counts errors, as a share of something.
    #[serde(skip)]
    is_of_errors: bool,
    /// The most under any load that passed.
    #[serde(skip)]
    pub(crate) most: Option<f64>,
}

impl Evidence {
    pub(crate) fn new(counter: impl Into<String>, unit: Unit, reading: Reading) -> Self {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        Self {
            counter: counter.into(),
            unit: unit.symbol().into(),
            kind: unit,
            baseline: finite(reading.base),
            pass: finite(reading.pass),
            fail: finite(reading.fail),
            limit: None,
            crossed_at_s: None,
            decides: false,
            is_of_errors: false,
            most: finite(reading.most),
        }
    }

    /// Marks what the finding stands or falls with: had that been as much before, it would explain nothing.
    pub(crate) fn decides(self) -> Self {
        Self { decides: true, ..self }
    }

    /// Its values are shares of errors: to have grown takes as much as for errors a second.
    pub(crate) fn of_errors(self) -> Self {
        Self { is_of_errors: true, ..self }
    }

    /// The same where `is_it` holds.
    pub(crate) fn decides_if(self, is_it: bool) -> Self {
        Self { decides: self.decides || is_it, ..self }
    }

    /// Whether there was more of it in the failing load than before.
    pub(crate) fn change(&self) -> Change {
        if self.is_of_errors {
            self.reading().change_of_errors(self.kind)
        } else {
            self.reading().change(self.kind)
        }
    }

    /// Whether no load that passed had as much of it.
    pub(crate) fn surpasses(&self) -> bool {
        self.reading().surpasses(self.kind) && (!self.is_of_errors || self.reading().has_more_errors())
    }

    fn reading(&self) -> Reading {
        Reading { base: self.baseline, pass: self.pass, fail: self.fail, most: self.most }
    }

    pub(crate) fn limit(self, limit: Option<f64>) -> Self {
        Self { limit: limit.filter(|limit| limit.is_finite()), ..self }
    }

    pub(crate) fn crossed(self, at_s: Option<f64>) -> Self {
        Self { crossed_at_s: at_s, ..self }
    }

    /// A value as people read it.
    #[must_use]
    pub fn show(&self, value: Option<f64>) -> String {
        let Some(value) = value else { return "–".into() };
        match self.unit.as_str() {
            "ratio" => percent(value),
            "B/s" => bit_rate(value * 8.0),
            "B" => bytes(value),
            "ms" => duration_ms(value),
            "1/s" => format!("{}/s", plain(value)),
            _ => plain(value),
        }
    }

    /// One line: `thread.cpu of hloop 1 (4012): floor 4 %, passed 90 %, failed 99 %; limit 100 %; crossed at 38 s`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let seen: Vec<String> = [("floor", self.baseline), ("passed", self.pass), ("failed", self.fail)]
            .into_iter()
            .filter(|(_, value)| value.is_some())
            .map(|(name, value)| format!("{name} {}", self.show(value)))
            .collect();
        let seen = seen.join(", ");
        let limit =
            self.limit.map_or_else(String::new, |limit| format!("; limit {}", self.show(Some(limit))));
        let crossed = self.crossed_at_s.map_or_else(String::new, |at| format!("; crossed at {at:.0} s"));
        format!("{}: {seen}{limit}{crossed}", self.counter)
    }
}

fn plain(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        a if a < 10.0 && value.fract() != 0.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
