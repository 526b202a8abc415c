//! Made-up runs with a row of every kind.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use throng_observation::canary::{BrowserId, CanaryBrowserRow, CanaryRow, CanarySecondRow};
use throng_observation::host::{
    HostEvent, HostEventKind, HostId, HostInfo, HostRow, HostSample, HostSeries, SeriesId, Unit,
    catalogue,
};
use throng_observation::run::{
    ClockError, CohortId, CrowdRow, EventRow, GeneratorRow, LayerSwitchRow, ParticipantId,
    ParticipantRow, Row, RunInfo, SentRow, SeriesRow, SourceFps, TrackRow,
};
use throng_observation::{
    CaptureBasis, ChatRow, Clause, Codec, Distribution, ExperienceRow, Failure, FailureReason,
    HoldOutcome, HoldRow, HttpRequestKey, HttpRequestRow, Layer, MediaKind, OneWayDelay, Outcome,
    Phase, PlaybackRow, PlayerRow, Purpose, RequestOutcome, RunTime, SecondClosed, TrackId,
};
use throng_scenario::Scenario;

/// How long each run lasts.
pub(crate) const SECONDS: i64 = 12;

/// Viewers by WebRTC and by HLS, a chat, and a camera.
const CROWD: &str = r#"objectives = [
    "video.loss < 1%", "fps p50 > 0.9 of source", "latency p95 < 20s", "startup p95 < 2s",
    "chat.missing < 1%", "failed < 5%",
]
[target]
url = "https://127.0.0.1:5280/live.m3u8"
[run]
duration = "12s"
[[crowd]]
name = "webrtc"
size = 2
url = "whep+http://127.0.0.1:5280/whep"
[[crowd]]
name = "hls"
size = 1
[[crowd]]
name = "reads"
size = 1
url = "xmpp+ws://127.0.0.1:5280/xmpp-websocket?room=stage@conference.localhost&domain=localhost"
[[crowd]]
name = "camera"
size = 1
url = "whip+http://127.0.0.1:5280/whip"
"#;

const CONFERENCE: &str = r#"[target]
url = "janus+ws://127.0.0.1:8188/videoroom/1"
[crowd]
size = 3
[run]
duration = "12s"
"#;

const SEARCH: &str = r#"[target]
url = "https://127.0.0.1:5280/live.m3u8"
[crowd]
size = 4
"#;

/// A run before it is written.
pub(crate) struct Recorded {
    pub(crate) name: &'static str,
    pub(crate) info: RunInfo,
    pub(crate) rows: Vec<Row>,
}

pub(crate) fn all() -> [Recorded; 3] {
    let recorded = |name, scenario: &str, cohorts: &[&str], rows| Recorded {
        name,
        info: info(scenario, cohorts),
        rows,
    };
    [
        recorded("crowd", CROWD, &["webrtc", "hls", "reads", "camera"], crowd_rows()),
        recorded("conference", CONFERENCE, &["participants"], conference_rows()),
        recorded("search", SEARCH, &["viewers"], search_rows()),
    ]
}

fn info(scenario: &str, cohorts: &[&str]) -> RunInfo {
    RunInfo {
        format: throng_store::FORMAT,
        throng_version: "0.1.0".into(),
        scenario: scenario.into(),
        target: "https://127.0.0.1:5280/live.m3u8".into(),
        cohorts: cohorts.iter().map(|name| (*name).to_owned()).collect(),
        started_at_unix_us: 1_700_000_000_000_000,
        planned_duration_us: SECONDS * 1_000_000,
        generator_host: BTreeMap::from([("cores".into(), "2".into())]),
        media_files: BTreeMap::from([("talk.ivf".into(), "00ff".into())]),
        clock: ClockError { bound_us: Some(20), basis: "same host".into() },
        warnings: vec!["20,000 descriptors".into()],
        workers: Vec::new(),
        plan: Scenario::run_plan_of_stored(scenario),
    }
}

fn at(second: i64) -> RunTime {
    RunTime(second * 1_000_000)
}

/// Sums with a value for each name, `scale` times one that the name gives: a new sum changes none
/// of the others, and no two are likely to be confused.
fn sums<T: Default + Serialize + DeserializeOwned>(scale: u64) -> T {
    let mut fields = serde_json::to_value(T::default()).unwrap();
    for (name, value) in fields.as_object_mut().unwrap().iter_mut() {
        let digest = name.bytes().fold(7_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 9_973);
        let each = match name.as_str() {
            // What others are parts of.
            "active_us" | "wanted_us" | "media_us" | "segment_media_us" => 1_000_000,
            "packets_original" | "packets_sent" | "messages_due" | "requests" => 5_000,
            // As under their earlier names.
            "packets_unreadable" => 901,
            "frames_received" => 651,
            _ => 100 + digest % 900,
        };
        *value = (scale * each).into();
    }
    serde_json::from_value(fields).unwrap()
}

