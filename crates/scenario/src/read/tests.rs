//! Laws of reading scenarios: what is accepted, what is refused and where, and that nothing panics.

use std::time::Duration;

use crate::arrival::{ArrivalKind, Burst, Every, Jitter, Poisson, Ramp};
use crate::{
    Caps, IceTransportPolicy, Origin, Override, Scenario, ScenarioError, ScenarioFlags, Stay,
    StayTime, TokenSource,
};

const FULL: &str = r#"objectives = ["video.loss p95 < 1%", "fps min > 0.9 of source"]

[target]
url = "janus+ws://127.0.0.1:8188/streaming/1"
token = "env:TOKEN"
allow = ["10.0.0.0/8", "fd00::/8"]
tls_insecure = true

[crowd]
name = "audience"
size = 100
arrival = { poisson = { rate = "5/s", seed = 7 } }
stay = { mean = "30s", seed = 1, rejoin = true }
source_ips = ["127.0.0.2-127.0.0.20"]

[run]
duration = "1m30s"
warm_up = "5s"
summary_every = "2s"

[stream]
video = "1.5Mbit/s"
audio = "48kbit/s"
fps = 29.97

[output]
folder = "runs/monday"
csv = true

[caps]
users = 200
joins_per_s = 50
mbit_per_s = 300.5
duration = "2h"

[[watch]]
name = "sfu"
process = "janus"
every = "500ms"
logs = ["/var/log/janus.log"]
access_log = "/var/log/nginx/access.log"
metrics = ["http://127.0.0.1:9090/metrics"]
profile = ["baseline", "full", { at = "30s", for = "5s" }]
pack = "janus"

[[watch]]
command = ["/usr/sbin/nginx", "-g", "daemon off;"]

[[watch]]
agent = "tls://10.0.0.5:7081"
token = "env:AGENT"
fingerprint = "sha256:00112233445566778899AABBCCDDEEFF:00112233445566778899aabbccddeeff"
profile = "fail"
"#;

const SMALL: &str = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";

/// Every scenario of the repository, by the name of its file.
fn examples() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scenarios =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    scenarios
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.file_name().unwrap().to_string_lossy().into_owned(), text)
        })
        .collect()
}

fn example(name: &str) -> String {
    examples().into_iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("no {name}")).1
}

