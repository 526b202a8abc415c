//! A large matrix is answered in little time and memory: one run at a time, and no rows that no
//! figure needs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use throng_observation::host::{
    HostId, HostInfo, HostRow, HostSample, HostSeries, SeriesId, Unit, catalogue,
};
use throng_observation::run::{
    CohortId, CrowdRow, Ending, ParticipantId, ParticipantRow, Row, RunInfo, SeriesRow, SourceFps,
    TrackRow,
};
use throng_observation::{
    Codec, Distribution, ExperienceRow, MediaKind, OneWayDelay, Phase, RunTime, SecondClosed,
    TrackCounters, TrackId,
};
use throng_report::matrix::{CellVerdict, MatrixRun, RunStatus};
use throng_store::RunFolder;

use super::answer;
use super::folder::MatrixFolder;
use super::options::Options;
use super::plan::MatrixPlan;

const USERS: u32 = 1_000;
const SECONDS: i64 = 40;
const THREADS: u32 = 100;

fn at(second: i64) -> RunTime {
    RunTime(second * 1_000_000)
}

fn samples(count: u32, base: u64) -> Distribution {
    let mut samples = Distribution::new();
    (0..count).for_each(|n| samples.record(base + u64::from(n) * 7));
    samples
}

fn counters(seconds: u64) -> TrackCounters {
    TrackCounters {
        packets_original: 100 * seconds,
        wire_bytes: 125_000 * seconds,
        frames_decodable: 30 * seconds,
        ..TrackCounters::default()
    }
}

/// A run of a thousand users that are served well, watched with a hundred threads.
fn write_run(folder: &Path) {
    let info = RunInfo { cohorts: vec!["viewers".into()], ..RunInfo::default() };
    let mut writer = RunFolder::create(folder, &info).unwrap();
    for second in 0..SECONDS {
        let (intended, started, connected, playing) = (USERS, USERS, USERS, USERS);
        writer.write(Row::Crowd(CrowdRow {
            second,
            intended,
            started,
            connected,
            playing,
            ..CrowdRow::default()
        }));
        let experience = ExperienceRow { second, users: USERS, ..ExperienceRow::default() };
        let closed =
            SecondClosed { second, experience: vec![experience], ..SecondClosed::default() };
        writer.write(Row::SecondClosed(closed));
        writer.write(Row::Series(Box::new(SeriesRow {
            second,
            cohort: CohortId(0),
            kind: Some(MediaKind::Video),
            tracks: USERS,
            tracks_below_source_fps: 0,
            counters: counters(u64::from(USERS)),
            relative_delay_us: samples(USERS * 30, 1_000),
            absolute_delay: OneWayDelay::default(),
            jitter_us: samples(USERS, 100),
            fps_milli: samples(USERS, 30_000),
            loss_ppm: samples(USERS, 0),
            oven_rtc_tester_delay_us: Distribution::new(),
            source_fps: SourceFps {
                tracks: u64::from(USERS),
                sum_milli: u64::from(USERS) * 30_000,
            },
            ..SeriesRow::default()
        })));
    }
    for number in 0..USERS {
        let phases = [Phase::Started, Phase::Connected, Phase::FirstPacket, Phase::FirstFrame];
        writer.write(Row::Participant(Box::new(ParticipantRow {
            participant: ParticipantId(number),
            cohort: CohortId(0),
            intended_at: at(0),
            reached: phases
                .into_iter()
                .map(|phase| (phase, RunTime(i64::from(number) + 1)))
                .collect(),
            ended_at: None,
            outcome: None,
            local_address: None,
        })));
        writer.write(Row::Track(Box::new(TrackRow {
            participant: ParticipantId(number),
            track: TrackId(0),
            kind: MediaKind::Video,
            codec: Codec::H264,
            from: None,
            first_frame_at: Some(at(1)),
            counters: counters(SECONDS as u64),
            relative_delay_us: samples(1_000, 1_000),
            absolute_delay: OneWayDelay::default(),
            fps: Some(30.0),
            jitter_us: Some(100),
            oven_rtc_tester_delay_us: None,
        })));
    }
    let mut series = |id: u32, metric: &str, limit: Option<f64>, thread: u32| {
        let labels = BTreeMap::from([
            ("process".to_owned(), "server".to_owned()),
            ("pid".to_owned(), "7".to_owned()),
            ("tid".to_owned(), thread.to_string()),
            ("thread".to_owned(), format!("worker {thread}")),
        ]);
        let series = HostSeries {
            id: SeriesId(id),
            host: HostId(0),
            metric: metric.into(),
            unit: Unit::Ratio,
            labels,
            limit,
        };
        writer.write(Row::Host(HostRow::Series(series)));
        for second in -5..SECONDS {
            let value = 0.1 + f64::from(thread) * 1e-3 + second as f64 * 1e-4;
            writer.write(Row::Host(HostRow::Sample(HostSample {
                series: SeriesId(id),
                at: at(second),
                value,
            })));
        }
    };
    series(0, catalogue::HOST_CPU_BUSY.name, Some(2.0), 0);
    series(1, catalogue::HOST_CPU_IDLE.name, Some(2.0), 0);
    series(2, catalogue::HOST_CPU_IOWAIT.name, Some(2.0), 0);
    series(3, catalogue::PROCESS_CPU.name, None, 0);
    (0..THREADS).for_each(|thread| series(10 + thread, catalogue::THREAD_CPU.name, None, thread));
    writer.write(Row::Host(HostRow::Info(HostInfo::default())));
    writer.finish(Ending::Complete, at(SECONDS)).unwrap();
}

