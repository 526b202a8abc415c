//! Command lines of users, and the messages for wrong ones.

use std::io::ErrorKind;
use std::process::{Command, Output};

use throng_observation::shell;
use throng_sim::skipped;

use crate::consent::in_a_month;
use crate::throng::{Stage, THRONG, figure, plain, run, started};

fn said(args: &[&str]) -> (Option<i32>, String) {
    let output = plain(args);
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    (output.status.code(), text)
}

/// What bash says to these arguments; `None` where there is none.
fn bash(arguments: &[&str]) -> Option<Output> {
    match Command::new("bash").args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        output => Some(output.unwrap()),
    }
}

#[test]
fn a_wrong_scenario_is_shown_with_line_and_mend() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "[target]\nurl = \"whep+http://127.0.0.1/whep\"\n[crowd]\nsiez = 5\n")
        .unwrap();
    let (code, text) = said(&["check", file.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("siez") && text.contains("did you mean `size`") && text.contains('4'),
        "{text}"
    );
}

#[test]
fn check_says_what_the_example_comes_to_and_sends_nothing() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/janus-viewers.toml");
    let (code, text) = said(&["check", example, "--set", "crowd.size=50"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("Mbit/s") && text.contains("50"), "{text}");
}

#[test]
fn an_unreachable_target_is_exit_3() {
    let ran = run(
        None,
        &["view", "whep+http://127.0.0.1:9/whep", "-n", "2", "--every", "50ms", "--for", "2s"],
    );
    assert_eq!(ran.code, Some(3), "{ran}");
    assert_eq!(figure(&ran.summary(), "failures.tcp"), 2.0, "{ran}");
}

#[test]
fn a_private_target_needs_permission_and_a_public_one_proof() {
    for (url, help) in [
        ("whep+http://10.1.2.3/whep", "--allow-target"),
        ("whep+http://192.0.2.77/whep", "consent"),
    ] {
        let (code, text) = said(&["view", url, "-n", "1", "--for", "1s"]);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains(help), "{text}");
    }
}

#[test]
fn oven_rtc_testers_flags_run() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = stage.target();
    let args =
        ["-n", "2", "-url", &target, "-cint", "50", "-sint", "1000", "-life", "3", "--plain"];
    let ran = run(None, &args).expect_code(0);
    assert!(ran.stderr.contains("<Summary>"), "{ran}");
    assert!(ran.stdout.contains("<Details>"), "{ran}");
    // The participants that were connected at the end, before all were asked to leave.
    let ice = "ICE Connection State : New(0), Checking(0) Connected(2) Completed(0) Disconnected(0) Failed(0) Closed(0)\n";
    assert!(ran.stdout.contains(ice), "{ran}");
    let gop = ran.stdout.lines().find(|line| line.starts_with("Avg GOP(")).unwrap_or_default();
    assert!(
        gop.starts_with("Avg GOP(3") || gop.starts_with("Avg GOP(2"),
        "a key frame each second: {gop} {ran}"
    );
}

#[test]
fn oven_rtc_testers_flags_are_read_as_go_reads_them() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = format!("--url={}", stage.target());
    let ran = run(None, &["--n=0x2", &target, "--cint=50", "-life", "3", "-n", "1", "--quiet"])
        .expect_code(0);
    assert!(ran.stdout.contains("Number of clients : 1\n"), "{ran}");
    let (code, text) = said(&["-url", &stage.target(), "-n", "0"]);
    assert!(code == Some(2) && text.contains("from 1 to 1000000"), "{text}");
}

#[test]
fn schemas_are_printed() {
    for format in ["scenario", "summary", "matrix"] {
        let (code, text) = said(&["schema", format]);
        assert_eq!(code, Some(0));
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
    }
}

