use throng_observation::RequestOutcome::{NoResponse as No, Status};
use throng_observation::{HttpRequestKey, NoResponse, RequestOutcome, RunTime};

use super::*;

/// The run began at this second since 1970.
const START_S: i64 = 1_795_632_000;

fn info() -> RunInfo {
    RunInfo {
        started_at_unix_us: START_S * 1_000_000,
        target: "http://a/x.m3u8".into(),
        ..RunInfo::default()
    }
}

/// Requests to `host` from second 10 to 40 of the run.
fn row(
    host: &str,
    path: &str,
    outcome: RequestOutcome,
    [requests, cut_off]: [u64; 2],
) -> HttpRequestRow {
    let (host, path, method) = (host.to_owned(), path.to_owned(), "GET".to_owned());
    HttpRequestRow {
        key: HttpRequestKey { host, path, method, outcome, version: 1 },
        counters: HttpRequestCounters {
            requests,
            body_bytes: 10 * requests,
            cut_off,
            broken_off: 0,
        },
        first_at: RunTime(10_500_000),
        last_at: RunTime(40_500_000),
    }
}

/// A run: a playlist that is often loaded, segments, one cut off, one given up.
fn rows() -> Vec<HttpRequestRow> {
    vec![
        row("a", "/x.m3u8", Status(200), [20, 0]),
        row("a", "/1.ts", Status(200), [10, 1]),
        row("a", "/1.ts", No(NoResponse::Cancelled), [1, 1]),
        row("a", "/2.ts", Status(404), [3, 3]),
        row("b", "/1.ts", Status(200), [4, 0]),
    ]
}

/// A log of such lines: how many, path, status, second of the run, user agent.
type Lines<'a> = &'a [(u64, &'a str, u16, f64, Option<&'a str>)];

const US: Option<&str> = Some("throng/0.1.0");

fn log(selection: LogSelection, lines: Lines<'_>) -> LogRequests {
    let mut log = LogRequests::new(selection);
    for (count, path, status, second, user_agent) in lines {
        let at_unix_s = Some(START_S as f64 + second);
        for _ in 0..*count {
            let (method, path, user_agent) = ("GET", *path, *user_agent);
            let kind = if path.ends_with(".ts") { "segments" } else { "playlists" };
            log.add(Some(LogLine {
                method,
                path,
                status: *status,
                bytes: 100,
                kind,
                at_unix_s,
                user_agent,
            }));
        }
    }
    log
}

fn beside(host: Option<&str>, prefix: &str, lines: Lines<'_>) -> LogComparison {
    let selection = LogSelection::of_run(&info(), &rows(), host, prefix, "throng/").unwrap();
    LogComparison::of(&rows(), host, &log(selection, lines))
}

/// Missing, surplus, given up and in the log, cut off and in the log.
fn misfits(beside: &LogComparison) -> [u64; 4] {
    [beside.missing, beside.surplus, beside.given_up_in_log, beside.cut_off_in_log]
}

const SAME: Lines<'static> =
    &[(20, "/x.m3u8", 200, 10.0, US), (14, "/1.ts", 200, 20.0, US), (3, "/2.ts", 404, 41.0, US)];

#[test]
fn a_log_with_the_same_requests_is_equal_whatever_else_it_has() {
    let others: Lines<'_> = &[
        (7, "/x.m3u8", 200, 20.0, Some("Mozilla/5.0")),
        (2, "/x.m3u8", 200, 8.9, US),
        (2, "/x.m3u8", 200, 42.0, US),
        (5, "/1.ts", 200, 20.0, None),
    ];
    let beside = beside(None, "", &[SAME, others].concat());
    assert_eq!((beside.answer, misfits(&beside)), (LogAnswer::Equal, [0; 4]), "{beside:?}");
    assert_eq!((beside.ours, beside.theirs, beside.lines), (37, 37, 53));
    assert_eq!((beside.lines_of_others, beside.lines_at_other_times), (12, 4));
    let statuses: Vec<_> =
        beside.uris.iter().map(|uri| (&*uri.path, &*uri.status, uri.ours, uri.theirs)).collect();
    let expect = [
        ("/x.m3u8", "200", 20, Some(20)),
        ("/1.ts", "200", 14, Some(14)),
        ("/2.ts", "404", 3, Some(3)),
        ("/1.ts", "cancelled", 1, None),
    ];
    assert_eq!(statuses, expect);
}

