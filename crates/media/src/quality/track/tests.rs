//! Whole tracks: generated packets in, intervals out.

use super::*;
use crate::codec::PayloadFacts;
use crate::mark::Mark;
use proptest::prelude::*;
use throng_observation::TrackInterval;

const UNIX_NS: u64 = 1_800_000_000_000_000_000;

/// A track and the time at which it was announced.
struct Viewer {
    meter: TrackMeter,
    start: Instant,
}

impl Viewer {
    fn of(kind: MediaKind, nack: bool) -> Self {
        let start = Instant::now();
        let (codec, clock_rate_hz) = match kind {
            MediaKind::Video => (Codec::H264, 90_000),
            MediaKind::Audio => (Codec::Opus, 48_000),
        };
        let config = TrackConfig { track: TrackId(3), kind, codec, clock_rate_hz, nack };
        let clock = WallClock { at: start, unix_ns: UNIX_NS };
        Self { meter: TrackMeter::new(config, clock, start), start }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    /// Advances time to `ms` as a driver does, with all deadlines.
    fn until(&mut self, ms: u64) -> Vec<(u64, Vec<u16>)> {
        let mut asked = Vec::new();
        let mut deadlines = 0;
        while let Some(at) = self.meter.next_timeout().filter(|&at| at <= self.at(ms)) {
            deadlines += 1;
            assert!(deadlines < 1000, "a deadline that is met does not come again");
            self.meter.timeout(at);
            let mut out = Vec::new();
            self.meter.take_nacks(at, at, &mut out);
            if !out.is_empty() {
                asked.push(((at - self.start).as_millis() as u64, out));
            }
            if self.meter.wants_key_frame(at) {
                self.meter.pli_sent();
            }
        }
        asked
    }

    fn packet(&mut self, at_ms: u64, packet: Packet) {
        self.until(at_ms);
        self.meter.packet(&Packet { arrived_at: self.at(at_ms), ..packet });
    }
}

/// Packet `i` of a video of 25 fps with two packets a frame and a key frame every 50 frames.
fn video(i: u32) -> Packet {
    let frame = i / 2;
    Packet {
        arrived_at: Instant::now(),
        sequence: 65_500_u16.wrapping_add(i as u16),
        timestamp: (u32::MAX - 10_000).wrapping_add(frame * 3600),
        marker: i % 2 == 1,
        facts: PayloadFacts {
            starts_frame: i.is_multiple_of(2),
            key_frame: frame.is_multiple_of(50),
            ..PayloadFacts::default()
        },
        payload_bytes: 1000,
        header_bytes: 12,
        wire_bytes: 1050,
        retransmitted: false,
        captured: None,
    }
}

/// When packet `i` of that video is sent, ms.
fn sent_ms(i: u32) -> u64 {
    u64::from(i / 2 * 40 + i % 2)
}

/// Packet `i` of audio with 20 ms a packet.
fn audio(i: u32) -> Packet {
    Packet { sequence: i as u16, timestamp: i * 960, marker: false, payload_bytes: 100, ..video(1) }
}

#[test]
fn a_clean_second_of_video() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (0..50).for_each(|i| viewer.packet(sent_ms(i) + 10, video(i)));
    let interval = viewer.meter.take_interval(viewer.at(1000));
    let expect = TrackCounters {
        packets_original: 50,
        payload_bytes: 50_000,
        header_bytes: 600,
        wire_bytes: 52_500,
        frames_complete: 25,
        frames_decodable: 25,
        key_frames: 1,
        active_us: 1_000_000,
        ..TrackCounters::default()
    };
    assert_eq!(
        (interval.track, interval.kind, interval.counters),
        (TrackId(3), MediaKind::Video, expect)
    );
    assert_eq!(interval.relative_delay_us, [0; 25]);
    assert!(interval.absolute_delay_us.is_empty() && viewer.meter.capture_basis().is_none());
    assert_eq!((interval.source_fps, interval.oven_rtc_tester_delay_us), (Some(25.0), Some(1_000)));
    assert_eq!(viewer.meter.first_frame_at(), Some(viewer.at(11)));
    let next = viewer.meter.take_interval(viewer.at(1001));
    assert_eq!(next.counters, TrackCounters { active_us: 1000, ..TrackCounters::default() });
}

/// Packet `i` of a video of 25 fps, each picture in four slices of a packet, all with the marker.
fn slices(i: u32) -> Packet {
    let (packet, picture) = (video(i), i / 4);
    let facts = PayloadFacts {
        starts_frame: i.is_multiple_of(4),
        key_frame: picture == 0,
        ..PayloadFacts::default()
    };
    Packet { timestamp: picture * 3_600, marker: true, facts, ..packet }
}

