//! What a coordinator of a fleet pays for its workers, without bus and disk: rows of many workers
//! are packed as workers do, then unpacked, merged and shown as the coordinator does.
//!
//! ```text
//! fleet_merge [--workers 200] [--viewers 1000] [--seconds 60]
//! ```
//! Prints one JSON line: CPU of the coordinator for each second of the run and for each second of a
//! worker, its memory, and bytes on the bus for each second of a worker.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use throng_engine::MergedLive;
use throng_fleet::merge::{MergeLimits, Merger, WorkerId, WorkerName};
use throng_fleet::wire::{self, WireLimits};
use throng_observation::run::{
    CohortId, CrowdRow, GeneratorRow, ParticipantId, ParticipantRow, Row, SeriesRow, TrackRow,
};
use throng_observation::{
    Codec, Distribution, ExperienceRow, MediaKind, OneWayDelay, Phase, RunTime, SecondClosed,
    TrackCounters, TrackId,
};

/// The fleet.
#[derive(Parser)]
struct Arguments {
    /// Workers.
    #[arg(long, default_value_t = 200)]
    workers: u16,
    /// Viewers of each.
    #[arg(long, default_value_t = 1_000)]
    viewers: u32,
    /// Length of the run.
    #[arg(long, default_value_t = 60)]
    seconds: i64,
}

/// A participant's tracks are written so often, seconds, as the engine does.
const TRACKS_EVERY_S: i64 = 30;

/// Engine threads of a worker.
const THREADS: u16 = 4;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let names: Vec<WorkerName> =
        (0..arguments.workers).map(|worker| WorkerName(worker.to_string())).collect();
    let limits =
        MergeLimits { cohorts: 1, second_max: arguments.seconds + 60, participants: u32::MAX };
    let mut merger = Merger::new(&names, limits);
    let planned = u32::from(arguments.workers) * arguments.viewers;
    let mut live = MergedLive::new(planned, RunTime(arguments.seconds * 1_000_000));
    let (mut packing, mut merging, mut wire_bytes, mut merged_rows) =
        (Duration::ZERO, Duration::ZERO, 0, 0);
    let mut out = Vec::new();
    for second in 0..arguments.seconds {
        for worker in 0..arguments.workers {
            let rows = rows_of(worker, second, &arguments);
            let before = cpu_time();
            let bytes = wire::encode(&rows, WireLimits::default())?;
            packing += cpu_time() - before;
            wire_bytes += bytes.len();
            let before = cpu_time();
            for row in wire::decode(&bytes, WireLimits::default())? {
                merger.take(WorkerId(worker), row, &mut out);
            }
            out.iter().for_each(|row| live.take(row));
            merging += cpu_time() - before;
            merged_rows += out.len();
            out.clear();
        }
    }
    anyhow::ensure!(live.snapshot().second == Some(arguments.seconds - 1), "a second is missing");
    let worker_seconds = f64::from(arguments.workers) * arguments.seconds as f64;
    let result = serde_json::json!({
        "workers": arguments.workers,
        "viewers_each": arguments.viewers,
        "coordinator_cores": merging.as_secs_f64() / arguments.seconds as f64,
        "coordinator_us_per_worker_second": merging.as_secs_f64() * 1e6 / worker_seconds,
        "worker_us_per_second": packing.as_secs_f64() * 1e6 / worker_seconds,
        "bus_bytes_per_worker_second": wire_bytes as f64 / worker_seconds,
        "merged_rows": merged_rows,
        "peak_rss_mb": peak_rss_kb()? as f64 / 1e3,
    });
    println!("{result}");
    Ok(())
}

