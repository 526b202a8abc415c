//! What one process and a fleet of three make of the same observations: the identical summary.json. Rows go the whole way, from the
//! collectors through the fleet's batches and its merge into run folders, and from these through the report.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::mpsc;

use http::Method;
use serde_json::Value;
use throng_fleet::inbox::{Arrival, Inbox};
use throng_fleet::merge::{Counts, MergeLimits, Merger, PlannedJoin, Taken, WorkerId, WorkerName};
use throng_fleet::spool::BatchKind;
use throng_fleet::wire::{self, WireLimits};
use throng_net::Waker;
use throng_observation::fleet::WorkerInfo;
use throng_observation::run::{GeneratorRow, RunInfo};
use throng_observation::{
    CaptureBasis, ChatCounters, ChatInterval, Codec, Failure, HttpRequestCounters, IceState, LatencyBasis,
    Layer, LiveInterval, MediaKind, PlaybackCounters, PlaybackInterval, RequestOutcome, SentCounters,
    TrackCounters, TrackId,
};
use throng_report::ReportRows;
use throng_scenario::Scenario;
use throng_store::RunFolder;

use super::*;
use crate::requests::RequestKind;

const S: i64 = 1_000_000;

/// Participants of the crowd.
const PEOPLE: u32 = 60;
/// The planned end.
const ENDS_AT: RunTime = RunTime(40 * S);

const WORKERS: u32 = 3;

/// When the last participants of each share have left. A worker ends then, the first one long before the others; one process ends with
/// the last of all.
const ENDED_AT: [RunTime; WORKERS as usize] = [RunTime(26_900_000), RunTime(40_540_000), RunTime(41_280_000)];

/// This one is due just before the end, and its join never begins. What became of it is unknown as of the end of its process, so
/// it belongs to the share that ends last.
const NEVER_BEGINS: u32 = 59;

const SCENARIO: &str = r#"
objectives = ["video.loss p95 < 1%", "video.freeze p95 < 1%", "connect p95 < 3s", "startup p95 < 2s", "stall_ratio p95 < 1%",
    "chat.delivery p95 < 1s", "failed < 1%"]
[target]
url = "whep+http://127.0.0.1:5280/whep"
[run]
duration = "40s"
warm_up = "5s"
[[crowd]]
name = "viewers"
size = 24
[[crowd]]
name = "publishers"
size = 12
url = "whip+http://127.0.0.1:5280/whip"
[[crowd]]
name = "players"
size = 12
url = "http://127.0.0.1:5280/live.m3u8"
[[crowd]]
name = "chat"
size = 12
url = "xmpp+ws://127.0.0.1:5280/xmpp-websocket?room=stage@conference.localhost&domain=localhost"
"#;

const COHORTS: [&str; 4] = ["viewers", "publishers", "players", "chat"];

/// What of `generator` is of the machines and not of the crowd, and why it differs. All else must be the same.
const OF_THE_MACHINES: [(&str, &str); 8] = [
    ("cpu_ms_per_participant_s", "three processes take more CPU than one"),
    ("rss_bytes_per_participant", "the same of memory"),
    ("rss_bytes_max", "the sum over three processes"),
    ("threads", "each process has its own"),
    ("thread_cpu_ratio_max", "a thread of a worker has fewer participants"),
    ("lag_ms_p99_max", "the same"),
    ("steal_ratio_max", "the worst of three machines"),
    ("workers", "one process has none"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Viewer,
    Publisher,
    Player,
    Chat,
}

impl Role {
    /// Five and three have no common divisor: each share has all roles.
    fn of(number: u32) -> Self {
        match number % 5 {
            0 | 1 => Self::Viewer,
            2 => Self::Publisher,
            3 => Self::Player,
            _ => Self::Chat,
        }
    }

    /// What it passes after it has started.
    fn phases(self) -> &'static [Phase] {
        use Phase::{
            Connected, Described, DtlsConnected, FirstFrame, FirstPacket, IceConnected, Joined, Negotiated,
            PageLoaded, PlaybackStarted, Playing, Resolved, Secured,
        };
        match self {
            Self::Viewer => &[
                Resolved,
                Connected,
                Secured,
                Negotiated,
                IceConnected,
                DtlsConnected,
                FirstPacket,
                FirstFrame,
            ],
            Self::Publisher => {
                &[Resolved, Connected, Secured, Described, Negotiated, IceConnected, DtlsConnected]
            }
            Self::Player => &[
                Resolved,
                Connected,
                Secured,
                PageLoaded,
                Described,
                Playing,
                FirstPacket,
                FirstFrame,
                PlaybackStarted,
            ],
            Self::Chat => &[Resolved, Connected, Secured, Joined],
        }
    }
}

