//! The bottleneck of a run in the summary, and its sentences.

use std::fmt::Write as _;

use throng_analysis::WithoutLoad;
use throng_analysis::bottleneck::{Bottleneck, BottleneckVerdict, Explanation};
use throng_analysis::demand::{ChatCost, ChatWork, Demand, Prediction, Resource};
use throng_analysis::findings::{Finding, FindingRole};
use throng_observation::units::{Unit, count, duration_ms, noun};

use crate::health::{self, Share};
use crate::role_counts::RoleCounts;
use crate::summary::Summary;

/// Fills in the bottleneck and the demand of a user.
pub(crate) fn explain(explanation: Explanation, summary: &mut Summary) {
    (summary.demand, summary.join_cost) = (explanation.demand, explanation.joins);
    summary.chat_cost = explanation.chat;
    summary.other_processes_cpu = explanation.other_processes_cpu;
    let so_without_load =
        explanation.without_load.map(|seen| without_load(&seen, RoleCounts::of(summary).many()));
    summary.warnings.extend(so_without_load);
    let found = explanation.bottleneck;
    // Such a run says nothing about the server.
    let is_invalid = health::share(summary) == Share::All;
    summary.bottleneck = match found.verdict {
        BottleneckVerdict::NothingFailed if !(is_invalid && summary.capacity.is_some()) => None,
        BottleneckVerdict::GeneratorLimited => Some(found),
        _ if is_invalid => Some(Bottleneck {
            verdict: BottleneckVerdict::GeneratorLimited,
            finding: Some("generator_limited".into()),
            title: generator_title(&summary.generator.reasons),
            score: Some(100.0),
            resource: Some("generator".into()),
            change: Some("Give the generator more cores or another machine, or fewer users".into()),
            baseline_s: found.baseline_s,
            pass_s: found.pass_s,
            fail_s: found.fail_s,
            first_bad_s: found.first_bad_s,
            ..Bottleneck::default()
        }),
        _ => Some(found),
    };
}

/// What made the seconds of a plain run bad whose `users` were few, as those of a larger crowd.
fn without_load(seen: &WithoutLoad, users: &str) -> String {
    format!(
        "with {} already, from the path, the source or the server itself: {}; so it is without \
         load, and says nothing of how many the server takes",
        count(seen.users, users),
        seen.media
    )
}

fn generator_title(reasons: &[String]) -> String {
    let title = "The generator was the limit, not the server";
    if reasons.is_empty() { title.into() } else { format!("{title}: {}", reasons.join("; ")) }
}

/// The bottleneck in a sentence, with its certainty.
pub(crate) fn sentence(found: &Bottleneck) -> String {
    let word = certainty(found.verdict);
    match found.score.filter(|_| found.verdict != BottleneckVerdict::GeneratorLimited) {
        Some(score) => format!("{} ({word}, {score:.0} of 100)", found.title),
        None => found.title.clone(),
    }
}

/// The certainty, in a word or two.
pub(crate) fn certainty(verdict: BottleneckVerdict) -> &'static str {
    match verdict {
        BottleneckVerdict::Bottleneck => "bottleneck",
        BottleneckVerdict::CoBottleneck => "two at once",
        BottleneckVerdict::Suspect => "suspect",
        BottleneckVerdict::Unattributed => "no resource",
        BottleneckVerdict::NotMonitored => "not monitored",
        BottleneckVerdict::GeneratorLimited => "generator",
        BottleneckVerdict::NothingFailed => "nothing failed",
    }
}

/// A finding beside the cause, in a line: its relation to it, and its advice.
pub(crate) fn other_finding(other: &Finding) -> String {
    let how = match other.role {
        FindingRole::Cause | FindingRole::Suspect => "may contribute",
        FindingRole::Explanation => "shows what the cause spends its time on",
        FindingRole::Symptom => "is a consequence",
    };
    format!("{} ({how}, {:.0} of 100). {}", other.title, other.score, other.change)
}

