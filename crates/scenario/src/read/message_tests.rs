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

/// Checks what is said of the first key in `keys` of a table of a cohort, between `before` and
/// `after`.
fn says(before: &str, keys: &str, after: &str, expect: &str) {
    let all = said(&format!("{VIEWERS}{before}{keys}{after}\n"));
    let key = keys.split(' ').next().unwrap_or_default();
    let column = before.len() + key.len() + " = ".len() + 1;
    assert_eq!(all, [format!("5:{column} `{expect}")], "{keys}");
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
            "7:11 `canary.browser` is empty | write browser = \"/usr/bin/chromium\"".into(),
        ),
        (
            "[canary]\nbrowsers = 1\nbrowser = 5",
            "7:11 `canary.browser` is not the path of a program such as \"/usr/bin/chromium\" | \
             write the path of a program such as \"/usr/bin/chromium\""
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
        (
            "swarm = 5",
            "swarm` is not a name such as \"live\" | write a name such as \"live\"".into(),
        ),
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
        says("player = { p2p = { ", keys, " } }", &format!("crowd.player.p2p.{expect}"));
    }
}

#[test]
fn a_wrong_value_of_a_player_has_what_was_expected_and_what_to_write() {
    let no_duration = "is not a duration such as `100ms`, `1.5s`, `2m` or `1h30m`";
    let unit = "text with a unit such as";
    let headers = "a table such as { Accept-Language = \"en\", X-Session = \"env:SESSION\" }";
    let page = "text such as \"https://www.example.com/watch\"";
    let origins = "a table such as { \"https://static.example\" = \"http://127.0.0.1:8080\" }";
    let peers = "a table such as { preset = \"home\", tracker = \"wss://HOST/tracker/socket\" }";
    let seed = "a whole number from 0 to 9223372036854775807";
    let is_not = |key: &str, expected: &str| format!("{key}` is not {expected} | write {expected}");
    for (keys, expect) in [
        ("format = \"moon\"", is_not("format", "one of \"auto\", \"file\", \"hls\", \"dash\"")),
        (
            "http = \"moon\"",
            is_not("http", "one of \"negotiated\", \"1.1\", \"2\", \"3\", \"browser\""),
        ),
        (
            "http = {}",
            "http` has no weight above 0 | write http = { \"3\" = 41, \"2\" = 51, \"1.1\" = \
             8 }"
                .into(),
        ),
        ("headers = 5", is_not("headers", headers)),
        ("page = 5", is_not("page", page)),
        (
            "page = \"ftp://a/\"",
            "page` is not the URL of a page of http or https | write page = \
             \"https://www.example.com/watch\""
                .into(),
        ),
        (
            "page = \"http://a/\", headers = { Referer = \"http://b/\" }",
            "page`: `Referer` is sent for this page, and headers has another one | remove \
             headers.Referer, or page"
                .into(),
        ),
        ("har = 5", is_not("har", "text such as \"watch.har\"")),
        ("har = \"\"", "har` is empty | write har = \"watch.har\"".into()),
        ("warm = 0.5", "warm` has no effect without har | add har, or remove it".into()),
        (
            "warm = 2, har = \"a.har\"",
            "warm` is not a share from 0 to 1 | write warm = 0.3".into(),
        ),
        ("warm_age = 5, har = \"a.har\", warm = 1", is_not("warm_age", &format!("{unit} \"1h\""))),
        ("origins = 5, har = \"a.har\"", is_not("origins", origins)),
        (
            "credentials = \"moon\"",
            is_not("credentials", "one of \"same-origin\", \"include\", \"omit\""),
        ),
        ("buffer = 5", is_not("buffer", &format!("{unit} \"30s\""))),
        ("buffer = \"2h\"", "buffer` must be from 0.5 s to 1 h | write buffer = \"30s\"".into()),
        (
            "start = \"50s\"",
            "start` is longer than the buffer: playback would never begin | write a shorter start, \
             or a longer buffer"
                .into(),
        ),
        ("start = 5", is_not("start", &format!("{unit} \"1s\""))),
        ("position = 5", is_not("position", "\"random\", or a time such as \"90s\"")),
        (
            "position = \"soon\"",
            format!(
                "position`: `soon` {no_duration} | write position = \"random\", or a time such as \
                 \"90s\""
            ),
        ),
        ("seek_every = 5", is_not("seek_every", &format!("{unit} \"60s\""))),
        (
            "seek_every = \"10ms\"",
            "seek_every` is less than 1 s | write seek_every = \"60s\"".into(),
        ),
        ("pause_every = 5", is_not("pause_every", &format!("{unit} \"120s\""))),
        (
            "pause_for = 5, pause_every = \"2m\"",
            is_not("pause_for", &format!("{unit} \"10s\"")),
        ),
        (
            "pause_for = \"2s\"",
            "pause_for` has no effect without pause_every | add pause_every = \"120s\", or \
             remove it"
                .into(),
        ),
        ("scale = 0", "scale` is not a speed such as 2, 0.5 or -1 | write scale = 2.0".into()),
        ("patience = 5", is_not("patience", &format!("{unit} \"30s\""))),
        ("repeat = 1", is_not("repeat", "true or false")),
        (
            "rendition = \"moon\"",
            is_not("rendition", "one of \"adaptive\", \"lowest\", \"highest\""),
        ),
        ("screen = 360", is_not("screen", "a size such as \"360p\"")),
        (
            "screen = \"large\"",
            "screen` is not a size such as \"360p\" | write screen = \"360p\"".into(),
        ),
        ("latency = 5", is_not("latency", &format!("{unit} \"20s\""))),
        (
            "latency = \"0s\"",
            "latency` is 0: what is not there yet cannot be played | write latency = \"20s\", or \
             remove it"
                .into(),
        ),
        ("latency_max = 5", is_not("latency_max", &format!("{unit} \"60s\""))),
        (
            "latency_max = \"1s\", latency = \"2s\"",
            "latency_max` is not longer than latency | write a longer latency_max, or a shorter \
             latency"
                .into(),
        ),
        ("low_latency = 1", is_not("low_latency", "true or false")),
        ("preload_hints = 1", is_not("preload_hints", "true or false")),
        (
            "catch_up = 3",
            "catch_up` is not a speed from 1 to 2 | write catch_up = 1.5".into(),
        ),
        ("p2p = 5", is_not("p2p", peers)),
        ("seed = -1", is_not("seed", seed)),
    ] {
        says("player = { ", keys, " }", &format!("crowd.player.{expect}"));
    }
}

