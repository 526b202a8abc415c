//! Makes the run folder of a large watched run, to measure `throng report`:
//!
//! ```text
//! watched_run FOLDER [--participants 1000] [--seconds 600] [--threads 2000] [--holds]
//! /usr/bin/time -v throng report FOLDER
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use throng_observation::host::{
    Frame, HostEvent, HostEventKind, HostId, HostInfo, HostRow, HostSample, HostSeries, Profile,
    ProfileMethod, SeriesId, Stack, Unit,
};
use throng_observation::run::{
    CrowdRow, Ending, GeneratorRow, ParticipantId, ParticipantRow, Row, RunInfo, SeriesRow,
    SourceFps, TrackRow,
};
use throng_observation::{
    Codec, Distribution, ExperienceRow, HoldOutcome, HoldRow, MediaKind, OneWayDelay, Outcome,
    Phase, Purpose, RunTime, SecondClosed, TrackCounters, TrackId,
};
use throng_store::{RunFolder, RunWriter};

/// The run to make.
#[derive(Parser)]
struct Arguments {
    /// The run folder.
    folder: PathBuf,
    /// Viewers, which join within the first half of the run.
    #[arg(long, default_value_t = 1_000)]
    participants: u32,
    /// Length of the run.
    #[arg(long, default_value_t = 600)]
    seconds: i64,
    /// Threads of the server, each of which does something each second.
    #[arg(long, default_value_t = 2_000)]
    threads: u32,
    /// As from a search: loads are held, the last one fails, and every second has the users'
    /// experience.
    #[arg(long)]
    holds: bool,
}

/// Loads of the search, the last of which fails.
const HOLDS: i64 = 12;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let info = RunInfo {
        throng_version: "synthetic".into(),
        target: "whep+http://127.0.0.1:7080/whep".into(),
        cohorts: vec!["viewers".into()],
        planned_duration_us: arguments.seconds * 1_000_000,
        ..RunInfo::default()
    };
    let mut writer = RunFolder::create(&arguments.folder, &info)?;
    let mut server = Server::begin(&mut writer, arguments.threads);
    for second in -5..arguments.seconds {
        let half = (arguments.seconds / 2).max(1);
        let playing = i64::from(arguments.participants) * (second + 1).clamp(0, half) / half;
        // A search holds each load for its share of the run; the hottest thread is full at the last
        // of them.
        let hold = (second.max(0) * HOLDS / arguments.seconds.max(1)).min(HOLDS - 1);
        let held = i64::from(arguments.participants) * (hold + 1) / HOLDS;
        let playing = if arguments.holds { held } else { playing };
        let strain = ((second - half) as f64 / half as f64).clamp(0.0, 1.0);
        let playing = u32::try_from(playing).unwrap_or(0);
        if second >= 0 {
            let strain =
                if arguments.holds { f64::from(u8::from(hold == HOLDS - 1)) } else { strain };
            crowd(&mut writer, second, playing, strain);
        }
        server.second(
            &mut writer,
            second,
            f64::from(playing) / f64::from(arguments.participants.max(1)),
        );
        writer.commit()?;
    }
    if arguments.holds {
        holds(&mut writer, &arguments);
    }
    participants(&mut writer, &arguments);
    [("baseline", 1), ("full", 40)]
        .into_iter()
        .for_each(|(moment, hot)| profile(&mut writer, moment, hot));
    writer.finish(Ending::Complete, RunTime(arguments.seconds * 1_000_000))?;
    Ok(())
}

fn spread(base: u64, count: u64) -> Distribution {
    let mut all = Distribution::new();
    (0..count).for_each(|nth| all.record(base + nth * 7_919 % (base * 3)));
    all
}

