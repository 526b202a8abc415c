//! Playback as the rate of the server allows it.

use super::*;

#[test]
fn a_fast_server_fills_the_buffer_and_is_then_held_back_to_the_rate_of_the_media() {
    let movie = movie(60, true);
    let mut fixture = Fixture::of(buffering(10), 20 * movie.bytes_per_s, &movie);
    fixture.seconds(30);
    assert_eq!(fixture.requests, ["/movie.mp4 0"]);
    let started = fixture.reached(Phase::PlaybackStarted).unwrap();
    assert!(started <= Duration::from_millis(150), "a second of media comes in 50 ms: {started:?}");
    let phases =
        [Phase::Started, Phase::Connected, Phase::Playing, Phase::FirstPacket, Phase::Described];
    for pair in phases.windows(2) {
        assert!(fixture.reached(pair[0]).unwrap() <= fixture.reached(pair[1]).unwrap(), "{pair:?}");
    }
    assert!(fixture.reached(Phase::FirstFrame).unwrap() <= started);
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.stall_us, totals.requests, totals.requests_failed),
        (0, 0, 1, 0)
    );
    let received_s = totals.media_bytes as f64 / movie.bytes_per_s as f64;
    assert!(
        (39.0..41.2).contains(&received_s),
        "30 s were played and 10 s are ahead: {received_s}"
    );
    let buffer_s =
        fixture.intervals().into_iter().skip(3).map(|interval| interval.buffer_us as f64 / 1e6);
    buffer_s.for_each(|seconds| assert!((8.9..11.2).contains(&seconds), "{seconds}"));
    assert!(
        fixture.intervals().iter().skip(6).all(|interval| interval.delivery_ratio.is_none()),
        "its buffer is full"
    );
    let played = fixture.frames_played(0);
    assert!((745..=750).contains(&played), "{played}");
    let fps = fixture.track_intervals(0).last().unwrap().source_fps.unwrap();
    assert!((fps - 25.0).abs() < 0.01);
}

#[test]
fn a_server_below_the_rate_of_the_media_stalls_the_viewer_as_often_as_arithmetic_says() {
    let movie = movie(60, true);
    let mut fixture = Fixture::of(buffering(10), movie.bytes_per_s * 8 / 10, &movie);
    fixture.seconds(40);
    let totals = fixture.totals();
    // 1 s of media takes 1.25 s to come. It lasts for 5 s (0.2 s are lost each second); then 1.25 s
    // of stall, and so on.
    let started = fixture.reached(Phase::PlaybackStarted).unwrap().as_secs_f64();
    assert!((1.2..1.35).contains(&started), "{started}");
    // Media comes in pieces of 0.2 s, so that playback may run out a little earlier.
    assert!((6..=7).contains(&totals.stall_count), "(40 s − 1.25 s) ÷ 6.25 s: {totals:?}");
    let stalled_s = totals.stall_us as f64 / 1e6;
    assert!((7.0..8.2).contains(&stalled_s), "a fifth of 38.7 s: {stalled_s}");
    for interval in fixture.intervals().iter().skip(6) {
        let ratio = interval.delivery_ratio.unwrap();
        assert!((0.76..0.84).contains(&ratio), "{ratio}");
    }
    let spent = totals.startup_us + totals.stall_us + totals.played_us;
    assert_eq!(spent, totals.active_us);
    assert!((39_900_000..=40_000_000).contains(&spent), "every moment is accounted for: {spent}");
}

