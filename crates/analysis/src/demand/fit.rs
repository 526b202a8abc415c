//! Fits a line, or a parabola if significant, through the use at each load, and computes the load
//! at which it reaches a limit.
//!
//! One point per hold: the seconds within a hold are not independent and would make the interval
//! too narrow. Weighted by the inverse square of the value, because the noise of a measurement
//! grows with it.
//!
//! A use that flattens has two meanings: users share work, so that each costs less, or the server
//! does less than they ask for, because something of it is full. The loads at which something was
//! full decide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least t value of a quadratic term: with 8 points a false one has a chance of about 5 %, and an
/// ignored real one makes the estimate 10 % wrong (simulated in the tests).
pub(crate) const T_CURVE_MIN: f64 = 2.6;
/// Least points for a parabola.
const CURVE_POINTS_MIN: usize = 6;
/// Least range of the loads, as a share of the largest.
const SPREAD_MIN: f64 = 0.15;

/// The use (`y`) at a load (`users`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) users: f64,
    pub(crate) y: f64,
    /// Whether something of the server was used up at this load.
    pub(crate) is_saturated: bool,
}

/// The load at which a limit is reached, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Meeting {
    pub(crate) users: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The use of a resource against the number of users, as fitted: a + b·N + c·N², and how sure that
/// is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedUse {
    /// a, b, c in the unit of the demand; c is 0 for a line.
    pub coefficients: [f64; 3],
    /// The covariances of a, b and c.
    pub covariance: [[f64; 3]; 3],
    /// Degrees of freedom: loads less coefficients.
    pub freedom: u32,
    /// The smallest load of the fit.
    pub users_min: f64,
    /// The largest; beyond it every use is an extrapolation.
    pub users_max: f64,
}

/// A fitted use and the loads that it is from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit {
    pub(crate) fitted: FittedUse,
    pub(crate) points: Vec<Point>,
}

impl Fit {
    /// A fit through `points`; `None` without three loads that differ.
    pub(crate) fn of(points: &[Point]) -> Option<Self> {
        let (least, most) = points.iter().fold((f64::INFINITY, 0.0f64), |(least, most), p| {
            (least.min(p.users), most.max(p.users))
        });
        if points.len() < 3 || most <= 0.0 || most - least < SPREAD_MIN * most {
            return None;
        }
        let with = |fitted| Self { fitted, points: points.to_vec() };
        let line = solve(points, 2).map(with)?;
        if points.len() < CURVE_POINTS_MIN {
            return Some(line);
        }
        let Some(curve) = solve(points, 3).filter(|curve| curve.t_of_square().abs() > T_CURVE_MIN)
        else {
            return Some(line);
        };
        let rest: Vec<Point> = points.iter().filter(|point| !point.is_saturated).copied().collect();
        if curve.coefficients[2] > 0.0 || rest.len() == points.len() {
            return Some(with(curve));
        }
        // What flattens while something of the server is full is its throughput that ends: users do
        // not cost less there.
        Some(Self::of(&rest).unwrap_or(line))
    }

    /// The load at which `level` is reached: the interval by the delta method, widened to the
    /// jackknife.
    pub(crate) fn meets(&self, level: f64) -> Option<Meeting> {
        let size = if self.fitted.is_curved() { 3 } else { 2 };
        let by_loads = jackknife(&self.points, size, level)?;
        self.fitted.meets_within(level, by_loads)
    }
}

impl FittedUse {
    /// Whether it has a square.
    pub(crate) fn is_curved(&self) -> bool {
        self.coefficients[2] != 0.0
    }

    fn t_of_square(&self) -> f64 {
        self.coefficients[2] / self.covariance[2][2].sqrt()
    }

    /// What a change of a, b and c adds to the use by `users`. A use that bends is never drawn out
    /// to where it falls.
    pub(crate) fn gradient(&self, users: f64) -> [f64; 3] {
        let ([_, b, c], top) = (self.coefficients, self.users_max);
        if c < 0.0 && users > top {
            // A parabola that bends down would fall at last: beyond the measurement its tangent is
            // followed.
            return [1.0, users, top * (2.0 * users - top)];
        }
        // Left of its lowest point a parabola that bends up would rise toward zero users.
        let users = if c > 0.0 { users.max(-b / (2.0 * c)) } else { users };
        [1.0, users, users * users]
    }

    /// The use by `users`.
    pub(crate) fn use_by(&self, users: f64) -> f64 {
        self.gradient(users).iter().zip(self.coefficients).map(|(g, c)| g * c).sum()
    }

    /// The demand of one more user at `users`.
    pub(crate) fn slope_at(&self, users: f64) -> f64 {
        let [_, b, c] = self.coefficients;
        let users = if c < 0.0 { users.min(self.users_max) } else { users };
        b + 2.0 * c * users
    }

    fn variance(&self, gradient: [f64; 3]) -> f64 {
        let row = |(row, g): (&[f64; 3], f64)| {
            row.iter().zip(gradient).map(|(v, h)| g * v * h).sum::<f64>()
        };
        self.covariance.iter().zip(gradient).map(row).sum()
    }

    fn t_975(&self) -> f64 {
        t_975(usize::try_from(self.freedom).unwrap_or(usize::MAX))
    }

    /// Half the 95 % interval of a linear combination of the coefficients.
    pub(crate) fn half_interval(&self, gradient: [f64; 3]) -> f64 {
        let half = self.variance(gradient).max(0.0).sqrt() * self.t_975();
        if half.is_finite() { half } else { f64::MAX }
    }

    /// Half the 95 % interval of the demand of one more user at the largest load.
    pub(crate) fn slope_error(&self) -> f64 {
        self.half_interval([0.0, 1.0, 2.0 * self.users_max])
    }

