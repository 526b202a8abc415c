//! What a change of a server gives more of: the claim that an experiment tests.

/// A resource, or the part of it that a finding names. Words of the file of an experiment; whether
/// a run names it as its limit is decided by `throng-analysis`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relief {
    /// `cpu`, `disk`, `memory`, `network` or `sockets`; `None` where only a finding is named.
    pub resource: Option<String>,
    /// A [glob](crate::pack::thread_name_matches) on the name of the threads that get room.
    pub thread: Option<String>,
    /// The setting that gives them room, as the server spells it.
    pub setting: Option<String>,
    /// The key of the finding that goes away (docs/findings.md).
    pub finding: Option<String>,
}

impl Relief {
    /// All of a resource.
    #[must_use]
    pub fn of_resource(resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..Self::default() }
    }

    /// What it gives more of, in words: `thread SW-WebRTC (StreamWorkerCount)`, `cpu`,
    /// `finding cpu_full`. `thread` and `setting` are those that a run names, if one does.
    #[must_use]
    pub fn words(&self, thread: Option<&str>, setting: Option<&str>) -> String {
        if let Some(glob) = &self.thread {
            let name = thread.unwrap_or_else(|| glob.trim_end_matches(['*', '?', ' ']));
            return match self.setting.as_deref().or(setting) {
                Some(setting) => format!("thread {name} ({setting})"),
                None => format!("thread {name}"),
            };
        }
        match (&self.setting, &self.finding, &self.resource) {
            (Some(setting), ..) => setting.clone(),
            (None, Some(finding), _) => format!("finding {finding}"),
            (None, None, resource) => resource.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_narrowest_part() {
        let workers = Relief {
            thread: Some("SW-*".into()),
            setting: Some("StreamWorkerCount".into()),
            ..Relief::of_resource("cpu")
        };
        let unset = Relief { setting: None, ..workers.clone() };
        let setting = Relief { thread: None, ..workers.clone() };
        let finding = Relief { finding: Some("configured_ceiling".into()), ..Relief::default() };
        for (relief, thread, named, expect) in [
            (&workers, Some("SW-WebRTC"), None, "thread SW-WebRTC (StreamWorkerCount)"),
            (&workers, None, None, "thread SW- (StreamWorkerCount)"),
            (&unset, Some("SW-WebRTC"), Some("of a pack"), "thread SW-WebRTC (of a pack)"),
            (&unset, None, None, "thread SW-"),
            (&setting, Some("SW-WebRTC"), None, "StreamWorkerCount"),
            (&finding, None, None, "finding configured_ceiling"),
            (&Relief::of_resource("cpu"), Some("SW-WebRTC"), Some("of a pack"), "cpu"),
        ] {
            assert_eq!(relief.words(thread, named), expect, "{relief:?}");
        }
    }
}
