//! Parsers of kernel files, one module each. They take text, not paths, so that files of any kernel
//! can be test cases; they do not allocate or panic, and skip what they cannot parse.

pub mod scan;

pub mod cpu_stat;
pub mod diskstats;
pub mod meminfo;
pub mod pressure;
pub mod softirqs;
pub mod vmstat;

pub mod io;
pub mod limits;
pub mod schedstat;
pub mod stat;
pub mod statm;
pub mod status;

pub mod net_dev;
pub mod net_snmp;
pub mod net_sockets;
pub mod netlink;
pub mod sockstat;
pub mod softnet_stat;

pub mod cgroup_files;
// The engine reads them too.
pub use throng_observation::host::{cgroup, mountinfo};

#[cfg(test)]
mod recorded_files_tests;
#[cfg(test)]
mod recorded_tests;
