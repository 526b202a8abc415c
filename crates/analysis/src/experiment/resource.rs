//! The resource that a finding is about: what a change must relieve to confirm it.

/// The resource of a finding (docs/findings.md): `cpu`, `disk`, `memory`, `network`, `sockets`.
/// `None` for findings that no amount of a resource removes, such as a configured ceiling.
#[must_use]
pub fn resource_of(finding: &str) -> Option<&'static str> {
    Some(match finding {
        "one_thread_full"
        | "single_threaded"
        | "uneven_threads"
        | "runtime_parallelism"
        | "gil"
        | "lock_contention"
        | "cpu_full"
        | "cpu_quota"
        | "cpu_steal"
        | "run_queue"
        | "cpu_bursts"
        | "copy_dominated"
        | "hot_function"
        | "crypto"
        | "system_calls" => "cpu",
        "disk_read" | "page_cache" => "disk",
        "memory" => "memory",
        "udp_receive_buffer" | "softirq" | "line_rate" | "backpressure" | "path_loss" => "network",
        "file_descriptors" | "local_ports" | "accept_queue" | "tcp_memory" | "conntrack" => {
            "sockets"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::RULES;

    #[test]
    fn every_finding_about_a_resource_has_one() {
        let none = RULES.iter().map(|(key, _)| *key).filter(|key| resource_of(key).is_none());
        let expect = [
            "generator_limited",
            "server_crashed",
            "process_stopped",
            "never_connected",
            "never_served",
            "source_stopped",
            "task_limit",
            "signalling_serialised",
            "address_limit",
            "configured_ceiling",
        ];
        assert_eq!(none.collect::<Vec<_>>(), expect);
    }
}