#[test]
fn a_picture_of_several_slices_with_markers_is_one_frame() {
    let mut viewer = Viewer::of(MediaKind::Video, false);
    let sent = |i: u32| u64::from(i / 4 * 40);
    (0..400).for_each(|i| viewer.packet(sent(i), slices(i)));
    let interval = viewer.meter.take_interval(viewer.at(4_000));
    let counters = interval.counters;
    // The last picture has no sure end.
    assert_eq!((counters.frames_complete, counters.frames_decodable), (99, 99));
    assert_eq!((counters.frames_dropped, interval.source_fps), (0, Some(25.0)));
    assert!(viewer.meter.has_inner_markers());
    // Every other picture is lost on the way: half of the frames are missing, and the rate says so.
    let mut viewer = Viewer::of(MediaKind::Video, false);
    (0..400_u32)
        .filter(|i| (i / 4).is_multiple_of(2))
        .for_each(|i| viewer.packet(sent(i), slices(i)));
    let counters = viewer.meter.finish(viewer.at(4_500)).counters;
    assert!((49..=50).contains(&counters.frames_complete), "{counters:?}");
    // The hole before the last picture is judged with it.
    assert!((48..=50).contains(&counters.frames_dropped), "{counters:?}");
    // A source with one marker a picture has none inside.
    let mut viewer = Viewer::of(MediaKind::Video, false);
    (0..50).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    assert!(!viewer.meter.has_inner_markers());
}

/// Servers that begin between key frames send those before the position with its timestamp.
#[test]
fn pictures_of_one_timestamp_are_as_many_as_begin() {
    let mut viewer = Viewer::of(MediaKind::Video, false);
    for i in 0..40 {
        let timestamp = if i < 20 { 0 } else { video(i).timestamp };
        viewer.packet(sent_ms(i), Packet { timestamp, ..video(i) });
    }
    assert!(!viewer.meter.has_inner_markers());
    let counters = viewer.meter.take_interval(viewer.at(sent_ms(40))).counters;
    assert_eq!((counters.frames_complete, counters.frames_dropped), (20, 0));
    // A marker on parameter sets ends no picture.
    let mut viewer = Viewer::of(MediaKind::Video, false);
    for i in 0..40 {
        let packet = video(i);
        let facts = PayloadFacts {
            starts_frame: true,
            precedes_picture: i.is_multiple_of(2),
            ..packet.facts
        };
        viewer.packet(sent_ms(i), Packet { marker: true, facts, ..packet });
    }
    assert!(viewer.meter.has_inner_markers());
}

#[test]
fn the_picture_at_which_the_sender_stopped_may_come_once_more() {
    let mut viewer = Viewer::of(MediaKind::Video, false);
    (0..40).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    viewer.meter.pause();
    viewer.meter.timeline_shifted();
    viewer.meter.resume(viewer.at(sent_ms(40) + 2_000));
    // Pictures of two packets: those with the numbers 40 and 41 have the timestamp of the last.
    for i in 40..80 {
        viewer.packet(sent_ms(i) + 2_000, Packet { timestamp: video(i - 2).timestamp, ..video(i) });
    }
    assert!(!viewer.meter.has_inner_markers());
    assert_eq!(viewer.meter.take_interval(viewer.at(sent_ms(80) + 2_000)).counters.packets_lost, 0);
}

#[test]
fn frames_are_due_from_the_first_that_can_be_decoded() {
    // It joined in the tenth of fifty frames: the key frame is 1.6 s later.
    let due = |interval: &TrackInterval| {
        (interval.counters.frames_decodable, interval.frames_due_us / 1_000)
    };
    let mut viewer = Viewer::of(MediaKind::Video, false);
    let mut reported = Vec::new();
    for i in 20..200 {
        if (i - 20) % 50 == 0 && i > 20 {
            let interval = viewer.meter.take_interval(viewer.at(sent_ms(i - 20)));
            reported.push((due(&interval), interval.first_frame_awaited_since.is_some()));
        }
        viewer.packet(sent_ms(i - 20), video(i));
    }
    // Seconds of 25 frames: the first 40 could not be decoded, and do not count as missing.
    assert_eq!(reported, [((0, 0), true), ((10, 399), false), ((25, 1_000), false)]);
    // It is switched off for a while: the wait for a decodable frame starts again.
    viewer.meter.pause();
    viewer.meter.resume(viewer.at(4_000));
    let interval = viewer.meter.take_interval(viewer.at(4_500));
    let since = interval.first_frame_awaited_since.map(|at| at - viewer.start);
    assert_eq!((interval.frames_due_us, since), (0, Some(Duration::from_secs(4))));
    // In audio each packet is a frame.
    let mut voice = Viewer::of(MediaKind::Audio, false);
    (0..10).for_each(|i| voice.packet(u64::from(i) * 20, audio(i)));
    let interval = voice.meter.take_interval(voice.at(200));
    assert_eq!((interval.frames_due_us, interval.first_frame_awaited_since), (200_000, None));
}

