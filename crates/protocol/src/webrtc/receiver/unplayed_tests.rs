//! Packets that a browser does not play, or plays otherwise than they were meant.

use std::time::Duration;

use throng_observation::{INNER_MARKERS_PLACE, TIME_JUMP_PLACE};

use super::fixture::Fixture;

const SDP: &str = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:v\r\na=rtpmap:96 VP8/90000\r\n\
    a=sendonly\r\n";

#[test]
fn packets_between_those_of_a_track_are_not_lost_and_no_media() {
    let mut fixture = Fixture::new(SDP, false);
    for index in 1..=40 {
        fixture.now += Duration::from_millis(33);
        let payload_type = if index % 10 == 0 { 13 } else { 96 };
        fixture.arrives((payload_type, 8), index, fixture.now);
    }
    // Of another source nothing is known.
    fixture.arrives((13, 9), 1, fixture.now);
    fixture.receiver.finish(fixture.now);
    fixture.look();
    let counters: Vec<_> = fixture.intervals.iter().map(|interval| &interval.counters).collect();
    assert_eq!(counters.iter().map(|it| it.packets_original).sum::<u64>(), 40);
    assert_eq!(counters.iter().map(|it| it.packets_lost).sum::<i64>(), 0);
    assert_eq!(counters.iter().map(|it| it.frames_complete).sum::<u64>(), 36);
}

#[test]
fn markers_inside_pictures_are_told_once_and_split_no_picture() {
    let mut fixture = Fixture::new(SDP, false);
    for index in 1..=40_u64 {
        fixture.now += Duration::from_millis(16);
        // Every packet has the marker, and a picture has two.
        fixture.arrives_of((96, 8), index, (index as u32 - 1) / 2 * 3_000, fixture.now);
    }
    fixture.receiver.finish(fixture.now);
    fixture.look();
    let told = fixture.anomalies.iter().filter(|place| **place == INNER_MARKERS_PLACE);
    assert_eq!(told.count(), 1, "{:?}", fixture.anomalies);
    let frames: u64 = fixture.intervals.iter().map(|it| it.counters.frames_complete).sum();
    assert_eq!(frames, 19, "the last has no sure end");
}

#[test]
fn rtp_times_that_jump_back_and_forth_are_told_once() {
    let mut fixture = Fixture::new(SDP, false);
    for index in 1..=500_u64 {
        fixture.now += Duration::from_millis(40);
        // Two seconds back for a second, and there again, twenty times.
        let back = if index / 25 % 2 == 1 { 2 * 90_000 } else { 0 };
        fixture.arrives_of((96, 8), index, 1_000_000 + index as u32 * 3_600 - back, fixture.now);
    }
    fixture.receiver.finish(fixture.now);
    fixture.look();
    let told = fixture.anomalies.iter().filter(|place| **place == TIME_JUMP_PLACE);
    assert_eq!(told.count(), 1, "{:?}", fixture.anomalies);
    let frames: u64 = fixture.intervals.iter().map(|it| it.counters.frames_complete).sum();
    assert!(frames > 480, "{frames} of 500: only the event says what a browser makes of it");
}
