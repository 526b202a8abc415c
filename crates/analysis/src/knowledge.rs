//! Knowledge about the watched server's threads and log lines: the knowledge packs stored with the
//! run, and facts about its processes from the watcher.

use std::collections::BTreeMap;

use throng_observation::host::HostInfo;
use throng_observation::host::measured::Host;
use throng_observation::pack::{
    LogPattern, PACKS_FACT, Pack, Runtime, ThreadMeaning, packs_of_process, thread_name_matches,
};

/// The group of throng's own threads that drive participants: they do not belong to the server.
pub const CROWD_GROUP: &str = "crowd";

/// The knowledge packs of a host's server, and the facts of the host.
#[derive(Debug, Default)]
pub struct Knowledge {
    packs: Vec<Pack>,
    facts: BTreeMap<String, String>,
}

impl Knowledge {
    /// The knowledge stored with a host; empty if there is none or it cannot be read.
    #[must_use]
    pub fn of(info: Option<&HostInfo>) -> Self {
        let json = info.and_then(|info| info.facts.get(PACKS_FACT));
        let packs: Vec<serde_json::Value> =
            json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        // A pack of a newer throng may have unknown fields; the others still count.
        let packs =
            packs.into_iter().filter_map(|pack| serde_json::from_value(pack).ok()).collect();
        Self { packs, facts: info.map(|info| info.facts.clone()).unwrap_or_default() }
    }

    /// The runtime that may run any of its tasks on this thread.
    #[must_use]
    pub fn runtime(&self, process: &str, name: &str) -> Option<Runtime> {
        let of_pack = self.thread(process, name).and_then(|known| known.runtime);
        // Threads that a runtime does not name have the program's name; other threads are those of
        // libraries.
        let of_program = || {
            let runtime = self.facts.get(&format!("{process}.runtime"))?;
            Runtime::from_key(runtime).filter(|_| name == process)
        };
        of_pack.or_else(of_program)
    }

    /// The number of threads that the runtime of a process runs at once, if its environment sets
    /// it.
    #[must_use]
    pub fn parallelism(&self, process: &str, runtime: Runtime) -> Option<u32> {
        let value = self.facts.get(&format!("{process}.environment.{}", runtime.variable()?))?;
        value.trim().parse().ok().filter(|threads| *threads > 0)
    }

    /// The meaning of threads of this name.
    #[must_use]
    pub fn thread(&self, process: &str, name: &str) -> Option<&ThreadMeaning> {
        packs_of_process(&self.packs, process).find_map(|pack| pack.thread_meaning(name))
    }

    /// The name of the setting that gives threads of this name more room.
    #[must_use]
    pub fn thread_setting(&self, process: &str, name: &str) -> Option<String> {
        let of_pack = self.thread(process, name).and_then(|known| known.setting.as_ref());
        let of_runtime =
            || self.runtime(process, name).and_then(Runtime::variable).map(str::to_owned);
        of_pack.map(|setting| setting.name.clone()).or_else(of_runtime)
    }

    /// The meaning of log lines of this pattern.
    #[must_use]
    pub fn log(&self, pattern: &str) -> Option<&LogPattern> {
        self.packs.iter().find_map(|pack| pack.log_pattern(pattern))
    }

    /// Whether a scraped metric counts the bytes that the server receives from the sources of its
    /// media.
    pub(crate) fn is_ingest(&self, metric: &str) -> bool {
        self.packs.iter().any(|pack| pack.is_ingest(metric))
    }

    /// The log lines that speak of threads of this name.
    pub(crate) fn logs_of_thread(
        &self,
        process: &str,
        name: &str,
    ) -> impl Iterator<Item = &LogPattern> {
        let is_of_it = move |log: &&LogPattern| {
            log.thread.as_ref().is_some_and(|glob| thread_name_matches(glob, name))
        };
        packs_of_process(&self.packs, process).flat_map(|pack| &pack.logs).filter(is_of_it)
    }

    /// The group of a thread: the pack's, else the threads whose names differ only in a number.
    #[must_use]
    pub fn group(&self, process: &str, name: &str) -> String {
        match self.thread(process, name) {
            Some(known) => known.group.clone(),
            None => without_number(name),
        }
    }
}

/// Whether a process of a host runs at lowered priority (a nice value above 0).
pub(crate) fn is_low_priority(host: &Host<'_>, process: &str) -> bool {
    let nice = host.fact(&format!("{process}.nice")).and_then(|nice| nice.parse::<i32>().ok());
    nice.is_some_and(|nice| nice > 0)
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
        assert_eq!(
            known.thread("janus", "hloop 3").map(|known| known.meaning.as_str()),
            Some("sends")
        );
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
    fn a_runtime_is_known_by_its_pack_or_its_program() {
        let facts = [
            (
                PACKS_FACT,
                r#"[{"pack":"any","processes":["*"],"thread":[{"name":"tokio-*","group":"Tokio","meaning":"any task","runtime":"tokio"}]}]"#,
            ),
            ("sfu.runtime", "go"),
            ("sfu.environment.GOMAXPROCS", "2"),
        ];
        let facts =
            facts.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let known = Knowledge::of(Some(&HostInfo { facts, ..HostInfo::default() }));
        assert_eq!(known.runtime("relay", "tokio-runtime-w"), Some(Runtime::Tokio));
        assert_eq!(known.runtime("sfu", "sfu"), Some(Runtime::Go));
        assert_eq!(known.runtime("sfu", "libav"), None, "a thread of a library");
        assert_eq!(known.thread_setting("sfu", "sfu").as_deref(), Some("GOMAXPROCS"));
        assert_eq!(known.thread_setting("sfu", "libav"), None);
        assert_eq!(known.parallelism("sfu", Runtime::Go), Some(2));
        assert_eq!(known.parallelism("relay", Runtime::Tokio), None);
    }

    #[test]
    fn rubbish_is_no_knowledge() {
        for json in ["", "{", "7", "[{\"thread\":7}]"] {
            assert!(knowledge(json).thread("a", "b").is_none());
        }
    }
}
