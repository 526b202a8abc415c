//! Laws of the arithmetic: what is planted comes out, and nothing else does.

use super::*;
use throng_observation::Relief;

fn factor(name: &str, levels: &[&str]) -> Factor {
    Factor { name: name.into(), levels: levels.iter().map(|&level| level.into()).collect() }
}

/// The limit of a run that names nothing but `finding`.
fn named(finding: &str) -> NamedLimit {
    NamedLimit { finding: finding.into(), ..NamedLimit::default() }
}

/// Two factors of two and three levels and a placebo, `repeats` runs each; `value` of a cell, and
/// the noise of a run.
fn grid(
    repeats: usize,
    value: impl Fn(&[usize]) -> f64,
    noise: impl Fn(usize) -> f64,
) -> (Vec<Factor>, Vec<CellValues>) {
    let factors = vec![
        factor("storage", &["disk", "tmpfs"]),
        factor("files", &["1", "10", "30"]),
        factor("placebo", &["a", "b"]),
    ];
    let mut cells = Vec::new();
    let mut run = 0;
    for storage in 0..2 {
        for files in 0..3 {
            for placebo in 0..2 {
                let levels = vec![storage, files, placebo];
                let mut measured = || {
                    run += 1;
                    value(&levels) + noise(run)
                };
                let values = (0..repeats).map(|_| measured()).collect();
                cells.push(CellValues { levels, values });
            }
        }
    }
    (factors, cells)
}

/// A deterministic noise of about ±`size`.
fn jitter(size: f64) -> impl Fn(usize) -> f64 {
    move |run| size * (((run * 7919) % 101) as f64 / 50.0 - 1.0)
}

#[test]
fn a_planted_effect_is_found_and_a_placebo_has_none() {
    let value = |levels: &[usize]| 10.0 + 20.0 * levels[0] as f64 - 3.0 * levels[1] as f64;
    let (factors, cells) = grid(3, value, jitter(0.5));
    let found = effects(&factors, &cells, Margin::Relative(0.05));
    let storage = &found[0].differences[0];
    assert!((storage.difference.unwrap() - 20.0).abs() < 0.5, "{storage:?}");
    assert_eq!((found[0].verdict, storage.pairs), (EffectVerdict::Differs, 6));
    let files: Vec<f64> =
        found[1].differences.iter().map(|files| files.difference.unwrap()).collect();
    assert!((files[0] + 3.0).abs() < 0.5 && (files[1] + 6.0).abs() < 0.5, "{files:?}");
    assert_eq!(found[2].verdict, EffectVerdict::Same, "{:?}", found[2]);
    for interaction in interactions(&factors, &cells, Margin::Relative(0.05)) {
        let largest = interaction.largest.unwrap();
        assert_ne!(largest.verdict, EffectVerdict::Differs, "{largest:?}");
    }
}

#[test]
fn an_interaction_is_found_where_effects_do_not_add_up() {
    // The disk matters only for many files.
    let value = |levels: &[usize]| if levels[0] == 0 && levels[1] == 2 { 2.0 } else { 10.0 };
    let (factors, cells) = grid(2, value, jitter(0.1));
    let all = interactions(&factors, &cells, Margin::Relative(0.05));
    let of_both = all.iter().find(|i| i.factors == ["storage", "files"]).unwrap();
    let largest = of_both.largest.as_ref().unwrap();
    assert_eq!(
        (largest.verdict, &largest.levels),
        (EffectVerdict::Differs, &["tmpfs".into(), "30".into()])
    );
    assert!((largest.difference - 8.0).abs() < 0.3, "{largest:?}");
    assert!((of_both.means[0][2].unwrap() - 2.0).abs() < 0.2);
}

#[test]
fn an_interval_covers_the_truth_in_95_of_100_experiments() {
    let mut covered = 0;
    for seed in 0..400 {
        let random = std::cell::RefCell::new(crate::search::rng::Rng(seed));
        let noise = |_| random.borrow_mut().normal();
        let (factors, cells) = grid(2, |levels| 5.0 * levels[0] as f64, noise);
        let found = effects(&factors, &cells, Margin::Absolute(0.1));
        let [low, high] = found[0].differences[0].interval.unwrap();
        covered += i32::from(low <= 5.0 && 5.0 <= high);
    }
    assert!((368..=395).contains(&covered), "{covered} of 400");
}

#[test]
fn without_repeats_nothing_is_decided() {
    let (factors, cells) = grid(1, |levels| levels[0] as f64, |_| 0.0);
    for effect in effects(&factors, &cells, Margin::Absolute(0.1)) {
        assert_eq!(effect.verdict, EffectVerdict::NotDecided);
        assert!(effect.differences.iter().all(|difference| difference.interval.is_none()));
    }
    assert_eq!(Noise::of(&cells), None);
}

