//! Servers that refuse, break off, lie or mislead.

use std::collections::BTreeMap;

use super::live::{DATED, fixture as live, lowest};
use super::movie::{boxed, words};
use super::segmented::serve;
use super::*;

fn always(status: u16, headers: &[(&'static str, String)]) -> Answers {
    let headers = headers.to_vec();
    Box::new(move |_, _| Some(Reply::of(status, &headers)))
}

#[test]
fn refusals_end_the_viewer_with_the_status_of_the_server() {
    for (status, expect) in [
        (404, "http_404: http://10.0.0.1/movie.mp4: HTTP status 404 Not Found"),
        (503, "http_503: http://10.0.0.1/movie.mp4: HTTP status 503 Service Unavailable"),
        // Not "unauthorized": a server may answer so beyond its number of users.
        (403, "http_403: http://10.0.0.1/movie.mp4: HTTP status 403 Forbidden"),
        (401, "unauthorized: http://10.0.0.1/movie.mp4: HTTP status 401 Unauthorized"),
        (304, "http_304: http://10.0.0.1/movie.mp4: HTTP status 304 Not Modified"),
    ] {
        let mut fixture = Fixture::new(buffering(5), 1_000_000, always(status, &[]));
        fixture.seconds(2);
        assert_eq!(fixture.failure(), expect);
        assert_eq!(fixture.totals().requests_failed, 1);
    }
    let mut fixture = Fixture::new(buffering(5), 1_000_000, Box::new(|_, _| None));
    fixture.seconds(2);
    assert_eq!(fixture.failure(), "tcp: http://10.0.0.1/movie.mp4: TCP: 10.0.0.1:80: refused");
}

#[test]
fn redirects_are_followed_but_not_for_ever_and_not_everywhere() {
    let movie = movie(20, true);
    let body = movie.bytes.clone();
    let answers: Answers = Box::new(move |path, range| {
        Some(match path {
            "/movie.mp4" => Reply::of(302, &[("location", "/other.mp4".into())]),
            _ => Reply::range(&body, range),
        })
    });
    let mut fixture = Fixture::new(buffering(5), 10 * movie.bytes_per_s, answers);
    fixture.seconds(3);
    assert_eq!(fixture.requests, ["/movie.mp4 0", "/other.mp4 0"]);
    assert!(fixture.frames_played(0) > 60);

    let to = |url: &str| always(302, &[("location", url.to_owned())]);
    for (url, expect) in [
        ("/movie.mp4", "protocol: http://10.0.0.1/movie.mp4: more than 20 redirects"),
        ("http://192.168.0.9/x", "not_allowed: 192.168.0.9:80 is not an allowed target"),
        ("ftp://10.0.0.1/x", "protocol: ftp://10.0.0.1/x is not an HTTP URL"),
        ("http://", "http_302: http://10.0.0.1/movie.mp4: HTTP status 302 Found"),
    ] {
        let mut fixture = Fixture::new(buffering(5), 1_000_000, to(url));
        fixture.seconds(2);
        assert_eq!(fixture.failure(), expect);
    }
}

#[test]
fn ranges_that_are_not_those_that_were_asked_for_are_refused() {
    for (header, expect) in [
        (Some("bytes 5-99/100"), "Content-Range begins at 5, Range at 0"),
        (Some("bytes x"), "206 with the Content-Range `bytes x`"),
        (None, "206 with the Content-Range `(none)`"),
    ] {
        let headers: Vec<_> =
            header.map(|text| ("content-range", text.to_owned())).into_iter().collect();
        let mut fixture = Fixture::new(buffering(5), 1_000_000, always(206, &headers));
        fixture.seconds(2);
        assert!(fixture.failure().ends_with(expect), "{}", fixture.failure());
    }
}

#[test]
fn a_server_that_fails_in_the_middle_is_asked_again_later_and_later() {
    let movie = movie(20, true);
    let (body, mut requests) = (movie.bytes.clone(), 0);
    let answers: Answers = Box::new(move |_, range| {
        requests += 1;
        Some(match requests {
            1 => Reply { breaks_after: Some(300_000), ..Reply::range(&body, range) },
            _ => Reply::of(502, &[]),
        })
    });
    let mut fixture = Fixture::new(buffering(10), 10 * movie.bytes_per_s, answers);
    fixture.seconds(60);
    assert!(fixture.failure().starts_with("http_502"), "{}", fixture.failure());
    let totals = fixture.totals();
    assert_eq!((totals.requests, totals.requests_failed), (7, 7), "after 1, 2, 4, 8, 8 and 8 s");
    assert_eq!(totals.stall_count, 1);
    let ended_s = (fixture.now - fixture.start).as_secs_f64();
    assert!((31.0..31.5).contains(&ended_s), "{ended_s}");
}

#[test]
fn a_server_that_falls_silent_is_left_after_twenty_seconds() {
    let movie = movie(60, true);
    let mut fixture = Fixture::of(buffering(5), 10 * movie.bytes_per_s, &movie);
    fixture.seconds(5);
    fixture.bytes_per_s = 0;
    fixture.seconds(28);
    assert_eq!(fixture.requests.len(), 2, "{:?}", fixture.requests);
    assert_eq!((fixture.totals().requests_failed, fixture.totals().stall_count), (1, 1));
}

#[test]
fn what_is_no_media_is_a_failure_that_says_so() {
    let page = b"<!DOCTYPE html><title>Not here</title>".repeat(50);
    let answers: Answers = Box::new(move |_, range| Some(Reply::range(&page, range)));
    let mut fixture = Fixture::new(buffering(5), 1_000_000, answers);
    fixture.seconds(3);
    let failure = fixture.failure();
    assert!(failure.starts_with("protocol: http://10.0.0.1/movie.mp4: "), "{failure}");
}

#[test]
fn media_of_a_format_that_is_not_read_is_no_fault_of_the_server() {
    for (begin, name) in [
        (&[0, 0, 1, 0xba, 0x44][..], "MPEG program stream"),
        (b"FLV\x01\x05", "FLV"),
        (b"OggS\0", "Ogg"),
    ] {
        let file = [begin, &[0x55; 4_000]].concat();
        let answers: Answers = Box::new(move |_, range| Some(Reply::range(&file, range)));
        let mut fixture = Fixture::new(buffering(5), 1_000_000, answers);
        fixture.seconds(3);
        let failure = fixture.failure();
        assert!(failure.starts_with("unsupported: ") && failure.contains(name), "{failure}");
    }
}

#[test]
fn what_its_specification_allows_is_no_fault_of_the_server() {
    let mut mvhd = words(&[0, 0, 0, 1_000, 10_000]);
    mvhd.resize(100, 0);
    let moov = [boxed(b"mvhd", &mvhd), boxed(b"cmov", &[0; 500])].concat();
    let compressed = [boxed(b"ftyp", b"qt  \0\0\x02\0qt  qt  "), boxed(b"moov", &moov)].concat();
    let remote = r#"<MPD><Period xlink:href="period.xml"/></MPD>"#;
    let declared = "<!DOCTYPE MPD><MPD><Period/></MPD>";
    for (path, body, expect) in [
        ("/movie.mp4", compressed, "is compressed, which is not read"),
        ("/a.mpd", remote.into(), "is remote (xlink:href), which is not loaded"),
        ("/a.mpd", declared.into(), "has a document type definition, which is not read"),
    ] {
        let url = format!("http://10.0.0.1{path}");
        let files = BTreeMap::from([(path.to_owned(), body)]);
        let mut fixture = Fixture::at(&url, buffering(5), 1_000_000, serve(files));
        fixture.seconds(3);
        let failure = fixture.failure();
        let begin = format!("unsupported: {url}: ");
        assert!(failure.starts_with(&begin) && failure.contains(expect), "{failure}");
    }
}

#[test]
fn scrambled_streams_are_no_fault_of_the_server() {
    let answers: Answers = Box::new(|path, _| {
        let mut reply = DATED.answer(path);
        if path.ends_with(".ts") {
            // Packets of the pictures; the tables are in the clear.
            let packets = reply.body.chunks_mut(188).filter(|packet| packet[2] == 0);
            packets.filter(|packet| packet[1] & 0x1f == 1).for_each(|packet| packet[3] |= 0x80);
        }
        Some(reply)
    });
    let mut fixture = live(lowest(), 1_000_000, answers);
    fixture.seconds(30);
    let failure = fixture.failure();
    assert!(failure.starts_with("unsupported: ") && failure.contains("scrambled"), "{failure}");
}

#[test]
fn a_user_who_has_waited_long_enough_gives_up() {
    let movie = movie(60, true);
    let impatient = PlayerConfig { patience: Some(Duration::from_secs(3)), ..buffering(5) };
    let mut fixture = Fixture::of(impatient.clone(), movie.bytes_per_s / 10, &movie);
    fixture.seconds(20);
    assert_eq!(fixture.failure(), "no_media: gave up after waiting 3.0 s for playback to begin");
    let mut fixture = Fixture::of(impatient, 10 * movie.bytes_per_s, &movie);
    fixture.seconds(4);
    fixture.bytes_per_s = 0;
    fixture.seconds(20);
    assert_eq!(fixture.failure(), "no_media: gave up after waiting 3.0 s for playback to go on");
}

#[test]
fn who_leaves_before_anything_came_was_not_served() {
    let mut fixture = Fixture::new(buffering(5), 0, always(206, &[]));
    fixture.viewer.handle(fixture.now, Input::Leave { others_follow: false });
    fixture.drain();
    assert!(fixture.failure().starts_with("not_started"), "{}", fixture.failure());
    let movie = movie(10, true);
    let mut fixture = Fixture::of(buffering(5), 10 * movie.bytes_per_s, &movie);
    fixture.seconds(2);
    fixture.viewer.handle(fixture.now, Input::Leave { others_follow: false });
    fixture.drain();
    assert_eq!(fixture.ended, Some(Outcome::Completed));
}
