//! Names: those of the catalogues are valid and one each, the documentation has them all, and
//! dashboards and rules ask for no other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use throng_observation::host::catalogue;

use crate::openmetrics::declared;
use crate::openmetrics::family::{Family, Kind};
use crate::openmetrics::markdown;
use crate::openmetrics::page::sections;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn all() -> Vec<Family> {
    let declared = declared::all().map(Family::of);
    declared.chain(sections().into_iter().flat_map(|section| section.families)).collect()
}

/// The names of all series.
fn series() -> BTreeSet<String> {
    let names = all().into_iter().flat_map(|Family { name, kind, .. }| {
        kind.endings().iter().map(move |ending| format!("{name}{ending}"))
    });
    names.collect()
}

#[test]
fn every_family_has_a_name_of_its_own_its_unit_and_a_meaning() {
    const RESERVED: [&str; 6] = ["_total", "_bucket", "_count", "_sum", "_created", "_info"];
    let mut names = BTreeSet::new();
    for Family { name, kind, unit, help } in all() {
        assert!(names.insert(name.clone()), "twice: {name}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.starts_with("throng") && name.chars().all(is_plain), "{name}");
        assert!(!RESERVED.iter().any(|ending| name.ends_with(ending)), "{name}");
        assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name}: {unit}");
        assert!(["", "seconds", "bytes", "ratio"].contains(&unit), "{name}: {unit}");
        assert!(!help.is_empty() && !help.contains('\n'), "{name}: {help}");
        assert!(unit != "ratio" || kind == Kind::Gauge, "{name}");
        assert!(!name.contains("_us") || name.contains("_use"), "{name} is in microseconds");
    }
    let count: usize = all().iter().map(|family| family.kind.endings().len()).sum();
    assert_eq!(series().len(), count, "two families have a series of the same name");
    for name in [
        "throng_track_freezes_total",
        "throng_track_freeze_seconds_total",
        "throng_track_packets_lost",
        "throng_chat_received_bytes_total",
        "throng_player_stalls_total",
        "throng_sent_packets_total",
        "throng_host_cpu_busy_seconds_total",
        "throng_host_context_switches_total",
        "throng_host_cgroup_throttled_periods_ratio",
        "throng_host_disk_read_await_seconds",
        "throng_host_nic_tx_bytes_total",
        "throng_objective_stall_ratio",
    ] {
        assert!(series().contains(name), "{name}");
    }
}

#[test]
fn the_tables_of_the_docs_equal_the_catalogues() {
    const HEADING: &str = "\n## All metrics\n";
    let file = root().join("docs/metrics.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (prose, _) = page.split_once(HEADING).expect("the heading of the tables");
    let expected = format!("{prose}{HEADING}{}", markdown());
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == expected,
        "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-report openmetrics"
    );
}

/// The files that ask for metrics.
fn files() -> Vec<PathBuf> {
    let mut files = vec![root().join("docs/metrics.md")];
    for folder in ["prometheus", "grafana/dashboards"] {
        let entries = std::fs::read_dir(root().join("deploy").join(folder)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files
}

/// The words of a text that begin as metrics do.
fn asked(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("throng_"))
}

#[test]
fn dashboards_rules_and_docs_ask_for_metrics_that_there_are() {
    let (known, mut all) = (series(), BTreeSet::new());
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in asked(&text) {
            // The tables name a histogram as a whole.
            let is_known = known.contains(word) || known.contains(&format!("{word}_bucket"));
            assert!(is_known, "{}: {word}", file.display());
            all.insert(word.to_owned());
        }
    }
    assert!(all.len() > 100, "{all:?}");
}

#[test]
fn rules_ask_for_the_limits_of_metrics_that_there_are() {
    let mut count = 0;
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap().replace("\\\"", "\"");
        for values in text.split("metric=~\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            for metric in values.split('|') {
                let name = metric.replace('\\', "");
                assert!(catalogue::find(&name).is_some(), "{}: {name}", file.display());
                count += 1;
            }
        }
    }
    assert!(count > 5, "{count}");
}

/// What is wrong with a dashboard.
fn problem(board: &serde_json::Value, known: &BTreeSet<String>) -> Option<String> {
    if !board["uid"].is_string() || !board["title"].is_string() {
        return Some("no uid or title".to_owned());
    }
    let Some(panels) = board["panels"].as_array() else { return Some("no panels".to_owned()) };
    let panels = panels.iter().filter(|panel| panel["type"] != "row");
    let targets = panels.flat_map(|panel| match panel["targets"].as_array() {
        Some(targets) if !targets.is_empty() => targets.as_slice(),
        // It asks for nothing, as a target without a query does.
        _ => std::slice::from_ref(&panel["targets"]),
    });
    let annotations = board["annotations"]["list"].as_array().map_or(&[][..], Vec::as_slice);
    let asks = targets.chain(annotations);
    let mut queries = asks.map(|of| of["expr"].as_str().unwrap_or_default());
    let is_wrong =
        |query: &&str| asked(query).next().is_none() || !asked(query).all(|of| known.contains(of));
    queries.find(is_wrong).map(|query| format!("{query:?} asks for no metric that there is"))
}

#[test]
fn every_panel_of_a_dashboard_asks_for_metrics_that_there_are() {
    let known = series();
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("deploy/grafana/dashboards")).unwrap() {
        let file = entry.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let board: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(problem(&board, &known), None, "{}", file.display());
        assert!(board["panels"].as_array().unwrap().len() > 5, "{}", file.display());
        let annotations = board["annotations"]["list"].as_array().unwrap();
        let is_named = |of: &serde_json::Value| {
            of["enable"] == true && of["name"].is_string() && of["titleFormat"].is_string()
        };
        assert!(annotations.len() > 1 && annotations.iter().all(is_named), "{}", file.display());
        assert!(names.insert(board["uid"].as_str().unwrap().to_owned()), "{}", file.display());
    }
    let expected = ["throng-fleet", "throng-run", "throng-server"].map(str::to_owned);
    assert_eq!(names, BTreeSet::from(expected));
}

#[test]
fn a_panel_that_asks_for_nothing_or_for_what_there_is_not_is_found() {
    let panel = |targets: serde_json::Value| {
        let board = serde_json::json!({
            "uid": "a",
            "title": "a",
            "panels": [{"type": "row"}, {"type": "timeseries", "targets": targets}],
        });
        problem(&board, &series())
    };
    let query = |query: &str| panel(serde_json::json!([{"expr": query}]));
    assert_eq!(query("rate(throng_fleet_worker_limited_seconds_total[1m]) > 3"), None);
    for wrong in [
        "throng_fleet_worker_none",
        "throng_crowd + throng_none",
        // A counter is asked for by its series, a histogram, too.
        "throng_fleet_worker_limited_seconds",
        "throng_join_seconds",
        "up",
        "",
    ] {
        assert!(query(wrong).is_some(), "{wrong}");
    }
    for targets in [serde_json::json!([]), serde_json::json!([{}]), serde_json::Value::Null] {
        assert!(panel(targets.clone()).is_some(), "{targets}");
    }
    let annotated = |query: &str| {
        let list = serde_json::json!({"list": [{"expr": query}]});
        let board =
            serde_json::json!({"uid": "a", "title": "a", "panels": [], "annotations": list});
        problem(&board, &series())
    };
    assert_eq!(annotated("increase(throng_marks_total[5s]) > 0"), None);
    assert!(annotated("throng_marks > 0").is_some() && annotated("").is_some());
}
