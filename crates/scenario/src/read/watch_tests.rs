//! Laws of `[[watch]]`: what is read, what is refused and where, and the short form of the command
//! line.

use std::time::Duration;

use crate::{
    Moment, Override, Scenario, ScenarioError, ScenarioFlags, TokenSource, Watch, WatchTarget,
};

const SMALL: &str = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";

fn read(watch: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(&format!("{SMALL}{watch}"))
}

fn quick(watches: &[&str]) -> Result<Scenario, ScenarioError> {
    Scenario::from_flags(&ScenarioFlags {
        url: "whep+http://127.0.0.1:7080/whep".into(),
        watch: watches.iter().map(|text| (*text).to_owned()).collect(),
        ..ScenarioFlags::default()
    })
}

#[test]
fn every_way_to_name_a_server_is_read() {
    for (text, expect) in [
        ("process = \"janus\"", WatchTarget::Process("janus".into())),
        ("unit = \"nginx.service\"", WatchTarget::Unit("nginx.service".into())),
        ("cgroup = \"/system.slice/x\"", WatchTarget::Cgroup("/system.slice/x".into())),
        ("pid = 17", WatchTarget::Pid(17)),
        ("port = 8188", WatchTarget::Port(8188)),
        ("target = true", WatchTarget::TargetPort(7080)),
        ("command = [\"sleep\", \"60\"]", WatchTarget::Command(vec!["sleep".into(), "60".into()])),
    ] {
        for head in ["[watch]", "[[watch]]"] {
            let scenario =
                read(&format!("{head}\n{text}\n")).unwrap_or_else(|error| panic!("{error}"));
            let [watch] = scenario.watch.as_slice() else { panic!("{text}") };
            assert_eq!(
                (&watch.target, watch.every, watch.agent.is_none()),
                (&expect, Watch::EVERY, true)
            );
            let back = Scenario::parse(&scenario.to_toml()).unwrap();
            assert_eq!(back.watch[0].target, expect, "as it is stored");
        }
    }
}

#[test]
fn an_agent_is_named_by_address_token_and_fingerprint() {
    let digits = "ab".repeat(32);
    let scenario = read(&format!(
        "[[watch]]\nagent = \"tls://[2001:db8::1]:7081\"\ntoken = \"file:t\"\nfingerprint = \"SHA256:{digits}\"\n"
    ))
    .unwrap_or_else(|error| panic!("{error}"));
    let agent = scenario.watch[0].agent.clone().unwrap();
    assert_eq!((agent.host.as_str(), agent.port, agent.is_tls), ("[2001:db8::1]", 7081, true));
    assert_eq!(
        (agent.token, agent.fingerprint),
        (Some(TokenSource::File("t".into())), Some(digits))
    );
    let local = read("[[watch]]\nagent = \"tcp://127.0.0.1:7081\"\n").unwrap();
    assert_eq!(
        local.watch[0].agent.as_ref().map(ToString::to_string).as_deref(),
        Some("tcp://127.0.0.1:7081")
    );
}

#[test]
fn moments_of_profiles_have_their_usual_length_unless_it_is_said() {
    let scenario = read(
        "[[watch]]\npid = 1\nprofile = [\"baseline\", { at = \"fail\", for = \"2s\" }, { at = \"5s\" }]\n",
    );
    let wishes = scenario.unwrap_or_else(|error| panic!("{error}")).watch[0].profile.clone();
    let read: Vec<_> =
        wishes.into_iter().map(|wish| (wish.moment, wish.duration.as_secs())).collect();
    assert_eq!(
        read,
        [(Moment::Baseline, 3), (Moment::Fail, 2), (Moment::At(Duration::from_secs(5)), 10)]
    );
}

