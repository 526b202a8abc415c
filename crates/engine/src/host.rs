//! Fingerprint of the machine on which a run was made: what must be equal for two runs to be
//! comparable, and the settings that explain a difference.

use std::collections::BTreeMap;

use crate::health::parse_kb;
use crate::preflight::limits;

/// Settings under `/proc/sys` that bound a load generator, by their sysctl(8) names.
const SYSCTLS: [&str; 14] = [
    "fs.nr_open",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
];

/// CPU model, cores, kernel, governor, memory, limits and settings of this machine, by name.
#[must_use]
pub fn fingerprint() -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let limits = limits();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let mut host = BTreeMap::new();
    let mut say =
        |name: &str, value: Option<String>| value.map(|value| host.insert(name.to_owned(), value));
    say("cpu_model", parse_cpu_model(&read("/proc/cpuinfo")));
    say("cores", (cores > 0).then(|| cores.to_string()));
    say(
        "kernel",
        Some(read("/proc/sys/kernel/osrelease").trim().to_owned())
            .filter(|release| !release.is_empty()),
    );
    say(
        "memory_bytes",
        parse_kb(&read("/proc/meminfo"), "MemTotal").map(|bytes| bytes.to_string()),
    );
    say("descriptors_max", Some(limits.descriptors.to_string()));
    say("local_ports", Some(format!("{}-{}", limits.ports.0, limits.ports.1)));
    // Documentation/admin-guide/pm/cpufreq.rst; absent where the kernel does not scale frequencies,
    // as in most virtual machines.
    let line =
        |path: &str| Some(read(path).trim().replace('\t', " ")).filter(|text| !text.is_empty());
    say("governor", line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    say("hostname", line("/proc/sys/kernel/hostname"));
    say("architecture", Some(std::env::consts::ARCH.to_owned()));
    for name in SYSCTLS {
        say(name, line(&format!("/proc/sys/{}", name.replace('.', "/"))));
    }
    say("receive_buffer_bytes_max", limits.receive_buffer_bytes_max.map(|bytes| bytes.to_string()));
    host
}

/// The model of the first CPU of `/proc/cpuinfo` (`model name`, or `Hardware` on some ARM kernels).
#[must_use]
pub fn parse_cpu_model(text: &str) -> Option<String> {
    let field = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
    };
    field("model name").or_else(|| field("Hardware"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_named_where_the_kernel_names_it() {
        let x86 = "processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: other\n";
        assert_eq!(parse_cpu_model(x86).as_deref(), Some("AMD EPYC"));
        assert_eq!(parse_cpu_model("Hardware : BCM2835\n").as_deref(), Some("BCM2835"));
        assert_eq!(parse_cpu_model("model\n"), None);
    }

    #[test]
    fn a_fingerprint_has_at_least_cores_kernel_and_limits() {
        let host = fingerprint();
        let names =
            ["cores", "kernel", "memory_bytes", "descriptors_max", "local_ports", "architecture"];
        for name in names.into_iter().chain(["hostname", "net.ipv4.ip_local_port_range"]) {
            assert!(host.contains_key(name), "{name} is missing of {host:?}");
        }
    }
}
