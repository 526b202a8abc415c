//! Packets of audio and video that are not as described.

use std::time::Duration;

use throng_observation::{Phase, TrackCounters};

use super::fixture::{Fixture, SDP, audio, frame};
use crate::participant::Input;
use crate::reports::TIME_JUMP;

#[test]
fn comfort_noise_and_events_between_audio_are_received_and_no_audio() {
    let sdp = "v=0\r\nm=audio 0 RTP/AVP 0 13 101\r\na=rtpmap:101 telephone-event/8000\r\n";
    let mut fixture = Fixture::playing(sdp);
    for at in 0..100 {
        fixture.now += Duration::from_millis(20);
        let payload_type = match at % 16 {
            7 => 13,
            9 => 101,
            _ => 0,
        };
        fixture.receives(&audio(0, payload_type, at));
    }
    // One that was not described is of the same source, too.
    fixture.receives(&audio(0, 97, 100));
    fixture.input(Input::Leave { others_follow: false });
    let sum = |of: fn(&TrackCounters) -> u64| {
        fixture.intervals().iter().map(|it| of(&it.counters)).sum::<u64>()
    };
    assert_eq!(sum(|it| it.packets_original), 101);
    assert_eq!(fixture.intervals().iter().map(|it| it.counters.packets_lost).sum::<i64>(), 0);
    assert_eq!(sum(|it| it.frames_complete), 88);
    assert_eq!(fixture.anomalies(), ["payload type 97 where 0 was described"]);
}

#[test]
fn redundant_audio_is_audio() {
    let sdp = "v=0\r\nm=audio 0 RTP/AVP 0 96\r\na=rtpmap:96 red/8000\r\n";
    let mut fixture = Fixture::playing(sdp);
    (0..50).for_each(|at| fixture.receives(&audio(0, 96, at)));
    assert!(fixture.has_reached(Phase::FirstFrame) && fixture.anomalies().is_empty());
}

#[test]
fn markers_inside_pictures_are_told_once() {
    let mut fixture = Fixture::playing(SDP);
    for at in 0..40_u16 {
        fixture.now += Duration::from_millis(20);
        // Two packets with the marker a picture.
        let mut packet = frame(0, at);
        packet[8..12].copy_from_slice(&(u32::from(at / 2) * 3_600).to_be_bytes());
        // The second is another slice: its first macroblock is not number 0.
        packet[17] = if at % 2 == 0 { 0x88 } else { 0x48 };
        fixture.receives(&packet);
    }
    let told = fixture.anomalies();
    assert!(told.len() == 1 && told[0].contains("marker"), "{told:?}");
    fixture.input(Input::Leave { others_follow: false });
    let frames: u64 = fixture.intervals().iter().map(|it| it.counters.frames_complete).sum();
    assert_eq!(frames, 19, "the last has no sure end");
}

#[test]
fn rtp_times_that_jump_back_and_forth_are_told_once() {
    let mut fixture = Fixture::playing(SDP);
    for at in 0..200_u16 {
        fixture.now += Duration::from_millis(40);
        // Two seconds back for a second, and there again, four times.
        let back = if at / 25 % 2 == 1 { 2 * 90_000 } else { 0 };
        let mut packet = frame(0, at);
        packet[8..12].copy_from_slice(&(1_000_000 + u32::from(at) * 3_600 - back).to_be_bytes());
        fixture.receives(&packet);
    }
    assert_eq!(fixture.anomalies(), [TIME_JUMP]);
    fixture.input(Input::Leave { others_follow: false });
    let frames: u64 = fixture.intervals().iter().map(|it| it.counters.frames_complete).sum();
    assert!(frames > 180, "{frames} of 200: only the event says what a browser makes of it");
}
