//! Runs made up for tests: plausible figures, no randomness.

use std::collections::BTreeMap;

use throng_observation::run::*;
use throng_observation::{
    CaptureBasis, Clause, Codec, Distribution, ExperienceRow, Failure, FailureReason, MediaKind,
    OneWayDelay, Outcome, Phase, RunTime, TrackCounters, TrackId,
};
use throng_scenario::{Objective, Scenario};

pub(crate) fn objectives() -> Vec<Objective> {
    [
        "video.loss p95 < 1%",
        "video.delay p95 < 100ms",
        "connect p99 < 3s",
        "fps p50 > 0.9 of source",
        "failed < 5%",
    ]
    .map(|text| text.parse().unwrap())
    .into()
}

/// Gives the run this scenario, and the plan that is kept of it.
pub(crate) fn plan(run: &mut RunData, scenario: impl Into<String>) {
    run.info.scenario = scenario.into();
    run.info.plan = Scenario::run_plan_of_stored(&run.info.scenario);
}

fn info(seconds: i64) -> RunInfo {
    let scenario =
        "[target]\nurl = \"ws://media.example:3333/app/stream\"\n\n[crowd]\nsize = 100\n";
    RunInfo {
        format: 2,
        throng_version: "0.1.0".into(),
        scenario: scenario.into(),
        target: "ws://media.example:3333/app/stream".into(),
        cohorts: vec!["viewers".into()],
        started_at_unix_us: 1_795_219_440_000_000,
        planned_duration_us: seconds * 1_000_000,
        generator_host: BTreeMap::from([
            ("cpu".into(), "2 × EPYC".into()),
            ("kernel".into(), "6.18".into()),
        ]),
        media_files: BTreeMap::new(),
        clock: ClockError { bound_us: Some(2_000), basis: "same host".into() },
        warnings: vec![],
        workers: Vec::new(),
        plan: Scenario::run_plan_of_stored(scenario),
    }
}

fn spread(base: u64, count: u64) -> Distribution {
    let mut d = Distribution::new();
    // A long right tail, as delays have.
    (0..count.min(400)).for_each(|i| d.record(base + base * (i % 20).pow(2) / 100));
    d
}

/// How bad service is in a second: 0 good, 1 bad.
fn strain(second: i64, degraded: bool) -> f64 {
    if degraded { ((second - 38) as f64 / 10.0).clamp(0.0, 1.0) } else { 0.0 }
}

fn video_counters(strain: f64, n: u64) -> TrackCounters {
    let received = (120.0 * n as f64 * (1.0 - 0.2 * strain)) as u64;
    TrackCounters {
        packets_original: received,
        packets_lost: (received as f64 * 0.06 * strain) as i64,
        payload_bytes: received * 1040,
        wire_bytes: received * 1110,
        frames_complete: (30.0 * n as f64 * (1.0 - 0.4 * strain)) as u64,
        frames_decodable: (30.0 * n as f64 * (1.0 - 0.4 * strain)) as u64,
        freeze_count: (n as f64 * 0.3 * strain) as u64,
        freeze_us: (n as f64 * 150_000.0 * strain) as u64,
        active_us: n * 1_000_000,
        ..TrackCounters::default()
    }
}

fn series(second: i64, kind: MediaKind, n: u32, strain: f64) -> SeriesRow {
    let count = u64::from(n);
    let video = kind == MediaKind::Video;
    let counters = if video {
        video_counters(strain, count)
    } else {
        TrackCounters {
            packets_original: 50 * count,
            payload_bytes: 8_000 * count,
            wire_bytes: 12_000 * count,
            active_us: 1_000_000 * count,
            ..TrackCounters::default()
        }
    };
    let delay = 6_000 + (second as u64 * 37) % 900 + (strain * 220_000.0) as u64;
    let mut fps = Distribution::new();
    let mut loss = Distribution::new();
    for i in 0..count {
        fps.record((30_000.0 * (1.0 - strain * (i % 10) as f64 / 12.0)) as u64);
        loss.record((strain * 6_000.0 * (i % 20) as f64) as u64);
    }
    SeriesRow {
        second,
        cohort: CohortId(0),
        kind: Some(kind),
        tracks: n,
        tracks_below_source_fps: (f64::from(n) * strain * 0.9) as u64,
        counters,
        relative_delay_us: spread(delay, count * 30),
        absolute_delay: if video {
            let delays = spread(delay + 18_000, count * 30);
            OneWayDelay::from_parts(Some(CaptureBasis::Mark), delays, 0, Distribution::new())
        } else {
            OneWayDelay::default()
        },
        jitter_us: spread(1_500, count),
        fps_milli: if video { fps } else { Distribution::new() },
        loss_ppm: if video { loss } else { Distribution::new() },
        oven_rtc_tester_delay_us: spread(20_000, count),
        source_fps: if video {
            SourceFps { tracks: count, sum_milli: count * 30_000 }
        } else {
            SourceFps::default()
        },
        ..SeriesRow::default()
    }
}

