//! A run of players, and what its summary says.

use std::time::Duration;

use throng_observation::run::{CohortId, EventRow, ParticipantId, RunData};
use throng_observation::{
    Distribution, MediaKind, MediaPath, NoResponse, Phase, PlaybackCounters, PlaybackRow,
    PlayerRow, Players, RequestOutcome, RunTime, TrackCounters,
};
use throng_scenario::Objective;

use crate::{example, summarise, text};

/// A run of HTTP players: of 100, `stalls` each stall for half of every second from 10 s on.
pub(crate) fn players(stalls: u32) -> RunData {
    const PLAYERS: u32 = 100;
    const SECONDS: i64 = 30;
    let mut run = example::healthy(PLAYERS, SECONDS);
    run.info.target = "http://127.0.0.1:8080/film.mp4".into();
    let scenario = "[target]\nurl = \"http://127.0.0.1:8080/film.mp4\"\n\n[crowd]\nsize = 100\n";
    example::plan(&mut run, scenario);
    // Nothing comes as packets.
    let fetched = |c: TrackCounters| TrackCounters {
        payload_bytes: c.payload_bytes,
        frames_complete: c.frames_complete,
        frames_decodable: c.frames_decodable,
        key_frames: c.key_frames,
        active_us: c.active_us,
        ..TrackCounters::default()
    };
    for row in &mut run.series {
        row.counters = fetched(row.counters);
        row.relative_delay_us = Distribution::new();
        row.absolute_delay = throng_observation::OneWayDelay::default();
        row.jitter_us = Distribution::new();
        row.loss_ppm = Distribution::new();
        row.oven_rtc_tester_delay_us = Distribution::new();
    }
    for track in &mut run.tracks {
        track.counters = fetched(track.counters);
        track.relative_delay_us = Distribution::new();
        track.absolute_delay = throng_observation::OneWayDelay::default();
        (track.jitter_us, track.oven_rtc_tester_delay_us) = (None, None);
    }
    let mut all: Vec<PlayerRow> = Vec::new();
    for row in &mut run.participants {
        for phase in [Phase::Negotiated, Phase::IceConnected, Phase::DtlsConnected] {
            row.reached.remove(&phase);
        }
        let after = |ms: i64| RunTime(row.intended_at.0 + ms * 1_000);
        let phases = [
            (Phase::Described, 20),
            (Phase::Playing, 40),
            (Phase::FirstPacket, 45),
            (Phase::FirstFrame, 60),
            (Phase::PlaybackStarted, 400),
        ];
        row.reached.extend(phases.map(|(phase, ms)| (phase, after(ms))));
        all.push(PlayerRow {
            participant: row.participant,
            startup_us: Some(400_000),
            buffer_us: 10_000_000,
            delivery_ppm_min: None,
            counters: PlaybackCounters::default(),
        });
    }
    for second in 0..SECONDS {
        let is_short = second >= 10;
        let stalled = if is_short { stalls } else { 0 };
        let mut row = PlaybackRow {
            second,
            cohort: CohortId(0),
            players: PLAYERS,
            stalled,
            starting: if second == 0 { PLAYERS } else { 0 },
            ..PlaybackRow::default()
        };
        for (number, player) in all.iter_mut().enumerate() {
            let is_stalled = is_short && (number as u32) < stalls;
            let counters = PlaybackCounters {
                active_us: 1_000_000,
                startup_us: if second == 0 { 400_000 } else { 0 },
                stall_us: if is_stalled { 500_000 } else { 0 },
                stall_count: u64::from(is_stalled),
                played_us: if is_stalled { 500_000 } else { 1_000_000 },
                media_bytes: if is_stalled { 125_000 } else { 250_000 },
                media_us: if is_stalled { 500_000 } else { 1_000_000 },
                wanted_us: 1_000_000,
                requests: 1,
                connections: u64::from(second == 0),
                ..PlaybackCounters::default()
            };
            row.counters += counters;
            player.counters += counters;
            row.buffer_us.record(if is_stalled { 0 } else { 10_000_000 });
            row.shortfall_ppm.record(if is_stalled { 500_000 } else { 0 });
        }
        run.playback.push(row);
    }
    all.iter().for_each(|player| run.players.add(player));
    let statuses = [(200, 12_300), (206, 40), (404, 5)];
    let statuses = statuses.map(|(status, requests)| (RequestOutcome::Status(status), requests));
    run.http_requests.by_outcome.extend(statuses);
    run.http_requests.by_outcome.insert(RequestOutcome::NoResponse(NoResponse::NotAllowed), 1);
    let (at, detail) = (RunTime(SECONDS * 1_000_000), "".into());
    let kind = format!("{}{}", MediaPath::EVENT, MediaPath::Http1.key());
    run.events.push(EventRow { at, participant: None, kind, count: PLAYERS, detail });
    run
}

