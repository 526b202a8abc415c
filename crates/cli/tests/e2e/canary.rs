//! Real browsers among the crowd: their figures are reported next to those of the virtual
//! participants, and no process of theirs is left running.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_observation::MediaKind;
use throng_sim::janus::{Janus, ROOM};
use throng_sim::link::{Conditions, Link};
use throng_sim::livekit::{KEY, LiveKit, PORT, SECRET};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::conference::is_left_clean;
use crate::throng::{Ran, Running, Stage, figure, plain, throng_link, valid};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 82, 0, 1);
/// The two ends of a link.
const HERE: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 2);

/// The PIDs and command lines of processes whose command line or environment contains `text`: a
/// browser's children inherit one of the two.
pub(crate) fn processes(text: &str) -> Vec<(String, String)> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let of = |file| {
            std::fs::read(entry.path().join(file))
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let command = of("cmdline").ok()?;
        let is_ours =
            command.contains(text) || of("environ").is_ok_and(|environ| environ.contains(text));
        is_ours
            .then(|| (entry.file_name().to_string_lossy().into_owned(), command.replace('\0', " ")))
    });
    all.collect()
}

fn processes_with(text: &str) -> Vec<String> {
    processes(text).into_iter().map(|(_, command)| command).collect()
}

/// A browser of this test, with a name that distinguishes its processes from those of other tests.
struct OwnBrowser {
    folder: tempfile::TempDir,
}

impl OwnBrowser {
    fn new() -> Self {
        let own = Self { folder: tempfile::tempdir().unwrap() };
        let script = format!(
            "#!/bin/sh\nexport CANARY_MARK={0}\necho \"$TMPDIR\" >'{1}'\n\
             exec chromium \"$@\" --user-agent={0}\n",
            own.mark(),
            own.temporary().display()
        );
        std::fs::write(own.program(), script).unwrap();
        let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(own.program(), runs).unwrap();
        own
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("browser")
    }

    /// The file that names its folder for temporary files.
    fn temporary(&self) -> PathBuf {
        self.folder.path().join("temporary")
    }

    /// Whether its temporary files are in a folder of its own, which went with it.
    fn left_nothing(&self) -> bool {
        let folder = std::fs::read_to_string(self.temporary()).unwrap();
        folder.contains("throng-browser-") && !Path::new(folder.trim()).exists()
    }

    fn mark(&self) -> String {
        self.folder.path().display().to_string().replace(['/', '.'], "-")
    }

    fn set(&self) -> String {
        format!("canary.browser={}", self.program().display())
    }

    /// Waits until none of its processes exists.
    fn is_gone(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        while !processes_with(&self.mark()).is_empty() {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        true
    }

    fn is_up(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        while processes_with(&self.mark()).is_empty() {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }
}

/// A figure of browsers and of virtual participants.
fn agreed(summary: &Value, name: &str) -> [Option<f64>; 2] {
    let rows = summary["canary"]["agreement"].as_array().expect("the agreement table");
    let row = rows.iter().find(|row| row["figure"] == name).unwrap_or_else(|| panic!("no {name}"));
    [row["browser"].as_f64(), row["virtual"].as_f64()]
}

/// The browser connected, decoded, and agrees with the crowd; the report has its tables and texts.
fn agrees(ran: &Ran) {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "canary.playing"), 1.0, "{ran}");
    assert_eq!(figure(&summary, "canary.failed"), 0.0, "{ran}");
    assert!(figure(&summary, "canary.seconds") >= 3.0, "{ran}");
    assert!(figure(&summary, "canary.cpu_cores") > 0.0, "{ran}");
    let [Some(browser), Some(crowd)] = agreed(&summary, "fps") else { panic!("{ran}") };
    assert!((browser / crowd - 1.0).abs() < 0.15, "{browser} against {crowd} fps\n{ran}");
    for name in
        ["loss_ratio", "freeze_ratio", "track_bps", "jitter_ms", "connect_ms", "first_frame_ms"]
    {
        assert!(agreed(&summary, name).iter().all(Option::is_some), "{name}\n{ran}");
    }
    assert_ne!(summary["canary"]["judgement"], "disputed", "{ran}");
    assert!(ran.stdout.contains("1 of 1 browsers showed a picture"), "{ran}");
    let page = std::fs::read_to_string(ran.folder().join("report.html")).unwrap();
    assert!(page.contains("Browsers compared with the crowd"));
    let run = RunFolder::read(ran.folder()).unwrap();
    let decoded: u64 = run.canary.seconds.iter().map(|row| row.frames_decoded).sum();
    assert!(decoded > 50, "{decoded} frames\n{ran}");
}