#[test]
fn a_wrong_value_of_a_chat_has_what_was_expected_and_what_to_write() {
    let unit = "text with a unit such as";
    let url = "\"xmpp+wss://HOST/PATH?room=ROOM@SERVICE\"";
    let of_chat = format!("the URL of a chat such as {url}");
    let moments = "a list such as [{ at = \"10m\", share = 0.2, within = \"10s\" }]";
    let template = "a table such as { join = [\"JOIN {room}\"], say = \"SAY {text}\" }";
    let origin = "an origin such as \"https://www.example.com\"";
    let seed = "a whole number from 0 to 9223372036854775807";
    let is_not = |key: &str, expected: &str| format!("{key}` is not {expected} | write {expected}");
    for (keys, expect) in [
        ("url = 5", is_not("url", &of_chat)),
        (
            "url = \"http://127.0.0.1/\"",
            format!("url` is HTTP video, not a chat | write url = {url}"),
        ),
        ("vcards = \"moon\"", is_not("vcards", "one of \"all\", \"authors\", \"none\"")),
        ("history = 5000", is_not("history", "a whole number from 0 to 1000")),
        ("chat_states = 1", is_not("chat_states", "true or false")),
        ("every = 5", is_not("every", &format!("{unit} \"2m\""))),
        ("every = \"1ms\"", "every` is less than 100 ms | write for example every = \"2m\"".into()),
        ("moments = \"now\"", format!("moments` is not a list | write {moments}")),
        ("origin = 5", is_not("origin", origin)),
        (
            "origin = \"ftp://a\"",
            "origin` is not an origin | write origin = \"https://www.example.com\"".into(),
        ),
        ("nick_change = 5", is_not("nick_change", &format!("{unit} \"30%\""))),
        (
            "nick_change = \"130%\"",
            "nick_change` is more than 100 % | write for example nick_change = \"30%\"".into(),
        ),
        (
            "nick_change_within = \"1m\"",
            "nick_change_within` has no effect: nobody changes a nickname | remove it, or write \
             nick_change = \"30%\""
                .into(),
        ),
        ("stream_management = 1", is_not("stream_management", "true or false")),
        ("template = 5", is_not("template", template)),
        ("seed = -1", is_not("seed", seed)),
    ] {
        says("chat = { ", keys, " }", &format!("crowd.chat.{expect}"));
    }
}

