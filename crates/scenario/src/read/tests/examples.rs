//! The scenarios of the repository, and the schema that holds for them.

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
