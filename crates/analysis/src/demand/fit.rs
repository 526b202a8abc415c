//! Fits a line, or a parabola if significant, through the use at each load, and computes the load at which it reaches a limit.
//!
//! One point per hold: the seconds within a hold are not independent and would make the interval too narrow. Weighted by the inverse
//! square of the value, because the noise of a measurement grows with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least t value of a quadratic term: with 8 points a false one has a chance of about 5 %, and an ignored real one makes the estimate
/// 10 % wrong (simulated in the tests).
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
}

/// y = a + b·N + c·N².
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit {
    /// Coefficients a, b, c; c is 0 for a line.
    pub(crate) coefficients: [f64; 3],
    /// Their covariances, from the residuals.
    covariance: [[f64; 3]; 3],
    /// Degrees of freedom: points less coefficients.
    pub(crate) freedom: usize,
    pub(crate) is_curved: bool,
}

/// The load at which a limit is reached, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Meeting {
    pub(crate) users: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The use of a resource against the number of users, as fitted: a + b·N + c·N², and how sure that is.
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

impl Fit {
    /// A fit through `points`; `None` without three loads that differ.
    pub(crate) fn of(points: &[Point]) -> Option<Self> {
        let (least, most) = points
            .iter()
            .fold((f64::INFINITY, 0.0f64), |(least, most), p| (least.min(p.users), most.max(p.users)));
        if points.len() < 3 || most <= 0.0 || most - least < SPREAD_MIN * most {
            return None;
        }
        let line = solve(points, 2)?;
        if points.len() < CURVE_POINTS_MIN {
            return Some(line);
        }
        let curve = solve(points, 3);
        let t = |fit: &Self| fit.coefficients[2].abs() / fit.covariance[2][2].sqrt();
        Some(curve.filter(|curve| t(curve) > T_CURVE_MIN).unwrap_or(line))
    }

    /// The fit as part of a summary; `None` if a number of it is not finite.
    pub(crate) fn fitted(&self, points: &[Point]) -> Option<FittedUse> {
        let users = points.iter().map(|point| point.users);
        let fitted = FittedUse {
            coefficients: self.coefficients,
            covariance: self.covariance,
            freedom: u32::try_from(self.freedom).unwrap_or(u32::MAX),
            users_min: users.clone().fold(f64::INFINITY, f64::min),
            users_max: users.fold(0.0, f64::max),
        };
        let numbers = fitted.covariance.iter().flatten().chain(&fitted.coefficients);
        numbers.chain([&fitted.users_min]).all(|number| number.is_finite()).then_some(fitted)
    }

    /// Half the 95 % interval of the demand of one more user.
    pub(crate) fn cost_error(&self) -> f64 {
        self.covariance[1][1].max(0.0).sqrt() * t_975(self.freedom)
    }

    /// The demand of one more user at `users`.
    pub(crate) fn cost_at(&self, users: f64) -> f64 {
        self.coefficients[1] + 2.0 * self.coefficients[2] * users
    }

    /// The smallest load above 0 at which `level` is reached.
    fn root(&self, level: f64) -> Option<f64> {
        let [a, b, c] = self.coefficients;
        let missing = level - a;
        if missing <= 0.0 {
            return None;
        }
        let users = if self.is_curved {
            let inside = b * b + 4.0 * c * missing;
            // The form without cancellation for small c.
            (inside >= 0.0).then(|| 2.0 * missing / (b + inside.sqrt()))?
        } else {
            missing / b
        };
        (users.is_finite() && users > 0.0).then_some(users)
    }

    /// The load at which `level` is reached: the interval by the delta method, widened to the jackknife.
    pub(crate) fn meets(&self, level: f64, points: &[Point]) -> Option<Meeting> {
        let users = self.root(level)?;
        let slope = self.cost_at(users);
        let gradient = [-1.0 / slope, -users / slope, -users * users / slope];
        let size = if self.is_curved { 3 } else { 2 };
        let mut variance = 0.0;
        for (row, g) in self.covariance.iter().zip(gradient).take(size) {
            variance += row.iter().zip(gradient).take(size).map(|(v, h)| g * v * h).sum::<f64>();
        }
        let half = variance.max(jackknife(points, size, level)?).max(0.0).sqrt() * t_975(self.freedom);
        let meeting = Meeting { users, low: (users - half).max(0.0), high: users + half };
        [meeting.low, meeting.high].iter().all(|value| value.is_finite()).then_some(meeting)
    }
}

/// The variance of the load at which `level` is reached, by leaving out each point in turn; 0 if that leaves too few points.
fn jackknife(points: &[Point], size: usize, level: f64) -> Option<f64> {
    if points.len() <= size + 1 {
        return Some(0.0);
    }
    let mut left = Vec::with_capacity(points.len());
    for out in 0..points.len() {
        let rest: Vec<Point> =
            points.iter().enumerate().filter(|(index, _)| *index != out).map(|(_, point)| *point).collect();
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
fn solve(points: &[Point], size: usize) -> Option<Fit> {
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
    let variance =
        points.iter().map(|point| weight(point) * residual(point).powi(2)).sum::<f64>() / freedom as f64;
    let unit = [1.0, 1.0 / scale, 1.0 / (scale * scale)];
    let mut covariance = [[0.0; 3]; 3];
    for i in 0..size {
        for j in 0..size {
            covariance[i][j] = variance * inverse[i][j] * unit[i] * unit[j];
        }
    }
    let coefficients = [scaled[0], scaled[1] * unit[1], scaled[2] * unit[2]];
    let fit = Fit { coefficients, covariance, freedom, is_curved: size == 3 };
    fit.coefficients.iter().all(|value| value.is_finite()).then_some(fit)
}

/// The inverse of the upper left `size` × `size` of a symmetric matrix, by Gauss–Jordan elimination with pivots.
pub(super) fn invert<const N: usize>(mut matrix: [[f64; N]; N], size: usize) -> Option<[[f64; N]; N]> {
    let mut inverse = [[0.0; N]; N];
    for (at, row) in inverse.iter_mut().enumerate() {
        row[at] = 1.0;
    }
    for column in 0..size {
        let pivot =
            (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
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
    const TABLE: [f64; 12] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18];
    match freedom {
        0 => TABLE[0],
        n => TABLE.get(n - 1).copied().unwrap_or(if n < 30 { 2.09 } else { 1.98 }),
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