#[test]
fn a_wrong_value_of_a_cohort_has_what_was_expected_and_what_to_write() {
    let unit = "text with a unit such as";
    let arrival = "a table such as { every = \"100ms\" }, { ramp = \"60s\" }, { burst = { size = \
                   50, every = \"10s\" } } or { poisson = { rate = \"5/s\", seed = 7 } }";
    let stay = "a duration such as \"30s\" or a table such as { mean = \"30s\", seed = 1, rejoin = \
                true }";
    let streams = "a number of streams such as 10, or a table such as { count = 10, zipf = 1.0, \
                   seed = 1 }";
    let subscribe = "\"all\", \"none\", \"last_speakers(10)\", or a table such as { video = \
                     \"last_speakers(10)\", audio = \"all\" }";
    let layers = "\"low\", \"medium\", \"high\", or a list such as [{ after = \"10s\", layer = \
                  \"high\" }]";
    let is_not = |key: &str, expected: &str| format!("{key}` is not {expected} | write {expected}");
    for (keys, expect) in [
        ("url = 5", is_not("url", "a URL such as \"janus+ws://127.0.0.1:8188/streaming/1\"")),
        ("streams = 0", is_not("streams", "a whole number from 1 to 100000")),
        (
            "streams = \"many\"",
            format!(
                "streams` is not {streams} | write streams = 10 or streams = {{ count = 10, zipf = \
                 1.0, seed = 1 }}"
            ),
        ),
        ("arrival = 5", is_not("arrival", arrival)),
        (
            "arrival = {}",
            format!(
                "arrival` must have exactly one of every, ramp, burst and poisson | write {arrival}"
            ),
        ),
        ("starts_at = 5", is_not("starts_at", &format!("{unit} \"10m\""))),
        ("stay = 5", is_not("stay", stay)),
        ("stay = {}", format!("stay` needs either `exactly` or `mean` | write {stay}")),
        (
            "source_ips = 5",
            is_not("source_ips", "a list of addresses such as [\"127.0.0.2-127.0.0.20\"]"),
        ),
        ("subscribe = 5", is_not("subscribe", subscribe)),
        ("layers = \"best\"", format!("layers` is not a layer | write {layers}")),
        (
            "layers = []",
            format!("layers` is neither a layer nor a list of 1 to 100 | write {layers}"),
        ),
        ("speaking_weight = -1", is_not("speaking_weight", "a whole number from 0 to 1000")),
        (
            "script = 5",
            "script` is not a list of at most 1000 tables | write a list of tables, each a table \
             such as { at = \"30s\", mute = \"audio\", for = \"10s\" }"
                .into(),
        ),
        ("connection_per_feed = 1", is_not("connection_per_feed", "true or false")),
        (
            "player = 5",
            is_not("player", "a table such as { buffer = \"30s\", position = \"random\" }"),
        ),
        ("chat = 5", is_not("chat", "a table such as { every = \"2m\", vcards = \"authors\" }")),
    ] {
        says("", keys, "", &format!("crowd.{expect}"));
    }
}