#[test]
fn a_lost_packet_is_requested_and_its_retransmission_completes_the_frame() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (0..10).filter(|&i| i != 4).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    // Packet 4 was found missing at 81 ms, requested 10 ms later and again each 100 ms, until it
    // arrived.
    assert_eq!(viewer.meter.take_interval(viewer.at(170)).counters.nack_sent, 1);
    assert_eq!(viewer.until(195), [(191, vec![65_504])]);
    viewer.packet(200, Packet { retransmitted: true, ..video(4) });
    assert_eq!(viewer.until(5000), []);
    let counters = viewer.meter.finish(viewer.at(5000)).counters;
    assert_eq!((counters.packets_recovered, counters.nack_sent, counters.packets_lost), (1, 1, 0));
    assert_eq!((counters.frames_decodable, counters.frames_dropped, counters.pli_sent), (3, 0, 0));
    assert_eq!(
        viewer.meter.reception().map(|r| r.cumulative_lost),
        Some(1),
        "the network did lose it"
    );
}

/// `getStats()` of a browser for the same packets, by W3C webrtc-stats.
#[test]
fn a_repeat_takes_its_loss_back_on_the_streams_own_ssrc_and_not_by_rtx() {
    for (what, retransmitted, repeats, expect) in [
        // (lost on the SSRC, lost after recovery, RTX packets, payload of 50 packets and repeats,
        // payload of the repeats)
        ("nothing comes again", false, 0, (1, 1, 0, 49_000, 0)),
        ("on the own SSRC", false, 1, (0, 0, 0, 50_000, 1_000)),
        ("by RTX", true, 1, (1, 0, 1, 50_000, 1_000)),
        ("twice, by RTX: one too many", true, 2, (1, 0, 2, 51_000, 2_000)),
        ("twice, on the own SSRC: RFC 3550 counts both", false, 2, (-1, 0, 0, 51_000, 2_000)),
    ] {
        let mut viewer = Viewer::of(MediaKind::Video, true);
        (0..10).filter(|&i| i != 4).for_each(|i| viewer.packet(sent_ms(i), video(i)));
        viewer.until(195);
        (0..repeats).for_each(|_| viewer.packet(200, Packet { retransmitted, ..video(4) }));
        (10..50).for_each(|i| viewer.packet(200 + sent_ms(i), video(i)));
        let c = viewer.meter.finish(viewer.at(5000)).counters;
        let on_ssrc = c.packets_lost_on_ssrc();
        let bytes = (c.payload_bytes, c.repeated_bytes);
        let got = (on_ssrc, c.packets_lost, c.rtx_packets_received, bytes.0, bytes.1);
        assert_eq!(got, expect, "{what}");
    }
}

#[test]
fn an_unrepaired_loss_breaks_decoding_until_a_requested_key_frame() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (0..200).filter(|&i| i != 4).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    let counters = viewer.meter.finish(viewer.at(4000)).counters;
    assert_eq!(
        (counters.packets_lost, counters.frames_dropped, counters.frames_complete),
        (1, 1, 99)
    );
    assert_eq!((counters.frames_decodable, counters.key_frames), (2 + 50, 2));
    assert_eq!(
        counters.pli_sent, 2,
        "when it broke at 281 ms, a second later, and the key frame came at 2 s"
    );
    assert_eq!(
        (counters.freeze_count, counters.freeze_us),
        (0, 0),
        "fewer than five intervals were known"
    );
    assert_eq!(counters.nack_sent, 10);
}

#[test]
fn a_break_asks_for_a_key_frame_at_once() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (0..14).filter(|&i| i != 4).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    viewer.until(280); // the loss was seen at 81 ms
    assert_eq!(viewer.meter.take_interval(viewer.at(280)).counters.pli_sent, 0);
    viewer.until(281);
    assert_eq!(viewer.meter.take_interval(viewer.at(281)).counters.pli_sent, 1);
}

