//! How much of the memory that it may use the process uses: of the machine's, or of what a control
//! group leaves it, whichever is nearer to its end.
//!
//! Each group from the process's own to the root of its hierarchy may have a limit, and the kernel
//! kills at the first that is reached (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/).

use std::path::PathBuf;

use throng_observation::limits::MEMORY_RATIO_MAX;

use crate::control_groups::{GroupFiles, groups_of_process};
use crate::health::parse_kb;

/// How near a memory is to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MemoryUse {
    /// The share in use of what the process may have.
    pub(crate) ratio: f64,
    of: MemoryOwner,
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MemoryOwner {
    Machine,
    /// A control group's, which others in it may use, too.
    Group {
        /// The share of it that is in use, by whomever.
        in_use: f64,
        /// What it is charged for this process at least, bytes.
        own_bytes: u64,
    },
}

impl std::fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.of {
            MemoryOwner::Machine => {
                write!(f, "the generator uses {:.0} % of the machine's memory", self.ratio * 1e2)
            }
            MemoryOwner::Group { in_use, own_bytes } => write!(
                f,
                "the generator's control group has {:.0} % of its memory in use, {:.0} MB of it \
                 the generator's own",
                in_use * 1e2,
                own_bytes as f64 / 1e6
            ),
        }
    }
}

/// What limits the memory of the process.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Bytes.
    of_machine: Option<u64>,
    /// Each group, and the bytes that others used of it at the begin.
    groups: Vec<(GroupFiles, u64)>,
}

impl Memory {
    /// `status` is the process's `/proc/P/status`; the other files are those below `root`, which is
    /// empty for this machine.
    pub(crate) fn begin(root: &str, status: &str) -> Self {
        let meminfo = std::fs::read_to_string(format!("{root}/proc/meminfo")).unwrap_or_default();
        let own = charged_bytes(status).unwrap_or(0);
        let others = |files: &GroupFiles| files.used_bytes().unwrap_or(0).saturating_sub(own);
        let groups = groups_of_process(root, "memory", |files| files.used_bytes().is_some());
        let groups = groups.into_iter().map(|files| {
            let others = others(&files);
            (files, others)
        });
        Self { of_machine: parse_kb(&meminfo, "MemTotal"), groups: groups.collect() }
    }

    /// What the process uses at present. Limits are read anew: they may be changed at any time.
    pub(crate) fn used_by(&self, status: &str) -> MemoryUse {
        let limited = self.groups.iter().filter_map(|(files, others_bytes)| {
            let (limit_bytes, used_bytes) = (files.limit_bytes()?, files.used_bytes());
            Some(GroupUse { limit_bytes, used_bytes, others_at_begin_bytes: *others_bytes })
        });
        memory_use(status, self.of_machine, limited)
    }
}

/// The memory that a process may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// All of it, bytes.
    pub bytes: u64,
    /// The folder of the control group that limits it; `None`: it is the machine's.
    pub group: Option<PathBuf>,
    /// What the machine has of it at present, bytes: others may use the rest. `None` where the
    /// kernel does not tell.
    pub available_bytes: Option<u64>,
}

impl MemoryShare {
    /// What a run may take before it ends itself, and before the machine has no more, bytes.
    #[must_use]
    pub fn usable_bytes(&self) -> u64 {
        let guarded = (self.bytes as f64 * MEMORY_RATIO_MAX) as u64;
        self.available_bytes.map_or(guarded, |available| guarded.min(available))
    }
}

/// The least of the machine's memory and of what others leave of each control group at present, of
/// which a run may use [`MEMORY_RATIO_MAX`]; `None` where the kernel tells none. The files are
/// those below `root`, which is empty for this machine.
#[must_use]
pub fn memory_share(root: &str) -> Option<MemoryShare> {
    let status = std::fs::read_to_string(format!("{root}/proc/self/status")).unwrap_or_default();
    let Memory { of_machine, groups } = Memory::begin(root, &status);
    let of_groups = groups.into_iter().filter_map(|(files, others_bytes)| {
        Some((files.limit_bytes()?.saturating_sub(others_bytes), Some(files.folder)))
    });
    let of_machine = of_machine.map(|bytes| (bytes, None));
    let (bytes, group) = of_groups.chain(of_machine).min_by_key(|(bytes, _)| *bytes)?;
    Some(MemoryShare { bytes, group, available_bytes: available_bytes(root) })
}

