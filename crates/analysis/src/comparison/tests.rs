//! Laws: equal sides are seldom called worse, a planted difference is found in its direction, and
//! nonsense does no harm.

use super::blocks::of_seconds;
use super::*;
use crate::search::rng::Rng;

/// Quantities of a simulated comparison.
const QUANTITIES: u8 = 12;
const SIMULATIONS: u64 = 400;

fn tolerance() -> Tolerance {
    Tolerance { relative: 0.05, absolute: 0.0 }
}

/// How much a second depends on the one before (AR(1)).
const DEPENDENCE: f64 = 0.5;

/// Runs whose means differ by `between`, each of `seconds` that vary by `within` and depend on each
/// other.
fn runs(
    random: &mut Rng,
    count: usize,
    mean: f64,
    between: f64,
    within: f64,
    seconds: usize,
) -> Vec<Figure> {
    let mut run = || {
        let level = mean + between * random.normal();
        let mut state = 0.0;
        let series: Vec<f64> = (0..seconds)
            .map(|_| {
                state =
                    DEPENDENCE * state + (1.0 - DEPENDENCE * DEPENDENCE).sqrt() * random.normal();
                level + within * state
            })
            .collect();
        let mean_of = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
        let parts = of_seconds(0, seconds as i64);
        let parts =
            parts.iter().map(|part| mean_of(&series[part.start as usize..part.end as usize]));
        Figure { value: mean_of(&series), parts: parts.collect() }
    };
    (0..count).map(|_| run()).collect()
}

fn question(base: Vec<Figure>, new: Vec<Figure>) -> Question {
    Question { tolerance: tolerance(), base, new, ..Question::default() }
}

/// How many of the simulated comparisons call any quantity worse, where `factor` was planted into
/// all new runs.
fn called_worse(count: usize, between: f64, within: f64, seconds: usize, factor: f64) -> u64 {
    let is_worse = |seed: u64| {
        let mut random = Rng(seed);
        let mut side = |mean| runs(&mut random, count, mean, between, within, seconds);
        let questions: Vec<Question> = (0..QUANTITIES)
            .map(|_| (side(100.0), side(100.0 * factor)))
            .map(|(base, new)| question(base, new))
            .collect();
        judge(&questions).iter().flatten().any(|judged| judged.verdict == ComparisonVerdict::Worse)
    };
    (0..SIMULATIONS).filter(|seed| is_worse(*seed)).count() as u64
}

#[test]
fn equal_sides_are_called_worse_in_at_most_a_twentieth_of_comparisons() {
    // Noise so large that the margin of 5 % alone would not protect.
    for (name, count, between, within, seconds) in [
        ("two runs a side", 2, 20.0, 0.0, 1),
        ("three runs a side", 3, 20.0, 0.0, 1),
        ("eight runs a side", 8, 20.0, 0.0, 1),
        ("a run a side, a minute", 1, 0.0, 30.0, 60),
        ("a run a side, five minutes", 1, 0.0, 60.0, 300),
    ] {
        let worse = called_worse(count, between, within, seconds, 1.0);
        assert!(worse * 20 <= SIMULATIONS, "{name}: {worse} of {SIMULATIONS}");
    }
}

#[test]
fn a_planted_tenth_is_found() {
    for (name, count, between, within, seconds) in [
        ("three runs a side", 3, 0.7, 0.0, 1),
        ("five runs a side", 5, 1.5, 0.0, 1),
        ("a run a side, two minutes", 1, 0.0, 3.0, 120),
    ] {
        let worse = called_worse(count, between, within, seconds, 1.1);
        assert!(worse * 20 >= SIMULATIONS * 19, "{name}: {worse} of {SIMULATIONS}");
    }
}

#[test]
fn the_interval_covers_the_truth_in_about_95_of_100() {
    for (count, between, within, seconds) in [(4, 5.0, 0.0, 1), (1, 0.0, 5.0, 200)] {
        let covers = |seed: u64| {
            let mut random = Rng(seed);
            let base = runs(&mut random, count, 100.0, between, within, seconds);
            let new = runs(&mut random, count, 110.0, between, within, seconds);
            let [low, high] =
                difference(&base, &new, 0.0).and_then(|found| found.interval()).unwrap();
            low <= 10.0 && 10.0 <= high
        };
        let covered = (0..1_000).filter(|seed| covers(*seed)).count();
        // A little below 950 for parts: ten seconds depend on the ten before by a few percent.
        assert!((915..=985).contains(&covered), "{covered} of 1000");
    }
}