#[test]
fn nothing_before_a_key_frame_is_asked_for_any_more() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (0..150).filter(|&i| i != 96).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    // Missing at 1921 ms, requested at 1931, 2031; dropped at 2121, when the key frame of 2001 ms
    // is shown.
    let counters = viewer.meter.finish(viewer.at(3000)).counters;
    assert_eq!(
        (counters.nack_sent, counters.frames_dropped, counters.frames_decodable),
        (2, 1, 48 + 25)
    );
    assert_eq!(counters.pli_sent, 0, "it is there already");
}

#[test]
fn a_loss_becomes_a_freeze_until_the_key_frame() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (0..200).filter(|&i| i != 40).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    let counters = viewer.meter.finish(viewer.at(3961)).counters;
    // The last frame before the loss was complete at 761 ms, the key frame at 2001 ms.
    assert_eq!((counters.freeze_count, counters.freeze_us), (1, 1_240_000));
}

#[test]
fn a_server_that_falls_silent_is_frozen_in_every_second() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (0..50).for_each(|i| viewer.packet(sent_ms(i), video(i))); // the last frame at 961 ms
    let seconds: Vec<_> = (1..=3)
        .map(|s| {
            viewer.until(s * 1000);
            viewer.meter.take_interval(viewer.at(s * 1000)).counters
        })
        .map(|c| (c.freeze_count, c.freeze_us, c.frames_decodable))
        .collect();
    assert_eq!(seconds, [(0, 0, 25), (1, 1_039_000, 0), (0, 1_000_000, 0)]);
}

#[test]
fn a_join_in_the_middle_of_a_gop_requests_a_key_frame_once_a_second() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (20..150).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    let counters = viewer.meter.finish(viewer.at(2999)).counters;
    // From 400 ms on: requested at 600 and 1600 ms; the key frame arrives at 2 s.
    assert_eq!(
        (counters.pli_sent, counters.frames_complete, counters.frames_decodable),
        (2, 65, 25)
    );
    assert_eq!((counters.frames_dropped, counters.freeze_count), (0, 0));
    assert_eq!(viewer.meter.first_frame_at(), Some(viewer.at(2001)));
}

#[test]
fn each_packet_is_of_one_kind() {
    for (what, nack, arrivals, expect) in [
        // (received, lost, late, duplicate, reordered, recovered)
        ("in order", true, vec![(0, 0), (20, 1), (40, 2)], (3, 0, 0, 0, 0, 0)),
        ("twice", true, vec![(0, 0), (20, 1), (21, 1)], (2, 0, 0, 1, 0, 0)),
        ("reordered", true, vec![(0, 0), (20, 2), (25, 1)], (3, 0, 0, 0, 1, 0)),
        ("asked for, same SSRC", true, vec![(0, 0), (20, 2), (50, 1)], (2, 0, 0, 0, 0, 1)),
        (
            "not asked for as it cannot be",
            false,
            vec![(0, 0), (20, 2), (119, 1)],
            (3, 0, 0, 0, 1, 0),
        ),
        ("late", false, vec![(0, 0), (20, 2), (121, 1)], (3, 0, 1, 0, 0, 0)),
        ("lost", false, vec![(0, 0), (20, 2)], (2, 1, 0, 0, 0, 0)),
        (
            "asked for, after the patience",
            true,
            vec![(0, 0), (20, 2), (300, 1)],
            (2, 0, 0, 0, 0, 1),
        ),
    ] {
        let mut viewer = Viewer::of(MediaKind::Audio, nack);
        arrivals.into_iter().for_each(|(at_ms, i)| viewer.packet(at_ms, audio(i)));
        let c = viewer.meter.finish(viewer.at(400)).counters;
        let got = (
            c.packets_original,
            c.packets_lost,
            c.packets_late,
            c.packets_duplicate,
            c.packets_reordered,
            c.packets_recovered,
        );
        assert_eq!(got, expect, "{what}");
    }
}

#[test]
fn a_loss_of_one_interval_taken_back_in_the_next_sums_to_nothing() {
    let mut viewer = Viewer::of(MediaKind::Audio, false);
    for (at_ms, i) in [(0, 0), (20, 2)] {
        viewer.packet(at_ms, audio(i));
    }
    viewer.until(500);
    assert_eq!(viewer.meter.take_interval(viewer.at(500)).counters.packets_lost, 1);
    viewer.packet(600, audio(1));
    let last = viewer.meter.finish(viewer.at(700)).counters;
    assert_eq!((last.packets_lost, last.packets_late), (-1, 1));
}