fn samples(base: u64, count: u64) -> Distribution {
    let mut samples = Distribution::new();
    (0..count).for_each(|n| samples.record(base + n * base / 10));
    samples
}

fn one_way() -> OneWayDelay {
    OneWayDelay::from_parts(Some(CaptureBasis::Mark), samples(30_000, 20), 2, samples(90, 2))
}

fn series(second: i64, cohort: u16, kind: MediaKind, tracks: u32) -> Row {
    let is_video = kind == MediaKind::Video;
    let of_video = |samples| if is_video { samples } else { Distribution::new() };
    // Of the first track the source's rate is not known; in a cohort later in the file the
    // source is slower.
    let known = u64::from(tracks.saturating_sub(1));
    let sum_milli = known * (30_000 - 5_000 * u64::from(cohort));
    let source_fps =
        if is_video { SourceFps { tracks: known, sum_milli } } else { SourceFps::default() };
    Row::Series(Box::new(SeriesRow {
        second,
        cohort: CohortId(cohort),
        kind: Some(kind),
        tracks,
        tracks_below_source_fps: u64::from(is_video),
        counters: sums(u64::from(tracks)),
        relative_delay_us: samples(6_000, 20),
        absolute_delay: one_way(),
        jitter_us: samples(1_500, 4),
        fps_milli: of_video(samples(20_000, 4)),
        loss_ppm: samples(2_000, 4),
        oven_rtc_tester_delay_us: samples(20_000, 4),
        picture_lines: of_video(samples(720, 1)),
        source_fps,
    }))
}

fn sent(second: i64, cohort: u16, kind: MediaKind, tracks: u32) -> Row {
    let counters = sums(u64::from(tracks));
    Row::Sent(SentRow { second, cohort: CohortId(cohort), kind, tracks, counters })
}

fn playback(second: i64, cohort: u16) -> Row {
    Row::Playback(Box::new(PlaybackRow {
        second,
        cohort: CohortId(cohort),
        players: 4,
        stalled: 2,
        starting: 1,
        counters: sums(4),
        buffer_us: samples(4_000_000, 4),
        shortfall_ppm: samples(10_000, 4),
        dates_ahead: Some(1),
        latency_us: samples(12_000_000, 3),
        edge_latency_us: samples(9_000_000, 4),
        capture_latency_us: samples(14_000_000, 2),
    }))
}

fn chat(second: i64, cohort: u16) -> Row {
    Row::Chat(Box::new(ChatRow {
        second,
        cohort: CohortId(cohort),
        members: 3,
        joined: 2,
        occupants_max: 9,
        counters: sums(3),
        delay_us: samples(40_000, 12),
    }))
}

/// The crowd of a second with its end; so many users a cohort, of whom one had a bad second.
fn second_of(second: i64, cohorts: u16, users: u32) -> Vec<Row> {
    let crowd = |cohort| {
        Row::Crowd(CrowdRow {
            second,
            cohort: CohortId(cohort),
            intended: users + 1,
            started: users + 1,
            connected: users,
            playing: users,
            failed: 1,
            left: 0,
            ice: [0, 0, users, 0, 1, 0],
        })
    };
    let experience = |cohort| {
        let mut row = ExperienceRow { second, users, bad: 1, ..ExperienceRow::default() };
        (row.cohort, row.uncounted_milli) = (CohortId(cohort), 250);
        row.clauses[Clause::Loss as usize] = 1;
        row
    };
    let process = GeneratorRow {
        second,
        cpu_us: 200_000,
        lag_p99_us: 400,
        lag_max_us: 900,
        sent_bytes: 7_000,
        rss_bytes: 30_000_000,
        open_fds: 40,
        steal_ratio: 0.01,
        ..GeneratorRow::default()
    };
    let thread = GeneratorRow { thread: Some(0), ring_datagrams: 70, ..process.clone() };
    let experience = (0..cohorts).map(experience).collect();
    (0..cohorts)
        .map(crowd)
        .chain([process, thread].map(Row::Generator))
        .chain([Row::SecondClosed(SecondClosed {
            second,
            experience,
            is_generator_limited: false,
        })])
        .collect()
}