#[test]
fn a_wrong_value_of_what_is_published_has_what_was_expected_and_what_to_write() {
    let table = "\"none\", or a table such as { video = \"240p\", audio = true }";
    let sizes = "one of \"144p\", \"180p\", \"240p\", \"360p\", \"720p\", \"1080p\"";
    let codecs = "one of \"vp8\", \"h264\", \"h265\", \"vp9\", \"av1\", \"opus\"";
    let ssrc = "a whole number from 0 to 4294967295";
    let is_not = |key: &str, expected: &str| format!("{key}` is not {expected} | write {expected}");
    says("", "publish = 5", "", &format!("crowd.{}", is_not("publish", table)));
    for (keys, expect) in [
        ("video = \"moon\"", is_not("video", sizes)),
        (
            "video = \"a.xyz\"",
            "video` has no known file name extension | name a file with one of the extensions \
             .mjr, .ivf, .h264, .264, .h265, .265, .hevc, .ogg, .opus, .pcap, .cap"
                .into(),
        ),
        ("audio = 1", is_not("audio", "true or false")),
        ("codec = \"moon\"", is_not("codec", codecs)),
        (
            "codec = \"h264\"",
            "codec` has no effect: `video` is missing | add video = \"240p\", or remove codec to \
             send audio only"
                .into(),
        ),
        ("adapt = 1", is_not("adapt", "true or false")),
        ("burn_clock = 1", is_not("burn_clock", "true or false")),
        ("fps = 2000, video = \"a.h264\"", "fps` must be from 0.1 to 1000 | write fps = 30".into()),
        (
            "fps = 30",
            "fps` has no effect: `video` is not a file | remove fps, or name a file as `video`"
                .into(),
        ),
        ("ssrc = -1, video = \"a.pcap\"", is_not("ssrc", ssrc)),
        (
            "audio_ssrc = 7",
            "audio_ssrc` has no effect: `audio` is not a file | remove audio_ssrc, or name a file \
             as `audio`"
                .into(),
        ),
    ] {
        says("publish = { ", keys, " }", &format!("crowd.publish.{expect}"));
    }
}

#[test]
fn a_wrong_value_of_a_reconnect_has_what_was_expected_and_what_to_write() {
    let unit = "text with a unit such as";
    let table = "a table such as { at = \"60s\", within = \"2s\" }";
    for (keys, expect) in [
        ("at = 5", format!("reconnect.at` is not {unit} \"60s\" | write {unit} \"60s\"")),
        (
            "within = 5, at = \"9s\"",
            format!("reconnect.within` is not {unit} \"2s\" | write {unit} \"2s\""),
        ),
    ] {
        says("reconnect = { ", keys, " }", &format!("crowd.{expect}"));
    }
    says("", "reconnect = 5", "", &format!("crowd.reconnect` is not {table} | write {table}"));
    let missing = "crowd.reconnect.at` is missing | write for example at = \"60s\"";
    says("", "reconnect = {}", "", missing);
}

/// Checks what is said of the first key in `keys`, below `table`, which is all of a file but its
/// `[crowd]`.
fn says_of(table: &str, keys: &str, expect: &[&str]) {
    let all = said(&format!("{table}{keys}\n[crowd]\nsize = 3\n"));
    let key = keys.split(' ').next().unwrap_or_default();
    let place = format!("{}:{} ", table.lines().count() + 1, key.len() + " = ".len() + 1);
    let expect: Vec<String> = expect.iter().map(|words| format!("{place}`{words}")).collect();
    assert_eq!(all, expect, "{keys}");
}

#[test]
fn a_wrong_value_of_a_target_has_what_was_expected_and_what_to_write() {
    let target = "[target]\nurl = \"janus+ws://127.0.0.1/videoroom/1\"\n";
    for (keys, expect) in [
        ("token = 5", "token` is not text | write text"),
        ("api_key = 5", "api_key` is not text such as \"devkey\" | write text such as \"devkey\""),
        ("room = \"\"", "room` is empty | write room = \"lesson\""),
        (
            "rooms = 0",
            "rooms` is not a whole number from 1 to 1000 | write a whole number from 1 to 1000",
        ),
        (
            "allow = 5",
            "allow` is not a list of networks such as [\"10.0.0.0/8\"] | write a list of networks \
             such as [\"10.0.0.0/8\"]",
        ),
        (
            "allow = \"10.0.0.1/8\"",
            "allow`: `10.0.0.1/8` has bits set beyond its prefix | write `10.0.0.0/8`, or \
             `10.0.0.1` for the one address",
        ),
        ("tls_insecure = 1", "tls_insecure` is not true or false | write true or false"),
        (
            "ice_transport_policy = \"none\"",
            "ice_transport_policy` is not one of \"all\", \"relay\" | write one of \"all\", \
             \"relay\"",
        ),
        (
            "stun = \"turn:10.0.0.1\"",
            "stun` is not stun:HOST or stun:HOST:PORT | write stun = \"stun:10.0.0.1:3478\"",
        ),
        (
            "turn = \"stun:10.0.0.1\"",
            "turn`: not a TURN URI | write turn = \"turn:10.0.0.1:3478?transport=tcp\"",
        ),
        (
            "rtsp_transport = \"auto\"",
            "rtsp_transport` has no effect: Janus VideoRoom is not RTSP | remove it",
        ),
    ] {
        says_of(target, keys, &[&format!("target.{expect}")]);
    }
    let part = "target` has only a part of a TURN server | write all of turn, turn_username and \
                turn_password, or none of them";
    says_of(target, "turn_username = \"me\"", &[part]);
    let part = "target` needs both `api_key` and `api_secret` to make tokens | write all of \
                api_key, \
                api_secret and, for WHIP, room; or none of them";
    says_of(target, "api_key = \"me\"", &[part]);
}