#[test]
fn a_restart_of_the_source_loses_nothing_and_counts_both_its_first_packets() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    (0..100).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    for i in 100..200 {
        // Another sequence, another timeline.
        let packet = video(i);
        let (sequence, timestamp) =
            (packet.sequence.wrapping_add(20_000), packet.timestamp.wrapping_sub(45_000));
        viewer.packet(sent_ms(i), Packet { sequence, timestamp, ..packet });
    }
    let interval = viewer.meter.finish(viewer.at(4000));
    let c = interval.counters;
    assert_eq!((c.packets_original, c.packets_lost, c.packets_duplicate), (200, 0, 0));
    assert_eq!(
        (c.frames_complete, c.frames_decodable, c.frames_dropped, c.key_frames),
        (100, 100, 0, 2)
    );
    assert_eq!((c.pli_sent, c.freeze_count), (0, 0));
    assert!(
        interval.relative_delay_us.iter().all(|&us| us < 1_000),
        "{:?}",
        interval.relative_delay_us
    );
    assert_eq!(viewer.meter.reception().map(|r| r.cumulative_lost), Some(0));
}

#[test]
fn padding_takes_numbers_and_makes_no_frame() {
    let mut viewer = Viewer::of(MediaKind::Video, true);
    for i in 0..20_u32 {
        let shift =
            |p: Packet| Packet { sequence: p.sequence.wrapping_add((i / 4 * 3) as u16), ..p };
        viewer.packet(sent_ms(i), shift(video(i)));
        if i % 4 == 3 {
            for k in 1..=3_u16 {
                let packet = shift(video(i));
                let sequence = packet.sequence.wrapping_add(k);
                let padding = Packet {
                    sequence,
                    marker: false,
                    payload_bytes: 0,
                    header_bytes: 250,
                    ..packet
                };
                viewer.packet(sent_ms(i), Packet { facts: PayloadFacts::default(), ..padding });
            }
        }
    }
    let c = viewer.meter.finish(viewer.at(400)).counters;
    assert_eq!((c.packets_original, c.packets_lost, c.payload_bytes), (35, 0, 20_000));
    assert_eq!((c.frames_decodable, c.frames_dropped, c.header_bytes), (10, 0, 20 * 12 + 15 * 250));
}

#[test]
fn a_longer_path_is_invisible_in_the_relative_delay_and_visible_in_the_absolute_one() {
    for path_ms in [5, 25] {
        let mut viewer = Viewer::of(MediaKind::Video, true);
        for i in 0..100 {
            let captured_unix_ns = UNIX_NS + u64::from(i / 2) * 40_000_000;
            let facts = PayloadFacts {
                mark: Some(Mark { frame: i / 2, captured_unix_ns }),
                ..video(i).facts
            };
            viewer.packet(sent_ms(i) + path_ms, Packet { facts, ..video(i) });
        }
        let interval = viewer.meter.take_interval(viewer.at(2100));
        assert_eq!(interval.relative_delay_us, [0; 50]);
        assert_eq!(
            interval.absolute_delay_us,
            [path_ms as i32 * 1000 + 1000; 50],
            "with the spread of the frame"
        );
        assert_eq!(interval.capture_basis, Some(CaptureBasis::Mark));
    }
}

#[test]
fn a_growing_queue_shows_in_the_relative_delay() {
    let mut viewer = Viewer::of(MediaKind::Audio, true);
    (0..100_u32)
        .for_each(|i| viewer.packet(u64::from(i) * 20 + u64::from(i.saturating_sub(50)), audio(i)));
    let interval = viewer.meter.take_interval(viewer.at(2100));
    assert_eq!(interval.relative_delay_us.len(), 100);
    assert_eq!(interval.relative_delay_us.get(50), Some(&0));
    assert_eq!(interval.relative_delay_us.last(), Some(&49_000));
}