fn join(number: u32) -> Join {
    let at = if number == NEVER_BEGINS { 39_990_000 } else { i64::from(number) * 400_000 };
    let stays_s = match worker_of(number) {
        0 if has_failed(number) => number.is_multiple_of(2).then_some(20),
        0 => Some(5),
        _ => number.is_multiple_of(7).then_some(9),
    };
    Join {
        participant: ParticipantId(number),
        cohort: CohortId(Role::of(number) as u16),
        place: number,
        at: RunTime(at),
        leave_at: stays_s.map(|stays_s| RunTime(at + stays_s * S)),
        others_follow: false,
        source_ip: None,
    }
}

/// The worker that plays a participant. The shares but the first have somebody who stays to the end of the run. Of the first some
/// that failed should be served after all others have left.
fn worker_of(number: u32) -> usize {
    (number % WORKERS) as usize
}

/// The last phase that a participant can reach.
fn last_phase(number: u32) -> Phase {
    match number {
        _ if number % 11 == 3 => Phase::Negotiated,
        _ if number % 13 == 5 => Phase::Secured,
        _ => Phase::Joined,
    }
}

/// Whether a participant fails.
fn has_failed(number: u32) -> bool {
    number % 11 == 3 || number % 13 == 5 || number % 17 == 6
}

/// When and how a participant ends.
fn end_of(number: u32) -> (i64, Outcome) {
    let Join { at: RunTime(at), leave_at, .. } = join(number);
    let failed = |after_us: i64, reason: FailureReason, why: &str| {
        (at + after_us, Outcome::Failed(Failure::new(reason, format!("{why} ({number})"))))
    };
    match number {
        _ if number % 11 == 3 => failed(1_300_000, FailureReason::Ice, "no pair of candidates works"),
        _ if number % 13 == 5 => failed(150_000, FailureReason::HttpStatus(503), "the server is busy"),
        _ if number % 17 == 6 => failed(8_200_000, FailureReason::MediaLost, "nothing came any more"),
        _ => {
            let ends_at = ENDED_AT[worker_of(number)].0 - 10_000;
            (leave_at.map_or(ends_at, |leave_at| leave_at.0 + 40_000), Outcome::Completed)
        }
    }
}

/// Pseudo-random numbers (SplitMix64) that depend on the participant and the moment alone.
struct Numbers(u64);

