//! What errors say, to the letter: place, message and help of a wrong value of each kind.

use crate::Scenario;

/// Four lines: the keys of a test begin in the fifth.
const VIEWERS: &str = "[target]\nurl = \"http://127.0.0.1/a.m3u8\"\n[crowd]\nsize = 3\n";

/// What is said of a text: `LINE:COLUMN MESSAGE | HELP` of each error.
fn said(text: &str) -> Vec<String> {
    let error = Scenario::parse(text).expect_err(text);
    let line = |error: &crate::Diagnostic| {
        let at = error.location.as_ref().map(|place| format!("{}:{} ", place.line, place.column));
        let help = error.help.as_deref().unwrap_or_default();
        format!("{}{} | {help}", at.unwrap_or_default(), error.message)
    };
    error.diagnostics.iter().map(line).collect()
}

#[test]
fn a_wrong_value_has_its_place_what_was_expected_and_what_to_write() {
    let no_duration = "is not a duration such as `100ms`, `1.5s`, `2m` or `1h30m`";
    let unit = "text with a unit such as";
    let whole = "a whole number from";
    for (keys, expect) in [
        (
            "[run]\nduration = 60",
            format!("6:12 `run.duration` is not {unit} \"60s\" | write {unit} \"60s\""),
        ),
        (
            "[run]\nduration = \"soon\"",
            format!("6:12 `run.duration`: `soon` {no_duration} | write duration = \"60s\""),
        ),
        (
            "[run]\nwarm_up = \"5\"",
            format!("6:11 `run.warm_up`: `5` {no_duration} | write warm_up = \"5s\""),
        ),
        (
            "[run]\nsummary_every = \"50ms\"",
            "6:17 `run.summary_every` is less than 100 ms | write summary_every = \"5s\"".into(),
        ),
        (
            "[run]\nxyzzy = 1",
            "6:1 unknown key `xyzzy` in `run` | known keys: duration, warm_up, summary_every"
                .into(),
        ),
        (
            "[stream]\nvideo = \"fast\"",
            "6:9 `stream.video`: `fast` is not a bit rate such as `256kbit/s` or `1.5Mbit/s` | \
             write video = \"1Mbit/s\""
                .into(),
        ),
        (
            "[stream]\naudio = 48",
            format!("6:9 `stream.audio` is not {unit} \"48kbit/s\" | write {unit} \"48kbit/s\""),
        ),
        (
            "[stream]\nfps = 0",
            "6:7 `stream.fps` is not a number above 0 | write a number above 0".into(),
        ),
        (
            "[output]\nfolder = 5",
            "6:10 `output.folder` is not text such as \"runs/monday\" | write text such as \
             \"runs/monday\""
                .into(),
        ),
        ("[output]\ncsv = 1", "6:7 `output.csv` is not true or false | write true or false".into()),
        (
            "[caps]\nusers = 0",
            format!(
                "6:9 `caps.users` is not {whole} 1 to 4294967295 | write {whole} 1 to 4294967295"
            ),
        ),
        (
            "[caps]\njoins_per_s = -1",
            "6:15 `caps.joins_per_s` is not a number above 0 | write a number above 0".into(),
        ),
        (
            "[caps]\nduration = \"long\"",
            format!("6:12 `caps.duration`: `long` {no_duration} | write duration = \"60m\""),
        ),
        (
            "[tap]\nparticipants = 0",
            format!(
                "6:16 `tap.participants` is not {whole} 1 to 1000 (the first to join), or a list \
                 such as [0, 17] | write participants = 3"
            ),
        ),
        (
            "[tap]\nparticipants = 1\ndecode = 1",
            "7:10 `tap.decode` is not true or false | write true or false".into(),
        ),
        (
            "[canary]\nbrowsers = 17",
            format!("6:12 `canary.browsers` is not {whole} 1 to 16 | write {whole} 1 to 16"),
        ),
        (
            "[canary]\nbrowsers = 1\nat = \"2\"",
            format!("7:6 `canary.at`: `2` {no_duration} | write at = \"2s\""),
        ),
        (
            "[canary]\nbrowsers = 1\nbrowser = \"\"",
            "7:11 `canary.browser` is empty | write browser = \"/usr/bin/chromium\", or leave it \
             out"
            .into(),
        ),
        (
            "[canary]\nbrowsers = 1\nbrowser = 5",
            "7:11 `canary.browser` is not the path of a program | write the path of a program"
                .into(),
        ),
        (
            "[conversation]\noverlap = 2",
            "6:11 `conversation.overlap` is not a share from 0 to 1 | write overlap = 0.1".into(),
        ),
        (
            "[conversation]\nseed = -1",
            format!(
                "6:8 `conversation.seed` is not {whole} 0 to 9223372036854775807 | write {whole} \
                 0 to 9223372036854775807"
            ),
        ),
        (
            "[conversation]\ntalkspurt = \"1ms\"",
            "6:13 `conversation.talkspurt` must be from 1 s to 1 h, and `conversation.pause` at \
             most 1 h | write talkspurt = \"6s\""
                .into(),
        ),
        (
            "[room]\nadmin_key = \"env:\"",
            "6:13 `room.admin_key` has no name after `env:` or `file:` | write env:NAME or \
             file:PATH to keep it out of this file, or the token itself"
                .into(),
        ),
        (
            "[room]\npublishers = 0",
            format!(
                "6:14 `room.publishers` is not {whole} 1 to 100000 | write {whole} 1 to 100000"
            ),
        ),
        (
            "[room]\nvideo_codecs = [\"mp3\"]",
            "6:17 `room.video_codecs` is not a list of codecs, each one of \"vp8\", \"h264\", \
             \"h265\", \"vp9\", \"av1\" | write video_codecs = [\"vp8\"]"
                .into(),
        ),
    ] {
        assert_eq!(said(&format!("{VIEWERS}{keys}\n")), [expect], "{keys}");
    }
}