fn objectives(texts: &[&str]) -> Vec<Objective> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn players_have_startup_stalls_delivery_and_buffers() {
    let summary = summarise(&players(20), &[], Duration::from_secs(10));
    let playback = summary.playback.as_ref().expect("players");
    assert_eq!((playback.players, playback.viewers_stalled, playback.stalls), (100, 20, 20 * 20));
    assert_eq!(playback.startup.ms_p95, Some(400.0));
    let near = |figure: Option<f64>, expect: f64| {
        figure.is_some_and(|value| (value - expect).abs() < 0.01)
    };
    assert!(near(playback.stall_ratio, 0.1), "{playback:?}");
    assert!(near(playback.stall_ratio_p95, 10.0 / 29.6), "over the whole life: {playback:?}");
    assert!(
        near(playback.stalled_ratio_max, 0.2) && near(playback.delivery_ratio, 0.9),
        "{playback:?}"
    );
    assert!(
        near(playback.delivery_ratio_p5, 0.5) && playback.buffer_ms_p5 == Some(0.0),
        "{playback:?}"
    );
    assert!(near(playback.sums.media_bps.map(|bps| bps / 1e6), 2.0), "{playback:?}");
    assert!(summarise(&example::healthy(5, 10), &[], Duration::ZERO).playback.is_none());
}

#[test]
fn the_latency_of_live_players_names_its_basis_and_what_was_lost_over_the_run() {
    let live = |dated: bool| {
        let mut run = players(0);
        for row in &mut run.playback {
            let latency_us = 12_000_000 + u64::try_from(row.second).unwrap() * 100_000;
            // To the end of the playlist it is less than by dates.
            let to_edge_us = if dated { latency_us - 3_000_000 } else { latency_us };
            row.dates_ahead = Some(0);
            (0..100).for_each(|_| row.edge_latency_us.record(to_edge_us));
            (0..100).filter(|_| dated).for_each(|_| row.latency_us.record(latency_us));
        }
        run
    };
    for (dated, basis, words) in [
        (true, "program_date_time", "by the playlist's dates and this host's clock"),
        (false, "playlist_edge", "to the end of the playlist"),
    ] {
        let run = live(dated);
        let bounds = objectives(&["latency p95 < 14s", "latency p95 < 16s"]);
        let summary = summarise(&run, &bounds, Duration::ZERO);
        let latency =
            summary.playback.as_ref().and_then(|playback| playback.latency.clone()).unwrap();
        assert_eq!(latency.basis, basis);
        assert!((13_300.0..13_600.0).contains(&latency.ms_p50), "{latency:?}");
        let drift_ms = latency.drift_ms.unwrap();
        assert!(
            (2_100.0..2_500.0).contains(&drift_ms),
            "a tenth of a second each second: {latency:?}"
        );
        let text = text::summary(&summary);
        assert!(text.contains("behind live") && text.contains(words), "{text}");
        assert!(text.contains("MISSED  latency p95 < 14s"), "{text}");
        assert!(text.contains("met     latency p95 < 16s"), "{text}");
    }
    assert!(summarise(&players(0), &[], Duration::ZERO).playback.unwrap().latency.is_none());
}

#[test]
fn dates_that_run_ahead_for_some_give_all_players_of_the_run_the_other_basis() {
    let seen = |ahead_of_100: u32, dated_of_100: u32| {
        let mut run = players(0);
        for row in &mut run.playback {
            row.dates_ahead = Some(ahead_of_100);
            (0..100).for_each(|_| row.edge_latency_us.record(12_000_000));
            (0..dated_of_100).for_each(|_| row.latency_us.record(10_500_000));
        }
        summarise(&run, &[], Duration::from_secs(10))
    };
    for (ahead, dated, ms, words) in [
        (0, 100, 10_500.0, "s, by the playlist's dates and this host's clock"),
        (1, 100, 10_500.0, "s, by the playlist's dates and this host's clock"),
        (
            34,
            100,
            12_000.0,
            "s, to the end of the playlist, as its dates are ahead of this host's clock in 34",
        ),
        (0, 50, 12_000.0, "s, to the end of the playlist, as 50"),
        (0, 0, 12_000.0, "s, to the end of the playlist, +0.0 ms over the run"),
    ] {
        let summary = seen(ahead, dated);
        let latency =
            summary.playback.as_ref().and_then(|playback| playback.latency.clone()).unwrap();
        let is_near = |figure: f64| (figure / ms - 1.0).abs() < 0.02;
        assert!(is_near(latency.ms_p50) && is_near(latency.ms_max), "{latency:?}");
        let text = text::summary(&summary);
        assert!(text.contains(words), "{words} in\n{text}");
    }
}

