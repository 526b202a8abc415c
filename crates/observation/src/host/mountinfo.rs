//! `/proc/P/mountinfo` (proc(5)): the mounts of control group hierarchies.

/// A mounted control group hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupMount<'a> {
    /// Mount point; octal escapes are not decoded, and such paths are not used.
    pub point: &'a str,
    /// The part of the hierarchy that is mounted; not `/` in a container.
    pub root: &'a str,
    /// Whether it is version 2.
    pub is_v2: bool,
    /// The controllers of version 1 among the mount's options, separated by commas.
    pub options: &'a str,
}

/// The control group mounts.
pub fn parse(text: &[u8]) -> impl Iterator<Item = CgroupMount<'_>> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
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