impl Numbers {
    fn of(number: u32, moment: i64) -> Self {
        Self((u64::from(number) << 40) ^ moment as u64)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

/// What a collector is told of a participant.
#[derive(Clone, Debug)]
enum What {
    Started,
    Address,
    Observed(Observation),
    Requested { path: String, status: u16, bytes: u64 },
    RefusedSend,
    Ended(Outcome),
}

#[derive(Clone, Debug)]
struct Told {
    at: RunTime,
    number: u32,
    what: What,
}

/// What all participants observe.
struct Story {
    clock: RunClock,
    told: Vec<Told>,
}

impl Story {
    /// In the order in which it happens.
    fn of_all(clock: RunClock) -> Vec<Told> {
        let mut story = Self { clock, told: Vec::new() };
        (0..PEOPLE).filter(|number| *number != NEVER_BEGINS).for_each(|number| story.participant(number));
        story.told.sort_by_key(|told| told.at);
        story.told
    }

    fn at(&self, us: i64) -> Instant {
        self.clock.instant(RunTime(us))
    }

    fn tell(&mut self, number: u32, us: i64, what: What) {
        self.told.push(Told { at: RunTime(us), number, what });
    }

    fn observe(&mut self, number: u32, us: i64, observation: Observation) {
        self.tell(number, us, What::Observed(observation));
    }

    fn participant(&mut self, number: u32) {
        let (role, (end, outcome)) = (Role::of(number), end_of(number));
        let mut numbers = Numbers::of(number, -1);
        // Some take longer than a join may.
        let slowly_us = if number % 19 == 8 { 450_000 } else { 0 };
        let mut reached = join(number).at.0 + 1_000 + numbers.below(20_000) as i64;
        self.tell(number, reached, What::Started);
        self.tell(number, reached, What::Address);
        for phase in role.phases().iter().copied().filter(|phase| *phase <= last_phase(number)) {
            reached += 3_000 + numbers.below(120_000) as i64 + slowly_us;
            if reached >= end {
                break;
            }
            let at = self.at(reached);
            self.observe(number, reached, Observation::Reached(phase, at));
            match phase {
                Phase::Negotiated => self.observe(number, reached, Observation::Ice(IceState::Checking)),
                Phase::IceConnected => self.observe(number, reached, Observation::Ice(IceState::Connected)),
                Phase::DtlsConnected => {
                    let path = if number % 4 == 2 { MediaPath::RelayUdp } else { MediaPath::Host };
                    self.observe(number, reached, Observation::Path(path));
                }
                Phase::Playing => self.observe(number, reached, Observation::Path(MediaPath::Http2)),
                _ => {}
            }
        }
        if last_phase(number) == Phase::Joined {
            self.media(number, role, (reached, end));
        }
        match &outcome {
            Outcome::Failed(failure) if failure.reason == FailureReason::Ice => {
                self.observe(number, end, Observation::Ice(IceState::Failed));
            }
            Outcome::Completed if number % 9 == 2 => self.observe(number, end, Observation::LeaveUnanswered),
            _ => {}
        }
        self.tell(number, end, What::Ended(outcome));
    }

    /// What comes of media, second by second.
    fn media(&mut self, number: u32, role: Role, (ready, end): (i64, i64)) {
        if role == Role::Viewer {
            self.tracks(number, ready);
        }
        let to = SocketAddr::from(([10, 0, 0, 7], 9));
        self.observe(number, ready, Observation::Refused(RefusedDestination::IceCandidate, to));
        self.tell(number, ready, What::RefusedSend);
        for (began, ended) in stretches(ready, end) {
            match role {
                Role::Viewer => self.received(number, ready, (began, ended)),
                Role::Publisher => self.sent(number, (began, ended)),
                Role::Player => self.played(number, (began, ended)),
                Role::Chat => self.chatted(number, ended),
            }
            // So many that neither one process nor any worker writes all of them one by one.
            let anomalies = if number.is_multiple_of(4) { 12 } else { 0 };
            for place in 0..anomalies {
                let detail = format!("line {place} has no value");
                self.observe(number, ended, Observation::ProtocolAnomaly { place: "sdp", detail });
            }
        }
    }

    fn tracks(&mut self, number: u32, ready: i64) {
        let at = self.at(ready);
        for (track, kind, codec) in [(0, MediaKind::Video, Codec::Vp8), (1, MediaKind::Audio, Codec::Opus)] {
            let track = TrackId(track);
            self.observe(number, ready, Observation::TrackOpened { track, kind, codec });
            self.observe(number, ready, Observation::TrackFirstFrame { track, at });
        }
        let mut numbers = Numbers::of(number, -2);
        let asked = ready + 2_300_000;
        let shown = asked + 50_000 + numbers.below(600_000) as i64;
        let switch = LayerSwitch {
            track: TrackId(0),
            layer: Layer::ALL[numbers.below(4) as usize],
            requested_at: self.at(asked),
            shown: (number % 4 != 1).then(|| (self.at(shown), 640, 360)),
        };
        self.observe(number, shown, Observation::LayerSwitched(switch));
    }

    fn received(&mut self, number: u32, ready: i64, (began, ended): (i64, i64)) {
        let length_us = (ended - began) as u64;
        for (track, kind) in [(0, MediaKind::Video), (1, MediaKind::Audio)] {
            let mut n = Numbers::of(number, began * 2 + i64::from(track));
            let is_video = kind == MediaKind::Video;
            // Negotiated, and never sent.
            let is_missing = !is_video && number % 23 == 10;
            let fps = [30.0_f32, 25.0, 15.0][(number % 3) as usize];
            let frames = length_us * fps as u64 / 1_000_000;
            let freeze_us = if is_video && n.below(12) == 0 { n.below(400_000).min(length_us) } else { 0 };
            let came = TrackCounters {
                packets_received: 80 + n.below(30),
                payload_bytes: 90_000 + n.below(9_000),
                header_bytes: 1_200,
                wire_bytes: 99_000 + n.below(9_000),
                packets_lost: if n.below(6) == 0 { n.below(9) as i64 } else { 0 },
                packets_recovered: n.below(4),
                packets_reordered: n.below(2),
                nack_sent: n.below(3),
                pli_sent: n.below(2),
                frames_complete: frames,
                frames_decodable: frames - n.below(6).min(frames),
                key_frames: n.below(2),
                freeze_count: u64::from(freeze_us > 0),
                freeze_us,
                active_us: length_us,
                ..TrackCounters::default()
            };
            let nothing = TrackCounters { active_us: length_us, ..TrackCounters::default() };
            let late_us = if number % 10 == 5 { 100_000 } else { 0 };
            // The best basis counts, whichever worker has it; the others' samples do not.
            let capture_basis = [Some(CaptureBasis::SenderReport), Some(CaptureBasis::Mark), None];
            let capture_basis = capture_basis[worker_of(number)];
            let interval = TrackInterval {
                track: TrackId(track),
                kind,
                ended_at: self.at(ended),
                counters: if is_missing { nothing } else { came },
                jitter_us: Some(500 + n.below(60_000) as u32),
                relative_delay_us: (0..30).map(|_| late_us + n.below(190_000) as u32).collect(),
                absolute_delay_us: (0..10).map(|_| n.below(90_000) as i32 - 500).collect(),
                capture_basis,
                oven_rtc_tester_delay_us: Some(n.below(9_000) as u32),
                source_fps: is_video.then_some(fps),
                frames_due_us: length_us,
                first_frame_awaited_since: None,
                missing_since: is_missing.then(|| self.at(ready)),
            };
            self.observe(number, ended, Observation::Interval(Box::new(interval)));
        }
    }

    fn sent(&mut self, number: u32, (began, ended): (i64, i64)) {
        for (track, kind, codec) in [(0, MediaKind::Video, Codec::H264), (1, MediaKind::Audio, Codec::Opus)] {
            let mut n = Numbers::of(number, began * 2 + i64::from(track));
            let interval = SentInterval {
                track: TrackId(track),
                kind,
                codec,
                ended_at: self.at(ended),
                length: Duration::from_micros((ended - began) as u64),
                counters: SentCounters {
                    packets_sent: 100 + n.below(50),
                    payload_bytes: 80_000 + n.below(9_000),
                    wire_bytes: 90_000 + n.below(9_000),
                    retransmitted_packets: n.below(5),
                    frames_sent: 30,
                    key_frames_sent: n.below(2),
                    pli_received: n.below(2),
                    blocked_us: n.below(9_000),
                    ..SentCounters::default()
                },
                round_trip_s: Some(0.02),
                remote_loss_ratio: Some(n.below(30) as f64 / 1e3),
                allowed_bps: 1e6,
                wanted_bps: 1e6,
                pause_us_max: 0,
            };
            self.observe(number, ended, Observation::Sent(Box::new(interval)));
        }
    }

    fn played(&mut self, number: u32, (began, ended): (i64, i64)) {
        let (length_us, mut n) = ((ended - began) as u64, Numbers::of(number, began));
        let stall_us = if n.below(15) == 0 { n.below(300_000).min(length_us) } else { 0 };
        let interval = PlaybackInterval {
            ended_at: self.at(ended),
            counters: PlaybackCounters {
                active_us: length_us,
                stall_us,
                stall_count: u64::from(stall_us > 0),
                played_us: length_us - stall_us,
                media_bytes: 200_000 + n.below(90_000),
                other_bytes: n.below(4_000),
                media_us: length_us - n.below(length_us / 10),
                wanted_us: n.below(length_us),
                requests: 2,
                requests_failed: n.below(2),
                connections: n.below(2),
                switches: n.below(2),
                segments: 1,
                segment_download_us: n.below(900_000),
                segment_media_us: 1_000_000,
                responses_http2: 2,
                ..PlaybackCounters::default()
            },
            buffer_us: n.below(20_000_000),
            delivery_ratio: (n.below(3) > 0).then(|| 0.9 + n.below(200) as f32 / 1e3),
            start_awaited_since: None,
            live: Some(LiveInterval {
                latency_us: 8_000_000 + n.below(9_000_000) as i64,
                basis: if number.is_multiple_of(2) {
                    LatencyBasis::ProgramDateTime
                } else {
                    LatencyBasis::PlaylistEdge
                },
                capture_latency_us: Some(9_000_000 + n.below(9_000_000) as i64),
                over_target_us: n.below(5_000_000) as i64,
                target_duration_us: 4_000_000,
            }),
        };
        self.observe(number, ended, Observation::Playback(Box::new(interval)));
        let path = format!("/{}.ts", ended / S % 20);
        let status = if n.below(8) == 0 { 404 } else { 200 };
        self.tell(number, ended, What::Requested { path, status, bytes: n.below(200_000) });
    }

    fn chatted(&mut self, number: u32, ended: i64) {
        let mut n = Numbers::of(number, ended);
        let came = n.below(5);
        let missing = u64::from(n.below(20) == 0);
        let interval = ChatInterval {
            ended_at: self.at(ended),
            counters: ChatCounters {
                messages_due: came + missing,
                messages_missing: missing,
                messages_received: came,
                messages_sent: n.below(2),
                stanzas_received: came + n.below(3),
                presences_received: n.below(3),
                bytes_received: 300 * came,
                bytes_sent: 200,
                reconnects: u64::from(n.below(30) == 0),
                ..ChatCounters::default()
            },
            delays_us: (0..came).map(|_| n.below(2_500_000)).collect(),
            occupants: n.below(12) as u32,
            is_joined: n.below(25) > 0,
        };
        self.observe(number, ended, Observation::Chat(Box::new(interval)));
    }
}

/// The intervals from one moment to another: they end 0.1 s before each second does.
fn stretches(from: i64, until: i64) -> impl Iterator<Item = (i64, i64)> {
    let mut began = from;
    std::iter::from_fn(move || {
        let next = ((began + 100_000).div_euclid(S) + 1) * S - 100_000;
        let stretch = (began, next.min(until));
        began = stretch.1;
        (stretch.0 < stretch.1).then_some(stretch)
    })
}

/// Health of a worker, or of the one process with its two threads. Figures differ by so little that a sentence that names them
/// rounds them to the same, and none is past a limit.
fn health(worker: Option<usize>, second: i64) -> Vec<GeneratorRow> {
    let (threads, shift) = worker.map_or((2, 0), |worker| (1, worker as u64 + 1));
    let process = GeneratorRow {
        second,
        cpu_us: 500_000 + 10_000 * shift,
        rss_bytes: (50 + shift) << 20,
        steal_ratio: 0.001 * (shift + 1) as f64,
        ..GeneratorRow::default()
    };
    let thread = |number| GeneratorRow {
        second,
        thread: Some(number),
        cpu_us: 300_000 + 1_000 * shift,
        lag_p99_us: 1_000 + 10 * shift,
        ..GeneratorRow::default()
    };
    (0..threads).map(thread).chain([process]).collect()
}

fn tell(collector: &mut Collector, id: u32, told: &Told) {
    let at = collector.config.clock.instant(told.at);
    let event = match told.what.clone() {
        What::Started => DriverEvent::Started { id, at },
        What::Address => DriverEvent::LocalAddress { id, address: SocketAddr::from(([127, 0, 0, 1], 9)) },
        What::Observed(observation) => DriverEvent::Observed { id, at, observation },
        What::RefusedSend => DriverEvent::RefusedSend { id, at, to: SocketAddr::from(([10, 0, 0, 7], 9)) },
        What::Ended(outcome) => DriverEvent::Ended { id, at, outcome },
        What::Requested { path, status, bytes } => {
            let (mut table, method) = (RequestTable::default(), Method::GET);
            let kind = RequestKind { method: &method, outcome: RequestOutcome::Status(status), version: 2 };
            let counters =
                HttpRequestCounters { requests: 1, body_bytes: bytes, ..HttpRequestCounters::default() };
            table.add(("live.example", &path), kind, (counters, at, at));
            DriverEvent::Requests(table)
        }
    };
    collector.take(event);
}

/// The rows of a process that plays all of the crowd or a worker's share of it, as they come second by second.
fn collected(clock: RunClock, told: &[Told], worker: Option<usize>) -> Vec<Vec<Row>> {
    let is_its = |number: u32| worker.is_none_or(|worker| worker_of(number) == worker);
    let ended_at = worker.map_or(ENDED_AT[2], |worker| ENDED_AT[worker]);
    let plan: Arc<[Join]> = (0..PEOPLE).filter(|number| is_its(*number)).map(join).collect();
    let ids: BTreeMap<u32, u32> = plan.iter().map(|join| join.participant.0).zip(0..).collect();
    let (rows, written) = mpsc::sync_channel(1 << 16);
    let mut collector = Collector::new(CollectorConfig {
        clock,
        ends_at: ENDS_AT,
        cohorts: COHORTS.len() as u16,
        control: Arc::new(Control::new(Vec::<Arc<Waker>>::new(), plan.len() as u32)),
        plan,
        worst: 5,
        guards: Guards::default(),
        bad_if: BadIf::default(),
        live: Arc::default(),
        rows,
    });
    let mut story = told.iter().filter(|told| is_its(told.number)).peekable();
    let mut by_second: Vec<Vec<Row>> = Vec::new();
    for second in 0.. {
        let closed_at = RunTime((second + 1) * S + CLOSED_AFTER_US);
        while let Some(told) = story.next_if(|told| told.at < closed_at) {
            tell(&mut collector, ids[&told.number], told);
        }
        health(worker, second).into_iter().for_each(|row| collector.take(DriverEvent::Health(row)));
        if closed_at > ended_at {
            break;
        }
        collector.close_second(closed_at);
        by_second.push(written.try_iter().collect());
    }
    assert!(story.next().is_none(), "all have left");
    collector.finish_at(ended_at);
    by_second.push(written.try_iter().collect());
    by_second
}

/// The batches of a worker, packed as it packs them: what is replaced first, what is said once, what closes a second.
fn batches(by_second: Vec<Vec<Row>>) -> Vec<(BatchKind, Vec<u8>)> {
    let mut batches = Vec::new();
    for mut rows in by_second {
        for kind in [BatchKind::Interim, BatchKind::Lasting, BatchKind::Second] {
            let of_kind: Vec<Row> = rows.extract_if(.., |row| BatchKind::of(row) == kind).collect();
            if !of_kind.is_empty() {
                batches.push((kind, wire::encode(&of_kind, WireLimits::default()).unwrap()));
            }
        }
    }
    batches
}

/// An order in which batches arrive: each two of them exchanged, many twice, and the first and a middle one once more at the end.
fn deliveries(count: usize) -> Vec<usize> {
    let numbers: Vec<usize> = (0..count).collect();
    let mut order: Vec<usize> = Vec::new();
    for pair in numbers.chunks(2) {
        order.extend(pair.iter().rev());
        order.extend(pair.first().filter(|first| **first % 3 == 0));
    }
    order.extend([0, count / 2]);
    order
}

/// A join as the coordinator knows it.
fn planned(number: u32) -> PlannedJoin {
    let Join { participant, cohort, at: intended_at, leave_at, .. } = join(number);
    PlannedJoin { participant, cohort, intended_at, leave_at }
}

/// The rows of the fleet. Nothing of the last worker comes before all of the others has. `given_up` is a batch, by worker and
/// number, for which that worker had no room: it sends the number alone.
fn merged(shares: &[Vec<(BatchKind, Vec<u8>)>], given_up: Option<(usize, usize)>) -> Vec<Row> {
    let names: Vec<WorkerName> = (0..shares.len()).map(|worker| WorkerName(format!("w{worker}"))).collect();
    let limits = MergeLimits {
        cohorts: COHORTS.len() as u16,
        second_max: ENDS_AT.second() + 60,
        participants: PEOPLE,
    };
    let mut merger = Merger::new(&names, limits);
    let mut inboxes = vec![Inbox::new(1 << 20); shares.len()];
    let mut arrivals: Vec<(bool, usize, usize, usize)> = Vec::new();
    for (worker, batches) in shares.iter().enumerate() {
        let is_late = worker == shares.len() - 1;
        let places = deliveries(batches.len()).into_iter().enumerate();
        arrivals.extend(places.map(|(place, number)| (is_late, place, worker, number)));
    }
    arrivals.sort_unstable();
    let mut out = Vec::new();
    for (_, _, worker, number) in arrivals {
        let (inbox, id) = (&mut inboxes[worker], WorkerId(worker as u16));
        let is_given_up = given_up == Some((worker, number));
        let bytes = if is_given_up { Vec::new() } else { shares[worker][number].1.clone() };
        assert_ne!(inbox.take(number as u64, bytes), Arrival::NoRoom);
        while let Some((_, bytes)) = inbox.pop() {
            for row in wire::decode(&bytes, WireLimits::default()).unwrap() {
                assert_eq!(merger.take(id, row, &mut out), Taken::Yes);
            }
        }
        if inbox.confirmed() == shares[worker].len() as u64 {
            merger.finished(
                id,
                (0..PEOPLE).filter(|number| worker_of(*number) == worker).map(planned),
                &mut out,
            );
        }
    }
    assert!(inboxes.iter().all(|inbox| inbox.duplicates() > 10));
    assert_eq!(merger.seconds_kept(), 0);
    for worker in (0..shares.len() as u16).map(WorkerId).filter(|_| given_up.is_none()) {
        assert_eq!(merger.counts(worker), Counts::default());
    }
    out
}

/// The summary of these rows, through a run folder, as `throng report` makes it.
fn summary(rows: impl IntoIterator<Item = Row>, workers: &[usize]) -> Value {
    let worker = |number: &usize| WorkerInfo {
        name: format!("w{number}"),
        participants: PEOPLE / WORKERS,
        ..WorkerInfo::default()
    };
    let info = RunInfo {
        throng_version: "0.1.0".into(),
        scenario: SCENARIO.into(),
        target: "whep+http://127.0.0.1:5280/whep".into(),
        cohorts: COHORTS.map(str::to_owned).to_vec(),
        started_at_unix_us: 1_764_180_000_000_000,
        planned_duration_us: ENDS_AT.0,
        workers: workers.iter().map(worker).collect(),
        ..RunInfo::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut writer = RunFolder::create(&path, &info).unwrap();
    for (number, row) in rows.into_iter().enumerate() {
        writer.write(row);
        // The writer keeps a bounded number of rows between two commits.
        if number % 500 == 499 {
            writer.commit().unwrap();
        }
    }
    writer.finish(Ending::Complete, ENDED_AT[2]).unwrap();
    let run = RunFolder::read_selected(&path, &mut ReportRows::default()).unwrap();
    let scenario = Scenario::parse_stored(SCENARIO).unwrap_or_else(|error| panic!("{error}"));
    let summary = throng_report::summarise(&run, &scenario.objectives, scenario.run.warm_up);
    serde_json::from_str(&summary.to_json()).unwrap()
}

/// The summary without what is of the machines.
fn of_the_crowd(summary: &Value) -> Value {
    let mut summary = summary.clone();
    let generator = summary["generator"].as_object_mut().unwrap();
    for (key, _) in OF_THE_MACHINES {
        generator.remove(key);
    }
    summary
}

/// Where two summaries differ.
fn differences(path: &str, one: &Value, other: &Value) -> Vec<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let of = |key: &&String| {
                let (one, other) = (one.get(*key), other.get(*key));
                match one.zip(other) {
                    Some((one, other)) => differences(&format!("{path}.{key}"), one, other),
                    None => vec![format!("{path}.{key}: only one has it")],
                }
            };
            keys.iter().flat_map(of).collect()
        }
        _ if one == other => Vec::new(),
        _ => vec![format!("{path}: {one} and {other}")],
    }
}

