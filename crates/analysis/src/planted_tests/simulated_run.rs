//! A made-up search on a made-up server that has room for everything, into which a test plants a
//! limit.

use std::collections::BTreeMap;

use throng_observation::host::*;
use throng_observation::run::*;
use throng_observation::{
    Clause, Distribution, ExperienceRow, Failure, HoldOutcome, HoldRow, MediaKind, Outcome, Phase,
    PlaybackCounters, PlaybackRow, Purpose, RunTime, TrackCounters,
};

use throng_observation::pack::PACKS_FACT;

/// Largest load that passes, and the first that fails.
pub(super) const PASS: u32 = 40;
pub(super) const FAIL: u32 = 42;

/// What a series is at a moment of the search.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) users: f64,
    /// Whether the load is past the limit.
    pub(super) over: bool,
    /// Which second of the search it is, and which tenth of it.
    pub(super) second: i64,
    pub(super) tenth: u8,
}

impl Moment {
    /// The load that fails, at any second.
    pub(super) fn at_the_limit(self) -> Self {
        Self { users: f64::from(FAIL), over: true, ..self }
    }
}

type Value = Box<dyn Fn(Moment) -> f64>;

struct Series {
    metric: &'static str,
    labels: Vec<(&'static str, String)>,
    unit: Unit,
    limit: Option<f64>,
    value: Value,
    /// Read each tenth of a second.
    is_fine: bool,
}

/// What users have of a load past the limit.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum UserImpact {
    Delay,
    Loss,
    NotServed,
    /// They are players that fetch over HTTP, and stall.
    Stall,
}

pub(super) struct SimulatedRun {
    series: Vec<Series>,
    pub(super) impact: UserImpact,
    pub(super) generator_cpu: f64,
    pub(super) profile: Option<Vec<(&'static str, &'static str, u32)>>,
    pub(super) events: Vec<(HostEventKind, &'static str)>,
    pub(super) facts: BTreeMap<String, String>,
    /// How a participant fails when the load is past the limit.
    pub(super) refusals: Option<Failure>,
    pub(super) is_search: bool,
    pub(super) is_watched: bool,
    /// How long an answer to a join takes while joins are answered one after the other.
    pub(super) join_s: Option<f64>,
    /// The media time that a player wants in a second, microseconds. Its buffer then lasts for what
    /// is not sent past the limit; without it players stall.
    pub(super) wanted_us: Option<fn(Moment) -> u64>,
    /// Audio packets that users lose in a second, all together, in place of what the impact on them
    /// is.
    pub(super) lost_per_s: Option<fn(Moment) -> f64>,
    /// Whether half of the users have a bad second, in place of all seconds past the limit.
    pub(super) is_bad: Option<fn(Moment) -> bool>,
    noise: u64,
}

const PACK: &str = r#"[{"pack":"media","processes":["media"],"thread":[
  {"name":"worker-*","group":"workers","meaning":"Sends","setting":{"name":"--workers","place":"media.conf","unit":"thread","default":"1","advice":"Not above the number of cores"}}]}]"#;

