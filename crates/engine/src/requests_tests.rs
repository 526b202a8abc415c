use std::time::Duration;

use throng_observation::RequestOutcome::{NoResponse as No, Status};

use super::*;

fn open(url: &str) -> OpenRequest {
    let head = http::Request::get(url).body(()).unwrap().into_parts().0;
    OpenRequest::new(&head, Instant::now())
}

fn head(status: u16, length: Option<u64>) -> response::Parts {
    let mut response = http::Response::builder().status(status).version(Version::HTTP_2);
    if let Some(length) = length {
        response = response.header(CONTENT_LENGTH, length);
    }
    response.body(()).unwrap().into_parts().0
}

/// Path, outcome and version; requests, bytes, cut off, broken off.
type Row = (String, RequestOutcome, u8, [u64; 4]);

fn rows(table: &mut RequestTable) -> Vec<Row> {
    let clock = RunClock { start: Instant::now() };
    let row = |row: HttpRequestRow| {
        let HttpRequestCounters { requests, body_bytes, cut_off, broken_off } = row.counters;
        let place = row.key.host + &row.key.path;
        (place, row.key.outcome, row.key.version, [requests, body_bytes, cut_off, broken_off])
    };
    let mut rows: Vec<_> = table.take_changed(clock).into_iter().map(row).collect();
    rows.sort();
    rows
}

#[test]
fn a_path_with_a_secret_counts_by_what_is_kept_of_it() {
    let mut head = http::Request::get("http://a/S3CRET/x?y").body(()).unwrap().into_parts().0;
    head.extensions.insert(KeptPath("/…/x".to_owned()));
    let (mut table, now) = (RequestTable::default(), Instant::now());
    OpenRequest::new(&head, now).end(now, RequestEnd::Cancelled, &mut table);
    let paths: Vec<String> = rows(&mut table).into_iter().map(|row| row.0).collect();
    assert_eq!(paths, ["a/…/x"]);
}

#[test]
fn a_path_that_a_playlist_has_signed_counts_without_its_signature() {
    let (mut table, now) = (RequestTable::default(), Instant::now());
    for path in ["/hmac=S3CRET/a.ts", "/hdntl=exp=1~acl=/*~hmac=S3CRET/a.ts", "/b=1.ts"] {
        open(&format!("http://a{path}")).end(now, RequestEnd::Cancelled, &mut table);
    }
    let paths: Vec<String> = rows(&mut table).into_iter().map(|row| row.0).collect();
    assert_eq!(paths, ["a/b=1.ts", "a/hdntl=exp=1~acl=/*~hmac=…/a.ts", "a/hmac=…/a.ts"]);
}

#[test]
fn a_request_counts_by_what_became_of_it() {
    let cut = || Err(ChannelError::Truncated { received: 1, expected: 9 });
    let silent = || Err(ChannelError::Timeout(Duration::from_secs(10)));
    type End = Option<Result<(), ChannelError>>;
    type Case = (&'static str, Option<response::Parts>, u64, End, RequestOutcome, u8, [u64; 4]);
    let cases: [Case; 9] = [
        ("received whole", Some(head(200, Some(9))), 9, Some(Ok(())), Status(200), 2, [1, 9, 0, 0]),
        (
            "of unknown length, whole",
            Some(head(200, None)),
            9,
            Some(Ok(())),
            Status(200),
            2,
            [1, 9, 0, 0],
        ),
        ("left in the middle", Some(head(206, Some(9))), 4, None, Status(206), 2, [1, 4, 1, 0]),
        (
            "left after the last byte",
            Some(head(200, Some(9))),
            9,
            None,
            Status(200),
            2,
            [1, 9, 0, 0],
        ),
        ("left, of unknown length", Some(head(200, None)), 9, None, Status(200), 2, [1, 9, 1, 0]),
        ("without a body", Some(head(304, None)), 0, None, Status(304), 2, [1, 0, 0, 0]),
        ("broken", Some(head(200, Some(9))), 1, Some(cut()), Status(200), 2, [1, 1, 0, 1]),
        ("no answer", None, 0, Some(silent()), No(NoResponse::Timeout), 0, [1, 0, 0, 0]),
        ("left before the answer", None, 0, None, No(NoResponse::Cancelled), 0, [1, 0, 1, 0]),
    ];
    for (name, head, bytes, end, outcome, version, counters) in cases {
        let (mut table, mut request) =
            (RequestTable::default(), open("http://me:pw@a.example:81/x?token=1"));
        if let Some(head) = head {
            request.answered(&head);
        }
        request.received(bytes);
        let end = end.as_ref().map_or(RequestEnd::Cancelled, RequestEnd::Finished);
        request.end(Instant::now(), end, &mut table);
        assert_eq!(
            rows(&mut table),
            [("a.example:81/x".into(), outcome, version, counters)],
            "{name}"
        );
    }
}

fn request(table: &mut RequestTable, url: &str, status: u16) {
    let mut request = open(url);
    request.answered(&head(status, Some(0)));
    request.end(Instant::now(), RequestEnd::Finished(&Ok(())), table);
}

#[test]
fn tables_of_threads_add_up_and_only_changed_rows_are_written_again() {
    let mut all = RequestTable::default();
    for _ in 0..2 {
        let mut of_thread = RequestTable::default();
        request(&mut of_thread, "http://a/x?_HLS_msn=1", 200);
        request(&mut of_thread, "http://a/x?_HLS_msn=2", 200);
        request(&mut of_thread, "http://b/x", 200);
        request(&mut of_thread, "http://a/x", 404);
        all.merge(of_thread);
    }
    let row =
        |place: &str, status, requests| (place.into(), Status(status), 2, [requests, 0, 0, 0]);
    assert_eq!(rows(&mut all), [row("a/x", 200, 4), row("a/x", 404, 2), row("b/x", 200, 2)]);
    assert_eq!(rows(&mut all), []);
    request(&mut all, "http://b/x", 200);
    assert_eq!(rows(&mut all), [row("b/x", 200, 3)]);
}

#[test]
fn paths_that_are_shown_alike_count_together() {
    let (mut all, mut of_thread) = (RequestTable::default(), RequestTable::default());
    for path in ["first/x", "second/x", "second/x", "y"] {
        request(&mut of_thread, &format!("http://a/{path}"), 200);
    }
    all.merge_shown(of_thread, |path| path.replace("first", "…").replace("second", "…"));
    let row = |place: &str, requests| (place.into(), Status(200), 2, [requests, 0, 0, 0]);
    assert_eq!(rows(&mut all), [row("a/y", 1), row("a/…/x", 3)]);
}

#[test]
fn beyond_the_limit_of_keys_the_sums_by_status_still_hold() {
    let mut table = RequestTable { keys_max: 2, ..RequestTable::default() };
    for number in 0..50 {
        request(
            &mut table,
            &format!("http://a/{number}"),
            if number % 10 == 9 { 404 } else { 200 },
        );
    }
    request(&mut table, "http://a/0", 200);
    let row =
        |place: &str, status, requests| (place.into(), Status(status), 2, [requests, 0, 0, 0]);
    let expect =
        [row("(others)", 200, 43), row("(others)", 404, 5), row("a/0", 200, 2), row("a/1", 200, 1)];
    assert_eq!(rows(&mut table), expect);
}
