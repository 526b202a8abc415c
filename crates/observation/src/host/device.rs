//! Which interfaces and disks may be added up: a device on top of another one counts the same bytes
//! again.

use super::measured::{Host, MeasuredSeries};

/// The loopback.
const LOOPBACK: &str = "lo";

/// Names of interfaces whose packets also pass another interface of the same host: ends of
/// containers, bridges, bonds, tunnels.
const UPPER_INTERFACES: [&str; 12] =
    ["veth", "docker", "br", "virbr", "vnet", "tap", "bond", "team", "tun", "wg", "macvlan", "cni"];

/// Names of block devices on top of others: device mapper, RAID, loop devices, caches.
const STACKED_DISKS: [&str; 5] = ["dm-", "md", "loop", "bcache", "drbd"];

/// Whether the packets of this interface also pass another one of the same host, by its name.
/// `eth0.7` is a VLAN.
#[must_use]
pub fn is_upper_interface(name: &str) -> bool {
    name.contains('.') || UPPER_INTERFACES.iter().any(|upper| name.starts_with(upper))
}

/// Whether a block device is on top of others, by its name: what it reads, they read.
#[must_use]
pub fn is_stacked_disk(name: &str) -> bool {
    STACKED_DISKS.iter().any(|stacked| name.starts_with(stacked))
}

/// The elements of `all` that may be added up: without those on top of others, unless there are no
/// others.
pub fn lowest<T>(all: Vec<T>, is_upper: impl Fn(&T) -> bool) -> Vec<T> {
    if all.iter().all(&is_upper) {
        all
    } else {
        all.into_iter().filter(|one| !is_upper(one)).collect()
    }
}

impl<'a> Host<'a> {
    /// The series of a metric of disks that may be added up.
    #[must_use]
    pub fn disks(&self, metric: impl AsRef<str>) -> Vec<MeasuredSeries<'a>> {
        lowest(self.metric(metric).to_vec(), |disk| is_stacked_disk(disk.label("device")))
    }

    /// The series of a metric of interfaces by which the server reaches others, which may be added
    /// up: those of its first network namespace, without the loopback. Where the loopback is the
    /// busiest, the whole test is on one machine, and only the loopback is returned.
    #[must_use]
    pub fn interfaces(&self, metric: impl AsRef<str>) -> Vec<MeasuredSeries<'a>> {
        let all = self.metric(metric);
        let own: Vec<MeasuredSeries<'a>> =
            all.iter().filter(|series| series.label("netns").is_empty()).copied().collect();
        let own = if own.is_empty() { all.to_vec() } else { own };
        let total = |series: &MeasuredSeries<'a>| series.integral(self.window).unwrap_or(0.0);
        let (local, others): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|series| series.label("interface") == LOOPBACK);
        let busiest = others.iter().map(total).fold(0.0, f64::max);
        if local.iter().map(total).sum::<f64>() > busiest {
            return local;
        }
        lowest(others, |series| is_upper_interface(series.label("interface")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_others_is_known_by_its_name() {
        for name in ["dm-0", "md127", "loop3"] {
            assert!(is_stacked_disk(name), "{name}");
        }
        for name in ["vda", "sdb", "nvme0n1", "mmcblk0", "xvda"] {
            assert!(!is_stacked_disk(name), "{name}");
        }
        for name in ["veth1a2b", "docker0", "br-5e6f", "bond0", "eth0.7", "wg0"] {
            assert!(is_upper_interface(name), "{name}");
        }
        for name in ["eth0", "enp3s0", "ens5", "wlan0", "ib0"] {
            assert!(!is_upper_interface(name), "{name}");
        }
    }

    #[test]
    fn what_is_built_on_others_counts_where_there_is_nothing_else() {
        let of = |names: &[&'static str]| lowest(names.to_vec(), |name| is_stacked_disk(name));
        assert_eq!(of(&["vda", "dm-0", "loop3"]), ["vda"]);
        assert_eq!(of(&["dm-0", "dm-1"]), ["dm-0", "dm-1"]);
        assert!(of(&[]).is_empty());
    }
}
