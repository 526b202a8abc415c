use ratatui::Terminal;
use ratatui::backend::TestBackend;
use throng_engine::live::{
    HistoryPoint, LiveChat, LivePlayers, ParticipantFigures, PlayerFigures, TrackFigures,
};
use throng_observation::run::ParticipantId;
use throng_observation::{
    CaptureBasis, ChatCounters, ChatRow, Codec, IceState, MediaKind, PlaybackRow, Quantiles,
    RunTime,
};
use throng_report::ObjectiveResult;

use super::*;
use crate::live_hosts::ServerFigures;

fn objectives() -> Vec<ObjectiveResult> {
    [("video.loss < 1%", "7.83 %", "missed"), ("connect p99 < 3s", "60 ms", "met")]
        .map(|(text, measured_text, verdict)| ObjectiveResult {
            text: text.into(),
            measured: None,
            measured_text: measured_text.into(),
            result: verdict.into(),
            met: verdict == "met",
        })
        .into()
}

fn drawn(live: &LiveSnapshot, width: u16, height: u16) -> String {
    drawn_with(live, &[], width, height)
}

fn drawn_with(live: &LiveSnapshot, servers: &[ServerFigures], width: u16, height: u16) -> String {
    drawn_for(Who::Viewers, live, servers, width, height)
}

fn drawn_for(
    who: Who,
    live: &LiveSnapshot,
    servers: &[ServerFigures],
    width: u16,
    height: u16,
) -> String {
    let title = "whep+http://127.0.0.1:7080/whep".into();
    drawn_of(&Subject { title, who, addresses: Vec::new() }, live, servers, width, height)
}

