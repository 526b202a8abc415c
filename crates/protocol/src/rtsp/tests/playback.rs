//! Pauses, seeks and other speeds, with what servers answer otherwise.

use std::time::Duration;

use throng_observation::{FailureReason, Outcome};
use throng_scenario::{
    AtEnd, PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep, RtspTransport,
};

use super::stand::{RECORDING, SDP, Stand, config, frame, options};
use crate::participant::Input;
use crate::rtsp::Viewer;

const S: Duration = Duration::from_secs(1);

/// A viewer with this script that has been set up over the RTSP connection, before PLAY is
/// answered.
fn set_up(script: PlaybackScript, sdp: &str) -> Stand {
    let viewer =
        |now| Viewer::with_playback(config(RtspTransport::Tcp, None), script, options(now));
    let mut stand = Stand::with(|now| Box::new(viewer(now)));
    stand.described(sdp);
    let transport = "Session: 77;timeout=200\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    stand.answers("SETUP", "200 OK", transport, "");
    stand
}

/// The same, one second into its playback with thirty frames, at its first action.
fn acting(action: PlaybackAction) -> Stand {
    acting_in(action, RECORDING)
}

fn acting_in(action: PlaybackAction, sdp: &str) -> Stand {
    let steps = vec![PlaybackStep { at: S, action }];
    let mut stand = set_up(PlaybackScript { steps, ..PlaybackScript::default() }, sdp);
    stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    plays(&mut stand, 0..30);
    stand.wait(Duration::from_millis(10));
    stand
}

/// Frames of a source of 30 fps, each a key frame.
fn plays(stand: &mut Stand, sequences: std::ops::Range<u16>) {
    for sequence in sequences {
        stand.now += Duration::from_micros(33_333);
        stand.receives(&frame(0, sequence));
    }
}

fn decodable(stand: &Stand) -> u64 {
    stand.intervals().iter().map(|interval| interval.counters.frames_decodable).sum()
}

/// Active time of all intervals, milliseconds.
fn active_ms(stand: &Stand) -> u64 {
    stand.intervals().iter().map(|interval| interval.counters.active_us).sum::<u64>() / 1_000
}

fn left(mut stand: Stand) -> Stand {
    stand.input(Input::Leave { others_follow: false });
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.ended, Some(Outcome::Completed));
    stand
}

#[test]
fn a_pause_is_not_missing_media_and_playback_goes_on_without_a_key_frame() {
    let mut stand = acting(PlaybackAction::Pause(12 * S));
    let pause = stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    assert!(
        pause.starts_with("PAUSE rtsp://127.0.0.1:8554/cam/ ") && pause.contains("Session: 77"),
        "{pause}"
    );
    // Longer than media may be silent, and longer than a freeze is short.
    stand.wait(11 * S);
    assert!(stand.requests.is_empty() && stand.ended.is_none(), "{:?}", stand.requests);
    stand.wait(S);
    let play = stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(!play.contains("Range:"), "it continues where it was paused: {play}");
    plays(&mut stand, 30..60);
    let stand = left(stand);
    assert_eq!(decodable(&stand), 60);
    let (lost, frozen) = stand.intervals().iter().fold((0, 0), |(lost, frozen), interval| {
        (lost + interval.counters.packets_lost, frozen + interval.counters.freeze_us)
    });
    assert_eq!((lost, frozen), (0, 0));
    // Two seconds of playback, and the tenths in which this test waits.
    assert!((1_900..2_400).contains(&active_ms(&stand)), "{}", active_ms(&stand));
    let delays = stand.intervals().iter().flat_map(|i| i.relative_delay_us.clone()).max();
    assert!(delays.is_some_and(|us| us < 120_000), "{delays:?}");
    assert!(stand.anomalies().is_empty(), "{:?}", stand.anomalies());
}

