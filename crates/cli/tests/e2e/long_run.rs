//! Reports of runs that lasted for hours, with many joins and leaves: their memory depends on what
//! they show only.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use throng_observation::run::{
    CohortId, CrowdRow, Ending, GeneratorRow, ParticipantId, ParticipantRow, Row, RunInfo,
    SeriesRow, SourceFps, TrackRow,
};
use throng_observation::{
    Codec, Distribution, ExperienceRow, Failure, FailureReason, MediaKind, OneWayDelay, Outcome,
    Phase, RunTime, SecondClosed, TrackCounters, TrackId,
};
use throng_scenario::Scenario;
use throng_store::{RunFolder, RunWriter};

use crate::throng::THRONG;

const SCENARIO: &str = "objectives = [\"video.loss < 1%\", \"connect p99 < 1s\", \"video.freeze p99 < 5%\"]\n\
                        [target]\nurl = \"whep+http://127.0.0.1/whep\"\n[crowd]\nsize = 50\n[run]\nwarm_up = \"10s\"\n";

/// The rows of a run, generated without playing it.
struct Day {
    seconds: i64,
    viewers: u32,
    joins_per_s: u32,
}

/// Distributions of a few shapes, as tracks and seconds have them.
struct Shapes(Vec<Distribution>);

impl Shapes {
    fn new(samples: u32) -> Self {
        let shape = |number: u32| {
            let mut all = Distribution::new();
            (0..samples)
                .for_each(|n| all.record(u64::from(3_000 + number * 97 + n * n * 31 % 24_000)));
            all
        };
        Self((0..16).map(shape).collect())
    }

    fn of(&self, number: i64) -> Distribution {
        self.0[number.rem_euclid(self.0.len() as i64) as usize].clone()
    }
}

impl Day {
    fn write(&self, folder: &Path) {
        let info = RunInfo {
            throng_version: "0.1.0".into(),
            scenario: SCENARIO.into(),
            target: "whep+http://127.0.0.1/whep".into(),
            cohorts: vec!["viewers".into()],
            planned_duration_us: self.seconds * 1_000_000,
            plan: Scenario::run_plan_of_stored(SCENARIO),
            ..RunInfo::default()
        };
        let mut writer = RunFolder::create(folder, &info).unwrap();
        let (of_seconds, of_tracks) = (Shapes::new(2_000), Shapes::new(150));
        for second in 0..self.seconds {
            self.second(&mut writer, second, &of_seconds);
            (0..self.joins_per_s).for_each(|nth| self.visit(&mut writer, second, nth, &of_tracks));
            if second % 30 == 29 {
                writer.commit().unwrap();
            }
        }
        assert_eq!(writer.rows_lost(), 0);
        writer.finish(Ending::Complete, RunTime(self.seconds * 1_000_000)).unwrap();
    }

    fn second(&self, writer: &mut RunWriter, second: i64, shapes: &Shapes) {
        let started = (second + 1) as u32 * self.joins_per_s;
        let there = started.min(self.viewers);
        let (intended, left) = (started, started - there);
        let row = CrowdRow { second, intended, started, left, ..CrowdRow::default() };
        writer.write(Row::Crowd(CrowdRow { connected: there, playing: there, ..row }));
        let bad = u32::from(second % 600 == 300);
        let experience =
            vec![ExperienceRow { second, users: there, bad, ..ExperienceRow::default() }];
        writer.write(Row::SecondClosed(SecondClosed {
            second,
            experience,
            is_generator_limited: false,
        }));
        let tracks = u64::from(there);
        let sources = SourceFps { tracks, sum_milli: tracks * 30_000 };
        for kind in [MediaKind::Video, MediaKind::Audio] {
            let is_video = kind == MediaKind::Video;
            writer.write(Row::Series(Box::new(SeriesRow {
                second,
                kind: Some(kind),
                tracks: there,
                tracks_below_source_fps: u64::from(bad),
                counters: counters(u64::from(there), i64::from(bad)),
                relative_delay_us: shapes.of(second),
                jitter_us: shapes.of(second + 5),
                fps_milli: if is_video { shapes.of(second / 3) } else { Distribution::new() },
                loss_ppm: shapes.of(second / 7),
                oven_rtc_tester_delay_us: shapes.of(second + 9),
                source_fps: if is_video { sources } else { SourceFps::default() },
                ..SeriesRow::default()
            })));
        }
        let process = GeneratorRow {
            second,
            rss_bytes: 100_000_000,
            cpu_us: 400_000,
            ..GeneratorRow::default()
        };
        let thread = |thread| GeneratorRow {
            second,
            thread: Some(thread),
            cpu_us: 200_000,
            ..GeneratorRow::default()
        };
        [process, thread(0), thread(1)]
            .into_iter()
            .for_each(|row| writer.write(Row::Generator(row)));
    }

