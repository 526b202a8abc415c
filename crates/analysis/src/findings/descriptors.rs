//! The process has reached its limit of open file descriptors; the next user is refused.

use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{CONNECTED, Candidate, CheckResult, Evidence, NOT_SERVED, NoFinding, ruled_out};
use crate::context::{Context, Reading};
use crate::demand::Resource;

pub(super) const KEY: &str = "file_descriptors";
/// Share of the limit. Servers close and open descriptors all the time: within a twentieth of the
/// limit some opens fail.
const FULL_MIN: f64 = 0.95;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let refused = context.log_lines(&["too_many_open_files", "out_of_fds"]);
    let (series, reading, limit) = context
        .fullest(&metric::PROCESS_FDS)
        .ok_or(NoFinding::NotMonitored("file descriptors and their limit"))?;
    let share = reading.fail() / limit;
    // One user may need several descriptors at once, so a small limit is reached with a few to
    // spare.
    let is_met = share >= FULL_MIN || limit - reading.fail() < 4.0;
    if !is_met && !refused.begins() {
        return ruled_out(format!(
            "File descriptors: {:.0} of {limit:.0} ({})",
            reading.fail(),
            percent(share)
        ));
    }
    let process = series.label("process");
    let crossed = context.crossed(&[series], (FULL_MIN * limit).min(limit - 4.0).max(1.0));
    let joins = context.users.not_served;
    Ok(Candidate {
        used: if is_met { 1.0 } else { 0.6 },
        // Nothing queues for a descriptor: opening one fails.
        queue: Some(joins.fail()),
        refuses: refused.begins() || (is_met && joins.fail() >= 0.5),
        demand: context.demand_of(Resource::Descriptors, process).cloned(),
        crossed_at_s: crossed,
        series: vec![series.series.id],
        evidence: vec![
            Evidence::count(format!("process.fds of {process}, the most"), reading)
                .limit(limit)
                .crossed(crossed)
                .decides(),
            Evidence::count("log lines \"too many open files\"", refused).of_events().decides(),
            Evidence::ratio(NOT_SERVED, joins),
            Evidence::count(CONNECTED, context.users.connected),
        ],
        change: format!(
            "Raise the limit of open files of {process} beyond {limit:.0}: ulimit -n, \
             LimitNOFILE= of its unit, or the server's own setting (worker_rlimit_nofile, \
             server.max-fds)"
        ),
        eases: |demand, _| demand.resource == Resource::Descriptors,
        ..Candidate::new(
            KEY,
            format!("{process} has reached its limit of {limit:.0} file descriptors"),
            format!("file descriptors of {process}"),
        )
    })
}

/// Established TCP connections, for findings that use them as evidence.
pub(super) fn connections(context: &Context<'_>) -> Reading {
    context.sum(&metric::TCP_ESTABLISHED)
}