fn drawn_of(
    subject: &Subject,
    live: &LiveSnapshot,
    servers: &[ServerFigures],
    width: u16,
    height: u16,
) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let state = State { live, objectives: &objectives(), servers, search: None };
    terminal.draw(|frame| draw(frame, subject, &state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    (0..height)
        .map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn what_is_served_is_below_the_title_the_page_with_its_token() {
    let url = "http://127.0.0.1:7090/#token=0123456789abcdef0123456789abcdef";
    let addresses = vec![format!("page {url}"), "metrics http://127.0.0.1:9464/metrics".into()];
    let subject = Subject { title: "target".into(), who: Who::Viewers, addresses };
    let screen = drawn_of(&subject, &LiveSnapshot::default(), &[], 80, 24);
    for line in &subject.addresses {
        assert!(screen.contains(line), "{line} is not on\n{screen}");
    }
}

#[test]
fn a_limited_generator_and_failures_stand_out() {
    let mut live = LiveSnapshot::default();
    live.crowd.failed = 3;
    live.failures.insert("ice".into(), 3);
    live.generator.limited = vec!["thread 0 used 97 % of its core".into()];
    let screen = drawn(&live, 110, 32);
    for text in ["failed    3", "failures: ice 3", "over the limit: thread 0 used 97 % of its core"]
    {
        assert!(screen.contains(text), "{text} is not on\n{screen}");
    }
}

#[test]
fn only_tracks_with_trouble_are_among_the_worst() {
    let healthy = TrackFigures {
        kind: MediaKind::Audio,
        codec: Codec::Opus,
        loss_ratio: 0.0,
        fps: 0.0,
        delay_ms_max: Some(4.0),
        packets_lost: 0,
        wire_bytes: 6_000,
    };
    let lossy = TrackFigures {
        kind: MediaKind::Video,
        codec: Codec::H264,
        loss_ratio: 0.2,
        ..healthy.clone()
    };
    let viewer = |tracks| ParticipantFigures {
        participant: ParticipantId(7),
        ice: IceState::Connected,
        intended_at: RunTime::default(),
        tracks,
        player: None,
    };
    let screen = |tracks| {
        drawn(&LiveSnapshot { worst: vec![viewer(tracks)], ..LiveSnapshot::default() }, 110, 40)
    };
    assert!(screen(vec![healthy.clone()]).contains("no track has problems"));
    let mixed = screen(vec![healthy, lossy]);
    assert!(mixed.contains("video H264") && !mixed.contains("audio opus"), "{mixed}");
}

#[test]
fn objectives_and_one_way_delay_are_shown_on_the_smallest_usual_terminal() {
    let mut live = LiveSnapshot::default();
    live.video.last.tracks = 1;
    live.video.last.absolute_delay.record(CaptureBasis::Mark, 196_000);
    live.history.push_back(HistoryPoint { loss_ratio: 0.05, ..HistoryPoint::default() });
    let screen = drawn(&live, 80, 24);
    for text in [
        "Loss 5.00 %",
        "MISSED  video.loss < 1%",
        "7.83 %",
        "met     connect p99 < 3s",
        "one-way p95 197 ms",
        "left    0",
        "healthy",
    ] {
        assert!(screen.contains(text), "{text} is not on\n{screen}");
    }
}

#[test]
fn players_have_stalls_and_buffers_in_place_of_loss_and_delay() {
    let player = PlayerFigures {
        buffer_ms: 300.0,
        stall_ms: 700.0,
        is_starting: false,
        delivery_ratio: Some(0.5),
        stalls: 4,
    };
    let worst = |player| ParticipantFigures {
        participant: ParticipantId(7),
        ice: IceState::New,
        intended_at: RunTime::default(),
        tracks: Vec::new(),
        player: Some(player),
    };
    let last = PlaybackRow { players: 9, stalled: 2, ..PlaybackRow::default() };
    let live = |player| LiveSnapshot {
        playback: Some(LivePlayers { last: last.clone(), ..LivePlayers::default() }),
        history: [HistoryPoint { received_bps: 3e6, ..HistoryPoint::default() }].into(),
        worst: vec![worst(player)],
        ..LiveSnapshot::default()
    };
    let screen = drawn(&live(player), 110, 40);
    for text in
        ["Stalled 2 of 9", "Lowest buffer", "stalled", "700 ms", "50.0 %", "Received 3.00 Mbit/s"]
    {
        assert!(screen.contains(text), "{text} is not on\n{screen}");
    }
    for text in ["Loss", "Delay", "ICE  new", "delay max"] {
        assert!(!screen.contains(text), "{text} is on\n{screen}");
    }
    let well = PlayerFigures { stall_ms: 0.0, delivery_ratio: None, ..player };
    assert!(drawn(&live(well), 110, 40).contains("no viewer has problems"));
}

#[test]
fn a_chat_has_rooms_and_messages_in_place_of_ice_and_frames() {
    let counters =
        ChatCounters { messages_due: 40, messages_missing: 3, ..ChatCounters::default() };
    let so_far = ChatCounters { messages_sent: 7, ..counters };
    let joined_ms = Some(Quantiles { count: 9, p50: 20.0, p95: 197.0, p99: 198.0, max: 199.0 });
    let mut last = ChatRow { members: 9, joined: 8, counters, ..ChatRow::default() };
    last.delay_us.record(196_000);
    let chat = Some(LiveChat { last, so_far });
    let live = LiveSnapshot { chat, joined_ms, ..LiveSnapshot::default() };
    for (width, height) in [(110, 40), (80, 24)] {
        let screen = drawn_for(Who::Chatters, &live, &[], width, height);
        for text in [
            "in the room    8",
            "sent 7  due 40  missing 3",
            "join to in the room 20 ms",
            "Delivery p95 197 ms",
            "Missing 3 of 40 messages",
            "In the room 8 of 9",
        ] {
            assert!(screen.contains(text), "{text} is not on\n{screen}");
        }
        for text in ["ICE", "first frame", "fps", "playing", "Loss"] {
            assert!(!screen.contains(text), "{text} is on\n{screen}");
        }
    }
    drawn_for(Who::Chatters, &LiveSnapshot::default(), &[], 80, 24);
}

#[test]
fn a_watched_server_has_its_line() {
    let hottest = Some(("hloop 1".to_owned(), 0.97));
    let servers = [ServerFigures { cpu: Some(1.2), hottest, ..ServerFigures::default() }];
    let screen = drawn_with(&LiveSnapshot::default(), &servers, 110, 32);
    assert!(screen.contains("CPU 120.0 % of a core, hottest thread hloop 1 97.0 %"), "{screen}");
}

#[test]
fn any_size_of_terminal_is_drawn() {
    for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 80)] {
        drawn(&LiveSnapshot::default(), width, height);
    }
}