/// CPU time of this process in seconds, and the most memory that it had resident, bytes.
fn used() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // utime and stime (proc(5)), in ticks of 10 ms.
    let ticks: f64 = [11, 12].iter().map(|field| fields[*field].parse::<f64>().unwrap()).sum();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    (ticks / 100.0, high.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0)
}

/// A large matrix: 64 cells of 1,000 participants in 10 s of CPU time and 500 MB, unoptimised; in a
/// process of its own, as cargo-nextest runs it.
#[test]
fn sixty_four_cells_of_a_thousand_are_answered_in_ten_seconds() {
    let place = tempfile::tempdir().unwrap();
    let factor =
        |name: &str, levels: &str| format!("[[factor]]\nname = \"{name}\"\nlevels = {levels}\n");
    let text = format!(
        "scenario = \"viewers.toml\"\nhold = \"30s\"\n{}{}{}",
        factor("connections", "[1, 2, 3, 4]"),
        factor("files", "[1, 2, 3, 4]"),
        factor("cpus", "[1, 2, 3, 4]")
    );
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 1000\narrival = { every = \"1ms\" }\n";
    std::fs::write(place.path().join("matrix.toml"), text).unwrap();
    std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
    let plan = MatrixPlan::read(&place.path().join("matrix.toml"), Options::default())
        .unwrap_or_else(|stop| panic!("{:#}", stop.error));
    let folder = MatrixFolder::create(&place.path().join("out"), &plan)
        .unwrap_or_else(|_| panic!("a folder"));
    let template = place.path().join("run");
    write_run(&template);
    for planned in plan.runs() {
        let run = MatrixRun { repeat: 1, status: RunStatus::Valid, ..MatrixRun::default() };
        folder.keep(&planned, &plan, &run).unwrap_or_else(|_| panic!("a record"));
        std::fs::copy(template.join("run.db"), folder.run_folder(&planned, &plan).join("run.db"))
            .unwrap();
    }
    let (before_s, _) = used();
    let report =
        answer::make(&plan, &folder, true, None).unwrap_or_else(|stop| panic!("{:#}", stop.error));
    let (after_s, bytes) = used();
    assert_eq!(report.cells.len(), 64);
    for cell in &report.cells {
        assert_eq!(
            (cell.verdict, cell.means.as_ref().and_then(|means| means.served_ratio)),
            (CellVerdict::Served, Some(1.0))
        );
    }
    let took = Duration::from_secs_f64(after_s - before_s);
    assert!(took < Duration::from_secs(10), "{took:?} of CPU time");
    assert!(bytes < 500e6, "{:.0} MB", bytes / 1e6);
    let page = std::fs::metadata(folder.path().join("report.html")).unwrap().len();
    assert!(page < 2_000_000, "a page of {page} bytes");
}