#[test]
fn a_missing_cell_takes_its_partner_with_it() {
    // Without the pairing, the many files of tmpfs alone would look like an effect of the storage.
    let value = |levels: &[usize]| 100.0 * levels[1] as f64;
    let (factors, mut cells) = grid(2, value, |_| 0.0);
    for cell in cells.iter_mut().filter(|cell| cell.levels[0] == 0 && cell.levels[1] == 2) {
        cell.values.clear();
    }
    let found = effects(&factors, &cells, Margin::Absolute(1.0));
    assert_eq!(found[0].differences[0].difference, Some(0.0), "{:?}", found[0]);
    assert_eq!((found[0].differences[0].pairs, found[0].verdict), (4, EffectVerdict::Same));
    assert!(
        found[0].levels[0].mean.unwrap() < found[0].levels[1].mean.unwrap(),
        "and the means say another thing"
    );
}

#[test]
fn values_that_are_no_numbers_are_missing() {
    let cells = [CellValues { levels: vec![0], values: vec![f64::NAN, 2.0, f64::INFINITY] }];
    assert_eq!((cells[0].mean(), cells[0].count()), (Some(2.0), 1));
    assert!(effects(&[], &[], Margin::Relative(0.05)).is_empty());
}

/// Cells on the disk and on tmpfs, with services and findings.
fn two(disk: (&[f64], Option<&str>), tmpfs: (&[f64], Option<&str>)) -> Vec<JudgedCell> {
    [disk, tmpfs]
        .into_iter()
        .enumerate()
        .map(|(level, (values, finding))| JudgedCell {
            number: level + 1,
            service: CellValues { levels: vec![level], values: values.to_vec() },
            limit: finding.map(named),
        })
        .collect()
}

#[test]
fn a_verdict_is_confirmed_by_the_change_that_removes_it() {
    use ConfirmationOutcome::{Confirmed, NotDecided, Refuted};
    let factors = [factor("storage", &["disk", "tmpfs"])];
    let storage = Relief::of_resource("disk");
    let relieves = |_: usize, from: usize, to: usize| (from == 0 && to == 1).then_some(&storage);
    let disk = Some("disk_read");
    let bad: &[f64] = &[0.30, 0.32];
    for (cells, service, expect) in [
        (two((bad, disk), (&[1.0, 0.99], None)), Service::OfCrowd, Some(Confirmed)),
        (two((bad, disk), (&[0.8, 0.81], Some("cpu_full"))), Service::OfCrowd, Some(Confirmed)),
        (two((bad, disk), (&[0.31, 0.31], disk)), Service::OfCrowd, Some(Refuted)),
        (two((bad, disk), (&[0.31, 0.31], Some("cpu_full"))), Service::OfCrowd, Some(Refuted)),
        (two((bad, disk), (&[0.8, 0.81], disk)), Service::OfCrowd, Some(NotDecided)),
        (two((bad, disk), (&[0.1, 0.9], None)), Service::OfCrowd, Some(NotDecided)),
        (two((bad, disk), (&[0.1, 0.11], None)), Service::OfCrowd, Some(NotDecided)),
        (two((&[20.0, 21.0], disk), (&[40.0, 41.0], disk)), Service::Capacity, Some(Confirmed)),
        (two((bad, Some("cpu_full")), (&[1.0, 1.0], None)), Service::OfCrowd, None),
        (two((bad, None), (&[1.0, 1.0], None)), Service::OfCrowd, None),
        (two((bad, disk), (&[], None)), Service::OfCrowd, None),
        // One run each: the margin decides.
        (two((&[0.3], disk), (&[0.9], None)), Service::OfCrowd, Some(Confirmed)),
        (two((&[0.3], disk), (&[0.33], None)), Service::OfCrowd, Some(Refuted)),
    ] {
        let found = confirmations(&factors, &cells, &relieves, service, Margin::Absolute(0.05));
        assert_eq!(found.first().map(|one| one.outcome), expect, "{cells:?}");
    }
}

#[test]
fn only_a_change_of_one_factor_confirms() {
    let factors = [factor("storage", &["disk", "tmpfs"]), factor("files", &["1", "30"])];
    let cell = |number, levels: [usize; 2], service, finding: Option<&str>| JudgedCell {
        number,
        service: CellValues { levels: levels.to_vec(), values: vec![service] },
        limit: finding.map(named),
    };
    let cells = [cell(1, [0, 1], 0.3, Some("disk_read")), cell(2, [1, 0], 1.0, None)];
    let disk = Relief::of_resource("disk");
    let relieves = |factor: usize, _: usize, to: usize| (factor == 0 && to == 1).then_some(&disk);
    assert!(
        confirmations(&factors, &cells, &relieves, Service::OfCrowd, Margin::Absolute(0.05))
            .is_empty()
    );
}
