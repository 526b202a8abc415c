//! Separates causes from symptoms: a full thread reads its socket too late, and the socket then
//! drops datagrams.

use super::ScoredCandidate;
use crate::findings::score::{AHEAD_MIN, BOTTLENECK_MIN, SUSPECT_MIN};
use crate::findings::{FindingRole, GENERATOR, MEMORY, PROCESS_STOPPED, SERVER_CRASHED};

/// Limits of the server's speed. Queues and refusals behind them are symptoms.
const RATES: &[&str] = &[
    "one_thread_full",
    "single_threaded",
    "uneven_threads",
    "runtime_parallelism",
    "gil",
    "lock_contention",
    "cpu_full",
    "cpu_quota",
    "cpu_steal",
    "disk_read",
    "line_rate",
];
/// Limits of a count.
const COUNTS: &[&str] =
    &["file_descriptors", "local_ports", "tcp_memory", "conntrack", "task_limit", "memory"];
/// Limits of the CPU, which a profile can explain.
const CPU: &[&str] = &[
    "one_thread_full",
    "single_threaded",
    "uneven_threads",
    "runtime_parallelism",
    "cpu_full",
    "cpu_quota",
    "gil",
    "lock_contention",
];
/// Findings from the profile: what the CPU spends its time on.
const EXPLAINS: &[&str] = &[COPYING, "hot_function", "crypto", "system_calls"];
const SIGNALLING: &str = "signalling_serialised";
const COPYING: &str = "copy_dominated";

/// Symptoms and their possible causes.
const FOLLOWS: &[(&str, &[&[&str]])] = &[
    ("udp_receive_buffer", &[RATES, &["softirq", "memory"]]),
    ("accept_queue", &[RATES, COUNTS]),
    // A client whose SYN met a full accept queue sends it again, which TCP counts as a
    // retransmission.
    ("backpressure", &[RATES, &["softirq", "accept_queue"]]),
    // What cannot be sent stays in the memory of sockets.
    ("tcp_memory", &[RATES, &["softirq", "backpressure"]]),
    ("run_queue", &[&["cpu_full", "cpu_quota", "cpu_steal"]]),
    ("path_loss", &[RATES, &["softirq", "udp_receive_buffer", "backpressure"]]),
    (
        "configured_ceiling",
        &[
            RATES,
            COUNTS,
            &[
                "softirq",
                "accept_queue",
                "udp_receive_buffer",
                "server_crashed",
                SIGNALLING,
                "address_limit",
            ],
        ],
    ),
    // A slow server answers joins slowly, and refused users come again.
    (SIGNALLING, &[RATES, COUNTS, &["softirq", "accept_queue", "backpressure"]]),
    // Bursts follow from any other full resource and are named only if there is none.
    (
        "cpu_bursts",
        &[
            RATES,
            COUNTS,
            &[
                "softirq",
                "run_queue",
                "accept_queue",
                "udp_receive_buffer",
                "backpressure",
                "path_loss",
                SIGNALLING,
                "source_stopped",
                "address_limit",
                "configured_ceiling",
            ],
        ],
    ),
    ("page_cache", &[&["disk_read"]]),
    // Throttling and CPU steal make threads and hosts look busy.
    ("one_thread_full", &[&["cpu_quota"]]),
    ("single_threaded", &[&["cpu_quota"]]),
    ("cpu_full", &[&["cpu_steal"]]),
    // A process killed for lack of memory did not crash by a bug.
    ("server_crashed", &[&["memory"]]),
    // A server that ended cannot be reached.
    ("never_connected", &[&["server_crashed", "memory"]]),
    ("never_served", &[&["server_crashed", "memory"]]),
    // A server or a path that stops looks the same to the crowd.
    (
        "source_stopped",
        &[&["server_crashed", "process_stopped", "memory", "path_loss", "line_rate"]],
    ),
    // Under a shortage of memory pages are read again from the disk.
    ("disk_read", &[&["memory"]]),
];

/// Gives symptoms and explanations their role; the rest keeps [`FindingRole::Suspect`].
pub(super) fn rank_causes(scored: &mut [ScoredCandidate<'_>]) {
    let score_of = |scored: &[ScoredCandidate<'_>], key: &str| {
        scored.iter().filter(|s| s.candidate.key == key).map(|s| s.score).fold(0.0, f64::max)
    };
    if score_of(scored, GENERATOR) >= BOTTLENECK_MIN {
        // A load that was not offered says nothing about the server.
        for scored in scored.iter_mut().filter(|scored| scored.candidate.key != GENERATOR) {
            scored.role = FindingRole::Symptom;
        }
        return;
    }
    let is_copying = copying_first(scored);
    let cpu = CPU.iter().map(|key| score_of(scored, key)).fold(0.0, f64::max);
    let explains = |key: &str| EXPLAINS.contains(&key) && !(is_copying && key == COPYING);
    for scored in scored.iter_mut().filter(|scored| explains(scored.candidate.key)) {
        // It explains a full CPU and is no limit by itself.
        scored.role = FindingRole::Explanation;
        scored.score = if cpu >= SUSPECT_MIN { scored.score } else { 0.0 };
    }
    if let Some(cause) = ends_service(scored) {
        for other in scored.iter_mut().filter(|other| other.candidate.key != cause) {
            other.role = FindingRole::Symptom;
        }
        return;
    }
    for (symptom, causes) in FOLLOWS {
        let best = causes
            .iter()
            .flat_map(|keys| keys.iter())
            .filter(|key| *key != symptom)
            .map(|key| score_of(scored, key))
            .fold(0.0, f64::max);
        for scored in scored.iter_mut().filter(|scored| scored.candidate.key == *symptom) {
            // An uncertain cause does not clear a certain symptom.
            if best >= SUSPECT_MIN && (best >= BOTTLENECK_MIN || scored.score - best < AHEAD_MIN) {
                scored.role = FindingRole::Symptom;
            }
        }
    }
}

/// The finding that ended or stopped the server: a kill for lack of memory, a crash, a stop. Where
/// memory is short otherwise, a crash is a symptom of that.
fn ends_service(scored: &[ScoredCandidate<'_>]) -> Option<&'static str> {
    let ends = |key: &str| {
        let is_it = |s: &&ScoredCandidate<'_>| s.candidate.key == key && s.candidate.ends_service;
        scored.iter().find(is_it).is_some_and(|s| s.score >= BOTTLENECK_MIN)
    };
    let is_short = scored.iter().any(|s| s.candidate.key == MEMORY && s.score >= SUSPECT_MIN);
    if ends(MEMORY) {
        return Some(MEMORY);
    }
    [SERVER_CRASHED, PROCESS_STOPPED].into_iter().find(|key| !is_short && ends(key))
}

/// A single thread that mostly copies bytes has little other work, and no setting adds threads:
/// then copying is the cause and the full thread its symptom.
fn copying_first(scored: &mut [ScoredCandidate<'_>]) -> bool {
    let single = scored.iter().find(|s| s.candidate.key == "single_threaded").map(|s| s.score);
    let copying =
        scored.iter_mut().find(|s| s.candidate.key == COPYING && s.score >= BOTTLENECK_MIN);
    let (Some(thread), Some(copying)) = (single.filter(|score| *score >= BOTTLENECK_MIN), copying)
    else {
        return false;
    };
    copying.score = copying.score.max(thread);
    for thread in scored.iter_mut().filter(|s| s.candidate.key == "single_threaded") {
        thread.role = FindingRole::Symptom;
    }
    true
}