fn crowd(writer: &mut RunWriter, second: i64, playing: u32, strain: f64) {
    let row = CrowdRow {
        second,
        intended: playing,
        started: playing,
        connected: playing,
        playing,
        ..CrowdRow::default()
    };
    writer.write(Row::Crowd(row));
    let bad = (f64::from(playing) * strain * 0.5) as u32;
    let experience =
        vec![ExperienceRow { second, users: playing, bad, ..ExperienceRow::default() }];
    writer.write(Row::SecondClosed(SecondClosed {
        second,
        experience,
        is_generator_limited: false,
    }));
    for kind in [MediaKind::Video, MediaKind::Audio] {
        let packets = u64::from(playing) * 120;
        writer.write(Row::Series(Box::new(SeriesRow {
            second,
            kind: Some(kind),
            tracks: playing,
            counters: TrackCounters {
                packets_original: packets,
                packets_lost: (packets as f64 * strain * 0.05) as i64,
                wire_bytes: packets * 1_100,
                payload_bytes: packets * 1_040,
                active_us: u64::from(playing) * 1_000_000,
                ..TrackCounters::default()
            },
            relative_delay_us: spread(4_000 + (strain * 200_000.0) as u64, u64::from(playing)),
            jitter_us: spread(1_500, u64::from(playing)),
            fps_milli: spread(30_000, u64::from(playing)),
            loss_ppm: spread(100, u64::from(playing)),
            source_fps: SourceFps {
                tracks: u64::from(playing),
                sum_milli: u64::from(playing) * 30_000,
            },
            ..SeriesRow::default()
        })));
    }
    writer.write(Row::Generator(GeneratorRow {
        second,
        thread: Some(0),
        cpu_us: 300_000,
        ..GeneratorRow::default()
    }));
}

fn holds(writer: &mut RunWriter, arguments: &Arguments) {
    for number in 0..HOLDS {
        let at = |hold: i64| (hold * arguments.seconds + HOLDS - 1) / HOLDS;
        let passed = if number == HOLDS - 1 { HoldOutcome::No } else { HoldOutcome::Yes };
        let users = i64::from(arguments.participants) * (number + 1) / HOLDS;
        writer.write(Row::Hold(Box::new(HoldRow {
            number: u32::try_from(number).unwrap_or(0),
            repeat: 1,
            purpose: if number == 0 { Purpose::Baseline } else { Purpose::Demand },
            users: u32::try_from(users).unwrap_or(0),
            from: RunTime(at(number) * 1_000_000),
            judged_from: Some(RunTime((at(number) + 5) * 1_000_000)),
            until: Some(RunTime(at(number + 1) * 1_000_000)),
            passed: [passed; 3],
            ..HoldRow::default()
        })));
    }
}

fn participants(writer: &mut RunWriter, arguments: &Arguments) {
    for id in 0..arguments.participants {
        let intended_at = RunTime(
            i64::from(id) * arguments.seconds * 500_000 / i64::from(arguments.participants),
        );
        let reached =
            [(Phase::Started, 1_000), (Phase::DtlsConnected, 90_000), (Phase::FirstFrame, 300_000)]
                .map(|(phase, us)| (phase, RunTime(intended_at.0 + us)));
        writer.write(Row::Participant(Box::new(ParticipantRow {
            participant: ParticipantId(id),
            cohort: throng_observation::run::CohortId(0),
            intended_at,
            reached: BTreeMap::from(reached),
            ended_at: Some(RunTime(arguments.seconds * 1_000_000)),
            outcome: Some(Outcome::Completed),
            local_address: None,
        })));
        writer.write(Row::Track(Box::new(TrackRow {
            participant: ParticipantId(id),
            track: TrackId(0),
            kind: MediaKind::Video,
            codec: Codec::H264,
            from: None,
            first_frame_at: None,
            counters: TrackCounters {
                packets_original: 10_000,
                active_us: 1,
                ..TrackCounters::default()
            },
            relative_delay_us: spread(5_000, 300),
            absolute_delay: OneWayDelay::default(),
            fps: Some(30.0),
            jitter_us: Some(1_000),
            oven_rtc_tester_delay_us: None,
        })));
    }
}

/// The watched host: `threads` threads that change each second, and the other figures of a host.
struct Server {
    series: Vec<(SeriesId, Kind)>,
}

#[derive(Clone, Copy)]
enum Kind {
    Thread(u32),
    Wait(u32),
    Level(f64),
}

