//! What is printed, without a cluster. `crates/cli/tests/e2e/kubernetes.rs` reads it with a parser,
//! `make proof` with an API server.

use std::path::Path;

use clap::Parser as _;

use super::portable::instead_of;
use super::*;
use crate::args::{Arguments, Command, FleetCommand};

const BASE_SCENARIO: &str = include_str!("../../../../../deploy/kubernetes/scenario.toml");

pub(super) fn command(more: &[&str]) -> Manifest {
    let words = ["throng", "fleet", "manifest", "scenario.toml", "--workers", "2"];
    let arguments = Arguments::try_parse_from(words.iter().chain(more)).unwrap();
    let Command::Fleet(fleet) = arguments.command else { panic!("another command") };
    let FleetCommand::Manifest(manifest) = fleet.command;
    manifest
}

fn manifest_of(scenario: &str, command: &Manifest) -> Result<String, String> {
    let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}"));
    let fleet = Fleet::of(command, &scenario, &scenario.plan());
    fleet.map(|fleet| printed(&fleet)).map_err(|stop| stop.error.to_string())
}

fn viewers(more: &str) -> String {
    format!("[target]\nurl = \"whep+http://media/whep\"\n{more}[crowd]\nsize = 9\n")
}

#[test]
fn the_base_is_what_is_printed_for_its_scenario() {
    let text = manifest_of(BASE_SCENARIO, &command(&[])).unwrap();
    let documents = [base::BUS, base::WORKERS, base::COORDINATOR].join("---\n");
    assert!(text.ends_with(&format!("---\n{documents}")), "{text}");
    let kustomization = include_str!("../../../../../deploy/kubernetes/kustomization.yaml");
    for file in [
        "- bus.yaml",
        "- workers.yaml",
        "- coordinator.yaml",
        "- scenario.toml",
        "name: throng-scenario",
    ] {
        assert!(kustomization.contains(file), "{file}");
    }
}

#[test]
fn flags_reach_the_lines_that_are_marked_with_them() {
    let more = [
        "--image",
        "host.example/throng:1",
        "--namespace",
        "load",
        "--name",
        "evening",
        "--allow-target",
        "10.1.0.0/16",
        "--allow-target",
        "fd00::/8",
        "--max-users",
        "7",
        "--consent-secret-name",
        "proof",
    ];
    let text = manifest_of(&viewers("token = \"env:WHEP_TOKEN\"\n"), &command(&more)).unwrap();
    for (line, count) in [
        ("  namespace: \"load\" # --namespace", 7),
        ("          image: \"host.example/throng:1\" # --image", 2),
        ("            - \"--allow-target=10.1.0.0/16\" # --allow-target", 2),
        ("            - \"--allow-target=fd00::/8\" # --allow-target", 2),
        ("            - \"--max-users=7\" # --max-users", 1),
        ("            - \"--allow-secret=env:WHEP_TOKEN\" # scenario: env", 1),
        ("  completions: 2 # --workers", 1),
        ("              value: \"tls://throng:$(BUS_PASSWORD)@evening-bus:4222\" # --nats", 2),
    ] {
        assert_eq!(
            text.lines().filter(|printed| *printed == line).count(),
            count,
            "{line}\n{text}"
        );
    }
    assert!(text.contains(
        "{name: \"WHEP_TOKEN\", valueFrom: {secretKeyRef: {name: evening-env, key: \"WHEP_TOKEN\"}}}"
    ));
    assert!(text.contains("{secretKeyRef: {name: \"proof\", key: secret}}"));
    assert!(
        text.contains("kind: Namespace")
            && text.contains("pod-security.kubernetes.io/enforce: restricted")
    );
    assert!(text.contains("#   evening-env: WHEP_TOKEN\n"));
    // Nothing keeps the base's name, but for the label of what throng is and the bus's user.
    assert!(!text.contains("throng-") && !text.contains("10.0.0.0/8"), "{text}");
}

#[test]
fn a_bus_that_is_there_is_used_and_its_password_stays_in_the_secret() {
    let more = |url| ["--nats", url];
    let text = manifest_of(&viewers(""), &command(&more("nats://team@bus.example"))).unwrap();
    assert!(text.contains("\"tls://team:$(BUS_PASSWORD)@bus.example:4222\""));
    assert!(!text.contains("kind: Deployment") && !text.contains("secret.sh"));
    for url in
        ["tls://a:hunter2@bus.example", "http://bus", "bus.example", "tls://$(A)@bus", "tls://"]
    {
        let why = manifest_of(&viewers(""), &command(&more(url))).expect_err(url);
        assert!(why.starts_with("--nats: ") && !why.contains("hunter2"), "{why}");
    }
}

#[test]
fn what_does_not_travel_is_refused_by_name() {
    let publish = "publish = { video = \"/media/a.h264\" }\n";
    let from_file = format!(
        "[target]\nurl = \"janus+ws://media:8188/videoroom/1\"\n[crowd]\nsize = 9\n{publish}"
    );
    for (scenario, why) in [
        (viewers("token = \"hunter2\"\n"), "target.token"),
        (viewers("token = \"file:/secrets/token\"\n"), "file:/secrets/token"),
        (viewers("token = \"env:BUS_URL\"\n"), "BUS_URL"),
        (viewers("token = \"env:a-b\"\n"), "env:a-b"),
        (viewers("token = 'env:a\"b'\n"), "env:a\"b"),
        (viewers("token = 'env:a\\b'\n"), r"env:a\b"),
        (from_file, "/media/a.h264"),
    ] {
        let said = manifest_of(&scenario, &command(&[])).expect_err(why);
        assert!(said.contains(why) && !said.contains("hunter2"), "{why}: {said}");
    }
    let said = manifest_of(&viewers(""), &command(&["--max-users", "4"])).expect_err("5 of 9");
    assert!(said.contains("up to 5 participants"), "{said}");
}

#[test]
fn what_to_write_in_place_of_a_secret_is_possible_at_its_place() {
    let words = "write {token} into the template of the chat, and target.token = \"env:NAME\"";
    for (paths, expect) in [
        (&["target.token"][..], "write env:NAME".to_owned()),
        (&["crowd.player.page"], "shorten the query of the page".to_owned()),
        (&["crowd.chat.template.headers.X-Up", "crowd.chat.template.join"], words.to_owned()),
        (
            &["target.token", "crowd.hall.player.page"],
            "shorten the query of the page; write env:NAME".to_owned(),
        ),
    ] {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(instead_of(&paths), expect);
    }
}

#[test]
fn the_scenario_keeps_the_name_of_its_file_where_it_can() {
    for (file, expect) in [
        ("a/evening.toml", "evening.toml"),
        ("größe.toml", "scenario.toml"),
        ("a b.toml", "scenario.toml"),
        (".toml", "scenario.toml"),
    ] {
        assert_eq!(key(Path::new(file)), expect, "{file}");
    }
}
