use throng_engine::live::{LiveChat, LivePlayers};
use throng_observation::run::SeriesRow;
use throng_observation::{
    CaptureBasis, ChatCounters, ChatRow, Distribution, PlaybackRow, TrackCounters,
};

use super::*;

fn at(second: i64) -> LiveSnapshot {
    LiveSnapshot { second: Some(second), state: RunState::Running, ..LiveSnapshot::default() }
}

#[test]
fn a_block_comes_once_for_every_interval() {
    let mut out = Vec::new();
    let mut plain = PlainDisplay::new(&mut out, Duration::from_secs(5), Who::Viewers);
    for second in 0..=11 {
        let live = at(second);
        let state = State { live: &live, objectives: &[], servers: &[], search: None };
        plain.show(&state);
        plain.show(&state);
    }
    let text = String::from_utf8(out).unwrap();
    let blocks: Vec<_> = text.lines().filter(|line| line.starts_with("<Summary>")).collect();
    assert_eq!(blocks, ["<Summary> 5 s", "<Summary> 10 s"]);
}

#[test]
fn a_one_way_delay_says_by_what_and_whether_the_clocks_agree() {
    let mut live = at(0);
    live.video.last.tracks = 1;
    let delay = &mut live.video.last.absolute_delay;
    for delay_us in [-400, -400, -400, 1_000, 1_000] {
        delay.record(CaptureBasis::SenderReport, delay_us);
    }
    let text = block(&live, &[], 0, Who::Viewers, &mut 0);
    assert!(
        text.contains("one-way delay below zero, by RTCP SR (the server's own clock"),
        "{text}"
    );
    let clocks =
        "clocks: 60.0 % of frames seem to arrive before they were sent, by up to 0.4 ms (p95)";
    assert!(text.contains(clocks), "{text}");
}

#[test]
fn every_figure_of_oven_rtc_testers_summary_is_there() {
    let of = |samples: [u64; 3]| {
        let mut all = Distribution::new();
        samples.into_iter().for_each(|sample| all.record(sample));
        all
    };
    let mut live = at(59);
    (live.crowd.started, live.crowd.ice) = (4, [1, 2, 3, 4, 5, 6]);
    let so_far = TrackCounters {
        wire_bytes: 4_000_000,
        packets_original: 4000,
        packets_lost: 10,
        frames_decodable: 1_200,
        key_frames: 40,
        ..TrackCounters::default()
    };
    // Values are exact to a hundredth.
    let last = SeriesRow {
        tracks: 4,
        relative_delay_us: of([10_100, 20_000, 24_000]),
        ..SeriesRow::default()
    };
    live.audio.last = last.clone();
    live.video = LiveTracks {
        last: SeriesRow {
            fps_milli: of([20_000, 30_000, 40_000]),
            oven_rtc_tester_delay_us: of([10_100, 20_000, 30_000]),
            ..last
        },
        so_far,
    };
    live.client_bps = Some(Spread { mean: 1e6, min: 9e5, max: 1.1e6 });
    let text = block(&live, &[], 59, Who::Viewers, &mut 0);
    for figure in [
        "<Summary> 60 s",
        "new 1, checking 2, connected 3, completed 0, disconnected 4, failed 5, closed 6",
        "gop avg 30.0 frames",
        "delay avg 18 ms max 24 ms min 10 ms",
        "drift since the first packet (what OvenRtcTester calls delay): median 20 ms, avg 20 ms max 30 ms min 10 ms",
        "fps 30.1 (avg 30.0 max 40.2 min 20.0)",
        "bit rate avg 1.00 Mbit/s max 1.10 Mbit/s min 900 kbit/s",
        "so far 4.00 MB",
        "4000 packets",
        "10 lost",
        "a client 1.00 MB, 1000 packets, 2.5 lost",
    ] {
        assert!(text.contains(figure), "{figure} in:\n{text}");
    }
    assert_eq!(text.matches("delay avg").count(), 2, "{text}");
}

