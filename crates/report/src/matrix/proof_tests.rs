//! Proofs with a known answer.

use throng_analysis::demand::{Demand, FittedUse, Resource};
use throng_observation::Relief;

use super::*;
use throng_analysis::experiment::ProofOutcome;

/// A run of a search that found `capacity`, or of a hold that served `served`.
#[derive(Clone, Copy)]
enum Found {
    Capacity(u32),
    Served(f64),
}

fn run(repeat: u32, place: usize, found: Found, finding: Option<&str>) -> MatrixRun {
    let (capacity, served_ratio) = match found {
        Found::Capacity(users) => (Some(users), None),
        Found::Served(ratio) => (None, Some(ratio)),
    };
    let environment = [("kernel", "6.1"), ("steal_ratio", "0.0010"), ("busy_ratio_before", "0.02")];
    MatrixRun {
        repeat,
        place: Some(place),
        status: RunStatus::Valid,
        environment: environment.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        figures: Some(RunFigures {
            capacity,
            served_ratio,
            first_failing: capacity.map(|users| users + 1 + users / 50),
            capacity_verdict: capacity.map(|_| "found".to_owned()),
            verdict: if finding.is_some() { CellVerdict::Bottleneck } else { CellVerdict::Served },
            finding: finding.map(str::to_owned),
            ..RunFigures::default()
        }),
        ..MatrixRun::default()
    }
}

/// The blocks of two variants at most, each with four pairs, and which side begins in turns.
fn blocks(variants: usize) -> Vec<ProofBlock> {
    let mut made = vec![0u32; variants + 1];
    let mut blocks = Vec::new();
    for round in 0..2 {
        for variant in 1..=variants {
            let (a, b) = if round == 0 { (0, variant) } else { (variant, 0) };
            let runs = [a, b, b, a].map(|cell| {
                made[cell] += 1;
                (cell, made[cell])
            });
            blocks.push((variant, runs));
        }
    }
    blocks
}

/// A proof of the baseline and its variants: what a run of each cell measures by its place, and its
/// finding.
fn proof(
    measure: MatrixMeasure,
    variants: Vec<ProofVariant>,
    found: impl Fn(usize, usize) -> Found,
    finding: impl Fn(usize) -> Option<&'static str>,
    change: impl Fn(&mut Vec<MatrixCell>),
) -> MatrixReport {
    let names = ["one", "four", "placebo"];
    let blocks = blocks(variants.len());
    let mut cells: Vec<MatrixCell> = (0..=variants.len())
        .map(|cell| MatrixCell {
            number: cell + 1,
            levels: vec![cell],
            name: format!("variant={}", names[cell]),
            ..MatrixCell::default()
        })
        .collect();
    for (place, (cell, repeat)) in blocks.iter().flat_map(|(_, runs)| *runs).enumerate() {
        cells[cell].runs.push(run(repeat, place + 1, found(cell, place), finding(cell)));
    }
    change(&mut cells);
    // Runs that `change` adds beyond those of the blocks are pairs that were made once more.
    let planned =
        |cell: usize| blocks.iter().flat_map(|(_, runs)| runs).filter(|run| run.0 == cell).count();
    let repeats = |cell: usize| planned(cell) + 1..=cells[cell].runs.len();
    let pair = |(a, b): (usize, usize)| (1, [(0, a as u32), (1, b as u32)]);
    let repeated: Vec<RepeatedPair> = repeats(0).zip(repeats(1)).map(pair).collect();
    let none = |_: usize, _: usize, _: usize| None;
    let report = summarise(MatrixInput {
        name: None,
        measure,
        repeats: 4,
        seed: 1,
        order: "abba".into(),
        factors: vec![MatrixFactor {
            name: "variant".into(),
            levels: names.map(str::to_owned).to_vec(),
        }],
        cells,
        relieved: &none,
        throng_version: "0".into(),
    });
    let demands = vec![demands(); 4];
    with_proofs(
        report,
        &ProofInput {
            variants,
            blocks,
            repeated,
            looks: 1,
            demands,
            busy_difference: 0.25,
            ..ProofInput::default()
        },
    )
}

