//! A line of evidence: a counter at the baseline, under the load that passed and under the load
//! that failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::Unit;
use throng_observation::units;

use crate::context::{Change, Growth, Reading};

/// The value of a counter in the three windows that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The counter and its owner: `thread.cpu of hloop 1 (4012)`.
    pub counter: String,
    /// Its unit: `ratio` (CPU: 1 = a core), `B/s`, `B`, `1/s`, `count`, `ms`.
    pub unit: String,
    /// At the baseline; `null` if it was not measured, here and below.
    pub baseline: Option<f64>,
    /// Under the largest load that passed.
    pub pass: Option<f64>,
    /// Under the first load that failed.
    pub fail: Option<f64>,
    /// The hard limit, if known.
    pub limit: Option<f64>,
    /// The second of the run at which it reached saturation, near the failing load.
    pub crossed_at_s: Option<f64>,
    /// Whether the finding depends on it: see [`super::gate`].
    #[serde(skip)]
    pub(crate) decides: bool,
    #[serde(skip)]
    kind: Unit,
    #[serde(skip)]
    growth: Growth,
    /// The highest value under any load that passed.
    #[serde(skip)]
    pub(crate) most: Option<f64>,
    /// Whether users are worse where it counts; `None` where that cannot be told.
    #[serde(skip)]
    pub(crate) felt: Option<bool>,
}

/// A constructor of a line of evidence for each unit.
macro_rules! constructors {
    ($($name:ident: $unit:ident),*) => {
        impl Evidence {
            $(pub(crate) fn $name(counter: impl Into<String>, reading: Reading) -> Self {
                Self::new(counter, Unit::$unit, reading)
            })*
        }
    };
}
constructors!(
    ratio: Ratio, count: Count, per_second: PerSecond, bytes: Bytes,
    bytes_per_second: BytesPerSecond, milliseconds: Milliseconds
);

impl Evidence {
    pub(super) fn new(counter: impl Into<String>, unit: Unit, reading: Reading) -> Self {
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
            growth: Growth::Level,
            most: finite(reading.most),
            felt: reading.felt,
        }
    }

    /// Marks the line as decisive: if it was as high before, the finding explains nothing.
    pub(crate) fn decides(self) -> Self {
        Self { decides: true, ..self }
    }

    /// Marks its values as shares of errors, which need the same growth as errors a second.
    pub(crate) fn of_errors(self) -> Self {
        Self { growth: Growth::ErrorShare, ..self }
    }

    /// Marks its values as counts of events, of which one may be the whole cause.
    pub(crate) fn of_events(self) -> Self {
        Self { growth: Growth::Events, ..self }
    }

    /// Marks the line as decisive if `is_decisive`.
    pub(crate) fn decides_if(self, is_decisive: bool) -> Self {
        Self { decides: self.decides || is_decisive, ..self }
    }

    /// Whether it is higher under the failing load than before.
    pub(crate) fn change(&self) -> Change {
        self.reading().change_as(self.growth, self.kind)
    }

    /// Whether no load that passed had as high a value.
    pub(crate) fn surpasses(&self) -> bool {
        let is_level = self.growth == Growth::Level;
        self.reading().surpasses(self.kind) && (is_level || self.reading().has_more_errors())
    }

    /// Whether it is an error counter that hardly counted at the baseline.
    pub(crate) fn begins(&self) -> bool {
        self.reading().begins()
    }

    /// Whether it would count as grown if users were worse where it counts, and whether they are
    /// cannot be told: an error counter that began with the load and grew evenly. Events are told
    /// one by one.
    pub(crate) fn is_untold(&self) -> bool {
        let if_felt = Reading { felt: Some(true), ..self.reading() };
        self.felt.is_none()
            && self.growth != Growth::Events
            && self.begins()
            && if_felt.change_as(self.growth, self.kind) == Change::Grew
    }

    fn reading(&self) -> Reading {
        let (base, felt) = (self.baseline, self.felt);
        Reading { base, pass: self.pass, fail: self.fail, most: self.most, felt }
    }

    pub(crate) fn limit(self, limit: impl Into<Option<f64>>) -> Self {
        Self { limit: limit.into().filter(|limit| limit.is_finite()), ..self }
    }

    pub(crate) fn crossed(self, at_s: Option<f64>) -> Self {
        Self { crossed_at_s: at_s, ..self }
    }

    /// Formats a value with its unit; `–` if there is none.
    #[must_use]
    pub fn show(&self, value: Option<f64>) -> String {
        let Some(value) = value else { return "–".into() };
        units::Unit::of_symbol(&self.unit).unwrap_or_default().show(value)
    }

    /// One line: `thread.cpu of hloop 1 (4012): baseline 4 %, passed 90 %, failed 99 %; limit 100
    /// %; crossed at 38 s`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let values: Vec<String> =
            [("baseline", self.baseline), ("passed", self.pass), ("failed", self.fail)]
                .into_iter()
                .filter(|(_, value)| value.is_some())
                .map(|(name, value)| format!("{name} {}", self.show(value)))
                .collect();
        let values = values.join(", ");
        let limit = self
            .limit
            .map_or_else(String::new, |limit| format!("; limit {}", self.show(Some(limit))));
        let crossed =
            self.crossed_at_s.map_or_else(String::new, |at| format!("; crossed at {at:.0} s"));
        format!("{}: {values}{limit}{crossed}", self.counter)
    }
}