#[test]
fn players_show_stalls_and_buffers_and_no_loss() {
    let mut buffer = Distribution::new();
    [4_000, 9_000, 12_000].into_iter().for_each(|ms| buffer.record(ms * 1_000));
    let mut live = at(9);
    live.video.last.tracks = 3;
    let mut last =
        PlaybackRow { players: 3, stalled: 1, buffer_us: buffer, ..PlaybackRow::default() };
    last.shortfall_ppm.record(499_000);
    live.playback = Some(LivePlayers { last, ..LivePlayers::default() });
    let text = block(&live, &[], 9, Who::Viewers, &mut 0);
    for figure in
        ["to 3 players, 1 stalled, 0 starting", "lowest 4.00 s", "at least 50.0 % of the bit rate"]
    {
        assert!(text.contains(figure), "{figure} in:\n{text}");
    }
    for absent in ["loss", "jitter", "packets", "ICE"] {
        assert!(!text.contains(absent), "{absent} in:\n{text}");
    }
}

#[test]
fn a_chat_has_rooms_and_messages_and_neither_ice_nor_frames() {
    let mut live = at(9);
    let mut delay_us = Distribution::new();
    for (ms, count) in [(20, 90), (196, 5), (197, 4), (198, 1)] {
        delay_us.record_many(ms * 1_000, count);
    }
    let counters =
        ChatCounters { messages_due: 40, messages_missing: 1, ..ChatCounters::default() };
    let so_far = ChatCounters { messages_sent: 7, reconnects: 3, resumes: 2, ..counters };
    let last = ChatRow {
        members: 9,
        joined: 8,
        occupants_max: 10,
        delay_us,
        counters,
        ..ChatRow::default()
    };
    live.chat = Some(LiveChat { last, so_far });
    let text = block(&live, &[], 9, Who::Chatters, &mut 0);
    for figure in [
        "8 of 9 in the room, with up to 10 others",
        "delivery p50 20 ms p95 197 ms p99 198 ms max 199 ms, 40 due, 1 missing",
        "so far 7 sent, 40 due, 1 missing",
        "3 reconnects, 2 of them resumed",
    ] {
        assert!(text.contains(figure), "{figure} in:\n{text}");
    }
    for absent in ["ICE", "first frame", "playing", "loss"] {
        assert!(!text.contains(absent), "{absent} in:\n{text}");
    }
    let beside_viewers = block(&live, &[], 9, Who::Viewers, &mut 0);
    assert!(
        beside_viewers.contains("8 of 9 in the room") && beside_viewers.contains("first frame")
    );
}

#[test]
fn a_watched_server_has_its_line() {
    let servers =
        [ServerFigures { name: "sfu".into(), cpu: Some(0.5), ..ServerFigures::default() }];
    let text = block(&at(0), &servers, 0, Who::Viewers, &mut 0);
    assert!(text.contains("  server     CPU 50.0 % of a core, hottest thread –"), "{text}");
}

#[test]
fn publishers_are_called_so_and_play_nothing() {
    let mut live = at(0);
    (live.crowd.intended, live.planned, live.crowd.connected) = (3, 3, 2);
    let text = block(&live, &[], 0, Who::Publishers, &mut 0);
    assert!(
        text.contains("  publishers 3 of 3 intended, 2 connected, 0 failed, 0 left\n"),
        "{text}"
    );
    let text = block(&live, &[], 0, Who::Viewers, &mut 0);
    assert!(
        text.contains("  clients    3 of 3 intended, 2 connected, 0 playing, 0 failed"),
        "{text}"
    );
}

#[test]
fn failures_are_named_when_they_are_new() {
    let mut live = at(0);
    live.crowd.failed = 2;
    live.failures.insert("http_404".into(), 2);
    let mut shown = 0;
    assert!(block(&live, &[], 0, Who::Viewers, &mut shown).contains("failures   http_404 2"));
    assert!(!block(&live, &[], 1, Who::Viewers, &mut shown).contains("failures   http_404"));
}
