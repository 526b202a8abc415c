//! Pauses, seeks and other speeds, with what servers answer otherwise.

use std::time::Duration;

use throng_observation::{FailureReason, Outcome};
use throng_scenario::{
    AtEnd, PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep, RtspTransport,
};

use super::fixture::{Fixture, RECORDING, SDP, frame};
use crate::participant::Input;

const S: Duration = Duration::from_secs(1);

/// A viewer with this script that has been set up over the RTSP connection, before PLAY is
/// answered.
fn set_up(script: PlaybackScript, sdp: &str) -> Fixture {
    Fixture::set_up(RtspTransport::Tcp, script, sdp)
}

/// The same, one second into its playback with thirty frames, at its first action.
fn acting(action: PlaybackAction) -> Fixture {
    acting_in(action, RECORDING)
}

fn acting_in(action: PlaybackAction, sdp: &str) -> Fixture {
    let steps = vec![PlaybackStep { at: S, action }];
    let mut fixture = set_up(PlaybackScript { steps, ..PlaybackScript::default() }, sdp);
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    plays(&mut fixture, 0..30);
    fixture.wait(Duration::from_millis(10));
    fixture
}

/// Frames of a source of 30 fps, each a key frame.
fn plays(fixture: &mut Fixture, sequences: std::ops::Range<u16>) {
    for sequence in sequences {
        fixture.now += Duration::from_micros(33_333);
        fixture.receives(&frame(0, sequence));
    }
}

fn decodable(fixture: &Fixture) -> u64 {
    fixture.intervals().iter().map(|interval| interval.counters.frames_decodable).sum()
}

/// Active time of all intervals, milliseconds.
fn active_ms(fixture: &Fixture) -> u64 {
    fixture.intervals().iter().map(|interval| interval.counters.active_us).sum::<u64>() / 1_000
}

fn left(mut fixture: Fixture) -> Fixture {
    fixture.input(Input::Leave { others_follow: false });
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    fixture
}

#[test]
fn a_pause_is_not_missing_media_and_playback_goes_on_without_a_key_frame() {
    let mut fixture = acting(PlaybackAction::Pause(12 * S));
    let pause = fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    assert!(
        pause.starts_with("PAUSE rtsp://127.0.0.1:8554/cam/ ") && pause.contains("Session: 77"),
        "{pause}"
    );
    // Longer than media may be silent, and longer than a freeze is short.
    fixture.wait(11 * S);
    assert!(fixture.requests.is_empty() && fixture.ended.is_none(), "{:?}", fixture.requests);
    fixture.wait(S);
    let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(!play.contains("Range:"), "it continues where it was paused: {play}");
    plays(&mut fixture, 30..60);
    let fixture = left(fixture);
    assert_eq!(decodable(&fixture), 60);
    let (lost, frozen) = fixture.intervals().iter().fold((0, 0), |(lost, frozen), interval| {
        (lost + interval.counters.packets_lost, frozen + interval.counters.freeze_us)
    });
    assert_eq!((lost, frozen), (0, 0));
    // Two seconds of playback, and the tenths in which this test waits.
    assert!((1_900..2_400).contains(&active_ms(&fixture)), "{}", active_ms(&fixture));
    let delays = fixture.intervals().iter().flat_map(|i| i.relative_delay_us.clone()).max();
    assert!(delays.is_some_and(|us| us < 120_000), "{delays:?}");
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
}

#[test]
fn after_a_seek_the_first_frame_is_awaited_anew_and_old_packets_do_not_count_as_it() {
    let mut fixture = acting(PlaybackAction::Seek(PlaybackPosition::At(12 * S)));
    // Media of the old position is still on its way.
    plays(&mut fixture, 30..33);
    fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    plays(&mut fixture, 33..35);
    // What the new position begins with comes before the answer.
    plays(&mut fixture, 500..503);
    fixture.wait(S / 2);
    let answer = "Session: 77\r\nRange: npt=12.0-20.0\r\nRTP-Info: url=rtsp://127.0.0.1:8554/cam/stream=0;seq=501;rtptime=9\r\n";
    let play = fixture.answers("PLAY", "200 OK", answer, "");
    assert!(play.contains("Range: npt=12.000-\r\n"), "{play}");
    plays(&mut fixture, 503..530);
    fixture.wait(S);
    // 30 before, then 501 to 529.
    assert_eq!(decodable(&fixture), 30 + 29);
    let lost: i64 = fixture.intervals().iter().map(|interval| interval.counters.packets_lost).sum();
    assert_eq!(lost, 0);
    // The recording ends eight seconds after the seek, not twenty after its beginning.
    for sequence in 530..700 {
        fixture.wait(Duration::from_millis(33));
        fixture.receives(&frame(0, sequence));
        if fixture.requests.first().is_some_and(|request| request.starts_with("PLAY")) {
            break;
        }
    }
    fixture.wait(3 * S);
    let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
}

#[test]
fn a_seek_that_brings_no_frame_is_awaited_since_the_viewer_asked_for_it() {
    let mut fixture = acting(PlaybackAction::Seek(PlaybackPosition::At(12 * S)));
    let asked_at = fixture.now;
    fixture.wait(3 * S);
    fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    fixture.wait(2 * S);
    let last = fixture.intervals().pop().unwrap();
    let since = last.first_frame_awaited_since.expect("no frame came");
    assert!(since <= asked_at && asked_at - since < S / 2, "{:?}", asked_at - since);
}

