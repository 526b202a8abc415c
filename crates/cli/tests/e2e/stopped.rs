//! A server that is stopped for a while: its freeze has a cause, and the burst that it sends
//! afterwards is not blamed on the generator. A generator that is stopped was the limit. A run
//! without problems has no explanations.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use throng_observation::limits::BURST_DROPS_EVENT;

use crate::throng::{Running, Stage, valid};

/// Stops the stage for a while.
fn stop(stage: &Stage, time: Duration) {
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &stage.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    std::thread::sleep(time);
    signal("-CONT");
}

fn port(stage: &Stage) -> String {
    let authority = stage.whep.split('/').nth(2).unwrap_or_default();
    format!("port={}", authority.rsplit(':').next().unwrap_or_default())
}

/// 25 s: 5 s of the idle server, and a run of 20 s, in 6 s of which it is stopped.
#[test]
fn a_server_that_was_stopped_is_named_and_the_run_is_valid() {
    let (ran, ()) = valid(|| {
        let stage = Stage::start(None, "127.0.0.1:0", &[]);
        let watch = port(&stage);
        let view = ["view", &stage.target(), "-n", "6", "--for", "20s", "--watch", &watch];
        let mut running = Running::start(None, &view);
        running.when_playing(6);
        std::thread::sleep(Duration::from_secs(3));
        stop(&stage, Duration::from_secs(6));
        (running.wait(), ())
    });
    let summary = ran.summary();
    let found = &summary["bottleneck"];
    assert_eq!(found["finding"], "process_stopped", "{found:#}\n{ran}");
    assert!(
        found["title"].as_str().is_some_and(|title| title.contains("was stopped for")),
        "{found:#}"
    );
    assert_eq!(summary["generator"]["limited"], false, "{ran}");
    // Datagrams that did not fit into the generator's buffers arrived in the burst after the
    // silence.
    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    assert_eq!(run.generator.iter().map(|row| row.socket_drops).sum::<u64>(), 0, "{ran}");
    let bursts = run.events.iter().filter(|event| event.kind == BURST_DROPS_EVENT);
    assert!(bursts.clone().all(|event| event.detail.contains("had been silent for")), "{ran}");
}

/// FFmpeg by this path, which takes one publisher by RTMP; `None` where it is not installed.
fn ffmpeg_listening(program: &Path) -> Option<(Child, String)> {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let url = format!("rtmp://127.0.0.1:{port}/live/k");
    let mut command = Command::new(program);
    command.args(["-v", "error", "-listen", "1", "-i", &url, "-f", "null", "-"]);
    Some((command.stdin(Stdio::null()).spawn().ok()?, format!("publish+{url}")))
}

/// 20 s: 5 s of the idle server, and 12 s of a run that ends in the second in which its server is
/// killed.
#[test]
fn a_server_that_is_killed_with_its_only_user_is_named_with_the_signal() {
    let Some((mut server, url)) = ffmpeg_listening(Path::new("ffmpeg")) else { return };
    let (pid, media) = (server.id(), "crowd.publish={ video = \"360p\" }");
    let watch = format!("pid={pid}");
    let view = ["view", &url, "-n", "1", "--for", "60s", "--set", media, "--watch", &watch];
    let running = Running::start(None, &view);
    std::thread::sleep(Duration::from_secs(17));
    server.kill().unwrap();
    let ran = running.wait();
    server.wait().unwrap();
    let summary = ran.summary();
    let title = format!("ffmpeg (PID {pid}) ended under the load, by signal 9 (SIGKILL)");
    assert_eq!(
        summary["bottleneck"]["title"],
        title.as_str(),
        "{:#}\n{ran}",
        summary["bottleneck"]
    );
    let ended = &summary["hosts"][0]["ended"];
    assert_eq!(
        (&ended[0]["pid"], &ended[0]["signal"]),
        (&pid.into(), &9.into()),
        "{ended:#}\n{ran}"
    );
    assert!(ran.stdout.contains(&format!("ended: ffmpeg (PID {pid}) at ")), "{ran}");
}

/// Where FFmpeg is.
fn ffmpeg() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("ffmpeg")).find(|file| file.is_file())
}

