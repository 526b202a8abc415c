//! Rows of seconds.

use std::time::{Duration, Instant};

use throng_observation::run::SourceFps;
use throng_observation::{
    CaptureBasis, ChatCounters, Codec, LiveInterval, MediaKind, PlaybackCounters, SentCounters,
    TrackCounters, TrackId,
};

use super::*;

fn interval(received: u64, lost: i64, frames: u64, active_ms: u64) -> TrackInterval {
    TrackInterval {
        track: TrackId(0),
        kind: MediaKind::Video,
        ended_at: Instant::now(),
        counters: TrackCounters {
            packets_original: received,
            packets_lost: lost,
            frames_decodable: frames,
            active_us: active_ms * 1000,
            ..TrackCounters::default()
        },
        jitter_us: Some(1000),
        relative_delay_us: vec![10_000, 20_000],
        absolute_delay_us: vec![-5, 9_000, 9_000],
        capture_basis: Some(CaptureBasis::Mark),
        oven_rtc_tester_delay_us: None,
        source_fps: Some(30.0),
        frames_due_us: active_ms * 1000,
        first_frame_awaited_since: None,
        picture_lines: None,
        missing: None,
    }
}

#[test]
fn a_second_holds_the_sums_and_all_samples_of_its_tracks() {
    let mut seconds = Seconds::new(1);
    seconds.add(3, 0, CohortId(0), &interval(90, 10, 30, 1000));
    seconds.add(3, 1, CohortId(0), &interval(100, 0, 20, 1000));
    seconds.add(4, 1, CohortId(0), &interval(1, 0, 0, 1000));
    let closed = seconds.close(3, |_| 2);
    let [row] = closed.series.as_slice() else { panic!("{closed:?}") };
    assert_eq!(
        (row.tracks, row.tracks_below_source_fps, row.counters.packets_original),
        (2, 1, 190)
    );
    assert_eq!(
        (row.relative_delay_us.count(), row.loss_ppm.quantile(1.0).unwrap() / 1000),
        (4, 100)
    );
    assert_eq!(row.source_fps, SourceFps { tracks: 2, sum_milli: 60_000 });
    let one_way = &row.absolute_delay;
    assert_eq!((one_way.basis(), one_way.negative()), (Some(CaptureBasis::Mark), 2));
    assert!(one_way.quantile_us(0.2).is_none() && one_way.quantile_us(0.5).is_some());
}

#[test]
fn a_track_counts_once_in_a_second_however_many_intervals_lie_there() {
    let mut seconds = Seconds::new(1);
    for id in 0..10 {
        seconds.add(7, id, CohortId(0), &interval(60, 0, 18, 600));
        seconds.add(7, id, CohortId(0), &interval(30, 10, 9, 300));
    }
    let row = &seconds.close(7, |_| 10).series[0];
    assert_eq!(
        (row.tracks, row.tracks_below_source_fps, row.counters.packets_original),
        (10, 0, 900)
    );
    assert_eq!((row.fps_milli.count(), row.loss_ppm.count(), row.jitter_us.count()), (10, 10, 10));
    assert_eq!(row.fps_milli.quantile(0.5).unwrap() / 100, 300, "27 frames in 0.9 s are 30 fps");
    assert_eq!(row.loss_ppm.quantile(0.5).unwrap() / 1000, 100);
}

#[test]
fn the_size_of_a_picture_is_that_at_the_end_of_the_second_where_one_is_shown() {
    let mut seconds = Seconds::new(1);
    let shows =
        |lines, frames| TrackInterval { picture_lines: lines, ..interval(100, 0, frames, 1000) };
    seconds.add(0, 0, CohortId(0), &shows(Some(360), 15));
    seconds.add(0, 0, CohortId(0), &shows(Some(720), 15));
    seconds.add(0, 1, CohortId(0), &shows(Some(1080), 0));
    seconds.add(0, 2, CohortId(0), &shows(None, 30));
    let row = &seconds.close(0, |_| 3).series[0];
    assert_eq!((row.picture_lines.count(), row.fps_milli.count()), (1, 3));
    assert_eq!(row.picture_lines.lowest_at(0.5), Some(720));
}

