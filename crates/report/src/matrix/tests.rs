//! Matrices with a known answer.

use super::*;
use crate::markdown::{self, tests::is_well_formed};
use throng_analysis::experiment::{ConfirmationOutcome, EffectVerdict};
use throng_observation::{Clause, Relief};

/// A run that served `served` of its user-seconds.
fn run(cell: &str, repeat: u32, served: f64, finding: Option<&str>) -> MatrixRun {
    let verdict = if finding.is_some() { CellVerdict::Bottleneck } else { CellVerdict::Served };
    MatrixRun {
        repeat,
        place: Some(1),
        status: RunStatus::Valid,
        folder: Some(format!("cells/{cell}/{repeat}")),
        environment: [("kernel".to_owned(), "6.1".to_owned())].into(),
        figures: Some(RunFigures {
            served_ratio: Some(served),
            received_bps: 60e6 * served,
            iowait_ratio: Some(if finding == Some("disk_read") { 0.8 } else { 0.0 }),
            idle_ratio: Some(0.1),
            verdict,
            finding: finding.map(str::to_owned),
            score: finding.map(|_| 88.0),
            title: "Disk loop0 is saturated".into(),
            evidence: vec!["disk.read_await of loop0: 0.2 ms idle, 90 ms failing".into()],
            curves: Some(CpuCurves {
                seconds: (0..60).collect(),
                idle: vec![Some(0.1); 60],
                iowait: vec![Some(0.8); 60],
            }),
            hot_functions: vec![HotFunction {
                function: "MPEG1or2VideoStreamParser::parseSlice()".into(),
                module: "live555".into(),
                share: 0.41,
            }],
            ..RunFigures::default()
        }),
        ..MatrixRun::default()
    }
}