#[test]
fn errors_have_their_line_and_help() {
    for (watch, line, message, help) in [
        ("[[watch]]\nproces = \"x\"", 6, "unknown key `proces`", "did you mean `process`?"),
        ("[[watch]]\nname = \"x\"", 5, "must have exactly one of", "process = \"janus\""),
        ("[[watch]]\npid = 1\nport = 2", 7, "must have exactly one of", ""),
        ("[[watch]]\nport = 0", 6, "from 1 to 65535", ""),
        ("[[watch]]\nport = 70000", 6, "from 1 to 65535", ""),
        ("[[watch]]\npid = \"x\"", 6, "whole number", ""),
        ("[[watch]]\nprocess = \"/usr/bin/janus\"", 6, "is a path", "process = \"janus\""),
        ("[[watch]]\ncgroup = \"x\"", 6, "is not a path, as /proc/PID/cgroup", "/system.slice"),
        ("[[watch]]\ncommand = []", 6, "is empty", "program"),
        ("[[watch]]\nprocess = \"\"", 6, "is empty", ""),
        ("[[watch]]\npid = 1\nevery = \"1ms\"", 7, "from 100 ms to 60 s", "every = \"1s\""),
        ("[[watch]]\npid = 1\nevery = 1", 7, "text with a unit", ""),
        ("[[watch]]\npid = 1\nmetrics = [\"ftp://x\"]", 7, "not an HTTP URL", "http://"),
        (
            "[[watch]]\npid = 1\nprofile = \"basline\"",
            7,
            "unknown moment",
            "did you mean `baseline`?",
        ),
        (
            "[[watch]]\npid = 1\nprofile = { for = \"1s\" }",
            7,
            "`watch.0.profile.at` is missing",
            "at = \"30s\"",
        ),
        ("[[watch]]\npid = 1\nprofile = { at = \"1s\", for = \"1h\" }", 7, "from 1 s to 5 min", ""),
        (
            "[[watch]]\npid = 1\nprofile = { at = \"2m\" }",
            5,
            "after the run has ended",
            "run.duration",
        ),
        ("[[watch]]\npid = 1\ntoken = \"x\"", 7, "no effect without `agent`", "tls://HOST:PORT"),
        ("[[watch]]\nagent = \"10.0.0.1:1\"", 6, "not an agent's address", "tls://"),
        ("[[watch]]\nagent = \"tls://h\"", 6, "not an agent's address", "tls://"),
        ("[[watch]]\nagent = \"tcp://10.0.0.1:1\"", 6, "must use TLS", ""),
        ("[[watch]]\nagent = \"tls://10.0.0.1:1\"", 6, "needs `fingerprint`", "sha256:"),
        ("[[watch]]\npid = 1\nfingerprint = \"sha256:12\"", 7, "64 hexadecimal digits", ""),
        (
            "[[watch]]\nname = \"a\"\npid = 1\n[[watch]]\nname = \"a\"\npid = 2",
            9,
            "must be unique",
            "",
        ),
    ] {
        let error = read(watch).map(|_| ()).unwrap_err();
        let diagnostic = &error.diagnostics[0];
        assert!(diagnostic.message.contains(message), "{watch}: {error}");
        assert!(
            diagnostic.help.as_deref().is_some_and(|text| text.contains(help)),
            "{watch}: {error}"
        );
        assert_eq!(
            diagnostic.location.as_ref().map(|location| location.line),
            Some(line),
            "{watch}: {error}"
        );
    }
}

#[test]
fn the_short_form_means_the_same_as_a_table() {
    let file = read(
        "[[watch]]\nprocess = \"janus\"\nevery = \"200ms\"\nlogs = [\"/a\", \"/b c\"]\nprofile = [\"full\"]\n[[watch]]\nport = 8188\n[[watch]]\ncommand = [\"sleep\", \"5\"]\n[[watch]]\ntarget = true\nevery = \"200ms\"\n",
    );
    let flags = quick(&[
        "process=janus, every=200ms,logs=/a,logs=/b c,profile=full",
        "port=8188",
        "command=sleep 5",
        "target,every=200ms",
    ]);
    assert_eq!(flags.unwrap_or_else(|error| panic!("{error}")).watch, file.unwrap().watch);
}

#[test]
fn a_wrong_short_form_is_shown_as_it_was_typed() {
    for (text, message) in [
        ("janus", "is not a table"),
        ("proces=janus", "unknown key `proces`"),
        ("port=x", "whole number"),
        ("a b=1", "is not a table"),
        ("", "is not a table"),
        ("process=a\"b\\,every=1ms", "from 100 ms"),
    ] {
        let error = quick(&[text]).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(message) && error.contains("in --watch"), "{text}: {error}");
    }
}

#[test]
fn a_stored_watch_reads_back_and_keeps_no_token() {
    let text = "[[watch]]\nagent = \"tcp://127.0.0.1:7081\"\ntoken = \"hunter2\"\nprofile = [\"baseline\", { at = \"fail\", for = \"4s\" }, { at = \"1s\" }]\n";
    let scenario = read(text).unwrap_or_else(|error| panic!("{error}"));
    let stored = scenario.to_toml();
    assert!(!stored.contains("hunter2"), "{stored}");
    let back = Scenario::parse(&stored).unwrap_or_else(|error| panic!("{stored}\n{error}"));
    assert_eq!(back.watch[0].profile, scenario.watch[0].profile);
    assert_eq!(back.to_toml(), stored);
    let named =
        Scenario::parse_with(&stored, &[Override::parse("watch.token=env:X").unwrap()]).unwrap();
    assert!(named.watch[0].agent.as_ref().is_some_and(|agent| agent.token.is_some()));
}