#[test]
fn a_stretch_too_short_for_a_rate_is_summed_and_not_sampled() {
    let mut seconds = Seconds::new(1);
    seconds.add(0, 0, CohortId(0), &interval(10, 5, 1, 200));
    let row = &seconds.close(0, |_| 1).series[0];
    assert_eq!((row.tracks, row.counters.packets_lost, row.counters.frames_decodable), (1, 5, 1));
    assert!(row.fps_milli.is_empty() && row.loss_ppm.is_empty() && row.source_fps.mean().is_none());
    assert_eq!(row.tracks_below_source_fps, 0);
}

#[test]
fn the_wait_for_the_first_key_frame_is_no_bad_frame_rate() {
    let mut seconds = Seconds::new(1);
    let joins =
        |frames, frames_due_us| TrackInterval { frames_due_us, ..interval(100, 0, frames, 1000) };
    seconds.add(0, 0, CohortId(0), &joins(18, 600_000));
    seconds.add(0, 1, CohortId(0), &joins(0, 0));
    seconds.add(0, 2, CohortId(0), &joins(0, 1_000_000));
    let row = &seconds.close(0, |_| 3).series[0];
    assert_eq!((row.tracks, row.fps_milli.count(), row.tracks_below_source_fps), (3, 2, 1));
    assert_eq!(row.loss_ppm.count(), 3);
}

#[test]
fn a_muted_track_is_not_sent_and_one_whose_connection_is_blocked_is() {
    let mut seconds = Seconds::new(1);
    let interval = |packets_sent, blocked_us| SentInterval {
        track: TrackId(0),
        kind: MediaKind::Video,
        codec: Codec::H264,
        ended_at: Instant::now(),
        length: Duration::from_secs(1),
        counters: SentCounters { packets_sent, blocked_us, ..SentCounters::default() },
        round_trip_s: None,
        remote_loss_ratio: None,
        allowed_bps: 1e6,
        wanted_bps: 1e6,
        pause_us_max: 0,
    };
    seconds.add(3, 0, CohortId(0), &interval(90, 0));
    seconds.add(3, 1, CohortId(0), &interval(0, 0));
    seconds.add(3, 2, CohortId(0), &interval(0, 1_000_000));
    // The time is counted with the first track of a publisher; the sound is blocked as well.
    for (id, packets_sent) in [(0, 50), (1, 0), (2, 0)] {
        let kind = MediaKind::Audio;
        let sound = SentInterval { track: TrackId(1), kind, ..interval(packets_sent, 0) };
        seconds.add(3, id, CohortId(0), &sound);
    }
    // At the end of what was blocked.
    seconds.add(3, 2, CohortId(0), &interval(40, 0));
    let mut rows = seconds.close(3, |_| 3).sent;
    rows.sort_by_key(|row| row.counters.packets_sent);
    let rows = rows.iter().map(|row| (row.kind, row.tracks, row.counters.packets_sent));
    let expect = [(MediaKind::Audio, 2, 50), (MediaKind::Video, 2, 130)];
    assert_eq!(rows.collect::<Vec<_>>(), expect);
}

