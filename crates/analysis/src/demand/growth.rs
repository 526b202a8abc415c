//! The use of a resource at any number of users, by the fits of its parts, and how far beyond the
//! measured loads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Demand, FittedUse};

/// A straight demand is extrapolated to this many times the largest measured load. Farther away an
/// unknown bend or limit decides, and only the order of magnitude is given.
pub const LINEAR_REACH: f64 = 10.0;
/// The same of a curved demand: the error of its square grows with the square.
pub const CURVED_REACH: f64 = 4.0;
/// Least half interval, as a share of the use: the variation of a server from run to run.
pub(crate) const WIDTH_MIN: f64 = 0.02;
/// Half an order of magnitude, either way.
pub(crate) const ORDER_OF_MAGNITUDE: f64 = 3.0;
/// Halvings of a bisection: more than the bits of a mantissa.
const HALVINGS: u32 = 60;

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// A figure without an error.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// The figure and both ends times `factor`, which is not negative.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// The sum of two figures. The ends add up, as if both were wrong in the same direction.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

/// How far a figure lies beyond the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extrapolation {
    /// Users ÷ the largest load that was measured, at least 1.
    pub factor: f64,
    /// Whether it is too far for more than an order of magnitude.
    pub order_of_magnitude_only: bool,
}

impl Extrapolation {
    /// Whether it lies beyond the measurement.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.factor > 1.0
    }
}

/// Which way a use bends as users are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bend {
    /// The more users, the more each costs.
    Up,
    /// The more users, the less each costs.
    Down,
}

/// The use of one resource, which has several parts where several processes use it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Growth {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    name: String,
    fitted: FittedUse,
    /// Whether its growth can be told from noise.
    grows: bool,
    /// The use at the largest load that passed.
    used: f64,
}

