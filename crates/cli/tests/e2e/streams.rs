//! Named streams: many publishers and viewers against a stage that answers as SRS does: one
//! publisher a stream, only H.264, with SRS's error messages or without any.

use std::path::Path;

use crate::throng::{Ran, Stage, figure, plain, run};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/srs-streams.toml");
const H264: [&str; 4] = ["--set", "crowd.publish.video=144p", "--set", "crowd.publish.codec=h264"];

fn as_server(name: &str) -> Stage {
    Stage::start(None, "127.0.0.1:0", &["--as", name])
}

/// The endpoint of publishers, with the stream's name at the end.
fn whip(stage: &Stage, stream: &str) -> String {
    format!("whip+{}?app=live&stream={stream}", stage.whep.replace("/whep/", "/whip/"))
}

/// The messages of a run contain no internal representation.
fn is_for_people(ran: &Ran) {
    let page = std::fs::read_to_string(ran.folder().join("report.html")).unwrap();
    for said in [&ran.stdout, &ran.stderr, &page] {
        assert!(
            !said.contains("Some(") && !said.contains("None)") && !said.contains("(None"),
            "{ran}"
        );
    }
}

#[test]
fn publishers_have_a_stream_each_and_viewers_are_spread_over_them() {
    let stage = as_server("srs");
    let (url, own) = (
        format!("target.url=whep+{}?app=live&stream=cam{{stream}}", stage.whep),
        format!("crowd.publishers.url={}", whip(&stage, "cam{n}")),
    );
    let args = [
        &["run", EXAMPLE, "--set", &url, "--set", &own][..],
        &["--set", "crowd.publishers.size=3", "--set", "crowd.publishers.publish.video=144p"],
        &["--set", "crowd.viewers.size=6", "--set", "crowd.viewers.streams=3"],
        &["--set", "run.duration=9s", "--set", "run.warm_up=4s"],
    ];
    let ran = run(None, &args.concat()).expect_code(0);
    let summary = ran.summary();
    for (path, expect) in [
        ("participants.intended", 9.0),
        ("participants.publishers", 3.0),
        ("participants.connected", 9.0),
        // A viewer of a stream without a publisher would receive nothing: this stage plays no test
        // card.
        ("participants.playing", 6.0),
        ("participants.failed", 0.0),
        ("video.tracks", 6.0),
    ] {
        assert_eq!(figure(&summary, path), expect, "{path}: {ran}");
    }
    assert!(ran.stdout.starts_with("3 publishers sent, 6 viewers played "), "{ran}");
    assert!(
        ran.stdout.contains("participants 3 publishers and 6 viewers intended, 9 connected"),
        "{ran}"
    );
    is_for_people(&ran);
}

#[test]
fn publishers_of_one_stream_get_the_servers_message_and_a_hint() {
    let stage = as_server("srs");
    let url = whip(&stage, "one");
    let ran =
        run(None, &[&["view", &url, "-n", "3", "--for", "6s"][..], &H264].concat()).expect_code(1);
    assert_eq!(ran.summary()["failures"]["http_409"], 2, "{ran}");
    assert!(ran.stdout.contains("1 of 3 publishers sent in "), "{ran}");
    let said = "409 Conflict: 1028: StreamBusy; give each publisher a stream of its own, by {n} in the URL's path or query";
    assert!(ran.stdout.contains(said), "{ran}");
    assert!(
        ran.stderr.contains("warning: all publishers go to ")
            && ran.stderr.contains("write {n} into"),
        "{ran}"
    );
    is_for_people(&ran);

    let ran =
        run(None, &[&["view", &whip(&stage, "{n}"), "-n", "3", "--for", "6s"][..], &H264].concat());
    let ran = ran.expect_code(0);
    assert!(ran.stdout.starts_with("3 publishers sent "), "{ran}");
    assert!(!ran.stdout.contains("viewer") || ran.stdout.contains("per viewer"), "{ran}");
    assert!(!ran.stderr.contains("warning: all"), "{ran}");
}

#[test]
fn a_codec_that_is_refused_says_which_to_try_with_words_of_the_server_and_without() {
    for (server, reason, said) in [
        (
            "srs",
            "http_400",
            "400 Bad Request: 5018: RtcSdpExchange; the offer has VP8 alone, try publish.codec = \"h264\"",
        ),
        (
            "srs-silent",
            "signalling_closed",
            "the server closed the connection without an answer; some servers (SRS before 7.0.121) do so because of the \
             codec: the offer has VP8 alone, try publish.codec = \"h264\"",
        ),
    ] {
        let stage = as_server(server);
        let ran =
            run(None, &["view", &whip(&stage, "{n}"), "-n", "2", "--for", "5s"]).expect_code(3);
        assert_eq!(ran.summary()["failures"][reason], 2, "{ran}");
        assert!(ran.stdout.contains(said), "{ran}");
        assert!(ran.stdout.starts_with("None of 2 publishers connected: 2 failed with "), "{ran}");
        assert!(ran.stdout.contains(": publisher 0: POST http://127.0.0.1:"), "{ran}");
        is_for_people(&ran);
    }
}

#[test]
fn a_check_shows_the_first_urls_and_refuses_names_where_none_can_be() {
    assert!(Path::new(EXAMPLE).exists());
    let text = |args: &[&str]| {
        let out = plain(args);
        let said = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    let (code, said) = text(&["check", EXAMPLE]);
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "url         whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream=cam0\n",
        "url         whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream=cam2 and 7 more\n",
        "100 viewers, one every 100 ms with jitter (seed 1), on 10 streams by Zipf's law",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
    for (url, expect) in [
        ("whip+http://127.0.0.{n}/x", "scheme, host or port"),
        ("whip+http://127.0.0.1/{number}", "write {n} (the participant's number in its cohort)"),
        ("whep+http://127.0.0.1/{stream}", "write streams = 10"),
    ] {
        for command in ["view", "find"] {
            let (code, said) = text(&[command, url]);
            assert!(code == Some(2) && said.contains(expect), "{command} {url}: {said}");
        }
    }
    let (code, said) =
        text(&["view", "whip+http://127.0.0.1:9/{n}", "--set", "crowd.publish.codec=h264"]);
    assert!(code == Some(2) && said.contains("`video` is missing"), "{said}");
    assert!(said.contains("help: add video = \"240p\""), "{said}");
}