/// A thread that is full at 60 users, and a line that is at 130.
fn demands() -> Vec<Demand> {
    let of = |resource, instance: &str, per_user: f64, limit: f64| Demand {
        resource,
        instance: instance.into(),
        group: None,
        setting: None,
        unit: "ratio".into(),
        per_user,
        per_user_error: 0.0,
        idle: 0.0,
        curve: None,
        used: 0.9 * limit,
        limit: Some(limit),
        users: Some(limit / per_user),
        users_low: Some(0.95 * limit / per_user),
        users_high: Some(1.05 * limit / per_user),
        extrapolated: false,
        loads: 5,
        fit: Some(FittedUse {
            coefficients: [0.0, per_user, 0.0],
            freedom: 3,
            users_min: 1.0,
            users_max: 0.9 * limit / per_user,
            ..FittedUse::default()
        }),
    };
    vec![of(Resource::Thread, "worker", 1.0 / 60.0, 1.0), of(Resource::NicSent, "eth0", 1.0, 130.0)]
}

fn relieving(more: Option<f64>) -> Vec<ProofVariant> {
    vec![ProofVariant { cell: 1, relieves: Some(Relief::of_resource("cpu")), more, shrink: None }]
}

fn untouched(_: &mut Vec<MatrixCell>) {}

/// Four workers carry twice as many users as one, and then the line is full.
pub(crate) fn confirmed() -> MatrixReport {
    let found = |cell: usize, place: usize| {
        let users = if cell == 0 { 60 } else { 125 };
        Found::Capacity(users + (place % 2) as u32)
    };
    let finding = |cell| Some(if cell == 0 { "one_thread_full" } else { "line_rate" });
    proof(MatrixMeasure::Find, relieving(Some(4.0)), found, finding, untouched)
}

/// A variant that changes nothing.
pub(crate) fn placebo() -> MatrixReport {
    let variants = vec![ProofVariant { cell: 1, ..ProofVariant::default() }];
    let found = |_, place: usize| Found::Served(0.60 + 0.002 * (place % 3) as f64);
    proof(MatrixMeasure::Hold, variants, found, |_| Some("cpu_full"), untouched)
}

#[test]
fn a_gain_is_confirmed_with_the_next_limit_and_the_prediction() {
    let report = confirmed();
    let proof = &report.proofs[0];
    assert_eq!(proof.outcome, ProofOutcome::Confirmed, "{proof:#?}");
    let effect = proof.effect.unwrap();
    assert!((effect.ratio - 2.07).abs() < 0.05 && effect.pairs == 4, "{effect:?}");
    assert!((proof.control.unwrap().ratio - 1.0).abs() < 0.05);
    assert!(proof.answer.ends_with("; then network (line_rate) is the limit"), "{}", proof.answer);
    let prediction = proof.prediction.as_ref().unwrap();
    assert_eq!((prediction.users.round(), prediction.held), (130.0, Some(true)), "{prediction:?}");
    let text = text::summary(&report);
    for line in [
        "confirmed: cpu limits one; four has ×2.07 the users",
        "the demand model predicted 124 to 136 users, then full: bytes sent by eth0; held",
        "A/A",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("Effects on"), "pairs decide, not means of cells");
    let read: MatrixReport = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(read, report);
}

#[test]
fn a_prediction_that_does_not_hold_is_said() {
    let found = |cell: usize, _| Found::Capacity(if cell == 0 { 60 } else { 90 });
    let report = proof(
        MatrixMeasure::Find,
        relieving(Some(4.0)),
        found,
        |_| Some("one_thread_full"),
        untouched,
    );
    assert_eq!(report.proofs[0].outcome, ProofOutcome::Confirmed);
    assert_eq!(report.proofs[0].prediction.as_ref().unwrap().held, Some(false));
    assert!(text::summary(&report).contains("did not hold"));
}

