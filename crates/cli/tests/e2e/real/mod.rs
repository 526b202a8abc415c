//! Real servers of other projects, by each protocol that they and throng speak: frames against
//! ffprobe, bytes against the server's own counters, and that nothing is said to limit a server
//! that three viewers do not burden.
//!
//! What was seen is the table of docs/servers.md, which these tests check, and write where
//! `THRONG_WRITE_DOCS` is set.

mod galene;
mod go2rtc;
mod limits;
mod live555;
mod mediamtx;
mod oven_media_engine;
mod publishing;
mod srs;
mod table;

use std::time::{Duration, Instant};

use serde_json::Value;
use throng_sim::namespace::Namespace;
use throng_sim::real::{RealServer, is_installed};
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::throng::{Ran, Running, figure, valid};
use table::Row;

/// Viewers of each protocol.
const USERS: u32 = 3;
/// How far a frame rate or a count of bytes may be from another program's.
const NEAR: f64 = 0.05;
/// Servers count anew every few seconds.
const COUNTED_WITHIN: Duration = Duration::from_secs(15);

/// Whether the server can run here; otherwise the test is skipped.
fn can_run(program: &str) -> bool {
    requires_root() && is_installed(program)
}

/// How the viewers of a protocol are run.
struct View<'t> {
    /// As the table names it.
    protocol: &'t str,
    url: String,
    /// `--for`, such as `6s`.
    time: &'t str,
    /// More of the command line.
    more: Vec<String>,
}

impl<'t> View<'t> {
    fn of(protocol: &'t str, url: String) -> Self {
        Self { protocol, url, time: "6s", more: Vec::new() }
    }

    /// A live stream of segments needs some seconds until it is smooth.
    fn of_segments(protocol: &'t str, url: String) -> Self {
        Self { time: "10s", ..Self::of(protocol, url) }
    }

    fn with(mut self, more: &[&str]) -> Self {
        self.more.extend(more.iter().map(|&word| word.to_owned()));
        self
    }

    /// Watches the server meanwhile.
    fn watching(self, server: &RealServer<'_>) -> Self {
        self.with(&["--watch", &format!("pid={}", server.pid())])
    }

    /// Starts the viewers.
    fn start(&self, namespace: &Namespace) -> Running {
        let users = USERS.to_string();
        let mut arguments = vec!["view", &self.url, "-n", &users, "--every", "100ms"];
        arguments.extend(["--for", self.time]);
        arguments.extend(self.more.iter().map(String::as_str));
        Running::start(Some(namespace), &arguments)
    }

    /// All play to the end, at the frame rate of the source, and nothing limits the server.
    fn plays(&self, namespace: &Namespace, source_fps: f64) -> Seen {
        let (ran, ()) = valid(|| (self.start(namespace).wait(), ()));
        self.played(ran, source_fps)
    }

    /// The same, and the server's own counter `sent` of bytes grows by what the viewers received.
    #[track_caller]
    fn plays_as_counted(
        &self,
        namespace: &Namespace,
        source_fps: f64,
        sent: impl Fn() -> f64,
    ) -> Row {
        let (ran, before) = valid(|| {
            let before = sent();
            (self.start(namespace).wait(), before)
        });
        self.played(ran, source_fps).counted_by(|| sent() - before)
    }

    /// The same of counters that are gone with their viewers: they grow by what is received while
    /// the viewers are there.
    #[track_caller]
    fn plays_as_they_grow(
        &self,
        namespace: &Namespace,
        source_fps: f64,
        sent: impl Fn() -> f64,
    ) -> Row {
        let (ran, counted_bps) = valid(|| {
            let mut running = self.start(namespace);
            running.when_playing(USERS);
            let (began, before) = (Instant::now(), sent());
            std::thread::sleep(Duration::from_secs(3));
            let counted_bps = (sent() - before) * 8.0 / began.elapsed().as_secs_f64();
            (running.wait(), counted_bps)
        });
        let mut seen = self.played(ran, source_fps);
        let received_bps = figure(&seen.ran.summary(), "received_bps");
        let ratio = counted_bps / received_bps;
        // Some of what is on the wire is headers.
        let is_near = (0.85..1.0 + NEAR).contains(&ratio);
        assert!(is_near, "{}: {counted_bps} of {received_bps}\n{}", self.protocol, seen.ran);
        seen.row.is_counted = true;
        seen.row
    }

