//! Which keys of two scenarios differ: runs of different scenarios are compared only with a
//! warning.

use std::collections::{BTreeMap, BTreeSet};

use crate::masked::masked_toml;
use crate::secret::HIDDEN;

/// A key with another value in each of two scenarios.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDifference {
    /// The key, such as `crowd.size`, or `crowd[1].stay.for` where there are several cohorts.
    pub key: String,
    /// Its value in the first, as TOML; `None` if the key is absent.
    pub base: Option<String>,
    /// Its value in the second.
    pub new: Option<String>,
}

impl KeyDifference {
    /// Whether it changes the load: who joins, when, for how long, with which media. The server's
    /// address, objectives, what is watched and where the results go do not.
    #[must_use]
    pub fn changes_load(&self) -> bool {
        const ELSEWHERE: [&str; 6] = ["target", "objectives", "watch", "tap", "output", "caps"];
        const OF_LOAD: [&str; 3] =
            ["target.rooms", "target.rtsp_transport", "target.ice_transport_policy"];
        // Of the other tables, these are only shown; what comes to them changes the load until
        // somebody says otherwise.
        const SHOWN: [&str; 1] = ["run.summary_every"];
        let (key, top) = (self.key.as_str(), self.key.split(['.', '[']).next().unwrap_or_default());
        OF_LOAD.contains(&key) || !(ELSEWHERE.contains(&top) || SHOWN.contains(&key))
    }
}

/// The keys that differ between two scenarios as they are stored in run folders
/// ([`crate::Scenario::to_toml`]); where the results are written is left out. A text that is no
/// TOML is one difference with the key `scenario`. No secret is in them, whatever the folders have:
/// of two secrets that differ both are `…`.
#[must_use]
pub fn differences(base: &str, new: &str) -> Vec<KeyDifference> {
    if base == new {
        return Vec::new();
    }
    let (Some(base), Some(new)) = (keys(base), keys(new)) else {
        let unreadable = || Some("not readable".to_owned());
        return vec![KeyDifference {
            key: "scenario".into(),
            base: unreadable(),
            new: unreadable(),
        }];
    };
    let names: BTreeSet<&String> = base.keys().chain(new.keys()).collect();
    names
        .into_iter()
        .map(|name| (name, base.get(name), new.get(name)))
        .filter(|(name, base, new)| !name.starts_with("output.") && !is_same(*base, *new))
        .map(|(name, base, new)| KeyDifference {
            key: name.clone(),
            base: base.map(|value| value.shown.clone()),
            new: new.map(|value| value.shown.clone()),
        })
        .collect()
}

/// A value of a key, as TOML.
struct Stored {
    /// With its secrets, as far as the folder has them.
    whole: String,
    /// Without.
    shown: String,
}

/// Whether two values are the same. Earlier versions stored secrets of commands: one of which the
/// other folder has only `…` may be the same.
fn is_same(base: Option<&Stored>, new: Option<&Stored>) -> bool {
    match (base, new) {
        (Some(base), Some(new)) => {
            let is_hidden = [base, new].iter().any(|value| value.whole.contains(HIDDEN));
            base.whole == new.whole || (is_hidden && base.shown == new.shown)
        }
        (Some(_), None) | (None, Some(_)) => false,
        (None, None) => true,
    }
}

fn keys(text: &str) -> Option<BTreeMap<String, Stored>> {
    let mut shown = values(&masked_toml(text))?;
    let stored = |(name, whole): (String, String)| {
        let shown = shown.remove(&name).unwrap_or_else(|| HIDDEN.to_owned());
        (name, Stored { whole, shown })
    };
    Some(values(text)?.into_iter().map(stored).collect())
}

fn values(text: &str) -> Option<BTreeMap<String, String>> {
    let table: toml::Table = text.parse().ok()?;
    let mut keys = BTreeMap::new();
    table.iter().for_each(|(name, value)| flatten(name.clone(), value, &mut keys));
    Some(keys)
}

