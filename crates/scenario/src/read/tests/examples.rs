//! The scenarios of the repository, and the schema that holds for them.

use std::path::{Path, PathBuf};

use super::{FULL, SMALL, examples, read};
use crate::Scenario;

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
        serde_json::from_str(include_str!("../../../../../docs/scenario.schema.json")).unwrap();
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

/// Files of TOML in a folder and in those below it.
fn toml_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(toml_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files
}

/// Editors find the schema by the first line. Matrices, proofs and prices have none.
#[test]
fn every_scenario_begins_with_the_schema_for_editors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut count = 0;
    for file in toml_below(&root.join("examples")) {
        let text = std::fs::read_to_string(&file).unwrap();
        if !toml::from_str::<toml::Table>(&text).unwrap().contains_key("target") {
            continue;
        }
        count += 1;
        let first = text.lines().next().unwrap_or_default();
        let schema = first
            .strip_prefix("#:schema ")
            .unwrap_or_else(|| panic!("{}: its first line is no `#:schema PATH`", file.display()));
        let named = file.parent().unwrap().join(schema).canonicalize().unwrap();
        assert_eq!(named, root.join("docs/scenario.schema.json"), "{}", file.display());
    }
    assert!(count > 25, "{count} scenarios");
}
