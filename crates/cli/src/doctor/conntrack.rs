//! Connection tracking: the kernel drops packets of a connection for which its table has no room.

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let file = |name: &str| facts.number(&format!("/proc/sys/net/netfilter/nf_conntrack_{name}"));
    let (found, verdict) = match file("max") {
        None => ("not in use".to_owned(), Verdict::Ok),
        // To the kernel 0 is no limit.
        Some(0) => ("any number of connections".to_owned(), Verdict::Ok),
        Some(max) => {
            let used = file("count").unwrap_or(0);
            // A connection for each socket.
            let viewers = max.saturating_sub(used) / facts.needs.descriptors_each.max(1);
            (format!("{used} of {max} connections"), Verdict::Limits { viewers })
        }
    };
    Check {
        name: "conntrack",
        found,
        verdict,
        change: "`sysctl net.netfilter.nf_conntrack_max=1048576`, or a rule without tracking \
                 (NOTRACK)"
            .to_owned(),
    }
}
