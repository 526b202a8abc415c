//! Comparisons of made-up runs: what was planted is found, and what cannot be compared is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_analysis::comparison::{Basis, ComparisonVerdict, Figure};
use throng_observation::run::{Ending, RunData};
use throng_observation::untrusted::is_harmful;
use throng_observation::{Distribution, Failure, FailureReason, Outcome, Phase, RunPlan, RunTime};

use super::*;
use crate::junit::TestOutcome;
use crate::markdown::tests::is_well_formed;
use crate::playback::tests::players;
use crate::{Quantity, example, html, markdown, planned_objectives, summarise as summary_of};

const SCENARIO: &str = "objectives = [\"video.loss < 1%\", \"video.delay p95 < 100ms\"]\n[target]\n\
                        url = \"ws://media.example:3333/app/stream\"\n[crowd]\nsize = 100\n\
                        [run]\nduration = \"60s\"\nwarm_up = \"10s\"\n";

fn machine() -> BTreeMap<String, String> {
    let facts = [
        ("cpu_model", "EPYC"),
        ("cores", "2"),
        ("kernel", "6.18.1"),
        ("net.core.rmem_max", "212992"),
    ];
    facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// 100 viewers for a minute on a healthy server.
fn good() -> RunData {
    let mut run = example::healthy(100, 60);
    example::plan(&mut run, SCENARIO);
    run.info.generator_host = machine();
    run
}

/// The same with frames 60 ms late, and a fifth of the user-seconds bad.
fn bad() -> RunData {
    let mut run = good();
    for row in &mut run.series {
        let mut late = Distribution::new();
        (0..100).for_each(|n| late.record(60_000 + n * 100));
        row.relative_delay_us = late;
    }
    run.experience.iter_mut().for_each(|row| row.bad = row.users / 5);
    run
}

pub(crate) fn measured(folder: &str, run: &RunData) -> MeasuredRun {
    let warm_up = run.info.plan.as_ref().map_or(Duration::ZERO, RunPlan::warm_up);
    let summary = summary_of(run, &planned_objectives(run), warm_up);
    MeasuredRun::of(folder, run, &summary)
}

fn compare(base: &[RunData], new: &[RunData]) -> CompareReport {
    compare_with(base, new, CompareOptions::default())
}

fn compare_with(base: &[RunData], new: &[RunData], options: CompareOptions) -> CompareReport {
    let side = |name: &str, runs: &[RunData]| -> Vec<MeasuredRun> {
        runs.iter()
            .enumerate()
            .map(|(index, run)| measured(&format!("{name}-{index}"), run))
            .collect()
    };
    summarise(&side("base", base), &side("new", new), options, "0.1.0")
}

fn row<'a>(report: &'a CompareReport, key: &str) -> &'a ComparedQuantity {
    report
        .quantities
        .iter()
        .find(|row| row.key == key)
        .unwrap_or_else(|| panic!("{key}: {report:#?}"))
}

fn verdict(report: &CompareReport, key: &str) -> ComparisonVerdict {
    row(report, key).verdict
}

#[test]
fn a_run_is_the_same_as_itself() {
    let report = compare(&[good()], &[good()]);
    assert_eq!(report.outcome, CompareOutcome::Same, "{report:#?}");
    for key in ["served_ratio", "video.loss", "video.delay p95", "failed", "received_bps"] {
        assert_eq!(verdict(&report, key), ComparisonVerdict::Same, "{key}");
        assert_eq!(row(&report, key).interval_from, Basis::Parts, "{key}");
    }
    for key in ["connect p95", "first_frame p95"] {
        let row = row(&report, key);
        assert_eq!((row.verdict, row.interval), (ComparisonVerdict::NotDecided, None), "{key}");
        assert!(row.note.as_deref().is_some_and(|note| note.contains("one sample")), "{row:?}");
    }
    assert!(report.method.iter().any(|line| line.contains("too narrow")), "{:?}", report.method);
    assert_eq!(report.objectives.len(), 2);
    assert_eq!((report.objectives[0].base_met, report.objectives[0].new_met), ([1, 1], [1, 1]));
}