/// What is hidden of the run's paths is whole in a log, and hidden beside them.
#[test]
fn a_log_is_read_without_the_secrets_of_which_the_run_has_kept_nothing() {
    let of = |path: &str, requests| row("a", path, Status(200), [requests, 0]);
    let rows = [
        of("/…/events", 2),
        of("/rooms/a-…", 1),
        of("/public/events", 1),
        of("/hmac=…/1.ts", 2),
        of("/token=S3CRET/1.ts", 1),
    ];
    let beside = |prefix: &str, lines: Lines<'_>| {
        let selection = LogSelection::of_run(&info(), &rows, None, prefix, "throng/").unwrap();
        LogComparison::of(&rows, None, &log(selection, lines))
    };
    let same: Lines<'_> = &[
        (1, "/S3CRET-1/events", 200, 20.0, US),
        (1, "/S3CRET-2/events", 200, 20.0, US),
        (1, "/rooms/a-S3CRET", 200, 20.0, US),
        (1, "/public/events", 200, 20.0, US),
        (2, "/hmac=S3CRET/1.ts", 200, 20.0, US),
        (1, "/token=S3CRET/1.ts", 200, 20.0, US),
    ];
    let equal = beside("", same);
    assert_eq!((equal.answer, equal.theirs), (LogAnswer::Equal, 7), "{equal:?}");
    assert!(!format!("{equal:?}").contains("S3CRET"), "{equal:?}");
    let of_prefix = beside("/hmac=S3CRET/", same);
    assert_eq!((of_prefix.answer, of_prefix.theirs), (LogAnswer::Equal, 2), "{of_prefix:?}");
    let other: Lines<'_> = &[(1, "/other/a/events", 200, 20.0, US), (1, "/events", 200, 20.0, US)];
    let differs = beside("", &[same, other].concat());
    assert_eq!(misfits(&differs), [0, 2, 0, 0], "{differs:?}");
    let told = RequestReport::of(&info(), &rows).to_json();
    assert!(!told.contains("S3CRET") && told.contains("/token=…/1.ts"), "{told}");
}

#[test]
fn requests_that_players_ended_make_no_difference_of_the_server() {
    let with = |more: (u64, &'static str, u16, f64, Option<&'static str>), segments: u64| {
        let lines: Lines<'_> = &[SAME[0], (segments, "/1.ts", 200, 20.0, US), SAME[2], more];
        beside(None, "", lines)
    };
    // The log has the one that was given up as answered, or not; or the one that was cut off
    // as 499.
    let answered = with((1, "/1.ts", 200, 30.0, US), 14);
    assert_eq!((answered.answer, misfits(&answered)), (LogAnswer::EqualButForCutOff, [0, 0, 1, 0]));
    let cut_off = with((1, "/1.ts", 499, 30.0, US), 13);
    assert_eq!((cut_off.answer, misfits(&cut_off)), (LogAnswer::EqualButForCutOff, [0, 0, 0, 1]));
    // Two more are one more than was given up; a segment that nobody cut off is no 499.
    let more = with((2, "/1.ts", 200, 30.0, US), 14);
    assert_eq!((more.answer, misfits(&more)), (LogAnswer::Differs, [0, 1, 1, 0]));
    let other_uri = with((1, "/x.m3u8", 499, 30.0, US), 14);
    assert_eq!((other_uri.answer, misfits(&other_uri)), (LogAnswer::Differs, [0, 1, 0, 0]));
}