/// No figure needs a tolerance: rows hold whole numbers and distributions whose sums do not depend on their order, and the report
/// computes its fractions from the same rows in the same order.
#[test]
fn a_fleet_and_one_process_leave_the_same_summary_of_the_same_crowd() {
    let clock = RunClock { start: Instant::now() };
    let told = Story::of_all(clock);
    let one = summary(collected(clock, &told, None).into_iter().flatten(), &[]);
    let workers = [0, 1, 2];
    let shares = workers.map(|worker| batches(collected(clock, &told, Some(worker))));
    let fleet = summary(merged(&shares, None), &workers);
    assert_eq!(differences("", &of_the_crowd(&one), &of_the_crowd(&fleet)), Vec::<String>::new());
    // Nothing is left out of the comparison that is the same anyway.
    for (key, why) in OF_THE_MACHINES {
        assert_ne!(one["generator"].get(key), fleet["generator"].get(key), "{key}: {why}");
    }
    // It is a summary of something.
    assert_eq!(one["participants"]["intended"], PEOPLE);
    for failure in ["ice", "http_503", "media_lost"] {
        assert!(one["failures"][failure].as_u64() > Some(1), "{failure}: {}", one["failures"]);
    }
    for part in ["playback", "chat", "sent", "layer_switches", "bottleneck"] {
        assert!(one[part].is_object(), "{part}: {}", one[part]);
    }
    assert!(one["events"]["protocol_anomaly_sdp"].as_u64() > Some(2_500), "{}", one["events"]);
    assert_eq!(one["video"]["one_way_delay_basis"], "mark");
    assert_eq!(one["generator"]["limited"], false, "{}", one["generator"]);
}

#[test]
fn a_batch_that_is_missing_shows_in_the_summary_unless_later_rows_replace_it() {
    let clock = RunClock { start: Instant::now() };
    let told = Story::of_all(clock);
    let workers = [0, 1, 2];
    let shares = workers.map(|worker| batches(collected(clock, &told, Some(worker))));
    let whole = summary(merged(&shares, None), &workers);
    for (kind, figure) in [
        (BatchKind::Interim, None),
        (BatchKind::Lasting, Some(".events.protocol_anomaly_sdp")),
        (BatchKind::Second, Some(".video.packets_received")),
    ] {
        let mut of_kind = shares[1].iter().enumerate().filter(|(_, (of, _))| *of == kind);
        let (number, _) = of_kind.nth(12).unwrap();
        let without = summary(merged(&shares, Some((1, number))), &workers);
        let differences = differences("", &of_the_crowd(&whole), &of_the_crowd(&without));
        match figure {
            Some(figure) => {
                assert!(differences.iter().any(|at| at.starts_with(figure)), "{kind:?}: {differences:?}");
            }
            None => assert_eq!(differences, Vec::<String>::new(), "{kind:?}"),
        }
    }
}
