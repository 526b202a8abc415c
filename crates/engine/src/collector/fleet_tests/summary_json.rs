//! The summary.json of rows, through a run folder and the report, and where two of them differ.

use std::collections::BTreeSet;

use serde_json::Value;
use throng_observation::fleet::WorkerInfo;
use throng_observation::run::{Ending, Row, RunInfo};
use throng_report::ReportRows;
use throng_scenario::Scenario;
use throng_store::RunFolder;

use super::crowd::{COHORTS, ENDED_AT, ENDS_AT, PEOPLE, SCENARIO, WORKERS};

/// What of `generator` is of the machines and not of the crowd, and why it differs. All else must
/// be the same.
pub(super) const OF_THE_MACHINES: [(&str, &str); 8] = [
    ("cpu_ms_per_participant_s", "three processes take more CPU than one"),
    ("rss_bytes_per_participant", "the same of memory"),
    ("rss_bytes_max", "the sum over three processes"),
    ("threads", "each process has its own"),
    ("thread_cpu_ratio_max", "a thread of a worker has fewer participants"),
    ("lag_ms_p99_max", "the same"),
    ("steal_ratio_max", "the worst of three machines"),
    ("workers", "one process has none"),
];

/// The summary of these rows, through a run folder, as `throng report` makes it.
pub(super) fn summary(rows: impl IntoIterator<Item = Row>, workers: &[usize]) -> Value {
    let worker = |number: &usize| WorkerInfo {
        name: format!("w{number}"),
        participants: PEOPLE / WORKERS,
        ..WorkerInfo::default()
    };
    let info = RunInfo {
        throng_version: "0.1.0".into(),
        scenario: SCENARIO.into(),
        target: "whep+http://127.0.0.1:5280/whep".into(),
        cohorts: COHORTS.map(str::to_owned).to_vec(),
        started_at_unix_us: 1_764_180_000_000_000,
        planned_duration_us: ENDS_AT.0,
        workers: workers.iter().map(worker).collect(),
        ..RunInfo::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut writer = RunFolder::create(&path, &info).unwrap();
    for (number, row) in rows.into_iter().enumerate() {
        writer.write(row);
        // The writer keeps a bounded number of rows between two commits.
        if number % 500 == 499 {
            writer.commit().unwrap();
        }
    }
    writer.finish(Ending::Complete, ENDED_AT[2]).unwrap();
    let of_scenario = Scenario::run_plan_of_stored;
    let run = RunFolder::read_selected(&path, &mut ReportRows::default(), of_scenario).unwrap();
    let scenario = Scenario::parse_stored(SCENARIO).unwrap_or_else(|error| panic!("{error}"));
    let summary = throng_report::summarise(&run, &scenario.objectives, scenario.run.warm_up);
    serde_json::from_str(&summary.to_json()).unwrap()
}

/// The summary without what is of the machines.
pub(super) fn of_the_crowd(summary: &Value) -> Value {
    let mut summary = summary.clone();
    let generator = summary["generator"].as_object_mut().unwrap();
    for (key, _) in OF_THE_MACHINES {
        generator.remove(key);
    }
    summary
}

/// Where two summaries differ.
pub(super) fn differences(path: &str, one: &Value, other: &Value) -> Vec<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let of = |key: &&String| {
                let (one, other) = (one.get(*key), other.get(*key));
                match one.zip(other) {
                    Some((one, other)) => differences(&format!("{path}.{key}"), one, other),
                    None => vec![format!("{path}.{key}: only one has it")],
                }
            };
            keys.iter().flat_map(of).collect()
        }
        _ if one == other => Vec::new(),
        _ => vec![format!("{path}: {one} and {other}")],
    }
}