    /// The smallest load above 0 at which `level` is reached.
    pub(crate) fn root(&self, level: f64) -> Option<f64> {
        let ([a, b, c], top) = (self.coefficients, self.users_max);
        let missing = level - a;
        if missing <= 0.0 {
            return None;
        }
        // The form without cancellation for small c; for a line it is missing ÷ b.
        let on_curve = 2.0 * missing / (b + (b * b + 4.0 * c * missing).sqrt());
        let is_beyond = on_curve.is_nan() || on_curve > top;
        let users = if c < 0.0 && is_beyond {
            let slope = Some(self.slope_at(top)).filter(|slope| *slope > 0.0)?;
            top + (level - self.use_by(top)) / slope
        } else {
            on_curve
        };
        (users.is_finite() && users > 0.0).then_some(users)
    }

    /// The load at which `level` is reached, by the delta method alone.
    pub(crate) fn meets(&self, level: f64) -> Option<Meeting> {
        self.meets_within(level, 0.0)
    }

    /// The same with at least this variance.
    fn meets_within(&self, level: f64, variance_min: f64) -> Option<Meeting> {
        let users = self.root(level)?;
        let slope = self.slope_at(users);
        let variance = self.variance(self.gradient(users).map(|g| -g / slope));
        let half = variance.max(variance_min).max(0.0).sqrt() * self.t_975();
        let meeting = Meeting { users, low: (users - half).max(0.0), high: users + half };
        [meeting.low, meeting.high].iter().all(|value| value.is_finite()).then_some(meeting)
    }
}

/// The variance of the load at which `level` is reached, by leaving out each point in turn; 0 if
/// that leaves too few points.
fn jackknife(points: &[Point], size: usize, level: f64) -> Option<f64> {
    if points.len() <= size + 1 {
        return Some(0.0);
    }
    let mut left = Vec::with_capacity(points.len());
    for out in 0..points.len() {
        let rest: Vec<Point> = points
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != out)
            .map(|(_, point)| *point)
            .collect();
        left.extend(solve(&rest, size).and_then(|fit| fit.root(level)));
    }
    // A result that depends on single loads is not known.
    if left.len() * 2 <= points.len() {
        return None;
    }
    let mean = left.iter().sum::<f64>() / left.len() as f64;
    let n = left.len() as f64;
    Some((n - 1.0) / n * left.iter().map(|value| (value - mean).powi(2)).sum::<f64>())
}

/// Weighted least squares with `size` coefficients, by the normal equations with loads scaled to 1.
fn solve(points: &[Point], size: usize) -> Option<FittedUse> {
    let freedom = points.len().checked_sub(size).filter(|freedom| *freedom > 0)?;
    let scale = points.iter().map(|point| point.users).fold(0.0, f64::max);
    let top = points.iter().map(|point| point.y.abs()).fold(0.0, f64::max);
    if scale <= 0.0 || top <= 0.0 {
        return None;
    }
    let weight = |point: &Point| point.y.abs().max(0.05 * top).powi(-2);
    let row = |point: &Point| [1.0, point.users / scale, (point.users / scale).powi(2)];
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for point in points {
        let (x, w) = (row(point), weight(point));
        for i in 0..size {
            right[i] += w * x[i] * point.y;
            for j in 0..size {
                normal[i][j] += w * x[i] * x[j];
            }
        }
    }
    let inverse = invert(normal, size)?;
    let mut scaled = [0.0; 3];
    for i in 0..size {
        scaled[i] = (0..size).map(|j| inverse[i][j] * right[j]).sum();
    }
    let residual = |point: &Point| {
        let x = row(point);
        point.y - (0..size).map(|i| scaled[i] * x[i]).sum::<f64>()
    };
    let variance = points.iter().map(|point| weight(point) * residual(point).powi(2)).sum::<f64>()
        / freedom as f64;
    let unit = [1.0, 1.0 / scale, 1.0 / (scale * scale)];
    let mut covariance = [[0.0; 3]; 3];
    for i in 0..size {
        for j in 0..size {
            covariance[i][j] = variance * inverse[i][j] * unit[i] * unit[j];
        }
    }
    let fitted = FittedUse {
        coefficients: [scaled[0], scaled[1] * unit[1], scaled[2] * unit[2]],
        covariance,
        freedom: u32::try_from(freedom).unwrap_or(u32::MAX),
        users_min: points.iter().map(|point| point.users).fold(f64::INFINITY, f64::min),
        users_max: scale,
    };
    let numbers = fitted.covariance.iter().flatten().chain(&fitted.coefficients);
    numbers.chain([&fitted.users_min]).all(|number| number.is_finite()).then_some(fitted)
}

/// The inverse of the upper left `size` × `size` of a symmetric matrix, by Gauss–Jordan elimination
/// with pivots.
pub(super) fn invert<const N: usize>(
    mut matrix: [[f64; N]; N],
    size: usize,
) -> Option<[[f64; N]; N]> {
    let mut inverse = [[0.0; N]; N];
    for (at, row) in inverse.iter_mut().enumerate() {
        row[at] = 1.0;
    }
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let head = matrix[column][column];
        if !head.is_normal() {
            return None;
        }
        for j in 0..N {
            matrix[column][j] /= head;
            inverse[column][j] /= head;
        }
        for row in (0..size).filter(|row| *row != column) {
            let factor = matrix[row][column];
            for j in 0..N {
                matrix[row][j] -= factor * matrix[column][j];
                inverse[row][j] -= factor * inverse[column][j];
            }
        }
    }
    Some(inverse)
}

/// The 97.5 % quantile of Student's t.
pub(crate) fn t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 12] =
        [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18];
    match freedom {
        0 => TABLE[0],
        n => TABLE.get(n - 1).copied().unwrap_or(if n < 30 { 2.09 } else { 1.98 }),
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
