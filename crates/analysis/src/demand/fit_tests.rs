use super::*;

/// xorshift64*: noise that is the same in every run of the test.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of variance 1, near enough to normal: the sum of twelve.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Eight loads up to `reach` of the limit, 1 % of noise; the load that uses 0.95 is 1000 without a
/// curve.
fn simulate(noise: &mut Noise, curve: f64, reach: f64) -> (Vec<Point>, f64) {
    let use_of = |users: f64| 0.02 + 0.000_93 * users * (1.0 + curve * users / 1_000.0);
    let truth = (1..20_000).map(|n| f64::from(n) / 10.0).find(|n| use_of(*n) >= 0.95).unwrap();
    let points = (1..=8)
        .map(|step| {
            let users = truth * reach * f64::from(step) / 8.0;
            Point { users, y: use_of(users) * (1.0 + 0.01 * noise.normal()), is_saturated: false }
        })
        .collect();
    (points, truth)
}

/// Mean estimate ÷ truth, and how often the interval held the truth.
fn trial(curve: f64, reach: f64) -> (f64, f64) {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let (mut ratio, mut held, count) = (0.0, 0, 400);
    for _ in 0..count {
        let (points, truth) = simulate(&mut noise, curve, reach);
        let fit = Fit::of(&points).unwrap();
        let Some(meeting) = fit.meets(0.95) else { continue };
        ratio += meeting.users / truth / f64::from(count);
        held += u32::from((meeting.low..=meeting.high).contains(&truth));
    }
    (ratio, f64::from(held) / f64::from(count))
}

#[test]
fn a_straight_cost_is_met_within_its_interval() {
    for reach in [0.7, 0.5] {
        let (ratio, held) = trial(0.0, reach);
        assert!((ratio - 1.0).abs() < 0.02, "reach {reach}: {ratio}");
        assert!(held > 0.85, "reach {reach}: the interval held the truth in {held}");
    }
}

#[test]
fn a_curved_cost_is_not_drawn_out_straight() {
    let (ratio, held) = trial(0.3, 0.7);
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
    assert!(held > 0.85, "the interval held the truth in {held}");
    let (points, truth) = simulate(&mut Noise(7), 0.3, 0.7);
    let straight = solve(&points, 2).unwrap().root(0.95).unwrap();
    assert!(straight > truth * 1.04, "forced straight it would promise {straight} of {truth}");
}

#[test]
fn unknown_figures_are_not_reported() {
    let points = |list: &[(f64, f64)]| {
        list.iter()
            .map(|(users, y)| Point { users: *users, y: *y, is_saturated: false })
            .collect::<Vec<_>>()
    };
    assert!(Fit::of(&points(&[(1.0, 1.0), (2.0, 2.0)])).is_none(), "two loads");
    assert!(Fit::of(&points(&[(99.0, 1.0), (100.0, 2.0), (101.0, 3.0)])).is_none(), "one load");
    assert!(Fit::of(&points(&[(0.0, 0.0), (0.0, 0.0), (0.0, 0.0)])).is_none(), "nothing");
    let flat = points(&[(10.0, 5.0), (20.0, 5.0), (30.0, 5.0), (40.0, 5.0)]);
    assert!(Fit::of(&flat).and_then(|fit| fit.meets(10.0)).is_none(), "it never meets");
    let falling = points(&[(10.0, 5.0), (20.0, 4.0), (30.0, 3.1), (40.0, 2.0)]);
    assert!(Fit::of(&falling).and_then(|fit| fit.meets(10.0)).is_none());
    let odd = points(&[(1.0, f64::NAN), (2.0, f64::INFINITY), (f64::MAX, 3.0), (4.0, -1.0)]);
    let _ = Fit::of(&odd).and_then(|fit| fit.meets(1.0));
}

#[test]
fn exact_points_give_an_exact_answer() {
    let point =
        |n| Point { users: f64::from(n) * 10.0, y: 1.0 + f64::from(n), is_saturated: false };
    let points: Vec<_> = (1..=5).map(point).collect();
    let fit = Fit::of(&points).unwrap();
    assert!(!fit.fitted.is_curved() && (fit.fitted.slope_at(0.0) - 0.1).abs() < 1e-9);
    let meeting = fit.meets(11.0).unwrap();
    assert!((meeting.users - 100.0).abs() < 1e-6 && meeting.high - meeting.low < 1e-3);
}

/// Ten loads up to 40 users, the use of which is `use_of`, with something full from `full_from`
/// users on.
fn bent(full_from: f64, use_of: impl Fn(f64) -> f64) -> Vec<Point> {
    let point = |n| {
        let users = f64::from(n) * 4.0;
        Point { users, y: use_of(users), is_saturated: users >= full_from }
    };
    (1..=10).map(point).collect()
}

#[test]
fn a_use_that_bends_down_is_left_along_its_tangent() {
    let points = bent(f64::INFINITY, |users| 0.06 * users - 0.000_6 * users * users);
    let fit = Fit::of(&points).unwrap();
    assert!((fit.fitted.coefficients[2] + 0.000_6).abs() < 1e-9, "{fit:?}");
    // At 40 users it is 1.44, and one more costs 0.012; the parabola would never be higher than
    // 1.5.
    let meeting = fit.meets(1.9).expect("the tangent meets it");
    assert!((meeting.users - (40.0 + 0.46 / 0.012)).abs() < 0.01, "{meeting:?}");
    assert!((fit.fitted.use_by(meeting.users) - 1.9).abs() < 1e-6, "{meeting:?}");
    // Within the measurement the parabola itself is followed.
    assert!((fit.meets(0.96).expect("20 users").users - 20.0).abs() < 0.01);
}

#[test]
fn a_use_that_flattens_where_something_is_full_is_that_of_the_loads_before() {
    let flat = |users: f64| 0.04 * users.min(24.0) + 0.004 * (users - 24.0).max(0.0);
    let fit = Fit::of(&bent(25.0, flat)).unwrap();
    assert!(fit.points.len() == 6 && fit.fitted.users_max == 24.0, "{fit:?}");
    assert!((fit.meets(1.9).unwrap().users - 47.5).abs() < 0.1, "{fit:?}");
    let shared = Fit::of(&bent(f64::INFINITY, flat)).unwrap();
    assert!(shared.fitted.coefficients[2] < 0.0 && shared.points.len() == 10, "{shared:?}");
    // Without three loads before, a straight line through all is less wrong than a square.
    let fit = Fit::of(&bent(9.0, flat)).unwrap();
    assert!(!fit.fitted.is_curved() && fit.points.len() == 10, "{fit:?}");
}

#[test]
fn a_use_that_bends_up_stays_a_curve_though_something_is_full() {
    let points = bent(25.0, |users| 0.01 * users + 0.000_5 * users * users);
    let fit = Fit::of(&points).unwrap();
    assert!(
        fit.points.len() == 10 && (fit.fitted.coefficients[2] - 0.000_5).abs() < 1e-9,
        "{fit:?}"
    );
}