fn flatten(name: String, value: &toml::Value, keys: &mut BTreeMap<String, String>) {
    let has_tables = |list: &[toml::Value]| list.iter().any(toml::Value::is_table);
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(key, value)| flatten(format!("{name}.{key}"), value, keys));
        }
        toml::Value::Array(list) if has_tables(list) => {
            let numbered = list.iter().enumerate();
            numbered.for_each(|(index, value)| flatten(format!("{name}[{index}]"), value, keys));
        }
        _ => drop(keys.insert(name, value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    const TEXT: &str = "objectives = [\"failed < 1%\"]\n[target]\nurl = \"whep+http://127.0.0.1:1/whep\"\n[crowd]\nsize = 9\n";

    fn of(edit: impl Fn(&str) -> String) -> Vec<KeyDifference> {
        let stored = |text: &str| Scenario::parse(text).unwrap().to_toml();
        differences(&stored(TEXT), &stored(&edit(TEXT)))
    }

    #[test]
    fn keys_that_differ_are_named_and_only_some_change_the_load() {
        assert_eq!(of(str::to_owned), []);
        assert_eq!(of(|text| format!("{text}[output]\nfolder = \"elsewhere\"\n")), []);
        for (from, to, key, changes_load) in [
            ("size = 9", "size = 12", "crowd.size", true),
            ("size = 9", "size = 9\narrival = { every = \"70ms\" }", "crowd.arrival", true),
            ("127.0.0.1:1", "127.0.0.1:2", "target.url", false),
            ("failed < 1%", "failed < 2%", "objectives", false),
            ("[crowd]", "[run]\nduration = \"77s\"\n[crowd]", "run.duration", true),
            ("[crowd]", "[run]\nsummary_every = \"9s\"\n[crowd]", "run.summary_every", false),
        ] {
            let found = of(|text| text.replace(from, to));
            let first = found
                .iter()
                .find(|one| one.key.starts_with(key))
                .unwrap_or_else(|| panic!("{key}: {found:?}"));
            assert_eq!(first.changes_load(), changes_load, "{key}");
            assert_ne!(first.base, first.new);
        }
    }

    #[test]
    fn a_key_of_the_run_that_nobody_decided_on_changes_the_load() {
        let key = KeyDifference { key: "run.new".into(), base: None, new: None };
        assert!(key.changes_load());
    }

    #[test]
    fn the_secrets_of_a_command_that_was_stored_with_them_are_not_told() {
        let stored = |secret: &str, port: u16| {
            format!("[[watch]]\ncommand = [\"srv\", \"--token\", \"{secret}\", \"{port}\"]\n")
        };
        let found = differences(&stored("S3CRET", 80), &stored("…", 81));
        assert_eq!((found.len(), found[0].key.as_str()), (1, "watch[0].command"));
        assert_eq!(found[0].base.as_deref(), Some(r#"["srv", "--token", "…", "80"]"#));
        assert_eq!(differences(&stored("S3CRET", 80), &stored("…", 80)), []);
    }

    #[test]
    fn hidden_values_that_differ_are_a_difference() {
        let stored = |line: &str| format!("[crowd.chat.template]\n{line}\n");
        for (line, key, shown) in [
            ("headers = { X-Room = \"S3CRET\" }", "headers.X-Room", "\"…\""),
            ("token = \"S3CRET\"", "token", "\"…\""),
            ("say = \"key: S3CRET\"", "say", "\"key: …\""),
            ("nick_taken = \"S3CRET\"", "nick_taken", "\"S3CRET\""),
        ] {
            let found = differences(&stored(line), &stored(&line.replace("S3CRET", "0THER")));
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!(found[0].key, format!("crowd.chat.template.{key}"));
            assert_eq!(found[0].base.as_deref(), Some(shown), "{line}");
        }
    }

    #[test]
    fn a_text_that_is_no_scenario_is_one_difference() {
        let found = differences("[crowd", TEXT);
        assert_eq!((found.len(), found[0].key.as_str()), (1, "scenario"));
        assert!(differences("[crowd", "[crowd").is_empty());
    }
}
