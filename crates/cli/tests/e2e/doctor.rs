//! `throng doctor` on the machine of the tests.

use serde_json::Value;

use crate::throng::plain;

const NAMES: [&str; 16] = [
    "open-files",
    "local-ports",
    "memory",
    "conntrack",
    "receive-buffer",
    "send-buffer",
    "receive-ring",
    "joined-datagrams",
    "cpus",
    "cpu-steal",
    "clock-source",
    "clock",
    "profiler",
    "ffmpeg",
    "browser",
    "gstreamer",
];

fn said(args: &[&str]) -> (Option<i32>, String) {
    let output = plain(args);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// 2 s: CPU steal is watched for a second each time. No address has a million ports.
#[test]
fn each_check_is_there_once_and_a_crowd_that_does_not_fit_is_exit_4() {
    let (code, text) = said(&["doctor", "-n", "1000000"]);
    assert_eq!(code, Some(4), "{text}");
    for name in NAMES {
        let is_its = |line: &&str| line.split(' ').next() == Some(name);
        assert_eq!(text.lines().filter(is_its).count(), 1, "{name}\n{text}");
    }
    assert!(text.contains("1000000 viewers do not fit, "), "{text}");

    let source = ["--source-ip", "127.0.0.2-127.0.0.3"];
    let (code, text) = said(&[&["doctor", "--viewers", "1", "--json"][..], &source].concat());
    assert_eq!(code, Some(0), "{text}");
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let names: Vec<&str> =
        report["checks"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(names, NAMES);
    assert_eq!(report["fit"], true, "{text}");
    let ports = report["checks"][1]["found"].as_str().unwrap_or_default();
    assert!(ports.ends_with(" of each of 2 source addresses"), "{text}");
}

#[test]
fn a_source_address_that_is_not_ours_has_no_ports() {
    // TEST-NET-3 (RFC 5737) is on no host.
    let (code, text) = said(&["doctor", "--source-ip", "203.0.113.7"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("source address 203.0.113.7"), "{text}");
}
