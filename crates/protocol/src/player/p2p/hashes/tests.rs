//! The list of hashes through the cache of a browser.

use std::sync::Arc;

use http::StatusCode;
use throng_scenario::HttpVersionPolicy;

use super::*;
use crate::participant::{Opening, Output};
use crate::player::download::client::HttpClient;
use crate::player::lane::keys::Keys;
use crate::player::playback::meter::Meter;
use crate::player::playback::timeline::Timeline;

/// A list, and the server that the test is.
struct Fixture {
    hashes: Hashes,
    client: HttpClient,
    timeline: Timeline,
    meter: Meter,
    keys: Keys,
    now: Instant,
    /// The latest request, with its conditions.
    asked: Option<(FetchId, Vec<(String, String)>)>,
    requests: u32,
}

impl Fixture {
    fn new() -> Self {
        let (now, url) =
            (Instant::now(), Url::parse("http://10.0.0.1/hls/segments-sha256.json").unwrap());
        let policy = HttpVersionPolicy::default();
        Self {
            client: HttpClient::new(
                policy,
                (None, &url),
                Arc::new(|_, _| true),
                Duration::from_secs(10),
            ),
            hashes: Hashes::new(url, HashLists::default()),
            timeline: Timeline::default(),
            meter: Meter::new(now, now),
            keys: Keys::default(),
            now,
            asked: None,
            requests: 0,
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Hashes, Instant, &mut Context<'_>) -> T) -> T {
        let mut context = Context {
            client: &mut self.client,
            timeline: &mut self.timeline,
            meter: &mut self.meter,
            keys: &mut self.keys,
            tracker: None,
            position_us: None,
        };
        let result = act(&mut self.hashes, self.now, &mut context);
        while let Some(output) = self.client.life.pop() {
            if let Output::Download(fetch, request, _) = output {
                let conditions = request
                    .head
                    .headers
                    .iter()
                    .filter(|(name, _)| name.as_str().starts_with("if-"));
                let text = |(name, value): (&HeaderName, &HeaderValue)| {
                    (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
                };
                self.asked = Some((fetch, conditions.map(text).collect()));
                self.requests += 1;
            }
        }
        result
    }

    /// Wants the hash of a segment, and lets time pass.
    fn want(&mut self, segment: &str, ms: u64) {
        self.hashes.want(self.now, &file(segment));
        self.pass(ms);
    }

    fn pass(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.with(Hashes::pump);
    }

    fn conditions(&self) -> &[(String, String)] {
        &self.asked.as_ref().unwrap().1
    }

    fn answer(&mut self, status: StatusCode, headers: &[(&str, &str)], body: &str) {
        let (fetch, _) = self.asked.take().unwrap();
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let (head, ()) = response.body(()).unwrap().into_parts();
        let opening = Box::new(Opening::default());
        self.event(fetch, DownloadEvent::Head { head: Box::new(head), opening });
        if !body.is_empty() {
            self.event(fetch, DownloadEvent::Body(body.as_bytes()));
        }
        self.event(fetch, DownloadEvent::Finished(Ok(())));
    }

    fn event(&mut self, fetch: FetchId, event: DownloadEvent<'_>) {
        // Of what has failed nothing further is told.
        if !self.hashes.owns(fetch) {
            return;
        }
        self.with(|hashes, now, context| hashes.handle(now, context, event));
    }

    fn names(&self, segment: &str) -> bool {
        self.hashes.names(&file(segment))
    }
}

/// A segment that is all of a file.
fn file(name: &str) -> Resource {
    Resource { url: Url::parse(&format!("http://10.0.0.1/hls/{name}")).unwrap(), range: None }
}

/// As nginx sends a file, without a lifetime, that was written when it was asked for.
const OF_FILE: [(&str, &str); 3] = [
    ("etag", "W/\"1\""),
    ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("date", "Sun, 06 Nov 1994 08:49:38 GMT"),
];

#[test]
fn the_list_is_asked_for_again_with_both_validators_and_stays_when_nothing_has_changed() {
    let mut fixture = Fixture::new();
    fixture.want("a.ts", 0);
    assert!(fixture.conditions().is_empty());
    fixture.answer(StatusCode::OK, &OF_FILE, r#"{"a.ts":"1"}"#);
    assert!(fixture.names("a.ts"));
    fixture.want("b.ts", 500);
    let of_file = |tag: &str| {
        [("if-none-match", tag), ("if-modified-since", OF_FILE[1].1)]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
    };
    assert_eq!(fixture.conditions(), of_file("W/\"1\""));
    fixture.answer(StatusCode::NOT_MODIFIED, &[("etag", "W/\"2\"")], "");
    assert!(fixture.names("a.ts") && !fixture.names("b.ts"));
    fixture.pass(500);
    assert_eq!(fixture.conditions(), of_file("W/\"2\""), "the answer has replaced it");
    fixture.answer(StatusCode::OK, &OF_FILE, r#"{"b.ts":"1"}"#);
    assert!(!fixture.names("a.ts") && fixture.names("b.ts"));
    assert_eq!(fixture.requests, 3);
}

#[test]
fn what_is_fresh_is_not_asked_for_and_still_counts_as_a_try() {
    let mut fixture = Fixture::new();
    fixture.want("a.ts", 0);
    fixture.answer(StatusCode::OK, &[("cache-control", "max-age=2"), ("etag", "\"1\"")], "{}");
    for _ in 0..4 {
        fixture.pass(450);
        fixture.pass(50);
    }
    assert_eq!(fixture.requests, 2, "after two seconds");
    assert_eq!(fixture.conditions(), [("if-none-match".to_owned(), "\"1\"".to_owned())]);
    let segment = file("a.ts");
    fixture.answer(StatusCode::NOT_MODIFIED, &[], "");
    for _ in 0..20 {
        fixture.pass(500);
        if fixture.asked.is_some() {
            fixture.answer(StatusCode::NOT_MODIFIED, &[], "");
        }
    }
    assert!(fixture.hashes.has_given_up(&segment) && fixture.requests < 8, "{}", fixture.requests);
}

#[test]
fn without_validators_or_a_place_in_the_cache_it_is_asked_for_as_the_first_time() {
    for headers in [&[][..], &[("cache-control", "no-store"), ("etag", "\"1\"")][..]] {
        let mut fixture = Fixture::new();
        fixture.want("a.ts", 0);
        fixture.answer(StatusCode::OK, headers, "{}");
        fixture.pass(500);
        assert!(fixture.conditions().is_empty(), "{headers:?}");
        // It was not asked whether it has changed.
        fixture.answer(StatusCode::NOT_MODIFIED, &[], "");
        fixture.pass(500);
        assert!(fixture.requests == 3 && fixture.conditions().is_empty());
    }
}

#[test]
fn a_list_that_has_the_file_and_not_the_range_is_not_asked_for_again() {
    let mut fixture = Fixture::new();
    let range = |first, last| Resource { range: Some((first, last)), ..file("film.mp4") };
    fixture.hashes.want(fixture.now, &range(0, 99));
    fixture.pass(0);
    fixture.answer(StatusCode::OK, &OF_FILE, r#"{"film.mp4":{"0-99":"1"}}"#);
    assert!(fixture.hashes.names(&range(0, 99)) && !fixture.hashes.names(&range(100, 199)));
    assert!(!fixture.hashes.has_given_up(&range(0, 99)));
    fixture.hashes.want(fixture.now, &range(100, 199));
    fixture.pass(600);
    assert!(fixture.hashes.has_given_up(&range(100, 199)), "as PeerTube's page does");
    assert_eq!(fixture.requests, 1);
}
