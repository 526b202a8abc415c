//! The verdict, and the answer in one sentence.

use throng_observation::run::Ending;
use throng_observation::units::{bit_rate, percent};

use crate::canary::CanaryJudgement;
use crate::capacity;
use crate::summary::{Media, Participants, RunOutcome, Summary};

/// The verdict on a summary whose other figures are filled in.
pub(crate) fn outcome(summary: &Summary, ending: Ending) -> RunOutcome {
    let of_crowd = outcome_of_crowd(summary, ending);
    let is_disputed =
        summary.canary.as_ref().is_some_and(|canary| canary.judgement == CanaryJudgement::Disputed);
    match of_crowd {
        RunOutcome::Met | RunOutcome::Missed if is_disputed => RunOutcome::Disputed,
        _ => of_crowd,
    }
}

/// As the crowd has it, whatever browsers saw.
fn outcome_of_crowd(summary: &Summary, ending: Ending) -> RunOutcome {
    if let Some(capacity) = &summary.capacity {
        // Loads that fail, and a generator past its limits in some hold, are part of a search.
        capacity::outcome(capacity)
    } else if summary.generator.limited {
        RunOutcome::Invalid
    } else if ending == Ending::Aborted || summary.participants.connected == 0 {
        RunOutcome::Error
    } else if summary.objectives.iter().all(|objective| objective.met)
        && everybody_played_or_was_judged(summary)
    {
        RunOutcome::Met
    } else {
        RunOutcome::Missed
    }
}

/// Time in which nothing came of what was due, of the time that was played, above which a run without objectives was no good
/// one: the share of users who may have a bad second (docs/find.md, goal `acceptable`).
const MISSING_RATIO_MAX: f64 = 0.01;

/// Without objectives there is one: that nobody fails, somebody plays or sends, and what was agreed on comes. With objectives, `failed` is one of them, and
/// who did not ask for it did not want it judged.
fn everybody_played_or_was_judged(summary: &Summary) -> bool {
    !summary.objectives.is_empty()
        || (summary.participants.failed == 0
            && (summary.participants.playing > 0 || summary.sent.is_some())
            && summary.media().iter().all(|(_, media)| {
                media.tracks_missing == 0 && media.missing_ratio.unwrap_or(0.0) <= MISSING_RATIO_MAX
            }))
}

/// The answer in one sentence.
pub(crate) fn headline(summary: &Summary) -> String {
    let said = match summary.outcome {
        _ if summary.capacity.is_some() => {
            let capacity = summary.capacity.as_ref();
            let statement = capacity.map(|capacity| capacity.statement.as_str()).unwrap_or_default();
            // A value is written as the scenario writes it.
            let is_value = capacity
                .is_some_and(|capacity| capacity.values.iter().any(|value| statement.starts_with(value)));
            let mut letters = statement.chars();
            let statement = match letters.next() {
                Some(first) if !is_value => first.to_uppercase().chain(letters).collect(),
                _ => statement.to_owned(),
            };
            format!("{statement}{}", beside(summary))
        }
        RunOutcome::Invalid => {
            format!("Invalid: the generator was the limit: {}", summary.generator.reasons.join("; "))
        }
        RunOutcome::Error => failure(summary),
        RunOutcome::Missed => missed(summary),
        RunOutcome::Met => played(summary),
        RunOutcome::Disputed if summary.objectives.iter().all(|objective| objective.met) => played(summary),
        RunOutcome::Disputed => missed(summary),
    };
    let said = match &summary.canary {
        Some(canary) if summary.outcome == RunOutcome::Disputed => {
            let because = canary.because.join("; ");
            format!("Disputed by a browser: {because}; the crowd alone: {}", going_on(&said))
        }
        _ => said,
    };
    if summary.partial { format!("Partial: {}", going_on(&said)) } else { said }
}

