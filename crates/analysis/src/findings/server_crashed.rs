//! A process of the server ended, and its users are no longer served.

use throng_observation::RunTime;
use throng_observation::host::{Culprit, HowEnded, Life, ProcessEnd, ServiceResult};

use super::{Candidate, CheckResult, Evidence, NoFinding, ended, ruled_out};
use crate::context::{Context, Reading};

pub(super) const KEY: &str = "server_crashed";
/// Ends that are told; the rest is counted.
const TOLD_MAX: usize = 3;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    // A server that the kernel certainly killed for lack of memory is told by the finding `memory`.
    if ended::killed_for_memory(context)
        .is_some_and(|killed| killed.is_of_server && killed.is_certain)
    {
        return Err(NoFinding::NotApplicable);
    }
    let lives = ended::of_server(context);
    let is_told = |life: &&&Life| life.end().is_some_and(|end| end.how != HowEnded::Unknown);
    let Some(&life) = lives.iter().find(is_told).or(lives.first()) else {
        return match ended::of_others(context) {
            _ if !ended::is_any_found(context) => {
                Err(NoFinding::NotMonitored("the server's processes"))
            }
            0 => ruled_out("No watched process ended"),
            others => ruled_out(format!(
                "No process of the server ended; {others} that came after the baseline, or come \
                 and go as jobs do, did"
            )),
        };
    };
    let end = life.end().cloned().unwrap_or_default();
    let end = ProcessEnd { by: end.by.or_else(|| ended::as_logged(context, life)), ..end };
    let at_s = lives.iter().filter_map(|life| life.ended).min().map_or(0.0, RunTime::as_secs_f64);
    let count = lives.len() as f64;
    let once =
        Reading { base: Some(0.0), pass: Some(0.0), fail: Some(count), ..Reading::default() };
    let label = life.process.label();
    let how = match end.how {
        HowEnded::Unknown => String::new(),
        HowEnded::Exit { .. } | HowEnded::Signal { .. } | HowEnded::Replaced => {
            format!(", {}", end.how.words())
        }
    };
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: Some(at_s),
        evidence: vec![
            Evidence::count(format!("watched process ended: {}", told(&lives)), once)
                .crossed(Some(at_s)),
        ],
        change: advice(&end, at_s),
        ends_service: true,
        ..Candidate::new(
            KEY,
            format!("{label} ended under the load{how}"),
            format!("process {}", life.process.name),
        )
    })
}

/// `media (PID 7) by signal 11 (SIGSEGV); worker (PID 8) with exit code 1 and 4 more`.
fn told(lives: &[&Life]) -> String {
    let one = |life: &&Life| {
        let how = life.end().map(ProcessEnd::words).unwrap_or_default();
        format!("{} {how}", life.process.label())
    };
    let first: Vec<String> = lives.iter().take(TOLD_MAX).map(one).collect();
    let more = match lives.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", first.join("; "))
}

/// What to do about such an end.
fn advice(end: &ProcessEnd, at_s: f64) -> String {
    let said = match (&end.by, &end.said) {
        (Some(Culprit::Assertion { line }), _) => format!(" (it said: {line})"),
        (Some(Culprit::Fault { what }), _) => format!(" (the kernel logged: {what})"),
        (_, Some(said)) => format!(" ({said})"),
        (_, None) => String::new(),
    };
    if let Some(Culprit::ResourceLimit { name }) = &end.by {
        return format!(
            "Raise {name} of the server (ulimit, or LimitCPU=, LimitFSIZE= of its unit), or find \
             out why it reached it at second {at_s:.0}"
        );
    }
    if let Some(Culprit::Service { unit, result }) = &end.by {
        return of_service(unit, *result, at_s);
    }
    match end.how {
        HowEnded::Signal { .. } if end.how.is_asked() => format!(
            "Find out who asked it to end at second {at_s:.0}: a person, systemd, a supervisor or \
             its health check; it says nothing about the capacity of the server{said}"
        ),
        HowEnded::Signal { .. } if end.how.is_kill() => format!(
            "Find out who killed it at second {at_s:.0}: a person, a supervisor or its health \
             check, or the kernel for lack of memory (journalctl -k){said}"
        ),
        HowEnded::Exit { .. } if end.how.is_orderly() => format!(
            "Find out why it ended at second {at_s:.0}: it ended by itself or was asked to (a \
             stop, a deploy), which says nothing about the capacity of the server{said}"
        ),
        HowEnded::Unknown => format!(
            "How it ended is not known: look at its log and journalctl at second {at_s:.0}; it \
             may have been a stop, a restart or a crash{said}"
        ),
        HowEnded::Exit { .. } | HowEnded::Signal { .. } | HowEnded::Replaced => format!(
            "Look at the server's log and core dump at second {at_s:.0}; a crash under load is a \
             bug to report, not a limit to raise{said}"
        ),
    }
}

/// What to do about a service that systemd ended.
fn of_service(unit: &str, result: ServiceResult, at_s: f64) -> String {
    match result {
        ServiceResult::OutOfMemory => format!(
            "The kernel killed a process of {unit} for lack of memory at second {at_s:.0}, and \
             systemd ended the service with it (OOMPolicy=): give it more memory (MemoryMax= of \
             the unit, or the host's), or use less for each user"
        ),
        ServiceResult::Watchdog => format!(
            "{unit} did not report to systemd within WatchdogSec= at second {at_s:.0}: find out \
             what it waited for (its log, a profile, a core dump); a longer WatchdogSec= only \
             hides it"
        ),
        ServiceResult::Timeout => format!(
            "systemd ended {unit} at second {at_s:.0} at a time limit of the unit \
             (TimeoutStartSec=, TimeoutStopSec=, RuntimeMaxSec=), which says nothing about the \
             capacity of the server"
        ),
    }
}