/// What a worker's engine writes in a second.
fn rows_of(worker: u16, second: i64, arguments: &Arguments) -> Vec<Row> {
    let viewers = arguments.viewers;
    let first = u32::from(worker) * viewers;
    let mut rows: Vec<Row> = (0..viewers)
        .filter(|viewer| (i64::from(*viewer) + second) % TRACKS_EVERY_S == 0)
        .flat_map(|viewer| viewer_rows(first + viewer, second))
        .collect();
    rows.push(Row::Crowd(CrowdRow {
        second,
        playing: viewers,
        connected: viewers,
        intended: viewers,
        ..CrowdRow::default()
    }));
    rows.extend(
        [MediaKind::Video, MediaKind::Audio].map(|kind| series(second, kind, viewers, worker)),
    );
    rows.extend((0..=THREADS).map(|thread| {
        let thread = (thread < THREADS).then_some(thread);
        Row::Generator(GeneratorRow {
            second,
            thread,
            cpu_us: 600_000,
            lag_p99_us: 700,
            ..GeneratorRow::default()
        })
    }));
    let experience = vec![ExperienceRow { second, users: viewers, ..ExperienceRow::default() }];
    rows.push(Row::SecondClosed(SecondClosed { second, experience, is_generator_limited: false }));
    rows
}

/// Values as a loaded server gives them: a wide peak, and a tail.
fn spread(count: u32, centre: u64, worker: u16) -> Distribution {
    let mut samples = Distribution::new();
    for sample in 0..u64::from(count) {
        let scattered = (sample * 2_654_435_761 + u64::from(worker) * 97) % 1_000;
        samples.record(centre + centre * scattered * scattered / 500_000);
    }
    samples
}

fn series(second: i64, kind: MediaKind, viewers: u32, worker: u16) -> Row {
    let counters = TrackCounters {
        packets_original: u64::from(viewers) * 110,
        wire_bytes: u64::from(viewers) * 125_000,
        active_us: u64::from(viewers) * 1_000_000,
        ..TrackCounters::default()
    };
    Row::Series(Box::new(SeriesRow {
        second,
        cohort: CohortId(0),
        kind: Some(kind),
        tracks: viewers,
        counters,
        relative_delay_us: spread(viewers * 30, 900, worker),
        jitter_us: spread(viewers, 300, worker),
        fps_milli: spread(viewers, 30_000, worker),
        loss_ppm: spread(viewers / 10, 100, worker),
        oven_rtc_tester_delay_us: spread(viewers, 700, worker),
        ..SeriesRow::default()
    }))
}

fn viewer_rows(number: u32, second: i64) -> [Row; 3] {
    let participant = ParticipantId(number);
    let reached = [Phase::Started, Phase::IceConnected, Phase::DtlsConnected, Phase::FirstFrame];
    let row = ParticipantRow {
        participant,
        cohort: CohortId(0),
        intended_at: RunTime(0),
        reached: reached
            .iter()
            .map(|phase| (*phase, RunTime(i64::from(number % 997) * 100)))
            .collect(),
        ended_at: None,
        outcome: None,
        local_address: Some("10.0.0.7:40000".into()),
    };
    let track = |track: u16, kind: MediaKind, codec: Codec| {
        Row::Track(Box::new(TrackRow {
            participant,
            track: TrackId(track),
            kind,
            codec,
            from: None,
            first_frame_at: Some(RunTime(100_000)),
            counters: TrackCounters {
                packets_original: 110 * second.unsigned_abs(),
                ..TrackCounters::default()
            },
            relative_delay_us: spread(200, 900, (number % 100) as u16),
            absolute_delay: OneWayDelay::default(),
            fps: Some(30.0),
            jitter_us: Some(300),
            oven_rtc_tester_delay_us: Some(700),
        }))
    };
    [
        Row::Participant(Box::new(row)),
        track(0, MediaKind::Video, Codec::H264),
        track(1, MediaKind::Audio, Codec::Opus),
    ]
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is written by the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// `VmHWM` of `/proc/self/status`, kB.
fn peak_rss_kb() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.and_then(|line| line.split_ascii_whitespace().next()).unwrap_or("0").parse()?)
}