#[test]
fn after_a_seek_the_first_frame_is_awaited_anew_and_old_packets_do_not_count_as_it() {
    let mut stand = acting(PlaybackAction::Seek(PlaybackPosition::At(12 * S)));
    // Media of the old position is still on its way.
    plays(&mut stand, 30..33);
    stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    plays(&mut stand, 33..35);
    // What the new position begins with comes before the answer.
    plays(&mut stand, 500..503);
    stand.wait(S / 2);
    let answer = "Session: 77\r\nRange: npt=12.0-20.0\r\nRTP-Info: url=rtsp://127.0.0.1:8554/cam/stream=0;seq=501;rtptime=9\r\n";
    let play = stand.answers("PLAY", "200 OK", answer, "");
    assert!(play.contains("Range: npt=12.000-\r\n"), "{play}");
    plays(&mut stand, 503..530);
    stand.wait(S);
    // 30 before, then 501 to 529.
    assert_eq!(decodable(&stand), 30 + 29);
    let lost: i64 = stand.intervals().iter().map(|interval| interval.counters.packets_lost).sum();
    assert_eq!(lost, 0);
    // The recording ends eight seconds after the seek, not twenty after its beginning.
    for sequence in 530..700 {
        stand.wait(Duration::from_millis(33));
        stand.receives(&frame(0, sequence));
        if stand.requests.first().is_some_and(|request| request.starts_with("PLAY")) {
            break;
        }
    }
    stand.wait(3 * S);
    let play = stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
    assert!(stand.anomalies().is_empty(), "{:?}", stand.anomalies());
}

#[test]
fn a_seek_that_brings_no_frame_is_awaited_since_the_viewer_asked_for_it() {
    let mut stand = acting(PlaybackAction::Seek(PlaybackPosition::At(12 * S)));
    let asked_at = stand.now;
    stand.wait(3 * S);
    stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    stand.wait(2 * S);
    let last = stand.intervals().pop().unwrap();
    let since = last.first_frame_awaited_since.expect("no frame came");
    assert!(since <= asked_at && asked_at - since < S / 2, "{:?}", asked_at - since);
}

#[test]
fn a_server_without_pause_plays_on_and_is_still_asked_for_other_positions() {
    for status in
        ["501 Not Implemented", "405 Method Not Allowed", "455 Method Not Valid in This State"]
    {
        let mut stand = acting(PlaybackAction::Pause(5 * S));
        stand.answers("PAUSE", status, "", "");
        plays(&mut stand, 30..60);
        assert_eq!(stand.anomalies(), [format!("PAUSE was refused ({})", &status[..3])]);
        let stand = left(stand);
        assert_eq!(decodable(&stand), 60, "{status}");
        let mut stand = acting(PlaybackAction::Seek(PlaybackPosition::At(5 * S)));
        stand.answers("PAUSE", status, "", "");
        let play = stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
        assert!(play.contains("Range: npt=5.000-"), "{play}");
        plays(&mut stand, 300..310);
        assert_eq!(decodable(&left(stand)), 40, "{status}");
    }
}

#[test]
fn a_seek_that_the_server_refuses_is_reported_and_playback_goes_on() {
    for status in ["457 Invalid Range", "501 Not Implemented"] {
        let mut stand = acting(PlaybackAction::Seek(PlaybackPosition::At(50 * S)));
        stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
        stand.answers("PLAY", status, "", "");
        let again = stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
        assert!(!again.contains("Range:"), "{again}");
        plays(&mut stand, 30..60);
        assert_eq!(stand.anomalies().len(), 1, "{:?}", stand.anomalies());
        assert_eq!(decodable(&left(stand)), 60);
    }
    // A server that cannot play at all any more.
    let mut stand = acting(PlaybackAction::Pause(S));
    stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    stand.wait(2 * S);
    stand.answers("PLAY", "455 Method Not Valid in This State", "", "");
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.failed().0, FailureReason::RtspStatus(455));
}

