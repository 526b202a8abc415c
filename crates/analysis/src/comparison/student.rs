//! Student's t distribution for any degrees of freedom, whole or not: Welch's are not.

/// The probability that |t| is larger than `t`: the two-sided p-value. 1 for a `t` that is no
/// number, or without freedom.
pub(super) fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    // Abramowitz and Stegun 26.7.1 with 26.5.27: the tails are an incomplete beta function.
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The t that a share `two_sided` of the distribution exceeds in size; infinite without freedom.
pub(super) fn quantile(two_sided_p: f64, freedom: f64) -> f64 {
    if freedom.is_nan() || freedom <= 0.0 {
        return f64::INFINITY;
    }
    // Bisection: the tail falls steadily with t. Beyond 1e30 no interval says anything.
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while two_sided(high, freedom) > two_sided_p && high < 1e30 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, freedom) > two_sided_p { low = middle } else { high = middle }
    }
    high
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and
/// Stegun 26.5.8, evaluated by Lentz's method), on the side on which it converges fast.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        (front * fraction(x, a, b) / a).clamp(0.0, 1.0)
    } else {
        (1.0 - front * fraction(1.0 - x, b, a) / b).clamp(0.0, 1.0)
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const STEPS: u32 = 500;
    const TINY: f64 = 1e-300;
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..=STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for term in [even, odd] {
            d = 1.0 / not_zero(1.0 + term * d);
            c = not_zero(1.0 + term / c);
            value *= d * c;
        }
        if (value / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    value
}

/// ln Γ(x) for x > 0: Stirling's series (Abramowitz and Stegun 6.1.41) above 10, to which the
/// recurrence leads.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let square = x * x;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x * square)
        + 1.0 / (1260.0 * x * square * square)
        - 1.0 / (1680.0 * x * square.powi(3));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, p, expect) in [
            (1.0, 0.05, 12.7062),
            (2.0, 0.05, 4.3027),
            (4.0, 0.05, 2.7764),
            (10.0, 0.05, 2.2281),
            (30.0, 0.05, 2.0423),
            (4.0, 0.01, 4.6041),
            (9.0, 0.10, 1.8331),
            (1e6, 0.05, 1.95997),
        ] {
            let got = quantile(p, freedom);
            assert!((got / expect - 1.0).abs() < 1e-4, "{freedom} {p}: {got}");
            assert!((two_sided(got, freedom) - p).abs() < 1e-9);
        }
        // Between whole degrees of freedom.
        assert!((2.7764..3.1824).contains(&quantile(0.05, 3.5)));
    }

    #[test]
    fn what_is_no_number_is_never_significant() {
        for (t, freedom) in [(f64::NAN, 3.0), (2.0, f64::NAN), (2.0, 0.0), (2.0, -1.0), (0.0, 5.0)]
        {
            assert!((two_sided(t, freedom) - 1.0).abs() < 1e-12, "{t} {freedom}");
        }
        assert_eq!(two_sided(f64::INFINITY, 2.0), 0.0);
        assert_eq!(quantile(0.05, 0.0), f64::INFINITY);
        assert!(quantile(0.05, 0.01).is_finite());
    }
}
