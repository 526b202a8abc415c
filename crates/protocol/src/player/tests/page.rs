//! The page around the player.

use throng_scenario::har::{After, LeftOut, PagePlan, PageRequest, PlayerStart, WhenWarm};
use throng_scenario::{Secret, TokenSource};

use super::*;
use crate::player::PageVisit;

const MS: Duration = Duration::from_millis(1);

/// `/`, `/a.js` 50 ms after it, `/b.png` 100 ms after that, and the player 200 ms after that.
fn plan() -> PagePlan {
    let request =
        |path: &str, after: Option<usize>, delay_ms: u32, followers: &[usize]| PageRequest {
            url: Url::parse(&format!("http://10.0.0.1{path}")).unwrap(),
            is_head: false,
            headers: vec![("accept".into(), "x".into()), ("x-key".into(), "recorded".into())],
            status: 200,
            is_document: path == "/",
            begins: After { request: after, delay: MS * delay_ms },
            followers: followers.to_vec(),
            when_warm: WhenWarm::Requested,
        };
    PagePlan {
        requests: vec![
            request("/", None, 0, &[1]),
            request("/a.js", Some(0), 50, &[2]),
            request("/b.png", Some(1), 100, &[]),
        ],
        player: PlayerStart::At(After { request: Some(2), delay: MS * 200 }),
        left_out: LeftOut::default(),
    }
}

fn page_of(bytes: usize) -> Reply {
    Reply {
        headers: vec![("content-length", bytes.to_string())],
        body: vec![b'x'; bytes],
        ..Reply::of(200, &[])
    }
}

/// A viewer of the page on a server that has the film, and of the page what `answers` says, else
/// 1,000 bytes.
fn visit(
    plan: PagePlan,
    is_warm: bool,
    player: PlayerConfig,
    mut answers: impl FnMut(&str) -> Option<Reply> + 'static,
) -> Fixture {
    let film = movie(20, true);
    let answers = move |path: &str, range| match path {
        "/movie.mp4" => Some(Reply::range(&film.bytes, range)),
        path => answers(path),
    };
    let page = Some(PageVisit { plan: Arc::new(plan), is_warm });
    Fixture::visiting("http://10.0.0.1/movie.mp4", page, player, 10_000_000, Box::new(answers))
}

fn pages(_: &str) -> Option<Reply> {
    Some(page_of(1_000))
}

/// Path and moment of each request, milliseconds.
fn requested(fixture: &Fixture) -> Vec<(&str, u128)> {
    let paths = fixture.requests.iter().map(|request| request.split(' ').next().unwrap());
    paths.zip(fixture.requested_at.iter().map(std::time::Duration::as_millis)).collect()
}

#[test]
fn a_slow_document_delays_what_waited_for_it_and_the_player() {
    for late_ms in [0, 500] {
        let mut fixture = visit(plan(), false, buffering(5), move |path| {
            let not_before = if path == "/" { MS * late_ms } else { Duration::ZERO };
            Some(Reply { not_before, ..page_of(1_000) })
        });
        fixture.seconds(3);
        // The server answers in the step after the request.
        let late_ms = u128::from(late_ms.max(10));
        let expect = [
            ("/", 0),
            ("/a.js", late_ms + 50),
            ("/b.png", late_ms + 160),
            ("/movie.mp4", late_ms + 370),
        ];
        let found = requested(&fixture);
        for ((path, at), (expected, expected_at)) in found.iter().zip(expect) {
            assert!(
                *path == expected && at.abs_diff(expected_at) <= 20,
                "{found:?} is not {expect:?}"
            );
        }
        let loaded = fixture.reached(Phase::PageLoaded).unwrap();
        assert_eq!(loaded.as_millis(), found[3].1);
        // Startup counts from the join.
        let counters = fixture.totals();
        let started = fixture.reached(Phase::PlaybackStarted).unwrap();
        assert!(
            started > loaded && counters.startup_us.abs_diff(started.as_micros() as u64) <= 20_000
        );
        assert_eq!(
            (counters.page_requests, counters.page_requests_failed, counters.page_bytes),
            (3, 0, 3_000)
        );
        assert_eq!(counters.requests, fixture.requests.len() as u64);
        assert!(
            counters.wanted_us < 3_000_000 - late_ms as u64 * 1_000,
            "media is wanted once there is a player"
        );
    }
}

