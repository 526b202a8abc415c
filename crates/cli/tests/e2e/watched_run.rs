//! Watching the server during a run: threads by name, their sum, the page; and events that must
//! never end a run.

use std::net::Ipv4Addr;

use serde_json::Value;
use throng_sim::janus::Janus;
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::throng::{Stage, figure, run};
use crate::{page, price};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

fn names(run: &throng_observation::run::RunData, metric: &str, label: &str) -> Vec<String> {
    let of = run.host.series.iter().filter(|series| series.metric == metric);
    of.filter_map(|series| series.labels.get(label).cloned()).collect()
}

/// Over 20 s: 5 s of the idle server, a run of 12 s, and a browser that opens the page.
#[test]
fn twenty_viewers_on_janus_are_seen_thread_by_thread() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("janus", ADDRESS).unwrap();
    let events = "http://127.0.0.1:7999/";
    let janus = Janus::start_telling(&namespace, ADDRESS, events).unwrap();
    let feed = janus.feed().unwrap();
    let url = "janus+ws://127.0.0.1:8188/streaming/1";
    let crowd =
        ["view", url, "-n", "20", "--every", "100ms", "--for", "12s", "--warm-up", "3s", "--csv"];
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "admin\n").unwrap();
    // By PID: other processes on this machine have the same name.
    let watch = format!(
        "pid={},profile=baseline,profile=full,metrics=janus-events+{events},\
         metrics=janus+ws://127.0.0.1:7188/#secret=file:{}",
        janus.pid(),
        secret.path().display()
    );
    let ran = run(Some(&namespace), &[&crowd[..], &["--watch", &watch]].concat()).expect_code(0);
    drop(feed);
    let begins = format!("watching pid {}: the idle server for 5 s", janus.pid());
    assert!(ran.stderr.contains(&begins), "{ran}");
    assert!(ran.stderr.contains("  server     CPU "), "{ran}");

    let summary = ran.summary();
    let server = &summary["hosts"][0];
    let process = &server["processes"][0];
    assert_eq!(
        (&process["name"], figure(process, "pid") as u32),
        (&Value::from("janus"), janus.pid()),
        "{ran}"
    );
    let hottest = server["hottest_thread"]["name"].as_str().unwrap_or_default();
    assert!(!hottest.is_empty() && figure(server, "rss_bytes_max") > 1e6, "{server:#}");
    assert!(figure(server, "network.0.tx_bps_max") > 1e6, "{server:#}");

    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    // While no participant leaves: the CPU time of a thread after its last reading is lost when it
    // ends. Threads are counted in nanoseconds, the process in ticks of 10 ms.
    let (of_threads, of_process) = crate::watch::threads_and_process(&run.host, "janus", 2.0, 11.9);
    assert!(
        of_process > 0.1 && (of_threads - of_process).abs() < 0.02 * of_process + 0.02,
        "threads {of_threads} s, process {of_process} s\n{ran}"
    );
    let threads = names(&run, "thread.cpu", "thread");
    for known in ["hloop", "mp "] {
        assert!(threads.iter().any(|name| name.starts_with(known)), "no {known} among {threads:?}");
    }
    assert!(
        run.host.samples.iter().any(|sample| sample.at.as_secs_f64() < -1.0),
        "the idle server was seen"
    );
    let events = names(&run, "janus.events", "event");
    for event in ["session_created", "handle_attached", "webrtc_webrtcup", "media_statistics"] {
        assert!(
            events.iter().any(|name| name == event),
            "no {event} among {events:?}: {:?}",
            run.host.events
        );
    }
    assert!(names(&run, "janus.sent", "endpoint").len() == 1, "{:?}", run.host.events);
    let moments: Vec<&str> =
        run.host.profiles.iter().map(|profile| profile.moment.as_str()).collect();
    assert_eq!(moments, ["baseline", "full"], "{:?}", run.host.events);
    assert!(
        std::fs::read_to_string(ran.folder().join("hosts.csv")).unwrap().contains("thread.cpu")
    );

    let mut browser = page::opened(&namespace, &ran);
    for text in ["The server", "CPU by thread", "Viewers: delay", "The hottest threads"] {
        let said =
            browser.evaluate(&format!("document.body.innerText.includes('{text}')")).unwrap();
        assert_eq!(said, Value::Bool(true), "the page does not say {text}\n{ran}");
    }
    page::fits(&mut browser, "watched");
}

/// Over a minute: a search, whose loads show what a viewer costs. One load shows which thread works
/// most, and neither that it is the limit nor what more of them would give.
#[test]
fn the_one_worker_of_a_full_stage_is_named() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--workers", "1", "--work-per-packet", "1500"]);
    let port =
        stage.whep.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    let (target, watch) = (stage.target(), format!("port={port}"));
    let find = ["find", &target, "--start", "4", "--ceiling", "60", "--watch", &watch];
    let short = ["--budget", "1m", "--quiet", "--objective", "connect p99 < 1s"];
    let ran = run(None, &[&find[..], &short].concat()).expect_code(0);
    let summary = ran.summary();
    let cause = &summary["bottleneck"];
    let finding = cause["finding"].as_str().unwrap_or_default();
    assert!(["one_thread_full", "single_threaded"].contains(&finding), "{cause:#}\n{ran}");
    let thread = cause["thread"].as_str().unwrap_or_default();
    assert!(thread.starts_with("stage-worker"), "{cause:#}\n{ran}");
    price::is_predicted(&ran);
    let hottest = &summary["hosts"][0]["hottest_thread"];
    assert!(
        hottest["name"].as_str().is_some_and(|name| name.contains("worker")),
        "{hottest:#}\n{ran}"
    );
    assert!(figure(hottest, "cpu_max") > 0.5, "{hottest:#}\n{ran}");
    assert!(
        hottest["help"].as_str().is_some_and(|help| help.contains("--workers")),
        "{hottest:#}\n{ran}"
    );
    assert!(ran.stdout.contains("hottest thread"), "{ran}");
}