#[test]
fn host_and_prefix_select_requests_and_lines() {
    let lines: Lines<'_> = &[(4, "/1.ts", 200, 20.0, US)];
    let of_host = beside(Some("b"), "", lines);
    assert_eq!((of_host.answer, of_host.ours), (LogAnswer::Equal, 4));
    let of_prefix = beside(None, "/1", &[SAME, &[(9, "/other", 200, 20.0, US)]].concat());
    assert_eq!(
        (of_prefix.answer, of_prefix.ours, of_prefix.lines_elsewhere),
        (LogAnswer::Equal, 14, 32)
    );
    assert!(LogSelection::of_run(&info(), &rows(), Some("c"), "", "").is_none());
}

#[test]
fn a_difference_is_explained_only_by_what_the_data_shows() {
    let late: Lines<'_> = &[(20, "/x.m3u8", 200, 25.0, US), (14, "/1.ts", 200, 39.9, US), SAME[2]];
    let early: Lines<'_> = &[(20, "/x.m3u8", 200, 10.0, US), (10, "/1.ts", 200, 30.0, US)];
    let fewer: Lines<'_> = &[SAME[0], (11, "/1.ts", 200, 20.0, US), SAME[2]];
    let unnamed: Lines<'_> = &[(25, "/x.m3u8", 200, 10.0, None), (14, "/1.ts", 200, 20.0, None)];
    let foreign: Lines<'_> = &[(30, "/x.m3u8", 200, 10.0, Some("curl/8"))];
    let other_time: Lines<'_> = &[(30, "/x.m3u8", 200, 4_000.0, US)];
    for (name, lines, answer, words) in [
        ("begins late", &late[1..], LogAnswer::Differs, "it begins 29 s after the first request"),
        ("ends early", early, LogAnswer::Differs, "it ends 10 s before the last request"),
        ("covers all, lacks some", fewer, LogAnswer::Differs, "a cache, a CDN"),
        ("without user agents", unnamed, LogAnswer::Differs, "cannot be told apart; --prefix"),
        ("more", &[SAME, &[SAME[0]]].concat(), LogAnswer::Differs, "another run at the same time"),
        ("of others", foreign, LogAnswer::NothingToCompare, "--user-agent"),
        (
            "of another time",
            other_time,
            LogAnswer::NothingToCompare,
            "no line is of the time of the run",
        ),
        ("empty", &[], LogAnswer::NothingToCompare, "the log is empty"),
    ] {
        let beside = beside(None, "", lines);
        assert_eq!(beside.answer, answer, "{name}");
        assert!(
            beside.remarks[0].contains(words) || beside.remarks[1].contains(words),
            "{name}: {:?}",
            beside.remarks
        );
    }
    // What is equal has no explanation but that of the request without a response.
    let equal = beside(None, "", SAME);
    assert!(
        equal.remarks.len() == 1 && equal.remarks[0].contains("gave them up"),
        "{:?}",
        equal.remarks
    );
}

#[test]
fn lines_that_cannot_be_read_are_counted_and_explain_what_is_missing() {
    let selection = LogSelection::of_run(&info(), &rows(), None, "", "throng/").unwrap();
    let mut log = log(selection, &[SAME[0], (11, "/1.ts", 200, 20.0, US), SAME[2]]);
    (0..3).for_each(|_| log.add(None));
    let beside = LogComparison::of(&rows(), None, &log);
    assert_eq!((beside.answer, beside.missing, beside.lines_unread), (LogAnswer::Differs, 3, 3));
    assert!(
        beside.remarks[0].contains("3 lines are in an unsupported format"),
        "{:?}",
        beside.remarks
    );
}