#[test]
fn a_stored_endpoint_keeps_no_secret_and_says_where_one_is() {
    for (url, shown) in [
        ("http://u:hunter2@h/m", "http://…@h/m"),
        ("http://hunter2@h/m", "http://…@h/m"),
        ("http://h/m?token=hunter2&format=text", "http://h/m?token=…&format=text"),
        ("janus+ws://h/#secret=hunter2", "janus+ws://h/#…"),
        ("http://h/m#bearer=env:TOKEN", "http://h/m#bearer=env:TOKEN"),
        ("http://h/m#basic=file:user&sha256=ab", "http://h/m#basic=file:user&sha256=ab"),
    ] {
        let text = format!("[[watch]]\npid = 1\nmetrics = \"{url}\"\n");
        let stored = read(&text).unwrap().to_toml();
        assert!(!stored.contains("hunter2") && stored.contains(shown), "{stored}");
    }
}

/// As it is run, a scenario has the words as they were written.
#[test]
fn a_stored_command_keeps_no_secret_of_its_words_and_cannot_be_run() {
    let words = r#"["srv", "--token", "hunter2", "--key=hunter2", "http://me:hunter2@h/", "80"]"#;
    let scenario = read(&format!("[[watch]]\ncommand = {words}\n")).unwrap();
    let WatchTarget::Command(run) = &scenario.watch[0].target else { panic!("no command") };
    assert_eq!(format!("{run:?}"), words);
    let stored = scenario.to_toml();
    let shown = r#"command = ["srv", "--token", "…", "--key=…", "http://…@h/", "80"]"#;
    assert!(stored.contains(shown) && !stored.contains("hunter2"), "{stored}");
    for said in [scenario.plan().describe(), scenario.watch[0].label()] {
        assert!(
            said.contains("command srv --token … --key=…") && !said.contains("hunter2"),
            "{said}"
        );
    }
    assert_eq!(Scenario::parse_stored(&stored).unwrap().to_toml(), stored);
    let error = Scenario::parse(&stored).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("redacted when this scenario was stored"), "{error}");
    let again = Override::parse(&format!("watch.command={words}")).unwrap();
    assert_eq!(Scenario::parse_with(&stored, &[again]).unwrap().watch, scenario.watch);
}

#[test]
fn a_command_may_say_what_stands_for_a_secret() {
    let command = "[[watch]]\ncommand = [\"sh\", \"-c\", \"echo starting… && exec srv\"]\n";
    let scenario = read(command).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Scenario::parse(&scenario.to_toml()).unwrap().watch, scenario.watch);
}

#[test]
fn a_plan_shows_no_secret_of_an_endpoint_and_a_stored_one_cannot_be_run() {
    let scenario = read("[[watch]]\npid = 1\nmetrics = \"http://me:hunter2@h/m\"\n").unwrap();
    let plan = scenario.plan().describe();
    assert!(plan.contains("metrics http://…@h/m") && !plan.contains("hunter2"), "{plan}");
    let error = Scenario::parse(&scenario.to_toml()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("redacted when this scenario was stored"), "{error}");
}

#[test]
fn a_scenario_cannot_set_what_an_agent_reads() {
    for (key, flag) in [
        ("process = \"janus\"", "--process"),
        ("port = 8188", "--port"),
        ("command = \"x\"", "-- COMMAND"),
        ("logs = \"/etc/shadow\"", "--log`"),
        ("access_log = \"/a\"", "--access-log"),
        ("metrics = \"http://127.0.0.1/\"", "--metrics"),
        ("every = \"1s\"", "--every"),
    ] {
        let error =
            read(&format!("[[watch]]\nagent = \"tcp://127.0.0.1:7081\"\n{key}\n")).unwrap_err();
        let diagnostic = &error.diagnostics[0];
        assert!(diagnostic.message.contains("is a setting of the agent"), "{key}: {error}");
        assert!(
            diagnostic.help.as_deref().is_some_and(|help| help.contains(flag)),
            "{key}: {error}"
        );
    }
}

#[test]
fn the_plan_says_what_is_watched() {
    let plan = read(
        "[[watch]]\nname = \"sfu\"\nprocess = \"janus\"\nlogs = \"/l\"\nprofile = [\"full\"]\n",
    )
    .unwrap()
    .plan();
    assert!(
        plan.describe().contains(
            "watch       sfu: process janus on this host, every 1.00 s, logs /l, a profile at full for 10.00 s\n"
        ),
        "{}",
        plan.describe()
    );
}
