//! Static facts of a host: kernel, CPUs, memory, and the settings that limit a media server.

use std::collections::BTreeMap;

use throng_observation::host::{BOOT_ID_FACT, HostInfo, HostRow};
use throng_observation::pack::Runtime;

use super::Sampler;
use super::files::Reader;
use super::process::Process;
use super::units::Units;
use crate::proc::{limits, meminfo, scan, stat, statm, status};
use crate::profiler::is_go;

/// Settings under `/proc/sys` that limit a media server, by their sysctl(8) names.
const SYSCTLS: [&str; 34] = [
    "fs.file-max",
    "fs.nr_open",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.sched_autogroup_enabled",
    "kernel.task_delayacct",
    "kernel.threads-max",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_max",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.swappiness",
];

/// The settings that each network namespace has of its own.
pub(super) fn network_settings() -> impl Iterator<Item = &'static str> {
    SYSCTLS.into_iter().filter(|name| name.starts_with("net."))
}

/// The file of a setting.
pub(super) fn path_of(setting: &str) -> String {
    format!("/proc/sys/{}", setting.replace('.', "/"))
}

/// Adds the settings of a server's network namespace: those of the first replace the watcher's own,
/// those of a further one are added under its label where they differ. Settings that exist only for
/// the whole machine stay.
pub(super) fn add_network_facts(
    facts: &mut BTreeMap<String, String>,
    label: Option<&str>,
    settings: &[(&'static str, String)],
) {
    for (name, value) in settings {
        match label {
            None => drop(facts.insert((*name).to_owned(), value.clone())),
            Some(_) if facts.get(*name) == Some(value) => {}
            Some(label) => drop(facts.insert(format!("{label}.{name}"), value.clone())),
        }
    }
}

/// Maximum length of a fact, characters.
const FACT_CHARACTERS_MAX: usize = 400;

impl Sampler {
    /// Writes the host's facts; again whenever the cost is evaluated.
    pub(super) fn write_host_info(&mut self) {
        if self.facts.is_empty() {
            self.facts = machine_facts(&mut self.reader);
        }
        let status = std::fs::read("/proc/self/status").unwrap_or_default();
        self.sink.rows.send(HostRow::Info(HostInfo {
            host: self.sink.host,
            name: self.settings.name.clone(),
            facts: self.facts.clone(),
            clock_error_us: 0,
            watcher_cpu_us: u64::try_from(self.cpu_usage().all().as_micros()).unwrap_or(u64::MAX),
            watcher_rss_bytes: status::peak_resident_bytes(&status).unwrap_or(0),
        }));
    }

    /// Adds facts of a process: resource limits, control groups, executable, runtime, nice value.
    pub(super) fn add_process_facts(&mut self, process: &Process) {
        let (pid, name) = (process.pid, &process.name);
        if let Ok(text) = self.reader.path(&format!("/proc/{pid}/limits")) {
            for (limit, soft, hard) in limits::parse(text) {
                let key = limit.trim_start_matches("Max ").replace(' ', "_");
                let figure = |value: Option<u64>| {
                    value.map_or_else(|| "unlimited".into(), |v| v.to_string())
                };
                let text = format!("{} (hard {})", figure(soft), figure(hard));
                self.facts.insert(format!("{name}.limits.{key}"), text);
            }
        }
        if let Ok(text) = self.reader.path(&format!("/proc/{pid}/cgroup")) {
            self.facts.insert(format!("{name}.cgroup"), cut(&scan::text(text).replace('\n', ", ")));
        }
        if let Ok(exe) = std::fs::read_link(format!("/proc/{pid}/exe")) {
            self.facts.insert(format!("{name}.executable"), cut(&exe.to_string_lossy()));
        }
        if std::fs::File::open(format!("/proc/{pid}/exe")).is_ok_and(|program| is_go(&program)) {
            self.facts.insert(format!("{name}.runtime"), Runtime::Go.key().to_owned());
        }
        if let Ok(text) = self.reader.path(&format!("/proc/{pid}/environ")) {
            for (variable, value) in threads_by_environment(text) {
                self.facts.insert(format!("{name}.environment.{variable}"), cut(&value));
            }
        }
        if let Some(stat) =
            self.reader.path(&format!("/proc/{pid}/stat")).ok().and_then(stat::parse)
        {
            self.facts.insert(format!("{name}.nice"), stat.nice.to_string());
        }
    }
}

/// The thread settings of runtimes in a process's environment; nothing else of it is kept.
fn threads_by_environment(text: &[u8]) -> Vec<(&'static str, String)> {
    let variables = Runtime::ALL.into_iter().filter_map(Runtime::variable);
    let value = |name: &str| {
        let mut set =
            text.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(name.as_bytes()));
        set.find_map(|rest| rest.strip_prefix(b"=")).map(scan::text)
    };
    variables.filter_map(|name| Some((name, value(name)?))).collect()
}

fn machine_facts(reader: &mut Reader) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut learn = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), cut(&value));
        }
    };
    let mut file = |path: &str| reader.path(path).ok().map(scan::text);
    learn("hostname", file("/proc/sys/kernel/hostname"));
    learn("kernel", file("/proc/sys/kernel/osrelease"));
    learn(BOOT_ID_FACT, file("/proc/sys/kernel/random/boot_id"));
    learn("kernel.command_line", file("/proc/cmdline"));
    learn("cpus", std::thread::available_parallelism().ok().map(|cpus| cpus.to_string()));
    learn("cpus_online", file("/sys/devices/system/cpu/online"));
    let cpuinfo = file("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    learn("cpu_model", model.map(|(_, model)| model.trim().to_owned()));
    learn("governor", file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    learn("architecture", Some(std::env::consts::ARCH.to_owned()));
    let memory = file("/proc/meminfo").and_then(|text| meminfo::parse(text.as_bytes()));
    learn("memory_bytes", memory.map(|memory| memory.total.to_string()));
    for name in SYSCTLS {
        learn(name, file(&path_of(name)).map(|value| value.replace('\t', " ")));
    }
    facts
}

fn cut(text: &str) -> String {
    text.chars().take(FACT_CHARACTERS_MAX).collect()
}

/// Resident memory of this process, bytes.
pub(super) fn own_rss_bytes(units: &Units) -> u64 {
    let text = std::fs::read("/proc/self/statm").unwrap_or_default();
    statm::resident_pages(&text).unwrap_or(0).saturating_mul(units.page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_environment_only_the_threads_of_runtimes_are_kept() {
        let text = b"PATH=/bin\0GOMAXPROCS=1\0SECRET=GOMAXPROCS=9\0GOMAXPROCS_X=7\0TOKIO_WORKER_THREADS=4\0";
        let expect = [("GOMAXPROCS", "1".to_owned()), ("TOKIO_WORKER_THREADS", "4".to_owned())];
        assert_eq!(threads_by_environment(text), expect);
        assert_eq!(threads_by_environment(b""), []);
    }

    #[test]
    fn the_program_of_this_test_is_not_of_go() {
        let program = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(!is_go(&program));
    }
}
