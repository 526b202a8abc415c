//! The process has as many files and sockets open as it may; the next user is refused.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading};
use crate::demand::Resource;

pub(super) const KEY: &str = "file_descriptors";
/// Servers close and open again; within a twentieth of the limit somebody is being refused.
const FULL_MIN: f64 = 0.95;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let refused = context.log_lines("too_many_open_files");
    let Some((series, reading, limit)) = context.fullest(&metric::PROCESS_FDS) else {
        return CheckResult::NotMonitored("file descriptors and their limit");
    };
    let share = reading.fail() / limit;
    // A small limit is met with a handful to spare: what one user needs may be several at once.
    let is_met = share >= FULL_MIN || limit - reading.fail() < 4.0;
    if !is_met && !refused.begins() {
        return CheckResult::RuledOut(format!(
            "File descriptors: {:.0} of {limit:.0} ({})",
            reading.fail(),
            percent(share)
        ));
    }
    let process = series.label("process");
    let crossed = context.crossed(&[series], (FULL_MIN * limit).min(limit - 4.0).max(1.0));
    let joins = context.users.not_served;
    Candidate {
        used: if is_met { 1.0 } else { 0.6 },
        // Nothing queues for a descriptor: it is refused.
        queue: Some(joins.fail()),
        refuses: refused.begins() || (is_met && joins.fail() >= 0.5),
        demand: context.demand_of(Resource::Descriptors, process).cloned(),
        crossed_at_s: crossed,
        series: vec![series.series.id],
        evidence: vec![
            Evidence::new(format!("process.fds of {process}, the most"), Unit::Count, reading).limit(Some(limit)).crossed(crossed).decides(),
            Evidence::new("log lines \"too many open files\"", Unit::PerSecond, refused).decides(),
            Evidence::new("bad user-seconds of those who were not served at all", Unit::Ratio, joins),
            Evidence::new("connected participants", Unit::Count, context.users.connected),
        ],
        change: format!(
            "Raise the limit of open files of {process} beyond {limit:.0}: ulimit -n, LimitNOFILE= of its unit, or the server's own setting (worker_rlimit_nofile, server.max-fds)"
        ),
        eases: |demand, _| demand.resource == Resource::Descriptors,
        ..Candidate::new(KEY, format!("{process} has all {limit:.0} file descriptors open that it may"), format!("file descriptors of {process}"))
    }
    .suspect()
}

/// How many connections there are, for findings that need it as evidence.
pub(super) fn connections(context: &Context<'_>) -> Reading {
    context.sum(&metric::TCP_ESTABLISHED)
}