#[test]
fn a_player_counts_once_in_a_second_with_its_last_buffer() {
    let mut seconds = Seconds::new(2);
    let interval = |stall_us, buffer_us, delivery_ratio| PlaybackInterval {
        ended_at: Instant::now(),
        separate_sound_bytes: 0,
        counters: PlaybackCounters {
            active_us: 500_000,
            stall_us,
            media_bytes: 100,
            ..Default::default()
        },
        buffer_us,
        delivery_ratio,
        start_awaited_since: None,
        live: None,
    };
    seconds.add(3, 0, CohortId(1), &interval(200_000, 0, Some(0.5)));
    seconds.add(3, 0, CohortId(1), &interval(0, 4_000_000, None));
    seconds.add(3, 1, CohortId(1), &interval(0, 9_000_000, None));
    let closed = seconds.close(3, |_| 2);
    let [row] = closed.playback.as_slice() else { panic!("{closed:?}") };
    assert_eq!((row.second, row.cohort, row.players, row.stalled), (3, CohortId(1), 2, 1));
    assert_eq!((row.counters.stall_us, row.counters.active_us), (200_000, 1_500_000));
    let shortfall = row.shortfall_ppm.quantile(1.0).map(|ppm| ppm / 100_000);
    assert_eq!((row.buffer_us.count(), shortfall), (2, Some(5)));
    assert_eq!(row.buffer_us.quantile(0.0).map(|us| (us as f64 / 1e6).round()), Some(4.0));
    assert_eq!(closed.received_bytes(), 300);
    assert!(seconds.close(4, |_| 2).playback.is_empty());
}

#[test]
fn a_live_player_has_both_latencies_and_dates_that_are_ahead_are_counted() {
    let mut seconds = Seconds::new(1);
    for (id, dates_ahead_us) in [(0, Some(1_800_000)), (1, Some(-200_000)), (2, None)] {
        let live = LiveInterval {
            to_edge_us: 12_000_000,
            since_date_us: dates_ahead_us.map(|ahead_us| 12_000_000 - ahead_us),
            dates_ahead_us,
            capture_latency_us: None,
            over_target_us: 0,
            target_duration_us: 4_000_000,
        };
        let interval = PlaybackInterval {
            ended_at: Instant::now(),
            separate_sound_bytes: 0,
            counters: PlaybackCounters::default(),
            buffer_us: 9_000_000,
            delivery_ratio: None,
            start_awaited_since: None,
            live: Some(live),
        };
        seconds.add(0, id, CohortId(0), &interval);
    }
    let row = &seconds.close(0, |_| 3).playback[0];
    assert_eq!(
        (row.edge_latency_us.count(), row.latency_us.count(), row.dates_ahead),
        (3, 2, Some(1))
    );
}

#[test]
fn the_crowd_is_counted_up_and_late_news_is_not_lost() {
    let mut seconds = Seconds::new(2);
    seconds.crowd(0, CohortId(1)).started += 5;
    seconds.crowd(1, CohortId(1)).connected += 3;
    seconds.crowd(1, CohortId(1)).playing += 2;
    let crowd = seconds.close(0, |_| 7).crowd;
    assert_eq!(
        (crowd[1].intended, crowd[1].started, crowd[1].connected, crowd[0].started),
        (7, 5, 0, 0)
    );
    seconds.crowd(0, CohortId(1)).failed += 1; // late
    let crowd = seconds.close(1, |_| 7).crowd;
    assert_eq!(
        (crowd[1].started, crowd[1].connected, crowd[1].playing, crowd[1].failed),
        (5, 3, 2, 1)
    );
}

#[test]
fn a_participant_of_a_chat_counts_once_in_a_second_in_which_the_rest_of_another_ends_too() {
    let interval = |messages_sent| ChatInterval {
        ended_at: Instant::now(),
        counters: ChatCounters { messages_sent, ..ChatCounters::default() },
        delays_us: vec![7_000],
        occupants: 3,
        is_joined: true,
    };
    let mut seconds = Seconds::new(1);
    for (second, id) in [(2, 0), (2, 0), (2, 1), (3, 0)] {
        seconds.add(second, id, CohortId(0), &interval(5));
    }
    let of = |row: &ChatRow| (row.members, row.joined, row.counters.messages_sent);
    let closed = [2, 3].map(|second| seconds.close(second, |_| 2).chat);
    let counts = closed.iter().flatten().map(|row| (row.second, of(row)));
    assert_eq!(counts.collect::<Vec<_>>(), [(2, (2, 2, 15)), (3, (1, 1, 5))]);
    assert_eq!(closed.iter().flatten().map(|row| row.delay_us.count()).sum::<u64>(), 4);
}
