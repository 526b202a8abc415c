//! Whether the limit that a run names is what a change gives more of. Runs of one limit may call it
//! by several findings (a full thread, its bursts, its wait for a CPU): what they have in common is
//! the thread, or the resource.

use throng_observation::Relief;
use throng_observation::pack::thread_name_matches;

use super::resource_of;

/// The limit that a run names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedLimit {
    /// The key of its finding (docs/findings.md).
    pub finding: String,
    /// The name of the thread that is the limit, if it is one.
    pub thread: Option<String>,
    /// The setting that gives this thread room, if one is known.
    pub setting: Option<String>,
}

impl NamedLimit {
    /// Whether both are one limit, by whichever findings: threads of one name, which numbers at its
    /// end may tell apart, or the same finding of no thread.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.thread, &other.thread) {
            (Some(name), Some(other)) => pool(name) == pool(other),
            (None, None) => self.finding == other.finding,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// In words: `thread SW-WebRTC (StreamWorkerCount)`, `network (line_rate)`,
    /// `finding configured_ceiling`.
    #[must_use]
    pub fn words(&self) -> String {
        let setting = self.setting.as_deref();
        match (&self.thread, resource_of(&self.finding)) {
            (Some(name), _) => {
                let relief = Relief { thread: Some(name.clone()), ..Relief::default() };
                relief.words(Some(name.as_str()), setting)
            }
            (None, Some(resource)) => format!("{resource} ({})", self.finding),
            (None, None) => {
                let relief = Relief { finding: Some(self.finding.clone()), ..Relief::default() };
                relief.words(None, None)
            }
        }
    }
}

/// The name of a pool of threads: `worker-` of `worker-3`.
fn pool(thread: &str) -> &str {
    let name = thread.trim_end_matches(|c: char| c.is_ascii_digit());
    if name.is_empty() { thread } else { name }
}

/// The limit that most of `limits` (one of each run that names one) are, called by the finding that
/// most of these call it, and how many they are; of equally many the first. `None` without any.
#[must_use]
pub fn most_named(limits: &[NamedLimit]) -> Option<(&NamedLimit, usize)> {
    let of_same = |limit: &NamedLimit| limits.iter().filter(|other| other.is_same(limit)).count();
    let of_finding = |limit: &NamedLimit| {
        let is_called = |other: &&NamedLimit| other.finding == limit.finding;
        limits.iter().filter(is_called).filter(|other| other.is_same(limit)).count()
    };
    let ranked = limits.iter().map(|limit| (limit, of_same(limit), of_finding(limit)));
    // `max_by_key` takes the last of equals.
    let most = ranked.rev().max_by_key(|(_, same, called)| (*same, *called));
    most.map(|(limit, same, _)| (limit, same))
}

/// The resource that `relief` gives more of; `None` for a finding that no amount of one removes.
#[must_use]
pub fn resource_of_relief(relief: &Relief) -> Option<&str> {
    relief.resource.as_deref().or_else(|| relief.finding.as_deref().and_then(resource_of))
}