/// 13 s: 5 s of the idle server, and 7 s of a run. It is found by a name of its own: throng
/// publishes by an FFmpeg too, which ends because the server has, and those of other tests come and
/// go.
#[test]
fn a_server_that_is_found_by_name_and_killed_is_named_and_not_the_publisher_that_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (name, Some(ffmpeg)) = ("throng-e2e-rtmp", ffmpeg()) else { return };
    let program = folder.path().join(name);
    std::os::unix::fs::symlink(ffmpeg, &program).unwrap();
    let (mut server, url) = ffmpeg_listening(&program).unwrap();
    let media = "crowd.publish={ video = \"360p\", burn_clock = true }";
    let watch = format!("process={name}");
    let view = ["view", &url, "-n", "1", "--for", "60s", "--set", media, "--watch", &watch];
    let running = Running::start(None, &view);
    std::thread::sleep(Duration::from_secs(12));
    let pid = server.id();
    server.kill().unwrap();
    let ran = running.wait();
    server.wait().unwrap();
    let summary = ran.summary();
    let found = &summary["bottleneck"];
    assert_eq!(found["finding"], "server_crashed", "{found:#}\n{ran}");
    let title = format!("{name} (PID {pid}) ended under the load, by signal 9 (SIGKILL)");
    assert_eq!(found["title"], title.as_str(), "{found:#}\n{ran}");
    // Who sent it left no trace.
    let change = found["change"].as_str().unwrap_or_default();
    assert!(change.starts_with("Find out who killed it at second "), "{change}");
    let ended = summary["hosts"][0]["ended"].as_array().map_or(0, Vec::len);
    assert_eq!(ended, 1, "throng's own FFmpeg is none of the server's\n{ran}");
}

/// 25 s: a program that is called as the server comes and goes beside the seconds in which that is
/// stopped.
#[test]
fn a_short_job_beside_a_bad_second_is_no_crash() {
    let (ran, ()) = valid(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("throng-e2e-job");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut long = Command::new(&program).arg("60").spawn().unwrap();
        let stage = Stage::start(None, "127.0.0.1:0", &[]);
        let watch = ["--watch", "process=throng-e2e-job"];
        let view = ["view", &stage.target(), "-n", "6", "--for", "20s", watch[0], watch[1]];
        let mut running = Running::start(None, &view);
        running.when_playing(6);
        std::thread::sleep(Duration::from_secs(4));
        let mut short = Command::new(&program).arg("1").spawn().unwrap();
        stop(&stage, Duration::from_secs(6));
        short.wait().unwrap();
        let ran = running.wait();
        long.kill().unwrap();
        long.wait().unwrap();
        (ran, ())
    });
    let summary = ran.summary();
    assert_ne!(summary["bottleneck"]["finding"], "server_crashed", "{ran}");
    assert_eq!(
        summary["hosts"][0]["ended"][0]["name"], "throng-e2e-job",
        "the end was seen\n{ran}"
    );
}

/// 12 s: stopped, as by Ctrl-Z in a shell, the generator serves nobody.
#[test]
fn a_generator_that_did_not_run_for_three_seconds_of_ten_was_the_limit() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let view = ["view", &stage.target(), "-n", "2", "--for", "10s"];
    let mut running = Running::start(None, &view);
    running.when_playing(2);
    running.signal("STOP");
    std::thread::sleep(Duration::from_secs(3));
    running.signal("CONT");
    let ran = running.wait();
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stdout.contains("did not run for up to 3."), "{ran}");
    assert_eq!(ran.summary()["outcome"], "invalid", "{ran}");
}

#[test]
fn a_clean_run_explains_nothing() {
    // A key frame each second: a viewer waits for one for up to a second after its join.
    let (ran, ()) = valid(|| {
        let stage = Stage::start(None, "127.0.0.1:0", &[]);
        let view = ["view", &stage.target(), "-n", "6", "--every", "700ms", "--for", "12s"];
        (Running::start(None, &view).wait(), ())
    });
    let ran = ran.expect_code(0);
    assert!(ran.summary()["bottleneck"].is_null(), "{ran}");
    assert!(ran.stdout.starts_with("6 viewers played cleanly for 12 s"), "{ran}");
}