    #[track_caller]
    fn played(&self, ran: Ran, source_fps: f64) -> Seen {
        let (seen, protocol) = (self.passed_on(ran, source_fps), self.protocol);
        let (ran, summary) = (&seen.ran, seen.ran.summary());
        assert!(summary["bottleneck"].is_null(), "{protocol}: nothing limits it\n{ran}");
        seen
    }

    /// All frames of the source are played. Whether they come as in a call is its publisher's
    /// matter.
    #[track_caller]
    fn passed_on(&self, ran: Ran, source_fps: f64) -> Seen {
        let (ran, protocol) = (ran.expect_code(0), self.protocol);
        let summary = ran.summary();
        assert_eq!(figure(&summary, "participants.failed"), 0.0, "{protocol}\n{ran}");
        assert_eq!(figure(&summary, "participants.playing"), f64::from(USERS), "{protocol}\n{ran}");
        let fps = figure(&summary, "video.fps_p50");
        let is_near = (fps / source_fps - 1.0).abs() <= NEAR;
        assert!(is_near, "{protocol}: {fps} fps, {source_fps} by ffprobe\n{ran}");
        if self.more.iter().any(|word| word == "--watch") {
            assert!(figure(&summary, "hosts.0.rss_bytes_max") > 1e6, "{protocol}\n{ran}");
        }
        let bytes = Bytes::of(&ran, &summary);
        let row = Row::of(protocol, &summary, source_fps);
        Seen { ran, bytes, row }
    }
}

/// What the viewers of a protocol saw.
struct Seen {
    ran: Ran,
    bytes: Bytes,
    row: Row,
}

impl Seen {
    /// The server's own counter says that it sent what the viewers received.
    #[track_caller]
    fn counted_by(mut self, sent_bytes: impl Fn() -> f64) -> Row {
        let until = Instant::now() + COUNTED_WITHIN;
        let mut counted = sent_bytes();
        while !self.bytes.agree_with(counted) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(500));
            counted = sent_bytes();
        }
        assert!(
            self.bytes.agree_with(counted),
            "{}: the server counts {counted} bytes, {:?}\n{}",
            self.row.protocol,
            self.bytes,
            self.ran
        );
        self.row.is_counted = true;
        self.row
    }
}

/// Bytes that the viewers of a run received.
#[derive(Debug)]
struct Bytes {
    /// Media alone.
    least: f64,
    /// With all headers, and what was asked for beside the media.
    most: f64,
}

impl Bytes {
    fn of(ran: &Ran, summary: &Value) -> Self {
        if summary["playback"].is_null() {
            let tracks = RunFolder::read(ran.folder()).unwrap().tracks;
            let sum = |of: fn(&throng_observation::TrackCounters) -> u64| {
                tracks.iter().map(|track| of(&track.counters)).sum::<u64>() as f64
            };
            return Self { least: sum(|all| all.payload_bytes), most: sum(|all| all.wire_bytes) };
        }
        let media = figure(summary, "playback.media_bytes");
        Self { least: media, most: media + figure(summary, "playback.other_bytes") }
    }

    /// Servers differ in which headers they count, and what is on its way at the end is counted by
    /// one side only.
    fn agree_with(&self, counted: f64) -> bool {
        (self.least * (1.0 - NEAR)..=self.most * (1.0 + 2.0 * NEAR)).contains(&counted)
    }
}

/// Frames per second of the video at `url`, by the median distance of the timestamps that ffprobe
/// reads in four seconds of it: a busy machine may have skipped some.
fn source_fps(namespace: &Namespace, url: &str) -> f64 {
    let mut command = namespace.command("ffprobe");
    command.args(["-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time"]);
    command.args(["-of", "csv=p=0", "-read_intervals", "%+4"]);
    if url.starts_with("rtsp") {
        command.args(["-rtsp_transport", "tcp"]);
    }
    let output = command.arg(url).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let times = text.lines().filter_map(|line| line.trim_end_matches(',').parse::<f64>().ok());
    let mut times: Vec<f64> = times.collect();
    assert!(times.len() > 20, "{url}: {} frames: {output:?}", times.len());
    times.sort_unstable_by(f64::total_cmp);
    let mut apart: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    apart.sort_unstable_by(f64::total_cmp);
    1.0 / apart[apart.len() / 2]
}

/// `--set target.rtsp_transport=…`.
fn by(transport: &str) -> String {
    format!("target.rtsp_transport={transport}")
}
