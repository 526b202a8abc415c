//! The summary that a terminal shows when a run is over.

mod crowd;
mod host;
mod media;

pub(crate) use crowd::{crowd_line, failure_examples};

use std::collections::BTreeMap;
use std::fmt::Write as _;

use throng_analysis::findings::Evidence;
use throng_analysis::reasons;
use throng_observation::units::{bytes, duration_ms, percent};
use throng_observation::untrusted;

use crate::cause;
use crate::health::{self, Share};
use crate::role_counts::RoleCounts;
use crate::summary::{CapacitySummary, GoalBracket, SoakSummary, Summary};
use crate::workers::WorkerHealth;
use crate::{canary, decoded};

/// About fifteen lines: the answer, the objectives, the figures that matter. Plain text, newline at
/// the end.
#[must_use]
pub fn summary(summary: &Summary) -> String {
    let mut out = format!("{}\n", untrusted::line(&summary.headline));
    let caveats = summary.capacity.iter().flat_map(|capacity| &capacity.caveats);
    each(&mut out, "caveat", caveats);
    out.push('\n');
    for objective in &summary.objectives {
        let sign = if objective.met { "met   " } else { "MISSED" };
        let (text, measured) =
            (untrusted::line(&objective.text), untrusted::line(&objective.measured_text));
        let _ = writeln!(out, "  {sign}  {text:<32} {measured}");
    }
    if !summary.objectives.is_empty() {
        out.push('\n');
    }
    if let Some(capacity) = &summary.capacity {
        capacity_lines(&mut out, capacity);
    }
    if let Some(others) = &summary.other_processes_cpu {
        line(&mut out, "note", &others.sentence());
        out.push('\n');
    }
    cause_lines(&mut out, summary);
    crowd::lines(&mut out, summary);
    media::lines(&mut out, summary);
    for host in &summary.hosts {
        host::lines(&mut out, host, summary.hosts.len() > 1);
    }
    titled(&mut out, "decoded", decoded::lines(&summary.decoded));
    titled(&mut out, "browsers", summary.canary.iter().flat_map(canary::lines));
    line(&mut out, "generator", &generator(summary));
    titled(&mut out, "workers", summary.generator.workers.iter().map(|of| worker(summary, of)));
    if !summary.events.is_empty() {
        line(&mut out, "events", &counts(&summary.events));
    }
    let title = if summary.in_progress { "so far" } else { "partial" };
    each(&mut out, title, &summary.partial_reasons);
    each(&mut out, "warning", &summary.warnings);
    out
}

/// Lines of one kind, of which the first has the title.
fn titled(out: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    for (index, text) in lines.into_iter().enumerate() {
        line(out, if index == 0 { title } else { "" }, &text);
    }
}

/// `ice 3, tcp 1`.
pub(crate) fn counts(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(key, count)| format!("{key} {count}")).collect::<Vec<_>>().join(", ")
}

/// The bottleneck, its evidence, what to change and the predicted effect: at most ten lines.
fn cause_lines(out: &mut String, summary: &Summary) {
    if let Some(found) = &summary.bottleneck {
        line(out, "cause", &cause::sentence(found));
        // The loads of a search have theirs with each goal.
        let suffered = reasons::words(&found.reasons).filter(|_| summary.capacity.is_none());
        each(out, "bad seconds", suffered);
        each(out, "", found.evidence.iter().take(3).map(Evidence::sentence));
        let fine: Vec<&str> = found.ruled_out.iter().take(2).map(String::as_str).collect();
        if !fine.is_empty() {
            line(out, "ruled out", &fine.join("; "));
        }
        each(out, "change", &found.change);
        each(out, "then", found.prediction.as_ref().map(cause::prediction));
    }
    let costs: Vec<String> = cause::costs(&summary.demand);
    if !costs.is_empty() {
        line(out, "a user costs", &costs.join(", "));
    }
    let join = cause::join_cost(summary);
    each(out, "a join costs", &join);
    let chat = summary.chat_cost.as_ref().and_then(cause::chat_cost);
    each(out, "a chat costs", &chat);
    if summary.bottleneck.is_some() || !costs.is_empty() || join.is_some() || chat.is_some() {
        out.push('\n');
    }
}

