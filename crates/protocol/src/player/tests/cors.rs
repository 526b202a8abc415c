//! A player on another origin than its page.

use http::request::Parts;
use throng_scenario::{CredentialsPolicy, MediaFormat, Secret, TokenSource};

use super::segmented::transport_stream;
use super::*;

const PAGE: &str = "http://10.0.0.9/watch?v=1";

/// The headers of responses that another origin's page may have.
fn open() -> Vec<(&'static str, String)> {
    [
        ("access-control-allow-origin", "http://10.0.0.9"),
        ("access-control-allow-headers", "x-key, authorization"),
        ("access-control-max-age", "60"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec()
}

/// A recording in two segments; preflights are answered by 204.
fn answer(path: &str, headers: &[(&'static str, String)]) -> Reply {
    if path.starts_with("OPTIONS") {
        return Reply::of(204, headers);
    }
    let playlist =
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/0.ts\n#EXTINF:4,\n/1.ts\n#EXT-X-ENDLIST\n";
    let body = match path {
        "/a.m3u8" => playlist.as_bytes().to_vec(),
        "/0.ts" => transport_stream(0..4, 1_800),
        _ => transport_stream(4..8, 1_800),
    };
    let length = ("content-length", body.len().to_string());
    Reply { body, ..Reply::of(200, &[headers, &[length]].concat()) }
}

fn player(page: &str) -> PlayerConfig {
    let page = Some(Url::parse(page).unwrap());
    PlayerConfig { page, at_end: AtEnd::Leave, format: MediaFormat::Hls, ..buffering(20) }
}

fn with_key(player: PlayerConfig) -> PlayerConfig {
    PlayerConfig {
        headers: vec![("X-Key".to_owned(), TokenSource::Inline(Secret::new("k")))],
        ..player
    }
}

fn fixture(player: PlayerConfig, answers: impl FnMut(&str) -> Reply + 'static) -> Fixture {
    let mut answers = answers;
    Fixture::at(
        "http://10.0.0.1/a.m3u8",
        player,
        1_000_000,
        Box::new(move |path, _| Some(answers(path))),
    )
}

fn header<'a>(head: &'a Parts, name: &str) -> &'a str {
    head.headers.get(name).map_or("-", |value| value.to_str().unwrap())
}

/// `METHOD PORT-AND-PATH ORIGIN REFERER` of each request.
fn said(fixture: &Fixture) -> Vec<String> {
    let line = |head: &Parts| {
        let (uri, at) = (&head.uri, head.uri.host().unwrap().rsplit('.').next().unwrap());
        let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        let (origin, referer) = (header(head, "origin"), header(head, "referer"));
        format!("{} {at}{port}{} {origin} {referer}", head.method, uri.path())
    };
    fixture.heads.iter().map(line).collect()
}

#[test]
fn a_page_elsewhere_is_named_and_one_of_the_same_origin_is_no_other() {
    let mut away = fixture(player(PAGE), |path| answer(path, &open()));
    away.seconds(12);
    assert_eq!(away.ended, Some(Outcome::Completed));
    let from = "http://10.0.0.9 http://10.0.0.9/";
    assert_eq!(
        said(&away),
        ["/a.m3u8", "/0.ts", "/1.ts"].map(|path| format!("GET 1{path} {from}"))
    );

    let mut at_home =
        fixture(with_key(player("http://10.0.0.1:80/watch")), |path| answer(path, &[]));
    at_home.seconds(12);
    assert_eq!(at_home.ended, Some(Outcome::Completed));
    let from = "- http://10.0.0.1/watch";
    assert_eq!(
        said(&at_home),
        ["/a.m3u8", "/0.ts", "/1.ts"].map(|path| format!("GET 1{path} {from}"))
    );

    let mut unsaid =
        fixture(PlayerConfig { page: None, ..with_key(player(PAGE)) }, |path| answer(path, &[]));
    unsaid.seconds(12);
    assert_eq!(said(&unsaid), ["/a.m3u8", "/0.ts", "/1.ts"].map(|path| format!("GET 1{path} - -")));
}

#[test]
fn further_headers_have_a_preflight_without_them_for_each_url() {
    let mut fixture = fixture(with_key(player(PAGE)), |path| answer(path, &open()));
    fixture.seconds(12);
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    let expect = ["/a.m3u8", "/0.ts", "/1.ts"]
        .map(|path| [format!("OPTIONS {path} 0"), format!("{path} 0")]);
    assert_eq!(fixture.requests, expect.concat());
    let totals = fixture.totals();
    assert_eq!((totals.requests, totals.requests_failed), (6, 0));
    let [preflight, request] = [&fixture.heads[0], &fixture.heads[1]];
    assert_eq!(header(preflight, "access-control-request-method"), "GET");
    assert_eq!(header(preflight, "access-control-request-headers"), "x-key");
    assert_eq!((header(preflight, "x-key"), header(request, "x-key")), ("-", "k"));
    for head in [preflight, request] {
        let (origin, referer) = (header(head, "origin"), header(head, "referer"));
        assert_eq!((origin, referer), ("http://10.0.0.9", "http://10.0.0.9/"));
    }
}

#[test]
fn a_kept_answer_serves_for_the_next_part_of_its_file() {
    let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-VERSION:4\n#EXTINF:4,\n#EXT-X-BYTERANGE:LEN@0\n/0.ts\n\
                    #EXTINF:4,\n#EXT-X-BYTERANGE:LEN@LEN\n/0.ts\n#EXT-X-ENDLIST\n";
    let parts = [transport_stream(0..4, 1_800), transport_stream(4..8, 1_800)];
    assert_eq!(parts[0].len(), parts[1].len());
    let playlist = playlist.replace("LEN", &parts[0].len().to_string());
    let film = parts.concat();
    for (max_age, expect) in [("60", 2), ("0", 3)] {
        let (playlist, film) = (playlist.clone(), film.clone());
        let mut headers = open();
        headers[2].1 = max_age.to_owned();
        let answers = move |path: &str, range| {
            let mut reply = match path {
                "/a.m3u8" => Reply { body: playlist.clone().into_bytes(), ..Reply::of(200, &[]) },
                "/0.ts" => Reply::range(&film, range),
                _ => Reply::of(204, &[]),
            };
            reply.headers.extend(headers.clone());
            Some(reply)
        };
        let (url, player) = ("http://10.0.0.1/a.m3u8", with_key(player(PAGE)));
        let mut fixture = Fixture::at(url, player, 1_000_000, Box::new(answers));
        fixture.seconds(12);
        assert_eq!(fixture.ended, Some(Outcome::Completed));
        let preflights = fixture.heads.iter().filter(|head| head.method == "OPTIONS").count();
        assert_eq!(
            (preflights, fixture.heads.len()),
            (expect, expect + 3),
            "{:?}",
            fixture.requests
        );
    }
}

#[test]
fn what_a_page_may_not_have_is_a_failure_that_says_why() {
    let only = |at: usize, value: &str| {
        let mut headers = open();
        headers[at].1 = value.to_owned();
        headers
    };
    let why = "cors: http://10.0.0.1/a.m3u8: CORS:";
    let (plain, keyed) = (player(PAGE), with_key(player(PAGE)));
    for (player, headers, expect) in [
        (&plain, vec![], "no Access-Control-Allow-Origin for the origin http://10.0.0.9"),
        (&plain, only(0, "http://10.0.0.1"), "Access-Control-Allow-Origin is `http://10.0.0.1`"),
        (&keyed, vec![], "preflight: no Access-Control-Allow-Origin for the origin"),
        (&keyed, only(1, "x-other"), "preflight: Access-Control-Allow-Headers lacks x-key"),
    ] {
        let mut fixture = fixture(player.clone(), move |path| answer(path, &headers));
        fixture.seconds(12);
        let failure = fixture.failure();
        assert!(failure.starts_with(&format!("{why} {expect}")), "{failure}");
        let totals = fixture.totals();
        assert_eq!(
            (totals.requests, totals.requests_failed, totals.media_bytes),
            (1, 1, 0),
            "not repeated"
        );
    }
    let mut refused = fixture(with_key(player(PAGE)), |path| match path {
        "OPTIONS /a.m3u8" => Reply::of(405, &open()),
        _ => answer(path, &open()),
    });
    refused.seconds(12);
    assert_eq!(refused.failure(), format!("{why} preflight: HTTP status 405"));
    let mut missing = fixture(player(PAGE), |_| Reply::of(404, &[]));
    missing.seconds(12);
    assert!(
        missing.failure().ends_with("http://10.0.0.9 (HTTP status 404)"),
        "{}",
        missing.failure()
    );
}

#[test]
fn cookies_of_a_response_that_the_page_may_not_have_are_kept_and_preflights_bring_none() {
    let mut requests = 0;
    let answers = move |path: &str| {
        requests += 1;
        let mut headers = open();
        headers[0].1 = "http://10.0.0.1:81".to_owned();
        // The response to the GET of the first segment lacks it.
        if path != "/0.ts" {
            headers.push(("access-control-allow-credentials", "true".to_owned()));
        }
        headers.push(("set-cookie", format!("k{requests}=v; Path=/")));
        let mut answer = answer(path, &headers);
        if path == "/a.m3u8" {
            // Live: a segment that is not to be had is left out.
            answer.body.truncate(answer.body.len() - "#EXT-X-ENDLIST\n".len());
            answer.headers.retain(|(name, _)| *name != "content-length");
        }
        answer
    };
    // Another port is another origin of the same site.
    let player =
        PlayerConfig { credentials: CredentialsPolicy::Include, ..player("http://10.0.0.1:81/") };
    let mut fixture = fixture(with_key(player), answers);
    fixture.seconds(3);
    let sent: Vec<_> = fixture
        .heads
        .iter()
        .take(6)
        .map(|head| (head.method.as_str(), header(head, "cookie")))
        .collect();
    let gets = ["-", "k2=v", "k2=v; k4=v"];
    assert_eq!(
        sent,
        gets.iter().flat_map(|cookie| [("OPTIONS", "-"), ("GET", *cookie)]).collect::<Vec<_>>()
    );
    assert_eq!(fixture.totals().requests_failed, 1);
}

#[test]
fn redirects_make_the_origin_opaque_and_leave_token_and_headers_behind() {
    let mut any = open();
    any[0].1 = "*".to_owned();
    let at = any.clone();
    let answers = move |path: &str| match path {
        "/a.m3u8" => {
            Reply::of(302, &[&at[..], &[("location", "http://10.0.0.1:81/b".to_owned())]].concat())
        }
        "/b" => Reply::of(
            302,
            &[&at[..], &[("location", "http://10.0.0.2/a.m3u8?".to_owned())]].concat(),
        ),
        _ => answer(path.trim_end_matches('?'), &at),
    };
    let config = config("http://10.0.0.1/a.m3u8", with_key(player(PAGE)));
    let config = Config { token: Some(Secret::new("t")), ..config };
    let mut fixture =
        Fixture::watching(config, 1_000_000, Box::new(move |path, _| Some(answers(path))));
    fixture.seconds(2);
    let (named, opaque) = ("http://10.0.0.9 http://10.0.0.9/", "null http://10.0.0.9/");
    let expect = [
        format!("OPTIONS 1/a.m3u8 {named}"),
        format!("GET 1/a.m3u8 {named}"),
        format!("GET 1:81/b {opaque}"),
        format!("GET 2/a.m3u8 {opaque}"),
    ];
    assert_eq!(said(&fixture)[..4], expect);
    let asked: Vec<_> = fixture
        .heads
        .iter()
        .take(4)
        .map(|head| header(head, "access-control-request-headers"))
        .collect();
    assert_eq!(asked, ["authorization,x-key", "-", "-", "-"]);
    let brought: Vec<_> = fixture
        .heads
        .iter()
        .take(4)
        .map(|head| (header(head, "authorization"), header(head, "x-key")))
        .collect();
    // Another port of the host is another origin.
    assert_eq!(brought, [("-", "-"), ("Bearer t", "k"), ("-", "-"), ("-", "-")]);
}

#[test]
fn a_preflight_goes_nowhere_that_the_run_may_not_reach() {
    let answers = |path: &str| match path {
        "/a.m3u8" => Reply::of(
            302,
            &[&open()[..], &[("location", "http://192.168.0.9/x".to_owned())]].concat(),
        ),
        _ => answer(path, &open()),
    };
    let mut fixture = fixture(with_key(player(PAGE)), answers);
    fixture.seconds(2);
    assert_eq!(fixture.failure(), "not_allowed: 192.168.0.9:80 is not an allowed target");
    assert_eq!(fixture.heads.len(), 2);
}

#[test]
fn a_media_element_needs_no_permission() {
    let movie = movie(20, true);
    let player = PlayerConfig { page: Some(Url::parse(PAGE).unwrap()), ..buffering(5) };
    let mut fixture = Fixture::of(player, 10 * movie.bytes_per_s, &movie);
    fixture.seconds(3);
    assert!(fixture.frames_played(0) > 40);
    assert_eq!(said(&fixture)[0], "GET 1/movie.mp4 - http://10.0.0.9/");
}

#[test]
fn a_preflight_that_takes_too_long_is_given_up_with_its_request() {
    let slow = |path: &str| Reply { not_before: Duration::from_secs(60), ..answer(path, &open()) };
    let mut fixture = fixture(with_key(player(PAGE)), slow);
    fixture.seconds(22);
    assert!(
        fixture.requests.iter().all(|request| request == "OPTIONS /a.m3u8 0"),
        "{:?}",
        fixture.requests
    );
    // The request has the first number, and the driver has not heard of it.
    assert_eq!(fixture.cancelled.first(), Some(&FetchId(1)));
}

#[test]
fn the_body_of_a_preflight_is_not_waited_for() {
    for (length, is_cancelled) in [(Some(2), false), (Some(20_000), true), (None, true)] {
        let answers = move |path: &str| {
            let mut reply = answer(path, &open());
            if path.starts_with("OPTIONS") {
                reply.status = 200;
                reply
                    .headers
                    .extend(length.map(|length: usize| ("content-length", length.to_string())));
                reply.body = vec![0; length.unwrap_or(2)];
            }
            reply
        };
        let mut fixture = fixture(with_key(player(PAGE)), answers);
        fixture.seconds(12);
        assert_eq!(fixture.ended, Some(Outcome::Completed));
        assert_eq!(fixture.cancelled.contains(&FetchId(1)), is_cancelled, "{length:?}");
        assert_eq!((fixture.totals().requests, fixture.totals().requests_failed), (6, 0));
    }
}