/// Frames are late for all users with a bad second, and too few for a tenth of them.
fn experience(second: i64, users: u32, bad: u32) -> ExperienceRow {
    let mut row = ExperienceRow { second, users, bad, ..ExperienceRow::default() };
    row.clauses[Clause::Delay as usize] = bad;
    row.clauses[Clause::Fps as usize] = bad / 10;
    row
}

fn participant(id: u32, fails: Option<Failure>, seconds: i64) -> ParticipantRow {
    let intended_at = RunTime(i64::from(id) * 100_000);
    let mut reached = BTreeMap::from([(Phase::Started, RunTime(intended_at.0 + 300))]);
    if fails.is_none() {
        let slow = i64::from(id % 7) * 4_000;
        for (phase, us) in [
            (Phase::Resolved, 900),
            (Phase::Connected, 2_400),
            (Phase::Negotiated, 21_000 + slow),
            (Phase::IceConnected, 74_000 + slow),
            (Phase::DtlsConnected, 99_000 + 2 * slow),
            (Phase::FirstPacket, 104_000 + 2 * slow),
            (Phase::FirstFrame, 390_000 + 9 * slow),
        ] {
            reached.insert(phase, RunTime(intended_at.0 + us));
        }
    }
    ParticipantRow {
        participant: ParticipantId(id),
        cohort: CohortId(0),
        intended_at,
        reached,
        ended_at: Some(RunTime(seconds * 1_000_000)),
        outcome: Some(fails.map_or(Outcome::Completed, Outcome::Failed)),
        local_address: Some(format!("127.0.0.1:{}", 40_000 + id)),
    }
}

fn track(id: u32, index: u16, kind: MediaKind, strain: f64, seconds: i64) -> TrackRow {
    let is_video = kind == MediaKind::Video;
    TrackRow {
        participant: ParticipantId(id),
        track: TrackId(index),
        kind,
        codec: if is_video { Codec::H264 } else { Codec::Opus },
        from: None,
        first_frame_at: None,
        counters: video_counters(strain, seconds.unsigned_abs()),
        relative_delay_us: spread(6_000 + (strain * 200_000.0) as u64, 400),
        absolute_delay: OneWayDelay::default(),
        fps: is_video.then_some(30.0 * (1.0 - strain)),
        jitter_us: Some(1_500),
        oven_rtc_tester_delay_us: Some(20_000),
    }
}

fn build(n: u32, seconds: i64, degraded: bool, kinds: &[MediaKind]) -> RunData {
    let fails = |id: u32| {
        (degraded && id % 33 == 32).then(|| {
            Failure::new(
                FailureReason::Ice,
                format!("no candidate pair worked in 15 s (viewer {id})"),
            )
        })
    };
    let mut run = RunData {
        info: info(seconds),
        ending: Ending::Complete,
        ended_at: Some(RunTime(seconds * 1_000_000)),
        participants: (0..n).map(|id| participant(id, fails(id), seconds)).collect(),
        ..RunData::default()
    };
    for second in 0..seconds {
        let intended = n.min(if seconds == 1 { n } else { (second as u32 + 1) * 10 });
        let failed = if degraded && second > 14 { intended / 33 } else { 0 };
        let strain = strain(second, degraded);
        let playing = intended - failed - (f64::from(intended) * 0.05 * strain) as u32;
        run.crowd.push(CrowdRow {
            second,
            intended,
            started: intended,
            connected: intended - failed,
            playing,
            failed,
            ice: [0, 0, intended - failed, 0, failed, 0],
            ..CrowdRow::default()
        });
        let bad = (f64::from(intended) * (strain * 2.0 - 1.0).clamp(0.0, 1.0)) as u32;
        run.experience.push(experience(second, intended, bad));
        run.series.extend(kinds.iter().map(|kind| series(second, *kind, playing, strain)));
        for thread in [Some(0), Some(1), None] {
            run.generator.push(GeneratorRow {
                second,
                thread,
                cpu_us: 3_400 * u64::from(playing) / if thread.is_some() { 2 } else { 1 },
                lag_p99_us: 300 + 20 * (second as u64 % 9),
                lag_max_us: 900,
                rss_bytes: if thread.is_none() {
                    14_000_000 + 90_000 * u64::from(intended)
                } else {
                    0
                },
                ..GeneratorRow::default()
            });
        }
    }
    for id in (0..n).filter(|id| fails(*id).is_none()) {
        let strain = if degraded { f64::from(id % 20) / 60.0 } else { 0.0 };
        run.tracks
            .extend((0..).zip(kinds).map(|(index, kind)| track(id, index, *kind, strain, seconds)));
    }
    run
}