#[test]
fn every_frame_of_a_file_is_played_once_and_it_begins_again() {
    let movie = movie(8, true);
    let mut fixture = Fixture::of(buffering(5), 10 * movie.bytes_per_s, &movie);
    fixture.seconds(7);
    fixture.run(Duration::from_millis(1_500));
    fixture.seconds(8);
    assert_eq!(fixture.requests.len(), 3, "{:?}", fixture.requests);
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.seek_count), (0, 0));
    let loops = fixture.frames_played(0) as f64 / movie.video_frames as f64;
    assert!((1.95..2.07).contains(&loops), "{loops}");

    let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(5) };
    let mut fixture = Fixture::of(once, 10 * movie.bytes_per_s, &movie);
    fixture.seconds(20);
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    assert_eq!(
        (fixture.frames_played(0), fixture.frames_played(1)),
        (movie.video_frames, movie.audio_frames)
    );
    assert!((8.0..8.3).contains(&(fixture.now - fixture.start).as_secs_f64()));
    assert_eq!(fixture.totals().played_us, 8_000_000);
}

#[test]
fn a_download_that_only_stops_for_a_moment_is_hidden_by_the_buffer() {
    let movie = movie(60, true);
    let mut fixture = Fixture::of(buffering(10), 20 * movie.bytes_per_s, &movie);
    fixture.seconds(5);
    fixture.bytes_per_s = 0;
    fixture.seconds(8);
    assert_eq!(fixture.totals().stall_count, 0);
    fixture.seconds(5);
    assert_eq!(fixture.totals().stall_count, 1);
    let worst = fixture
        .intervals()
        .iter()
        .filter_map(|interval| interval.delivery_ratio)
        .fold(9.0, f32::min);
    assert_eq!(worst, 0.0);
    fixture.bytes_per_s = 20 * movie.bytes_per_s;
    fixture.seconds(3);
    assert!(fixture.viewer.session.as_ref().unwrap().playout.is_playing());
}

#[test]
fn seeks_and_pauses_of_the_user_are_no_stalls() {
    let movie = movie(120, true);
    let user = PlayerConfig {
        habits: UserHabits {
            seek_every: Some(Duration::from_secs(7)),
            pause_every: Some(Duration::from_secs(9)),
            pause_for: Duration::from_secs(2),
        },
        ..buffering(5)
    };
    let mut fixture = Fixture::of(user, 20 * movie.bytes_per_s, &movie);
    fixture.seconds(120);
    let totals = fixture.totals();
    assert!(totals.seek_count > 8 && totals.paused_us > 8_000_000, "{totals:?}");
    assert_eq!(totals.stall_count, 0);
    assert!(totals.startup_us < totals.seek_count * 400_000 + 400_000, "{totals:?}");
    let spent = totals.active_us + totals.paused_us;
    assert!((119_900_000..=120_000_000).contains(&spent), "{spent}");
    // Frames on the way from a key frame to the position are not shown.
    let frames = fixture.frames_played(0) as f64;
    let expected = totals.played_us as f64 / 40_000.0;
    assert!((frames / expected - 1.0).abs() < 0.02, "{frames} {expected}");
}

#[test]
fn viewers_begin_where_they_are_told() {
    let movie = movie(60, true);
    let mut fixture = Fixture::of(
        from(PlaybackPosition::At(Duration::from_secs(31))),
        20 * movie.bytes_per_s,
        &movie,
    );
    fixture.seconds(3);
    let position_us = fixture.viewer.session.as_ref().unwrap().playout.position_us();
    assert!((33_700_000..34_000_000).contains(&position_us), "{position_us}");
    assert_eq!(
        fixture.requests.len(),
        2,
        "one for the index, one from the position on: {:?}",
        fixture.requests
    );
    let asked: u64 = fixture.requests[1].split(' ').nth(1).unwrap().parse().unwrap();
    let at_30s = 30 * movie.bytes_per_s;
    assert!((at_30s..at_30s + 20_000).contains(&asked), "from the key frame at 30 s: {asked}");
    let (totals, received) = (fixture.totals(), 9.1 * movie.bytes_per_s as f64);
    assert!((totals.media_bytes as f64) < received, "{totals:?}");
    assert!((70..=78).contains(&fixture.frames_played(0)), "{}", fixture.frames_played(0));
}