#[test]
fn a_wrong_value_of_peers_has_what_was_expected_and_what_to_write() {
    let whole = "a whole number from";
    for (keys, expect) in [
        (
            "preset = \"moon\"",
            "preset` is not one of \"lan\", \"hosted\", \"home\" | write one of \"lan\", \
             \"hosted\", \"home\""
                .to_owned(),
        ),
        (
            "engine = \"2.4\"",
            "engine` is not one of \"2.2\", \"2.3\", \"4.0\", \"0.6\" | did you mean \"2.2\"?"
                .into(),
        ),
        (
            "tracker = \"http://h/\"",
            "tracker` is not a URL of ws: or wss | write tracker = \"wss://HOST/tracker/socket\""
                .into(),
        ),
        (
            "hashes = 5",
            "hashes` is not https://HOST/…/segments-sha256.json | write \
             https://HOST/…/segments-sha256.json"
                .into(),
        ),
        ("swarm = 5", "swarm` is not a name | write a name".into()),
        (
            "upload_bps = 0",
            format!(
                "upload_bps` is not {whole} 1 to 100000000000 | write {whole} 1 to 100000000000"
            ),
        ),
        ("sharers = 2", "sharers` is not a share from 0 to 1 | write sharers = 0.3".into()),
        ("degree = 0", format!("degree` is not {whole} 1 to 10000 | write {whole} 1 to 10000")),
        (
            "until = \"0s\"",
            "until` is not after from: peers would never be used | write a later until, or remove \
             it"
            .into(),
        ),
    ] {
        let all = said(&format!("{VIEWERS}player = {{ p2p = {{ {keys} }} }}\n"));
        let key = keys.split(' ').next().unwrap_or_default();
        let column = "player = { p2p = { ".len() + key.len() + " = ".len() + 1;
        assert_eq!(all, [format!("5:{column} `crowd.player.p2p.{expect}")], "{keys}");
    }
}

#[test]
fn what_is_no_table_or_lacks_a_key_says_so() {
    for (first, last, expect) in [
        ("run = 3\n", "", "1:7 `run` is not a table `[run]` | write a table `[run]`"),
        (
            "tap = 3\n",
            "",
            "1:7 `tap` is not a table such as { participants = 3 } | write a table such as { \
             participants = 3 }",
        ),
        (
            "canary = 3\n",
            "",
            "1:10 `canary` is not a table such as { browsers = 1 } | write a table such as { \
             browsers = 1 }",
        ),
        ("room = 3\n", "", "1:8 `room` is not a table `[room]` | write a table `[room]`"),
        (
            "conversation = 3\n",
            "",
            "1:16 `conversation` is not a table `[conversation]` | write a table `[conversation]`",
        ),
        (
            "",
            "tap = {}\n",
            "1:7 `tap.participants` is missing | write under [tap] participants = 3",
        ),
        (
            "",
            "canary = {}\n",
            "1:10 `canary.browsers` is missing | write under [canary] browsers = 1",
        ),
    ] {
        assert_eq!(said(&format!("{first}{last}{VIEWERS}")), [expect], "{first}{last}");
    }
}

#[test]
fn all_wrong_keys_of_a_table_are_named_at_once() {
    let keys = "[run]\nduration = 1\nwarm_up = 2\nsummary_every = 3\n[caps]\nusers = 0\nmore = 1\n";
    let all = said(&format!("{VIEWERS}{keys}"));
    let places: Vec<&str> = all.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(places, ["6:12", "7:11", "8:17", "10:9", "11:1"], "{all:#?}");
}