#[test]
fn a_placebo_comes_out_the_same_and_more_of_what_is_no_limit_is_refuted() {
    assert_eq!(placebo().proofs[0].outcome, ProofOutcome::Same);
    let found = |_, _| Found::Served(0.5);
    let report =
        proof(MatrixMeasure::Hold, relieving(None), found, |_| Some("path_loss"), untouched);
    let proof = &report.proofs[0];
    assert_eq!(proof.outcome, ProofOutcome::Refuted, "{proof:#?}");
    assert!(proof.reasons[0].contains("name network (path_loss), not cpu"), "{:?}", proof.reasons);
    assert!(proof.answer.starts_with("refuted: cpu does not limit one"), "{}", proof.answer);
}

/// SRS on two CPUs: its one thread is full as before.
#[test]
fn what_does_not_relieve_the_limit_is_not_said_to_prove_that_there_is_none() {
    let found = |_, _| Found::Served(0.5);
    let report =
        proof(MatrixMeasure::Hold, relieving(None), found, |_| Some("cpu_full"), untouched);
    let proof = &report.proofs[0];
    assert_eq!(proof.outcome, ProofOutcome::Refuted, "{proof:#?}");
    let said = "does not relieve cpu, which its runs still name; it has ×1.00";
    assert!(proof.answer.contains(said), "{}", proof.answer);
}

#[test]
fn what_cannot_be_seen_is_not_refuted() {
    let report =
        proof(MatrixMeasure::Hold, relieving(None), |_, _| Found::Served(1.0), |_| None, untouched);
    assert_eq!(report.proofs[0].outcome, ProofOutcome::NotDecided);
    assert!(
        report.proofs[0].reasons[0].contains("Hold a larger crowd"),
        "{:?}",
        report.proofs[0].reasons
    );
    let at_the_ceiling = |cells: &mut Vec<MatrixCell>| {
        for figures in
            cells.iter_mut().flat_map(|cell| &mut cell.runs).filter_map(|run| run.figures.as_mut())
        {
            (figures.first_failing, figures.capacity_verdict) = (None, Some("at_least".into()));
        }
    };
    let report = proof(
        MatrixMeasure::Find,
        relieving(None),
        |_, _| Found::Capacity(80),
        |_| None,
        at_the_ceiling,
    );
    assert_eq!(report.proofs[0].outcome, ProofOutcome::NotDecided);
    assert!(report.proofs[0].reasons[0].contains("find.ceiling"), "{:?}", report.proofs[0].reasons);
}

#[test]
fn a_hold_in_which_the_resource_is_still_named_decides_nothing() {
    let found = |cell: usize, _| Found::Served(if cell == 0 { 0.3 } else { 0.7 });
    let report =
        proof(MatrixMeasure::Hold, relieving(None), found, |_| Some("cpu_full"), untouched);
    assert_eq!(report.proofs[0].outcome, ProofOutcome::NotDecided);
    assert!(
        report.proofs[0].reasons[0].contains("cpu is still named"),
        "{:?}",
        report.proofs[0].reasons
    );
}

/// Runs of one limit on a small host: four names, of which three have the thread in common.
fn workers(names_in_variant: bool, thread: &'static str) -> MatrixReport {
    let relieves = Relief {
        thread: Some("sw-webrtc*".into()),
        setting: Some("StreamWorkerCount".into()),
        ..Relief::of_resource("cpu")
    };
    let variants =
        vec![ProofVariant { cell: 1, relieves: Some(relieves), ..ProofVariant::default() }];
    let found = |cell: usize, _| Found::Served(if cell == 0 { 0.04 } else { 0.8 });
    let change = |cells: &mut Vec<MatrixCell>| {
        for cell in cells.iter_mut().filter(|cell| cell.number == 1 || names_in_variant) {
            let findings = ["one_thread_full", "cpu_bursts", "cpu_full", "run_queue"];
            for (run, finding) in cell.runs.iter_mut().zip(findings) {
                let figures = run.figures.as_mut().unwrap();
                figures.verdict = CellVerdict::Bottleneck;
                figures.finding = Some(finding.into());
                let name = if cell.number == 1 { "SW-WebRTC" } else { thread };
                figures.thread = (finding != "cpu_full").then(|| name.into());
            }
        }
    };
    proof(MatrixMeasure::Hold, variants, found, |_| None, change)
}