/// Between which loads the limit of a goal lies, and why the failing one failed; `None` where
/// nothing is known.
pub(crate) fn goal_line(capacity: &CapacitySummary, goal: &GoalBracket) -> Option<String> {
    let said = goal.statement.as_ref()?;
    let ratio = percent(goal.bad_users_ratio_max);
    let why = goal.failing.zip(reasons::words(&goal.reasons));
    let why = why.map_or_else(String::new, |(load, words)| {
        format!("; {} failed: {words}", capacity.load(load))
    });
    Some(format!("{said} (at most {ratio} of users with a bad second){why}"))
}

/// The limit of each goal, and the notes of the search.
fn capacity_lines(out: &mut String, capacity: &CapacitySummary) {
    for goal in &capacity.goals {
        each(out, &goal.goal, goal_line(capacity, goal));
    }
    if let Some(ms) = capacity.recovery_ms {
        line(out, "recovery", &format!("{} after too large a crowd", duration_ms(ms as f64)));
    }
    each(out, "soak", capacity.soak.as_ref().map(SoakSummary::sentence));
    each(out, "note", &capacity.notes);
    out.push('\n');
}

/// A line for each text.
fn each<T: AsRef<str>>(out: &mut String, name: &str, texts: impl IntoIterator<Item = T>) {
    texts.into_iter().for_each(|text| line(out, name, text.as_ref()));
}

/// One line: line ends in `what` are escaped.
fn line(out: &mut String, name: &str, what: &str) {
    let _ = writeln!(out, "  {:<12} {}", untrusted::name(name), untrusted::line(what));
}

/// `a (2 cores): 9 viewers, at most 12 % of a core, 1.2 ms late, clock ±0.4 ms, at the end ±0.9 ms
/// (chrony on both hosts)`.
fn worker(summary: &Summary, worker: &WorkerHealth) -> String {
    let who = RoleCounts::of(summary).many();
    let WorkerHealth { name, cores, participants, clock_basis, .. } = worker;
    let mut said = format!("{name} ({cores} cores): {participants} {who}");
    if let Some(ratio) = worker.thread_cpu_ratio_max {
        let _ = write!(said, ", at most {} of a core", percent(ratio));
    }
    if let Some(ms) = worker.lag_ms_p99_max {
        let _ = write!(said, ", {} late", duration_ms(ms));
    }
    if worker.limited_seconds > 0 {
        let _ =
            write!(said, ", its own limit for {} of {} s", worker.limited_seconds, worker.seconds);
    }
    let _ = write!(said, ", clock {}", worker.clock_bounds());
    if !clock_basis.is_empty() {
        let _ = write!(said, " ({clock_basis})");
    }
    said
}

fn generator(summary: &Summary) -> String {
    let (health, one) = (&summary.generator, RoleCounts::of(summary).one());
    let mut said = match health::share(summary) {
        Share::None => "was not the limit".to_owned(),
        Share::LeftOut => {
            format!("was the limit at times, which were not judged: {}", health.reasons.join("; "))
        }
        Share::All => "WAS THE LIMIT".to_owned(),
    };
    if let Some(ms) = health.cpu_ms_per_participant_s {
        let _ = write!(said, "; {ms:.2} CPU ms per {one}-second");
    }
    if let Some(rss) = health.rss_bytes_per_participant {
        let _ = write!(said, ", {} per {one}", bytes(rss));
    }
    if health.ring_datagrams > 0 {
        let _ = write!(
            said,
            "; received by memory-mapped rings of {}",
            bytes(health.ring_bytes_max as f64)
        );
    }
    said
}

#[cfg(test)]
mod tests;
