//! CPUs, by the affinity of this process and the quotas of its control groups.

use std::path::PathBuf;

use throng_engine::control_groups::{GroupFiles, groups_of_process};
use throng_watch::proc::{cgroup_files, scan, status};

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let online = facts.text("/sys/devices/system/cpu/online");
    let online = online.map(|list| scan::cpu_list(&list).count());
    let allowed =
        facts.text("/proc/self/status").and_then(|text| status::cpus_allowed(text.as_bytes()));
    let of_online = online.map_or_else(String::new, |online| format!(" of {online}"));
    let allowed_words = allowed.map_or_else(|| "?".to_owned(), |allowed| allowed.to_string());
    let mut found = format!("{allowed_words}{of_online}; {} engine threads at most", facts.threads);
    let quota = tightest_quota(&facts.root);
    if let Some((cores, group)) = &quota {
        found += &format!("; quota of {cores:.2} cores by {}", group.display());
    }
    let is_held_back =
        quota.zip(allowed).is_some_and(|((cores, _), allowed)| cores < f64::from(allowed));
    Check {
        name: "cpus",
        found,
        verdict: Verdict::unless(
            !is_held_back,
            "at its quota the kernel stops throng for the rest of a period: lag makes runs invalid",
        ),
        change: "CPUQuota= of systemd, --cpus of a container; `throng calibrate` measures how \
                 many viewers the CPUs play"
            .to_owned(),
    }
}

/// The least quota of the groups of this process, in cores, and the folder of the group.
fn tightest_quota(root: &str) -> Option<(f64, PathBuf)> {
    let groups = groups_of_process(root, "cpu", |files| quota(files).is_some());
    let quotas = groups.into_iter().filter_map(|files| Some((quota(&files)?, files.folder)));
    quotas.min_by(|(one, _), (other, _)| one.total_cmp(other))
}

fn quota(files: &GroupFiles) -> Option<f64> {
    if files.is_v2 {
        return cgroup_files::cpu_max(files.read("cpu.max")?.as_bytes());
    }
    let (quota, period) = (files.read("cpu.cfs_quota_us")?, files.read("cpu.cfs_period_us")?);
    cgroup_files::cfs_quota(quota.as_bytes(), period.as_bytes())
}