fn measured(namespace: Option<&Namespace>, url: &str, browser: &OwnBrowser, more: &[&str]) -> Ran {
    let set = browser.set();
    let view = [
        "view",
        url,
        "--every",
        "200ms",
        "--warm-up",
        "4s",
        "--set",
        "canary.browsers=1",
        "--set",
        &set,
    ];
    let (ran, ()) = valid(|| (Running::start(namespace, &[&view[..], more].concat()).wait(), ()));
    let ran = ran.expect_code(0);
    assert!(browser.is_gone(Duration::from_secs(5)), "{:?}", processes_with(&browser.mark()));
    assert!(browser.left_nothing());
    ran
}

#[test]
fn a_browser_watches_the_stage_among_viewers_and_agrees_with_them() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let browser = OwnBrowser::new();
    let ran = measured(None, &stage.target(), &browser, &["-n", "3", "--for", "12s"]);
    agrees(&ran);
}

#[test]
fn a_browser_in_a_conference_on_janus_sees_everybody_and_is_seen() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("canary", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let url = format!("janus+ws://{ADDRESS}:8188/videoroom/{ROOM}");
    let browser = OwnBrowser::new();
    let ran = measured(Some(&namespace), &url, &browser, &["-n", "2", "--for", "13s"]);
    agrees(&ran);
    assert_seen_by(&ran, 2);
    assert!(is_left_clean(&janus, Duration::from_secs(5)), "{:?}", janus.open_ends());
}

/// `users` participants received the browser's camera, and it received the video of as many.
fn assert_seen_by(ran: &Ran, users: usize) {
    let run = RunFolder::read(ran.folder()).unwrap();
    let seen_by = run.tracks.iter().filter(|track| {
        track.from.as_deref() == Some("canary-0")
            && track.kind == MediaKind::Video
            && track.counters.frames_decodable > 20
    });
    assert_eq!(seen_by.count(), users, "{ran}");
    let tracks = run.canary.seconds.iter().map(|row| row.video_tracks).max();
    assert_eq!(tracks, u32::try_from(users).ok(), "{ran}");
}

#[test]
fn a_browser_watches_a_mountpoint_of_janus() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("canary", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let _feed = janus.feed().unwrap();
    let url = format!("janus+ws://{ADDRESS}:8188/streaming/1");
    let ran = measured(Some(&namespace), &url, &OwnBrowser::new(), &["-n", "2", "--for", "11s"]);
    agrees(&ran);
}

/// Twenty seconds: a verdict on a browser needs ten in which it and the crowd play.
#[test]
fn a_browser_in_a_meeting_on_livekit_sees_everybody_and_is_seen() {
    if !requires_root() || !LiveKit::is_installed() {
        return;
    }
    let namespace = Namespace::with_veth("canary", ADDRESS).unwrap();
    let server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let url = format!("livekit+ws://{ADDRESS}:{PORT}/canary");
    let access = [format!("target.api_key={KEY}"), format!("target.api_secret={SECRET}")];
    let more = ["-n", "2", "--for", "13s", "--set", &access[0], "--set", &access[1]];
    let ran = measured(Some(&namespace), &url, &OwnBrowser::new(), &more);
    // The browser has signed off: the server keeps who only disappears for some time.
    assert_eq!(server.participants("canary").unwrap(), Vec::<Value>::new(), "{ran}");
    agrees(&ran);
    assert_seen_by(&ran, 2);
}

#[test]
fn browsers_end_with_a_run_that_is_killed_and_one_that_dies_ends_no_run() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let browser = OwnBrowser::new();
    let (target, set) = (stage.target(), browser.set());
    let view = ["view", &target, "-n", "1", "--set", "canary.browsers=1", "--set", &set, "--for"];
    let running = Running::start(None, &[&view[..], &["60s"]].concat());
    assert!(browser.is_up(Duration::from_secs(20)));
    running.signal("KILL");
    assert!(browser.is_gone(Duration::from_secs(10)), "{:?}", processes_with(&browser.mark()));
    drop(running.wait());

    // A program that is not a browser simulates one that dies at once.
    let view = ["view", &target, "-n", "1", "--set", "canary.browsers=1", "--for", "3s"];
    let more = ["--set", "canary.browser=/bin/false"];
    let (ran, ()) = valid(|| (Running::start(None, &[&view[..], &more].concat()).wait(), ()));
    let ran = ran.expect_code(0);
    assert_eq!(figure(&ran.summary(), "canary.failed"), 1.0, "{ran}");
    assert_eq!(figure(&ran.summary(), "events.canary_failed"), 1.0, "{ran}");
    assert!(ran.stdout.contains("browser 0 failed: the browser ended"), "{ran}");
    assert_eq!(figure(&ran.summary(), "participants.playing"), 1.0, "{ran}");
    // The failure is its own, and is no measurement of the server.
    assert_eq!(ran.summary()["canary"]["judgement"], "cannot_tell", "{ran}");
}