fn read(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn set(text: &str, settings: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<Override> =
        settings.iter().map(|text| Override::parse(text).unwrap()).collect();
    Scenario::parse_with(text, &overrides)
}

#[test]
fn a_file_that_says_everything_is_read_as_written() {
    let scenario = read(FULL);
    let crowd = &scenario.crowd[0];
    assert_eq!(scenario.target.token, Some(TokenSource::Environment("TOKEN".into())));
    assert_eq!((scenario.target.allow.len(), scenario.target.tls_insecure), (2, true));
    assert_eq!((crowd.name.as_str(), crowd.size), ("audience", 100));
    assert_eq!(crowd.arrival, ArrivalKind::Poisson(Poisson { rate_per_s: 5.0, seed: 7 }));
    let time = StayTime::Exponential { mean: Duration::from_secs(30), seed: 1 };
    assert_eq!(crowd.stay, Some(Stay { time, rejoin: true }));
    assert_eq!(scenario.run.duration, Duration::from_secs(90));
    assert_eq!(scenario.stream.fps, Some(29.97));
    assert_eq!(scenario.output.folder.as_deref(), Some("runs/monday"));
    assert_eq!((scenario.caps.users, scenario.caps.mbit_per_s), (Some(200), Some(300.5)));
    assert_eq!(scenario.objectives.len(), 2);
}

#[test]
fn what_is_left_out_has_a_default() {
    let scenario = read(SMALL);
    let jitter = Some(Jitter { seed: 1 });
    let interval = Duration::from_millis(100);
    assert_eq!(scenario.crowd[0].arrival, ArrivalKind::Every(Every { interval, jitter }));
    assert_eq!(scenario.run.duration, Duration::from_secs(60));
    assert_eq!(scenario.run.summary_every, Duration::from_secs(5));
    assert_eq!((scenario.caps.clone(), scenario.crowd[0].stay), (Caps::NONE, None));
    let remote = read(&SMALL.replace("127.0.0.1", "media.example.org"));
    assert_eq!(remote.caps, Caps::DEFAULT);
}

#[test]
fn each_way_of_arriving_is_read() {
    let second = Duration::from_secs(1);
    let every = |jitter| ArrivalKind::Every(Every { interval: second, jitter });
    let ramp = |jitter| ArrivalKind::Ramp(Ramp { over: second, jitter });
    for (text, expect) in [
        ("{ every = \"1s\" }", every(Some(Jitter { seed: 1 }))),
        ("{ every = \"1s\", jitter = true, seed = 7 }", every(Some(Jitter { seed: 7 }))),
        ("{ every = \"1s\", jitter = false }", every(None)),
        ("{ ramp = \"1s\", seed = 7 }", ramp(Some(Jitter { seed: 7 }))),
        ("{ ramp = \"1s\", jitter = false }", ramp(None)),
        (
            "{ burst = { size = 2, every = \"1s\" } }",
            ArrivalKind::Burst(Burst { size: 2, every: second }),
        ),
        (
            "{ poisson = { rate = \"30/min\" } }",
            ArrivalKind::Poisson(Poisson { rate_per_s: 0.5, seed: 1 }),
        ),
    ] {
        assert_eq!(read(&format!("{SMALL}arrival = {text}\n")).crowd[0].arrival, expect);
    }
    for (text, help) in [
        ("{ every = \"1s\", jitter = false, seed = 7 }", "remove seed"),
        ("{ every = \"1s\", jitter = \"1s\" }", "true or false"),
        ("{ burst = { size = 2, every = \"1s\" }, jitter = true }", "remove it"),
        ("{ poisson = { rate = \"5/s\" }, seed = 7 }", "remove it"),
        ("{ every = \"1s\", jiter = false }", "did you mean `jitter`?"),
    ] {
        let error =
            Scenario::parse(&format!("{SMALL}arrival = {text}\n")).expect_err(text).to_string();
        assert!(error.contains(help), "{text}: {error}");
    }
}

#[test]
fn a_scenario_that_was_stored_without_jitter_ran_without() {
    let stored = |arrival: &str| {
        let text = format!("{SMALL}arrival = {arrival}\n");
        Scenario::parse_stored(&text).unwrap_or_else(|error| panic!("{error}")).crowd[0]
            .arrival
            .clone()
    };
    let interval = Duration::from_secs(1);
    assert_eq!(stored("{ every = \"1s\" }"), ArrivalKind::Every(Every { interval, jitter: None }));
    let written = read(&format!("{SMALL}arrival = {{ every = \"1s\" }}\n"));
    let again =
        Scenario::parse_stored(&written.to_toml()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.crowd, written.crowd);
}

#[test]
fn a_scenario_written_as_toml_reads_back_as_the_same() {
    let variants = [
        "arrival = { ramp = \"7s\" }\nstay = \"3s\"",
        "arrival = { ramp = \"7s\", jitter = false }",
        "arrival = { every = \"1s\", seed = 9 }",
        "arrival = { burst = { size = 3, every = \"1500ms\" } }\nstay = { exactly = \"1m\", rejoin = true }",
    ];
    let mut texts = vec![FULL.to_owned()];
    texts.extend(examples().into_iter().map(|(_, text)| text));
    texts.extend(variants.iter().map(|more| format!("{SMALL}{more}\n")));
    for text in texts {
        let scenario = read(&text);
        assert_eq!(read(&scenario.to_toml()), scenario, "{}", scenario.to_toml());
    }
}

#[test]
fn a_stored_scenario_holds_no_secret_and_asks_for_it_when_run_again() {
    let text = SMALL
        .replace("7080/whep\"", "7080/whep?key=hunter2\"\ntoken = \"hunter2\"")
        .replace("http://", "http://joe:hunter2@");
    let stored = read(&text).to_toml();
    assert!(!stored.contains("hunter2"), "{stored}");
    let error = Scenario::parse(&stored).unwrap_err().to_string();
    assert!(error.contains("redacted when this scenario was stored"), "{error}");
    // The objectives of the run can still be read.
    let asked = Scenario::parse_stored(&stored).unwrap_or_else(|error| panic!("{stored}\n{error}"));
    assert_eq!((&asked.objectives, &asked.run), (&read(&text).objectives, &read(&text).run));
    assert_eq!(asked.to_toml(), stored);
}

#[test]
fn a_run_that_was_stored_before_publishers_had_a_prefix_can_still_be_read() {
    for (stored, url) in [
        ("rtmp://h/live/…", "publish+rtmp://h/live/…"),
        ("RTMP://h/live/cam{n}", "publish+RTMP://h/live/…{n}"),
        ("rtmps://127.0.0.1/live/key#1", "publish+rtmps://127.0.0.1/live/…"),
        ("srt://h:9000?streamid=#!::r=live/x,m=publish", "publish+srt://h:9000/?streamid=…"),
        ("publish+rtsp://h/live#1", "publish+rtsp://h/live"),
        ("rtsp://h/cam#1", "rtsp://h/cam"),
        ("whep+http://h/x#1", "whep+http://h/x"),
    ] {
        let text = SMALL.replace("whep+http://127.0.0.1:7080/whep", stored);
        assert!(text.contains(stored), "{text}");
        let asked = Scenario::parse_stored(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!(asked.target.display(), url);
        if !stored.starts_with("whep") {
            assert!(Scenario::parse(&text).is_err(), "nobody runs it unknowingly: {text}");
        }
    }
}

#[test]
fn overrides_replace_add_and_choose() {
    let scenario = set(
        FULL,
        &[
            "crowd.size=50",
            "crowd.arrival.every=1s",
            "run.duration=2m",
            "crowd.name=42",
            "target.token=7",
            "crowd.stay=9s",
        ],
    )
    .unwrap();
    assert_eq!(scenario.crowd[0].size, 50);
    let (interval, jitter) = (Duration::from_secs(1), Some(Jitter { seed: 1 }));
    assert_eq!(scenario.crowd[0].arrival, ArrivalKind::Every(Every { interval, jitter }));
    assert_eq!(scenario.run.duration, Duration::from_secs(120));
    // Bare words and numbers are text where text is expected.
    assert_eq!(scenario.crowd[0].name, "42");
    assert!(
        matches!(scenario.target.token, Some(TokenSource::Inline(secret)) if secret.expose() == "7")
    );
    let objectives = set(FULL, &["objectives=[\"failed < 2%\"]"]).unwrap().objectives;
    assert_eq!(objectives[0].text, "failed < 2%");
    let stay =
        set(&format!("{SMALL}stay = \"30s\"\n"), &["crowd.stay.mean=5s"]).unwrap().crowd[0].stay;
    assert!(matches!(stay.unwrap().time, StayTime::Exponential { .. }));
}

#[test]
fn another_kind_of_arrival_replaces_the_first_and_keeps_a_jitter_that_it_has_too() {
    let exact = format!("{SMALL}arrival = {{ every = \"1s\", jitter = false }}\n");
    let arrival = |text: &str, sets: &[&str]| {
        set(text, sets).unwrap_or_else(|error| panic!("{error}")).crowd[0].arrival.clone()
    };
    let over = Duration::from_secs(9);
    assert_eq!(
        arrival(&exact, &["crowd.arrival.ramp=9s"]),
        ArrivalKind::Ramp(Ramp { over, jitter: None })
    );
    let poisson = arrival(&exact, &["crowd.arrival.poisson={ rate = \"5/s\" }"]);
    assert_eq!(poisson, ArrivalKind::Poisson(Poisson { rate_per_s: 5.0, seed: 1 }));
    // Without a kind it is the jitter of the default.
    let exactly = Every { jitter: None, ..Every::default() };
    assert_eq!(arrival(SMALL, &["crowd.arrival.jitter=false"]), ArrivalKind::Every(exactly));
    let seeded = Every { jitter: Some(Jitter { seed: 7 }), ..Every::default() };
    assert_eq!(arrival(SMALL, &["crowd.arrival.seed=7"]), ArrivalKind::Every(seeded));
}

#[test]
fn a_relay_is_used_where_there_can_be_one_and_the_scenario_or_the_url_asks_for_it() {
    let ome = SMALL.replace("whep+http://127.0.0.1:7080/whep", "ws://127.0.0.1:3333/app/stream");
    let asked = ome.replace("/stream", "/stream?transport=tcp");
    for (text, settings, expect) in [
        (&ome, &[][..], IceTransportPolicy::All),
        (&ome, &["target.ice_transport_policy=relay"], IceTransportPolicy::Relay),
        (&asked, &[], IceTransportPolicy::Relay),
        (&asked, &["target.ice_transport_policy=all"], IceTransportPolicy::All),
    ] {
        let scenario = set(text, settings).unwrap();
        assert_eq!(scenario.target.ice_transport_policy, expect, "{text} {settings:?}");
        assert_eq!(
            read(&scenario.to_toml()).target.ice_transport_policy,
            expect,
            "{text} {settings:?}"
        );
    }
    let janus =
        SMALL.replace("whep+http://127.0.0.1:7080/whep", "janus+ws://127.0.0.1:8188/streaming/1");
    for (text, setting, help) in [
        (&ome, "target.ice_transport_policy=relais", "did you mean \"relay\"?"),
        (
            &janus,
            "target.ice_transport_policy=relay",
            "name one by turn, turn_username and turn_password",
        ),
    ] {
        let error = set(text, &[setting]).unwrap_err().to_string();
        assert!(error.contains(help), "{error}");
    }
}

#[test]
fn a_stun_server_is_an_address_or_on_the_targets_host() {
    let named = SMALL.replace("127.0.0.1:7080", "Media.Example:7080");
    for (text, stun, expect) in [
        (SMALL, "stun:10.0.0.1", "stun:10.0.0.1:3478"),
        (SMALL, "stun:[::1]:9", "stun:[::1]:9"),
        (named.as_str(), "stun:media.EXAMPLE:3479", "stun:media.example:3479"),
    ] {
        let scenario = set(text, &[&format!("target.stun={stun}")]).unwrap();
        assert_eq!(scenario.target.stun.as_ref().unwrap().to_string(), expect);
        assert_eq!(read(&scenario.to_toml()).target.stun, scenario.target.stun, "{stun}");
    }
    assert_eq!(
        set(SMALL, &["target.stun=stun:10.0.0.1", "target.stun="]).unwrap().target.stun,
        None
    );
    for (stun, words) in [
        ("stun:media.example", "names another host than `target.url`"),
        ("turn:10.0.0.1", "is not stun:HOST or stun:HOST:PORT"),
        ("10.0.0.1:3478", "write for example stun = \"stun:10.0.0.1:3478\""),
    ] {
        let error = set(SMALL, &[&format!("target.stun={stun}")]).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("--set target.stun"), "{error}");
    }
}

#[test]
fn a_turn_server_has_a_credential_and_an_address() {
    let janus =
        SMALL.replace("whep+http://127.0.0.1:7080/whep", "janus+ws://127.0.0.1:8188/videoroom/1");
    let credential = ["target.turn_username=u", "target.turn_password=sesame"];
    let with = |uri: &str| {
        let turn = format!("target.turn={uri}");
        let policy = "target.ice_transport_policy=relay";
        set(&janus, &[&credential[..], &[turn.as_str(), policy]].concat())
    };
    let scenario = with("turns:10.0.0.1:443").unwrap();
    let turn = scenario.target.turn.as_ref().unwrap();
    assert_eq!((turn.uri.as_str(), turn.username.as_str()), ("turns:10.0.0.1:443", "u"));
    let written = scenario.to_toml();
    assert!(!written.contains("sesame") && written.contains("turn_username"), "{written}");
    for (uri, words) in [
        ("turn:relay.example", "names another host than `target.url`"),
        ("stun:10.0.0.1", "not a TURN URI"),
        ("turns:10.0.0.1?transport=udp", "TURN over DTLS is not supported"),
        ("", "announces no relay"),
    ] {
        let error = with(uri).unwrap_err().to_string();
        assert!(error.contains(words), "{uri}: {error}");
    }
    let error = set(&janus, &["target.turn=turn:10.0.0.1"]).unwrap_err().to_string();
    assert!(error.contains("only a part of a TURN server"), "{error}");
}

#[test]
fn a_cohort_is_named_by_an_override_when_there_are_several() {
    let ome = &example("ome-viewers.toml");
    let scenario = set(ome, &["crowd.posted-link.size=100", "crowd.0.size=10"]).unwrap();
    assert_eq!((scenario.crowd[0].size, scenario.crowd[1].size), (10, 100));
    let error = set(ome, &["crowd.size=10"]).unwrap_err().to_string();
    assert!(error.contains("write `crowd.audience.size` or `crowd.posted-link.size`"), "{error}");
}

#[test]
fn a_bad_override_says_which() {
    for (setting, shown, help) in [
        ("crowd.size=many", "in --set crowd.size", "whole number from 1"),
        ("crowd.sise=5", "in --set crowd.sise", "did you mean `size`?"),
        ("crwd.size=5", "in --set crwd.size", "did you mean `crowd`?"),
        ("crowd..size=5", "in --set crowd..size", "dotted path"),
        ("run.duration=60", "in --set run.duration", "100ms"),
        ("crowd.arrival={ramp=\"60x\"}", "in --set crowd.arrival", "100ms"),
    ] {
        let error = set(FULL, &["run.warm_up=1s", setting]).expect_err(setting).to_string();
        assert!(error.contains(shown) && error.contains(help), "{setting}: {error}");
    }
    for text in ["crowd.size", "=5", ""] {
        assert!(Override::parse(text).is_err(), "{text}");
    }
    let error = set(SMALL, &["crowd.arrival={ramp=\"60x\"}"]).unwrap_err();
    let location = error.diagnostics[0].location.clone().unwrap();
    let meant: String =
        location.source_line.chars().skip(location.caret_at).take(location.width).collect();
    assert_eq!(meant, "\"60x\"");
}

/// A secret in any place of a file or of an override that cannot be read.
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
}