#[test]
fn a_thread_is_confirmed_by_name_and_setting_whichever_finding_names_it() {
    let text = "thread SW-WebRTC (StreamWorkerCount)";
    let report = workers(false, "");
    let proof = &report.proofs[0];
    assert_eq!(proof.outcome, ProofOutcome::Confirmed, "{proof:#?}");
    assert!(
        proof.answer.starts_with(&format!("confirmed: {text} limits one; four has at least ×")),
        "{}",
        proof.answer
    );
    assert_eq!((proof.accused.as_str(), proof.relieves.as_deref()), (text, Some("cpu")));
    assert!(proof.reasons.is_empty(), "three of four runs name it: {:?}", proof.reasons);
    // Still full in the variant, by another finding in each run.
    let proof = &workers(true, "SW-WebRTC").proofs[0];
    assert_eq!(proof.outcome, ProofOutcome::NotDecided, "{proof:#?}");
    assert!(proof.reasons[0].contains(&format!("{text} is still named")), "{:?}", proof.reasons);
    // Another thread is the next limit, of the same resource, by another finding in each run.
    let report = workers(true, "AW-WebRTC0");
    let proof = &report.proofs[0];
    assert_eq!(proof.outcome, ProofOutcome::Confirmed, "{proof:#?}");
    assert!(proof.answer.ends_with("; then thread AW-WebRTC0 is the limit"), "{}", proof.answer);
    assert_eq!(proof.baseline_limit.as_deref(), Some("thread SW-WebRTC"));
    assert_eq!((report.cells[0].agreeing_runs, report.cells[0].valid_runs), (3, 4));
}

#[test]
fn a_crowd_that_is_not_served_at_all_has_a_ratio() {
    let found = |cell: usize, _| Found::Served(if cell == 0 { 0.0 } else { 1.0 });
    let finding = |cell| (cell == 0).then_some("one_thread_full");
    let report = proof(MatrixMeasure::Hold, relieving(None), found, finding, untouched);
    let proof = &report.proofs[0];
    assert_eq!(proof.outcome, ProofOutcome::Confirmed, "{proof:#?}");
    assert!((proof.effect.unwrap().ratio - 10.0).abs() < 1e-6);
    // None at all counts as a tenth: how many times as many all are of it is not measured.
    assert_eq!(proof.bound, RatioBound::AtLeast);
    assert!(proof.answer.contains("; four has at least ×"), "{}", proof.answer);
    assert!(proof.pairs.iter().all(|pair| pair.bound == RatioBound::AtLeast), "{proof:#?}");
    assert!(proof.answer.ends_with("; then nothing is named"), "{}", proof.answer);
}

