//! Servers that behave and servers that do not: started, waited for, stopped, and nothing of them
//! left.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use regex::Regex;
use tempfile::TempDir;
use throng_rig::{
    Journal, Limits, Marker, Readiness, RunningServer, ServerSpec, Sign, StartError, last_lines,
};

struct Fixture {
    folder: TempDir,
    journal: Journal,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("journal.jsonl")).unwrap();
        Self { folder, journal }
    }

    fn log(&self) -> std::path::PathBuf {
        self.folder.path().join("server.log")
    }

    /// A server that is a shell script; it is ready when it prints `ready`.
    fn script(&self, script: &str) -> ServerSpec {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let sign = Sign::Line(Regex::new("^ready$").unwrap());
        ServerSpec {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            env: vec![("GREETING".into(), "hello".into())],
            cwd: self.folder.path().to_owned(),
            ready: Some(Readiness { sign, within: Duration::from_secs(5) }),
            stop_signal: "SIGTERM".into(),
            stop_within: Duration::from_millis(300),
            cpus: None,
            nofile: None,
            limits: Limits::default(),
            log: self.log(),
            name: format!("throng-rig-test-{}-{number}", std::process::id()),
        }
    }

    fn start(&mut self, spec: ServerSpec) -> Result<RunningServer, StartError> {
        RunningServer::start(spec, &mut self.journal, &|| false)
    }
}

#[test]
fn a_server_gets_its_environment_and_stops_by_its_signal() {
    let mut fixture = Fixture::new();
    let mut server =
        fixture.start(fixture.script("echo $GREETING; pwd; echo ready; exec sleep 1000")).unwrap();
    assert_eq!(server.ended(), None);
    let said = last_lines(&fixture.log(), 9);
    assert_eq!(said[0], "hello");
    assert_eq!(
        Path::new(&said[1]).canonicalize().unwrap(),
        fixture.folder.path().canonicalize().unwrap()
    );
    let stopped = server.stop();
    assert_eq!(stopped.notes, Vec::<String>::new());
    assert!(stopped.status.is_some());
}

