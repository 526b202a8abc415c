//! Causes outrank their symptoms: a thread that is full reads its socket too late, and the socket then drops.

use super::ScoredCandidate;
use crate::findings::score::{AHEAD_MIN, BOTTLENECK_MIN, SUSPECT_MIN};
use crate::findings::{FindingRole, GENERATOR, PROCESS_STOPPED, SERVER_CRASHED};

/// Limits of how fast the server works. What queues or is refused behind them is their doing.
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
/// Limits of how many there may be.
const COUNTS: &[&str] = &["file_descriptors", "local_ports", "conntrack", "memory"];
/// The CPU's own: what code says of them.
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
/// What the CPU is busy with.
const EXPLAINS: &[&str] = &[COPYING, "hot_function", "crypto", "system_calls"];
const SIGNALLING: &str = "signalling_serialised";
const COPYING: &str = "copy_dominated";

/// What follows from what.
const FOLLOWS: &[(&str, &[&[&str]])] = &[
    ("udp_receive_buffer", &[RATES, &["softirq", "memory"]]),
    ("accept_queue", &[RATES, COUNTS]),
    // A client whose SYN found the accept queue full sends it again, and TCP counts that as any other retransmission.
    ("backpressure", &[RATES, &["softirq", "accept_queue"]]),
    ("run_queue", &[&["cpu_full", "cpu_quota", "cpu_steal"]]),
    ("path_loss", &[RATES, &["softirq", "udp_receive_buffer", "backpressure"]]),
    (
        "configured_ceiling",
        &[RATES, COUNTS, &["softirq", "accept_queue", "udp_receive_buffer", "server_crashed", SIGNALLING]],
    ),
    // Whoever serves slowly answers joins slowly, and who is refused or dropped comes again.
    (SIGNALLING, &[RATES, COUNTS, &["softirq", "accept_queue", "backpressure"]]),
    // What happens at moments follows from whatever else is full, and is named where nothing is.
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
                "configured_ceiling",
            ],
        ],
    ),
    ("page_cache", &[&["disk_read"]]),
    // A group that is held back, or robbed, has full threads and a host that looks busy.
    ("one_thread_full", &[&["cpu_quota"]]),
    ("single_threaded", &[&["cpu_quota"]]),
    ("cpu_full", &[&["cpu_steal"]]),
    // Who was killed for want of memory did not crash by a fault.
    ("server_crashed", &[&["memory"]]),
    // Nobody reaches a server that is gone.
    ("never_connected", &[&["server_crashed", "memory"]]),
    // What waits for memory is read again from the disk.
    ("disk_read", &[&["memory"]]),
];

/// Moves explanations and symptoms out of the way of their causes. Those that remain keep [`FindingRole::Suspect`].
pub(super) fn rank_causes(scored: &mut [ScoredCandidate<'_>]) {
    let score_of = |scored: &[ScoredCandidate<'_>], key: &str| {
        scored.iter().filter(|s| s.candidate.key == key).map(|s| s.score).fold(0.0, f64::max)
    };
    if score_of(scored, GENERATOR) >= BOTTLENECK_MIN {
        // Nothing is said about a server whose load was not offered.
        for scored in scored.iter_mut().filter(|scored| scored.candidate.key != GENERATOR) {
            scored.role = FindingRole::Symptom;
        }
        return;
    }
    let is_copying = copying_first(scored);
    let cpu = CPU.iter().map(|key| score_of(scored, key)).fold(0.0, f64::max);
    let explains = |key: &str| EXPLAINS.contains(&key) && !(is_copying && key == COPYING);
    for scored in scored.iter_mut().filter(|scored| explains(scored.candidate.key)) {
        // Without a full CPU it explains nothing, and is not itself a limit.
        scored.role = FindingRole::Explanation;
        scored.score = if cpu >= SUSPECT_MIN { scored.score } else { 0.0 };
    }
    // A crash that nothing explains is its own cause, and so is a stop; what stood still with it follows.
    let is_alone = score_of(scored, "memory") < SUSPECT_MIN;
    for cause in [SERVER_CRASHED, PROCESS_STOPPED] {
        if is_alone && score_of(scored, cause) >= BOTTLENECK_MIN {
            for other in scored.iter_mut().filter(|other| other.candidate.key != cause) {
                other.role = FindingRole::Symptom;
            }
            return;
        }
    }
    for (symptom, causes) in FOLLOWS {
        let best = causes
            .iter()
            .flat_map(|keys| keys.iter())
            .filter(|key| *key != symptom)
            .map(|key| score_of(scored, key))
            .fold(0.0, f64::max);
        for scored in scored.iter_mut().filter(|scored| scored.candidate.key == *symptom) {
            // A cause that is itself in doubt does not clear a symptom that is not.
            if best >= SUSPECT_MIN && (best >= BOTTLENECK_MIN || scored.score - best < AHEAD_MIN) {
                scored.role = FindingRole::Symptom;
            }
        }
    }
}

/// A thread that mostly moves bytes about has no more work than those bytes, and no setting gives it more room: then
/// copying is the cause, and the full thread is how it shows.
fn copying_first(scored: &mut [ScoredCandidate<'_>]) -> bool {
    let single = scored.iter().find(|s| s.candidate.key == "single_threaded").map(|s| s.score);
    let copying = scored.iter_mut().find(|s| s.candidate.key == COPYING && s.score >= BOTTLENECK_MIN);
    let (Some(thread), Some(copying)) = (single.filter(|score| *score >= BOTTLENECK_MIN), copying) else {
        return false;
    };
    copying.score = copying.score.max(thread);
    for thread in scored.iter_mut().filter(|s| s.candidate.key == "single_threaded") {
        thread.role = FindingRole::Symptom;
    }
    true
}