/// Whatever was changed, a crowd far beyond the capacity is served by nobody.
#[test]
fn two_sides_that_serve_hardly_anybody_are_not_the_same() {
    let report = proof(
        MatrixMeasure::Hold,
        relieving(None),
        |_, _| Found::Served(0.01),
        |_| Some("line_rate"),
        untouched,
    );
    let proof = &report.proofs[0];
    assert_eq!(proof.outcome, ProofOutcome::NotDecided, "{proof:#?}");
    let text = proof.reasons.join(" ");
    assert!(text.contains("hardly anybody"), "{text}");
    // One that a search found just beyond the limit had been served with more of it; a placebo says
    // nothing there.
    let near = |variants: Vec<ProofVariant>| {
        let input = ProofInput {
            variants,
            blocks: blocks(1),
            looks: 1,
            busy_difference: 0.25,
            beyond: Some(1.3),
            ..ProofInput::default()
        };
        with_proofs(report.clone(), &input).proofs.remove(0)
    };
    let refuted = near(relieving(Some(2.0)));
    assert_eq!(refuted.outcome, ProofOutcome::Refuted, "{refuted:#?}");
    assert!(refuted.reasons[0].contains("30 % larger than what one serves"), "{refuted:#?}");
    assert_eq!(refuted.bound, RatioBound::Unknown, "1 % of both is no ratio");
    let said = "has less than 10 % of the user-seconds served well, as has one";
    assert!(refuted.answer.contains(said), "{}", refuted.answer);
    // A third more had not served a crowd that is 30 % too large, nor is that known without `more`:
    // the limit may be the accused one.
    for more in [Some(1.33), None] {
        let open = near(relieving(more));
        assert_eq!(open.outcome, ProofOutcome::NotDecided, "{open:#?}");
        assert_eq!(open.reasons[0], refuted.reasons[0]);
        assert!(open.answer.starts_with("not decided"), "{}", open.answer);
    }
    let placebo = near(vec![ProofVariant { cell: 1, ..ProofVariant::default() }]);
    assert_eq!(placebo.outcome, ProofOutcome::NotDecided, "{placebo:#?}");
}

#[test]
fn pairs_of_different_environments_do_not_count_and_say_why() {
    let change = |cells: &mut Vec<MatrixCell>| {
        cells[1].runs[0].environment.insert("steal_ratio".into(), "0.2000".into());
        cells[1].runs[1].status = RunStatus::Invalid;
        cells[1].runs[1].reason = Some("the generator was the limit".into());
        cells[1].runs[2].status = RunStatus::Pending;
    };
    let found = |cell: usize, _| Found::Capacity(if cell == 0 { 60 } else { 120 });
    let report =
        proof(MatrixMeasure::Find, relieving(None), found, |_| Some("one_thread_full"), change);
    let proof = &report.proofs[0];
    let why: Vec<&str> =
        proof.pairs.iter().map(|pair| pair.discarded.as_deref().unwrap_or("counts")).collect();
    assert_eq!(why[0], "a hypervisor took 0 % and 20 % of the CPU time");
    assert_eq!(why[1..3], ["invalid: the generator was the limit", "not made yet"]);
    assert_eq!((why[3], proof.effect.unwrap().pairs), ("counts", 1));
    assert_eq!(proof.outcome, ProofOutcome::NotDecided, "one pair decides nothing");
    assert!(proof.reasons[0].contains("3 of 4 pairs do not count"), "{:?}", proof.reasons);
    assert!(report.partial && report.headline.ends_with("not finished"), "{}", report.headline);
}

/// A hypervisor took CPU time in half of the pairs, which were then made once more.
#[test]
fn a_pair_that_was_made_once_more_takes_the_place_of_the_lost_one() {
    let stolen = |cells: &mut Vec<MatrixCell>| {
        for run in &mut cells[1].runs[..2] {
            run.environment.insert("steal_ratio".into(), "0.2000".into());
        }
    };
    let found = |cell: usize, _| Found::Capacity(if cell == 0 { 60 } else { 120 });
    let repeated = |cells: &mut Vec<MatrixCell>| {
        stolen(cells);
        for repeat in 5..=6 {
            let place = repeat as usize * 2;
            cells[0].runs.push(run(repeat, place, found(0, 0), Some("one_thread_full")));
            cells[1].runs.push(run(repeat, place + 1, found(1, 0), None));
        }
    };
    let finding = |cell| (cell == 0).then_some("one_thread_full");
    let report = proof(MatrixMeasure::Find, relieving(None), found, finding, stolen);
    assert_eq!(report.proofs[0].effect.unwrap().pairs, 2);
    let report = proof(MatrixMeasure::Find, relieving(None), found, finding, repeated);
    let proof = &report.proofs[0];
    assert_eq!((proof.effect.unwrap().pairs, proof.pairs.len()), (4, 6), "{proof:#?}");
    assert_eq!(proof.outcome, ProofOutcome::Confirmed);
    assert_eq!(proof.reasons[0], "2 of 6 pairs do not count; 2 were made once more.");
}

