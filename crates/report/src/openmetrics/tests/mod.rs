//! What is exposed is valid, bounded, and the same as what is documented.

mod decoder;
mod fleet;
mod hosts;
mod names;
mod protobuf;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use throng_analysis::bottleneck::Bottleneck;
use throng_analysis::findings::{Finding, FindingRole};
use throng_observation::run::MARK_EVENT;

use super::*;
use crate::{example, summarise};

/// A run with these cohorts.
fn of_cohorts(cohorts: &[&str]) -> Metrics {
    let cohorts = cohorts.iter().map(|name| (*name).to_owned()).collect();
    let planned_duration_us = 60_000_000;
    Metrics::of_run(&RunInfo {
        throng_version: "1.2.3".into(),
        cohorts,
        planned_duration_us,
        ..RunInfo::default()
    })
}

/// The series of an answer by name and labels, as a strict reader has them.
fn read(text: &str) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let value = value.parse::<f64>().unwrap_or_else(|e| panic!("{line}: {e}"));
        is_a_series(series).unwrap_or_else(|| panic!("{line}"));
        assert!(all.insert(series.to_owned(), value).is_none(), "twice: {series}");
    }
    all
}

/// Name and labels in the grammar of OpenMetrics.
fn is_a_series(series: &str) -> Option<()> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let Some((name, mut rest)) = series.split_once('{') else {
        return is_name(series).then_some(());
    };
    is_name(name).then_some(())?;
    loop {
        let (label, after) = rest.split_once("=\"")?;
        is_name(label).then_some(())?;
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => matches!(chars.next()?.1, '\\' | '"' | 'n').then_some(())?,
                (_, c) => (!untrusted::is_harmful(c)).then_some(())?,
            }
        };
        match after.get(end + 1..)? {
            "}" => return Some(()),
            more => rest = more.strip_prefix(',')?,
        }
    }
}

fn text(metrics: &Metrics) -> String {
    metrics.exposition().text(TextFormat::OpenMetrics)
}

#[test]
fn the_two_formats_differ_in_their_heads_and_their_end() {
    let mut metrics = of_cohorts(&["viewers"]);
    metrics.take(&rows::series(0, 0, 90));
    metrics.take(&rows::closed(0));
    let exposition = metrics.exposition();
    let [open, plain] =
        [TextFormat::OpenMetrics, TextFormat::Prometheus].map(|format| exposition.text(format));
    assert_eq!(read(&open), read(&plain));
    assert_eq!(read(&open).len(), exposition.series());
    let original = "throng_track_packets_original";
    for (text, heads) in [
        (&open, [format!("# TYPE {original} counter\n"), "# TYPE throng info\n".to_owned()]),
        (
            &plain,
            [format!("# TYPE {original}_total counter\n"), "# TYPE throng_info gauge\n".to_owned()],
        ),
    ] {
        heads.iter().for_each(|head| assert!(text.contains(head), "{head}\n{text}"));
        let series = format!("\n{original}_total{{cohort=\"viewers\",kind=\"video\"}} 90\n");
        assert!(text.contains(&series), "{text}");
    }
    assert!(open.ends_with("\n# EOF\n") && !plain.contains("# EOF"), "{open}");
    assert!(open.contains("# UNIT throng_run_seconds seconds\n") && !plain.contains("# UNIT"));
}

