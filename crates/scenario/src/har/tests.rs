use std::time::Duration;

use serde_json::{Value, json};
use throng_observation::Url;

use super::*;
use crate::recorded_page::OriginRule;

/// A page with two assets and a playlist, the second asset after the first.
fn har() -> Value {
    json!({ "log": { "version": "1.2",
        "pages": [{ "id": "page_1", "startedDateTime": "2026-11-25T10:00:00.000Z",
            "pageTimings": { "onContentLoad": 150, "onLoad": 400.5 } }],
        "entries": [
            entry("https://tube.example/watch?v=1", 0, 100.0, "text/html; charset=utf-8"),
            entry("https://tube.example/app.js", 120, 80.0, "text/javascript"),
            entry("https://cdn.example/logo.png", 130, 300.0, "image/png"),
            entry("https://tube.example/poster.jpg", 210, 40.0, "image/jpeg"),
            entry("https://media.example/live.m3u8", 260, 20.0, "application/vnd.apple.mpegurl"),
            entry("https://tube.example/late.css", 900, 10.0, "text/css"),
        ] } })
}

fn entry(url: &str, at_ms: u32, time_ms: f64, mime_type: &str) -> Value {
    json!({ "pageref": "page_1", "startedDateTime": format!("2026-11-25T10:00:00.{at_ms:03}Z"), "time": time_ms,
        "request": { "method": "GET", "url": url, "headers": [
            { "name": ":authority", "value": "tube.example" }, { "name": "Cookie", "value": "a=b" },
            { "name": "Accept", "value": "text/html" }, { "name": "Referer", "value": "https://tube.example/watch?v=1" },
            { "name": "User-Agent", "value": "Mozilla" }, { "name": "X-Bad", "value": "a\nb" },
            { "name": "Range", "value": "bytes=0-" } ] },
        "response": { "status": 200, "headers": [{ "name": "cache-control", "value": "max-age=60" }],
            "content": { "mimeType": mime_type, "text": "…" } } })
}

fn plan_of(har: &Value, target: &str, rules: &[(&str, &str)]) -> Result<PagePlan, String> {
    let rules: Vec<OriginRule> = rules
        .iter()
        .map(|(recorded, requested)| OriginRule {
            recorded: (*recorded).into(),
            requested: (*requested).into(),
        })
        .collect();
    let origins = PageOrigins::new(&Url::parse(target).unwrap(), &rules);
    PagePlan::read(har.to_string().as_bytes(), &origins, Duration::ZERO)
        .map_err(|error| error.to_string())
}

fn urls(plan: &PagePlan) -> Vec<&str> {
    plan.requests.iter().map(|request| request.url.in_clear().as_str()).collect()
}

const TARGET: &str = "http://127.0.0.1:8080/live/master.m3u8";

#[test]
fn a_page_goes_to_the_target_and_others_nowhere_unless_they_are_named() {
    let plan = plan_of(&har(), TARGET, &[]).unwrap();
    let own = [
        "http://127.0.0.1:8080/watch?v=1",
        "http://127.0.0.1:8080/app.js",
        "http://127.0.0.1:8080/poster.jpg",
        "http://127.0.0.1:8080/late.css",
    ];
    assert_eq!(urls(&plan), own);
    assert_eq!(
        plan.left_out,
        LeftOut {
            origins: [("https://cdn.example".into(), 1)].into(),
            media: 1,
            ..LeftOut::default()
        }
    );
    let named = [
        ("https://cdn.example", "http://127.0.0.1:9"),
        ("https://tube.example", "http://127.0.0.1"),
    ];
    let plan = plan_of(&har(), TARGET, &named).unwrap();
    assert_eq!(urls(&plan)[0], "http://127.0.0.1/watch?v=1");
    assert_eq!(urls(&plan)[2], "http://127.0.0.1:9/logo.png");
    // What the page has at the target itself stays there.
    let plan = plan_of(
        &har(),
        "https://cdn.example/live.m3u8",
        &[("https://tube.example", "http://10.0.0.1")],
    );
    assert_eq!(urls(&plan.unwrap())[2], "https://cdn.example/logo.png");
}

#[test]
fn requests_follow_what_ended_before_them_and_the_player_follows_the_first_media() {
    let ms = Duration::from_millis;
    let plan = plan_of(&har(), TARGET, &[]).unwrap();
    let begins: Vec<_> = plan.requests.iter().map(|r| (r.begins.request, r.begins.delay)).collect();
    assert_eq!(begins, [(None, ms(0)), (Some(0), ms(20)), (Some(1), ms(10)), (Some(2), ms(650))]);
    assert_eq!(plan.requests[1].followers, [2]);
    assert_eq!(plan.player, PlayerStart::At(After { request: Some(2), delay: ms(10) }));
    let documents: Vec<bool> = plan.requests.iter().map(|r| r.is_document).collect();
    assert_eq!(documents, [true, false, false, false]);
    // Without media when the page was loaded, without that time when all of it is.
    let mut without = har();
    without["log"]["entries"].as_array_mut().unwrap().remove(4);
    let plan = plan_of(&without, TARGET, &[]).unwrap();
    assert_eq!(plan.player, PlayerStart::Loaded(vec![0, 1, 2]));
    without["log"]["pages"][0]["pageTimings"] = json!({ "onLoad": -1 });
    assert_eq!(
        plan_of(&without, TARGET, &[]).unwrap().player,
        PlayerStart::Loaded(vec![0, 1, 2, 3])
    );
}

