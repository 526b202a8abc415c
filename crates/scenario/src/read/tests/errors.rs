//! What is refused: where, with which help, and that no secret is repeated.

use std::time::Duration;

use throng_observation::Url;

use super::{FULL, SMALL, read, set};
use crate::har::{PageOrigins, PagePlan};
use crate::{Origin, Override, Scenario};

#[test]
fn errors_have_line_column_and_help() {
    // (what is replaced, by what, line, what the caret is under, help)
    for (from, to, line, meant, help) in [
        ("size = 100", "sise = 100", 11, "sise", "did you mean `size`?"),
        ("[crowd]", "[crwd]", 9, "crwd", "did you mean `crowd`?"),
        ("size = 100", "size = 0", 11, "0", "a whole number from 1"),
        ("size = 100", "size = -3", 11, "-3", "a whole number from 1"),
        ("size = 100", "size = \"100\"", 11, "\"100\"", "a whole number from 1"),
        (
            "size = 100",
            "size = 99999999999999999999",
            11,
            "99999999999999999999",
            "a whole number from 1",
        ),
        ("\"5/s\"", "\"5\"", 12, "\"5\"", "5/s"),
        ("\"5/s\"", "\"0/s\"", 12, "\"0/s\"", "rate = \"5/s\""),
        (
            "{ poisson = { rate = \"5/s\", seed = 7 } }",
            "\"5/s\"",
            12,
            "\"5/s\"",
            "{ every = \"100ms\" }",
        ),
        (
            "seed = 7 } }",
            "seed = 7 }, ramp = \"1s\" }",
            12,
            "{ poisson = { rate = \"5/s\", seed = 7 }, ramp = \"1s\" }",
            "{ ramp = \"60s\" }",
        ),
        ("mean = \"30s\"", "mean = \"30\"", 13, "\"30\"", "30s"),
        ("mean = \"30s\"", "exactly = \"30s\"", 13, "1", "remove seed"),
        (
            "mean = \"30s\"",
            "mean = \"1ms\"",
            13,
            "{ mean = \"1ms\", seed = 1, rejoin = true }",
            "at least \"1s\"",
        ),
        (
            "127.0.0.2-127.0.0.20",
            "127.0.0.20-127.0.0.2",
            14,
            "\"127.0.0.20-127.0.0.2\"",
            "127.0.0.2-127.0.0.20",
        ),
        ("1m30s", "90", 17, "\"90\"", "60s"),
        ("warm_up = \"5s\"", "warm_up = \"90s\"", 18, "\"90s\"", "less than \"90s\""),
        ("1m30s", "3h", 17, "\"3h\"", "caps.duration = \"3h\""),
        ("1.5Mbit/s", "fast", 22, "\"fast\"", "1Mbit/s"),
        ("1.5Mbit/s", "10Mbit/s", 22, "\"10Mbit/s\"", "caps.mbit_per_s = 10"),
        ("fps = 29.97", "fps = nan", 24, "nan", "a number above 0"),
        ("size = 100", "size = 201", 11, "201", "caps.users = 201"),
        (
            "rate = \"5/s\"",
            "rate = \"60/s\"",
            12,
            "{ poisson = { rate = \"60/s\", seed = 7 } }",
            "caps.joins_per_s = 60",
        ),
        (
            "rate = \"5/s\"",
            "rate = \"1/s\"",
            12,
            "{ poisson = { rate = \"1/s\", seed = 7 } }",
            "increase run.duration",
        ),
        ("video.loss p95", "video.los p95", 1, "video.los", "did you mean `video.loss`?"),
        ("0.9 of source", "1.9 of source", 1, "1.9 of source", "up to 1"),
        (
            "janus+ws:",
            "janus+http:",
            4,
            "\"janus+http://127.0.0.1:8188/streaming/1\"",
            "janus+ws://HOST:8188",
        ),
        ("env:TOKEN", "env:", 5, "\"env:\"", "env:NAME"),
        ("env:TOKEN", "a\\r\\nb: c", 5, "\"…\"", "env:NAME"),
        ("10.0.0.0/8", "10.0.0.1/8", 6, "\"10.0.0.1/8\"", "10.0.0.0/8"),
        ("tls_insecure = true", "tls_insecure = 1", 7, "1", "true or false"),
        ("csv = true", "csv = true\nobjectives = []", 29, "objectives", "at the top of the file"),
    ] {
        assert!(FULL.contains(from), "{from}");
        let error = Scenario::parse(&FULL.replacen(from, to, 1)).expect_err(to);
        let shown = error.to_string();
        let location =
            error.diagnostics[0].location.clone().unwrap_or_else(|| panic!("{to}: {shown}"));
        let under: String =
            location.source_line.chars().skip(location.caret_at).take(location.width).collect();
        assert_eq!(
            (location.origin, location.line, under.as_str()),
            (Origin::File, line, meant),
            "{shown}"
        );
        assert!(
            error
                .diagnostics
                .iter()
                .any(|diagnostic| diagnostic.help.as_ref().is_some_and(|m| m.contains(help))),
            "{shown}"
        );
    }
}