#[test]
fn a_warm_cache_answers_at_once_or_asks_with_its_validators() {
    let mut plan = plan();
    plan.requests[1].when_warm = WhenWarm::FromCache;
    plan.requests[2].when_warm =
        WhenWarm::Revalidated(vec![("if-none-match".into(), "\"1\"".into())]);
    let answers = |path: &str| {
        let status = if path == "/b.png" { 304 } else { 200 };
        Some(Reply { status, body: vec![], headers: vec![], ..page_of(0) })
    };
    let mut fixture = visit(plan.clone(), true, buffering(5), answers);
    fixture.seconds(2);
    let found = requested(&fixture);
    assert!(
        matches!(found[..3], [("/", 0), ("/b.png", 160..=180), ("/movie.mp4", 350..=400)]),
        "{found:?}"
    );
    assert_eq!(fixture.heads[1].headers["if-none-match"], "\"1\"");
    let counters = fixture.totals();
    assert_eq!((counters.page_requests, counters.requests_failed), (2, 0));
    // A cold cache has nothing to ask about, and 304 is no answer to it.
    let mut fixture = visit(plan, false, buffering(5), answers);
    fixture.seconds(2);
    assert!(fixture.heads.iter().all(|head| !head.headers.contains_key("if-none-match")));
    let counters = fixture.totals();
    assert_eq!((counters.page_requests, counters.page_requests_failed), (3, 1));
}

#[test]
fn assets_that_fail_are_counted_and_a_document_that_fails_ends_the_viewer() {
    let broken = |at: &'static str, reply: fn() -> Option<Reply>| {
        let mut fixture =
            visit(
                plan(),
                false,
                buffering(5),
                move |path| if path == at { reply() } else { pages(path) },
            );
        fixture.seconds(3);
        fixture
    };
    type Case = (fn() -> Option<Reply>, &'static str);
    let cases: [Case; 3] = [
        (|| None, "tcp: page: http://10.0.0.1/: "),
        (
            || Some(Reply::of(503, &[])),
            "http_503: page: http://10.0.0.1/: HTTP status 503 Service Unavailable",
        ),
        (
            || Some(Reply { breaks_after: Some(10), ..page_of(100) }),
            "page: http://10.0.0.1/: the body ended",
        ),
    ];
    for (reply, expect) in cases {
        let fixture = broken("/a.js", reply);
        assert!(
            fixture.ended.is_none() && fixture.reached(Phase::PlaybackStarted).is_some(),
            "{expect}"
        );
        let counters = fixture.totals();
        assert_eq!((counters.page_requests_failed, counters.requests_failed), (1, 1), "{expect}");
        assert_eq!(counters.page_requests, 3, "what followed it is requested all the same");
        let fixture = broken("/", reply);
        assert!(fixture.failure().contains(expect), "{} is not {expect}", fixture.failure());
        assert_eq!((fixture.requests.len(), fixture.totals().page_requests_failed), (1, 1));
        assert_eq!(fixture.reached(Phase::PageLoaded), None);
    }
    // As in the recording.
    let mut plan = plan();
    plan.requests[1].status = 404;
    let not_found =
        |path: &str| if path == "/a.js" { Some(Reply::of(404, &[])) } else { pages(path) };
    let mut fixture = visit(plan, false, buffering(5), not_found);
    fixture.seconds(1);
    assert_eq!(fixture.totals().requests_failed, 0);
}