#[test]
fn headers_of_the_recording_are_sent_but_for_those_of_the_client() {
    let plan = plan_of(&har(), TARGET, &[]).unwrap();
    let sent = [
        ("accept", "text/html"),
        ("referer", "http://127.0.0.1:8080/watch?v=1"),
        ("range", "bytes=0-"),
    ];
    assert_eq!(
        plan.requests[1].headers,
        sent.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(plan.warm_counts(), (4, 0));
}

#[test]
fn what_is_not_a_plain_request_of_the_page_is_left_out_and_counted() {
    let mut har = har();
    let entries = har["log"]["entries"].as_array_mut().unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut entry = entry("https://tube.example/x", 300, 1.0, "text/plain");
        change(&mut entry);
        entry
    };
    entries.extend([
        changed(&|e| e["request"]["method"] = json!("POST")),
        changed(&|e| e["request"]["url"] = json!("data:image/png;base64,AAAA")),
        changed(&|e| e["request"]["url"] = json!("blob:https://tube.example/1-2")),
        changed(&|e| e["request"]["url"] = json!("wss://tube.example/chat")),
        changed(&|e| e["_resourceType"] = json!("websocket")),
        changed(&|e| e["response"]["status"] = json!(0)),
        changed(&|e| e["pageref"] = json!("page_2")),
        changed(&|e| e["request"]["url"] = json!("https://tube.example/app.js")),
        changed(&|e| {
            (e["request"]["method"], e["response"]["status"]) = (json!("HEAD"), json!(204));
        }),
    ]);
    entries[13]["_fromCache"] = json!("memory");
    let plan = plan_of(&har, TARGET, &[]).unwrap();
    let expect = LeftOut {
        origins: [("https://cdn.example".into(), 1)].into(),
        media: 1,
        methods: 1,
        websockets: 2,
        not_http: 2,
        unanswered: 1,
        cached: 1,
        other_pages: 1,
    };
    assert_eq!(plan.left_out, expect);
    let head = plan.requests.iter().find(|request| request.is_head).unwrap();
    assert_eq!((head.status, &head.when_warm), (204, &WhenWarm::Requested));
}

#[test]
fn a_redirect_to_the_page_is_part_of_it() {
    let mut har = har();
    let mut moved = entry("https://tube.example/w", 0, 0.0, "");
    (moved["response"]["status"], moved["_resourceType"]) = (json!(301), json!("document"));
    har["log"]["entries"].as_array_mut().unwrap().insert(0, moved);
    let plan = plan_of(&har, TARGET, &[]).unwrap();
    let documents = plan.requests.iter().filter(|request| request.is_document);
    let documents: Vec<_> =
        documents.map(|request| (request.status, request.url.in_clear().path())).collect();
    assert_eq!(documents, [(301, "/w"), (200, "/watch")]);
    assert_eq!(plan.requests[0].when_warm, WhenWarm::FromCache);
}

#[test]
fn errors_name_the_entry_and_its_field() {
    let damaged = |change: &dyn Fn(&mut Value)| {
        let mut har = har();
        change(&mut har);
        plan_of(&har, TARGET, &[]).unwrap_err()
    };
    let entry = |change: &dyn Fn(&mut Value)| damaged(&|har| change(&mut har["log"]["entries"][1]));
    for (error, expect) in [
        (entry(&|e| e["request"]["url"] = Value::Null), "entry 2: `request.url` is missing"),
        (
            entry(&|e| e["request"]["url"] = json!("app.js")),
            "entry 2: `request.url` is `app.js`, not a URL",
        ),
        (
            entry(&|e| e["startedDateTime"] = json!("today")),
            "entry 2: `startedDateTime` is `today`, not a date",
        ),
        (entry(&|e| e["time"] = json!("1")), "entry 2: `time` is `1`, not a number"),
        (entry(&|e| e["response"] = json!({})), "entry 2: `response.status` is missing"),
        (
            entry(&|e| e["response"]["status"] = json!(1000)),
            "`response.status` is not an HTTP status",
        ),
        (
            entry(&|e| e["request"] = json!(5)),
            "item 2: invalid type: integer `5`, expected an object as `request`",
        ),
        (entry(&|e| e["startedDateTime"] = json!("2026-11-27T10:00:00Z")), "more than a day apart"),
        (damaged(&|har| har["log"]["entries"] = json!([])), "none of its entries is a page"),
        (damaged(&|har| *har = json!({})), "`log` is missing"),
        (damaged(&|har| *har = json!(1)), "expected an object with a `log`"),
        (
            damaged(&|har| har["log"]["entries"] = json!(vec![json!({}); ENTRIES_MAX + 1])),
            "more than 10000 items",
        ),
    ] {
        assert!(error.contains(expect), "{error}\n  lacks: {expect}");
    }
}

#[test]
fn what_its_requests_tell_servers_alone_is_known() {
    let mut har = har();
    har["log"]["entries"][1]["request"] = json!({ "method": "GET",
        "url": "https://tube.example/app.js?access_token=first-one&v=3", "headers": [
            { "name": "X-Session", "value": "second" }, { "name": "Csrf", "value": "third=1" },
            { "name": "X-Requested-With", "value": "XMLHttpRequest" },
            { "name": "Sec-Fetch-Site", "value": "a, b" },
            { "name": "Referer", "value": "https://tube.example/?ticket=fourth-one" } ] });
    let plan = plan_of(&har, TARGET, &[]).unwrap();
    let told: Vec<_> = plan.secrets_of_urls().map(|secret| secret.expose().to_owned()).collect();
    assert_eq!(told, ["first-one", "fourth-one"]);
    let headers: Vec<_> = plan.secret_headers().collect();
    assert_eq!(headers, [("x-session", "second"), ("csrf", "third=1")]);
}