#[test]
fn a_server_without_pause_plays_on_and_is_still_asked_for_other_positions() {
    for status in
        ["501 Not Implemented", "405 Method Not Allowed", "455 Method Not Valid in This State"]
    {
        let mut fixture = acting(PlaybackAction::Pause(5 * S));
        fixture.answers("PAUSE", status, "", "");
        plays(&mut fixture, 30..60);
        assert_eq!(fixture.anomalies(), [format!("PAUSE was refused ({})", &status[..3])]);
        let fixture = left(fixture);
        assert_eq!(decodable(&fixture), 60, "{status}");
        let mut fixture = acting(PlaybackAction::Seek(PlaybackPosition::At(5 * S)));
        fixture.answers("PAUSE", status, "", "");
        let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
        assert!(play.contains("Range: npt=5.000-"), "{play}");
        plays(&mut fixture, 300..310);
        assert_eq!(decodable(&left(fixture)), 40, "{status}");
    }
}

#[test]
fn a_seek_that_the_server_refuses_is_reported_and_playback_goes_on() {
    for status in ["457 Invalid Range", "501 Not Implemented"] {
        let mut fixture = acting(PlaybackAction::Seek(PlaybackPosition::At(50 * S)));
        fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
        fixture.answers("PLAY", status, "", "");
        let again = fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
        assert!(!again.contains("Range:"), "{again}");
        plays(&mut fixture, 30..60);
        assert_eq!(fixture.anomalies().len(), 1, "{:?}", fixture.anomalies());
        assert_eq!(decodable(&left(fixture)), 60);
    }
    // A server that cannot play at all any more.
    let mut fixture = acting(PlaybackAction::Pause(S));
    fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    fixture.wait(2 * S);
    fixture.answers("PLAY", "455 Method Not Valid in This State", "", "");
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.failed().0, FailureReason::RtspStatus(455));
}

#[test]
fn a_session_that_is_gone_when_it_is_paused_is_a_failure() {
    let mut fixture = acting(PlaybackAction::Pause(S));
    fixture.answers("PAUSE", "454 Session Not Found", "", "");
    fixture.answers("TEARDOWN", "454 Session Not Found", "", "");
    assert_eq!(fixture.failed().0, FailureReason::RtspStatus(454));
}

#[test]
fn a_live_presentation_is_paused_but_has_no_positions() {
    let mut fixture = acting_in(PlaybackAction::Seek(PlaybackPosition::Random), SDP);
    assert!(fixture.requests.is_empty(), "{:?}", fixture.requests);
    assert_eq!(fixture.anomalies(), ["an action was left out: there is nothing to seek in"]);
    plays(&mut fixture, 30..40);
    assert_eq!(decodable(&left(fixture)), 40);
    let start = PlaybackPosition::At(5 * S);
    let mut fixture = set_up(PlaybackScript { start, ..PlaybackScript::default() }, SDP);
    let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
    assert_eq!(fixture.anomalies().len(), 1);
    let mut fixture = acting_in(PlaybackAction::Pause(S), SDP);
    fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    fixture.wait(2 * S);
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
}

#[test]
fn another_speed_is_asked_for_with_scale_and_its_frame_rate_is_learnt_anew() {
    // 75 pictures a second, of the clock that runs with real time (RFC 2326 appendix B).
    let mut fixture = acting(PlaybackAction::Scale(2.5));
    fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\nScale: 2.5\r\n", "");
    assert!(play.contains("Scale: 2.500\r\n") && !play.contains("Range:"), "{play}");
    for sequence in 0..150_u32 {
        fixture.now += Duration::from_micros(13_333);
        let mut packet = frame(0, 1_000 + sequence as u16);
        packet[8..12].copy_from_slice(&(900_000 + sequence * 1_200).to_be_bytes());
        fixture.receives(&packet);
    }
    let fps = fixture.intervals().pop().and_then(|interval| interval.source_fps).unwrap();
    assert!((74.0..76.0).contains(&fps), "{fps}");
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
    // As gst-rtsp-server answers: every picture, at twice the speed.
    let mut fixture = acting(PlaybackAction::Scale(2.0));
    fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    fixture.answers("PLAY", "200 OK", "Session: 77\r\nScale: 1.000\r\nSpeed: 2.000\r\n", "");
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
    // A server that does not know the header plays on at normal speed, and the report says so.
    let mut fixture = acting(PlaybackAction::Scale(2.0));
    fixture.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert_eq!(fixture.anomalies(), ["speed 2 was asked for, 1 is played"]);
}

#[test]
fn playback_begins_where_the_script_says_and_may_end_with_the_recording() {
    let script = PlaybackScript {
        start: PlaybackPosition::At(17 * S),
        at_end: AtEnd::Leave,
        ..PlaybackScript::default()
    };
    let mut fixture = set_up(script, RECORDING);
    let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\nRange: npt=17.0-20\r\n", "");
    assert!(play.contains("Range: npt=17.000-"), "{play}");
    plays(&mut fixture, 0..90);
    fixture.wait(2 * S);
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    assert_eq!(decodable(&fixture), 90);
    // A position that the server refuses at once is a failure: the viewer wanted that one.
    let script =
        PlaybackScript { start: PlaybackPosition::At(90 * S), ..PlaybackScript::default() };
    let mut fixture = set_up(script, RECORDING);
    fixture.answers("PLAY", "457 Invalid Range", "", "");
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.failed().0, FailureReason::RtspStatus(457));
}