/// What a folder keeps of a scenario is enough to judge its run by.
#[test]
fn a_masked_scenario_says_the_same_and_cannot_be_run() {
    let text = SMALL.replacen("[crowd]", "token = \"S3CRET\"\n[crowd]", 1);
    let (kept, overrides) = (crate::masked_toml(&text), ["target.token=\u{2026}"]);
    let overrides = overrides.map(|text| Override::parse(text).unwrap());
    let stored = Scenario::parse_masked(&kept, &overrides).unwrap();
    assert_eq!(stored.crowd, read(&text).crowd);
    assert!(Scenario::parse(&kept).is_err(), "it cannot be run");
}

#[test]
fn the_quick_form_makes_what_a_file_would() {
    let form = ScenarioFlags {
        url: "janus+ws://127.0.0.1:8188/streaming/1".into(),
        size: Some(100),
        every: Some("100ms".into()),
        duration: Some("60s".into()),
        summary_every: Some("5s".into()),
        allow: vec!["10.0.0.0/8".into()],
        objectives: vec!["failed < 1%".into()],
        ..ScenarioFlags::default()
    };
    let file = "objectives = [\"failed < 1%\"]\n[target]\nurl = \"janus+ws://127.0.0.1:8188/streaming/1\"\nallow = [\"10.0.0.0/8\"]\n[crowd]\nsize = 100\narrival = { every = \"100ms\" }\n";
    assert_eq!(Scenario::from_flags(&form).unwrap(), read(file));
    let wrong = ScenarioFlags { url: "http://h/whep".into(), every: Some("fast".into()), ..form };
    let error = Scenario::from_flags(&wrong).unwrap_err();
    assert_eq!(error.diagnostics.len(), 2);
    let text = error.to_string();
    assert!(
        text.contains("in the URL")
            && text.contains("in --every")
            && text.contains("whep+http://h/whep"),
        "{text}"
    );
}

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
fn every_example_is_a_scenario_with_a_plan() {
    for (name, text) in examples() {
        let plan = Scenario::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}")).plan();
        assert!(plan.joins.len() >= 2 && !plan.objectives.is_empty(), "{name}");
    }
}

