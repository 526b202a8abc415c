//! Which packets are of which position of a recording, where servers do not say it.

use std::time::Duration;

use throng_observation::{Outcome, TrackCounters};
use throng_scenario::{
    PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep, RtspTransport,
};

use super::fixture::{AUDIO, Fixture, RECORDING, audio, bye, frame};
use crate::participant::Input;

const S: Duration = Duration::from_secs(1);
/// Between two frames of 30 a second, and on the clock of RTP.
const FRAME: Duration = Duration::from_micros(33_333);
const TICKS: u32 = 3_000;
const BOTH: [RtspTransport; 2] = [RtspTransport::Tcp, RtspTransport::Udp];
const SESSION: &str = "Session: 77\r\n";

/// Where the packets after the one with number 34 go on: their numbers and RTP timestamps.
const GOES_ON: [(&str, u16, u32); 7] = [
    ("where it was", 35, 35 * TICKS),
    ("elsewhere", 500, 9_000_000),
    ("elsewhere, before", 60_000, 4_000_000_000),
    ("behind what the server threw away", 60, 60 * TICKS),
    ("at a later time", 35, 35 * TICKS + 7 * 90_000),
    ("at an earlier time", 35, (35 * TICKS).wrapping_sub(135_000)),
    ("from its first number", 0, 0),
];

/// A viewer that has played thirty frames, at its action.
fn acting(transport: RtspTransport, action: PlaybackAction, sdp: &str) -> Fixture {
    let steps = vec![PlaybackStep { at: S, action }];
    let script = PlaybackScript { steps, ..PlaybackScript::default() };
    let mut fixture = Fixture::set_up(transport, script, sdp);
    fixture.answers("PLAY", "200 OK", SESSION, "");
    plays(&mut fixture, transport, 0, 0, 30);
    fixture.wait(Duration::from_millis(10));
    fixture
}

/// `count` frames, from this number and RTP timestamp on.
fn plays(fixture: &mut Fixture, transport: RtspTransport, first: u16, ticks: u32, count: u16) {
    for at in 0..count {
        fixture.now += FRAME;
        let mut packet = frame(0, first.wrapping_add(at));
        let timestamp = ticks.wrapping_add(u32::from(at) * TICKS);
        packet[8..12].copy_from_slice(&timestamp.to_be_bytes());
        fixture.arrives(transport, &packet);
    }
}

/// What the viewer counted of a track until it left.
fn counted(fixture: &mut Fixture, track: u16) -> TrackCounters {
    if fixture.ended.is_none() {
        fixture.input(Input::Leave { others_follow: false });
        fixture.answers("TEARDOWN", "200 OK", "", "");
        assert_eq!(fixture.ended, Some(Outcome::Completed));
    }
    let mut sum = TrackCounters::default();
    let intervals = fixture.intervals();
    intervals.iter().filter(|it| it.track.0 == track).for_each(|it| sum += it.counters);
    sum
}

/// Everything that came counts once, and nothing is blamed on the network or the source.
#[track_caller]
fn is_clean(fixture: &mut Fixture, packets: u64, what: &str) {
    let sum = counted(fixture, 0);
    let faults = (sum.packets_lost, sum.packets_duplicate, sum.packets_reordered, sum.packets_late);
    assert_eq!((sum.packets_original, faults), (packets, (0, 0, 0, 0)), "{what}");
    assert!(fixture.anomalies().is_empty(), "{what}: {:?}", fixture.anomalies());
}