#[test]
fn the_page_around_the_player_is_a_part_of_the_startup_where_there_is_one() {
    let mut run = players(0);
    for row in &mut run.participants {
        row.reached.insert(Phase::PageLoaded, RunTime(row.intended_at.0 + 300_000));
    }
    let counters = &mut run.playback[3].counters;
    (counters.page_requests, counters.page_requests_failed, counters.page_bytes) =
        (500, 2, 1_000_000);
    let summary = summarise(&run, &[], Duration::ZERO);
    let page = summary.playback.as_ref().and_then(|playback| playback.page.clone()).unwrap();
    assert_eq!((page.loaded.ms_p50, page.requests, page.requests_failed), (Some(300.0), 500, 2));
    let text = text::summary(&summary);
    assert!(
        text.contains("page loaded") && text.contains("1.00 MB in 500 requests, 2 failed"),
        "{text}"
    );
    let phases: Vec<_> = summary.phases.iter().map(|phase| phase.phase.as_str()).collect();
    assert!(phases.contains(&"page_loaded"), "{phases:?}");
    let without = summarise(&players(0), &[], Duration::ZERO);
    assert_eq!(without.playback.as_ref().unwrap().page, None);
    assert!(!text::summary(&without).contains("page"));
}

#[test]
fn what_does_not_exist_for_players_is_absent_and_no_zero() {
    let run = players(20);
    let summary = summarise(&run, &[], Duration::ZERO);
    let video = &summary.video;
    assert_eq!((video.loss_ratio, video.freeze_ratio, video.delay_ms_p95), (None, None, None));
    let text = text::summary(&summary);
    for absent in ["loss", "delay", "frozen", "jitter"] {
        assert!(!text.contains(absent), "{absent} in\n{text}");
    }
    for present in [
        "  startup      p50 400 ms, p95 400 ms",
        "  playback     400 stalls, 6.76 % of the time, 20 of 100 viewers; delivery p5 ",
        "  transfer     ",
        "  received     187 Mbit/s mean",
        "  path         100 by HTTP/1.1",
        "  requests     12,346: 200 ×12,300, 206 ×40, 404 ×5, no response (not allowed) ×1",
    ] {
        assert!(text.contains(present), "{present} in\n{text}");
    }
    assert!(!summary.headline.contains("cleanly"), "{}", summary.headline);
    assert_eq!(
        summarise(&players(0), &[], Duration::ZERO).headline,
        "100 viewers played cleanly for 30 s"
    );
    let page = crate::html::render(&run, &summary);
    for present in [">Playback</a></h2>", "Buffer", "playback started", "Waiting viewers", "404 ×5"]
    {
        assert!(page.contains(present), "{present}");
    }
    for absent in [
        ">Packet loss</a>",
        ">Video delay</a>",
        ">Freezes</a>",
        ">packet loss",
        "noticeable loss",
        ">Worst viewers</a>",
    ] {
        assert!(!page.contains(absent), "{absent}");
    }
    let packets = crate::html::render(
        &example::healthy(5, 10),
        &summarise(&example::healthy(5, 10), &[], Duration::ZERO),
    );
    assert!(!packets.contains(">Playback</a></h2>"));
}

#[test]
fn objectives_judge_players() {
    let goals = objectives(&[
        "startup p95 < 2s",
        "stall_ratio < 5%",
        "stall_ratio p50 < 1%",
        "stalls p50 < 1",
        "stalls max < 3",
        "delivery > 0.98",
        "delivery min > 0.45",
        "delivery p90 > 98%",
    ]);
    let summary = summarise(&players(20), &goals, Duration::ZERO);
    let met: Vec<bool> = summary.objectives.iter().map(|objective| objective.met).collect();
    assert_eq!(
        met,
        [true, false, true, true, false, false, true, true],
        "{:?}",
        summary.objectives
    );
    assert_eq!(summary.objectives[4].measured_text, "20");
    assert_eq!(summary.objectives[5].measured_text, "0.933");
    let others = summarise(&example::healthy(5, 10), &goals, Duration::ZERO);
    assert!(
        others.objectives.iter().all(|objective| objective.result == "not_measured"),
        "{others:?}"
    );
}

#[test]
fn players_that_failed_stay_in_the_denominator() {
    let mut run = players(0);
    let failure = throng_observation::Failure::new(
        throng_observation::FailureReason::HttpStatus(503),
        "full",
    );
    for row in &mut run.participants[..10] {
        row.outcome = Some(throng_observation::Outcome::Failed(failure.clone()));
        row.reached.remove(&Phase::PlaybackStarted);
    }
    let mut began = Players::default();
    for (participant, _) in
        run.players.stalls().iter().filter(|(participant, _)| participant.0 >= 10)
    {
        let counters = PlaybackCounters { active_us: 1, ..PlaybackCounters::default() };
        let participant = ParticipantId(participant.0);
        let row = PlayerRow {
            participant,
            startup_us: None,
            buffer_us: 0,
            delivery_ppm_min: None,
            counters,
        };
        began.add(&row);
    }
    run.players = began;
    let goals = objectives(&[
        "startup p95 < 2s",
        "stall_ratio p95 < 1%",
        "stalls p95 < 1",
        "stalls p90 < 1",
    ]);
    let summary = summarise(&run, &goals, Duration::ZERO);
    let met: Vec<bool> = summary.objectives.iter().map(|objective| objective.met).collect();
    assert_eq!(met, [false, false, false, true], "{:?}", summary.objectives);
    assert_eq!(
        summary.video.tracks,
        run.tracks.iter().filter(|t| t.kind == MediaKind::Video).count() as u64
    );
}
