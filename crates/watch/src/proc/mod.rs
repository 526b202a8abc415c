//! Parsers of kernel files, one file each. They take the text, not the path, so that the files of any kernel are test
//! cases; they allocate nothing, never panic, and leave out what they cannot read.

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

pub mod cgroup;
pub mod cgroup_files;
pub mod mountinfo;

#[cfg(test)]
mod recorded_files_tests;
#[cfg(test)]
mod recorded_tests;