    fn visit(&self, writer: &mut RunWriter, second: i64, nth: u32, shapes: &Shapes) {
        let who = second as u32 * self.joins_per_s + nth;
        let at = |ms: i64| RunTime(second * 1_000_000 + ms * 1_000);
        let fails = who % 1_000 == 77;
        let reached = [
            (Phase::Started, 1),
            (Phase::Resolved, 2),
            (Phase::Connected, 3),
            (Phase::Negotiated, 40),
        ];
        let came = [
            (Phase::IceConnected, 60),
            (Phase::DtlsConnected, 90),
            (Phase::FirstPacket, 120),
            (Phase::FirstFrame, 200 + i64::from(who % 97)),
        ];
        let came = came.into_iter().filter(|_| !fails);
        let stay_s = i64::from(self.viewers / self.joins_per_s.max(1));
        writer.write(Row::Participant(Box::new(ParticipantRow {
            participant: ParticipantId(who),
            cohort: CohortId(0),
            intended_at: at(0),
            reached: reached.into_iter().chain(came).map(|(phase, ms)| (phase, at(ms))).collect(),
            ended_at: Some(at(if fails { 9_000 } else { stay_s * 1_000 })),
            outcome: Some(if fails {
                Outcome::Failed(Failure::new(FailureReason::Ice, "no candidate pair worked"))
            } else {
                Outcome::Completed
            }),
            local_address: Some(format!("127.0.0.1:{}", 20_000 + who % 40_000)),
        })));
        for (track, kind, codec) in
            [(0, MediaKind::Video, Codec::Vp8), (1, MediaKind::Audio, Codec::Opus)]
        {
            if fails {
                continue;
            }
            let mut counters =
                counters(stay_s as u64, i64::from(who % 499 == 3) * i64::from(1 + who % 5));
            counters.freeze_us = u64::from(who % 997 == 5) * 700_000;
            writer.write(Row::Track(Box::new(TrackRow {
                participant: ParticipantId(who),
                track: TrackId(track),
                kind,
                codec,
                from: None,
                first_frame_at: Some(at(200)),
                counters,
                relative_delay_us: shapes.of(i64::from(who)),
                absolute_delay: OneWayDelay::default(),
                fps: (kind == MediaKind::Video).then_some(30.0),
                jitter_us: Some(900),
                oven_rtc_tester_delay_us: Some(200),
            })));
        }
    }
}

/// The counters of so many track-seconds.
fn counters(seconds: u64, packets_lost: i64) -> TrackCounters {
    TrackCounters {
        packets_original: seconds * 120,
        payload_bytes: seconds * 120 * 1_040,
        wire_bytes: seconds * 120 * 1_100,
        packets_lost,
        frames_complete: seconds * 30,
        frames_decodable: seconds * 30,
        active_us: seconds * 1_000_000,
        ..TrackCounters::default()
    }
}

/// What `throng report` used for it.
struct Took {
    peak_mb: u64,
    time: Duration,
}

fn report(folder: &Path, further: &[&str]) -> Took {
    let began = Instant::now();
    let mut command = Command::new(THRONG);
    command.arg("report").arg(folder).args(further).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let ended = loop {
        // The kernel drops the memory figures of an ended process: the last reading is nearly the
        // peak.
        let seen = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = seen.lines().find_map(|line| {
            line.strip_prefix("VmHWM:")?.trim_end_matches(" kB").trim().parse().ok()
        });
        peak_kib = peak.unwrap_or(peak_kib).max(peak_kib);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(matches!(ended.code(), Some(0 | 1)), "{ended:?}");
    Took { peak_mb: peak_kib / 1024, time: began.elapsed() }
}

/// The report of a day: each figure equals that computed from all rows together, where these fit
/// into memory.
#[expect(clippy::print_stdout, reason = "the figures of docs/measurements/report.md")]
fn print_result(day: &Day, peak_mb_max: u64, is_compared: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let began = Instant::now();
    day.write(&path);
    let (visits, wrote) = (day.seconds * i64::from(day.joins_per_s), began.elapsed());
    let size = std::fs::metadata(path.join("run.db")).unwrap().len();
    let plain = report(&path, &[]);
    println!(
        "{} h × {} viewers, {visits} visits, {} MB written in {} s: reported in {} s, peak RSS {} MB",
        day.seconds / 3600,
        day.viewers,
        size / 1_000_000,
        wrote.as_secs(),
        plain.time.as_secs(),
        plain.peak_mb
    );
    assert!(plain.peak_mb <= peak_mb_max, "{} MB of {peak_mb_max}", plain.peak_mb);
    let all = report(&path, &["--csv", "--details"]);
    println!(
        "with all tables and details: in {} s, peak RSS {} MB",
        all.time.as_secs(),
        all.peak_mb
    );
    assert!(all.peak_mb <= peak_mb_max, "{} MB of {peak_mb_max}", all.peak_mb);
    let lines = |name: &str| {
        use std::io::BufRead;
        std::io::BufReader::new(std::fs::File::open(path.join(name)).unwrap()).lines().count()
            as i64
    };
    assert_eq!((lines("series.csv"), lines("participants.csv")), (1 + 2 * day.seconds, 1 + visits));
    if is_compared {
        let run = RunFolder::read(&path).unwrap();
        let scenario = Scenario::parse_stored(SCENARIO).unwrap();
        let summary = throng_report::summarise(&run, &scenario.objectives, scenario.run.warm_up);
        let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
        assert_eq!(read("summary.json"), summary.to_json());
        assert_eq!(read("report.html"), throng_report::html::render(&run, &summary));
    }
}

#[test]
fn an_hour_of_comers_and_goers_is_reported_in_the_memory_of_what_is_shown() {
    print_result(&Day { seconds: 3_600, viewers: 50, joins_per_s: 2 }, 80, true);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "minutes: scripts/proof.sh long, make proof"]
    fn a_day_of_a_thousand_viewers_that_join_and_leave_is_reported_in_300_mb() {
        print_result(&Day { seconds: 86_400, viewers: 1_000, joins_per_s: 5 }, 300, false);
    }
}