fn participant(number: u32, cohort: u16, phases: &[Phase], outcome: Outcome) -> Row {
    let intended_at = RunTime(100_000 * i64::from(number));
    let after = |step: i64| RunTime(intended_at.0 + 70_000 * step);
    Row::Participant(Box::new(ParticipantRow {
        participant: ParticipantId(number),
        cohort: CohortId(cohort),
        intended_at,
        reached: (1..).zip(phases).map(|(step, phase)| (*phase, after(step))).collect(),
        ended_at: Some(at(SECONDS)),
        outcome: Some(outcome),
        local_address: Some(format!("127.0.0.1:{}", 40_000 + number)),
    }))
}

fn track(number: u32, track: u16, kind: MediaKind, from: Option<u32>) -> Row {
    let is_video = kind == MediaKind::Video;
    Row::Track(Box::new(TrackRow {
        participant: ParticipantId(number),
        track: TrackId(track),
        kind,
        codec: if is_video { Codec::H264 } else { Codec::Opus },
        from: from.map(|sender| ParticipantId(sender).name()),
        first_frame_at: Some(at(1)),
        counters: sums(10),
        relative_delay_us: samples(7_000, 40),
        absolute_delay: one_way(),
        fps: is_video.then_some(29.5),
        jitter_us: Some(1_700),
        oven_rtc_tester_delay_us: Some(21_000),
    }))
}

/// What is told once of a run of players and viewers.
fn once() -> Vec<Row> {
    let completed = || Outcome::Completed;
    let failure = Failure::new(FailureReason::HttpStatus(404), "POST /whep answered 404");
    let webrtc = [Phase::Started, Phase::Connected, Phase::DtlsConnected, Phase::FirstFrame];
    let hls = [Phase::Started, Phase::Playing, Phase::FirstFrame, Phase::PlaybackStarted];
    let mut rows = vec![
        participant(0, 0, &webrtc, completed()),
        participant(1, 0, &[Phase::Started], Outcome::Failed(failure)),
        participant(2, 1, &hls, completed()),
        participant(3, 2, &[Phase::Started, Phase::Connected, Phase::Joined], completed()),
        participant(4, 3, &[Phase::Started, Phase::DtlsConnected], completed()),
        track(0, 0, MediaKind::Video, None),
        track(0, 1, MediaKind::Audio, None),
    ];
    rows.push(Row::Player(Box::new(PlayerRow {
        participant: ParticipantId(2),
        startup_us: Some(400_000),
        buffer_us: 9_000_000,
        delivery_ppm_min: Some(985_000),
        counters: sums(11),
    })));
    for (path, status) in [("/live.m3u8", 200), ("/7.ts", 404)] {
        rows.push(Row::HttpRequests(Box::new(HttpRequestRow {
            key: HttpRequestKey {
                host: "127.0.0.1:5280".into(),
                path: path.into(),
                method: "GET".into(),
                outcome: RequestOutcome::Status(status),
                version: 2,
            },
            counters: sums(1),
            first_at: at(1),
            last_at: at(9),
        })));
    }
    rows.push(Row::LayerSwitch(LayerSwitchRow {
        participant: ParticipantId(0),
        track: TrackId(0),
        layer: Layer::High,
        requested_at: at(3),
        shown_at: Some(RunTime(3_250_000)),
        width: 1_280,
        height: 720,
    }));
    rows.push(Row::Event(EventRow {
        at: at(1),
        participant: Some(ParticipantId(1)),
        kind: "failed".into(),
        count: 1,
        detail: "http_404: POST /whep answered 404".into(),
    }));
    rows
}

/// A browser among the viewers.
fn canary() -> Vec<Row> {
    let browser = CanaryBrowserRow {
        version: "Chrome/156.0.8078.79".into(),
        intended_at: at(1),
        connected_at: Some(RunTime(1_200_000)),
        first_frame_at: Some(RunTime(1_500_000)),
        ended_at: Some(at(SECONDS)),
        candidates_refused: 1,
        ..CanaryBrowserRow::default()
    };
    let second = |second| CanarySecondRow {
        second,
        browser: BrowserId(0),
        video_tracks: 1,
        video_active_us: 1_000_000,
        frames_decoded: 29,
        frames_dropped: 1,
        video_packets_received: 120,
        video_packets_lost: 2,
        video_bytes: 120_000,
        video_jitter_us: samples(1_400, 1),
        jitter_buffer_us: 1_200_000,
        jitter_buffer_emitted: 29,
        freeze_count: 1,
        freeze_us: 200_000,
        decode_us: 90_000,
        cpu_us: 300_000,
        ..CanarySecondRow::default()
    };
    let seconds = (2..SECONDS).map(|at| CanaryRow::Second(Box::new(second(at))));
    std::iter::once(CanaryRow::Browser(browser)).chain(seconds).map(Row::Canary).collect()
}