impl Server {
    fn begin(writer: &mut RunWriter, threads: u32) -> Self {
        let mut server = Self { series: Vec::new() };
        let info =
            HostInfo { name: "synthetic".into(), watcher_cpu_us: 4_000_000, ..HostInfo::default() };
        writer.write(Row::Host(HostRow::Info(info)));
        for tid in 0..threads {
            let (name, id) = (format!("hloop {tid}"), tid.to_string());
            let labels = [
                ("process", "janus"),
                ("pid", "1"),
                ("tid", id.as_str()),
                ("thread", name.as_str()),
            ];
            server.add(writer, "thread.cpu", Unit::Ratio, &labels, Kind::Thread(tid));
            server.add(writer, "thread.run_queue_wait", Unit::Ratio, &labels, Kind::Wait(tid));
        }
        let process = [("process", "janus"), ("pid", "1")];
        let share: f64 = (0..threads).map(share).sum();
        server.add(writer, "process.cpu", Unit::Ratio, &process, Kind::Level(share));
        server.add(writer, "process.rss", Unit::Bytes, &process, Kind::Level(3e8));
        server.add(writer, "process.fds", Unit::Count, &process, Kind::Level(4_000.0));
        for (metric, level) in [
            ("host.cpu.user", 8.0),
            ("host.cpu.system", 3.0),
            ("host.cpu.softirq", 1.0),
            ("host.cpu.busy", 12.0),
            ("host.pressure.cpu.some", 0.2),
        ] {
            server.add(writer, metric, Unit::Ratio, &[], Kind::Level(level));
        }
        for interface in ["lo", "eth0", "eth1"] {
            for metric in ["nic.tx_bytes", "nic.rx_bytes"] {
                server.add(
                    writer,
                    metric,
                    Unit::BytesPerSecond,
                    &[("interface", interface)],
                    Kind::Level(1e8),
                );
            }
        }
        for cpu in 0..64 {
            for metric in ["core.user", "core.system", "core.busy", "softnet.processed"] {
                let cpu = cpu.to_string();
                server.add(writer, metric, Unit::Ratio, &[("cpu", &cpu)], Kind::Level(0.5));
            }
        }
        let (at, kind) = (RunTime(-5_000_000), HostEventKind::ProcessFound);
        let found = HostEvent::new(HostId(0), at, kind, "janus (PID 1)");
        writer.write(Row::Host(HostRow::Event(found)));
        server
    }

    fn add(
        &mut self,
        writer: &mut RunWriter,
        metric: &str,
        unit: Unit,
        labels: &[(&str, &str)],
        kind: Kind,
    ) {
        let id = SeriesId(u32::try_from(self.series.len()).unwrap_or(u32::MAX));
        self.series.push((id, kind));
        let labels =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let series =
            HostSeries { id, host: HostId(0), metric: metric.into(), unit, labels, limit: None };
        writer.write(Row::Host(HostRow::Series(series)));
    }

    fn second(&mut self, writer: &mut RunWriter, second: i64, load: f64) {
        // No value equals the previous one: unchanged values would not be written.
        let stir = 1.0 + (second % 7) as f64 * 0.01;
        for (id, kind) in &self.series {
            let mut put = |at_us: i64, value: f64| {
                let sample = HostSample { series: *id, at: RunTime(at_us), value };
                writer.write(Row::Host(HostRow::Sample(sample)));
            };
            match kind {
                // The hottest 64 are read each 100 ms.
                Kind::Thread(tid) if *tid < 64 => (0..10).for_each(|tenth| {
                    put(
                        second * 1_000_000 + tenth * 100_000,
                        share(*tid) * load * stir + tenth as f64 * 1e-4,
                    );
                }),
                Kind::Thread(tid) => put(second * 1_000_000, share(*tid) * load * stir),
                Kind::Wait(tid) => put(second * 1_000_000, share(*tid) * load * stir * 0.1),
                Kind::Level(level) => put(second * 1_000_000, level * load * stir),
            }
        }
    }
}

/// Share of a core that a thread uses at full load: a few are hot.
fn share(tid: u32) -> f64 {
    0.95 / (1.0 + f64::from(tid))
}

fn profile(writer: &mut RunWriter, moment: &str, hot: u32) {
    let frames = (0..400)
        .map(|nth| Frame {
            symbol: format!("function_number_{nth}"),
            module: format!("lib{}.so", nth % 9),
        })
        .collect();
    let stack = |nth: u32| Stack {
        pid: 1,
        tid: nth % 50,
        thread: format!("hloop {}", nth % 50),
        frames: (0..20).map(|depth| (nth * 31 + depth * depth) % 400).collect(),
        count: if nth.is_multiple_of(97) { hot } else { 1 },
    };
    let profile = Profile {
        host: HostId(0),
        moment: moment.into(),
        started_at: RunTime(0),
        duration_us: 10_000_000,
        frequency_hz: 99,
        method: ProfileMethod::CpuClock,
        frames,
        stacks: (0..5_000).map(stack).collect(),
        samples_lost: 0,
        limits: Vec::new(),
    };
    writer.write(Row::Host(HostRow::Profile(Box::new(profile))));
}