/// The second pair of the first block is lost, and the one that takes its place was made when the
/// machine was a fifth slower: runs of equal configuration differ by that.
#[test]
fn a_pair_that_was_made_once_more_takes_part_in_a_a() {
    let change = |cells: &mut Vec<MatrixCell>| {
        cells[1].runs[1].environment.insert("steal_ratio".into(), "0.2000".into());
        for (cell, users) in [(0, 48), (1, 96)] {
            let again = run(5, 9 + cell, Found::Capacity(users), Some("one_thread_full"));
            cells[cell].runs.push(again);
        }
    };
    let found = |cell: usize, _| Found::Capacity(if cell == 0 { 60 } else { 120 });
    let report =
        proof(MatrixMeasure::Find, relieving(None), found, |_| Some("one_thread_full"), change);
    let proof = &report.proofs[0];
    let (effect, control) = (proof.effect.unwrap(), proof.control.unwrap());
    assert!((effect.ratio - 2.0).abs() < 0.01 && effect.pairs == 4, "{proof:#?}");
    // Four comparisons, two of them with the slower machine.
    assert_eq!(control.pairs, 4);
    assert!((control.ratio - 0.8f64.sqrt()).abs() < 0.01, "{control:?}");
}

#[test]
fn pairs_in_which_others_had_the_cpu_do_not_count_and_are_made_again() {
    let others = |run: &mut MatrixRun, others: &str, idle: &str| {
        run.environment.insert("others_ratio".into(), others.into());
        run.environment.insert("idle_ratio".into(), idle.into());
    };
    let change = |cells: &mut Vec<MatrixCell>| {
        for run in cells.iter_mut().flat_map(|cell| &mut cell.runs) {
            others(run, "0.02", "0.30");
        }
        // In one run of a pair; in both of another, without anything left.
        others(&mut cells[1].runs[0], "0.50", "0.30");
        others(&mut cells[1].runs[2], "0.20", "0.00");
        others(&mut cells[0].runs[2], "0.20", "0.00");
    };
    let found = |cell: usize, _| Found::Capacity(if cell == 0 { 60 } else { 120 });
    let report =
        proof(MatrixMeasure::Find, relieving(None), found, |_| Some("one_thread_full"), change);
    let lost: Vec<&str> =
        report.proofs[0].pairs.iter().filter_map(|pair| pair.discarded.as_deref()).collect();
    assert_eq!(
        lost,
        [
            "while they ran, other processes used 2 % and 50 % of the CPU time",
            "other processes used 20.0 % of the CPU time, and no core was idle"
        ]
    );
    let run = |cell: usize, repeat: usize| &report.cells[cell].runs[repeat];
    assert!(is_lost([run(0, 0), run(1, 0)], 0.25) && !is_lost([run(0, 0), run(1, 0)], 1.0));
    assert!(is_lost([run(0, 2), run(1, 2)], 0.25) && !is_lost([run(0, 3), run(1, 3)], 0.25));
}

#[test]
fn a_baseline_without_a_limit_is_said_and_nothing_is_compared() {
    let none = |_: usize, _: usize, _: usize| None;
    let names = ["one", "four"].map(str::to_owned);
    let cell =
        |number: usize| MatrixCell { number, levels: vec![number - 1], ..MatrixCell::default() };
    let report = summarise(MatrixInput {
        name: None,
        measure: MatrixMeasure::Find,
        repeats: 0,
        seed: 1,
        order: "abba".into(),
        factors: vec![MatrixFactor { name: "variant".into(), levels: names.to_vec() }],
        cells: vec![cell(1), cell(2)],
        relieved: &none,
        throng_version: "0".into(),
    });
    let input = ProofInput {
        variants: relieving(None),
        chosen: Some("why".into()),
        no_limit_up_to: Some(80),
        ..ProofInput::default()
    };
    let report = with_proofs(report, &input);
    let text = "not decided: one has no limit up to 80 users, the largest crowd that may be tried";
    assert_eq!((report.headline.as_str(), report.partial), (text, false));
    assert_eq!(report.notes[0], "why");
    assert_eq!(report.proofs[0].reasons.len(), 1, "{:?}", report.proofs[0].reasons);
}