#[test]
fn a_server_that_ignores_the_signal_is_killed_and_that_is_said() {
    let mut fixture = Fixture::new();
    let spec = fixture.script("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    let marker = Marker::new(spec.name.as_str());
    let server = fixture.start(spec).unwrap();
    let notes = server.stop().notes;
    assert_eq!(notes, ["the server ignored SIGTERM for 0.3 s: SIGKILL"]);
    assert!(marker.processes().is_empty());
}

#[test]
fn what_a_server_leaves_in_another_session_is_found_and_killed() {
    let mut fixture = Fixture::new();
    let spec = fixture.script("setsid sh -c 'echo ready; exec sleep 1000' & exec sleep 1000");
    let marker = Marker::new(spec.name.as_str());
    let server = fixture.start(spec).unwrap();
    let notes = server.stop().notes;
    assert!(
        matches!(notes.as_slice(), [one] if one.contains("left processes behind")),
        "{notes:?}"
    );
    assert!(marker.processes().is_empty());
}

#[test]
fn a_server_that_is_never_ready_is_reported_with_what_it_wrote() {
    let mut fixture = Fixture::new();
    let mut spec = fixture.script("echo loading; exec sleep 1000");
    spec.ready.as_mut().unwrap().within = Duration::from_millis(300);
    let marker = Marker::new(spec.name.as_str());
    let error = fixture.start(spec).unwrap_err().to_string();
    assert!(error.contains("not ready within 0.3 s") && error.ends_with(": loading"), "{error}");
    assert!(marker.processes().is_empty(), "it is not left running");
}

#[test]
fn a_server_that_ends_at_once_is_reported_with_its_status() {
    let mut fixture = Fixture::new();
    let error =
        fixture.start(fixture.script("echo bad config >&2; exit 7")).unwrap_err().to_string();
    assert!(error.contains("exit status: 7") && error.ends_with(": bad config"), "{error}");
    let mut spec = fixture.script("");
    spec.command = vec!["/not/there".into()];
    assert!(matches!(fixture.start(spec), Err(StartError::NotStarted { .. })));
    let mut spec = fixture.script("echo ready");
    spec.cwd = "/not/there".into();
    let error = fixture.start(spec).unwrap_err().to_string();
    assert!(error.contains("no folder /not/there") && !error.contains("`sh`"), "{error}");
}

#[test]
fn a_server_that_dies_later_is_noticed() {
    let mut fixture = Fixture::new();
    let mut server = fixture
        .start(fixture.script("echo ready; sleep 0.1; echo out of luck; kill -9 $$"))
        .unwrap();
    let give_up_at = Instant::now() + Duration::from_secs(5);
    while server.ended().is_none() && Instant::now() < give_up_at {
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = server.ended().expect("noticed");
    assert!(status.to_string().contains("signal: 9"), "{status}");
    assert_eq!(server.said(), ": ready; out of luck");
    assert_eq!(server.stop().notes, Vec::<String>::new());
}

#[test]
fn a_taken_port_is_reported_before_the_server_starts() {
    let mut fixture = Fixture::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut spec = fixture.script("touch started; exec sleep 1000");
    spec.ready = Some(Readiness { sign: Sign::Port(port), within: Duration::from_secs(5) });
    let error = fixture.start(spec).unwrap_err();
    assert!(matches!(error, StartError::PortTaken(taken) if taken == port), "{error}");
    assert!(!fixture.folder.path().join("started").exists());
}

#[test]
fn a_server_is_ready_when_its_port_accepts_and_the_port_is_free_afterwards() {
    let mut fixture = Fixture::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut spec = fixture.script("");
    spec.command = ["python3", "-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]
        .map(str::to_owned)
        .to_vec();
    let http = Sign::Http { authority: format!("127.0.0.1:{port}"), path: "/".into() };
    for sign in [Sign::Port(port), http] {
        let mut spec = spec.clone();
        spec.ready = Some(Readiness { sign, within: Duration::from_secs(20) });
        let server = fixture.start(spec).unwrap();
        assert_eq!(server.port(), Some(port));
        let stopped = server.stop();
        assert_eq!(stopped.notes, Vec::<String>::new());
    }
    spec.ready = Some(Readiness {
        sign: Sign::Http { authority: format!("127.0.0.1:{port}"), path: "/not/there".into() },
        within: Duration::from_millis(1500),
    });
    assert!(matches!(fixture.start(spec), Err(StartError::NotReady { .. })), "404 is not ready");
}

#[test]
fn a_server_gets_the_cpus_and_limits_that_it_is_given_or_is_not_started() {
    let mut fixture = Fixture::new();
    let mut spec = fixture.script(
        "grep Cpus_allowed_list /proc/self/status; cat /proc/self/cgroup; echo ready; exec sleep 1000",
    );
    spec.cpus = Some("0".into());
    spec.limits = Limits { cpu_quota: Some(0.5), memory_bytes: Some(200 << 20), disk_read: None };
    let name = spec.name.clone();
    match fixture.start(spec) {
        Ok(server) => {
            let said = last_lines(&fixture.log(), 30).join("\n");
            assert!(
                said.contains("Cpus_allowed_list:\t0\n") && said.contains(&format!("/{name}")),
                "{said}"
            );
            assert_eq!(server.control_group(), Some(format!("/{name}")));
            assert_eq!(server.stop().notes, Vec::<String>::new());
        }
        Err(StartError::NotPossibleHere(why)) => assert!(why.contains("control group"), "{why}"),
        Err(error) => panic!("{error}"),
    }
    let mut spec = fixture.script("touch started; exec sleep 1000");
    spec.cpus = Some("4000".into());
    let error = fixture.start(spec.clone()).unwrap_err();
    assert!(matches!(&error, StartError::NotPossibleHere(_)), "{error}");
    spec.cpus = None;
    // No disk is behind /proc.
    spec.limits = Limits { disk_read: Some(("/proc".into(), 1_000_000)), ..Limits::default() };
    let error = fixture.start(spec).unwrap_err();
    assert!(
        matches!(&error, StartError::NotPossibleHere(why) if why.contains("/proc is on no disk")),
        "{error}"
    );
    assert!(!fixture.folder.path().join("started").exists());
}

#[test]
fn a_server_gets_the_open_files_that_it_is_given_or_is_not_started() {
    let mut fixture = Fixture::new();
    let mut spec = fixture.script("ulimit -Sn; ulimit -Hn; echo ready; exec sleep 1000");
    spec.nofile = Some(64);
    let server = fixture.start(spec.clone()).unwrap();
    assert_eq!(last_lines(&fixture.log(), 9), ["64", "64", "ready"]);
    assert_eq!(server.stop().notes, Vec::<String>::new());
    spec.nofile = Some(u64::MAX / 2);
    let error = fixture.start(spec).unwrap_err();
    assert!(
        matches!(&error, StartError::NotPossibleHere(why) if why.contains("open files")),
        "{error}"
    );
}

#[test]
fn what_a_killed_owner_leaves_is_undone_by_the_next_start() {
    let mut fixture = Fixture::new();
    let spec = fixture.script("setsid sh -c 'echo ready; exec sleep 1000' & exec sleep 1000");
    let marker = Marker::new(spec.name.as_str());
    let server = fixture.start(spec).unwrap();
    let group = server.control_group();
    // As after kill -9: nothing is stopped, the lock is gone.
    std::mem::forget(server);
    let Fixture { folder, journal } = fixture;
    drop(journal);
    assert_eq!(marker.processes().len(), 2);
    let mut journal = Journal::open(&folder.path().join("journal.jsonl")).unwrap();
    assert!(journal.left() >= 1);
    assert_eq!(journal.undo_all(), Vec::<String>::new());
    assert!(marker.processes().is_empty());
    if let Some(group) = group {
        let left = std::fs::read_to_string("/proc/mounts").unwrap();
        let roots = left
            .lines()
            .filter(|line| line.starts_with("cgroup"))
            .filter_map(|line| line.split(' ').nth(1));
        assert!(
            roots
                .map(|root| Path::new(root).join(group.trim_start_matches('/')))
                .all(|path| !path.exists())
        );
    }
}

#[test]
fn waiting_can_be_interrupted() {
    let mut fixture = Fixture::new();
    let spec = fixture.script("exec sleep 1000");
    let marker = Marker::new(spec.name.as_str());
    let error = RunningServer::start(spec, &mut fixture.journal, &|| true).unwrap_err();
    assert!(matches!(error, StartError::Interrupted));
    assert!(marker.processes().is_empty());
}