/// A sentence after a colon.
fn going_on(said: &str) -> String {
    let mut letters = said.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// An answer that others had a part in says so at once.
fn beside(summary: &Summary) -> String {
    summary.others_cpu.as_ref().map_or_else(String::new, |others| {
        format!(", while others on the host used {:.1} cores", others.cores())
    })
}

fn failure(summary: &Summary) -> String {
    let crowd = &summary.participants;
    if crowd.intended == 0 {
        return "Nobody was due to join, so there is nothing to judge".into();
    }
    let most = summary.failures.iter().max_by_key(|(_, count)| **count);
    match (crowd.connected, most) {
        (0, Some((reason, count))) => {
            format!("None of {} connected: {count} failed with {reason}", viewers(crowd.intended))
        }
        (0, None) => format!("None of {} connected", viewers(crowd.intended)),
        _ => "The run was aborted by a guard".into(),
    }
}

fn missed(summary: &Summary) -> String {
    if summary.objectives.is_empty() {
        return played(summary);
    }
    let missed: Vec<_> = summary
        .objectives
        .iter()
        .filter(|objective| !objective.met)
        .map(|objective| format!("{} (measured: {})", objective.text, objective.measured_text))
        .collect();
    let noun = if missed.len() == 1 { "Objective" } else { "Objectives" };
    format!("{noun} missed: {}", missed.join("; "))
}

fn played(summary: &Summary) -> String {
    let crowd = &summary.participants;
    let duration = seconds(summary.duration_s);
    if let Some(sent) = summary.sent.as_ref().filter(|_| only_sends(summary)) {
        return published(crowd, &bit_rate(sent.bps), &duration);
    }
    let loss = summary.video.loss_ratio.unwrap_or(0.0).max(summary.audio.loss_ratio.unwrap_or(0.0));
    // Of what never came all is lost.
    let clean = crowd.failed == 0
        && crowd.playing > 0
        && loss < 0.001
        && summary.video.freeze_ratio.unwrap_or(0.0) < 0.001;
    let how = if clean { "cleanly " } else { "" };
    let missing: String = summary.media().iter().filter_map(|(name, media)| missing(name, media)).collect();
    if crowd.playing == crowd.intended && crowd.failed == 0 {
        return format!("{} played {how}for {duration}{missing}", viewers(crowd.intended));
    }
    let failed = match crowd.failed {
        0 => String::new(),
        failed => format!("; {failed} failed"),
    };
    format!("{} of {} played {how}in {duration}{failed}{missing}", crowd.playing, viewers(crowd.intended))
}

/// What did not come of what was due, for the end of a sentence.
fn missing(name: &str, media: &Media) -> Option<String> {
    match (media.tracks_missing, media.missing_ratio.unwrap_or(0.0)) {
        (0, ratio) if ratio <= MISSING_RATIO_MAX => None,
        (0, ratio) => Some(format!("; {name} was missing {} of the time", percent(ratio))),
        (never, _) if never == media.tracks => {
            Some(format!("; {name} was agreed on and never came to anybody"))
        }
        (never, _) => Some(format!("; {name} never came on {never} of {} tracks", media.tracks)),
    }
}

/// Whether the crowd was of publishers alone.
pub(crate) fn only_sends(summary: &Summary) -> bool {
    let is_there = |media: &Media| media.tracks > 0 || media.packets_received > 0;
    summary.sent.is_some() && !is_there(&summary.video) && !is_there(&summary.audio)
}

fn published(crowd: &Participants, rate: &str, duration: &str) -> String {
    let noun = if crowd.intended == 1 { "publisher" } else { "publishers" };
    if crowd.connected == crowd.intended && crowd.failed == 0 {
        return format!("{} {noun} sent {rate} for {duration}", crowd.intended);
    }
    let failed = match crowd.failed {
        0 => String::new(),
        failed => format!("; {failed} failed"),
    };
    format!("{} of {} {noun} sent {rate} in {duration}{failed}", crowd.connected, crowd.intended)
}

fn viewers(count: u64) -> String {
    format!("{count} {}", if count == 1 { "viewer" } else { "viewers" })
}

fn seconds(seconds: f64) -> String {
    if seconds >= 120.0 {
        format!("{} min {:02} s", (seconds / 60.0) as u64, seconds as u64 % 60)
    } else {
        format!("{seconds:.0} s")
    }
}