/// The run of [`good`] on a server with a key frame each second, the first of them `phase_ms` after
/// the first join: every viewer waits for the next one. The joins are 100 ms apart, so that they
/// meet ten phases of it, a hundred of them as well as ten.
fn with_key_frames(phase_ms: i64) -> RunData {
    let mut run = good();
    for row in &mut run.participants {
        let since_key_us = (row.intended_at.0 - phase_ms * 1_000).rem_euclid(1_000_000);
        row.reached
            .insert(Phase::FirstFrame, RunTime(row.intended_at.0 + 1_000_000 - since_key_us));
    }
    run
}

#[test]
fn equal_runs_that_differ_by_their_phase_are_neither_better_nor_worse() {
    let runs = [3, 28, 51, 74, 96].map(with_key_frames);
    let alone: Vec<MeasuredRun> = runs.iter().map(|run| measured("run", run)).collect();
    for (base, new) in (0..5).flat_map(|base| (0..5).map(move |new| (base, new))) {
        let report =
            summarise(&alone[base..=base], &alone[new..=new], CompareOptions::default(), "0.1.0");
        let differs = |row: &&ComparedQuantity| {
            matches!(row.verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse)
        };
        let differing: Vec<&ComparedQuantity> = report.quantities.iter().filter(differs).collect();
        assert!(differing.is_empty(), "{base} and {new}: {differing:#?}");
        assert_eq!(report.outcome, CompareOutcome::Same, "{base} and {new}");
    }
    // Several runs a side: how much they differ by their phase is known, and later frames are
    // found.
    let mut late = runs.clone();
    for row in late.iter_mut().flat_map(|run| &mut run.participants) {
        if let Some(at) = row.reached.get_mut(&Phase::FirstFrame) {
            at.0 += 2_000_000;
        }
    }
    assert_eq!(verdict(&compare(&runs, &late), "first_frame p95"), ComparisonVerdict::Worse);
    assert_eq!(
        verdict(&compare(&runs[..1], &late[..1]), "first_frame p95"),
        ComparisonVerdict::NotDecided
    );
}

#[test]
fn some_failures_of_one_run_hang_on_its_joins() {
    let mut some = good();
    for row in some.participants.iter_mut().filter(|row| row.participant.0 % 10 == 3) {
        row.outcome =
            Some(Outcome::Failed(Failure::new(FailureReason::HttpStatus(503), "answered 503")));
    }
    for (base, new) in [(good(), some.clone()), (some, good())] {
        let report = compare(std::slice::from_ref(&base), std::slice::from_ref(&new));
        assert_eq!(verdict(&report, "failed"), ComparisonVerdict::NotDecided, "{report:#?}");
        assert_eq!(row(&report, "failed").interval, None);
    }
}