#[test]
fn all_errors_are_reported_in_the_order_of_the_file() {
    let text = FULL
        .replace("size = 100", "sise = 0")
        .replace("1m30s", "soon")
        .replace("csv = true", "csv = 1");
    let error = Scenario::parse(&text).unwrap_err();
    let lines: Vec<usize> = error
        .diagnostics
        .iter()
        .filter_map(|diagnostic| Some(diagnostic.location.as_ref()?.line))
        .collect();
    assert_eq!(lines, [11, 17, 28], "{error}");
    let syntax = Scenario::parse("a = \nb = 1\nc = = 2\n").unwrap_err();
    assert!(syntax.diagnostics.len() >= 2, "{syntax}");
    let missing = Scenario::parse("").unwrap_err().to_string();
    assert!(
        missing.contains("`target.url` is missing") && missing.contains("`crowd.size` is missing"),
        "{missing}"
    );
}

#[test]
fn an_error_reads_as_a_compilers() {
    let error = Scenario::parse(&SMALL.replace("size = 5", "sise = 5")).unwrap_err().to_string();
    let expect = "error: unknown key `sise` in `crowd`\n --> line 4, column 1\n  |\n4 | sise = 5\n  | ^^^^\n  help: did you mean `size`?\n";
    assert!(error.contains(expect), "{error}");
}

