use http::Response;

use super::*;

const URL: &str = "https://cdn.example/live.m3u8";

fn headers(of: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in of {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn names(of: &[&'static str]) -> Vec<HeaderName> {
    of.iter().map(|name| HeaderName::from_static(name)).collect()
}

#[test]
fn what_a_form_could_not_send_is_named_in_order() {
    let long = "a".repeat(SAFE_LEN_MAX + 1);
    for (of, expect) in [
        (
            &[("x-b", "1"), ("authorization", "Bearer t"), ("accept", "*/*"), ("X-A", "2")][..],
            "authorization,x-a,x-b",
        ),
        (&[("accept", "application/x-mpegURL, */*;q=0.1")], ""),
        (&[("accept", "a(b)")], "accept"),
        (&[("accept-language", "de-CH, de;q=0.9"), ("content-language", "en")], ""),
        (&[("accept-language", "de/en")], "accept-language"),
        (&[("accept-language", &long)], "accept-language"),
        (&[("range", "bytes=0-")], ""),
        (&[("range", "bytes=5-9")], ""),
        (&[("range", "bytes=-500")], "range"),
        (&[("range", "bytes=9-5")], "range"),
        (&[("range", "bytes=0-1,3-4")], "range"),
        (&[("range", "bytes=+1-2")], "range"),
        // The browser's own.
        (
            &[
                ("accept-encoding", "gzip"),
                ("cookie", "a=b"),
                ("user-agent", "x"),
                ("sec-ch-ua", "y"),
                ("origin", "z"),
            ],
            "",
        ),
    ] {
        let found = unsafe_headers(&headers(of));
        let found: Vec<_> = found.iter().map(HeaderName::as_str).collect();
        assert_eq!(found.join(","), expect, "{of:?}");
    }
}

fn read(
    now: Instant,
    status: u16,
    of: &[(&str, &str)],
    credentials: CredentialsPolicy,
) -> Result<Answer, String> {
    let (mut head, ()) = Response::builder().status(status).body(()).unwrap().into_parts();
    head.headers = headers(of);
    Answer::read(now, &head, &names(&["authorization", "x-a"]), credentials)
}

#[test]
fn a_server_allows_what_it_names() {
    use CredentialsPolicy::{Include, SameOrigin};
    const ALLOW: &str = "access-control-allow-headers";
    for (status, of, credentials, expect) in [
        (204, &[(ALLOW, "X-A, Authorization")][..], SameOrigin, ""),
        (200, &[(ALLOW, "x-a"), (ALLOW, " ,authorization,x-b")], Include, ""),
        // As Chromium 156, which takes `*` for Authorization too.
        (204, &[(ALLOW, "*")], SameOrigin, ""),
        (204, &[(ALLOW, "*")], Include, "Access-Control-Allow-Headers lacks authorization, x-a"),
        (204, &[(ALLOW, "x-a")], SameOrigin, "Access-Control-Allow-Headers lacks authorization"),
        (204, &[], SameOrigin, "Access-Control-Allow-Headers lacks authorization, x-a"),
        (
            204,
            &[(ALLOW, "*, x y")],
            SameOrigin,
            "access-control-allow-headers is not a list of names",
        ),
        (404, &[(ALLOW, "*")], SameOrigin, "HTTP status 404"),
        (302, &[(ALLOW, "*")], SameOrigin, "HTTP status 302"),
    ] {
        let result = read(Instant::now(), status, of, credentials);
        assert_eq!(result.err().unwrap_or_default(), expect, "{status} {of:?} {credentials:?}");
    }
}

/// For how many seconds an answer with this `Access-Control-Max-Age` is kept.
fn kept_s(max_age: Option<&str>) -> u64 {
    let now = Instant::now();
    let mut of = vec![("access-control-allow-headers", "*")];
    of.extend(max_age.map(|text| ("access-control-max-age", text)));
    let (url, origins, mut preflights) =
        (Url::parse(URL).unwrap(), Origins::default(), Preflights::default());
    let answer = || read(now, 204, &of, CredentialsPolicy::SameOrigin).unwrap();
    let mut is_kept = |seconds| {
        preflights.learn(now, &url, origins, answer());
        preflights.allow(now + Duration::from_secs(seconds), &url, origins, &names(&["x-a"]))
    };
    (0..10_000).find(|seconds| !is_kept(*seconds)).unwrap()
}

#[test]
fn an_answer_is_kept_as_long_as_it_says_and_chromium_allows() {
    for (max_age, expect) in [
        (None, 5),
        (Some("0"), 0),
        (Some("-1"), 0),
        (Some("60"), 60),
        (Some("soon"), 5),
        (Some("86400"), 7_200),
    ] {
        assert_eq!(kept_s(max_age), expect, "{max_age:?}");
    }
}

#[test]
fn a_kept_answer_is_for_its_url_and_headers_and_the_oldest_are_forgotten() {
    let (now, origins, mut preflights) =
        (Instant::now(), Origins::default(), Preflights::default());
    let of =
        [("access-control-allow-headers", "x-a, authorization"), ("access-control-max-age", "60")];
    let url = |number: usize| Url::parse(&format!("{URL}?{number}")).unwrap();
    for number in 0..=ANSWERS_MAX {
        let at = now + Duration::from_millis(number as u64);
        preflights.learn(
            at,
            &url(number),
            origins,
            read(at, 204, &of, CredentialsPolicy::Include).unwrap(),
        );
    }
    assert_eq!(preflights.answers.len(), ANSWERS_MAX);
    let mut allow = |number, headers| preflights.allow(now, &url(number), origins, &names(headers));
    assert!(!allow(0, &["x-a"]) && allow(1, &["x-a"]) && !allow(ANSWERS_MAX + 1, &["x-a"]));
    assert!(allow(2, &["authorization", "x-a"]) && !allow(2, &["x-a", "x-b"]));
    assert!(!allow(2, &["x-a"]), "what does not do is forgotten");
}