#[test]
fn what_became_worse_is_named_in_its_direction_and_the_reverse_is_better() {
    let report = compare(&[good()], &[bad()]);
    assert_eq!(report.outcome, CompareOutcome::Worse);
    assert!(
        report.headline.starts_with("Worse: user-seconds served well −20.0 points"),
        "{}",
        report.headline
    );
    for key in ["served_ratio", "video.delay p50", "video.delay p95"] {
        assert_eq!(verdict(&report, key), ComparisonVerdict::Worse, "{key}");
    }
    assert_eq!(verdict(&report, "video.loss"), ComparisonVerdict::Same);
    let reverse = compare(&[bad()], &[good()]);
    assert_eq!(reverse.outcome, CompareOutcome::Better);
    assert_eq!(verdict(&reverse, "video.delay p95"), ComparisonVerdict::Better);
    let text = text::summary(&report);
    for part in
        ["WORSE", "95 % interval", "video.delay p95 < 100ms  1 of 1", "base  base-0", "new   new-0"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_meets_its_objective_in_all_new_runs_needs_no_decision() {
    let with = |objective: &str| {
        let mut run = example::healthy(100, 15);
        let scenario = SCENARIO.replace("video.loss < 1%", objective);
        example::plan(&mut run, scenario.replace("10s", "1s").replace("60s", "15s"));
        run.info.generator_host = machine();
        run
    };
    // Fourteen seconds are too few for parts, so nothing of them is decided: the service neither.
    let report = compare(&[with("connect p99 < 3s")], &[with("connect p99 < 3s")]);
    assert_eq!(report.outcome, CompareOutcome::NotDecided);
    assert_eq!(report.headline, "Not decided: user-seconds served well");
    let report = compare(&[with("connect p99 < 1ms")], &[with("connect p99 < 1ms")]);
    assert_eq!(report.headline, "Not decided: user-seconds served well, connect p99");
    let report = compare(&[with("video.delay p50 < 1ms")], &[with("video.delay p50 < 1ms")]);
    assert_eq!(report.headline, "Not decided: user-seconds served well, video.delay p50");
}

#[test]
fn several_runs_a_side_are_compared_by_how_they_differ() {
    let report = compare(&[good(), good()], &[good(), good(), good()]);
    assert!(report.quantities.iter().all(|row| row.interval_from == Basis::Runs));
    assert_eq!(report.outcome, CompareOutcome::Same);
    assert!(report.method.iter().any(|line| line.contains("Welch")));
    let mixed = compare(&[good(), good()], &[bad()]);
    assert!(mixed.quantities.iter().all(|row| row.interval_from == Basis::RunsOfOneSide));
}

#[test]
fn an_outage_to_the_end_lowers_what_was_received() {
    let received = |until: i64| {
        let mut run = good();
        run.series.retain(|row| row.second < until);
        measured("run", &run).figures[&Quantity::Received].value
    };
    let (whole, cut) = (received(60), received(20));
    assert!(whole > 0.0 && (cut / whole - 0.2).abs() < 1e-9, "{cut} of {whole}");
}

/// Viewers of a live stream for 30 s, so far behind it by the dates of its playlist, or to its end
/// where it has none.
fn live(is_dated: bool, behind_us: u64) -> RunData {
    let mut run = players(0);
    let scenario = "objectives = [\"latency p95 < 25s\"]\n[target]\n\
                    url = \"http://127.0.0.1:8080/live.m3u8\"\n[crowd]\nsize = 100\n\
                    [run]\nduration = \"30s\"\nwarm_up = \"5s\"\n";
    example::plan(&mut run, scenario);
    run.info.generator_host = machine();
    for row in &mut run.playback {
        row.dates_ahead = Some(0);
        (0..100).for_each(|_| row.edge_latency_us.record(behind_us));
        (0..100).filter(|_| is_dated).for_each(|_| row.latency_us.record(behind_us));
    }
    run
}

#[test]
fn latency_by_unlike_bases_is_not_decided_and_both_are_said() {
    let three = |is_dated: bool, behind_s: u64| {
        [0, 500_000, 1_000_000].map(|more_us| live(is_dated, behind_s * 1_000_000 + more_us))
    };
    let like = compare(&three(true, 12), &three(true, 22));
    assert_eq!(verdict(&like, "latency p95"), ComparisonVerdict::Worse, "{like:#?}");
    let [first, second, _] = three(true, 12);
    let mixed = [first, second, live(false, 12_000_000)];
    for (base, new) in [
        (three(true, 12), three(false, 22)),
        (three(false, 22), three(true, 12)),
        (mixed, three(true, 22)),
    ] {
        let report = compare(&base, &new);
        let row = row(&report, "latency p95");
        assert_eq!(row.verdict, ComparisonVerdict::NotDecided, "{row:#?}");
        assert_eq!((row.difference, row.interval), (None, None));
        assert_eq!(report.objectives[0].verdict, ComparisonVerdict::NotDecided);
        let (text, page) = (text::summary(&report), html::compare::render(&report));
        for words in [" measured it ", "by the playlist", "to the end of the playlist"] {
            assert!(text.contains(words) && page.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn other_hardware_is_refused_unless_it_is_allowed() {
    let mut other = good();
    other.info.generator_host.insert("cpu_model".into(), "Xeon".into());
    other.info.generator_host.insert("net.core.rmem_max".into(), "8388608".into());
    let refused = compare(&[good()], std::slice::from_ref(&other));
    assert_eq!(refused.outcome, CompareOutcome::NotComparable);
    assert!(
        refused.headline.contains("cpu_model of generator is EPYC and Xeon"),
        "{}",
        refused.headline
    );
    assert_eq!((refused.machine_differences.len(), refused.quantities.len()), (2, 0));
    let allowed = CompareOptions { allow_different_machines: true, ..CompareOptions::default() };
    let flagged = compare_with(&[good()], &[other], allowed);
    assert_eq!(flagged.outcome, CompareOutcome::Same);
    assert!(
        flagged.notes.iter().any(|note| note.contains("machines differ (cpu_model)")),
        "{:?}",
        flagged.notes
    );
}

#[test]
fn runs_that_say_nothing_decide_nothing() {
    let mut partial = good();
    partial.ending = Ending::Interrupted;
    let mut limited = example::limited();
    example::plan(&mut limited, SCENARIO);
    for (run, why) in
        [(partial, "partial: the run was ended early"), (limited, "the generator was the limit")]
    {
        let report = compare(&[good()], std::slice::from_ref(&run));
        assert_eq!(report.outcome, CompareOutcome::NotComparable);
        assert!(report.headline.contains(why), "{}", report.headline);
        // Next to a good run it does not count.
        let report = compare(&[good()], &[run, good()]);
        assert_eq!((report.outcome, report.new.usable_runs), (CompareOutcome::Same, 1));
        assert!(report.new.runs[0].excluded.is_some());
    }
    assert_eq!(compare(&[], &[good()]).outcome, CompareOutcome::NotComparable);
    assert_eq!(compare(&[], &[]).outcome, CompareOutcome::NotComparable);
    assert_eq!(compare(&[good()], &[RunData::default()]).outcome, CompareOutcome::NotComparable);
}

#[test]
fn a_server_that_takes_nobody_is_worse_and_not_incomparable() {
    let mut refusing = example::all_failed();
    example::plan(&mut refusing, SCENARIO);
    let report = compare(&[good()], &[refusing]);
    assert_eq!(report.outcome, CompareOutcome::Worse, "{report:#?}");
    assert_eq!(verdict(&report, "failed"), ComparisonVerdict::Worse);
    assert!(
        report.not_compared.iter().any(|line| line.starts_with("video.loss")),
        "{:?}",
        report.not_compared
    );
    // "Slower than any" has no mean.
    assert_eq!(verdict(&report, "connect p95"), ComparisonVerdict::NotDecided);
}

#[test]
fn another_load_is_flagged_with_its_keys() {
    let mut other = good();
    other.info.scenario = SCENARIO.replace("size = 100", "size = 50");
    let report = compare(&[good()], &[other]);
    assert!(
        report.notes.iter().any(|note| note.contains("different loads: crowd.size")),
        "{:?}",
        report.notes
    );
    assert_eq!(report.scenario_differences[0].new.as_deref(), Some("50"));
    let file = |hash: &str| {
        let mut run = good();
        run.info.media_files.insert("talk.ivf".into(), hash.into());
        run
    };
    let report = compare(&[file("aa")], &[file("bb")]);
    assert_eq!(report.scenario_differences[0].key, "media talk.ivf");
}

fn search(users: f64, repeats: &[f64]) -> MeasuredRun {
    MeasuredRun {
        is_search: true,
        machines: BTreeMap::from([("generator".to_owned(), machine())]),
        scenario: SCENARIO.into(),
        capacity_step: 1,
        figures: BTreeMap::from([(
            Quantity::Capacity,
            Figure { value: users, parts: repeats.to_vec() },
        )]),
        ..MeasuredRun::default()
    }
}

#[test]
fn runs_of_which_not_all_watched_the_server_say_so() {
    let watched = || {
        let mut run = search(40.0, &[40.0]);
        run.machines.insert("server".into(), machine());
        run
    };
    let note = |base: MeasuredRun, new: MeasuredRun| {
        summarise(&[base], &[new], CompareOptions::default(), "0.1.0")
            .notes
            .into_iter()
            .find(|note| note.contains("watched the server"))
    };
    let unwatched = || search(40.0, &[40.0]);
    assert_eq!(note(watched(), watched()), None);
    assert!(note(watched(), unwatched()).is_some_and(|note| note.starts_with("only some runs")));
    assert!(note(unwatched(), unwatched()).is_some_and(|note| note.starts_with("no run")));
}

#[test]
fn searches_are_compared_by_their_capacity_and_its_repeats() {
    let of = |base: &[MeasuredRun], new: &[MeasuredRun]| {
        summarise(base, new, CompareOptions::default(), "0.1.0")
    };
    let once = of(&[search(40.0, &[40.0])], &[search(30.0, &[30.0])]);
    assert_eq!(once.outcome, CompareOutcome::NotDecided);
    assert!(once.quantities[0].note.as_deref().is_some_and(|note| note.contains("repeats")));
    let repeated = of(&[search(40.0, &[40.0, 41.0, 40.0])], &[search(30.0, &[30.0, 29.0, 30.0])]);
    assert_eq!(repeated.outcome, CompareOutcome::Worse);
    assert_eq!(repeated.quantities[0].difference, Some(-10.0));
    let three = |users: [f64; 3]| users.map(|users| search(users, &[])).to_vec();
    assert_eq!(
        of(&three([40.0, 41.0, 40.0]), &three([41.0, 40.0, 40.0])).outcome,
        CompareOutcome::Same
    );
    assert_eq!(
        of(&three([40.0, 41.0, 40.0]), &three([50.0, 51.0, 50.0])).outcome,
        CompareOutcome::Better
    );
    let kinds = of(&[search(40.0, &[])], &[measured("plain", &good())]);
    assert_eq!(kinds.outcome, CompareOutcome::NotComparable);
    // The search of an example, from its rows.
    let report = compare(&[example::searched()], &[example::searched()]);
    assert_eq!(
        (report.quantities.len(), report.quantities[0].base),
        (1, Some(40.0)),
        "{report:#?}"
    );
}

#[test]
fn a_capacity_that_is_only_a_lower_bound_decides_one_way_only() {
    let open = |users: f64| MeasuredRun { is_lower_bound: true, ..search(users, &[]) };
    let sides = |base: [MeasuredRun; 3], new: [MeasuredRun; 3]| {
        summarise(&base, &new, CompareOptions::default(), "0.1.0").outcome
    };
    let closed = |users: f64| [0.0, 1.0, 0.0].map(|by| search(users + by, &[]));
    let opened = |users: f64| [0.0, 1.0, 0.0].map(|by| open(users + by));
    assert_eq!(sides(closed(40.0), opened(60.0)), CompareOutcome::Better);
    assert_eq!(sides(closed(60.0), opened(40.0)), CompareOutcome::NotDecided);
    assert_eq!(sides(opened(60.0), closed(40.0)), CompareOutcome::Worse);
    assert_eq!(sides(opened(40.0), opened(40.0)), CompareOutcome::NotDecided);
}

#[test]
fn a_limit_that_moved_is_said() {
    let limited = |key: &str, title: &str| MeasuredRun {
        limit: Some((key.to_owned(), title.to_owned())),
        ..search(40.0, &[40.0, 41.0])
    };
    let of = |base: MeasuredRun, new: MeasuredRun| {
        summarise(&[base], &[new], CompareOptions::default(), "0.1.0")
    };
    let moved = of(
        limited("single_threaded", "one thread is full"),
        limited("line_rate", "the line is full"),
    );
    assert_eq!(
        moved.limits.statement.as_deref(),
        Some("the limit moved from “one thread is full” to “the line is full”")
    );
    assert!(moved.headline.ends_with("“the line is full”"), "{}", moved.headline);
    let gone = of(limited("line_rate", "the line is full"), search(40.0, &[40.0, 41.0]));
    assert_eq!((gone.limits.base.as_deref(), gone.limits.new), (Some("line_rate"), None));
    assert_eq!(of(search(1.0, &[]), search(1.0, &[])).limits.statement, None);
}

#[test]
fn a_case_of_junit_is_named_by_its_objective() {
    let suite = suite(&compare(&[good()], &[bad()]));
    let outcome =
        |name: &str| suite.cases.iter().find(|case| case.name == name).map(|case| &case.outcome);
    assert!(
        matches!(outcome("video.delay p95 < 100ms"), Some(TestOutcome::Failed(why)) if why.starts_with("worse: +"))
    );
    assert_eq!(outcome("video.loss < 1%"), Some(&TestOutcome::Passed));
    assert!(matches!(outcome("served_ratio"), Some(TestOutcome::Failed(_))));
    assert_eq!(outcome("comparable"), Some(&TestOutcome::Passed));
    let suite = super::suite(&compare(&[good()], &[]));
    assert!(
        matches!(suite.cases.as_slice(), [one] if matches!(one.outcome, TestOutcome::Error(_)))
    );
}

#[test]
fn json_and_page_have_it_all_and_hostile_names_stay_text() {
    let report = compare(&[good()], &[bad()]);
    let back: CompareReport = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(back.to_json(), report.to_json());
    let page = html::compare::render(&report);
    for part in [
        "<h1>Worse: ",
        "class=\"forest worse\"",
        ">Over time</a></h2>",
        "<span class=\"key dashed c6\">base: base-0</span>",
        "<span class=\"key c1\">new: new-0</span>",
        ">Objectives</a></h2>",
        "video.delay p95 &lt; 100ms",
        "too narrow",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("NaN") && !page.contains("http://"));
    let hostile = "</title><script>alert(1)</script>\u{202e}\x1b[2J";
    let mut run = bad();
    run.info.target = hostile.into();
    run.info.throng_version = hostile.into();
    run.info.scenario = hostile.into();
    run.info.generator_host = BTreeMap::from([("cpu_model".into(), hostile.into())]);
    run.info.media_files = BTreeMap::from([(hostile.into(), hostile.into())]);
    let report = summarise(
        &[measured(hostile, &good())],
        &[measured(hostile, &run)],
        CompareOptions { allow_different_machines: true, ..CompareOptions::default() },
        "0.1.0",
    );
    let (page, text) = (html::compare::render(&report), text::summary(&report));
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"));
    assert!(!text.contains(|c| c != '\n' && is_harmful(c)), "{text}");
    assert!(!report.to_json().contains(|c| c != '\n' && is_harmful(c)));
    is_well_formed(&markdown::of_comparison(&report));
}

#[test]
fn markdown_says_first_what_cannot_be_compared() {
    let text = markdown::of_comparison(&compare(&[good()], &[bad()]));
    assert!(text.starts_with("### throng compare: worse\n\n- **Answer:** Worse: "), "{text}");
    for part in [
        "\n|  | base | new | difference | 95 % interval | margin | verdict |\n|---|",
        "| WORSE |\n",
        "\n| objective | base met | new met | verdict |\n|---|---|---|---|\n| `video.loss` &lt; 1% | 1 of 1 |",
        "\n- **Base:** `base-0`: 100 viewers played",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    is_well_formed(&text);
    let mut partial = good();
    partial.ending = Ending::Interrupted;
    let text = markdown::of_comparison(&compare(&[good()], &[partial]));
    let begin = "### throng compare: not comparable\n\n- **Not comparable:** ";
    assert!(text.starts_with(begin) && text.contains("does not count"), "{text}");
    is_well_formed(&text);
}

#[test]
fn the_schema_in_the_documentation_is_that_of_the_code() {
    let code = json_schema();
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compare.schema.json");
        std::fs::write(file, format!("{code:#}\n")).unwrap();
    }
    let file = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/compare.schema.json"
    ))
    .unwrap();
    let documented: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(
        documented, code,
        "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-report schema"
    );
}
