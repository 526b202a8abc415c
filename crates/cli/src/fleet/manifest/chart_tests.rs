//! The chart, rendered as far as its templates go: it is what is printed. No Helm reads it here.

use std::collections::{BTreeMap, BTreeSet};

use throng_scenario::Scenario;

use super::super::printed;
use super::super::tests::command;
use super::*;

const VIEWERS: &str =
    "[target]\nurl = \"whep+http://media/whep\"\ntoken = \"env:TOKEN\"\n[crowd]\nsize = 9\n";

/// The files of the chart that these flags ask for, and the marks with their values.
fn chart(more: &[&str]) -> (BTreeMap<String, String>, BTreeMap<&'static str, Vec<String>>) {
    let command = command(&[&["--helm", "new"][..], more].concat());
    let scenario = Scenario::parse(VIEWERS).unwrap_or_else(|error| panic!("{error}"));
    let fleet = Fleet::of(&command, &scenario, &scenario.plan()).expect("it can be played");
    let files = files(&fleet).into_iter().map(|(folder, name, text)| {
        (format!("{folder}/{name}").trim_start_matches('/').to_owned(), text)
    });
    let values = fleet.slots.iter().map(|slot| (slot.mark(), slot.values().to_vec()));
    (files.collect(), values.collect())
}

/// The names that templates take of `.Values`.
fn taken(text: &str) -> BTreeSet<String> {
    let names = text.split("$.Values.").skip(1);
    let is_name = |c: char| c.is_ascii_alphanumeric();
    names.map(|rest| rest.chars().take_while(|c| is_name(*c)).collect()).collect()
}

/// A template with its values, as Helm renders the few actions that there are.
fn rendered(template: &str, values: &BTreeMap<&'static str, Vec<String>>) -> String {
    let of = |name: &str| {
        let (mark, ..) = VALUES.iter().find(|(_, of, ..)| *of == name).expect("a value");
        values.get(mark).cloned().unwrap_or_default()
    };
    let mut out = String::new();
    let mut within: Option<Vec<String>> = None;
    for line in template.lines() {
        let action = line.trim().strip_prefix("{{- ").and_then(|rest| rest.strip_suffix(" }}"));
        match action {
            Some("end") => within = None,
            Some(begin) => {
                let names = taken(begin);
                within = Some(of(names.first().expect("a value")));
            }
            None => {
                let items = within.clone().unwrap_or_else(|| vec![String::new()]);
                for item in items {
                    let mut line = line.replace("int64 ", "").replace("{{ . }}", &item);
                    line = line.replace(RELEASE, "evening");
                    for name in taken(&line) {
                        let value = of(&name).concat();
                        line = line.replace(&format!("{{{{ $.Values.{name} }}}}"), &value);
                    }
                    out += &format!("{line}\n");
                }
            }
        }
    }
    out
}

#[test]
fn a_chart_with_its_own_values_is_what_is_printed() {
    let targets = ["--allow-target", "10.1.0.0/16", "--allow-target", "fd00::/8"];
    let more = ["--max-users", "7", "--consent-secret-name", "proof", "--image", "host/throng:1"];
    let all_flags = [&targets[..], &more].concat();
    for flags in [&[][..], &targets[..], &all_flags[..]] {
        let (files, values) = chart(flags);
        let command = command(&[&["--name", "evening"][..], flags].concat());
        let scenario = Scenario::parse(VIEWERS).expect("a scenario");
        let fleet = Fleet::of(&command, &scenario, &scenario.plan()).expect("it is printed");
        let all = printed(&fleet);
        let expected: Vec<&str> =
            all.lines().filter(|line| !line.trim_start().starts_with(OPTIONAL)).collect();
        let names = ["scenario", "bus", "workers", "coordinator"];
        let documents = names.map(|name| {
            let template = files.get(&format!("templates/{name}.yaml")).expect("a template");
            rendered(template, &values)
        });
        // But for the claim, which stays, and the scenario, which is a file.
        let documents = documents
            .join("---\n")
            .replace("  annotations: {helm.sh/resource-policy: keep} # --helm\n", "");
        let (before, after) = documents
            .split_once("{{ $.Files.Get \"scenario/scenario.toml\" | quote }}\n")
            .expect("the scenario");
        let rest: Vec<&str> = after.lines().collect();
        assert!(expected.ends_with(&rest), "{flags:?}\n{after}");
        let head: Vec<&str> = before.lines().collect();
        let (last, head) = head.split_last().expect("lines");
        assert!(expected.windows(head.len()).any(|lines| lines == head), "{before}");
        assert_eq!(*last, "  \"scenario.toml\": ");
        assert_eq!(files["scenario/scenario.toml"], VIEWERS);
        assert!(!documents.contains("{{- ") && !after.contains("{{"), "{after}");
    }
}

