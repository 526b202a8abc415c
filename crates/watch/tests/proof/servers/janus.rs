//! The real Janus with viewers: its pack knows its threads, and its admin API reports its traffic.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use throng_observation::pack::EndpointKind;
use throng_sim::janus::{H264, Janus};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_watch::scrape::Credentials;

use super::harness::{Watched, named};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const VIEWERS: usize = 5;

/// The program under test, which a build of the workspace puts next to the tests.
fn throng() -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let program = here.parent()?.parent()?.join("throng");
    program.exists().then_some(program)
}

struct Viewers(Child);

impl Drop for Viewers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_janus_with_viewers_reports_its_traffic_and_its_threads_are_known() {
    if !requires_root() {
        return;
    }
    let Some(throng) = throng() else {
        throng_sim::skipped("the program throng is not built (make test builds it)");
        return;
    };
    let namespace = Namespace::with_veth("wjanus", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let _feed = janus.feed().unwrap();
    let mut watched = Watched::new();
    let admin = "ws://127.0.0.1:7188/";
    let secret = Credentials::Secret("admin".into());
    let ask = watched.asker("janus", EndpointKind::JanusAdmin, admin, secret);
    let _scraper = namespace.enter(ask).unwrap();
    assert_eq!(watched.wait(&["janus.sessions"], |_| true), 0.0);

    let folder = tempfile::tempdir().unwrap();
    let url = format!("janus+ws://127.0.0.1:8188/streaming/{H264}");
    let count = VIEWERS.to_string();
    let mut command = namespace.command(throng.to_str().unwrap());
    command.current_dir(folder.path());
    command.args(["view", &url, "-n", &count, "--every", "50ms", "--for", "30s"]);
    let viewers = Viewers(
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(),
    );
    watched.wait(&["janus.handles[", "plugin=streaming"], |handles| handles == VIEWERS as f64);
    watched.wait(&["janus.peer_connections", "state=ready"], |ready| ready == VIEWERS as f64);
    // 800 kbit/s of video and 48 kbit/s of audio to each.
    let expect = VIEWERS as f64 * 848e3 / 8.0;
    watched.wait(&["janus.sent"], |sent| (0.6..1.6).contains(&(sent / expect)));
    // Over the same seconds: on a busy machine seconds differ.
    let (bytes, from, told_before) =
        (janus.bytes_sent().unwrap(), Instant::now(), watched.values(&["janus.sent"]).len());
    std::thread::sleep(Duration::from_secs(4));
    let reported = watched.values(&["janus.sent"]).split_off(told_before);
    let by_counters = (janus.bytes_sent().unwrap() - bytes) as f64 / from.elapsed().as_secs_f64();
    let sent = reported.iter().sum::<f64>() / reported.len() as f64;
    assert!(
        (0.5..2.0).contains(&(sent / by_counters)),
        "{reported:?} reported, {by_counters} by its counters"
    );

    let pack = &named(&["janus"])[0];
    let tasks = std::fs::read_dir(format!("/proc/{}/task", janus.pid())).unwrap();
    let names: Vec<_> = tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect();
    let unknown: Vec<_> = names.iter().filter(|name| pack.thread_meaning(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {names:?}");
    let loops = names
        .iter()
        .filter_map(|name| pack.thread_meaning(name))
        .filter(|meaning| meaning.group == "hloop");
    let settings: Vec<_> =
        loops.map(|meaning| meaning.setting.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(settings, vec!["event_loops"; VIEWERS]);
    drop(viewers);
    assert_eq!(watched.events, [] as [&str; 0]);
}

#[test]
fn a_wrong_janus_secret_is_reported() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("wjanus", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let mut watched = Watched::new();
    let wrong = Credentials::Secret("wrong".into());
    let ask = watched.asker("janus", EndpointKind::JanusAdmin, "ws://127.0.0.1:7188/", wrong);
    let scraper = namespace.enter(ask).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    drop(scraper);
    watched.take();
    assert_eq!(watched.events.len(), 1, "{:?}", watched.events);
    assert!(watched.events[0].contains("admin_secret"), "{:?}", watched.events);
}