#[test]
fn jumps_of_the_media_time_are_counted_and_pauses_of_the_sender_are_none() {
    let ahead = |packet: Packet, ticks: u32| Packet {
        timestamp: packet.timestamp.wrapping_add(ticks),
        ..packet
    };
    let mut jumps = Viewer::of(MediaKind::Video, false);
    for i in 0..60 {
        let ticks = if (20..40).contains(&i) { 2 * 90_000 } else { 0 };
        jumps.packet(sent_ms(i), ahead(video(i), ticks));
    }
    assert_eq!(jumps.meter.time_jumps(), 1, "there, and back");
    // Back first, and there twenty frames later.
    let mut back = Viewer::of(MediaKind::Video, false);
    for i in 0..120 {
        let ticks = if (20..60).contains(&i) { 0_u32.wrapping_sub(2 * 90_000) } else { 0 };
        back.packet(sent_ms(i), ahead(video(i), ticks));
    }
    assert_eq!(back.meter.time_jumps(), 2, "back, and there");
    let mut pauses = Viewer::of(MediaKind::Video, false);
    for i in 0..60 {
        let paused_s = if i < 20 { 0 } else { 3 };
        pauses.packet(sent_ms(i) + paused_s * 1_000, ahead(video(i), paused_s as u32 * 90_000));
    }
    assert_eq!(pauses.meter.time_jumps(), 0);
}

#[test]
fn delays_by_a_clock_that_stands_still_are_withdrawn() {
    let mut viewer = Viewer::of(MediaKind::Audio, false);
    assert!(viewer.meter.sender_report(UNIX_NS, 0, viewer.start));
    (0..50).for_each(|i| viewer.packet(u64::from(i) * 20 + 33, audio(i)));
    assert!(!viewer.meter.sender_report(UNIX_NS, 48_000, viewer.at(1_000)));
    let interval = viewer.meter.finish(viewer.at(1_000));
    assert_eq!((interval.absolute_delay_us.len(), interval.capture_basis), (0, None));
}

#[test]
fn a_sender_report_gives_the_absolute_delay_of_audio() {
    let mut viewer = Viewer::of(MediaKind::Audio, false);
    viewer.meter.sender_report(UNIX_NS, 0, viewer.start);
    (0..3).for_each(|i| viewer.packet(u64::from(i) * 20 + 33, audio(i)));
    let interval = viewer.meter.finish(viewer.at(100));
    assert_eq!(interval.absolute_delay_us, [33_000; 3]);
    assert_eq!(interval.capture_basis, Some(CaptureBasis::SenderReport));
    assert_eq!(viewer.meter.finish(viewer.at(200)).capture_basis, None, "no delays, no basis");
}

#[test]
fn what_is_no_packet_is_counted_apart() {
    let mut viewer = Viewer::of(MediaKind::Audio, false);
    viewer.meter.discarded();
    viewer.meter.overhead(77);
    viewer.meter.fir_sent();
    let c = viewer.meter.take_interval(viewer.at(1)).counters;
    assert_eq!((c.packets_unreadable, c.wire_bytes, c.fir_sent, c.packets_original), (1, 77, 1, 0));
    assert_eq!(viewer.meter.reception(), None);
}

#[test]
fn a_track_stays_small() {
    for (kind, most) in [(MediaKind::Video, 6 * 1024 + 512), (MediaKind::Audio, 2 * 1024)] {
        let meter = Viewer::of(kind, true).meter;
        let pictures = meter.pictures.as_ref().map_or(0, |pictures| pictures.memory_max());
        let memory = size_of::<TrackMeter>()
            + pictures
            + meter.sequence.memory_max()
            + meter.nacks.memory_max();
        assert!(memory <= most, "{kind:?}: {memory} bytes without samples");
    }
}

