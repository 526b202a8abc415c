//! The tap: the frames of a real server through a real decoder, compared with the meters.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_sim::janus::{Janus, ROOM};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::throng::{Ran, Running, Stage, THRONG, figure, run, valid};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// The tapped tracks of a run's summary.
fn decoded(ran: &Ran) -> Vec<Value> {
    ran.summary()["decoded"].as_array().cloned().unwrap_or_else(|| panic!("{ran}"))
}

/// True for each track of the test card on a clean line: the numbers advance, and the meters were
/// right.
fn is_the_truth(track: &Value, fps: f64, ran: &Ran) {
    let of = |key: &str| figure(track, key);
    assert!((of("fps") - fps).abs() < fps * 0.04, "{} fps of {fps}: {ran}", of("fps"));
    assert!((of("fps") - of("fps_meter")).abs() < fps * 0.05, "{ran}");
    assert_eq!((of("frames_dropped"), of("breaks")), (0.0, 0.0), "{track:#}");
    // No frame is lost between complete frames and decoded pictures.
    assert_eq!(of("pictures"), of("frames_fed"), "{track:#}");
    assert_eq!(of("numbers_read"), of("pictures"), "{track:#}");
    // A sender that gets a key frame request jumps ahead in the loop; otherwise numbers are
    // consecutive.
    assert!(of("numbers_next") >= of("pictures") * 0.97, "{track:#}");
    assert_eq!(of("numbers_repeated"), 0.0, "{track:#}");
}

#[test]
fn decoded_pictures_of_a_janus_room_agree_with_the_meters() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("tap", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let url = format!("janus+ws://{ADDRESS}:8188/videoroom/{ROOM}");
    let view = ["view", &url, "-n", "3", "--every", "300ms", "--for", "14s", "--tap", "1"];
    let more = ["--set", "tap.ssim=true", "--set", "tap.keep=true"];
    let (ran, ()) =
        valid(|| (Running::start(Some(&namespace), &[&view[..], &more].concat()).wait(), ()));
    let ran = ran.expect_code(0);
    let tracks = decoded(&ran);
    assert_eq!(tracks.len(), 2, "the first participant sees the two others: {ran}");
    for track in &tracks {
        assert_eq!((figure(track, "width"), figure(track, "height")), (426.0, 240.0));
        is_the_truth(track, 20.0, &ran);
        assert!(figure(track, "ssim_mean") > 0.999, "forwarded, not transcoded: {track:#}");
        assert!(track["from"].as_str().unwrap().starts_with("throng-"), "{track:#}");
    }
    assert!(ran.stdout.contains("fps decoded (meter"), "{ran}");
    let kept: Vec<_> = std::fs::read_dir(ran.folder().join("tap")).unwrap().collect();
    assert_eq!(kept.len(), 2);
    assert!(!ran.folder().join("tap.sock").exists());

    // The kept streams can be decoded again, any number of times.
    let folder = ran.folder();
    let again = Command::new(THRONG)
        .args([
            "decode",
            "--run",
            folder.to_str().unwrap(),
            "--streams",
            "3",
            "--for",
            "2s",
            "--json",
        ])
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&again.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&again.stderr)));
    assert_eq!(figure(&json, "rows.0.streams"), 3.0, "{json:#}");
    assert!(figure(&json, "rows.0.pictures") > 60.0, "{json:#}");
}

#[test]
fn a_tap_by_hand_attaches_to_a_run_in_progress() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = stage.target();
    let view =
        ["view", &target, "-n", "3", "--for", "12s", "--tap", "3", "--set", "tap.decode=false"];
    let (ran, tapped) = valid(|| {
        let running = Running::start(None, &view);
        let mut command = Command::new(THRONG);
        command.arg("tap").arg(running.run_folder()).args(["--participants", "2", "--decode"]);
        let until = Instant::now() + Duration::from_secs(10);
        while !running.run_folder().join("tap.sock").exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let tap = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let ran = running.wait();
        (ran, tap.wait_with_output().unwrap())
    });
    let said = String::from_utf8_lossy(&tapped.stderr);
    assert_eq!(tapped.status.code(), Some(0), "{said}");
    assert!(
        said.contains("tap: 2 streams") && said.contains("1 more streams were not decoded"),
        "{said}"
    );
    // The reader that was started by hand makes the report again.
    let run = RunFolder::read(ran.folder()).unwrap();
    assert!(run.decoded.iter().map(|row| row.pictures).sum::<u64>() > 200, "{said}");
    let tracks = decoded(&ran);
    assert_eq!(tracks.len(), 2, "{ran}");
    is_the_truth(&tracks[0], 30.0, &ran);
}

/// The PID of the reader that a run started, once it keeps frames from the ring.
fn reader_of(folder: &Path) -> String {
    let given_up_at = Instant::now() + Duration::from_secs(30);
    while std::fs::read_dir(folder.join("tap")).map_or(0, Iterator::count) == 0 {
        assert!(Instant::now() < given_up_at, "the reader keeps nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    let its_own = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments: Vec<_> = line.split(|byte| *byte == 0).collect();
        arguments.contains(&folder.as_os_str().as_encoded_bytes())
            && arguments.contains(&&b"--of-run"[..])
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let pids = processes.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
        .find(its_own)
        .expect("a reader")
}

/// 25 s: after a run of 14 s the reader is waited for until the time-out of 10 s.
#[test]
fn a_reader_that_stands_still_costs_its_frames_and_not_the_run() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = stage.target();
    // No decoders, which would use the CPU that the crowd needs; enough frames to fill the ring
    // within seconds.
    let view = ["view", &target, "-n", "20", "--every", "20ms", "--for", "14s", "--tap", "20"];
    let more = ["--set", "tap.decode=false", "--set", "tap.keep=true"];
    let (ran, ()) = valid(|| {
        let running = Running::start(None, &[&view[..], &more].concat());
        let reader = reader_of(&running.run_folder());
        assert!(Command::new("kill").args(["-STOP", &reader]).status().unwrap().success());
        (running.wait(), ())
    });
    let ran = ran.expect_code(0);
    assert!(ran.stderr.contains("did not fit, or came before the key frame after one"), "{ran}");
    assert!(ran.stderr.contains("the tap's reader did not end"), "{ran}");
    let tracks = decoded(&ran);
    let dropped: f64 = tracks.iter().map(|track| figure(track, "frames_dropped")).sum();
    assert!(dropped > 1_000.0, "{dropped} of some seconds with 600 frames each: {ran}");
    let reported: f64 =
        ran.stderr.lines().find_map(|line| line.strip_prefix("tap: ")).map_or(0.0, |line| {
            line.split(' ')
                .next()
                .and_then(|frames| frames.parse().ok())
                .unwrap_or_else(|| panic!("{line}"))
        });
    assert_eq!(reported, dropped, "{ran}");
}

#[test]
fn a_tap_without_a_run_or_a_decoder_says_what_to_do() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = stage.target();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let ran = Command::new(THRONG)
        .args(["view", &target, "--for", "2s", "--tap", "1", "--output", path.to_str().unwrap()])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("apt-get install ffmpeg"), "{said}");

    let gone = run(None, &["view", &target, "--for", "2s"]);
    let folder = gone.folder();
    let mut command = Command::new(THRONG);
    command.arg("tap").arg(&folder);
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("no run with a tap is in progress in"), "{said}");
}
