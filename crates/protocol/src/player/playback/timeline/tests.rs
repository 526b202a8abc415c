//! Tracks that are filled by hand.

use super::*;

fn frame(starts_ms: i64, is_key: bool) -> BufferedFrame {
    BufferedFrame { starts_us: starts_ms * 1_000, duration_us: 40_000, bytes: 100, is_key }
}

fn filled(video: std::ops::Range<i64>, audio: std::ops::Range<i64>) -> Timeline {
    let mut timeline = Timeline::default();
    let at = [MediaKind::Video, MediaKind::Audio].map(|kind| timeline.add(kind, Codec::Other));
    for (at, range) in at.into_iter().zip([video, audio]) {
        let track = timeline.track_mut(at).unwrap();
        range.for_each(|number| {
            track.push(frame(number * 40, number % 25 == 0));
        });
    }
    timeline
}

#[test]
fn playback_goes_as_far_as_the_track_that_ends_first() {
    let timeline = filled(0..50, 0..25);
    assert_eq!(timeline.playable_us(0, |_| false), Some(1_000_000));
    assert_eq!(timeline.playable_us(0, |at| at == 1), Some(2_000_000), "the audio has ended");
    assert_eq!(timeline.playable_us(0, |_| true), Some(2_000_000));
    assert_eq!(filled(0..50, 0..0).playable_us(0, |_| false), None, "no audio came");
}

#[test]
fn a_picture_has_the_size_that_was_said_last_before_it() {
    let mut timeline = Timeline::default();
    assert_eq!(timeline.lines_at(0), None);
    [(0, 360), (4, 360), (8, 720), (12, 360)]
        .into_iter()
        .for_each(|(at_s, lines)| timeline.sized(at_s * 1_000_000, lines));
    let at_s = |timeline: &Timeline, at_s: i64| timeline.lines_at(at_s * 1_000_000);
    for (position_s, lines) in [(-1, None), (7, Some(360)), (8, Some(720)), (90, Some(360))] {
        assert_eq!(at_s(&timeline, position_s), lines, "{position_s} s");
    }
    // A seek back, to another size.
    timeline.sized(4_000_000, 1_080);
    assert_eq!((at_s(&timeline, 3), at_s(&timeline, 9)), (Some(360), Some(1_080)));
}

#[test]
fn each_frame_is_played_once_when_its_time_has_come() {
    let mut timeline = filled(0..50, 0..50);
    let video = timeline.track_mut(0).unwrap();
    assert_eq!(video.take_played(0), PlayedFrames::default());
    for (position_us, frames, key_frames) in
        [(1_000_000, 25, 1), (1_000_001, 1, 1), (9_000_000, 24, 0)]
    {
        let last_us = 40_000 * frames;
        let expect = PlayedFrames { frames, key_frames, last_us, missing_us: 0 };
        assert_eq!(video.take_played(position_us), expect);
    }
    assert!((video.source_fps().unwrap() - 25.0).abs() < 0.01);
    assert_eq!((video.take_bytes(), video.take_bytes()), (5_000, 0));
}

#[test]
fn a_segment_can_be_played_when_it_is_complete_and_what_overlaps_is_not_played_twice() {
    let mut timeline = filled(0..50, 0..50);
    let receive = |timeline: &mut Timeline, frames: std::ops::Range<i64>| {
        let track = timeline.track_mut(0).unwrap();
        frames.for_each(|number| track.receive(frame(number * 40, number % 25 == 0)));
    };
    receive(&mut timeline, 25..75);
    assert_eq!(timeline.playable_us(0, |at| at == 1), Some(2_000_000));
    assert_eq!(timeline.received_us(|at| at == 1), Some(3_000_000));
    assert!(timeline.track_mut(0).unwrap().append_pending(Filled::Nothing));
    assert_eq!(timeline.playable_us(0, |at| at == 1), Some(3_000_000));
    assert_eq!(timeline.track_mut(0).unwrap().take_played(9_000_000).frames, 75);
    receive(&mut timeline, 75..80);
    timeline.track_mut(0).unwrap().drop_pending();
    assert_eq!(timeline.received_us(|at| at == 1), Some(3_000_000));
}

#[test]
fn a_segment_that_is_missing_is_a_hole_at_which_playback_stops() {
    let mut timeline = filled(0..50, 0..50);
    for at in 0..2 {
        let track = timeline.track_mut(at).unwrap();
        (100..150).for_each(|number| track.receive(frame(number * 40, number % 25 == 0)));
        track.append_pending(Filled::Within);
    }
    assert_eq!(timeline.ahead_us(500_000, |_| false), 3_500_000, "without the hole");
    assert_eq!(timeline.playable_us(500_000, |_| false), Some(2_000_000));
    assert_eq!(
        (timeline.after_hole_us(500_000), timeline.after_hole_us(2_000_000)),
        (None, Some(4_000_000))
    );
    assert_eq!(timeline.playable_us(4_000_000, |_| false), Some(6_000_000));
    for at in 0..2 {
        timeline.track_mut(at).unwrap().take_played(4_000_000);
    }
    assert_eq!(timeline.after_hole_us(4_000_000), None);
}

