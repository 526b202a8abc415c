//! `throng decode` with a real FFmpeg: what it prints, and how it ends.

use std::process::{Command, Output};

use serde_json::Value;

fn throng(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_throng")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn counts_are_measured_and_printed_as_a_table_and_as_json() {
    // Small enough for any machine that runs other tests in parallel.
    let ran = throng(&[
        "decode",
        "--streams",
        "1,3",
        "--video",
        "vp8:160x120@10:64k",
        "--for",
        "1s",
        "--late",
        "2s",
    ]);
    let printed = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{printed}{}", text(&ran.stderr));
    for expect in [
        "VP8 160x120 at 10 fps, 64 kbit/s",
        "CPU/stream",
        "real time",
        "3 streams are decoded in real time",
    ] {
        assert!(printed.contains(expect), "{expect}: {printed}");
    }
    let ran = throng(&[
        "decode",
        "--up-to",
        "2",
        "--video",
        "h264:160x120@10:64k",
        "--for",
        "1s",
        "--late",
        "2s",
        "--json",
    ]);
    let json: Value = serde_json::from_str(&text(&ran.stdout)).unwrap();
    assert_eq!((ran.status.code(), &json["streams_max"]), (Some(0), &Value::from(2)), "{json:#}");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|row| row["streams"].as_u64()).collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
    for row in rows {
        let due = row["pictures_due"].as_u64().unwrap();
        assert!(due.abs_diff(10 * row["streams"].as_u64().unwrap()) <= 2, "{row:#}");
        assert!(row["cpu_cores"].as_f64().unwrap() > 0.0, "{row:#}");
    }
}

#[test]
fn a_count_that_is_too_much_is_a_miss_and_what_cannot_be_says_what_to_write() {
    // No stream is decoded in zero time.
    let ran = throng(&[
        "decode",
        "--streams",
        "2",
        "--video",
        "vp8:160x120@10:64k",
        "--for",
        "1s",
        "--late",
        "0ms",
    ]);
    assert_eq!(ran.status.code(), Some(1), "{}{}", text(&ran.stdout), text(&ran.stderr));
    assert!(text(&ran.stdout).contains("Not one of these counts"), "{}", text(&ran.stdout));
    for (arguments, expect) in [
        (&["decode", "--video", "vp8"][..], "vp8:320x240@30:256k"),
        (&["decode", "--ffmpeg", "/nowhere/ffmpeg"], "apt-get install ffmpeg"),
        (&["decode", "--run", "/nowhere"], "tap.keep=true"),
        (&["decode", "--streams", "1", "--for", "1ms"], "--for"),
        (
            &["decode", "--streams", "1", "--decoder", "no-such-thing", "--for", "1s"],
            "no-such-thing",
        ),
    ] {
        let ran = throng(arguments);
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expect), "{arguments:?}: {said}");
    }
}
