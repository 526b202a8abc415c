//! The control groups of this process, versions 1 and 2, and what they tell of their memory.

use std::path::{Path, PathBuf};

use throng_observation::host::{cgroup, mountinfo};

/// Version 1 writes its largest number, near 2^63, where there is no limit.
const NO_LIMIT: u64 = 1 << 62;

/// Where the kernel tells of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFiles {
    /// The folder of its files.
    pub folder: PathBuf,
    /// Whether they are those of version 2.
    pub is_v2: bool,
}

impl GroupFiles {
    /// The limit of its memory; `None` where there is none, or it is not told.
    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        if self.is_v2 {
            return parse_limit(&self.read("memory.max")?);
        }
        // Version 1 tells also of a tighter one above what a container sees.
        let own = self.read("memory.limit_in_bytes").and_then(|text| parse_limit(&text));
        let above = self.read("memory.stat").and_then(|stat| parse_hierarchical_limit(&stat));
        own.into_iter().chain(above).min()
    }

    /// Its memory in use, without what the kernel takes back when it needs it; `None` if it is not
    /// told.
    pub(crate) fn used_bytes(&self) -> Option<u64> {
        let name = if self.is_v2 { "memory.current" } else { "memory.usage_in_bytes" };
        let all: u64 = self.read(name)?.trim().parse().ok()?;
        Some(all.saturating_sub(parse_reclaimable(&self.read("memory.stat")?, self.is_v2)))
    }

    /// One of its files.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.join(name)).ok()
    }
}

/// The groups that this process sees, of those by which `controller` (`memory`, `cpu`) may limit it
/// and which tell of it as `tells` asks. Its parent's view, or that of the first process, serves
/// where it sees none: `ip netns exec` mounts a `/sys` without them. The files are those below
/// `root`, which is empty for this machine.
#[must_use]
pub fn groups_of_process(
    root: &str,
    controller: &str,
    tells: impl Fn(&GroupFiles) -> bool,
) -> Vec<GroupFiles> {
    let read = |path: String| std::fs::read(path).unwrap_or_default();
    let groups = read(format!("{root}/proc/self/cgroup"));
    let parent = std::os::unix::process::parent_id();
    for (process, seen_from) in [
        ("self".to_owned(), root.to_owned()),
        (parent.to_string(), format!("{root}/proc/{parent}/root")),
        ("1".to_owned(), format!("{root}/proc/1/root")),
    ] {
        let mounts = read(format!("{root}/proc/{process}/mountinfo"));
        let mut found = group_files(&groups, &mounts, &seen_from, controller);
        found.retain(&tells);
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// The groups by which `controller` may limit, from the process's own to that which is mounted, in
/// both versions: `groups` is its `/proc/P/cgroup`, `mounts` the `/proc/P/mountinfo` of a process
/// whose root directory is `root`.
fn group_files(groups: &[u8], mounts: &[u8], root: &str, controller: &str) -> Vec<GroupFiles> {
    let is_named = |names: &str| names.split(',').any(|name| name == controller);
    let mut found = Vec::new();
    for member in cgroup::parse(groups) {
        let is_v2 = member.controllers.is_empty();
        if !is_v2 && !is_named(member.controllers) {
            continue;
        }
        let is_its = |mount: &mountinfo::CgroupMount<'_>| {
            // Mount points with blanks are escaped, and are no one's.
            mount.is_v2 == is_v2
                && (is_v2 || is_named(mount.options))
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
        folders_of("memory", groups, mounts, root)
    }

    fn folders_of(controller: &str, groups: &str, mounts: &str, root: &str) -> Vec<String> {
        let files = group_files(groups.as_bytes(), mounts.as_bytes(), root, controller);
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
        assert_eq!(
            folders_of("cpu", "4:memory:/a\n1:cpu:/x\n", VERSION_1, ""),
            ["1:/sys/fs/cgroup/cpu/x", "1:/sys/fs/cgroup/cpu"]
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
}