/// Memory that new uses may take without swapping, bytes, by the kernel's estimate
/// (`MemAvailable`). The file is below `root`, which is empty for this machine.
pub(crate) fn available_bytes(root: &str) -> Option<u64> {
    let meminfo = std::fs::read_to_string(format!("{root}/proc/meminfo")).ok()?;
    parse_kb(&meminfo, "MemAvailable")
}

/// A group with a limit, at a moment.
#[derive(Clone, Copy, Debug)]
struct GroupUse {
    limit_bytes: u64,
    /// Without what the kernel takes back when it needs it; `None` if it is not told.
    used_bytes: Option<u64>,
    others_at_begin_bytes: u64,
}

impl GroupUse {
    /// The share in use of what the others leave. The memory of the kernel for the process, of
    /// programs that it started, and what the others take meanwhile, is the group's to tell.
    fn ratio(self, charged_bytes: u64) -> f64 {
        // Others that were there at the begin may have ended, or given some back.
        let others = self.used_bytes.map_or(self.others_at_begin_bytes, |used| {
            self.others_at_begin_bytes.min(used.saturating_sub(charged_bytes))
        });
        let told = self.used_bytes.map_or(0, |used| used.saturating_sub(others));
        match self.limit_bytes.saturating_sub(others) {
            // They have it all: nothing that the process does leaves any.
            0 => self.in_use(charged_bytes),
            left => share(told.max(charged_bytes), left),
        }
    }

    fn in_use(self, charged_bytes: u64) -> f64 {
        share(self.used_bytes.unwrap_or(0).max(charged_bytes), self.limit_bytes)
    }
}

fn share(used: u64, all: u64) -> f64 {
    used as f64 / all.max(1) as f64
}

fn memory_use(
    status: &str,
    of_machine: Option<u64>,
    groups: impl Iterator<Item = GroupUse>,
) -> MemoryUse {
    let resident = parse_kb(status, "VmRSS").zip(of_machine);
    let machine = resident.map_or(0.0, |(used, all)| share(used, all));
    let charged = charged_bytes(status).unwrap_or(0);
    let of_machine = MemoryUse { ratio: machine, of: MemoryOwner::Machine };
    let of_group = |group: GroupUse| {
        let of = MemoryOwner::Group { in_use: group.in_use(charged), own_bytes: charged };
        MemoryUse { ratio: group.ratio(charged), of }
    };
    let nearer =
        |one: MemoryUse, other: MemoryUse| if other.ratio > one.ratio { other } else { one };
    groups.map(of_group).fold(of_machine, nearer)
}