/// A secret in any place of a file, an override or a recording that cannot be read.
#[test]
fn no_error_repeats_a_secret() {
    let target = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n";
    for text in [
        format!("{target}token = \"S3CRET \u{e9}\"\n[crowd]\nsize = 5\n"),
        format!("{target}tokenn = \"S3CRET\"\n[crowd]\nsize = 5\n"),
        format!("{target}token = S3CRET\n[crowd]\nsize = 5\n"),
        format!("{target}token = \"S3CRET\n[crowd]\nsize = 5\n"),
        format!("{target}rooms = 0 # token = S3CRET\n[crowd]\nsize = 5\n"),
        "[target]\nurl = \"whep+http://me:S3CRET@127.0.0.1:x/whep\"\n[crowd]\nsize = 5\n".into(),
        "[target]\nurl = \"http://127.0.0.1/whep?sig=S3CRET\"\n[crowd]\nsize = 5\n".into(),
        format!("{target}[crowd]\nsize = 5\nplayer = {{ headers = {{ \"A B\" = \"S3CRET\" }} }}\n"),
    ] {
        let error = Scenario::parse(&text).expect_err(&text).to_string();
        assert!(!error.contains("S3CRET"), "{error}");
    }
    for setting in [
        "target.token=S3CRET \u{e9}",
        "target.tokenn=S3CRET",
        "tokne=S3CRET",
        "target.token.x=S3CRET",
        "target.url=whep+http://me:S3CRET@h:x/whep",
        "target={ token = \"S3CRET\", size = 5 }",
        "crowd.player.headers={ \"A B\" = \"S3CRET\" }",
    ] {
        let error = set(SMALL, &[setting]).expect_err(setting).to_string();
        assert!(!error.contains("S3CRET"), "{error}");
    }
    for (text, shown) in [
        ("S3CRET", "`--set \u{2026}` is not"),
        ("target.token S3CRET", "`--set target.token\u{2026}` is not"),
        ("http://me:S3CRET@h/x?a=b", "`--set \u{2026}` is not"),
        ("crowd.size", "`--set crowd.size` is not"),
    ] {
        let error = Override::parse(text).expect_err(text).to_string();
        assert!(error.contains(shown) && !error.contains("S3CRET"), "{error}");
    }
    let origins = PageOrigins::new(&Url::parse("http://127.0.0.1/").unwrap(), &[]);
    for (request, shown) in [
        (r#"{ "url": "http://me:S3CRET@h:bad/" }"#, "`request.url` is `http://\u{2026}@h:bad/`"),
        (r#"{ "url": "http://me:S3\nCRET@h:bad/" }"#, "`request.url` is `http://\u{2026}@h:bad/`"),
        (r#"{ "url": "app.js?token=S3CRET" }"#, "is `app.js?token=\u{2026}`, not a URL"),
        (r#""S3CRET""#, "invalid type: a text, expected an object as `request`"),
        (
            r#"{ "url": "http://h/", "headers": ["S3CRET\", expected S3CRET"] }"#,
            "a text, expected an object as header",
        ),
    ] {
        let har = format!(r#"{{ "log": {{ "entries": [{{ "request": {request} }}] }} }}"#);
        let error = PagePlan::read(har.as_bytes(), &origins, Duration::ZERO).expect_err(&har);
        let error = error.to_string();
        assert!(error.contains(shown) && !error.contains("S3CRET"), "{error}");
    }
}

#[test]
fn loopback_is_free_of_caps_and_others_get_a_hint_to_pass_them() {
    let crowd = "[target]\nurl = \"ws://HOST:3333/app/stream\"\n[crowd]\nsize = 1000\narrival = { every = \"10ms\" }\n";
    assert_eq!(read(&crowd.replace("HOST", "127.0.0.1")).users(), 1000);
    let remote = crowd.replace("HOST", "10.0.0.9");
    let error = Scenario::parse(&remote).unwrap_err();
    assert_eq!(error.diagnostics.len(), 2, "{error}");
    let shown = error.to_string();
    assert!(shown.contains("1000 users exceed the cap of 500 users"), "{shown}");
    assert!(shown.contains("100.0 joins/s exceed the cap of 20 joins/s"), "{shown}");
    read(&format!("{remote}[caps]\nusers = 1000\njoins_per_s = 100\n"));
    assert!(
        Scenario::parse(&format!("{}[caps]\nusers = 10\n", crowd.replace("HOST", "127.0.0.1")))
            .is_err()
    );
    // A chat, a tracker or a list of hashes elsewhere gets load too.
    let video = "[target]\nurl = \"http://127.0.0.1/a.m3u8\"\n[crowd]\nsize = 1000\n";
    for (keys, is_free) in [
        ("", true),
        ("chat = { url = \"xmpp+ws://127.0.0.1/ws?room=a@b\" }", true),
        ("chat = { url = \"xmpp+ws://10.0.0.9/ws?room=a@b\" }", false),
        ("player = { p2p = { tracker = \"wss://10.0.0.9/tracker/socket\" } }", false),
    ] {
        let read = Scenario::parse(&format!("{video}arrival = {{ every = \"10ms\" }}\n{keys}\n"));
        assert_eq!(read.is_ok(), is_free, "{keys}");
    }
}

#[test]
fn monstrous_texts_are_refused_without_harm() {
    let deep = |open: &str, n: usize| open.repeat(n);
    for text in [
        format!("a{} = 1", ".a".repeat(100_000)),
        format!("[a{}]", ".a".repeat(100_000)),
        format!("a = {}", deep("[", 100_000)),
        format!("a = {}", deep("{a=", 100_000)),
        format!("{SMALL}{}", "# long\n".repeat(300_000)),
        format!("{}size = 1\n", "[[crowd]]\n".repeat(5_000)),
        format!("{SMALL}{} = 1", "k".repeat(100_000)),
        SMALL
            .replace("size = 5", "size = 1000000\narrival = { poisson = { rate = \"0.0001/s\" } }"),
        SMALL.replace(
            "size = 5",
            "size = 1000000\narrival = { every = \"0s\" }\nstay = { mean = \"1s\", rejoin = true }",
        ),
    ] {
        let error = Scenario::parse(&text).expect_err(text.get(..60).unwrap_or(&text));
        assert!(error.to_string().len() < 100_000);
    }
    assert!(set(SMALL, &[&format!("a{}=1", ".a".repeat(100_000))]).is_err());
    assert!(set(SMALL, &[&format!("crowd.size={}", "[".repeat(100_000))]).is_err());
}