#[test]
fn a_seek_without_a_number_in_rtp_info_is_no_loss_whatever_comes() {
    let rtp_time = "RTP-Info: url=rtsp://127.0.0.1:8554/cam/stream=0;rtptime=9\r\n";
    for (transport, rtp_info) in BOTH.into_iter().flat_map(|by| [(by, ""), (by, rtp_time)]) {
        for (what, first, ticks) in GOES_ON {
            let seek = PlaybackAction::Seek(PlaybackPosition::At(10 * S));
            let mut fixture = acting(transport, seek, RECORDING);
            fixture.answers("PAUSE", "200 OK", SESSION, "");
            // The last of the old position come before the answer, and after it.
            plays(&mut fixture, transport, 30, 30 * TICKS, 3);
            fixture.answers("PLAY", "200 OK", &format!("{SESSION}{rtp_info}"), "");
            plays(&mut fixture, transport, 33, 33 * TICKS, 2);
            plays(&mut fixture, transport, first, ticks, 60);
            is_clean(&mut fixture, 30 + 5 + 60, &format!("{transport:?}, {what}"));
        }
    }
}

#[test]
fn what_is_lost_a_moment_after_a_seek_is_lost() {
    for transport in BOTH {
        let seek = PlaybackAction::Seek(PlaybackPosition::At(10 * S));
        let mut fixture = acting(transport, seek, RECORDING);
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        fixture.answers("PLAY", "200 OK", SESSION, "");
        plays(&mut fixture, transport, 500, 0, 20);
        plays(&mut fixture, transport, 522, 22 * TICKS, 20);
        assert_eq!(counted(&mut fixture, 0).packets_lost, 2, "{transport:?}");
    }
}

#[test]
fn what_is_left_out_at_a_pause_is_no_loss() {
    for (transport, answers_after) in BOTH.into_iter().flat_map(|by| [(by, 0), (by, 5)]) {
        for (what, first, ticks) in GOES_ON {
            let mut fixture = acting(transport, PlaybackAction::Pause(2 * S), RECORDING);
            fixture.answers("PAUSE", "200 OK", SESSION, "");
            plays(&mut fixture, transport, 30, 30 * TICKS, 5);
            fixture.wait(2 * S);
            // What comes may overtake the answer.
            plays(&mut fixture, transport, first, ticks, answers_after);
            fixture.answers("PLAY", "200 OK", SESSION, "");
            let (first, later) = (first.wrapping_add(answers_after), u32::from(answers_after));
            let ticks = ticks.wrapping_add(later * TICKS);
            plays(&mut fixture, transport, first, ticks, 60 - answers_after);
            is_clean(&mut fixture, 35 + 60, &format!("{transport:?}, {what}, {answers_after}"));
        }
    }
}

#[test]
fn each_track_has_its_own_break() {
    let rtp_info = "RTP-Info: url=rtsp://127.0.0.1:8554/cam/stream=0;seq=500\r\n";
    for transport in BOTH {
        let seek = PlaybackAction::Seek(PlaybackPosition::At(10 * S));
        let mut fixture = acting(transport, seek, &format!("{RECORDING}{AUDIO}"));
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        for (video, sound) in [(30, 45), (31, 46), (500, 47), (501, 1_000), (502, 1_001)] {
            plays(&mut fixture, transport, video, u32::from(video) * TICKS, 1);
            fixture.arrives(transport, &audio(2, 0, sound));
        }
        fixture.answers("PLAY", "200 OK", &format!("{SESSION}{rtp_info}"), "");
        plays(&mut fixture, transport, 503, 503 * TICKS, 30);
        let [video, sound] = [0, 1].map(|track| counted(&mut fixture, track));
        assert_eq!((video.packets_original, video.packets_lost), (30 + 33, 0), "{transport:?}");
        assert_eq!((sound.packets_original, sound.packets_lost), (5, 0), "{transport:?}");
    }
}

#[test]
fn a_server_may_take_another_source_whenever_it_plays_again() {
    let mut fixture = Fixture::set_up(RtspTransport::Tcp, PlaybackScript::default(), RECORDING);
    for source in 0..120 {
        fixture.answers("PLAY", "200 OK", SESSION, "");
        let mut packet = frame(0, 7);
        packet[15] = source;
        fixture.receives(&packet);
        fixture.receives(&bye(1, source));
        fixture.wait(S / 4);
    }
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
}