impl SimulatedRun {
    /// Eight cores, a process with two workers, everything with plenty to spare.
    pub(super) fn new() -> Self {
        let mut sim = Self {
            series: Vec::new(),
            impact: UserImpact::Delay,
            generator_cpu: 0.2,
            profile: None,
            events: vec![(HostEventKind::ProcessFound, "media (PID 7)")],
            facts: BTreeMap::from([
                (PACKS_FACT.to_owned(), PACK.to_owned()),
                ("net.core.rmem_max".to_owned(), "212992".to_owned()),
            ]),
            refusals: None,
            is_search: true,
            is_watched: true,
            join_s: None,
            wanted_us: None,
            lost_per_s: None,
            is_bad: None,
            noise: 0x9E37_79B9_7F4A_7C15,
        };
        sim.thread("media", "worker-0", 11, |m| 0.004 * m.users, |_| 0.005);
        sim.thread("media", "worker-1", 12, |m| 0.004 * m.users, |_| 0.005);
        sim.process("media", |m| 0.01 + 0.008 * m.users);
        sim.put("host.cpu.busy", &[], Unit::Ratio, Some(8.0), |m| 0.1 + 0.02 * m.users);
        sim.put("host.cpu.steal", &[], Unit::Ratio, Some(8.0), |_| 0.0);
        sim.put("host.pressure.cpu.some", &[], Unit::Ratio, None, |_| 0.01);
        sim.put("host.pressure.io.some", &[], Unit::Ratio, None, |_| 0.001);
        sim.put("host.pressure.memory.full", &[], Unit::Ratio, None, |_| 0.0);
        sim.put("host.memory.available", &[], Unit::Bytes, Some(8e9), |m| 6e9 - 1e6 * m.users);
        sim.put("host.memory.refaults_file", &[], Unit::PerSecond, None, |_| 0.0);
        let process = [("process", "media"), ("pid", "7")];
        sim.put("process.rss", &process, Unit::Bytes, None, |m| 5e7 + 1e6 * m.users);
        sim.put("process.fds", &process, Unit::Count, Some(1_024.0), |m| 20.0 + 2.0 * m.users);
        sim.put("process.read_bytes", &process, Unit::BytesPerSecond, None, |_| 1e3);
        sim.put("process.threads_blocked", &process, Unit::Count, None, |_| 0.0);
        sim.put("process.stopped", &process, Unit::Ratio, None, |_| 0.0);
        sim.put("disk.read_bytes", &[("device", "vda")], Unit::BytesPerSecond, None, |_| 1e3);
        sim.put("disk.read_await", &[("device", "vda")], Unit::Milliseconds, None, |_| 0.4);
        sim.put("core.softirq", &[("cpu", "0")], Unit::Ratio, None, |m| 0.002 * m.users);
        sim.put("softnet.dropped", &[("cpu", "0")], Unit::PerSecond, None, |_| 0.0);
        sim.put("nic.tx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, Some(125e6), |m| {
            125e3 * m.users
        });
        sim.put("nic.tx_packets", &[("interface", "eth0")], Unit::PerSecond, None, |m| {
            120.0 * m.users
        });
        sim.put("qdisc.drops", &[("interface", "eth0")], Unit::PerSecond, None, |_| 0.0);
        sim.put("qdisc.backlog_packets", &[("interface", "eth0")], Unit::Count, None, |_| 0.0);
        sim.put("qdisc.overlimits", &[("interface", "eth0")], Unit::PerSecond, None, |_| 0.0);
        sim.put("udp.rcvbuf_errors", &[], Unit::PerSecond, None, |_| 0.0);
        sim.put("udp.sndbuf_errors", &[], Unit::PerSecond, None, |_| 0.0);
        sim.put("udp.in_datagrams", &[], Unit::PerSecond, None, |m| 20.0 * m.users);
        sim.put("tcp.segments_retransmitted", &[], Unit::PerSecond, None, |_| 0.1);
        sim.put("tcp.segments_out", &[], Unit::PerSecond, None, |m| 10.0 + m.users);
        sim.put("tcp.listen_overflows", &[], Unit::PerSecond, None, |_| 0.0);
        sim.put("tcp.listen_drops", &[], Unit::PerSecond, None, |_| 0.0);
        sim.put("tcp.established", &[], Unit::Count, None, |m| m.users);
        sim.put("tcp.ephemeral_ports", &[], Unit::Count, Some(28_232.0), |m| m.users);
        sim.put("conntrack.entries", &[], Unit::Count, Some(65_536.0), |m| 2.0 * m.users);
        sim
    }

    /// Adds a series, or plants another value into it.
    pub(super) fn put(
        &mut self,
        metric: &'static str,
        labels: &[(&'static str, &str)],
        unit: Unit,
        limit: Option<f64>,
        value: impl Fn(Moment) -> f64 + 'static,
    ) -> &mut Self {
        let labels: Vec<_> =
            labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let series = Series { metric, labels, unit, limit, value: Box::new(value), is_fine: false };
        match self.series.iter_mut().find(|old| old.metric == metric && old.labels == series.labels)
        {
            Some(old) => *old = series,
            None => self.series.push(series),
        }
        self
    }

    pub(super) fn thread(
        &mut self,
        process: &'static str,
        name: &'static str,
        tid: u32,
        cpu: impl Fn(Moment) -> f64 + 'static,
        wait: impl Fn(Moment) -> f64 + 'static,
    ) -> &mut Self {
        let tid = tid.to_string();
        let labels = [("process", process), ("pid", "7"), ("tid", tid.as_str()), ("thread", name)];
        self.put("thread.cpu", &labels, Unit::Ratio, Some(1.0), cpu);
        self.put("thread.run_queue_wait", &labels, Unit::Ratio, None, wait)
    }

    pub(super) fn process(
        &mut self,
        name: &'static str,
        cpu: impl Fn(Moment) -> f64 + 'static,
    ) -> &mut Self {
        self.put("process.cpu", &[("process", name), ("pid", "7")], Unit::Ratio, None, cpu)
    }

    /// The same of a thread that is read each tenth of a second.
    pub(super) fn bursty_thread(
        &mut self,
        process: &'static str,
        name: &'static str,
        tid: u32,
        cpu: impl Fn(Moment) -> f64 + 'static,
    ) -> &mut Self {
        self.thread(process, name, tid, cpu, |_| 0.01);
        let tid = tid.to_string();
        let of_it = |series: &&mut Series| {
            series.metric == "thread.cpu"
                && series.labels.iter().any(|(name, value)| *name == "tid" && *value == tid)
        };
        self.series.iter_mut().filter(of_it).for_each(|series| series.is_fine = true);
        self
    }

    /// Every series stays what it is under the load that fails, whatever the load.
    pub(super) fn freeze(&mut self) -> &mut Self {
        for series in std::mem::take(&mut self.series) {
            let value = series.value;
            self.series.push(Series {
                value: Box::new(move |m: Moment| value(m.at_the_limit())),
                ..series
            });
        }
        self
    }

    /// Forgets all series of a metric.
    pub(super) fn without(&mut self, metric: &str) -> &mut Self {
        self.series.retain(|series| series.metric != metric);
        self
    }

    /// 2 % of noise, the same in every run of the test.
    fn noise(&mut self) -> f64 {
        self.noise ^= self.noise >> 12;
        self.noise ^= self.noise << 25;
        self.noise ^= self.noise >> 27;
        let uniform =
            (self.noise.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + 0.04 * (uniform - 0.5)
    }

    /// The search: a floor, seven steps, the largest that passes, and the first that fails, twice.
    pub(super) fn run(&mut self) -> RunData {
        let mut run = RunData { ending: Ending::Complete, ..RunData::default() };
        let mut at = 0;
        let steps: [(Purpose, u32, i64); 11] = [
            (Purpose::Baseline, 4, 20),
            (Purpose::Demand, 8, 20),
            (Purpose::Demand, 12, 20),
            (Purpose::Demand, 16, 20),
            (Purpose::Demand, 20, 20),
            (Purpose::Demand, 24, 20),
            (Purpose::Demand, 28, 20),
            (Purpose::Demand, 34, 20),
            (Purpose::Bisect, PASS, 40),
            (Purpose::Bisect, FAIL, 20),
            (Purpose::Confirm, FAIL, 40),
        ];
        let mut moments = Vec::new();
        for (number, (purpose, users, seconds)) in steps.into_iter().enumerate() {
            let over = users > PASS;
            let passed = if over { HoldOutcome::No } else { HoldOutcome::Yes };
            let judged = at + 4;
            run.holds.push(HoldRow {
                number: number as u32,
                repeat: 1,
                purpose,
                users,
                from: RunTime(at * 1_000_000),
                judged_from: Some(RunTime(judged * 1_000_000)),
                until: Some(RunTime((at + seconds) * 1_000_000)),
                seconds: (seconds - 4) as u32,
                passed: [passed; 3],
                ..HoldRow::default()
            });
            // The crowd grows over the first four seconds.
            let before = moments.last().map_or(0.0, |(m, _): &(Moment, i64)| m.users);
            for second in 0..seconds {
                let share = ((second + 1) as f64 / 4.0).min(1.0);
                let users = before + (f64::from(users) - before) * share;
                let moment =
                    Moment { users, over: over && second >= 3, second: at + second, tenth: 0 };
                moments.push((moment, at + second));
            }
            at += seconds;
        }
        if !self.is_search {
            run.holds.clear();
        }
        run.ended_at = Some(RunTime(at * 1_000_000));
        self.crowd(&mut run, &moments);
        if self.is_watched {
            self.host(&mut run, &moments);
        }
        run
    }

    fn crowd(&mut self, run: &mut RunData, moments: &[(Moment, i64)]) {
        for (moment, second) in moments {
            let (second, users) = (*second, moment.users.round() as u32);
            let not_served = moment.over && self.impact == UserImpact::NotServed;
            let is_bad = self.is_bad.map_or(moment.over, |is_bad| is_bad(*moment));
            let bad = match (is_bad, not_served) {
                (false, _) => 0,
                (true, true) => users.saturating_sub(PASS),
                (true, false) => users / 2,
            };
            let mut clauses = [0; Clause::ALL.len()];
            let clause = match self.impact {
                UserImpact::Delay => Clause::Delay,
                UserImpact::Loss => Clause::Loss,
                UserImpact::NotServed => Clause::NotConnected,
                UserImpact::Stall => Clause::Stall,
            };
            clauses[clause as usize] = bad;
            run.experience.push(ExperienceRow {
                second,
                users,
                bad,
                clauses,
                ..ExperienceRow::default()
            });
            let connected = if not_served { users.min(PASS) } else { users };
            run.crowd.push(CrowdRow {
                second,
                intended: users,
                started: users,
                connected,
                playing: connected,
                ..CrowdRow::default()
            });
            if self.impact == UserImpact::Stall {
                self.players(run, *moment, second, connected);
            } else {
                self.streams(run, *moment, second, connected);
            }
            run.generator.push(GeneratorRow {
                second,
                thread: Some(0),
                cpu_us: (self.generator_cpu * 1e6) as u64,
                lag_p99_us: 400,
                ..GeneratorRow::default()
            });
        }
        if let Some(join_s) = self.join_s {
            self.joins(run, moments, join_s);
        }
        if let Some(failure) = self.refusals.clone() {
            let fail =
                moments.iter().find(|(moment, _)| moment.over).map_or(0, |(_, second)| *second);
            run.participants.push(ParticipantRow {
                participant: ParticipantId(0),
                cohort: CohortId(0),
                intended_at: RunTime(fail * 1_000_000),
                reached: BTreeMap::new(),
                ended_at: Some(RunTime(fail * 1_000_000 + 200_000)),
                outcome: Some(Outcome::Failed(failure)),
                local_address: None,
            });
        }
    }

    /// Players with a buffer: past the limit half of what they play in each second is not sent to
    /// half of them, and these stall for as long unless their buffers last.
    fn players(&mut self, run: &mut RunData, moment: Moment, second: i64, connected: u32) {
        let all = u64::from(connected);
        let lacking = if moment.over { u64::from(connected / 2) } else { 0 };
        let stalled = if self.wanted_us.is_some() { 0 } else { lacking };
        let (received, played) = (all * 2 - lacking, all * 2 - stalled); // halves of a second
        let wanted_us = self.wanted_us.map_or(1_000_000, |wanted_us| wanted_us(moment));
        run.series.push(SeriesRow {
            second,
            kind: Some(MediaKind::Video),
            tracks: connected,
            counters: TrackCounters {
                payload_bytes: received * 62_500,
                frames_decodable: played * 15,
                active_us: all * 1_000_000,
                ..TrackCounters::default()
            },
            ..SeriesRow::default()
        });
        run.playback.push(PlaybackRow {
            second,
            players: connected,
            stalled: stalled as u32,
            counters: PlaybackCounters {
                active_us: all * 1_000_000,
                stall_us: stalled * 500_000,
                stall_count: stalled,
                played_us: played * 500_000,
                media_bytes: (received as f64 * 62_500.0 * self.noise()) as u64,
                media_us: received * 500_000,
                wanted_us: all * wanted_us,
                ..PlaybackCounters::default()
            },
            ..PlaybackRow::default()
        });
    }

    /// Streams of packets: past the limit some are lost, or late.
    fn streams(&mut self, run: &mut RunData, moment: Moment, second: i64, connected: u32) {
        let lossy = moment.over && self.impact == UserImpact::Loss && self.lost_per_s.is_none();
        if let Some(lost_per_s) = self.lost_per_s {
            let lost = lost_per_s(moment).round();
            run.series.push(SeriesRow {
                second,
                kind: Some(MediaKind::Audio),
                tracks: connected,
                counters: TrackCounters {
                    packets_original: u64::from(connected) * 50 - lost as u64,
                    packets_lost: lost as i64,
                    active_us: u64::from(connected) * 1_000_000,
                    ..TrackCounters::default()
                },
                ..SeriesRow::default()
            });
        }
        let slow = moment.over && self.impact == UserImpact::Delay;
        let packets = u64::from(connected) * 100;
        let mut delay = Distribution::new();
        delay.record_many(
            if slow { 300_000 } else { (5_000.0 * self.noise()) as u64 },
            connected.max(1),
        );
        run.series.push(SeriesRow {
            second,
            kind: Some(MediaKind::Video),
            tracks: connected,
            counters: TrackCounters {
                packets_original: if lossy { packets * 9 / 10 } else { packets },
                packets_lost: if lossy { (packets / 10) as i64 } else { 0 },
                wire_bytes: if lossy { packets * 1_125 } else { packets * 1_250 },
                frames_decodable: u64::from(connected) * 30,
                active_us: u64::from(connected) * 1_000_000,
                ..TrackCounters::default()
            },
            relative_delay_us: delay,
            ..SeriesRow::default()
        });
    }

    /// All joins of the search, answered one after the other; under the failing load a crowd comes
    /// at once.
    fn joins(&mut self, run: &mut RunData, moments: &[(Moment, i64)], join_s: f64) {
        let (mut there, mut free_at) = (0.0, 0.0_f64);
        for (moment, second) in moments {
            // Past the limit users come all at once; before it they come slowly enough.
            let come = (moment.users - there).round().max(0.0) as u32;
            there += f64::from(come);
            let rush = if moment.over && run.participants.len() < 60 { 8 } else { 0 };
            for _ in 0..come.min(1) + rush {
                let began = *second as f64 + 0.001 * f64::from(run.participants.len() as u32 % 100);
                free_at = free_at.max(began) + join_s * self.noise();
                let at = |s: f64| RunTime((s * 1e6) as i64);
                run.participants.push(ParticipantRow {
                    participant: ParticipantId(run.participants.len() as u32),
                    cohort: CohortId(0),
                    intended_at: at(began),
                    reached: BTreeMap::from([
                        (Phase::Started, at(began)),
                        (Phase::Negotiated, at(free_at)),
                    ]),
                    ended_at: None,
                    outcome: None,
                    local_address: None,
                });
            }
        }
    }

    fn host(&mut self, run: &mut RunData, moments: &[(Moment, i64)]) {
        let over_s =
            moments.iter().find(|(moment, _)| moment.over).map_or(0, |(_, second)| *second);
        for id in 0..self.series.len() {
            let noise: Vec<f64> = moments.iter().map(|_| self.noise()).collect();
            let Some(series) = self.series.get(id) else { continue };
            let number = SeriesId(id as u32);
            let labels = series
                .labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect();
            run.host.series.push(HostSeries {
                id: number,
                host: HostId(0),
                metric: series.metric.into(),
                unit: series.unit,
                labels,
                limit: series.limit,
            });
            // A rate is read at the end of its second, a level at its beginning.
            let shift = i64::from(!matches!(series.unit, Unit::Count | Unit::Bytes));
            let parts: i64 = if series.is_fine { 10 } else { 1 };
            for ((moment, second), noise) in moments.iter().zip(noise) {
                for tenth in 0..parts {
                    let value = (series.value)(Moment { tenth: tenth as u8, ..*moment });
                    // What is full stays full, and what counts to a limit counts exactly.
                    let is_exact = series.limit.is_some_and(|limit| value >= limit * 0.98);
                    let value = if is_exact { value } else { value * noise };
                    let at_us = second * 1_000_000 + (tenth + shift) * 1_000_000 / parts + 10_000;
                    run.host.samples.push(HostSample { series: number, at: RunTime(at_us), value });
                }
            }
        }
        for (kind, detail) in &self.events {
            let at_s = if *kind == HostEventKind::ProcessFound { 0 } else { over_s };
            let at = RunTime(at_s * 1_000_000);
            run.host.events.push(HostEvent::new(HostId(0), at, *kind, *detail));
        }
        run.host.hosts.push(HostInfo {
            host: HostId(0),
            name: "media".into(),
            facts: self.facts.clone(),
            ..HostInfo::default()
        });
        if let Some(symbols) = &self.profile {
            let frames = symbols.iter().map(|(symbol, module, _)| Frame {
                symbol: (*symbol).into(),
                module: (*module).into(),
            });
            let stack = |(index, (_, _, count)): (usize, &(&str, &str, u32))| Stack {
                pid: 7,
                tid: 11,
                thread: "worker-0".into(),
                frames: vec![index as u32],
                count: *count,
            };
            run.host.profiles.push(Profile {
                host: HostId(0),
                moment: "fail".into(),
                started_at: RunTime((over_s + 5) * 1_000_000),
                duration_us: 10_000_000,
                frequency_hz: 99,
                method: ProfileMethod::CpuClock,
                frames: frames.collect(),
                stacks: symbols.iter().enumerate().map(stack).collect(),
                samples_lost: 0,
                limits: Vec::new(),
            });
        }
    }
}