/// A server that serves three viewers well; the browser joins after them.
fn with_three_viewers(stage: &Stage, browser: &OwnBrowser, duration: &str) -> Ran {
    let view = [
        "view",
        &stage.target(),
        "-n",
        "3",
        "--every",
        "100ms",
        "--warm-up",
        "4s",
        "--for",
        duration,
    ];
    let more = ["--set", "canary.browsers=1", "--set", "canary.at=4s", "--set", &browser.set()];
    valid(|| (Running::start(None, &[&view[..], &more].concat()).wait(), ())).0
}

/// 20 s: one run, which the browser joins at 4 s.
#[test]
fn a_crowd_that_plays_cleanly_with_a_browser_that_does_not_is_disputed() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--stutters-beyond", "3"]);
    let ran = with_three_viewers(&stage, &OwnBrowser::new(), "20s").expect_code(5);
    let summary = ran.summary();
    assert_eq!(summary["outcome"], "disputed", "{ran}");
    assert_eq!(summary["canary"]["judgement"], "disputed", "{ran}");
    assert!(ran.stdout.starts_with("Disputed by a browser: "), "{ran}");
    assert!(ran.stdout.contains("the crowd alone: 3 viewers played cleanly"), "{ran}");
    let [Some(frozen), Some(crowd)] = agreed(&summary, "freeze_ratio") else { panic!("{ran}") };
    assert!(frozen > 0.3 && crowd < 0.01, "{frozen} and {crowd}\n{ran}");
}

/// A browser without CPU for a while freezes; the server is not the cause.
/// Half a minute: a run of 26 s, in 5 s of which the browser is stopped.
#[test]
fn a_browser_that_was_stopped_for_a_while_disputes_nothing() {
    let (stage, browser) = (Stage::start(None, "127.0.0.1:0", &[]), OwnBrowser::new());
    let view =
        ["view", &stage.target(), "-n", "3", "--every", "100ms", "--warm-up", "3s", "--for", "26s"];
    let more = ["--set", "canary.browsers=1", "--set", &browser.set()];
    let (ran, ()) = valid(|| {
        let mut running = Running::start(None, &[&view[..], &more].concat());
        running.when_playing(3);
        std::thread::sleep(Duration::from_secs(6));
        signal_all(&browser.mark(), "STOP");
        std::thread::sleep(Duration::from_secs(5));
        signal_all(&browser.mark(), "CONT");
        (running.wait(), ())
    });
    let ran = ran.expect_code(0);
    let canary = &ran.summary()["canary"];
    assert!(canary["seconds_starved"].as_f64() >= Some(1.0), "{ran}");
    assert_ne!(canary["judgement"], "disputed", "{ran}");
    assert!(ran.stdout.starts_with("3 viewers played cleanly"), "{ran}");
}

/// Sends a signal to all processes whose command line or environment holds `text`.
fn signal_all(text: &str, signal: &str) {
    for (pid, _) in processes(text) {
        let _ = std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status();
    }
}

/// 25 s: a browser starts, and a search holds its only load twice.
#[test]
fn a_browser_disputes_a_search_too() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--stutters-beyond", "3"]);
    let browser = OwnBrowser::new();
    let find =
        ["find", &stage.target(), "--start", "3", "--ceiling", "3", "--budget", "1m", "--quiet"];
    let more = ["--set", "canary.browsers=1", "--set", "canary.at=6s", "--set", &browser.set()];
    let (ran, ()) = valid(|| (Running::start(None, &[&find[..], &more].concat()).wait(), ()));
    let ran = ran.expect_code(5);
    assert!(ran.stdout.starts_with("Disputed by a browser: "), "{ran}");
    assert!(ran.stdout.contains("the crowd alone: at least 3 viewers"), "{ran}");
    assert!(browser.is_gone(Duration::from_secs(5)), "{:?}", processes_with(&browser.mark()));
}