#[test]
fn a_session_that_is_gone_when_it_is_paused_is_a_failure() {
    let mut stand = acting(PlaybackAction::Pause(S));
    stand.answers("PAUSE", "454 Session Not Found", "", "");
    stand.answers("TEARDOWN", "454 Session Not Found", "", "");
    assert_eq!(stand.failed().0, FailureReason::RtspStatus(454));
}

#[test]
fn a_live_presentation_is_paused_but_has_no_positions() {
    let mut stand = acting_in(PlaybackAction::Seek(PlaybackPosition::Random), SDP);
    assert!(stand.requests.is_empty(), "{:?}", stand.requests);
    assert_eq!(stand.anomalies(), ["an action was left out: there is nothing to seek in"]);
    plays(&mut stand, 30..40);
    assert_eq!(decodable(&left(stand)), 40);
    let start = PlaybackPosition::At(5 * S);
    let mut stand = set_up(PlaybackScript { start, ..PlaybackScript::default() }, SDP);
    let play = stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
    assert_eq!(stand.anomalies().len(), 1);
    let mut stand = acting_in(PlaybackAction::Pause(S), SDP);
    stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    stand.wait(2 * S);
    stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
}

#[test]
fn another_speed_is_asked_for_with_scale_and_its_frame_rate_is_learnt_anew() {
    // 75 pictures a second, of the clock that runs with real time (RFC 2326 appendix B).
    let mut stand = acting(PlaybackAction::Scale(2.5));
    stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    let play = stand.answers("PLAY", "200 OK", "Session: 77\r\nScale: 2.5\r\n", "");
    assert!(play.contains("Scale: 2.500\r\n") && !play.contains("Range:"), "{play}");
    for sequence in 0..150_u32 {
        stand.now += Duration::from_micros(13_333);
        let mut packet = frame(0, 1_000 + sequence as u16);
        packet[8..12].copy_from_slice(&(900_000 + sequence * 1_200).to_be_bytes());
        stand.receives(&packet);
    }
    let fps = stand.intervals().pop().and_then(|interval| interval.source_fps).unwrap();
    assert!((74.0..76.0).contains(&fps), "{fps}");
    assert!(stand.anomalies().is_empty(), "{:?}", stand.anomalies());
    // As gst-rtsp-server answers: every picture, at twice the speed.
    let mut stand = acting(PlaybackAction::Scale(2.0));
    stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    stand.answers("PLAY", "200 OK", "Session: 77\r\nScale: 1.000\r\nSpeed: 2.000\r\n", "");
    assert!(stand.anomalies().is_empty(), "{:?}", stand.anomalies());
    // A server that does not know the header plays on at normal speed, and the report says so.
    let mut stand = acting(PlaybackAction::Scale(2.0));
    stand.answers("PAUSE", "200 OK", "Session: 77\r\n", "");
    stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert_eq!(stand.anomalies(), ["speed 2 was asked for, 1 is played"]);
}

#[test]
fn playback_begins_where_the_script_says_and_may_end_with_the_recording() {
    let script = PlaybackScript {
        start: PlaybackPosition::At(17 * S),
        at_end: AtEnd::Leave,
        ..PlaybackScript::default()
    };
    let mut stand = set_up(script, RECORDING);
    let play = stand.answers("PLAY", "200 OK", "Session: 77\r\nRange: npt=17.0-20\r\n", "");
    assert!(play.contains("Range: npt=17.000-"), "{play}");
    plays(&mut stand, 0..90);
    stand.wait(2 * S);
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.ended, Some(Outcome::Completed));
    assert_eq!(decodable(&stand), 90);
    // A position that the server refuses at once is a failure: the viewer wanted that one.
    let script =
        PlaybackScript { start: PlaybackPosition::At(90 * S), ..PlaybackScript::default() };
    let mut stand = set_up(script, RECORDING);
    stand.answers("PLAY", "457 Invalid Range", "", "");
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.failed().0, FailureReason::RtspStatus(457));
}
