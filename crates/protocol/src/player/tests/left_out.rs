//! What of a live stream is not to be had, and how a player goes on without it.

use super::live::{DATED, assert_in_order, fixture, lowest, segments, times_of, whole, with_keys};
use super::*;

#[test]
fn a_rendition_whose_playlist_is_not_to_be_had_is_left_for_the_one_before() {
    for (what, reply, requested) in [
        ("missing", Reply::of(404, &[]), 1),
        ("failing", Reply::of(503, &[]), 3),
        ("unreadable", whole(b"<html>".to_vec()), 1),
    ] {
        let answers: Answers = Box::new(move |path, _| {
            Some(if path == "/high.m3u8" { reply.clone() } else { DATED.answer(path) })
        });
        let mut fixture = fixture(PlayerConfig::default(), 1_000_000, answers);
        fixture.seconds(40);
        assert_eq!(fixture.ended, None, "{what}");
        let totals = fixture.totals();
        assert_eq!(
            (totals.stall_count, totals.skipped_us, totals.missed, totals.switches),
            (0, 0, 1, 2),
            "{what}"
        );
        assert_eq!(times_of(&fixture, "/high.m3u8").len(), requested, "{what}: not tried again");
        assert_in_order(&fixture);
        assert!(
            fixture
                .anomalies()
                .iter()
                .any(|text| text.starts_with("its rendition is left out: http")),
            "{what}: {:?}",
            fixture.anomalies()
        );
    }
}

#[test]
fn a_segment_that_always_breaks_off_is_repeated_six_times_and_left_out() {
    let answers: Answers = Box::new(|path, _| {
        let breaks_after = (path == "/low-26.ts").then_some(10_000);
        Some(Reply { breaks_after, ..DATED.answer(path) })
    });
    let mut fixture = fixture(lowest(), 1_000_000, answers);
    fixture.seconds(60);
    assert_eq!(fixture.ended, None);
    assert_eq!(
        segments(&fixture).iter().filter(|number| **number == 26).count(),
        7,
        "{:?}",
        fixture.requests
    );
    assert!(
        fixture
            .anomalies()
            .iter()
            .any(|text| text.starts_with("left out: http://10.0.0.1/low-26.ts"))
    );
    assert!(segments(&fixture).last().is_some_and(|last| *last > 30), "{:?}", fixture.requests);
}

#[test]
fn a_playlist_that_is_too_long_is_passed_over_between_others() {
    let answers: Answers = Box::new(|path, _| {
        let is_long = path == "/low.m3u8" && (8.0..11.0).contains(&clock().as_secs_f64());
        Some(if is_long { whole(vec![b'#'; 17 << 20]) } else { DATED.answer(path) })
    });
    let mut fixture = fixture(lowest(), 100_000_000, answers);
    fixture.seconds(40);
    assert_eq!(fixture.ended, None);
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.skipped_us),
        (0, 0),
        "{totals:?} {:?}",
        fixture.anomalies()
    );
    assert!((1..=2).contains(&totals.requests_failed), "{totals:?}");
}

#[test]
fn segments_are_relative_to_where_the_last_playlist_came_from() {
    let answers: Answers = Box::new(|path, _| {
        let edge = format!("http://10.0.0.1/edge{}/low.m3u8", clock().as_secs());
        if path == "/low.m3u8" {
            return Some(Reply::of(302, &[("location", edge)]));
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        Some(DATED.answer(&format!("/{name}")))
    });
    let mut fixture = fixture(lowest(), 1_000_000, answers);
    fixture.seconds(20);
    assert_eq!(fixture.totals().requests_failed, 0);
    let last = fixture.requests.iter().rfind(|request| request.contains(".ts")).unwrap();
    assert!(last.starts_with("/edge16/low-"), "the playlist of before the end: {last}");
}

#[test]
fn segments_whose_key_is_none_are_left_out() {
    for (what, key) in [("short", vec![7; 15]), ("a page", vec![b'<'; 3_000])] {
        let answers: Answers = Box::new(move |path, _| {
            let reply = DATED.answer(path);
            Some(match path {
                "/low.m3u8" => {
                    whole(with_keys(&String::from_utf8(reply.body).unwrap()).into_bytes())
                }
                "/key0" => whole(key.clone()),
                "/key1" => Reply::of(404, &[]),
                _ => reply,
            })
        });
        let mut fixture = fixture(lowest(), 1_000_000, answers);
        fixture.seconds(3);
        assert!(
            fixture.ended.is_none() && fixture.totals().missed >= 3,
            "{what}: {:?}",
            fixture.ended
        );
        assert!(segments(&fixture).is_empty(), "{what}: {:?}", fixture.requests);
        assert!(
            fixture.anomalies().iter().any(|text| text.contains("/key0: ")),
            "{what}: {:?}",
            fixture.anomalies()
        );
    }
}
