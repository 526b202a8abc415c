//! Schema, reader and documentation of declared tables are about the same.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::Scenario;
use crate::canary::Canary;
use crate::conversation::Conversation;
use crate::room::RoomConfig;
use crate::run::{Caps, OutputConfig, RunTimes, Stream};
use crate::tap::Tap;

/// Values of all kinds, near and beyond the bounds of keys.
fn probes() -> Vec<Json> {
    vec![
        json!(""),
        json!("word"),
        json!("vp8"),
        json!("90s"),
        json!("1Mbit/s"),
        json!(true),
        json!(-1),
        json!(0),
        json!(1),
        json!(16),
        json!(17),
        json!(5_000_000_000_u64),
        json!(0.5),
        json!(1.5),
        json!([]),
        json!([1, 2]),
        json!(["vp8"]),
        json!(["mp3"]),
        json!({}),
    ]
}

/// Checks each key of the table `name` with each probe: what its schema takes the reader takes, and
/// the other way around.
fn schema_and_reader_agree<T: Keyed>(name: &str) {
    let schema = serde_json::to_value(crate::json_schema()).unwrap();
    let mut of_table = schema["properties"][name].clone();
    of_table["$defs"] = schema["$defs"].clone();
    let validator = jsonschema::validator_for(&of_table).unwrap();
    let keys = all_keys::<T>(&mut SchemaGenerator::default());
    let is_required = |key: &&Key| matches!(key.usual, Usual::Required(_));
    for key in &keys {
        for probe in probes() {
            let required =
                keys.iter().filter(is_required).map(|key| (key.name.to_owned(), json!(1)));
            let mut table: Map<String, Json> = required.collect();
            table.insert(key.name.into(), probe.clone());
            let text = toml::to_string(&BTreeMap::from([(name, &table)])).unwrap();
            let path = format!("`{name}.{}`", key.name);
            let errors = Scenario::parse(&text).expect_err("it has no target").diagnostics;
            let is_read = !errors.iter().any(|error| error.message.contains(&path));
            assert_eq!(validator.is_valid(&Json::Object(table)), is_read, "{path} = {probe}");
        }
    }
}

#[test]
fn what_a_schema_takes_is_what_is_read() {
    schema_and_reader_agree::<RunTimes>("run");
    schema_and_reader_agree::<Stream>("stream");
    schema_and_reader_agree::<OutputConfig>("output");
    schema_and_reader_agree::<Caps>("caps");
    schema_and_reader_agree::<Tap>("tap");
    schema_and_reader_agree::<Canary>("canary");
    schema_and_reader_agree::<Conversation>("conversation");
    schema_and_reader_agree::<RoomConfig>("room");
}

#[test]
fn the_limits_of_the_documentation_are_those_of_other_targets() {
    let default: Vec<String> = Caps::DEFAULT
        .write_keys()
        .iter()
        .map(|(key, value)| format!("{key} {}", value.to_string().trim_end_matches(".0")))
        .collect();
    let said = |key: Key| match key.usual {
        Usual::Said(words) => format!("{} {}", key.name, words.trim_matches('`')),
        other => panic!("{other:?}"),
    };
    let keys = Caps::keys(&mut SchemaGenerator::default());
    assert_eq!(keys.into_iter().map(said).collect::<Vec<_>>(), default);
}

#[test]
fn a_description_has_the_words_of_a_link() {
    let markdown = "a list such as `[0, 17]`, see [the page](page.md#part) and [one](b.md)";
    assert_eq!(without_links(markdown), "a list such as `[0, 17]`, see the page and one");
    assert_eq!(without_links("[0](a"), "[0](a");
    assert_eq!(without_links("a table (short, see below), [see below](a.md#b)"), "a table (short)");
}

#[test]
fn a_description_has_the_default_where_it_is_words() {
    for (usual, expect) in [
        (Usual::LeftOut, "what is said"),
        (Usual::Said("`page`, or none"), "what is said; default: `page`, or none"),
        (Usual::StoredSaid("all"), "what is said; default: all"),
    ] {
        let row = ("csv", usual, "what is [said](a.md)");
        let (_, schema) =
            Key::new(row, &Flag, &false, &mut SchemaGenerator::default()).into_property();
        assert_eq!(schema["description"], expect);
    }
}

#[test]
fn a_key_that_is_left_out_is_not_written_with_its_usual_value() {
    for (usual, is_written) in [
        (Usual::Stored, true),
        (Usual::StoredSaid("never"), true),
        (Usual::LeftOut, false),
        (Usual::Said("never"), false),
    ] {
        assert_eq!(written(("csv", usual), &Flag, &false, &false).is_some(), is_written);
        assert!(written(("csv", usual), &Flag, &true, &false).is_some());
    }
}
