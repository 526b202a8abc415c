//! How much of the memory that it may use the process uses: of the machine's, or of what a control
//! group leaves it, whichever is nearer to its end.
//!
//! Each group from the process's own to the root of its hierarchy may have a limit, and the kernel
//! kills at the first that is reached (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/).

use std::path::{Path, PathBuf};

use throng_observation::host::{cgroup, mountinfo};

use crate::health::parse_kb;

/// Version 1 writes its largest number, near 2^63, where there is no limit.
const NO_LIMIT: u64 = 1 << 62;

/// How near a memory is to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MemoryUse {
    /// The share in use of what the process may have.
    pub(crate) ratio: f64,
    of: Whose,
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Whose {
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
            Whose::Machine => {
                write!(f, "the generator uses {:.0} % of the machine's memory", self.ratio * 1e2)
            }
            Whose::Group { in_use, own_bytes } => write!(
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
    /// `status` is the process's `/proc/P/status`.
    pub(crate) fn begin(status: &str) -> Self {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let own = charged_bytes(status).unwrap_or(0);
        let others = |files: &GroupFiles| files.used_bytes().unwrap_or(0).saturating_sub(own);
        let groups = groups_of_process().into_iter().map(|files| {
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
    let of_machine = MemoryUse { ratio: machine, of: Whose::Machine };
    let of_group = |group: GroupUse| {
        let of = Whose::Group { in_use: group.in_use(charged), own_bytes: charged };
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

/// Where the kernel tells of a control group's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupFiles {
    folder: PathBuf,
    is_v2: bool,
}

impl GroupFiles {
    fn limit_bytes(&self) -> Option<u64> {
        if self.is_v2 {
            return parse_limit(&self.read("memory.max")?);
        }
        // Version 1 tells also of a tighter one above what a container sees.
        let own = self.read("memory.limit_in_bytes").and_then(|text| parse_limit(&text));
        let above = self.read("memory.stat").and_then(|stat| parse_hierarchical_limit(&stat));
        own.into_iter().chain(above).min()
    }

    fn used_bytes(&self) -> Option<u64> {
        let name = if self.is_v2 { "memory.current" } else { "memory.usage_in_bytes" };
        let all: u64 = self.read(name)?.trim().parse().ok()?;
        Some(all.saturating_sub(parse_reclaimable(&self.read("memory.stat")?, self.is_v2)))
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.join(name)).ok()
    }
}

/// The groups that this process sees. Its parent's view, or that of the first process, serves where
/// it sees none: `ip netns exec` mounts a `/sys` without them.
fn groups_of_process() -> Vec<GroupFiles> {
    let read = |path: String| std::fs::read(path).unwrap_or_default();
    let groups = read("/proc/self/cgroup".to_owned());
    let parent = std::os::unix::process::parent_id();
    for (process, root) in [
        ("self".to_owned(), String::new()),
        (parent.to_string(), format!("/proc/{parent}/root")),
        ("1".to_owned(), "/proc/1/root".to_owned()),
    ] {
        let mut found = group_files(&groups, &read(format!("/proc/{process}/mountinfo")), &root);
        found.retain(|files| files.used_bytes().is_some());
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// The groups that may limit memory, from the process's own to that which is mounted, in both
/// versions: `groups` is its `/proc/P/cgroup`, `mounts` the `/proc/P/mountinfo` of a process whose
/// root directory is `root`.
fn group_files(groups: &[u8], mounts: &[u8], root: &str) -> Vec<GroupFiles> {
    let is_memory = |names: &str| names.split(',').any(|name| name == "memory");
    let mut found = Vec::new();
    for member in cgroup::parse(groups) {
        let is_v2 = member.controllers.is_empty();
        if !is_v2 && !is_memory(member.controllers) {
            continue;
        }
        let is_its = |mount: &mountinfo::CgroupMount<'_>| {
            // Mount points with blanks are escaped, and are no one's.
            mount.is_v2 == is_v2
                && (is_v2 || is_memory(mount.options))
                && !mount.point.contains('\\')
        };
        for mount in mountinfo::parse(mounts).filter(is_its) {
            // A container may see its own group as the root. One outside of what is mounted has
            // `..` in its path, and cannot be resolved.
            let Ok(below) = Path::new(member.path).strip_prefix(mount.root) else { continue };
            if member.path.contains("..") {
                continue;
            }
            let top = PathBuf::from(format!("{root}{}", mount.point));
            let mut own = top.clone();
            own.extend(below);
            let upward = own.ancestors().take_while(|folder| folder.starts_with(&top));
            found.extend(upward.map(|folder| GroupFiles { folder: folder.to_owned(), is_v2 }));
        }
    }
    found
}

/// A limit in bytes; `None` for `max`, and for version 1's number for none.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|limit| *limit < NO_LIMIT)
}

/// The least limit of a group of version 1 and of all above it, by its `memory.stat`.
fn parse_hierarchical_limit(stat: &str) -> Option<u64> {
    parse_limit(stat.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit "))?)
}

/// Bytes of `memory.stat` that the kernel takes back when a group needs them: pages of files, and
/// of version 2, which tells it, names and inodes of files. Version 1 counts descendants in figures
/// of their own.
fn parse_reclaimable(stat: &str, is_v2: bool) -> u64 {
    let names: &[&str] = if is_v2 {
        &["inactive_file", "active_file", "slab_reclaimable"]
    } else {
        &["total_inactive_file", "total_active_file"]
    };
    let figure = |line: &str| {
        let (name, bytes) = line.split_once(' ')?;
        names.contains(&name).then(|| bytes.trim().parse::<u64>().ok())?
    };
    stat.lines().filter_map(figure).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As files of a kernel name them, with `2:` before those of version 2.
    fn folders(groups: &str, mounts: &str, root: &str) -> Vec<String> {
        let files = group_files(groups.as_bytes(), mounts.as_bytes(), root);
        let show = |files: &GroupFiles| {
            format!("{}:{}", if files.is_v2 { 2 } else { 1 }, files.folder.display())
        };
        files.iter().map(show).collect()
    }

    const SYSTEMD: &str = "24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw\n\
        35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
    const VERSION_1: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        36 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const DOCKER_1: &str = "36 31 0:32 /docker/ab12 /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:17 - cgroup cgroup rw,memory\n";

    #[test]
    fn the_own_group_and_all_above_it_are_read_in_either_version() {
        for (what, groups, mounts, expect) in [
            (
                "MemoryMax of a systemd slice or scope",
                "0::/user.slice/user-1000.slice/run-7.scope\n",
                SYSTEMD,
                &[
                    "2:/sys/fs/cgroup/user.slice/user-1000.slice/run-7.scope",
                    "2:/sys/fs/cgroup/user.slice/user-1000.slice",
                    "2:/sys/fs/cgroup/user.slice",
                    "2:/sys/fs/cgroup",
                ][..],
            ),
            (
                "version 1, and a version 2 without controllers",
                "4:memory:/jobs/a\n1:cpu:/x\n0::/\n",
                VERSION_1,
                &[
                    "1:/sys/fs/cgroup/memory/jobs/a",
                    "1:/sys/fs/cgroup/memory/jobs",
                    "1:/sys/fs/cgroup/memory",
                    "2:/sys/fs/cgroup/unified",
                ],
            ),
            (
                "a container without a namespace of groups",
                "4:memory:/docker/ab12\n",
                DOCKER_1,
                &["1:/sys/fs/cgroup/memory"],
            ),
            (
                "a group within a container",
                "4:memory:/docker/ab12/job\n",
                DOCKER_1,
                &["1:/sys/fs/cgroup/memory/job", "1:/sys/fs/cgroup/memory"],
            ),
            (
                "a container with a namespace of groups",
                "0::/\n",
                "812 811 0:30 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n",
                &["2:/sys/fs/cgroup"],
            ),
            ("a group of another container", "4:memory:/docker/cd34\n", DOCKER_1, &[]),
            ("a group outside of the namespace", "0::/../other\n", SYSTEMD, &[]),
            ("no memory controller", "1:cpu:/x\n", VERSION_1, &[]),
            ("nothing mounted", "0::/a\n", "", &[]),
            ("rubbish", "\n:\nx:y:z\n0:\n", "- -\n", &[]),
        ] {
            assert_eq!(folders(groups, mounts, ""), expect, "{what}");
        }
        assert_eq!(
            folders("4:memory:/a\n", VERSION_1, "/proc/7/root"),
            ["1:/proc/7/root/sys/fs/cgroup/memory/a", "1:/proc/7/root/sys/fs/cgroup/memory"]
        );
    }

    #[test]
    fn a_limit_is_a_number_and_files_can_be_taken_back() {
        for (text, expect) in [
            ("25165824\n", Some(24 << 20)),
            ("max\n", None),
            ("9223372036854771712\n", None),
            ("-1\n", None),
            ("", None),
        ] {
            assert_eq!(parse_limit(text), expect, "{text:?}");
        }
        let stat = |limit: u64| format!("rss 7\nhierarchical_memory_limit {limit}\ntotal_rss 9\n");
        assert_eq!(parse_hierarchical_limit(&stat(1 << 30)), Some(1 << 30));
        assert_eq!(parse_hierarchical_limit(&stat(9_223_372_036_854_771_712)), None);
        let v2 = "anon 900\nfile 50\ninactive_anon 7\ninactive_file 20\nactive_file 30\nsock 5\n\
                  slab_reclaimable 40\nslab_unreclaimable 8\nslab 48\n";
        let v1 = "inactive_file 1\nactive_file 2\ntotal_inactive_file 20\ntotal_active_file 30\n";
        assert_eq!((parse_reclaimable(v2, true), parse_reclaimable(v1, false)), (90, 50));
        assert_eq!(parse_reclaimable("active_file\nactive_file x\n", true), 0);
    }

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
        (used.ratio, used.of == Whose::Machine)
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