#[test]
fn bash_completes_by_what_throng_prints() {
    let (code, script) = said(&["completions", "bash"]);
    assert_eq!(code, Some(0), "{script}");
    // As a shell reads it: an argument may not be as long.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("throng.bash");
    std::fs::write(&file, &script).unwrap();
    let typed = "source \"$0\"; COMP_WORDS=(throng fle); COMP_CWORD=1; \
                 _throng throng fle throng; echo \"${COMPREPLY[@]}\"";
    let Some(output) = bash(&["-c", typed, file.to_str().unwrap()]) else {
        return skipped("there is no bash");
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fleet\n", "{output:?}\n{script}");
}

#[test]
fn help_names_every_kind_of_target_and_each_variable() {
    for command in ["view", "find"] {
        let (code, text) = said(&[command, "--help"]);
        assert_eq!(code, Some(0), "{text}");
        // Each at the start of a word: `publish+rtsp://…` does not stand for `rtsp://…`.
        for (url, _) in throng_scenario::target_examples() {
            assert!(text.split_whitespace().any(|word| word == url), "{url} is not in\n{text}");
        }
    }
    for command in ["run", "view", "find"] {
        let (_, text) = said(&[command, "--help"]);
        for heading in ["Crowd:", "Server:", "Output:", "Fleet:"] {
            let has_it = text.lines().any(|line| line == heading);
            assert!(has_it, "{command}: {heading} is not in\n{text}");
        }
    }
    let (_, text) = said(&["view", "--help"]);
    assert!(text.contains("{n}") && text.contains("--duration"), "{text}");
}

#[test]
fn a_plan_is_printed_of_a_url_too_and_nothing_is_sent() {
    let url = "whep+http://127.0.0.1:9/whep";
    for arguments in [
        &["check", url][..],
        &["view", url, "-n", "7", "-d", "30s", "--dry-run"],
        &["view", url, "--duration", "30s", "--dry-run"],
        &["find", url, "--ceiling", "7", "--dry-run"],
    ] {
        let (code, text) = said(arguments);
        assert_eq!(code, Some(0), "{arguments:?}\n{text}");
        assert!(text.contains("whep+http://127.0.0.1:9/whep"), "{arguments:?}\n{text}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_there_is_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run").display().to_string();
    let url = "whep+http://127.0.0.1:9/whep";
    for (arguments, words) in [
        (
            &["view", url, "--token", "env:THRONG_NO_SUCH_TOKEN", "-o", &run][..],
            "THRONG_NO_SUCH_TOKEN",
        ),
        (&["view", url, "--threads", "0", "-o", &run], "a whole number from 1"),
        (&["view", "whep+http:///whep", "-o", &run], "it has no host"),
        (&["check", url, "--set", "target.token=env:THRONG_NO_SUCH_TOKEN"], "THRONG_NO_SUCH_TOKEN"),
        (&["check", "whep+http:///whep"], "it has no host"),
    ] {
        let (code, text) = said(arguments);
        assert_eq!(code, Some(2), "{arguments:?}\n{text}");
        assert!(text.contains(words), "{arguments:?}\n{text}");
        assert!(!folder.path().join("run").exists(), "{arguments:?}\n{text}");
    }
}

#[test]
fn the_log_has_the_steps_of_a_participant() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(THRONG);
    command.args(["view", &stage.target(), "--for", "2s", "--output"]);
    command.arg(folder.path().join("run")).env("RUST_LOG", "throng=debug");
    let output = started(&mut command).wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    for step in ["participant 0: dtls_connected", "participant 0: first_frame", "0: ended at"] {
        assert!(log.contains(step), "{step} is not in\n{log}");
    }
}

/// What a shell would do something with, or what a terminal would.
const ODD: [&str; 22] = [
    "", " ", "'", "\"", "$HOME", "`id`", "$(id)", ";", "&", "|", "-n", "~", "=ls", "*", "!!", "\\",
    "\n", "\x1b[2J", "\u{202e}", "#", "größe", "%1",
];

#[test]
fn words_that_are_printed_come_back_from_a_shell_as_they_were() {
    // Each alone, and each with each other.
    let mut words: Vec<String> = ODD.map(str::to_owned).to_vec();
    for first in ODD {
        words.extend(ODD.map(|second| format!("{first}{second}")));
    }
    let script = format!("printf '%s\\0' {}", shell::line(&words));
    let Some(output) = bash(&["-c", &script]) else {
        return skipped("there is no bash");
    };
    let read = String::from_utf8(output.stdout).unwrap();
    let read: Vec<&str> = read.split_terminator('\0').collect();
    assert_eq!(read, words);
    assert!(!script.contains(throng_observation::untrusted::is_harmful), "it is one line");
}

#[test]
fn a_command_that_is_said_to_be_given_instead_is_safe_to_paste() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("x; touch y").join("run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("run.db"), "").unwrap();
    let (code, text) = said(&["runs", run.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{text}");
    let place = folder.path().display();
    let line = format!("throng runs '{place}/x; touch y'");
    assert!(text.contains(&line), "{text}");

    let secret = folder.path().join("a secret; touch y");
    let consent = ["consent", "media.example.org:3333", "--tester", "Load lab"];
    let more = ["--expires", &in_a_month(), "--secret", secret.to_str().unwrap()];
    let (code, text) = said(&[consent, more].concat());
    assert_eq!(code, Some(0), "{text}");
    let line = format!("with --consent-secret 'file:{place}/a secret; touch y'\n");
    assert!(text.contains(&line), "{text}");
}