impl Growth {
    /// The sum of `demands`; `None` if none of them was fitted.
    pub(crate) fn of(demands: &[&Demand]) -> Option<Self> {
        let part = |demand: &&Demand| {
            let fitted = demand.fit.filter(is_usable)?;
            Some(Part {
                name: demand.name(),
                grows: demand.grows() && fitted.slope_at(fitted.users_max) > 0.0,
                used: demand.used.max(0.0),
                fitted,
            })
        };
        let parts: Vec<Part> = demands.iter().filter_map(part).collect();
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// One part with a name.
    pub(crate) fn of_fit(name: &str, fitted: FittedUse) -> Option<Self> {
        let used = use_at(&fitted, fitted.users_max).value;
        let part = Part { name: name.to_owned(), fitted, grows: true, used };
        (is_usable(&fitted) && fitted.slope_at(fitted.users_max) > 0.0)
            .then(|| Self { parts: vec![part] })
    }

    /// Whether any part grows measurably.
    pub(crate) fn grows(&self) -> bool {
        self.fits().next().is_some()
    }

    fn fits(&self) -> impl Iterator<Item = &FittedUse> {
        self.parts.iter().filter(|part| part.grows).map(|part| &part.fitted)
    }

    /// Whether a part has a square.
    pub(crate) fn is_curved(&self) -> bool {
        self.fits().any(FittedUse::is_curved)
    }

    /// Which way it bends; `None` if it is straight.
    pub(crate) fn bend(&self) -> Option<Bend> {
        let square: f64 = self.fits().map(|fitted| fitted.coefficients[2]).sum();
        self.is_curved().then_some(if square < 0.0 { Bend::Down } else { Bend::Up })
    }

    /// The largest load that all parts were measured with.
    pub(crate) fn users_max(&self) -> f64 {
        self.parts.iter().map(|part| part.fitted.users_max).reduce(f64::min).unwrap_or(0.0)
    }

    fn users_min(&self) -> f64 {
        self.parts.iter().map(|part| part.fitted.users_min).fold(0.0, f64::max)
    }

    /// The most users for which more than an order of magnitude can be said; without growth any
    /// number.
    pub(crate) fn reach(&self) -> f64 {
        let reach = if self.is_curved() { CURVED_REACH } else { LINEAR_REACH };
        if self.grows() { reach * self.users_max() } else { f64::INFINITY }
    }

    pub(crate) fn extrapolation(&self, users: f64) -> Extrapolation {
        let factor = (users / self.users_max()).max(1.0);
        Extrapolation { factor, order_of_magnitude_only: users > self.reach() }
    }

    /// The use by `users` on one server. Too far beyond the measurement its interval is half an
    /// order of magnitude either way.
    pub(crate) fn at(&self, users: f64) -> Estimate {
        let sum = self.fitted_at(users);
        if users <= self.reach() {
            return sum;
        }
        let (low, high) = (sum.value / ORDER_OF_MAGNITUDE, sum.value * ORDER_OF_MAGNITUDE);
        Estimate { low: sum.low.min(low), high: sum.high.max(high), ..sum }
    }

    fn fitted_at(&self, users: f64) -> Estimate {
        self.parts.iter().map(|part| part.at(users)).fold(Estimate::default(), Estimate::plus)
    }

    /// The part with the largest use, and its share of the whole.
    pub(crate) fn dominant(&self, users: f64) -> (String, f64) {
        let whole = self.fitted_at(users).value;
        let part = self.parts.iter().max_by(|a, b| a.at(users).value.total_cmp(&b.at(users).value));
        let Some(part) = part else { return (String::new(), 0.0) };
        let share = if whole > 0.0 { part.at(users).value / whole } else { 1.0 };
        (part.name.clone(), share)
    }

    /// The demand of one more user at the largest measured load.
    pub(crate) fn per_user(&self) -> Option<Estimate> {
        let slope = |fitted: &FittedUse| {
            let (value, half) = (fitted.slope_at(fitted.users_max), fitted.slope_error());
            Estimate { value, low: value - half, high: value + half }
        };
        self.fits().map(slope).reduce(Estimate::plus)
    }

    /// The most users of one server, up to `most`, whose use stays within `level`: by the fit, and
    /// at both ends of its interval (the low end is that of the high use).
    pub(crate) fn users_within(&self, level: f64, most: f64) -> Estimate {
        let value = bisect(level, 0.0, most, |users| self.fitted_at(users).value);
        // The interval of the use may be so wide at 0 that only the measured loads are known to be
        // within the level.
        let from =
            if self.fitted_at(0.0).high <= level { 0.0 } else { self.users_min().min(value) };
        Estimate {
            value,
            low: bisect(level, from, value, |users| self.fitted_at(users).high),
            high: bisect(level, value, most, |users| self.fitted_at(users).low),
        }
    }
}

impl Part {
    fn at(&self, users: f64) -> Estimate {
        if self.grows {
            return use_at(&self.fitted, users);
        }
        // What cannot be told from noise may still grow, by as much as the noise allows.
        let top = self.fitted.users_max;
        let most = (self.fitted.slope_at(top) + self.fitted.slope_error()).max(0.0);
        let growth = most * (users - top).max(0.0);
        let half = WIDTH_MIN * self.used;
        Estimate {
            value: self.used,
            low: (self.used - half).max(0.0),
            high: self.used + half + growth,
        }
    }
}

/// A summary may have been edited.
fn is_usable(fitted: &FittedUse) -> bool {
    let numbers = fitted.coefficients.iter().chain(fitted.covariance.iter().flatten());
    numbers.chain([&fitted.users_min]).all(|number| number.is_finite())
        && fitted.users_max.is_finite()
        && fitted.users_max > 0.0
}

/// The use with its interval by the delta method. Never falls with the number of users.
fn use_at(fitted: &FittedUse, users: f64) -> Estimate {
    let value = fitted.use_by(users).max(0.0);
    let half = fitted.half_interval(fitted.gradient(users)).max(WIDTH_MIN * value);
    Estimate { value, low: (value - half).max(0.0), high: value + half }
}

/// The most of `from..=most` at which `use_of` is within `level`; 0 if it is not at `from`.
fn bisect(level: f64, from: f64, most: f64, use_of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (from, most.max(from));
    if use_of(high) <= level {
        return high;
    }
    let least = use_of(low);
    if least > level || least.is_nan() {
        return 0.0;
    }
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if use_of(middle) <= level {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