/// Whether `limit` is what `relief` gives more of: the thread decides, else the setting, else the
/// resource; and the finding, where one is asked for.
#[must_use]
pub fn is_relieved(limit: &NamedLimit, relief: &Relief) -> bool {
    let is_of_finding = relief.finding.as_ref().is_none_or(|finding| *finding == limit.finding);
    let is_of_resource = || {
        let resource = resource_of(&limit.finding);
        relief.finding.is_some() || resource.is_some() && resource == resource_of_relief(relief)
    };
    // A setting gives threads room; a full host has none.
    let is_cpu = resource_of_relief(relief) == Some("cpu");
    let is_of_thread = || is_of_resource() && (limit.thread.is_some() || !is_cpu);
    let is_of_part = match (&relief.thread, &relief.setting) {
        (Some(glob), _) => {
            limit.thread.as_ref().is_some_and(|name| thread_name_matches(glob, name))
        }
        // Without a pack that knows the thread its setting is not known either.
        (None, Some(setting)) => {
            limit.setting.as_ref().map_or_else(is_of_thread, |named| named == setting)
        }
        (None, None) => is_of_resource(),
    };
    is_of_finding && is_of_part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(finding: &str, thread: Option<&str>, setting: Option<&str>) -> NamedLimit {
        NamedLimit {
            finding: finding.into(),
            thread: thread.map(str::to_owned),
            setting: setting.map(str::to_owned),
        }
    }

    #[test]
    fn one_limit_of_many_names_is_one_and_others_are_not() {
        let thread = Relief { thread: Some("sw-webrtc*".into()), ..Relief::of_resource("cpu") };
        let setting =
            Relief { setting: Some("StreamWorkerCount".into()), ..Relief::of_resource("cpu") };
        let finding = Relief { finding: Some("configured_ceiling".into()), ..Relief::default() };
        let cpu = Relief::of_resource("cpu");
        let (workers, count) = (Some("SW-WebRTC"), Some("StreamWorkerCount"));
        for (relief, limit, expect) in [
            (&thread, limit("one_thread_full", workers, count), true),
            (&thread, limit("cpu_bursts", workers, None), true),
            (&thread, limit("run_queue", workers, count), true),
            (&thread, limit("one_thread_full", Some("AW-WebRTC0"), Some("AppWorkerCount")), false),
            (&thread, limit("cpu_full", None, None), false),
            (&setting, limit("one_thread_full", workers, count), true),
            (&setting, limit("one_thread_full", Some("AW-WebRTC0"), Some("AppWorkerCount")), false),
            (&setting, limit("one_thread_full", Some("worker"), None), true),
            (&setting, limit("cpu_full", None, None), false),
            (&setting, limit("line_rate", None, None), false),
            (&finding, limit("configured_ceiling", None, None), true),
            (&finding, limit("cpu_full", None, None), false),
            (&cpu, limit("cpu_bursts", workers, count), true),
            (&cpu, limit("disk_read", None, None), false),
            (&cpu, limit("configured_ceiling", None, None), false),
        ] {
            assert_eq!(is_relieved(&limit, relief), expect, "{relief:?} {limit:?}");
        }
    }

    #[test]
    fn one_thread_by_four_findings_is_the_limit_of_most_runs() {
        let worker = |finding| limit(finding, Some("SW-WebRTC"), Some("StreamWorkerCount"));
        let limits = [
            limit("cpu_full", None, None),
            worker("cpu_bursts"),
            worker("run_queue"),
            worker("one_thread_full"),
            worker("run_queue"),
        ];
        let (named, runs) = most_named(&limits).unwrap();
        assert_eq!((named.finding.as_str(), runs), ("run_queue", 4));
        assert_eq!(named.words(), "thread SW-WebRTC (StreamWorkerCount)");
        assert_eq!(most_named(&[]), None);
        // Workers of one pool, and another pool.
        let full = |thread| limit("one_thread_full", Some(thread), None);
        let limits = [full("7"), full("worker-3"), full("worker-12"), full("AW-WebRTC0")];
        assert_eq!(most_named(&limits), Some((&limits[1], 2)));
        let limits = [limit("line_rate", None, None), limit("path_loss", None, None)];
        assert_eq!(most_named(&limits), Some((&limits[0], 1)), "of equally many the first");
    }

    #[test]
    fn a_limit_in_words_says_more_than_the_key_of_its_finding() {
        for (limit, expect) in [
            (limit("one_thread_full", Some("worker-3"), None), "thread worker-3"),
            (limit("line_rate", None, None), "network (line_rate)"),
            (limit("configured_ceiling", None, None), "finding configured_ceiling"),
        ] {
            assert_eq!(limit.words(), expect);
        }
    }

    #[test]
    fn a_finding_has_its_resource_and_a_thread_may_have_both() {
        let finding = |key: &str| Relief { finding: Some(key.into()), ..Relief::default() };
        assert_eq!(resource_of_relief(&finding("disk_read")), Some("disk"));
        assert_eq!(resource_of_relief(&finding("configured_ceiling")), None);
        let both = Relief { thread: Some("SW-*".into()), ..finding("one_thread_full") };
        assert!(is_relieved(&limit("one_thread_full", Some("SW-WebRTC"), None), &both));
        assert!(!is_relieved(&limit("cpu_bursts", Some("SW-WebRTC"), None), &both));
    }
}