#[test]
fn a_log_of_endless_uris_takes_bounded_memory_and_says_so() {
    let selection = LogSelection::of_run(&info(), &rows(), None, "", "throng/").unwrap();
    let mut log = LogRequests::new(selection);
    for number in 0..200_003 {
        let path = format!("/{number}");
        let at_unix_s = Some(START_S as f64 + 20.0);
        log.add(Some(LogLine {
            method: "GET",
            path: &path,
            status: 200,
            bytes: 1,
            kind: "all",
            at_unix_s,
            user_agent: US,
        }));
    }
    assert_eq!((log.of_run().len(), log.not_listed), (200_000, 3));
    let remarks = LogComparison::of(&rows(), None, &log).remarks;
    assert!(
        remarks.iter().any(|remark| remark.contains("more URIs than are counted one by one")),
        "{remarks:?}"
    );
}

#[test]
fn the_text_shows_requests_and_what_differs() {
    let mut report = RequestReport::of(&info(), &rows());
    let text = text::summary(&report, 2);
    assert!(
        text.starts_with(
            "requests  38: 200 ×34, 404 ×3, no response (cancelled) ×1; 380 B of bodies\n"
        ),
        "{text}"
    );
    assert!(text.contains("20        200     1     200 B  0        GET a/x.m3u8\n"), "{text}");
    assert!(text.ends_with("and 3 more: --top, --json, --csv\n"), "{text}");
    report.access_log = Some(beside(None, "", &[SAME[0], (11, "/1.ts", 200, 20.0, US), SAME[2]]));
    let text = text::summary(&report, 20);
    assert!(
        text.contains(
            "DIFFERS   37 answered requests, 34 in the log; 1 of 3 URIs and statuses differ"
        ),
        "{text}"
    );
    assert!(text.contains("14   11   −3          200     GET /1.ts\n"), "{text}");
    assert!(text.contains("18:40:09 to 18:40:41 UTC"), "{text}");
    let csv = crate::csv::requests_beside_log(report.access_log.as_ref().unwrap());
    assert!(
        csv.contains("GET,/1.ts,200,14,11,1\r\n") && csv.contains("GET,/1.ts,cancelled,1,,1\r\n"),
        "{csv}"
    );
    assert!(crate::csv::requests(&report).contains("a,/2.ts,GET,404,1,3,30,3,0,10.5,40.5\r\n"));
    assert_eq!(text::summary(&RequestReport::default(), 20), "no player has made a request\n");
}

#[test]
fn rows_beyond_the_limit_are_counted_and_not_listed() {
    let mut rows = rows();
    rows.push(row("", HttpRequestKey::OTHERS, Status(200), [5, 0]));
    let report = RequestReport::of(&info(), &rows);
    assert_eq!((report.counters.requests, report.not_listed, report.uris.len()), (43, 5, 5));
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!((&json["requests"], &json["uris"][0]["body_bytes"]), (&43.into(), &200.into()));
}

#[test]
fn a_log_has_bytes_by_kind_of_uri_and_answers_5xx_by_minute_whoever_asked() {
    let others: Lines<'_> = &[
        (7, "/x.m3u8", 502, 19.0, Some("Mozilla/5.0")),
        (2, "/x.m3u8", 504, 19.5, US),
        (3, "/x.m3u8", 502, 20.0, None),
        (9, "/x.m3u8", 502, 200.0, US),
    ];
    let accounts = beside(None, "", &[SAME, others].concat()).accounts;
    assert_eq!((accounts.answers, accounts.bytes), (49, 4_900));
    let kinds: Vec<_> =
        accounts.kinds.iter().map(|kind| (&*kind.uris, kind.answers, kind.errors)).collect();
    assert_eq!(kinds, [("playlists", 32, 12), ("segments", 17, 0)]);
    let minute = START_S.div_euclid(60) * 60;
    let errors: Vec<_> =
        accounts.errors_by_minute.iter().map(|e| (e.minute_unix_s, e.status, e.answers)).collect();
    assert_eq!(errors, [(minute, 502, 10), (minute, 504, 2)]);
    let text = text::accounts(&accounts);
    assert!(text.contains("65.3 %") && text.contains("answers 5xx a minute"), "{text}");
}
