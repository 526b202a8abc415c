//! Files with their index at the end, and servers that answer ranges in their own way.

use super::segmented::pictures;
use super::*;

#[test]
fn an_index_at_the_end_is_fetched_first() {
    let movie = movie(20, false);
    let mut fixture = Fixture::of(buffering(5), 10 * movie.bytes_per_s, &movie);
    fixture.seconds(10);
    let [head, index, media] = fixture.requests.as_slice() else {
        panic!("{:?}", fixture.requests)
    };
    assert_eq!(head, "/movie.mp4 0");
    let offset = |request: &str| request.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
    assert!(offset(index) > 20 * movie.bytes_per_s && offset(media) < 100, "{index}, {media}");
    assert_eq!(
        fixture.cancelled.len(),
        1,
        "the first request is given up, the second was received whole"
    );
    assert_eq!(fixture.totals().stall_count, 0);
    assert!((230..=250).contains(&fixture.frames_played(0)), "{}", fixture.frames_played(0));
}

#[test]
fn a_server_without_ranges_is_read_from_the_beginning_and_named() {
    let movie = movie(20, true);
    let body = movie.bytes.clone();
    let answers: Answers = Box::new(move |_, _| {
        let length = ("content-length", body.len().to_string());
        Some(Reply { body: body.clone(), ..Reply::of(200, &[length]) })
    });
    let position = from(PlaybackPosition::At(Duration::from_secs(10)));
    let mut fixture = Fixture::new(position, 10 * movie.bytes_per_s, answers);
    fixture.seconds(8);
    assert_eq!(fixture.anomalies().len(), 1, "{:?}", fixture.anomalies());
    assert!(fixture.anomalies()[0].contains("200 instead of 206"), "{:?}", fixture.anomalies());
    let position_us = fixture.viewer.session.as_ref().unwrap().playout.position_us();
    // What comes before the position takes a second to come.
    assert!((16_500_000..17_500_000).contains(&position_us), "{position_us}");
}

#[test]
fn an_index_at_the_end_of_a_server_without_ranges_comes_in_its_turn() {
    let movie = movie(20, false);
    let body = movie.bytes.clone();
    let answers: Answers = Box::new(move |_, _| {
        let length = ("content-length", body.len().to_string());
        Some(Reply { body: body.clone(), ..Reply::of(200, &[length]) })
    });
    let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(5) };
    let mut fixture = Fixture::new(once, 10 * movie.bytes_per_s, answers);
    fixture.seconds(25);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    assert_eq!(fixture.requests, ["/movie.mp4 0"]);
    assert_eq!(fixture.frames_played(0), movie.video_frames);
    let started = fixture.reached(Phase::PlaybackStarted).unwrap();
    assert!((2.0..2.2).contains(&started.as_secs_f64()), "after all of it: {started:?}");
}

#[test]
fn a_broken_connection_is_taken_up_where_it_broke() {
    let movie = movie(20, true);
    let (body, mut requests) = (movie.bytes.clone(), 0);
    let answers: Answers = Box::new(move |_, range| {
        requests += 1;
        let breaks_after = (requests == 1).then_some(500_000);
        Some(Reply { breaks_after, ..Reply::range(&body, range) })
    });
    let mut fixture = Fixture::new(buffering(10), 10 * movie.bytes_per_s, answers);
    fixture.seconds(25);
    assert_eq!(fixture.requests[..2], ["/movie.mp4 0", "/movie.mp4 500000"]);
    let totals = fixture.totals();
    assert_eq!(
        (totals.requests_failed, totals.stall_count),
        (1, 0),
        "a second later, out of a buffer of four"
    );
    let loops = fixture.frames_played(0) as f64 / movie.video_frames as f64;
    assert!((1.2..1.25).contains(&loops), "none was lost, none came twice: {loops}");
}

#[test]
fn a_transport_stream_that_is_cut_off_ends_as_one_that_is_not_and_is_played_again() {
    // Tables, a hundred pictures of ten packets, and the beginning of the next one.
    let mut body = pictures(0..250, 1_800);
    body.truncate((2 + 100 * 10 + 3) * 188 + 100);
    let fixture = |at_end: AtEnd| {
        let body = body.clone();
        let answers: Answers = Box::new(move |_, range| Some(Reply::range(&body, range)));
        let player = PlayerConfig { at_end, ..buffering(5) };
        Fixture::at("http://10.0.0.1/x.ts", player, 500_000, answers)
    };
    let mut once = fixture(AtEnd::Leave);
    once.seconds(6);
    assert_eq!(once.ended, Some(Outcome::Completed), "{:?}", once.anomalies());
    assert!((100..=101).contains(&once.frames_played(0)), "{}", once.frames_played(0));
    assert!(once.anomalies().iter().all(|text| text.contains("is cut off")));

    let mut again = fixture(AtEnd::Repeat);
    again.seconds(12);
    let totals = again.totals();
    assert!(again.ended.is_none() && totals.played_us > 11_000_000, "{totals:?}");
    assert!(again.anomalies().iter().all(|text| text.contains("is cut off")));
}