/// Loss of a browser and two viewers behind a link that loses 3 of 100 packets, and their tracks'
/// bit rates.
fn behind_a_lossy_link(stage_args: &[&str]) -> (Ran, [f64; 2], [f64; 2]) {
    let (here, there) = (Namespace::new("chere").unwrap(), Namespace::new("cthere").unwrap());
    let lossy = Conditions { loss_percent: 3.0, ..Conditions::delay(10.0) };
    let _link = Link::start(&throng_link(), (&here, HERE), (&there, THERE), lossy).unwrap();
    let args = [&["--listen-any"], stage_args].concat();
    let stage = Stage::start(Some(&there), &format!("{THERE}:7080"), &args);
    let more = ["-n", "2", "--for", "34s", "--allow-target", "10.83.0.0/24"];
    // Met by what the loss costs, whichever stream the repeats come on.
    let more = [&more[..], &["--objective", "video.repeats < 10%"]].concat();
    let ran = measured(Some(&here), &stage.target(), &OwnBrowser::new(), &more);
    let repeats = figure(&ran.summary(), "objectives.0.measured");
    assert!(repeats > 0.015, "{repeats} of the payload came again\n{ran}");
    let both = |name| {
        agreed(&ran.summary(), name).map(|figure| figure.unwrap_or_else(|| panic!("{name}\n{ran}")))
    };
    let (lost, rate) = (both("loss_ratio"), both("track_bps"));
    (ran, lost, rate)
}

/// 35 s: a run of 34 s, in which enough packets are lost to compare.
#[test]
fn loss_and_bit_rate_are_a_browsers_where_repeats_have_a_stream_of_their_own() {
    if !requires_root() {
        return;
    }
    let (ran, [lost, ours], [rate, our_rate]) = behind_a_lossy_link(&[]);
    // W3C packetsLost: a packet that RTX repairs stays lost.
    assert!(
        lost > 0.015 && ours > 0.015 && (lost - ours).abs() < 0.015,
        "{lost} against {ours}\n{ran}"
    );
    assert!((rate / our_rate - 1.0).abs() < 0.015, "{rate} against {our_rate} bit/s\n{ran}");
}

/// 35 s: a run of 34 s, in which enough packets are lost to compare.
#[test]
fn loss_and_bit_rate_are_a_browsers_where_repeats_come_on_the_streams_own_ssrc() {
    if !requires_root() {
        return;
    }
    let (ran, [lost, ours], [rate, our_rate]) = behind_a_lossy_link(&["--no-rtx"]);
    // RFC 3550: a packet that arrives on that SSRC, first or again, is not lost.
    assert!(lost < 0.01 && ours < 0.01, "{lost} against {ours}\n{ran}");
    assert!((rate / our_rate - 1.0).abs() < 0.015, "{rate} against {our_rate} bit/s\n{ran}");
    let recovered = figure(&ran.summary(), "video.packets_recovered");
    assert!(recovered > 50.0, "{recovered} were lost on the way and came again\n{ran}");
}

#[test]
fn where_no_browser_is_the_run_does_not_begin_and_says_how_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml");
    let scenario = |more: &str| {
        let text = format!(
            "[target]\nurl = \"whep+http://127.0.0.1:9/whep\"\n[crowd]\nsize = 1\n[run]\nduration = \"5s\"\n\
             [canary]\nbrowsers = 1\n{more}"
        );
        std::fs::write(&file, text).unwrap();
    };
    let path = |path: &Path| path.display().to_string();
    scenario("browser = \"/nowhere/chrome\"\n");
    let run = plain(&["run", &path(&file), "--output", &path(&folder.path().join("run"))]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(
        said.contains("/nowhere/chrome") && said.contains("apt-get install chromium"),
        "{said}"
    );
    assert!(!folder.path().join("run").exists(), "nothing was begun");
    scenario("");
    let check = plain(&["check", &path(&file)]);
    let said = String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success() && said.contains("canary      1 browser, at 0 s"), "{said}");
}

mod long {
    use super::*;

    #[test]
    #[ignore = "a browser on half the machine: scripts/proof.sh long, make proof"]
    fn a_browser_without_a_picture_in_a_crowd_that_has_one_disputes_the_answer() {
        let stage = Stage::start(None, "127.0.0.1:0", &["--pictures-max", "3"]);
        let ran = with_three_viewers(&stage, &OwnBrowser::new(), "16s").expect_code(5);
        let expect = "Disputed by a browser: 1 of 1 browsers failed (no picture arrived), 0 of 3 of the crowd; the crowd alone: \
                      3 viewers played cleanly";
        assert!(ran.stdout.starts_with(expect), "{ran}");
    }
}