/// What a group is charged for a process at least.
///
/// It is not for receive rings (`af_packet.c` allocates them without `__GFP_ACCOUNT`), and can
/// reclaim mapped files; the kernel counts both as `RssFile`.
fn charged_bytes(status: &str) -> Option<u64> {
    let charged = parse_kb(status, "RssAnon").zip(parse_kb(status, "RssShmem"));
    charged.map(|(anonymous, shared)| anonymous + shared).or(parse_kb(status, "VmRSS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str =
        "VmRSS:\t 600 kB\nRssAnon:\t 90 kB\nRssFile:\t 500 kB\nRssShmem:\t 10 kB\n";

    /// Of groups by limit, use and the use by others at the begin, kB.
    fn all_used(of_machine: Option<u64>, groups: &[(u64, Option<u64>, u64)]) -> MemoryUse {
        let groups = groups.iter().map(|(limit, used, others)| GroupUse {
            limit_bytes: limit << 10,
            used_bytes: used.map(|used| used << 10),
            others_at_begin_bytes: others << 10,
        });
        memory_use(STATUS, of_machine.map(|kb| kb << 10), groups)
    }

    fn used(of_machine: Option<u64>, groups: &[(u64, Option<u64>, u64)]) -> (f64, bool) {
        let used = all_used(of_machine, groups);
        (used.ratio, used.of == MemoryOwner::Machine)
    }

    /// A folder with these files.
    fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_process_may_have_what_others_leave_of_the_tightest() {
        const GROUP: &str = "sys/fs/cgroup/jobs/run";
        let mounts = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let machine = [
            ("proc/meminfo", "MemTotal: 1000 kB\n"),
            ("proc/self/status", STATUS),
            ("proc/self/cgroup", "0::/jobs/run\n"),
            ("proc/self/mountinfo", mounts),
        ];
        let share = |more: &[(&str, &str)]| {
            let folder = files(&[&machine[..], more].concat());
            let root = folder.path().to_str().unwrap().to_owned();
            let share = memory_share(&root).unwrap();
            let below = |group: PathBuf| group.strip_prefix(&root).unwrap().to_owned();
            (share.bytes >> 10, share.group.map(below))
        };
        assert_eq!(share(&[]), (1_000, None));
        let [current, stat, max] =
            ["memory.current", "memory.stat", "memory.max"].map(|name| format!("{GROUP}/{name}"));
        let of_group = [(&*current, "307200"), (&*stat, "anon 1\n"), (&*max, "819200\n")];
        // 300 kB are in use, of which 100 are the process's own.
        assert_eq!(share(&of_group), (600, Some(GROUP.into())));
        assert_eq!(memory_share("/no/such/folder"), None);
    }

    #[test]
    fn a_run_may_take_what_its_guard_and_the_others_leave() {
        for (meminfo, expect_kb) in [
            ("MemTotal: 1000 kB\n", 800),
            ("MemTotal: 1000 kB\nMemAvailable: 900 kB\n", 800),
            ("MemTotal: 1000 kB\nMemAvailable: 30 kB\n", 30),
        ] {
            let folder = files(&[("proc/meminfo", meminfo)]);
            let share = memory_share(folder.path().to_str().unwrap()).unwrap();
            assert_eq!(share.usable_bytes(), expect_kb << 10, "{meminfo}");
        }
        assert!(available_bytes("") > Some(1 << 20));
    }

    const MACHINE: bool = true;
    const GROUP: bool = false;

    #[test]
    fn a_ring_counts_for_the_machine_and_not_for_the_control_group() {
        assert_eq!(used(Some(1_200), &[]), (0.5, MACHINE));
        assert_eq!(used(Some(6_000), &[(400, None, 0)]), (0.25, GROUP));
        assert_eq!(used(Some(1_200), &[(1 << 40, None, 0)]), (0.5, MACHINE));
        assert_eq!(used(None, &[]), (0.0, MACHINE));
    }

    #[test]
    fn the_group_that_is_nearest_to_its_limit_counts_with_all_that_it_holds() {
        // The kernel's memory for the process is the group's, and a slice may be the tighter one.
        assert_eq!(used(None, &[(400, Some(200), 0)]), (0.5, GROUP));
        assert_eq!(used(None, &[(1_000, Some(100), 0), (200, Some(150), 0)]), (0.75, GROUP));
        // A server that was there first has its part; what is left is what the run may use.
        assert_eq!(used(None, &[(1_000, Some(700), 600)]), (0.25, GROUP));
        assert_eq!(used(None, &[(1_000, Some(900), 600)]), (0.75, GROUP));
    }

    #[test]
    fn what_others_have_given_back_is_the_process_s_again() {
        // A server that was there first has ended.
        assert_eq!(used(None, &[(1_000, Some(300), 900)]), (0.125, GROUP));
        // Others had more than the limit, which was set lower since.
        assert_eq!(used(None, &[(500, Some(600), 550)]), (1.2, GROUP));
        assert_eq!(used(None, &[(500, None, 600)]), (0.2, GROUP));
    }

    #[test]
    fn a_group_that_others_fill_is_not_said_to_be_filled_by_the_generator() {
        for (machine, groups, expect) in [
            (Some(1_200), &[][..], "the generator uses 50 % of the machine's memory"),
            (
                None,
                &[(1_000, Some(900), 600)],
                "the generator's control group has 90 % of its memory in use, 0 MB of it the \
                 generator's own",
            ),
        ] {
            assert_eq!(all_used(machine, groups).to_string(), expect);
        }
    }
}