#[test]
fn a_watcher_that_cannot_see_is_a_warning_and_never_the_end_of_a_run() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let crowd = ["view", &stage.target(), "-n", "3", "--every", "100ms", "--for", "4s"];
    let watch = ["--watch", "pid=2147483647", "--watch", "process=no-such-process,profile=full"];
    let ran = run(None, &[&crowd[..], &watch].concat()).expect_code(0);
    let summary = ran.summary();
    assert!(ran.stderr.contains("warning: pid 2147483647 is not watched"), "{ran}");
    let missing = "warning: process no-such-process: no such process runs";
    let said = ran.stderr.find(missing).unwrap_or_else(|| panic!("{missing}\n{ran}"));
    let plays = ran.stderr.find("playing").unwrap_or(usize::MAX);
    assert!(said < plays, "before the crowd plays\n{ran}");
    assert_eq!(figure(&summary, "events.watch_failed"), 2.0, "{ran}");
    assert_eq!(figure(&summary, "participants.playing"), 3.0, "{ran}");
    let unreadable = summary["hosts"][1]["unreadable"].to_string();
    assert!(unreadable.contains("no-such-process"), "{unreadable}\n{ran}");
}

/// A knowledge pack of the user.
const OWN_PACK: &str = "pack = \"sleeper\"\ntitle = \"A sleeper\"\nsource = \"a test\"\nprocesses = [\"sleep\"]\n\
    [[thread]]\nname = \"sleep\"\ngroup = \"all\"\nmeaning = \"Waits for its time\"\n";

#[test]
fn a_pack_that_is_wrong_is_said_with_its_place_before_anything_is_sent() {
    let packs = tempfile::tempdir().unwrap();
    std::fs::write(packs.path().join("mine.toml"), "pack = \"x\"\ntitel = 1\n").unwrap();
    for command in [&["view", "whep+http://127.0.0.1:9/whep"][..], &["watch", "--for", "1s"]] {
        let said =
            crate::throng::plain(&[command, &["--packs", packs.path().to_str().unwrap()]].concat());
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(
            said.status.code() == Some(2) && text.contains("mine.toml") && text.contains("titel"),
            "{text}"
        );
    }
}

#[test]
fn a_command_is_started_watched_and_ended_with_the_run() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let crowd = ["view", &stage.target(), "-n", "2", "--every", "100ms", "--for", "4s"];
    let marker = "86399.5";
    let packs = tempfile::tempdir().unwrap();
    std::fs::write(packs.path().join("mine.toml"), OWN_PACK).unwrap();
    let own = ["--packs", packs.path().to_str().unwrap()];
    let watch = ["--watch", &format!("command=sleep {marker}")];
    let ran = run(None, &[&crowd[..], &watch, &own].concat()).expect_code(0);
    let known = throng_store::RunFolder::read(ran.folder()).unwrap().host.hosts[0].facts
        [throng_observation::pack::PACKS_FACT]
        .clone();
    assert!(known.contains("Waits for its time") && known.contains("Any server"), "{known}");
    assert_eq!(ran.summary()["hosts"][0]["processes"][0]["name"], "sleep", "{ran}");
    let left = std::process::Command::new("pgrep")
        .args(["-f", &format!("sleep {marker}")])
        .output()
        .unwrap();
    assert!(left.stdout.is_empty(), "the command is still there");
}

/// More threads than those of [`twenty_viewers_on_janus_are_seen_thread_by_thread`].
mod long {
    use throng_sim::janus::ROOM;

    use super::*;

    /// Half a minute: 5 s of the idle server, and a conference of 22 s.
    #[test]
    #[ignore = "half the machine for half a minute: scripts/proof.sh long, make proof"]
    fn a_conference_on_janus_is_seen_thread_by_thread() {
        if !requires_root() {
            return;
        }
        let namespace = Namespace::with_veth("janus", ADDRESS).unwrap();
        let janus = Janus::start(&namespace, ADDRESS).unwrap();
        let url = format!("janus+ws://{ADDRESS}:8188/videoroom/{ROOM}");
        let watch = format!("pid={}", janus.pid());
        let conference =
            ["view", &url, "-n", "12", "--every", "200ms", "--for", "22s", "--watch", &watch];
        let ran = run(Some(&namespace), &conference).expect_code(0);
        assert_eq!(figure(&ran.summary(), "conference.video.playing"), 132.0, "{ran}");
        let run = throng_store::RunFolder::read(ran.folder()).unwrap();
        // All participants are in. The process is counted in ticks of 10 ms, one of which may lie
        // beyond an edge.
        let (of_threads, of_process) =
            crate::watch::threads_and_process(&run.host, "janus", 4.0, 21.5);
        assert!(
            of_process > 0.5 && (of_threads - of_process).abs() < 0.02 * of_process + 0.01,
            "threads {of_threads} s, process {of_process} s\n{ran}"
        );
        let threads = names(&run, "thread.cpu", "thread");
        let loops = threads.iter().filter(|name| name.starts_with("hloop")).count();
        assert!(loops >= 24, "a loop for each sender and each receiver: {threads:?}");
    }
}