#[test]
fn a_redirect_is_followed_unless_the_recording_has_its_target_as_a_request() {
    let moved = |path: &str| match path {
        "/a.js" => Some(Reply::of(302, &[("location", "/c.js".into())])),
        "/b.png" => Some(Reply::of(302, &[("location", "http://192.0.2.9/c".into())])),
        path => pages(path),
    };
    let mut fixture = visit(plan(), false, buffering(5), moved);
    fixture.seconds(2);
    let paths: Vec<_> = requested(&fixture).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths[..4], ["/", "/a.js", "/c.js", "/b.png"]);
    assert!(!paths.contains(&"/c"), "a host that may not be reached");
    let counters = fixture.totals();
    assert_eq!((counters.page_requests, counters.page_requests_failed), (4, 1));
    let mut recorded = plan();
    recorded.requests[1].status = 301;
    let mut fixture = visit(recorded, false, buffering(5), moved);
    fixture.seconds(2);
    assert!(!fixture.requests.iter().any(|request| request.starts_with("/c.js")));
}

#[test]
fn without_media_in_the_recording_the_player_waits_for_what_was_loaded_then_even_if_it_hangs() {
    let mut plan = plan();
    plan.player = PlayerStart::Loaded(vec![0, 1]);
    let mut fixture = visit(plan.clone(), false, buffering(5), pages);
    fixture.seconds(1);
    let found = requested(&fixture);
    assert_eq!(
        (found[1].0, found[2].0, found[3].0),
        ("/a.js", "/movie.mp4", "/b.png"),
        "{found:?}"
    );
    // A body that never comes is given up after as long as one of media.
    let hangs = |path: &str| match path {
        "/a.js" => Some(Reply { body: vec![0; 900_000_000], ..page_of(0) }),
        path => pages(path),
    };
    let mut fixture = visit(plan, false, buffering(5), hangs);
    fixture.bytes_per_s = 0;
    fixture.seconds(1);
    assert_eq!(fixture.requests.len(), 1);
    fixture.run(MS * 100);
    fixture.bytes_per_s = 100_000;
    fixture.seconds(2);
    fixture.bytes_per_s = 0;
    fixture.seconds(30);
    assert!(
        fixture.reached(Phase::PageLoaded).unwrap() >= Duration::from_secs(20),
        "{:?}",
        requested(&fixture)
    );
    assert_eq!((fixture.cancelled.len(), fixture.totals().page_requests_failed), (1, 1));
}

#[test]
fn headers_are_those_of_the_recording_the_client_and_the_scenario() {
    let headers = vec![("X-Key".to_owned(), TokenSource::Inline(Secret::new("hunter2")))];
    let mut plan = plan();
    plan.requests[1].is_head = true;
    plan.requests[2].url = Url::parse("http://10.0.0.2/b.png").unwrap();
    let mut fixture = visit(plan, false, PlayerConfig { headers, ..buffering(5) }, pages);
    fixture.seconds(1);
    let [page, script, picture] = &fixture.heads[..3] else { panic!() };
    assert_eq!((&page.method, &script.method), (&http::Method::GET, &http::Method::HEAD));
    assert!(page.headers["accept"] == "x" && page.headers["accept-encoding"] == "gzip, deflate");
    let keys = |head: &http::request::Parts| {
        head.headers
            .get_all("x-key")
            .iter()
            .map(|key| key.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (keys(page), keys(picture)),
        (vec!["hunter2".to_owned()], vec!["recorded".to_owned()])
    );
}

#[test]
fn impatient_users_leave_a_page_that_does_not_come_and_the_viewer_does_not_spin() {
    let never = |_: &str| Some(Reply { not_before: Duration::from_secs(99), ..page_of(1) });
    let habits =
        UserHabits { pause_every: Some(Duration::from_secs(1)), ..PlayerConfig::default().habits };
    let player = PlayerConfig { patience: Some(Duration::from_secs(5)), habits, ..buffering(5) };
    let mut fixture = visit(plan(), false, player, never);
    fixture.seconds(6);
    assert!(fixture.failure().contains("gave up after waiting 5.0 s"), "{}", fixture.failure());
    assert!(fixture.wakes <= 10, "{} wakes", fixture.wakes);
}
