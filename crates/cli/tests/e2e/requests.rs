//! The requests that a run has counted, beside the logs of real web servers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use throng_observation::RequestOutcome;
use throng_sim::caddy::Caddy;
use throng_sim::live::LiveStream;
use throng_sim::nginx::{Access, Nginx};
use throng_store::RunFolder;

use crate::throng::{Ran, figure, plain};
use crate::vod::{url, view};

/// `throng requests RUN --access-log LOG --json`: its exit code and its report.
fn beside(ran: &Ran, log: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let (folder, log) = (ran.folder(), log.display().to_string());
    let folder = folder.display().to_string();
    let output = plain(&[&["requests", &folder, "--access-log", &log, "--json"], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {said}\n{ran}"));
    (output.status.code(), report)
}

/// Requests by path and status, and by path those without a response.
fn counted(ran: &Ran) -> (BTreeMap<(String, u16), u64>, BTreeMap<String, u64>) {
    let (mut answered, mut unanswered) = (BTreeMap::new(), BTreeMap::new());
    for row in RunFolder::http_requests(ran.folder()).unwrap() {
        match row.key.outcome {
            RequestOutcome::Status(status) => {
                *answered.entry((row.key.path, status)).or_default() += row.counters.requests;
            }
            RequestOutcome::NoResponse(_) => {
                *unanswered.entry(row.key.path).or_default() += row.counters.requests;
            }
        }
    }
    (answered, unanswered)
}

/// The same of the log that nginx writes for these tests.
fn logged(accesses: &[Access]) -> BTreeMap<(String, u16), u64> {
    let mut counts = BTreeMap::new();
    for access in accesses {
        let path = access.uri.split('?').next().unwrap_or_default().to_owned();
        *counts.entry((path, access.status)).or_default() += 1;
    }
    counts
}

/// Equal for each URI and status, but for requests that were on the way when their viewers left.
#[track_caller]
fn assert_same(ran: &Ran, users: u64, log: &BTreeMap<(String, u16), u64>) {
    let (answered, unanswered) = counted(ran);
    assert!(unanswered.values().sum::<u64>() <= users, "{unanswered:?}\n{ran}");
    let mut left = unanswered.clone();
    for (key, requests) in log {
        let more = requests - answered.get(key).copied().unwrap_or(0).min(*requests);
        let spare = left.entry(key.0.clone()).or_default();
        assert!(
            more <= *spare,
            "{key:?}: {requests} in the log, {answered:?}, {unanswered:?}\n{ran}"
        );
        *spare -= more;
    }
    for (key, requests) in &answered {
        assert!(
            log.get(key).is_some_and(|logged| logged >= requests),
            "{key:?}: {requests} of {log:?}\n{ran}"
        );
    }
}

/// 45 s: three runs of 8 s and a short one, each followed by 2 s or 3 s until all is logged.
#[test]
fn requests_by_uri_and_status_are_those_of_nginx_and_caddy() {
    if !Nginx::is_installed() || !Caddy::is_installed() {
        return;
    }
    let Some(stream) = LiveStream::hls("").unwrap() else { return };
    let users = 8;
    let nginx = Nginx::serving(stream.folder()).unwrap();
    let (plain_url, tls_url) = (
        url("http", nginx.plain_address(), "live.m3u8"),
        url("https", nginx.address(), "live.m3u8"),
    );
    let certificate = nginx.certificate().display().to_string();
    let mut before = 0;
    for (url, more) in [(plain_url, &[][..]), (tls_url, &["--tls-ca", &certificate][..])] {
        let ran = view(&url, users, 8, "", more).expect_code(0);
        // The server logs a response once it notices that its client has gone.
        std::thread::sleep(Duration::from_secs(3));
        let accesses = nginx.accesses().unwrap();
        let of_run = &accesses[before..];
        assert!(of_run.len() as u64 > u64::from(users) * 15, "{of_run:?}\n{ran}");
        assert_same(&ran, users.into(), &logged(of_run));
        let (code, report) = beside(&ran, &nginx.combined_log(), &[]);
        assert_eq!(code, Some(0), "{report:#}\n{ran}");
        // The runs before are at other times.
        assert_eq!(figure(&report, "access_log.theirs"), of_run.len() as f64, "{report:#}");
        assert_eq!(figure(&report, "access_log.lines"), accesses.len() as f64, "{report:#}");
        let summary = ran.summary();
        let statuses = summary["playback"]["requests_by_status"].clone();
        assert_eq!(statuses, report["by_status"], "{ran}");
        assert!(ran.stdout.contains("  requests     "), "{ran}");
        before = accesses.len();
    }
    // Requests that a run did not make are found, and so are those that the log lacks.
    let ran = view(&url("http", nginx.plain_address(), "nothing.mp4"), 5, 2, "", &[]);
    std::thread::sleep(Duration::from_secs(2));
    let log = std::fs::read_to_string(nginx.combined_log()).unwrap();
    let (code, report) = beside(&ran, &nginx.combined_log(), &[]);
    assert_eq!(
        (code, &report["by_status"]),
        (Some(0), &serde_json::json!({ "404": 5 })),
        "{report:#}\n{ran}"
    );
    let (last, shorter) = (log.lines().last().unwrap(), stream.folder().join("shorter.log"));
    std::fs::write(&shorter, format!("{log}{last}\nno line of a log\n")).unwrap();
    let (code, report) = beside(&ran, &shorter, &[]);
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(
        (figure(&report, "access_log.surplus"), figure(&report, "access_log.lines_unread")),
        (1.0, 1.0)
    );
    std::fs::write(&shorter, log.trim_end().strip_suffix(last).unwrap()).unwrap();
    let (code, report) = beside(&ran, &shorter, &[]);
    assert_eq!((code, figure(&report, "access_log.missing")), (Some(1), 1.0), "{report:#}");

    let caddy = Caddy::serving(stream.folder()).unwrap();
    let certificate = caddy.certificate().display().to_string();
    let url = url("https", caddy.address(), "live.m3u8");
    let ran = view(&url, users, 8, "http = \"3\"", &["--tls-ca", &certificate]).expect_code(0);
    std::thread::sleep(Duration::from_secs(2));
    let (code, report) = beside(&ran, &caddy.access_log(), &[]);
    assert_eq!(code, Some(0), "{report:#}\n{ran}");
    assert!(figure(&report, "access_log.theirs") > f64::from(users) * 15.0, "{report:#}");
    assert_eq!(report["uris"][0]["http_version"], 3, "{report:#}");
}
