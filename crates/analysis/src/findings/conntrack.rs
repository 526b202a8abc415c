//! The kernel tracks as many connections as it may: packets of new ones are dropped.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence};
use crate::context::Context;
use crate::demand::Resource;

pub(super) const KEY: &str = "conntrack";
/// From here on the kernel forgets connections early to make room (nf_conntrack_core.c, early_drop).
const FULL_MIN: f64 = 0.95;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let Some((_, reading, limit)) = context.fullest(&metric::CONNTRACK_ENTRIES) else {
        return CheckResult::NotMonitored("connection tracking");
    };
    let refused = [&metric::CONNTRACK_DROPS, &metric::CONNTRACK_INSERT_FAILED]
        .map(|metric| context.rate(metric))
        .into_iter()
        .max_by(|a, b| a.fail().total_cmp(&b.fail()))
        .unwrap_or_default();
    let share = reading.fail() / limit;
    if share < FULL_MIN && !(refused.begins() && refused.fail() >= 0.1) {
        return CheckResult::RuledOut(format!(
            "Connection tracking: {:.0} of {limit:.0} ({})",
            reading.fail(),
            percent(share)
        ));
    }
    let crossed = context.crossed_metric(&metric::CONNTRACK_ENTRIES, FULL_MIN * limit);
    Candidate {
        used: if share >= FULL_MIN { 1.0 } else { 0.6 },
        queue: Some(context.users.not_served.fail()),
        refuses: refused.begins() && refused.fail() >= 0.1,
        demand: context.demand_of(Resource::Conntrack, "").cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::CONNTRACK_ENTRIES),
        evidence: vec![
            Evidence::new("conntrack.entries, the most", Unit::Count, reading)
                .limit(Some(limit))
                .crossed(crossed)
                .decides(),
            Evidence::new("conntrack drops and failed inserts", Unit::PerSecond, refused)
                .limit(Some(0.0))
                .decides(),
            Evidence::new(
                "conntrack.early_drops",
                Unit::PerSecond,
                context.rate(&metric::CONNTRACK_EARLY_DROPS),
            ),
        ],
        change: format!(
            "Raise net.netfilter.nf_conntrack_max beyond {limit:.0}, or exempt media from tracking (NOTRACK)"
        ),
        eases: |demand, _| demand.resource == Resource::Conntrack,
        ..Candidate::new(KEY, "The table of tracked connections is full", "connection tracking")
    }
    .suspect()
}