proptest! {
    /// Anything a server sends, at any time: no panic, no deadline that repeats itself, and over
    /// the life every packet expected was received, recovered or lost.
    #[test]
    fn any_packets_are_survived_and_add_up(
        packets in prop::collection::vec((0_u64..300, 0_u16..12, any::<u32>(), any::<[bool; 7]>()), 1..400),
        kind in prop::sample::select(vec![MediaKind::Audio, MediaKind::Video]),
    ) {
        let mut viewer = Viewer::of(kind, true);
        let mut sum = TrackCounters::default();
        let (mut at_ms, mut sequence, mut range) = (0, 65_000_u16, None::<(i64, i64)>);
        let mut number = 65_000_i64;
        for (k, (wait, step, random, [marker, starts, key, discardable, padding, again, back])) in
            packets.into_iter().enumerate()
        {
            at_ms += wait / 8;
            let step = if back && k > 0 { -(i64::from(step) * 4) } else { i64::from(step) };
            let offered = number + step;
            sequence = sequence.wrapping_add((offered - number) as u16);
            number = offered;
            let (lowest, highest) = range.unwrap_or((number, number));
            // A packet far behind may count as one of an older source, and beyond the window (256
            // numbers for audio) arrivals are not recorded: stay near.
            if (number < lowest && again) || highest - number > 100 {
                sequence = sequence.wrapping_add((highest - number) as u16);
                number = highest;
            }
            range = Some((lowest.min(number), highest.max(number)));
            viewer.packet(at_ms, Packet {
                sequence,
                timestamp: if random & 1 == 0 { random } else { (number as u32) / 3 * 3000 },
                marker,
                facts: PayloadFacts { starts_frame: starts, key_frame: key, discardable, ..PayloadFacts::default() },
                payload_bytes: u32::from(!padding),
                retransmitted: again,
                ..video(0)
            });
            if random & 6 == 0 {
                sum += viewer.meter.take_interval(viewer.at(at_ms)).counters;
            }
        }
        sum += viewer.meter.finish(viewer.at(at_ms)).counters;
        let (lowest, highest) = range.unwrap();
        let unique = sum.packets_original + sum.packets_recovered;
        prop_assert_eq!(unique as i64 + sum.packets_lost, highest - lowest + 1);
        prop_assert!(sum.frames_decodable <= sum.frames_complete && sum.key_frames <= sum.frames_decodable);
    }

    /// Numbers without any order, restarts included: no panic.
    #[test]
    fn rubbish_is_survived(
        packets in prop::collection::vec((any::<u16>(), any::<u32>(), 0_u64..5000, any::<[bool; 5]>()), 0..400),
    ) {
        let mut viewer = Viewer::of(MediaKind::Video, true);
        let mut at_ms = 0;
        for (sequence, timestamp, wait, [marker, starts, key, near, change]) in packets {
            at_ms += wait;
            let facts = PayloadFacts { starts_frame: starts, key_frame: key, ..PayloadFacts::default() };
            viewer.packet(at_ms, Packet { sequence, timestamp, marker, facts, ..video(0) });
            if near {
                viewer.packet(at_ms, Packet { sequence: sequence.wrapping_add(1), timestamp, marker, ..video(0) });
            }
            if change && wait == 0 {
                viewer.meter.source_changed(viewer.at(at_ms));
            }
            viewer.meter.sender_report(u64::from(timestamp) << 32, timestamp, viewer.at(at_ms));
            let _ = viewer.meter.reception();
        }
        let _ = viewer.meter.finish(viewer.at(at_ms));
    }
}

#[test]
fn a_pause_of_the_sender_is_no_loss_freeze_or_delay_and_needs_no_key_frame() {
    let mut viewer = Viewer::of(MediaKind::Video, false);
    for i in 0..40 {
        viewer.packet(sent_ms(i), video(i));
    }
    let paused_at = sent_ms(40);
    viewer.meter.pause();
    let before = viewer.meter.take_interval(viewer.at(paused_at));
    // Seven seconds later it goes on, with timestamps that continue without a gap.
    viewer.meter.timeline_shifted();
    viewer.meter.resume(viewer.at(paused_at + 7_000));
    for i in 40..80 {
        viewer.packet(sent_ms(i) + 7_000, video(i));
    }
    let interval = viewer.meter.finish(viewer.at(sent_ms(80) + 7_000));
    let counters = interval.counters;
    assert_eq!(before.counters.frames_decodable + counters.frames_decodable, 40);
    assert_eq!((counters.packets_lost, counters.frames_dropped, counters.key_frames), (0, 0, 0));
    assert_eq!((counters.freeze_count, counters.freeze_us), (0, 0));
    assert!(counters.active_us < 1_000_000, "{counters:?}");
    assert!(
        interval.relative_delay_us.iter().all(|us| *us < 50_000),
        "{:?}",
        interval.relative_delay_us
    );
    assert!(interval.jitter_us.is_none_or(|us| us < 50_000), "{:?}", interval.jitter_us);
    assert_eq!(interval.first_frame_awaited_since, None);
}

/// How the packets of a position go on from those of the one before, in sequence numbers and RTP
/// time; packet 75 is lost. What was counted until then, and how often the source's time jumped.
fn broken_at_50(sequence_by: u16, timestamp_by: u32, is_seek: bool) -> (TrackCounters, u32) {
    let mut viewer = Viewer::of(MediaKind::Video, false);
    (0..50).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    let asked_at = viewer.at(sent_ms(50));
    if is_seek {
        viewer.meter.source_changed(asked_at);
    } else {
        viewer.meter.timeline_shifted();
    }
    viewer.meter.resume(asked_at);
    viewer.meter.may_break(asked_at + Duration::from_millis(200));
    for i in (50..100).filter(|i| *i != 75) {
        let packet = video(i);
        // Two packets are still of the position before.
        let packet = if i < 52 {
            packet
        } else {
            let sequence = packet.sequence.wrapping_add(sequence_by);
            Packet { sequence, timestamp: packet.timestamp.wrapping_add(timestamp_by), ..packet }
        };
        viewer.packet(sent_ms(i), packet);
    }
    let ended_at = viewer.at(sent_ms(100));
    (viewer.meter.finish(ended_at).counters, viewer.meter.time_jumps())
}

