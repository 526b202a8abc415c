//! What a browser's viewer does with its server's headers.

use std::net::IpAddr;

use throng_scenario::{CredentialsPolicy, HttpVersionPolicy, MediaFormat, Secret, TokenSource};

use super::segmented::transport_stream;
use super::*;

/// A recording in two segments whose playlist offers HTTP/3.
fn answer(path: &str) -> Reply {
    let playlist =
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/0.ts\n#EXTINF:4,\n/1.ts\n#EXT-X-ENDLIST\n";
    let body = match path {
        "/a.m3u8" => playlist.as_bytes().to_vec(),
        "/0.ts" => transport_stream(0..4, 1_800),
        _ => transport_stream(4..8, 1_800),
    };
    let offer = ("alt-svc", r#"h3=":8443"; ma=60"#.to_owned());
    Reply {
        body: body.clone(),
        ..Reply::of(200, &[("content-length", body.len().to_string()), offer])
    }
}

fn browser() -> PlayerConfig {
    PlayerConfig { http: HttpVersionPolicy::Browser.into(), at_end: AtEnd::Leave, ..buffering(20) }
}

#[test]
fn later_requests_go_to_the_alternative_until_it_cannot_be_reached() {
    const URL: &str = "https://10.0.0.1:8400/a.m3u8";
    let (usual, other) = (HttpVersion::Negotiated, HttpVersion::Alternative(8443));
    let mut fixture =
        Fixture::at(URL, browser(), 1_000_000, Box::new(|path, _| Some(answer(path))));
    fixture.seconds(3);
    assert_eq!(fixture.versions, [usual, other, other]);

    let mut fixture =
        Fixture::at(URL, browser(), 1_000_000, Box::new(|path, _| Some(answer(path))));
    fixture.alternative_failed = Some(ChannelError::Quic("refused".into()));
    fixture.seconds(3);
    assert_eq!(fixture.versions, [usual, other, usual]);
    assert_eq!(
        fixture.anomalies(),
        ["10.0.0.1: Alt-Svc offers HTTP/3 at port 8443, but: QUIC: refused"]
    );

    let plain = URL.replace("https", "http");
    let mut fixture =
        Fixture::at(&plain, browser(), 1_000_000, Box::new(|path, _| Some(answer(path))));
    fixture.seconds(3);
    assert_eq!(fixture.versions, [usual; 3], "an offer that nobody has authenticated");
}

#[test]
fn further_headers_go_to_the_origin_of_the_url_and_are_not_printed() {
    let headers = vec![("X-Key".to_owned(), TokenSource::Inline(Secret::new("hunter2")))];
    let player = PlayerConfig { headers, ..buffering(5) };
    let moved = |path: &str, _| {
        let location = ("location", "http://10.0.0.2/b.mp4".to_owned());
        Some(if path == "/movie.mp4" { Reply::of(302, &[location]) } else { Reply::of(404, &[]) })
    };
    let mut fixture = Fixture::new(player, 1_000_000, Box::new(moved));
    fixture.seconds(1);
    assert_eq!(fixture.requests.len(), 2);
    let hosts: Vec<IpAddr> =
        fixture.heads.iter().map(|head| head.uri.host().unwrap().parse().unwrap()).collect();
    assert_eq!(hosts, ["10.0.0.1".parse::<IpAddr>().unwrap(), "10.0.0.2".parse().unwrap()]);
    assert_eq!(fixture.heads[0].headers["x-key"], "hunter2");
    assert!(!fixture.heads[1].headers.contains_key("x-key"));
    assert!(!format!("{:?}", fixture.heads[0]).contains("hunter2"));
}

#[test]
fn a_token_does_not_come_back_from_another_origin() {
    let headers = vec![("X-Key".to_owned(), TokenSource::Inline(Secret::new("hunter2")))];
    let player = PlayerConfig { headers, ..buffering(5) };
    let config = config("http://10.0.0.1/movie.mp4", player);
    let config = Config { token: Some(Secret::new("hunter2")), ..config };
    let moved = |path: &str, _| {
        let to = match path {
            "/movie.mp4" => "http://10.0.0.2/b.mp4",
            "/b.mp4" => "http://10.0.0.1/c.mp4",
            _ => return Some(Reply::of(404, &[])),
        };
        Some(Reply::of(302, &[("location", to.to_owned())]))
    };
    let mut fixture = Fixture::watching(config, 1_000_000, Box::new(moved));
    fixture.seconds(2);
    let brought = |at: usize| {
        let head = &fixture.heads[at];
        ["authorization", "x-key"].map(|name| head.headers.contains_key(name))
    };
    assert_eq!([0, 1, 2].map(brought), [[true, true], [false, false], [false, true]]);
}

/// A viewer, with token and further header, of a playlist whose segments are elsewhere.
fn viewer_of(playlist: &str, segment: &'static str) -> Fixture {
    let headers = vec![("X-Key".to_owned(), TokenSource::Inline(Secret::new("hunter2")))];
    let player = PlayerConfig { headers, format: MediaFormat::Hls, ..browser() };
    let config = Config { token: Some(Secret::new("hunter2")), ..config(playlist, player) };
    let answers = move |path: &str, _| {
        let mut reply = answer(path);
        if path == "/a.m3u8" {
            let text = String::from_utf8(reply.body).unwrap();
            reply.body = text.replace("\n/", &format!("\n{segment}/")).into_bytes();
            reply.headers = vec![("content-length", reply.body.len().to_string())];
        }
        Some(reply)
    };
    let mut fixture = Fixture::watching(config, 1_000_000, Box::new(answers));
    fixture.seconds(3);
    fixture
}

#[test]
fn token_and_headers_go_to_no_other_origin_and_media_not_from_https_to_http() {
    for (playlist, segment, is_own) in [
        ("http://10.0.0.1/a.m3u8", "http://10.0.0.1", true),
        ("http://10.0.0.1/a.m3u8", "http://10.0.0.1:8081", false),
        ("http://10.0.0.1/a.m3u8", "https://10.0.0.1", false),
        ("http://10.0.0.1/a.m3u8", "http://10.0.0.2", false),
        ("https://10.0.0.1/a.m3u8", "https://10.0.0.1:8443", false),
    ] {
        let fixture = viewer_of(playlist, segment);
        let has = |at: usize, name| fixture.heads[at].headers.contains_key(name);
        for name in ["authorization", "x-key"] {
            assert_eq!((has(0, name), has(1, name)), (true, is_own), "{name} {segment}");
        }
    }
    let fixture = viewer_of("https://10.0.0.1/a.m3u8", "http://10.0.0.1:8081");
    assert_eq!(fixture.heads.len(), 1, "nothing is requested in clear text");
    assert!(
        fixture.failure().starts_with("mixed_content: http://10.0.0.1:8081/0.ts: mixed content"),
        "{}",
        fixture.failure()
    );
}

#[test]
fn a_failed_request_tells_no_secret_of_its_url() {
    const URL: &str = "http://me:hunter2@10.0.0.1/movie.mp4?token=hunter2&n=1#hunter2";
    let mut fixture =
        Fixture::at(URL, buffering(5), 1_000_000, Box::new(|_, _| Some(Reply::of(404, &[]))));
    fixture.seconds(1);
    let failure = fixture.failure();
    assert!(!failure.contains("hunter2"), "{failure}");
    assert!(
        failure.contains("http://…@10.0.0.1/movie.mp4?token=…&n=1#…: HTTP status 404"),
        "{failure}"
    );
}

/// The same body, compressed by gzip.
fn compressed(reply: &Reply, more: &[(&'static str, String)]) -> Reply {
    use std::io::Write;
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    to.write_all(&reply.body).unwrap();
    let body = to.finish().unwrap();
    let encoding = ("content-encoding", "gzip".to_owned());
    let headers = [("content-length", body.len().to_string()), encoding];
    Reply { body, ..Reply::of(200, &[&headers, more].concat()) }
}

#[test]
fn compressed_playlists_and_segments_are_read_and_counted_as_received() {
    const URL: &str = "https://10.0.0.1/a.m3u8";
    let gzip = |path: &str| compressed(&answer(path), &[]);
    let mut fixture =
        Fixture::at(URL, browser(), 1_000_000, Box::new(move |path, _| Some(gzip(path))));
    fixture.seconds(12);
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    assert_eq!(fixture.frames_played(0), 200);
    let totals = fixture.totals();
    let wire: usize = ["/a.m3u8", "/0.ts", "/1.ts"].map(|path| gzip(path).body.len()).iter().sum();
    assert_eq!(totals.media_bytes + totals.other_bytes, wire as u64);
    assert!(
        fixture
            .heads
            .iter()
            .all(|head| head.headers["accept-encoding"] == "gzip, deflate, br, zstd")
    );
}

#[test]
fn a_part_is_asked_for_and_taken_as_it_is() {
    let headers = ("content-range", "bytes 0-99/1000".to_owned());
    let part = move |_: &str, range| {
        assert_eq!(range, Some((0, None)));
        let whole = Reply { body: vec![0; 1_000], ..Reply::of(206, &[]) };
        Some(Reply { status: 206, ..compressed(&whole, std::slice::from_ref(&headers)) })
    };
    let mut fixture = Fixture::new(buffering(5), 1_000_000, Box::new(part));
    fixture.seconds(1);
    assert_eq!(fixture.heads[0].headers["accept-encoding"], "identity");
    let failure = fixture.failure();
    assert!(
        failure.contains("Content-Encoding `gzip` in the response to a request with Range"),
        "{failure}"
    );
}

/// What is sent in `Cookie` to a playlist at 10.0.0.1 that sets one, to the place that it redirects
/// to, and to the segment there.
fn cookies(credentials: CredentialsPolicy, to: &'static str) -> Vec<Option<String>> {
    let set = ("set-cookie", "k=v; Path=/".to_owned());
    let mut requests = 0;
    let moved = move |path: &str, _| {
        requests += 1;
        let location = ("location", to.to_owned());
        Some(if requests == 1 { Reply::of(302, &[set.clone(), location]) } else { answer(path) })
    };
    let player = PlayerConfig { credentials, ..browser() };
    let mut fixture = Fixture::at("http://10.0.0.1/first", hls(player), 1_000_000, Box::new(moved));
    fixture.seconds(3);
    let cookie = |head: &http::request::Parts| {
        head.headers.get("cookie").map(|value| value.to_str().unwrap().to_owned())
    };
    fixture.heads.iter().take(3).map(cookie).collect()
}

fn hls(player: PlayerConfig) -> PlayerConfig {
    PlayerConfig { format: MediaFormat::Hls, ..player }
}

#[test]
fn cookies_of_redirects_are_kept_and_go_where_the_credentials_mode_says() {
    use CredentialsPolicy::{Include, Omit, SameOrigin};
    let (sent, port, other) =
        (Some("k=v".to_owned()), "http://10.0.0.1:81/a.m3u8", "http://10.0.0.2/a.m3u8");
    for (credentials, to, expect) in [
        (SameOrigin, "/a.m3u8", [None, sent.clone(), sent.clone()]),
        (Include, "/a.m3u8", [None, sent.clone(), sent.clone()]),
        (Omit, "/a.m3u8", [None, None, None]),
        // A port makes another origin, and is nothing to cookies.
        (SameOrigin, port, [None, None, None]),
        (Include, port, [None, sent.clone(), sent.clone()]),
        (Include, other, [None, None, None]),
    ] {
        assert_eq!(cookies(credentials, to), expect, "{credentials:?} {to}");
    }
}

#[test]
fn who_comes_back_from_another_origin_comes_without_cookies() {
    let set = ("set-cookie", "k=v; Path=/".to_owned());
    let mut requests = 0;
    let moved = move |_: &str, _| {
        requests += 1;
        let to = ["http://10.0.0.1:81/", "http://10.0.0.1/a.m3u8"].get(requests - 1);
        Some(match to {
            Some(to) => Reply::of(302, &[set.clone(), ("location", (*to).to_owned())]),
            None => Reply::of(404, &[]),
        })
    };
    let mut fixture =
        Fixture::at("http://10.0.0.1/first", hls(browser()), 1_000_000, Box::new(moved));
    fixture.seconds(1);
    assert_eq!(fixture.heads.len(), 3);
    assert!(
        fixture.heads.iter().all(|head| !head.headers.contains_key("cookie")),
        "{:?}",
        fixture.heads
    );
}