#[test]
fn an_accept_header_chooses_the_format() {
    const PROTOBUF: &str =
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily";
    let [open, plain] = [TextFormat::OpenMetrics, TextFormat::Prometheus].map(Format::Text);
    for (accept, expect) in [
        ("", open),
        ("*/*", open),
        ("text/plain", plain),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", plain),
        (
            "application/openmetrics-text;version=1.0.0;q=0.6, text/plain;version=0.0.4;q=0.3, \
             */*;q=0.1",
            open,
        ),
        ("application/openmetrics-text; q=0.2, TEXT/PLAIN; q=0.4", plain),
        ("text/plain;q=x,;;,q=,", plain),
        // Other messages, and others of their forms.
        ("application/vnd.google.protobuf", open),
        ("application/vnd.google.protobuf;proto=a.B;encoding=delimited", open),
        ("application/*, text/plain;q=0.5", open),
    ] {
        assert_eq!(Format::accepted(accept), expect, "{accept}");
    }
    for (rest, expect) in [
        (";encoding=delimited", Format::Protobuf),
        ("; Encoding=\"delimited\" ,text/plain", Format::Protobuf),
        // What Prometheus asks for where it scrapes native histograms, and where it prefers text.
        (
            ";encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,\
             text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            Format::Protobuf,
        ),
        (
            ";encoding=delimited;q=0.2,application/openmetrics-text;version=1.0.0;q=0.6,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            open,
        ),
        (";encoding=delimited;q=0", open),
        (";encoding=delimited;q=0.3,text/plain", plain),
        (";encoding=text,text/plain;q=0.1", plain),
        (";encoding=compact-text", open),
    ] {
        let accept = format!("{PROTOBUF}{rest}");
        assert_eq!(Format::accepted(&accept), expect, "{accept}");
    }
}

#[test]
fn whatever_things_are_called_it_stays_a_value_of_a_label() {
    for name in crate::hostile_tests::HOSTILE {
        let mut metrics = of_cohorts(&[name]);
        metrics.set_subject(name, name);
        metrics.take(&rows::series(0, 0, 1));
        metrics.take(&rows::closed(0));
        rows::host(0, name).iter().for_each(|row| metrics.take_host(row));
        rows::threads(name, 1).iter().for_each(|row| metrics.take_host(row));
        let objective = rows::objective(&format!("video.loss < 1% {name}"));
        metrics.set_objectives(&[ObjectiveResult { met: true, ..objective }]);
        let text = text(&metrics);
        assert!(read(&text).len() > 20, "{text}");
    }
}