fn matrix(
    factors: &[(&str, &[&str])],
    repeats: u32,
    of: impl Fn(&[usize]) -> (f64, Option<&'static str>),
) -> MatrixReport {
    let factors: Vec<MatrixFactor> = factors
        .iter()
        .map(|(name, levels)| MatrixFactor {
            name: (*name).into(),
            levels: levels.iter().map(|level| (*level).into()).collect(),
        })
        .collect();
    let mut grid = vec![Vec::new()];
    for factor in &factors {
        grid = grid
            .iter()
            .flat_map(|cell: &Vec<usize>| {
                (0..factor.levels.len())
                    .map(move |level| cell.iter().copied().chain([level]).collect())
            })
            .collect();
    }
    let cell = |(index, levels): (usize, Vec<usize>)| {
        let words: Vec<String> = factors
            .iter()
            .zip(&levels)
            .map(|(factor, level)| format!("{}={}", factor.name, factor.levels[*level]))
            .collect();
        let folder = format!("{}_{}", index + 1, words.join("_"));
        let (served, finding) = of(&levels);
        let runs = (1..=repeats)
            .map(|repeat| run(&folder, repeat, served + f64::from(repeat) * 1e-3, finding))
            .collect();
        MatrixCell {
            number: index + 1,
            levels,
            name: words.join(" "),
            runs,
            ..MatrixCell::default()
        }
    };
    let cells = grid.into_iter().enumerate().map(cell).collect();
    let disk = Relief::of_resource("disk");
    let relieved = |factor: usize, from: usize, to: usize| {
        (factor == 1 && from == 0 && to == 1).then_some(&disk)
    };
    summarise(MatrixInput {
        name: Some("files and storage".into()),
        measure: MatrixMeasure::Hold,
        repeats,
        seed: 1,
        order: "random".into(),
        factors: factors.clone(),
        cells,
        relieved: &relieved,
        throng_version: "0".into(),
    })
}

/// 1, 10 and 30 files on a disk and on tmpfs: many files on the disk are served badly.
pub(crate) fn campus() -> MatrixReport {
    let factors: [(&str, &[&str]); 2] = [("files", &["1", "30"]), ("storage", &["disk", "tmpfs"])];
    matrix(&factors, 2, |levels| match levels {
        [1, 0] => (0.4, Some("disk_read")),
        _ => (0.99, None),
    })
}

/// A grid of `cells` cells.
pub(crate) fn large(cells: usize, repeats: u32) -> MatrixReport {
    let levels: Vec<String> = (0..cells / 8).map(|level| level.to_string()).collect();
    let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
    let factors: [(&str, &[&str]); 4] = [
        ("connections", &levels),
        ("storage", &["disk", "tmpfs"]),
        ("codec", &["a", "b"]),
        ("cpus", &["1", "2"]),
    ];
    matrix(
        &factors,
        repeats,
        |levels| if levels[1] == 0 { (0.5, Some("disk_read")) } else { (0.98, None) },
    )
}

#[test]
fn the_line_of_a_run_says_what_was_bad_in_it() {
    let mut stalls = run("1", 1, 0.49, Some("disk_read"));
    if let Some(figures) = &mut stalls.figures {
        let (stall, delivery) = (Clause::Stall, Clause::Delivery);
        figures.reasons =
            vec![Reason { clause: stall, ratio: 0.9 }, Reason { clause: delivery, ratio: 0.4 }];
    }
    let line = text::run_line(&stalls);
    assert!(
        line.starts_with("49.0 % served well (bad: mostly stall (90 %), delivery 40 %), "),
        "{line}"
    );
    assert!(!line.contains("others"), "{line}");
    stalls.environment.insert("others_ratio".into(), "0.5123".into());
    let line = text::run_line(&stalls);
    assert!(line.contains(", others 51.2 %: disk_read"), "{line}");
    // From the rows of a run.
    let degraded = crate::example::degraded();
    let summary = crate::summarise(&degraded, &[], std::time::Duration::ZERO);
    let of = |hold| figures(&degraded, &summary, Some(hold)).reasons;
    assert_eq!(of((50, 60)).first().map(|reason| reason.clause), Some(Clause::Delay));
    assert!(of((20, 30)).is_empty(), "all were served well");
}

#[test]
fn the_disk_is_named_in_its_cell_and_confirmed_by_tmpfs() {
    let report = campus();
    let limits: Vec<Option<&str>> =
        report.cells.iter().map(|cell| cell.resource.as_deref()).collect();
    assert_eq!(limits, [None, None, Some("disk"), None]);
    let outcomes: Vec<_> =
        report.confirmations.iter().map(|one| (one.cell, one.other_cell, one.outcome)).collect();
    assert_eq!(outcomes, [(3, 4, ConfirmationOutcome::Confirmed)]);
    assert_eq!(
        report.headline,
        "4 cells: 3 served well, 1 limited by disk; disk confirmed by storage in 1 of 1"
    );
    let served = &report.responses[0];
    assert_eq!(served.effects[1].verdict, EffectVerdict::Differs, "{served:?}");
    let text = text::summary(&report);
    for line in [
        "cell 3: Disk loop0 is saturated (88 of 100); disk.read_await of loop0: 0.2 ms idle, 90 ms failing",
        "confirmed: disk_read in cell 3 (files=30 storage=disk); storage=tmpfs in place of disk",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn runs_that_are_not_valid_decide_nothing() {
    let mut report = campus();
    let mut cells = std::mem::take(&mut report.cells);
    for run in &mut cells[2].runs {
        run.status = RunStatus::Invalid;
        run.reason = Some("the generator was the limit".into());
    }
    for run in &mut cells[3].runs {
        (run.status, run.reason) = (RunStatus::Skipped, Some("no control groups".into()));
    }
    cells[0].runs[1].status = RunStatus::Pending;
    let disk = Relief::of_resource("disk");
    let relieved = |_: usize, _: usize, _: usize| Some(&disk);
    let report = summarise(MatrixInput {
        name: None,
        measure: report.measure,
        repeats: 2,
        seed: 1,
        order: "random".into(),
        factors: report.factors,
        cells,
        relieved: &relieved,
        throng_version: "0".into(),
    });
    let verdicts: Vec<CellVerdict> = report.cells.iter().map(|cell| cell.verdict).collect();
    assert_eq!(
        verdicts,
        [CellVerdict::Served, CellVerdict::Served, CellVerdict::Invalid, CellVerdict::Skipped]
    );
    assert!(report.partial && report.confirmations.is_empty());
    assert_eq!(
        report.responses[0].effects[0].differences[0].pairs, 0,
        "no pair of cells is left for the files"
    );
    assert!(text::summary(&report).contains("no control groups"));
}

#[test]
fn runs_that_disagree_confirm_nothing() {
    let mut report = campus();
    let figures = report.cells[2].runs[1].figures.as_mut().unwrap();
    (figures.finding, figures.verdict) = (None, CellVerdict::Unattributed);
    let disk = Relief::of_resource("disk");
    let relieved =
        |factor: usize, from: usize, to: usize| (factor == 1 && from < to).then_some(&disk);
    let again = summarise(MatrixInput {
        name: None,
        measure: report.measure,
        repeats: 2,
        seed: 1,
        order: "random".into(),
        factors: report.factors,
        cells: report.cells,
        relieved: &relieved,
        throng_version: "0".into(),
    });
    assert_eq!((again.cells[2].agreeing_runs, again.cells[2].valid_runs), (1, 2));
    assert!(again.confirmations.is_empty());
    assert!(again.notes.iter().any(|note| note.contains("disagree")), "{:?}", again.notes);
}

#[test]
fn a_changed_environment_is_said() {
    let mut report = campus();
    report.cells[0].runs[0].environment.insert("kernel".into(), "6.2".into());
    let relieved = |_: usize, _: usize, _: usize| None;
    let again = summarise(MatrixInput {
        name: None,
        measure: report.measure,
        repeats: 2,
        seed: 1,
        order: "random".into(),
        factors: report.factors,
        cells: report.cells,
        relieved: &relieved,
        throng_version: "0".into(),
    });
    assert!(again.notes[0].contains("kernel was 6.1 and 6.2"), "{:?}", again.notes);
}

#[test]
fn markdown_has_the_answer_the_cells_and_what_was_tested() {
    let text = markdown::of_matrix(&campus());
    let begin =
        "### throng matrix: finished\n\n- **Answer:** 4 cells: 3 served well, 1 limited by disk; ";
    assert!(text.starts_with(begin), "{text}");
    for part in [
        "\n| cell | files | storage | served | received |",
        "\n| 3 | 30 | disk | 40.",
        "\n- **Limit:** cell 3: Disk loop0 is saturated (88 of 100)",
        "\n- **Tested:** confirmed: `disk_read` in cell 3 (",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    is_well_formed(&text);
    let proof = markdown::of_matrix(&super::proof_tests::confirmed());
    assert!(
        proof.starts_with("### throng prove: finished\n\n- **Answer:** confirmed: cpu "),
        "{proof}"
    );
    assert!(proof.contains("\n| four | confirmed | ×2.07 ("), "{proof}");
    is_well_formed(&proof);
    for name in crate::hostile_tests::HOSTILE {
        let mut report = campus();
        (report.headline, report.notes, report.partial) = (name.into(), vec![name.into()], true);
        report.factors[0].name = name.into();
        report.cells[2].runs[0].reason = Some(name.into());
        let text = markdown::of_matrix(&report);
        assert!(text.starts_with("### throng matrix: not finished\n\n- **Partial:** "), "{text}");
        is_well_formed(&text);
    }
}

#[test]
fn what_is_written_is_read_back() {
    let report = campus();
    let read: MatrixReport = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(read, report);
}

#[test]
fn the_schema_in_the_documentation_is_that_of_the_code() {
    let documented: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/matrix.schema.json")).unwrap();
    let code = json_schema();
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/matrix.schema.json");
        std::fs::write(file, format!("{code:#}\n")).unwrap();
    }
    assert_eq!(
        documented, code,
        "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-report schema"
    );
}
