//! `/proc/P/mountinfo` (proc(5)): where control group hierarchies are mounted.

use super::scan::lines;

/// A mounted hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupMount<'a> {
    /// Where; octal escapes are left as they are, and such paths are not used.
    pub point: &'a str,
    /// Which part of the hierarchy is mounted there; not `/` in a container.
    pub root: &'a str,
    /// Version 2.
    pub is_v2: bool,
    /// The controllers of version 1 among the mount's options, separated by commas.
    pub options: &'a str,
}

/// The hierarchies.
pub fn parse(text: &[u8]) -> impl Iterator<Item = CgroupMount<'_>> {
    lines(text).filter_map(|line| {
        let (mount, filesystem) = std::str::from_utf8(line).ok()?.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut filesystem = filesystem.split(' ');
        let is_v2 = match filesystem.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        let options = filesystem.nth(1).unwrap_or_default();
        Some(CgroupMount { point, root, is_v2, options })
    })
}