/// The server's host.
fn host() -> Vec<Row> {
    let facts = BTreeMap::from([("cpus".into(), "2".into())]);
    let info = HostInfo { name: "media one".into(), facts, ..HostInfo::default() };
    let mut rows = vec![HostRow::Info(info)];
    let metrics = [
        (catalogue::HOST_CPU_BUSY.name, Unit::Ratio, Some(2.0), 0.5),
        (catalogue::PROCESS_CPU.name, Unit::Ratio, None, 0.25),
        (catalogue::NIC_TX_BYTES.name, Unit::BytesPerSecond, Some(125e6), 4e6),
    ];
    for (id, (metric, unit, limit, value)) in (0..).zip(metrics) {
        let labels = [("process", "caddy"), ("pid", "7"), ("interface", "eth0")];
        rows.push(HostRow::Series(HostSeries {
            id: SeriesId(id),
            host: HostId(0),
            metric: metric.into(),
            unit,
            labels: labels.map(|(name, label)| (name.to_owned(), label.to_owned())).into(),
            limit,
        }));
        rows.extend((-2..SECONDS).map(|second| {
            let value = value + second as f64 / 64.0;
            HostRow::Sample(HostSample { series: SeriesId(id), at: at(second), value })
        }));
    }
    rows.push(HostRow::Event(HostEvent::new(
        HostId(0),
        at(0),
        HostEventKind::Mark,
        "the crowd joins",
    )));
    rows.into_iter().map(Row::Host).collect()
}

fn crowd_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for second in 0..SECONDS {
        // Nobody receives anything in the first second, nor in two of the middle.
        if !matches!(second, 0 | 6 | 7) {
            rows.push(series(second, 0, MediaKind::Video, 3));
            rows.push(series(second, 0, MediaKind::Audio, 3));
            rows.push(series(second, 1, MediaKind::Video, 2));
            rows.push(playback(second, 1));
            rows.push(chat(second, 2));
        }
        rows.push(sent(second, 3, MediaKind::Video, 1));
        rows.push(sent(second, 3, MediaKind::Audio, 1));
        rows.extend(second_of(second, 4, 5));
    }
    rows.extend(once());
    rows.extend(canary());
    rows.extend(host());
    rows
}

/// Three in a room, each of whom receives the others.
fn conference_rows() -> Vec<Row> {
    let kinds = [MediaKind::Video, MediaKind::Audio];
    let mut rows = Vec::new();
    for second in 1..SECONDS {
        for kind in kinds {
            rows.push(series(second, 0, kind, 6));
            rows.push(sent(second, 0, kind, 3));
        }
        rows.extend(second_of(second, 1, 3));
    }
    let phases = [Phase::Started, Phase::DtlsConnected, Phase::FirstFrame];
    for to in 0..3 {
        rows.push(participant(to, 0, &phases, Outcome::Completed));
        let others = (0..3).filter(|from| *from != to);
        let streams = others.flat_map(|from| kinds.map(|kind| (from, kind)));
        rows.extend((0..).zip(streams).map(|(id, (from, kind))| track(to, id, kind, Some(from))));
    }
    rows
}

/// A load that passed and one that failed.
fn search_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for second in 0..SECONDS {
        rows.push(playback(second, 0));
        rows.extend(second_of(second, 1, 4));
    }
    for (number, from, passed) in [(0, 0, HoldOutcome::Yes), (1, 6, HoldOutcome::No)] {
        let bad = if passed == HoldOutcome::No { 5 } else { 0 };
        rows.push(Row::Hold(Box::new(HoldRow {
            number,
            repeat: 1,
            purpose: if number == 0 { Purpose::Baseline } else { Purpose::Bisect },
            users: 2 + number * 2,
            step: 1,
            from: at(from),
            judged_from: Some(at(from + 1)),
            until: Some(at(from + 6)),
            seconds: 5,
            bad_seconds: [bad; 3],
            bad_stretches: bad.min(1),
            bad_to_the_end: bad > 0,
            broke_at: (bad > 0).then(|| at(from + 2)),
            passed: [passed; 3],
            user_seconds: 20,
            bad_user_seconds: 4 * u64::from(bad),
            ..HoldRow::default()
        })));
    }
    rows
}
