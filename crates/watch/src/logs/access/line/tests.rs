//! Lines of real servers, in each format.

use super::*;

fn check(line: &str, path: &str, status: u16, bytes: u64, protocol: Protocol) {
    let got = parse(line.as_bytes()).unwrap_or_else(|| panic!("not read: {line}"));
    assert_eq!(
        (&*got.path, got.status, got.bytes, got.protocol),
        (path, status, bytes, protocol),
        "{line}"
    );
}

#[test]
fn combined_lines_of_nginx_lighttpd_and_apache_are_read() {
    check(
        r#"127.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET /hls/s1/0.ts HTTP/1.1" 200 221000 "-" "curl/7.88""#,
        "/hls/s1/0.ts",
        200,
        221_000,
        Protocol::H1,
    );
    check(
        r#"::1 localhost:8082 - [20/Nov/2026:10:00:00 +0000] "GET /a.m3u8?_HLS_msn=1 HTTP/2.0" 304 - "" "x""#,
        "/a.m3u8",
        304,
        0,
        Protocol::H2,
    );
    check(
        r#"10.0.0.1 - u [20/Nov/2026:10:00:00 +0000] "GET http://h:80/p/q#f HTTP/3.0" 101 12 "-" "-" 0.123 "up""#,
        "/p/q",
        101,
        12,
        Protocol::H3,
    );
    check(
        r#"1.2.3.4 - - [t] "GET /say\"hi\" HTTP/1.0" 404 1 "#,
        r#"/say\"hi\""#,
        404,
        1,
        Protocol::H1,
    );
    // Not HTTP at all: nginx logs it with status 400.
    check(r#"1.2.3.4 - - [t] "\x16\x03\x01" 400 157 "-" "-""#, "", 400, 157, Protocol::Other);
    check(r#"1.2.3.4 - - [t] "-" 408 0 "-" "-""#, "", 408, 0, Protocol::Other);
}

#[test]
fn json_lines_of_caddy_and_nginx_are_read() {
    check(
        r#"{"level":"info","ts":1.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","proto":"HTTP/3.0","method":"GET","host":"h","uri":"/vod/x.mp4?a=1","headers":{"A":["b"]}},"duration":0.25,"size":4600000,"status":206}"#,
        "/vod/x.mp4",
        206,
        4_600_000,
        Protocol::H3,
    );
    check(
        r#"{"uri":"/a/b","status":"502","bytes_sent":"157","server_protocol":"HTTP/1.1","request_time":"0.004"}"#,
        "/a/b",
        502,
        157,
        Protocol::H1,
    );
    check(
        r#" {"request":"GET /x?y HTTP/2.0","status":200,"body_bytes_sent":9}"#,
        "/x",
        200,
        9,
        Protocol::H2,
    );
    // As nginx logs are often configured: each variable that there is.
    check(
        r#"{"uri":"/index.m3u8","request_uri":"/live?t=1","status":200,"bytes_sent":400,"body_bytes_sent":99,"server_protocol":"HTTP/2.0"}"#,
        "/live",
        200,
        99,
        Protocol::H2,
    );
    let timed = parse(br#"{"uri":"/","status":200,"request_time":0.25}"#).unwrap();
    assert_eq!(timed.duration_ms, Some(250.0));
}

#[test]
fn method_time_and_user_agent_are_read_where_the_log_has_them() {
    let at = 1_795_632_000.0;
    for (line, method, at_unix_s, user_agent) in [
        (
            r#"::1 - - [25/Nov/2026:18:40:00 +0000] "GET /a HTTP/1.1" 200 5 "http://b/\"c" "throng/0.1.0" x"#,
            "GET",
            Some(at),
            Some("throng/0.1.0"),
        ),
        (
            r#"::1 - - [25/Nov/2026:18:40:00 +0000] "HEAD /a HTTP/1.1" 200 5 "-" "-""#,
            "HEAD",
            Some(at),
            None,
        ),
        (r#"::1 - - [25/Nov/2026:18:40:00 +0000] "GET /a HTTP/1.1" 200 5"#, "GET", Some(at), None),
        (r#"::1 - - [t] "x" 400 5 "-""#, "", None, None),
        (
            r#"{"ts":1795632000,"request":{"proto":"HTTP/2.0","method":"GET","uri":"/a","headers":{"User-Agent":["Mozilla/5.0"],"B":[]}},"status":200}"#,
            "GET",
            Some(at),
            Some("Mozilla/5.0"),
        ),
        (
            r#"{"msec":"1795632000.000","time_local":"?","request":"GET /a HTTP/1.1","status":"200","http_user_agent":"x\"y"}"#,
            "GET",
            Some(at),
            Some("x\"y"),
        ),
        (
            r#"{"time_iso8601":"2026-11-25T18:40:00+00:00","request_method":"POST","uri":"/a","status":200}"#,
            "POST",
            Some(at),
            None,
        ),
        (r#"{"ts":"2026/11/25 18:40:00","uri":"/a","status":200}"#, "", None, None),
    ] {
        let read = parse(line.as_bytes()).unwrap_or_else(|| panic!("not read: {line}"));
        assert_eq!(
            (&*read.method, read.at_unix_s, read.user_agent.as_deref()),
            (method, at_unix_s, user_agent),
            "{line}"
        );
    }
}

#[test]
fn lines_in_another_format_are_refused() {
    for line in [
        "",
        " ",
        "{",
        "{}",
        "hello",
        r#"[t] "GET / HTTP/1.1""#,
        r#"[t] "GET / HTTP/1.1" 99999 1"#,
        r#"[t] "GET / HTTP/1.1" 200 -5"#,
        r#"{"uri":"/","status":-1}"#,
        r#"{"uri":"/","status":1e300}"#,
        r#"{"request":{"uri":7},"status":200}"#,
        r#"] "unclosed 200 1"#,
        r#"{"level":"info","msg":"serving"}"#,
    ] {
        assert_eq!(parse(line.as_bytes()), None, "{line}");
    }
    assert_eq!(parse(b"] \"\xff\xfe \xff HTTP/1.1\" 200 1").map(|line| line.status), Some(200));
}

#[test]
fn truncated_and_mutated_lines_do_not_panic() {
    let line =
        br#"{"request":{"proto":"HTTP/2.0","uri":"/vod/x.mp4"},"duration":0.25,"size":46,"status":206}"#;
    let combined = br#"1.2.3.4 - - [t] "GET http://h/say\"hi HTTP/1.0" 404 1 "-" "x""#;
    for text in [&line[..], &combined[..]] {
        for end in 0..text.len() {
            let _ = parse(&text[..end]);
            let mut changed = text.to_vec();
            changed[end] = changed[end].wrapping_mul(7).wrapping_add(end as u8);
            let _ = parse(&changed);
        }
    }
}