#[test]
fn where_a_position_begins_a_break_is_no_fault_and_later_it_is() {
    let back = |by: u32| 0_u32.wrapping_sub(by);
    for is_seek in [true, false] {
        for (sequence_by, timestamp_by) in [
            (0, 0),
            (0, 5_400_000),
            (0, back(135_000)),
            (20, 0),
            (400, 5_400_000),
            (30_000, 7),
            (65_536 - 52, back(90_000)),
            (65_536 - 400, 0),
        ] {
            let sequence_by = sequence_by as u16;
            let (sum, jumps) = broken_at_50(sequence_by, timestamp_by, is_seek);
            let what = format!("{sequence_by} {timestamp_by} {is_seek}: {sum:?}");
            assert_eq!((sum.packets_original, sum.packets_lost), (99, 1), "{what}");
            assert_eq!((sum.packets_duplicate, sum.packets_reordered), (0, 0), "{what}");
            assert_eq!((sum.packets_late, jumps), (0, 0), "{what}");
        }
    }
}

#[test]
fn packets_that_a_path_swaps_where_a_position_begins_are_both_of_it() {
    let mut viewer = Viewer::of(MediaKind::Video, false);
    (0..50).for_each(|i| viewer.packet(sent_ms(i), video(i)));
    let asked_at = viewer.at(sent_ms(50));
    viewer.meter.source_changed(asked_at);
    viewer.meter.resume(asked_at);
    viewer.meter.may_break(asked_at + Duration::from_millis(200));
    // A picture of four packets, of which the first two are swapped, and the second comes twice.
    let facts = |starts_frame| PayloadFacts {
        starts_frame,
        key_frame: starts_frame,
        ..PayloadFacts::default()
    };
    for (at_ms, i) in [(0, 101), (1, 100), (2, 101), (3, 102), (4, 103)] {
        let (timestamp, marker) = (video(100).timestamp, i == 103);
        let packet = Packet { timestamp, marker, facts: facts(i == 100), ..video(i) };
        viewer.packet(sent_ms(50) + at_ms, packet);
    }
    let sum = viewer.meter.finish(viewer.at(sent_ms(60))).counters;
    let odd = (sum.packets_reordered, sum.packets_duplicate, sum.packets_lost);
    assert_eq!((sum.packets_original, odd), (50 + 4, (1, 1, 0)));
    assert_eq!((sum.frames_decodable, sum.frames_dropped), (25 + 1, 0));
}

#[test]
fn what_comes_late_where_a_position_begins_is_no_loss_taken_back() {
    // A seek: given up after 100 ms, and comes.
    let mut viewer = Viewer::of(MediaKind::Audio, false);
    viewer.meter.may_break(viewer.at(200));
    [(0, 0), (20, 2), (150, 1)].into_iter().for_each(|(at_ms, i)| viewer.packet(at_ms, audio(i)));
    let sum = viewer.meter.finish(viewer.at(400)).counters;
    assert_eq!((sum.packets_original, sum.packets_lost, sum.packets_late), (3, 0, 1));
    // A pause: what comes overtakes the answer to PLAY, with which another break may be.
    let mut viewer = Viewer::of(MediaKind::Audio, false);
    viewer.packet(0, audio(0));
    viewer.meter.may_break(viewer.at(220));
    [(20, 1), (40, 3)].into_iter().for_each(|(at_ms, i)| viewer.packet(at_ms, audio(i)));
    viewer.meter.may_break(viewer.at(250));
    viewer.packet(51, audio(2));
    let sum = viewer.meter.finish(viewer.at(400)).counters;
    assert_eq!((sum.packets_original, sum.packets_lost, sum.packets_reordered), (4, 0, 1));
}

#[test]
fn what_may_be_of_the_position_before_has_not_begun() {
    let mut viewer = Viewer::of(MediaKind::Audio, false);
    viewer.meter.may_break(viewer.at(200));
    for (at_ms, has_begun) in [(20, false), (180, false), (200, true)] {
        viewer.packet(at_ms, audio(at_ms as u32 / 20));
        assert_eq!(viewer.meter.has_begun(), has_begun, "{at_ms}");
    }
}