#[test]
fn the_schema_in_the_docs_is_the_generated_one_and_holds_for_every_example() {
    let schema = serde_json::to_value(crate::json_schema()).unwrap();
    let stored: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/scenario.schema.json")).unwrap();
    // As values: the order of keys in the text depends on how serde_json was built.
    assert!(
        stored == schema,
        "run `cargo run -p throng-scenario --example scenario_schema > docs/scenario.schema.json`"
    );
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut accepted: Vec<String> = examples().into_iter().map(|(_, text)| text).collect();
    accepted.extend([
        FULL.to_owned(),
        SMALL.to_owned(),
        read(FULL).to_toml(),
        format!("{SMALL}stay = \"9s\""),
        format!("{SMALL}arrival = {{ ramp = \"9s\", jitter = false }}"),
        read(SMALL).to_toml(),
    ]);
    for text in &accepted {
        let instance = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&instance).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
    }
    for (from, to) in [
        ("size = 100", "sise = 100"),
        ("1m30s", "soon"),
        ("size = 100", "size = 0"),
        ("rate = ", "rat = "),
    ] {
        let instance =
            serde_json::to_value(toml::from_str::<toml::Table>(&FULL.replace(from, to)).unwrap())
                .unwrap();
        assert!(!validator.is_valid(&instance), "{to}");
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

#[test]
fn a_token_goes_to_the_host_that_it_was_written_for_and_to_no_other() {
    let file = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\ntoken = \"env:TOKEN\"\n[crowd]\nsize = 5\n";
    let token = |sets: &[&str]| {
        set(file, sets).map(|scenario| scenario.target.token.map(|t| t.to_string()))
    };
    let other = "target.url=whep+http://127.0.0.2:7080/whep";
    assert_eq!(
        token(&["target.url=whep+http://127.0.0.1:7080/other"]).unwrap().as_deref(),
        Some("env:TOKEN")
    );
    assert_eq!(token(&[other, "target.token=env:OTHER"]).unwrap().as_deref(), Some("env:OTHER"));
    assert_eq!(token(&[other, "target.token="]).unwrap(), None);
    for url in [other, "target.url=whep+http://127.0.0.1:7081/whep"] {
        let error = token(&[url]).unwrap_err().to_string();
        for said in ["is for 127.0.0.1:7080", "in --set target.url", "--set target.token="] {
            assert!(error.contains(said), "{error}");
        }
    }
}

#[test]
fn errors_of_an_override_name_it_and_its_cohort() {
    let ome = &example("ome-viewers.toml");
    for (written, says) in [
        ("crowd.posted-link.size=0", "`crowd.posted-link.size` is not a whole number"),
        ("crowd.audience.arrival.every=soon", "`crowd.audience.arrival.every`"),
        ("crowd.0.stay=x", "`crowd.audience.stay"),
        ("crowd.audience.szie=5", "in `crowd.audience`"),
        ("crowd.nobody.size=5", "write `crowd.audience.size` or `crowd.posted-link.size`"),
        ("run.duration=1s", "but the run ends at 1s"),
        ("crowd.posted-link.size=9000", "posted-link would join at"),
    ] {
        let error = set(ome, &[written]).unwrap_err().to_string();
        let origin = format!("--> in --set {}", written.split('=').next().unwrap());
        assert!(error.contains(says) && error.contains(&origin), "{error}");
    }
}
