//! Each protocol has a URL by which it is found, and the schema knows all of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

#[test]
fn each_protocol_has_one_example_which_is_a_target() {
    let names: BTreeSet<&str> = Protocol::ALL.iter().map(|protocol| protocol.name()).collect();
    assert_eq!(names.len(), Protocol::ALL.len(), "{names:?}");
    for protocol in Protocol::ALL {
        let (url, what) = protocol.facts().example;
        let target = Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(target.protocol(), *protocol, "{url}");
        let scheme = url.split("://").next().unwrap();
        assert!(protocol.facts().schemes.contains(&scheme), "{url}");
        let error = Target::parse("gopher://h/x").unwrap_err().to_string();
        assert!(error.contains(&format!("`{scheme}://…` for {what}")), "{error}");
    }
}

#[test]
fn each_scheme_is_of_one_protocol_but_for_those_of_janus_which_has_two_plugins() {
    let mut seen = BTreeSet::new();
    for protocol in Protocol::ALL.iter().filter(|protocol| **protocol != Protocol::JanusVideoRoom) {
        for scheme in protocol.facts().schemes {
            assert!(seen.insert(*scheme), "{scheme}");
        }
    }
    let mut mistakes = BTreeSet::new();
    for (schemes, help) in Protocol::ALL.iter().flat_map(|protocol| protocol.facts().mistaken) {
        for scheme in *schemes {
            assert!(mistakes.insert(*scheme) && !seen.contains(scheme), "{scheme}");
            let error = Target::parse(&format!("{scheme}://h/x")).unwrap_err().to_string();
            assert!(error.ends_with(help), "{error}");
        }
    }
}

#[test]
fn the_schema_takes_the_schemes_of_all_protocols_in_any_case() {
    let schema = serde_json::to_value(crate::json_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let takes = |scheme: &str| {
        let target: Value = json!({ "url": format!("{scheme}://h:1/a") });
        validator.is_valid(&json!({ "target": target, "crowd": { "size": 1 } }))
    };
    assert!(!takes("gopher"));
    for scheme in Protocol::ALL.iter().flat_map(|protocol| protocol.facts().schemes) {
        assert!(takes(scheme) && takes(&scheme.to_ascii_uppercase()), "{scheme}");
    }
}

#[test]
fn only_conferences_have_rooms_that_are_counted_on() {
    for protocol in Protocol::ALL {
        let endpoint = Target::parse(protocol.facts().example.0).unwrap().endpoint;
        let is_another = endpoint.in_room(1) != endpoint;
        assert_eq!(is_another, protocol.part() == Part::Confer, "{}", protocol.name());
        assert_eq!(endpoint.in_room(0), endpoint);
    }
}
