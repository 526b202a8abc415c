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

/// Eight loads up to `reach` of the limit, 1 % of noise; the load that uses 0.95 is 1000 without a curve.
fn simulate(noise: &mut Noise, curve: f64, reach: f64) -> (Vec<Point>, f64) {
    let use_of = |users: f64| 0.02 + 0.000_93 * users * (1.0 + curve * users / 1_000.0);
    let truth = (1..20_000).map(|n| f64::from(n) / 10.0).find(|n| use_of(*n) >= 0.95).unwrap();
    let points = (1..=8)
        .map(|step| {
            let users = truth * reach * f64::from(step) / 8.0;
            Point { users, y: use_of(users) * (1.0 + 0.01 * noise.normal()) }
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
        let Some(meeting) = fit.meets(0.95, &points) else { continue };
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
        list.iter().map(|(users, y)| Point { users: *users, y: *y }).collect::<Vec<_>>()
    };
    assert!(Fit::of(&points(&[(1.0, 1.0), (2.0, 2.0)])).is_none(), "two loads");
    assert!(Fit::of(&points(&[(99.0, 1.0), (100.0, 2.0), (101.0, 3.0)])).is_none(), "one load");
    assert!(Fit::of(&points(&[(0.0, 0.0), (0.0, 0.0), (0.0, 0.0)])).is_none(), "nothing");
    let flat = points(&[(10.0, 5.0), (20.0, 5.0), (30.0, 5.0), (40.0, 5.0)]);
    assert!(Fit::of(&flat).and_then(|fit| fit.meets(10.0, &flat)).is_none(), "it never meets");
    let falling = points(&[(10.0, 5.0), (20.0, 4.0), (30.0, 3.1), (40.0, 2.0)]);
    assert!(Fit::of(&falling).and_then(|fit| fit.meets(10.0, &falling)).is_none());
    let odd = points(&[(1.0, f64::NAN), (2.0, f64::INFINITY), (f64::MAX, 3.0), (4.0, -1.0)]);
    let _ = Fit::of(&odd).and_then(|fit| fit.meets(1.0, &odd));
}

#[test]
fn exact_points_give_an_exact_answer() {
    let points: Vec<_> =
        (1..=5).map(|n| Point { users: f64::from(n) * 10.0, y: 1.0 + f64::from(n) }).collect();
    let fit = Fit::of(&points).unwrap();
    assert!(!fit.is_curved && (fit.cost_at(0.0) - 0.1).abs() < 1e-9);
    let meeting = fit.meets(11.0, &points).unwrap();
    assert!((meeting.users - 100.0).abs() < 1e-6 && meeting.high - meeting.low < 1e-3);
}