#[test]
fn no_crowd_and_no_server_has_more_series_than_are_allowed() {
    let names: Vec<String> = (0..1_000).map(|n| format!("cohort {n}")).collect();
    let mut metrics = of_cohorts(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for cohort in 0..1_000 {
        metrics.take(&rows::series(0, cohort, 1));
        metrics.take(&rows::playback(0, cohort));
        metrics.take(&rows::failed(cohort.into(), cohort, 100 + cohort));
    }
    metrics.take(&rows::closed(0));
    for host in 0..20 {
        rows::host(host, "server").iter().for_each(|row| metrics.take_host(row));
    }
    rows::threads("media", 3_000).iter().for_each(|row| metrics.take_host(row));
    let exposition = metrics.exposition();
    let all = read(&exposition.text(TextFormat::OpenMetrics));
    assert_eq!(all.len(), exposition.series());
    assert!(all.len() <= SERIES_MAX, "{}", all.len());
    let cohorts: BTreeSet<_> = all
        .keys()
        .filter_map(|series| series.split("cohort=\"").nth(1)?.split('"').next())
        .collect();
    assert_eq!(cohorts.len(), 7, "{cohorts:?}");
    assert!(cohorts.contains("other"));
    let failures = all.iter().filter(|(series, _)| series.starts_with("throng_failures_total"));
    assert_eq!(failures.map(|(_, count)| count).sum::<f64>(), 1_000.0, "none is lost");
    assert!(all["throng_exporter_left_out_series"] >= 0.0);
}

#[test]
fn sums_grow_figures_of_a_second_are_replaced_and_participants_count_once() {
    let mut metrics = of_cohorts(&["viewers"]);
    let at = |metrics: &Metrics, series: &str| read(&text(metrics)).get(series).copied();
    let sum = "throng_track_packets_original_total{cohort=\"viewers\",kind=\"video\"}";
    let tracks = "throng_tracks{cohort=\"viewers\",kind=\"video\"}";
    metrics.take(&rows::series(0, 0, 90));
    assert_eq!(at(&metrics, tracks), None, "the second is not whole");
    metrics.take(&rows::closed(0));
    assert_eq!((at(&metrics, sum), at(&metrics, tracks)), (Some(90.0), Some(1.0)));
    for _ in 0..3 {
        metrics.take(&rows::joined(7, 250_000));
        metrics.take(&rows::failed(8, 0, 503));
    }
    metrics.take(&rows::series(1, 0, 90));
    metrics.take(&rows::closed(1));
    metrics.take(&rows::closed(2));
    assert_eq!((at(&metrics, sum), at(&metrics, tracks)), (Some(180.0), None));
    let join = |ending: &str, bound: &str| {
        let labels = "cohort=\"viewers\",phase=\"first_frame\"";
        at(&metrics, &format!("throng_join_seconds_{ending}{{{labels}{bound}}}"))
    };
    assert_eq!((join("count", ""), join("sum", "")), (Some(1.0), Some(0.25)));
    assert_eq!(join("bucket", ",le=\"0.2\""), Some(0.0));
    assert_eq!(join("bucket", ",le=\"0.5\""), Some(1.0));
    assert_eq!(join("bucket", ",le=\"+Inf\""), Some(1.0));
    let failed = "throng_failures_total{cohort=\"viewers\",reason=\"http_503\"}";
    assert_eq!(at(&metrics, failed), Some(1.0));
    assert_eq!(at(&metrics, "throng_run_seconds"), Some(3.0));
}

#[test]
fn what_a_process_has_counts_once_however_late_its_rows_are() {
    let mut metrics = of_cohorts(&["viewers"]);
    let resident =
        |metrics: &Metrics| read(&text(metrics)).get("throng_generator_resident_bytes").copied();
    metrics.take(&rows::process(0, 0, 100));
    metrics.take(&rows::process(0, 1, 10));
    metrics.take(&rows::closed(0));
    assert_eq!(resident(&metrics), Some(110.0));
    // The row of worker 1 is late, and comes with that of the next second.
    metrics.take(&rows::process(1, 0, 101));
    metrics.take(&rows::closed(1));
    assert_eq!(resident(&metrics), Some(111.0));
    for (second, worker, bytes) in [(1, 1, 11), (2, 0, 102), (2, 1, 12)] {
        metrics.take(&rows::process(second, worker, bytes));
    }
    metrics.take(&rows::closed(2));
    assert_eq!(resident(&metrics), Some(114.0));
    // Worker 1 is lost.
    metrics.take(&rows::process(9, 0, 103));
    metrics.take(&rows::closed(9));
    assert_eq!(resident(&metrics), Some(103.0));
    let files = "throng_generator_open_files";
    assert_eq!(read(&text(&metrics))[files], 7.0);
}

#[test]
fn requests_are_counted_by_what_came_to_those_of_their_key() {
    let mut metrics = of_cohorts(&["viewers"]);
    for (path, requests) in [("/a", 2), ("/b", 1), ("/a", 5)] {
        metrics.take(&rows::requests(path, requests));
    }
    assert_eq!(read(&text(&metrics))["throng_http_requests_total{outcome=\"404\"}"], 6.0);
}

#[test]
fn objectives_have_the_unit_of_their_metric_and_come_to_a_verdict() {
    let mut metrics = of_cohorts(&["viewers"]);
    let judged = |text: &str, measured: f64, result: &str| ObjectiveResult {
        measured: Some(measured),
        result: result.into(),
        met: result == "met",
        ..rows::objective(text)
    };
    metrics.set_objectives(&[
        judged("connect p99 < 3s", 250.0, "met"),
        judged("fps min > 0.9 of source", 0.5, "missed"),
    ]);
    let all = read(&text(&metrics));
    assert_eq!(all["throng_objective_connect_seconds{objective=\"connect p99 < 3s\"}"], 0.25);
    let of_source = "{objective=\"fps min > 0.9 of source\"}";
    assert_eq!(all[&format!("throng_objective_video_fps_of_source_ratio{of_source}")], 0.5);
    assert_eq!(all[&format!("throng_objective_met{of_source}")], 0.0);
    let verdict = |of: &str| all[&format!("throng_verdict{{verdict=\"{of}\"}}")];
    assert_eq!((verdict("met"), verdict("missed"), verdict("not_measured")), (0.0, 1.0, 0.0));
}

#[test]
fn a_search_shows_what_it_holds_and_a_capacity_once_there_is_one() {
    let mut metrics = of_cohorts(&["viewers"]);
    let progress = Progress {
        purpose: Some(Purpose::Bisect),
        users: 27,
        judged_s: (4, 25),
        is_settling: false,
        passing: Some(25),
        failing: None,
        repeat: (1, 1),
        found: Vec::new(),
        values: Vec::new(),
        end: None,
    };
    metrics.set_search(progress.clone(), false);
    metrics.take(&Row::Hold(Box::default()));
    let begun = read(&text(&metrics));
    for outcome in ["passed", "failed", "undecided"] {
        let holds = format!("throng_search_holds_total{{outcome=\"{outcome}\"}}");
        assert_eq!(begun[&holds], 0.0, "the first one that ends is one more");
    }
    for number in [0, 0, 1] {
        metrics.take(&rows::ended_hold(number));
    }
    let all = read(&text(&metrics));
    assert_eq!((all["throng_search_load"], all["throng_search_passing_load"]), (27.0, 25.0));
    assert_eq!(all["throng_search_phase{phase=\"bisect\"}"], 1.0);
    assert_eq!(all["throng_search_phase{phase=\"pause\"}"], 0.0);
    assert_eq!(all["throng_search_holds_total{outcome=\"passed\"}"], 2.0);
    for absent in ["throng_search_failing_load", "throng_capacity"] {
        assert!(!all.contains_key(absent), "{absent}");
    }
    let found = vec![(20, 22)];
    for (end, found, expect) in [
        (Some(End::Found), vec![], Some(25.0)),
        (Some(End::Ceiling), vec![], Some(25.0)),
        (Some(End::NotSustained), found.clone(), None),
        (Some(End::NeverPasses), vec![], None),
        (Some(End::GeneratorLimited), found.clone(), Some(20.0)),
        (Some(End::TooNoisy), vec![], None),
        // The time is used up, or the user has enough.
        (None, vec![], None),
        (None, found, Some(20.0)),
    ] {
        metrics.set_search(Progress { purpose: None, end, found, ..progress.clone() }, true);
        let all = read(&text(&metrics));
        assert_eq!(all.get("throng_capacity").copied(), expect, "{:?}", metrics.search);
        assert_eq!(all["throng_search_phase{phase=\"over\"}"], 1.0);
        assert_eq!(all["throng_search_phase{phase=\"pause\"}"], 0.0);
    }
}

#[test]
fn marks_are_counted_from_zero_and_other_moments_are_not() {
    let mut metrics = of_cohorts(&["viewers"]);
    let marks = |metrics: &Metrics| read(&text(metrics))["throng_marks_total"];
    assert_eq!(marks(&metrics), 0.0);
    for kind in [MARK_EVENT, "abort", MARK_EVENT] {
        metrics.take(&rows::moment(kind));
    }
    assert_eq!(marks(&metrics), 2.0);
}

#[test]
fn what_limited_the_server_is_there_once_the_run_is_over() {
    let mut metrics = of_cohorts(&["viewers"]);
    assert!(!text(&metrics).contains("throng_finding"));
    let other = Finding {
        finding: "cpu_quota".into(),
        title: String::new(),
        score: 61.0,
        resource: String::new(),
        thread: None,
        setting: None,
        role: FindingRole::Explanation,
        evidence: Vec::new(),
        series: Vec::new(),
        change: String::new(),
        prediction: None,
    };
    let bottleneck = Bottleneck {
        finding: Some("one_thread_full".into()),
        score: Some(96.0),
        other_findings: vec![other],
        ..Bottleneck::default()
    };
    let summary = summarise(&example::searched(), &[], Duration::ZERO);
    metrics.end(&Summary { bottleneck: Some(bottleneck), ..summary });
    let all = read(&text(&metrics));
    assert_eq!(all["throng_finding{finding=\"one_thread_full\"}"], 96.0);
    assert_eq!(all["throng_finding{finding=\"cpu_quota\"}"], 61.0);
}