#[test]
fn a_wrong_url_of_a_target_hides_no_other_wrong_key() {
    let keys = "[target]\nurl = \"gopher://h/\"\nrooms = 0\nallow = 5\nstun = \"h\"\n\
                turn_username = \"me\"\nmore = 1\n[crowd]\nsize = 3\n";
    let all = said(keys);
    let places: Vec<&str> = all.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(places, ["2:7", "3:9", "4:9", "5:8", "6:17", "7:1"], "{all:#?}");
}

#[test]
fn a_wrong_value_of_a_watch_has_what_was_expected_and_what_to_write() {
    let watch = "[target]\nurl = \"http://127.0.0.1/a.m3u8\"\n[watch]\n";
    for (keys, expect) in [
        ("process = 5", "process` is not text such as \"janus\" | write text such as \"janus\""),
        ("process = \"/janus\"", "process` is a path | write process = \"janus\""),
        ("unit = \"\"", "unit` is empty | write unit = \"nginx.service\""),
        (
            "cgroup = \"janus\"",
            "cgroup` is not a path, as /proc/PID/cgroup has it | write cgroup = \
             \"/system.slice/janus.service\"",
        ),
        (
            "target = false",
            "target` is false, so that nothing is watched | write target = true, or remove the \
             table",
        ),
        (
            "command = []",
            "command` is empty | write a list of the program and its arguments such as \
             [\"/usr/sbin/nginx\"]",
        ),
        (
            "agent = \"tcp://10.0.0.1:1\"",
            "agent` is not on loopback and must use TLS | write agent = \"tls://HOST:PORT\", as \
             `throng watch --listen` prints it",
        ),
    ] {
        says_of(watch, keys, &[&format!("watch.{expect}")]);
    }
    let watch = format!("{watch}port = 1\n");
    for (keys, expect) in [
        ("every = \"1ms\"", "every` must be from 100 ms to 60 s | write every = \"1s\""),
        (
            "logs = 5",
            "logs` is not a list of files such as [\"/var/log/janus.log\"] | write a list of files \
             such as [\"/var/log/janus.log\"]",
        ),
        (
            "metrics = [\"ftp://h\"]",
            "metrics` has an entry that is not an HTTP URL | write metrics = \
             \"http://127.0.0.1:9090/metrics\"",
        ),
        ("profile = \"fial\"", "profile`: unknown moment `fial` | did you mean `fail`?"),
        ("pack = \"\"", "pack` is empty | write pack = \"janus\""),
    ] {
        let place = usize::from(keys.contains('['));
        let all = said(&format!("{watch}{keys}\n[crowd]\nsize = 3\n"));
        let column = keys.find('=').unwrap_or_default() + 3 + place;
        assert_eq!(all, [format!("5:{column} `watch.{expect}")], "{keys}");
    }
}

#[test]
fn all_settings_of_an_agent_are_named_at_once() {
    let keys = "[target]\nurl = \"http://127.0.0.1/a.m3u8\"\n[watch]\n\
                agent = \"tls://10.0.0.5:1\"\nport = 1\nlogs = \"/a\"\n[crowd]\nsize = 3\n";
    let all = said(keys);
    let places: Vec<&str> = all.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(places, ["4:9", "5:8", "6:8"], "{all:#?}");
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