#[test]
fn only_what_may_be_otherwise_another_time_is_made_again() {
    let usual = run(1, 1, Found::Served(0.5), None);
    let of = |status: RunStatus| MatrixRun { status, ..usual.clone() };
    let mut stolen = usual.clone();
    stolen.environment.insert("steal_ratio".into(), "0.2000".into());
    for (other, expect) in [
        (usual.clone(), false),
        (stolen.clone(), true),
        (of(RunStatus::Invalid), true),
        (of(RunStatus::Failed), false),
        (of(RunStatus::Skipped), false),
        (MatrixRun { status: RunStatus::Pending, ..stolen }, false),
    ] {
        assert_eq!(is_lost([&usual, &other], 0.25), expect, "{other:?}");
    }
}

#[test]
fn a_machine_that_changes_more_than_the_variant_decides_nothing() {
    // A tenth more with every run.
    let found = |_, place: usize| Found::Capacity((60.0 * 1.1f64.powi(place as i32)) as u32);
    let report =
        proof(MatrixMeasure::Find, relieving(None), found, |_| Some("one_thread_full"), untouched);
    assert_eq!(report.proofs[0].outcome, ProofOutcome::NotDecided);
    assert!(
        report.proofs[0].reasons[0].contains("equal configuration differ"),
        "{:?}",
        report.proofs[0].reasons
    );
}

#[test]
fn a_shrunk_resource_has_an_elasticity_and_its_placebo_has_none() {
    let shrink = |resource: &str, is_placebo| {
        Some(ProofShrink { resource: resource.into(), to: 0.8, is_placebo })
    };
    let variants = vec![
        ProofVariant { cell: 1, shrink: shrink("cpu", false), ..ProofVariant::default() },
        ProofVariant { cell: 2, shrink: shrink("nofile", true), ..ProofVariant::default() },
    ];
    let found = |cell: usize, place: usize| {
        let users = if cell == 1 { 80 } else { 100 };
        Found::Capacity(users + (place % 2) as u32)
    };
    let report = proof(MatrixMeasure::Find, variants, found, |_| Some("cpu_quota"), untouched);
    let outcomes: Vec<ProofOutcome> = report.proofs.iter().map(|proof| proof.outcome).collect();
    assert_eq!(outcomes, [ProofOutcome::Confirmed, ProofOutcome::Same], "{:#?}", report.proofs);
    assert!((report.proofs[0].elasticity.unwrap() - 1.0).abs() < 0.1, "{:?}", report.proofs[0]);
    assert!(report.proofs[1].elasticity.unwrap().abs() < 0.1);
    assert!(
        text::summary(&report).contains("elasticity 0.9")
            || text::summary(&report).contains("elasticity 1.0")
    );
}

#[test]
fn a_share_of_few_user_seconds_is_not_exact() {
    let outcome = |users: f64| {
        let change = |cells: &mut Vec<MatrixCell>| {
            for figures in cells
                .iter_mut()
                .flat_map(|cell| &mut cell.runs)
                .filter_map(|run| run.figures.as_mut())
            {
                (figures.users, figures.window_s) = (users, [10.0, 12.0]);
            }
        };
        let variants = vec![ProofVariant { cell: 1, ..ProofVariant::default() }];
        let report =
            proof(MatrixMeasure::Hold, variants, |_, _| Found::Served(0.5), |_| None, change);
        report.proofs[0].outcome
    };
    assert_eq!((outcome(4.0), outcome(100.0)), (ProofOutcome::NotDecided, ProofOutcome::Same));
}
