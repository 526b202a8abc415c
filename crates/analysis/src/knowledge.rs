//! What is known of the watched server's threads and log lines: the knowledge packs that were kept with the run.

use serde::Deserialize;
use throng_observation::host::HostInfo;
use throng_observation::pack::glob_matches;

/// The fact of a host under which its knowledge packs stand, a JSON list.
pub const PACKS_FACT: &str = "packs";

/// The group of threads that drive participants of throng itself: a crowd beside the server, never the server.
pub const CROWD_GROUP: &str = "crowd";

/// What packs say that is shown here; what else a pack holds is left alone, so that packs may grow.
#[derive(Debug, Default)]
pub struct Knowledge(Vec<Pack>);

#[derive(Debug, Default, Deserialize)]
struct Pack {
    #[serde(default)]
    processes: Vec<String>,
    #[serde(default, rename = "thread")]
    threads: Vec<ThreadMeaning>,
    #[serde(default, rename = "log")]
    logs: Vec<LogPattern>,
}

/// What the threads of a name do, and what changes it.
#[derive(Debug, Default, Deserialize)]
pub struct ThreadMeaning {
    name: String,
    /// The pool they belong to.
    pub group: String,
    /// What they do, in a sentence.
    pub meaning: String,
    /// The setting that gives them more room.
    #[serde(default)]
    pub setting: Option<Setting>,
    /// What to do where no setting helps, in a sentence.
    #[serde(default)]
    pub remedy: Option<String>,
}

/// A setting of the server.
#[derive(Debug, Default, Deserialize)]
pub struct Setting {
    /// Its name as the server spells it.
    pub name: String,
    /// The file and the place within.
    pub place: String,
    /// What one more of it is: `thread`, `process`, `connection`.
    #[serde(default)]
    pub unit: String,
    /// The value that the server takes without it.
    #[serde(default)]
    pub default: Option<String>,
    /// When to change it and how far, in a sentence.
    #[serde(default)]
    pub advice: Option<String>,
}

/// What log lines of a pattern mean.
#[derive(Debug, Default, Deserialize)]
pub struct LogPattern {
    id: String,
    /// What they mean, in a sentence.
    pub meaning: String,
    /// What they point to.
    #[serde(default)]
    pub hint: Option<String>,
}

impl Knowledge {
    /// What was kept with the host; nothing where there is none, or none that can be read.
    #[must_use]
    pub fn of(info: Option<&HostInfo>) -> Self {
        let packs = info.and_then(|info| info.facts.get(PACKS_FACT));
        Self(packs.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default())
    }

    /// What the threads of this name do.
    #[must_use]
    pub fn thread(&self, process: &str, name: &str) -> Option<&ThreadMeaning> {
        let of_process = |pack: &&Pack| pack.processes.iter().any(|glob| glob_matches(glob, process));
        let packs = self.0.iter().filter(of_process);
        packs.flat_map(|pack| &pack.threads).find(|meaning| glob_matches(&meaning.name, name))
    }

    /// What the log lines of this pattern mean.
    #[must_use]
    pub fn log(&self, pattern: &str) -> Option<&LogPattern> {
        self.0.iter().flat_map(|pack| &pack.logs).find(|known| known.id == pattern)
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

impl Setting {
    /// The setting in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = format!("{} ({})", self.name, self.place);
        if let Some(default) = &self.default {
            text += &format!(", default {default}");
        }
        if let Some(advice) = &self.advice {
            text += &format!(": {advice}");
        }
        text
    }
}

impl ThreadMeaning {
    /// What to change, in a sentence; empty where nothing is known to help.
    #[must_use]
    pub fn mend(&self) -> String {
        let setting = self.setting.as_ref().map(Setting::sentence);
        [setting, self.remedy.clone()].into_iter().flatten().collect::<Vec<_>>().join(". ")
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
            r#"[{"pack":"janus","processes":["janus*"],"thread":[{"name":"hloop *","group":"hloop","meaning":"sends"}]},
                {"pack":"any","processes":["*"],"later":1,"thread":[{"name":"pool-*","group":"GLib","meaning":"pool"}]}]"#,
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
