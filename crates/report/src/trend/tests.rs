//! Trends of made-up runs.

use std::collections::BTreeMap;

use throng_analysis::comparison::Figure;
use throng_analysis::comparison::trend::TrendMark;
use throng_observation::LatencyBasis;
use throng_observation::untrusted::is_harmful;

use super::*;
use crate::compare::MeasuredRun;
use crate::{Quantity, html};

/// A search of the day `day` that found `users`.
fn run(day: i64, users: f64) -> MeasuredRun {
    let facts = [("cpu_model", "EPYC"), ("cores", "2"), ("kernel", "6.18.1")];
    let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    MeasuredRun {
        folder: format!("runs/{day}"),
        started_at_unix_us: 1_795_219_440_000_000 + day * 86_400_000_000,
        throng_version: "0.1.0".into(),
        is_search: true,
        machines: BTreeMap::from([("generator".to_owned(), facts)]),
        figures: BTreeMap::from([(Quantity::Capacity, Figure { value: users, parts: Vec::new() })]),
        ..MeasuredRun::default()
    }
}

fn of(users: &[f64]) -> Vec<MeasuredRun> {
    (0..).zip(users).map(|(day, users)| run(day, *users)).collect()
}

#[test]
fn a_drop_is_found_at_its_first_run_whatever_the_order_given() {
    let mut runs = of(&[40.0, 41.0, 40.0, 39.0, 40.0, 30.0, 31.0, 30.0]);
    runs.reverse();
    let report = summarise(runs, 0.05, "0.1.0");
    let capacity = &report.quantities[0];
    assert_eq!(capacity.values[0], Some(40.0), "the oldest first");
    assert_eq!(capacity.changes.len(), 1, "{capacity:#?}");
    let change = &capacity.changes[0];
    assert_eq!(
        (change.run, change.mark, change.verdict),
        (5, TrendMark::Change, ComparisonVerdict::Worse)
    );
    assert!(!report.newest_is_worse);
    assert!(report.headline.contains("1 change for the worse"), "{}", report.headline);
    let text = text::summary(&report);
    assert!(text.contains("30 !") && text.contains("run 6 (runs/5), 40 → 30"), "{text}");
}

#[test]
fn a_newest_run_that_is_away_is_said() {
    let report = summarise(of(&[40.0, 41.0, 40.0, 39.0, 40.0, 30.0]), 0.05, "0.1.0");
    assert!(
        report.newest_is_worse && report.headline.ends_with("worse than those before it"),
        "{}",
        report.headline
    );
    let better = summarise(of(&[40.0, 41.0, 40.0, 39.0, 40.0, 60.0]), 0.05, "0.1.0");
    assert!(!better.newest_is_worse, "{}", better.headline);
}

#[test]
fn runs_of_other_machines_loads_and_versions_are_marked() {
    let mut runs = of(&[40.0, 41.0, 40.0, 39.0, 80.0, 80.0, 40.0, 41.0]);
    for run in &mut runs[4..6] {
        run.machines.values_mut().for_each(|facts| drop(facts.insert("cores".into(), "4".into())));
    }
    runs[3].scenario = "[crowd]\nsize = 3\n".into();
    runs[2].unusable = Some("partial".into());
    runs[7].throng_version = "0.2.0".into();
    let report = summarise(runs, 0.05, "0.1.0");
    let excluded: Vec<bool> = report.runs.iter().map(|run| run.excluded.is_some()).collect();
    assert_eq!(excluded, [false, false, true, true, true, true, false, false]);
    assert!(report.quantities[0].changes.is_empty(), "{report:#?}");
    assert!(
        report.runs[4].excluded.as_deref().is_some_and(|why| why.contains("cpus")),
        "{report:#?}"
    );
    assert!(report.runs[7].remarks[0].contains("0.2.0 after 0.1.0"));
}

#[test]
fn latency_by_another_basis_than_the_newest_is_neither_judged_nor_a_reference() {
    use LatencyBasis::{PlaylistEdge, ProgramDateTime};
    let latency = Quantity::of_key("latency p95").unwrap();
    let trend = |bases: [LatencyBasis; 2]| {
        let runs = (0..10).map(|day| {
            let half = usize::from(day >= 5);
            let value = [10_000.0, 14_000.0][half] + 10.0 * (day % 3) as f64;
            MeasuredRun {
                is_search: false,
                latency_basis: Some(bases[half]),
                figures: BTreeMap::from([(latency, Figure { value, parts: Vec::new() })]),
                objectives: vec![("latency p95 < 25s".into(), latency, Some(true))],
                ..run(day, 1.0)
            }
        });
        summarise(runs.collect(), 0.05, "0.1.0")
    };
    let like = trend([ProgramDateTime; 2]);
    assert_eq!(like.quantities[0].changes.len(), 1, "{like:#?}");
    let unlike = trend([PlaylistEdge, ProgramDateTime]);
    let quantity = &unlike.quantities[0];
    assert!(quantity.changes.is_empty(), "{quantity:#?}");
    assert_eq!(quantity.marks[4], TrendMark::NotJudged, "{quantity:#?}");
    assert_eq!(quantity.marks[9], TrendMark::Usual, "{quantity:#?}");
    let says = "latency by the playlist's dates and this host's clock after to the end of the \
                playlist: ";
    assert!(unlike.runs[5].remarks[0].starts_with(says), "{:?}", unlike.runs[5]);
    assert!(like.runs.iter().all(|run| run.remarks.is_empty()), "{like:#?}");
}

#[test]
fn few_runs_and_none_make_a_report() {
    for (count, says) in [(0, "0 runs"), (1, "too few"), (3, "too few"), (6, "no change")] {
        let report = summarise(of(&vec![40.0; count]), 0.05, "0.1.0");
        assert!(report.headline.contains(says), "{}", report.headline);
        let page = html::trend::render(&report);
        assert!(!page.contains("NaN") && page.ends_with("</html>\n"));
    }
}

#[test]
fn the_page_has_a_chart_of_each_quantity_and_hostile_names_stay_text() {
    let hostile = "<script>alert(1)</script>\u{202e}\x1b[2J";
    let mut runs = of(&[40.0, 41.0, 40.0, 39.0, 40.0, 30.0]);
    for run in &mut runs {
        run.folder = hostile.into();
        run.headline = hostile.into();
    }
    runs[5].target = hostile.into();
    let report = summarise(runs, 0.05, "0.1.0");
    let (page, text) = (html::trend::render(&report), text::summary(&report));
    assert!(page.contains("<svg") && page.contains("outlier: run 6"), "{page}");
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
    assert!(!text.contains(|c| c != '\n' && is_harmful(c)), "{text}");
    let back: TrendReport = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(back.to_json(), report.to_json());
}

#[test]
fn the_schema_in_the_documentation_is_that_of_the_code() {
    let code = json_schema();
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trend.schema.json");
        std::fs::write(file, format!("{code:#}\n")).unwrap();
    }
    let file = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/trend.schema.json"
    ))
    .unwrap();
    let documented: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(
        documented, code,
        "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-report schema"
    );
}
