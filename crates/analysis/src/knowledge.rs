//! What is known of the watched server's threads and log lines: the knowledge packs that were kept with the run.

use throng_observation::host::HostInfo;
use throng_observation::pack::{LogPattern, PACKS_FACT, Pack, ThreadMeaning, packs_of_process};

/// The group of threads that drive participants of throng itself: a crowd beside the server, never the server.
pub const CROWD_GROUP: &str = "crowd";

/// The packs of a host's server.
#[derive(Debug, Default)]
pub struct Knowledge(Vec<Pack>);

impl Knowledge {
    /// What was kept with the host; nothing where there is none, or none that can be read.
    #[must_use]
    pub fn of(info: Option<&HostInfo>) -> Self {
        let json = info.and_then(|info| info.facts.get(PACKS_FACT));
        let packs: Vec<serde_json::Value> =
            json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        // One that a newer throng has written may say what is not known here; the others still count.
        Self(packs.into_iter().filter_map(|pack| serde_json::from_value(pack).ok()).collect())
    }

    /// What the threads of this name do.
    #[must_use]
    pub fn thread(&self, process: &str, name: &str) -> Option<&ThreadMeaning> {
        packs_of_process(&self.0, process).find_map(|pack| pack.thread_meaning(name))
    }

    /// What the log lines of this pattern mean.
    #[must_use]
    pub fn log(&self, pattern: &str) -> Option<&LogPattern> {
        self.0.iter().find_map(|pack| pack.log_pattern(pattern))
    }

    /// What a thread is counted with: the pack's group, else the threads whose names differ only in a number.
    #[must_use]
    pub fn group(&self, process: &str, name: &str) -> String {
        match self.thread(process, name) {
            Some(known) => known.group.clone(),
            None => without_number(name),
        }
    }
}

/// `hloop 12` and `hloop 7` are both `hloop *`.
fn without_number(name: &str) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match stem.len() {
        0 => "numbers".into(),
        length if length == name.len() => name.to_owned(),
        _ => format!("{stem}*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn knowledge(json: &str) -> Knowledge {
        let facts = BTreeMap::from([(PACKS_FACT.to_owned(), json.to_owned())]);
        Knowledge::of(Some(&HostInfo { facts, ..HostInfo::default() }))
    }

    #[test]
    fn a_pack_speaks_of_its_own_processes_only() {
        let known = knowledge(
            r#"[{"pack":"newer","title":"","source":"","processes":["janus"],"later":1},
                {"pack":"any","title":"","source":"","processes":["*"],"thread":[{"name":"pool-*","group":"GLib","meaning":"pool"}]},
                {"pack":"janus","title":"","source":"","processes":["janus*"],"thread":[{"name":"hloop *","group":"hloop","meaning":"sends"}]}]"#,
        );
        assert_eq!(known.thread("janus", "hloop 3").map(|known| known.meaning.as_str()), Some("sends"));
        assert!(known.thread("nginx", "hloop 3").is_none());
        assert_eq!(known.group("janus", "pool-1"), "GLib");
    }

    #[test]
    fn threads_that_differ_in_a_number_are_one_group() {
        let none = Knowledge::default();
        for (name, group) in [
            ("hloop 12", "hloop *"),
            ("worker-3", "worker-*"),
            ("main", "main"),
            ("42", "numbers"),
            ("", "numbers"),
        ] {
            assert_eq!(none.group("x", name), group);
        }
    }

    #[test]
    fn rubbish_is_no_knowledge() {
        for json in ["", "{", "7", "[{\"thread\":7}]"] {
            assert!(knowledge(json).thread("a", "b").is_none());
        }
    }
}
