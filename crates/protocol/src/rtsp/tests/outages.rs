//! What fails near the end of a recording, where silence may be the end.

use std::time::Duration;

use throng_observation::TrackInterval;
use throng_scenario::{PlaybackScript, RtspTransport};

use super::fixture::{AUDIO, Fixture, RECORDING, audio, frame};
use crate::participant::Input;

/// A viewer of a recording of so many seconds that is played from now on.
fn playing(length_s: u64, audio: &str) -> Fixture {
    let sdp = RECORDING.replace("npt=0-20", &format!("npt=0-{length_s}")) + audio;
    let mut fixture = Fixture::set_up(RtspTransport::Tcp, PlaybackScript::default(), &sdp);
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    fixture
}

/// The same with video until this time, 25 frames a second, and audio where `has_audio` says so.
fn played(length_s: u64, until_ms: u64, has_audio: impl Fn(u64) -> bool) -> Fixture {
    let mut fixture = playing(length_s, AUDIO);
    let began_at = fixture.now;
    for (sequence, at_ms) in (0..).zip((40..=until_ms).step_by(40)) {
        fixture.now = began_at + Duration::from_millis(at_ms);
        fixture.receives(&frame(0, sequence));
        if has_audio(at_ms) {
            fixture.receives(&audio(2, 0, sequence));
        }
    }
    fixture
}

fn of(fixture: &Fixture, track: u16) -> Vec<&TrackInterval> {
    fixture.intervals().into_iter().filter(|it| it.track.0 == track).collect()
}

/// How many seconds of audio were missing, and whether they had begun.
#[track_caller]
fn missing_audio(fixture: &Fixture) -> Vec<bool> {
    assert!(of(fixture, 0).iter().all(|it| it.missing.is_none()));
    let missing = of(fixture, 1).into_iter().filter(|it| it.missing.is_some());
    missing.clone().for_each(|it| assert_eq!(it.counters.active_us, 1_000_000));
    missing.filter_map(|it| Some(it.missing?.has_stopped)).collect()
}

#[test]
fn a_track_that_never_comes_is_missing_until_the_others_end() {
    let mut fixture = played(5, 5_000, |_| false);
    fixture.wait(Duration::from_millis(1_100));
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert_eq!(missing_audio(&fixture), [false; 5]);
    for track in [0, 1] {
        let active_us: u64 = of(&fixture, track).iter().map(|it| it.counters.active_us).sum();
        assert_eq!(active_us, 5_000_000, "{track}: the silence in which the end was awaited");
    }
}

#[test]
fn a_track_that_stops_near_the_end_and_comes_back_was_missing() {
    let fixture = played(8, 8_520, |at_ms| !(5_100..8_100).contains(&at_ms));
    assert_eq!(missing_audio(&fixture), [true; 2]);
}

#[test]
fn a_track_that_stops_long_after_the_end_was_due_is_missing() {
    let fixture = played(5, 14_000, |at_ms| at_ms < 9_000);
    assert_eq!(missing_audio(&fixture), [true; 5]);
}

/// Twenty seconds of video at 80 percent of real time, and then its end, without a word.
#[test]
fn the_late_end_of_a_recording_that_comes_slowly_is_no_freeze() {
    let mut fixture = playing(20, "");
    for sequence in 0..100 {
        fixture.wait(Duration::from_millis(250));
        fixture.receives(&frame(0, sequence));
    }
    fixture.wait(Duration::from_millis(1_100));
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    let frozen = of(&fixture, 0).iter().map(|it| it.counters.freeze_count).sum::<u64>();
    assert_eq!(frozen, 0);
}

/// Ten seconds of video at 80 percent of real time; at the end of each second its last frame is
/// two tenths old.
#[test]
fn a_recording_that_comes_slowly_has_all_its_seconds() {
    let mut fixture = playing(10, "");
    fixture.wait(Duration::from_millis(60));
    for sequence in 0..50 {
        fixture.receives(&frame(0, sequence));
        fixture.wait(Duration::from_millis(250));
    }
    fixture.input(Input::Leave { others_follow: false });
    let intervals = of(&fixture, 0);
    assert!(intervals.iter().all(|it| it.missing.is_none() && it.counters.freeze_count == 0));
    let active_ms: Vec<u64> =
        intervals.iter().map(|it| it.counters.active_us.div_ceil(1_000)).collect();
    assert_eq!(active_ms.len(), 13, "{active_ms:?}");
    assert!(active_ms.iter().take(12).all(|ms| (980..=1_020).contains(ms)), "{active_ms:?}");
    assert_eq!(active_ms.iter().sum::<u64>(), 12_310, "until the last frame");
}