#[test]
fn equal_and_steady_sides_are_the_same() {
    let steady = |value: f64| vec![Figure { value, parts: vec![value; 6] }];
    let judged =
        judge(&[question(steady(0.0), steady(0.0)), question(steady(100.0), steady(104.0))]);
    for one in judged {
        assert_eq!(one.map(|judged| judged.verdict), Some(ComparisonVerdict::Same));
    }
}

#[test]
fn the_direction_decides_between_better_and_worse() {
    let runs = |mean: f64| -> Vec<Figure> {
        [-1.0, 0.0, 1.0].map(|by| Figure { value: mean + by, parts: Vec::new() }).to_vec()
    };
    for (direction, new, expect) in [
        (Direction::Lower, 150.0, ComparisonVerdict::Worse),
        (Direction::Lower, 50.0, ComparisonVerdict::Better),
        (Direction::Higher, 150.0, ComparisonVerdict::Better),
        (Direction::Higher, 50.0, ComparisonVerdict::Worse),
    ] {
        let question = Question { direction, ..question(runs(100.0), runs(new)) };
        let judged = judge(&[question])[0].unwrap();
        assert_eq!(judged.verdict, expect, "{judged:?}");
        assert!(judged.p_corrected < Some(0.001));
    }
}

#[test]
fn more_runs_on_one_side_lend_their_spread_to_the_other() {
    let one = vec![Figure { value: 130.0, parts: vec![130.0; 5] }];
    let several: Vec<Figure> =
        [99.0, 100.0, 101.0, 100.0].map(|value| Figure { value, parts: Vec::new() }).to_vec();
    let found = difference(&several, &one, 0.0).unwrap();
    assert_eq!(found.basis, Basis::RunsOfOneSide);
    assert_eq!(judge(&[question(several, one)])[0].unwrap().verdict, ComparisonVerdict::Worse);
}

#[test]
fn a_figure_in_steps_is_not_surer_than_a_step() {
    let users = |value: f64| vec![Figure { value, parts: Vec::new() }; 2];
    let judge_steps = |resolution| {
        let question = Question {
            direction: Direction::Higher,
            resolution,
            ..question(users(12.0), users(11.0))
        };
        judge(&[question])[0].unwrap()
    };
    // Two runs that agree exactly on a number of users have a spread all the same.
    assert_eq!(judge_steps(0.0).verdict, ComparisonVerdict::Worse);
    assert_eq!(judge_steps(1.0).verdict, ComparisonVerdict::NotDecided);
}

#[test]
fn without_an_interval_nothing_is_decided_and_nonsense_is_not_measured() {
    let figure = |value: f64, parts: &[f64]| Figure { value, parts: parts.to_vec() };
    let good = || vec![figure(1.0, &[1.0, 1.0])];
    for side in [
        vec![figure(9.0, &[])],
        vec![figure(9.0, &[9.0])],
        vec![figure(9.0, &[9.0, f64::NAN])],
        vec![figure(9.0, &[9.0, f64::INFINITY])],
        vec![figure(1e300, &[1e300, -1e300])],
    ] {
        let judged = judge(&[question(good(), side.clone())])[0].unwrap();
        assert_eq!(judged.verdict, ComparisonVerdict::NotDecided, "{side:?}");
        assert!(judged.difference.interval().is_none(), "{side:?}");
    }
    for side in [
        vec![],
        vec![figure(f64::NAN, &[])],
        vec![figure(f64::INFINITY, &[1.0, 2.0])],
        vec![figure(1e308, &[]), figure(-1e308, &[])],
    ] {
        assert!(
            judge(&[question(good(), side.clone()), question(side, good())])
                .iter()
                .all(Option::is_none)
        );
    }
    assert!(judge(&[]).is_empty());
}

#[test]
fn groups_do_not_take_from_each_other() {
    let side = |mean: f64| -> Vec<Figure> {
        [-1.0, 0.0, 1.0].map(|by| Figure { value: mean + by, parts: Vec::new() }).to_vec()
    };
    let clear = question(side(100.0), side(110.0));
    let noise = Question { group: 1, ..question(side(100.0), side(100.5)) };
    let alone = judge(std::slice::from_ref(&clear))[0].unwrap().p_corrected;
    let with_others =
        judge(&[vec![clear.clone()], vec![noise; 20]].concat())[0].unwrap().p_corrected;
    assert_eq!(alone, with_others);
    let in_one = judge(&vec![clear; 3])[0].unwrap().p_corrected;
    assert!(in_one > alone, "{in_one:?} {alone:?}");
}