const BOTH: [MediaKind; 2] = [MediaKind::Video, MediaKind::Audio];

/// 100 viewers for 60 s on a server that is overloaded after 38 s.
pub(crate) fn degraded() -> RunData {
    build(100, 60, true, &BOTH)
}

/// A search on a server whose only sending thread is full at 42 viewers: the crowd's part of the
/// run.
pub(crate) fn searched() -> RunData {
    use throng_observation::{HoldOutcome, HoldRow, Purpose};
    let mut run = build(1, 1, false, &BOTH);
    (run.crowd, run.series, run.generator, run.experience) = Default::default();
    let loads = [4, 8, 12, 16, 20, 26, 32, 40, 48, 20, 42, 20, 42];
    let mut at = 0;
    for (number, users) in loads.into_iter().enumerate() {
        let (over, length) = (users > 40, if users >= 40 { 40 } else { 24 });
        let passed = [if over { HoldOutcome::No } else { HoldOutcome::Yes }; 3];
        let recovers = number > 8 && users == 20;
        if !recovers {
            run.holds.push(HoldRow {
                number: run.holds.len() as u32,
                repeat: 1,
                purpose: match number {
                    0 => Purpose::Baseline,
                    12 => Purpose::Confirm,
                    1..=6 => Purpose::Demand,
                    _ => Purpose::Bisect,
                },
                users,
                from: RunTime(at * 1_000_000),
                judged_from: Some(RunTime((at + 5) * 1_000_000)),
                until: Some(RunTime((at + length) * 1_000_000)),
                seconds: (length - 5) as u32,
                bad_seconds: [if over { (length - 5) as u32 } else { 0 }; 3],
                bad_to_the_end: over,
                passed,
                ..HoldRow::default()
            });
        }
        for second in at..at + length {
            let strain = if over && second > at + 4 { 0.9 } else { 0.0 };
            let crowd = CrowdRow {
                second,
                intended: users,
                started: users,
                connected: users,
                playing: users,
                ..CrowdRow::default()
            };
            run.crowd.push(crowd);
            let bad = if strain > 0.0 { users * 3 / 4 } else { 0 };
            run.experience.push(experience(second, users, bad));
            run.series.extend(BOTH.map(|kind| series(second, kind, users, strain)));
            let row = GeneratorRow {
                second,
                thread: Some(0),
                cpu_us: 4_000 * u64::from(users),
                lag_p99_us: 300,
                ..GeneratorRow::default()
            };
            run.generator.push(row);
        }
        at += length;
    }
    run.ended_at = Some(RunTime(at * 1_000_000));
    run.info.planned_duration_us = at * 1_000_000;
    run
}

pub(crate) fn healthy(n: u32, seconds: i64) -> RunData {
    build(n, seconds, false, &BOTH)
}

pub(crate) fn audio_only() -> RunData {
    build(10, 20, false, &[MediaKind::Audio])
}

pub(crate) fn limited() -> RunData {
    let mut run = healthy(100, 60);
    run.generator
        .iter_mut()
        .filter(|row| row.thread == Some(1))
        .for_each(|row| row.cpu_us = 930_000);
    run
}

pub(crate) fn all_failed() -> RunData {
    let mut run = build(20, 10, false, &[]);
    for row in &mut run.participants {
        row.reached.clear();
        row.outcome = Some(Outcome::Failed(Failure::new(
            FailureReason::HttpStatus(404),
            "POST /whep answered 404",
        )));
    }
    run.crowd
        .iter_mut()
        .for_each(|row| (row.connected, row.playing, row.failed) = (0, 0, row.intended));
    run
}

pub(crate) fn crowd_only(seconds: i64) -> RunData {
    let crowd = (0..seconds).map(|second| CrowdRow { second, ..CrowdRow::default() }).collect();
    RunData { crowd, ..RunData::default() }
}
