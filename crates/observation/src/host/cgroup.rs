//! `/proc/P/cgroup` (cgroups(7)): the control groups of a process, by hierarchy.

/// A process's group in one hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership<'a> {
    /// The controllers of the hierarchy, separated by commas; empty for version 2, `name=…` for
    /// named ones.
    pub controllers: &'a str,
    /// The group's path below the hierarchy's root.
    pub path: &'a str,
}

/// The memberships; paths that are not UTF-8 are skipped.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Membership<'_>> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut parts = std::str::from_utf8(line).ok()?.splitn(3, ':');
        parts.next()?.parse::<u32>().ok()?;
        let (controllers, path) = (parts.next()?, parts.next()?);
        // The group was removed while the process was in it.
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        path.starts_with('/').then_some(Membership { controllers, path })
    })
}

/// The group for `controller`: in its own version 1 hierarchy if there is one, else in version 2.
#[must_use]
pub fn path_of<'a>(text: &'a [u8], controller: &str) -> Option<Membership<'a>> {
    let v1 = parse(text).find(|m| m.controllers.split(',').any(|name| name == controller));
    v1.or_else(|| parse(text).find(|m| m.controllers.is_empty()))
}
