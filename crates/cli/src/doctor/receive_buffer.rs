//! The receive buffer of each media socket: it holds the burst after a stall of the server.

use throng_engine::preflight::{BURSTS_DROP, larger_receive_buffer};
use throng_observation::units::bytes;

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let wanted = facts.needs.receive_buffer_bytes;
    let short = facts.limits.short_receive_buffer(&facts.needs);
    Check {
        name: "receive-buffer",
        found: facts.limits.receive_buffer_bytes_max.map_or_else(
            || "as large as is asked for (CAP_NET_ADMIN)".to_owned(),
            |limit| format!("{} (net.core.rmem_max)", bytes(limit as f64)),
        ),
        verdict: Verdict::unless(short.is_none(), BURSTS_DROP),
        change: larger_receive_buffer(wanted),
    }
}
