//! The connection tracking table is full: the kernel drops packets of new connections.

use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading};
use crate::demand::Resource;

pub(super) const KEY: &str = "conntrack";
/// Share of the table at which the kernel evicts connections early (nf_conntrack_core.c,
/// early_drop).
const FULL_MIN: f64 = 0.95;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let (_, reading, limit) = context
        .fullest(&metric::CONNTRACK_ENTRIES)
        .ok_or(NoFinding::NotMonitored("connection tracking"))?;
    let refused = [&metric::CONNTRACK_DROPS, &metric::CONNTRACK_INSERT_FAILED];
    let refused = Reading::worst(refused.map(|metric| context.rate(metric)));
    let share = reading.fail() / limit;
    if share < FULL_MIN && !(refused.begins() && refused.fail() >= 0.1) {
        return ruled_out(format!(
            "Connection tracking: {:.0} of {limit:.0} ({})",
            reading.fail(),
            percent(share)
        ));
    }
    let crossed = context.crossed_metric(&metric::CONNTRACK_ENTRIES, FULL_MIN * limit);
    Ok(Candidate {
        used: if share >= FULL_MIN { 1.0 } else { 0.6 },
        queue: Some(context.users.not_served.fail()),
        refuses: refused.begins() && refused.fail() >= 0.1,
        demand: context.demand_of(Resource::Conntrack, "").cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::CONNTRACK_ENTRIES),
        evidence: vec![
            Evidence::count("conntrack.entries, the most", reading)
                .limit(limit)
                .crossed(crossed)
                .decides(),
            Evidence::per_second("conntrack drops and failed inserts", refused)
                .limit(0.0)
                .decides(),
            Evidence::per_second(
                "conntrack.early_drops",
                context.rate(&metric::CONNTRACK_EARLY_DROPS),
            ),
        ],
        change: format!(
            "Raise net.netfilter.nf_conntrack_max beyond {limit:.0}, or exempt media from \
             tracking (NOTRACK)"
        ),
        eases: |demand, _| demand.resource == Resource::Conntrack,
        ..Candidate::new(KEY, "The table of tracked connections is full", "connection tracking")
    })
}