/// The predicted effect of the change.
pub(crate) fn prediction(then: &Prediction) -> String {
    let unknown = unknown(&then.unknown);
    let Some(high) = then.users_high else {
        return format!(
            "more than {}, as far as the loads tried can show; the next resource to be used up \
             would be: {}{unknown}",
            users(then.users),
            then.next_resource
        );
    };
    let range = format!("{:.0}–{high:.0}", then.users_low);
    let guess = if then.extrapolated {
        "; far beyond what was measured, so an optimistic guess"
    } else {
        ""
    };
    format!(
        "about {} ({range}); the next resource to be used up is then: {}{guess}{unknown}",
        users(then.users),
        then.next_resource
    )
}

fn users(number: f64) -> String {
    count(number.round() as u64, "users")
}

/// Most resources without a known limit that are named.
const UNKNOWN_MAX: usize = 3;

/// What a prediction cannot know; empty if every resource that grows has a known limit.
pub(crate) fn unknown(names: &[String]) -> String {
    let mut listed: Vec<String> = names.iter().take(UNKNOWN_MAX).cloned().collect();
    let more = names.len().saturating_sub(UNKNOWN_MAX);
    listed.extend((more > 0).then(|| format!("{more} more")));
    let Some(last) = listed.pop() else { return String::new() };
    let before = listed.join(", ");
    let and = if before.is_empty() { "" } else { " and " };
    let limits = noun(names.len() as u64, "limits");
    format!("; not known: the {limits} of {before}{and}{last}")
}

/// An amount of a resource with its unit.
pub(crate) fn amount(demand: &Demand, value: f64) -> String {
    let unit = Unit::of_symbol(&demand.unit).unwrap_or_default();
    let amount = unit.show(value);
    if unit == Unit::Ratio { format!("{amount} of a core") } else { amount }
}

/// The demand of a user on the most important resources, for a line.
pub(crate) fn costs(demands: &[Demand]) -> Vec<String> {
    let wanted = [
        Resource::Thread,
        Resource::ProcessCpu,
        Resource::NicSent,
        Resource::NicSentPackets,
        Resource::Memory,
        Resource::Descriptors,
    ];
    wanted
        .into_iter()
        .filter_map(|resource| demands.iter().find(|demand| demand.resource == resource))
        .filter(|demand| demand.per_user > demand.per_user_error)
        .map(|demand| format!("{} ({})", amount(demand, demand.per_user), demand.name()))
        .take(4)
        .collect()
}

/// The CPU time of a join next to that of a viewer: what set-up costs against what streaming costs.
/// `None` where the run could not tell it from its error.
pub(crate) fn join_cost(summary: &Summary) -> Option<String> {
    let join = summary.join_cost.as_ref().filter(|join| join.cpu_ms > join.cpu_ms_error)?;
    let mut said =
        format!("{:.1} ms of the server's CPU (± {:.1})", join.cpu_ms, join.cpu_ms_error);
    let of_users = summary.demand.iter().find(|demand| demand.resource == Resource::ProcessCpu);
    if let Some(user) = of_users.filter(|user| user.per_user > user.per_user_error) {
        // A ratio of a core is seconds of CPU time a second.
        let seconds = join.cpu_ms / 1e3 / user.per_user;
        let _ = write!(said, ", as much as {} of one user", duration_ms(seconds * 1e3));
    }
    Some(said)
}

/// What a join of a chat and each delivery cost, without those that could not be told from their
/// error.
pub(crate) fn chat_cost(cost: &ChatCost) -> Option<String> {
    let each: Vec<String> = cost
        .costs
        .iter()
        .filter(|of| of.cpu_us > of.cpu_us_error)
        .map(|of| {
            let one = match of.work {
                ChatWork::Join => "a join",
                ChatWork::Presence => "a presence",
                ChatWork::Vcard => "a vCard",
                ChatWork::Message => "a message delivered",
            };
            format!("{one} {:.0} µs (± {:.0})", of.cpu_us, of.cpu_us_error)
        })
        .collect();
    (!each.is_empty()).then(|| format!("{} of {}", each.join(", "), cost.thread))
}

#[cfg(test)]
#[path = "cause_tests.rs"]
mod tests;