#[test]
fn templates_take_all_values_and_no_other() {
    let (files, values) = chart(&[]);
    let names: BTreeSet<String> = VALUES.iter().map(|(_, name, ..)| (*name).to_owned()).collect();
    let templates = files.iter().filter(|(name, _)| name.starts_with("templates/"));
    assert_eq!(templates.flat_map(|(_, text)| taken(text)).collect::<BTreeSet<_>>(), names);
    let said: BTreeSet<String> = files["values.yaml"]
        .lines()
        .filter(|line| !line.starts_with(['#', ' ']))
        .filter_map(|line| Some(line.split_once(':')?.0.to_owned()))
        .collect();
    assert_eq!(said, names);
    for (mark, _, _, about) in VALUES {
        assert!(values.contains_key(mark), "nothing has the mark {mark}");
        assert!(!about.is_empty() || !help(mark).is_empty(), "{mark} is not explained");
    }
}

#[test]
fn a_release_whose_name_makes_no_names_fails() {
    let (files, _) = chart(&[]);
    let lines: Vec<&str> = files["templates/name.yaml"].lines().collect();
    let [asks, fails, "{{- end }}"] = lines[..] else { panic!("{lines:?}") };
    assert!(asks.starts_with("{{- if not (regexMatch \"^[a-z](") && asks.contains("Release.Name"));
    assert!(fails.starts_with("{{- fail \"name the release by 1 to 40 of a to z"), "{fails}");
}

#[test]
fn values_are_those_of_the_flags() {
    let (files, _) = chart(&["--allow-target", "10.1.0.0/16", "--max-users", "1000000"]);
    let values = &files["values.yaml"];
    for line in [
        "\n# How many workers play, each its share\nworkers: 2\n",
        "\nimage: \"throng:latest\"\n",
        "\nallowTarget:\n  - \"10.1.0.0/16\"\n",
        "\nmaxUsers: 1000000\n",
        "\nconsentSecretName: null\n",
        "\nmemory: \"",
    ] {
        assert!(values.contains(line), "{line}\n{values}");
    }
    assert!(chart(&[]).0["values.yaml"].contains("\nallowTarget: []\n"));
    let notes = &files["templates/NOTES.txt"];
    assert!(notes.contains("  {{ $.Release.Name }}-env: TOKEN\n"), "{notes}");
    let (with_bus, _) = chart(&["--nats", "tls://bus.example"]);
    assert!(!with_bus.contains_key("templates/bus.yaml"));
    assert!(with_bus["templates/workers.yaml"].contains("@bus.example:4222"));
}

#[test]
fn a_chart_goes_into_a_new_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = command(&["--helm", "new"]);
    let scenario = Scenario::parse(VIEWERS).expect("a scenario");
    let fleet = Fleet::of(&command, &scenario, &scenario.plan()).expect("it can be played");
    let new = folder.path().join("chart");
    write(&new, &fleet).expect("written");
    for file in ["Chart.yaml", "values.yaml", "scenario/scenario.toml", "templates/workers.yaml"] {
        assert!(new.join(file).is_file(), "{file}");
    }
    for (folder, why) in [(new, "is there already"), (folder.path().join("a/b"), "cannot be made")]
    {
        let error = write(&folder, &fleet).expect_err("refused").error.to_string();
        assert!(error.starts_with("--helm ") && error.contains(why), "{error}");
    }
}
