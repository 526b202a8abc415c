//! What the watched hosts of a run are called.

use std::collections::BTreeMap;

use super::{HostId, HostInfo};

/// The names of watched hosts, each of its own: two `[[watch]]` of one machine call themselves the
/// same, and their figures are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames(BTreeMap<HostId, String>);

impl HostNames {
    /// Those of hosts.
    #[must_use]
    pub fn of(hosts: &[HostInfo]) -> Self {
        let mut names = Self::default();
        hosts.iter().for_each(|info| names.learn(info.host, &info.name));
        names
    }

    /// Learns what a host calls itself; a later name replaces it.
    pub fn learn(&mut self, id: HostId, name: &str) {
        self.0.insert(id, name.to_owned());
    }

    /// The name of a host: what it calls itself, with its number where another one is called so
    /// too; `host` with its number where it has no name.
    #[must_use]
    pub fn name(&self, id: HostId) -> String {
        let own = self.own(id);
        let is_of = |other: HostId| {
            let name = self.own(other);
            name == own || numbered(name, other) == own
        };
        let is_shared = self.0.keys().any(|other| *other != id && is_of(*other));
        if own.is_empty() || is_shared { numbered(own, id) } else { own.to_owned() }
    }

    fn own(&self, id: HostId) -> &str {
        self.0.get(&id).map_or("", String::as_str)
    }
}

fn numbered(name: &str, id: HostId) -> String {
    let name = if name.is_empty() { "host" } else { name };
    format!("{name} {}", id.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_one_host() {
        for (own, expect) in [
            (vec!["lab", "media"], vec!["lab", "media"]),
            (vec!["lab", "media", "lab"], vec!["lab 0", "media", "lab 2"]),
            // One whose name another one would get.
            (vec!["lab 1", "lab", "lab"], vec!["lab 1 0", "lab 1", "lab 2"]),
            (vec!["", "host 0"], vec!["host 0", "host 0 1"]),
        ] {
            let info = |(id, name): (u8, &&str)| HostInfo {
                host: HostId(id),
                name: (*name).to_owned(),
                ..HostInfo::default()
            };
            let hosts: Vec<HostInfo> = (0..).zip(&own).map(info).collect();
            let names = HostNames::of(&hosts);
            let all: Vec<String> = hosts.iter().map(|info| names.name(info.host)).collect();
            assert_eq!(all, expect, "{own:?}");
        }
        assert_eq!(HostNames::default().name(HostId(3)), "host 3");
    }
}