#[test]
fn what_is_missing_in_a_transport_stream_is_filled_where_a_player_can() {
    // Sound from 0 to 2 s, and from 4 s on, of which the first second is missing.
    let holes = |codec, filled, missing_ms: i64| {
        let mut timeline = Timeline::default();
        let at = timeline.add(MediaKind::Audio, codec);
        let track = timeline.track_mut(at).unwrap();
        (0..50).for_each(|number| track.receive(frame(number * 40, true)));
        track.append_pending(Filled::Throughout);
        track.receive(frame(2_000 + missing_ms, true));
        track.receive(frame(4_000 + 2 * missing_ms, true));
        track.append_pending(filled);
        track.holes.len()
    };
    for (codec, filled, missing_ms, expect) in [
        (Codec::Aac, Filled::Nothing, 1_000, 2),
        (Codec::Aac, Filled::Within, 1_000, 1),
        (Codec::Aac, Filled::Throughout, 1_000, 0),
        (Codec::MpegAudio, Filled::Throughout, 1_000, 2),
        (Codec::Aac, Filled::Throughout, 11_000, 2),
    ] {
        let found = holes(codec, filled, missing_ms);
        assert_eq!(found, expect, "{codec:?} {filled:?} {missing_ms}");
    }
}

#[test]
fn uneven_frames_are_counted_with_the_time_since_the_one_before() {
    let mut timeline = Timeline::default();
    let at = timeline.add(MediaKind::Video, Codec::Other);
    let slides = timeline.track_mut(at).unwrap();
    for starts_ms in [0, 2_000, 2_100, 9_000] {
        slides.push(BufferedFrame { duration_us: 0, ..frame(starts_ms, true) });
    }
    slides.take_played(1_000_000);
    assert_eq!(slides.take_played(2_000_000), PlayedFrames::default(), "none was due");
    let played = slides.take_played(3_000_000);
    assert_eq!((played.frames, played.last_us), (2, 2_100_000));
    let played = slides.take_played(9_500_000);
    assert_eq!((played.frames, played.last_us), (1, 6_900_000));
}

#[test]
fn pictures_that_are_missing_are_due_where_the_one_before_is_shown_longer() {
    for (filled, missing_us) in
        [(Filled::Throughout, [0, 960_000, 1_000_000, 6_000_000]), (Filled::Nothing, [0; 4])]
    {
        let mut timeline = Timeline::default();
        let at = timeline.add(MediaKind::Video, Codec::Other);
        let video = timeline.track_mut(at).unwrap();
        // The reader of a transport stream takes the time to the next picture for a duration.
        (0..50).for_each(|number| video.receive(frame(number * 40, true)));
        video.receive(BufferedFrame { duration_us: 8_000_000, ..frame(2_000, true) });
        (0..50).for_each(|number| video.receive(frame(10_000 + number * 40, true)));
        video.append_pending(filled);
        let at_us = [2_000_001, 3_000_000, 4_000_000, 10_000_001];
        for (position_us, missing_us) in at_us.into_iter().zip(missing_us) {
            let played = video.take_played(position_us);
            assert!(played.missing_us.abs_diff(missing_us) < 50_000, "{filled:?} {played:?}");
        }
        let played = video.take_played(11_000_001);
        assert_eq!((played.frames, played.missing_us), (25, 0), "{filled:?}");
        assert!(video.source_fps().unwrap() > 10.0 || filled == Filled::Nothing);
    }
}

#[test]
fn pictures_that_come_seldom_are_not_missing() {
    let mut timeline = Timeline::default();
    let at = timeline.add(MediaKind::Video, Codec::Other);
    let slides = timeline.track_mut(at).unwrap();
    for starts_ms in [0, 2_000, 4_000, 4_100, 6_000, 12_000] {
        slides.receive(BufferedFrame { duration_us: 0, ..frame(starts_ms, true) });
        slides.append_pending(Filled::Throughout);
    }
    let played = slides.take_played(13_000_000);
    assert_eq!((played.frames, played.missing_us), (6, 0));
    // Moving pictures, and slides from then on.
    let mut timeline = Timeline::default();
    let at = timeline.add(MediaKind::Video, Codec::Other);
    let slides = timeline.track_mut(at).unwrap();
    for starts_ms in (0..50).map(|i| 40 * i).chain((1..8).map(|i| 2_000 + 5_000 * i)) {
        slides.receive(BufferedFrame { duration_us: 0, ..frame(starts_ms, true) });
        slides.append_pending(Filled::Throughout);
    }
    let played = slides.take_played(40_000_000);
    assert_eq!((played.frames, played.missing_us), (57, 0));
}

#[test]
fn frames_before_the_first_key_frame_are_not_shown() {
    let mut timeline = filled(10..50, 0..50);
    assert_eq!(timeline.track_mut(0).unwrap().take_played(9_000_000).frames, 25);
    timeline.clear(0, 2_080_000);
    assert_eq!(timeline.playable_us(0, |_| false), None);
    let video = timeline.track_mut(0).unwrap();
    assert!(!video.push(frame(2_000, false)));
    assert!(video.push(frame(2_040, true)) && video.push(frame(2_080, false)));
    assert_eq!(
        video.take_played(9_000_000).frames,
        1,
        "those before the position are decoded only"
    );
}
