//! The outcome, and the answer in one sentence.

use throng_observation::run::Ending;
use throng_observation::units::{bit_rate, count, duration_ms, noun, percent};
use throng_observation::{FailureReason, INNER_MARKERS_EVENT, TIME_JUMP_EVENT};

use crate::canary::CanaryJudgement;
use crate::capacity;
use crate::chat::Chat;
use crate::playback::Playback;
use crate::role_counts::{RoleCounts, is_send_only};
use crate::sent::Sent;
use crate::summary::{Media, Participants, RunOutcome, Summary};

/// The outcome of a summary whose other figures are filled in.
pub(crate) fn outcome(summary: &Summary, ending: Ending) -> RunOutcome {
    let of_crowd = outcome_of_crowd(summary, ending);
    let is_disputed =
        summary.canary.as_ref().is_some_and(|canary| canary.judgement == CanaryJudgement::Disputed);
    match of_crowd {
        // Objectives are for the whole of a run: who had not joined yet is not who failed.
        _ if ending == Ending::Unfinished => RunOutcome::Invalid,
        RunOutcome::Met | RunOutcome::Missed if is_disputed => RunOutcome::Disputed,
        RunOutcome::Met if summary.partial => RunOutcome::Invalid,
        _ => of_crowd,
    }
}

/// The outcome by the crowd's figures, without the browsers.
fn outcome_of_crowd(summary: &Summary, ending: Ending) -> RunOutcome {
    // No load is too large for a target that nobody reaches.
    let capacity = summary.capacity.as_ref().filter(|_| !reached_nobody(summary));
    if let Some(capacity) = capacity {
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

/// Whether the target is the reason that nobody was connected: all who failed did so by it.
fn reached_nobody(summary: &Summary) -> bool {
    let mut reasons = summary
        .failures
        .keys()
        .filter_map(|key| FailureReason::from_key(key))
        .filter(|reason| !reason.is_censored())
        .peekable();
    summary.participants.connected == 0
        && reasons.peek().is_some()
        && reasons.all(|reason| reason.is_of_target())
}

/// Largest missing time ÷ active time of a run without objectives that passes: the share of users
/// that may have a bad second (docs/find.md, goal `acceptable`).
const MISSING_RATIO_MAX: f64 = 0.01;

/// Whether a run without objectives passes: no participant fails, one plays or sends, all
/// negotiated tracks arrive, and players hardly stall. If the scenario has objectives, only they
/// count; `failed` is one of them.
fn everybody_played_or_was_judged(summary: &Summary) -> bool {
    !summary.objectives.is_empty()
        || (summary.participants.failed == 0
            && (summary.participants.playing > 0 || summary.sent.is_some())
            && summary.participants.without_frame as f64
                <= summary.participants.playing as f64 * MISSING_RATIO_MAX
            && summary.media().iter().all(|(_, media)| {
                media.tracks_missing == 0 && media.missing_ratio.unwrap_or(0.0) <= MISSING_RATIO_MAX
            })
            && summary.chat.as_ref().is_none_or(|chat| {
                chat.sums.missing_ratio.is_none_or(|ratio| ratio <= MISSING_RATIO_MAX)
            })
            && summary.playback.as_ref().is_none_or(|playback| {
                // Players that never began played nothing that could stall.
                playback.stall_ratio.is_some_and(|ratio| ratio <= MISSING_RATIO_MAX)
            }))
}

/// The answer in one sentence; `aborted` says what ended a run that was aborted.
pub(crate) fn headline(summary: &Summary, aborted: &str) -> String {
    let sentence = match summary.outcome {
        RunOutcome::Error => failure(summary, aborted),
        _ if summary.capacity.is_some() => {
            let capacity = summary.capacity.as_ref();
            let statement =
                capacity.map(|capacity| capacity.statement.as_str()).unwrap_or_default();
            // A value is written as the scenario writes it.
            let is_value = capacity.is_some_and(|capacity| {
                capacity.values.iter().any(|value| statement.starts_with(value))
            });
            let statement = if is_value { statement.to_owned() } else { capitalised(statement) };
            format!("{statement}{}", other_load(summary))
        }
        RunOutcome::Invalid if summary.generator.limited => {
            format!(
                "Invalid: the generator was the limit: {}",
                summary.generator.reasons.join("; ")
            )
        }
        // A partial run.
        RunOutcome::Invalid if summary.participants.connected == 0 => failure(summary, aborted),
        RunOutcome::Invalid if summary.objectives.iter().all(|objective| objective.met) => {
            played(summary)
        }
        RunOutcome::Invalid | RunOutcome::Missed => missed(summary),
        RunOutcome::Met => played(summary),
        RunOutcome::Disputed if summary.objectives.iter().all(|objective| objective.met) => {
            played(summary)
        }
        RunOutcome::Disputed => missed(summary),
    };
    let sentence = match &summary.canary {
        Some(canary) if summary.outcome == RunOutcome::Disputed => {
            let because = canary.reasons.join("; ");
            format!("Disputed by a browser: {because}; the crowd alone: {}", going_on(&sentence))
        }
        _ => sentence,
    };
    if summary.in_progress {
        so_far(summary, &sentence)
    } else if summary.partial {
        format!("Partial: {}", going_on(&sentence))
    } else {
        sentence
    }
}

/// The sentence of a run in progress, with how much of it there is.
fn so_far(summary: &Summary, sentence: &str) -> String {
    let (lasted_s, planned_s) = (summary.duration_s, summary.planned_duration_s);
    let of_all = if planned_s > 0.0 { format!(" of {planned_s:.0}") } else { String::new() };
    let progress = format!("In progress, {lasted_s:.0}{of_all} s so far");
    if summary.participants.intended == 0 {
        return format!("{progress}: nobody was to join yet");
    }
    format!("{progress}: {}", going_on(sentence))
}

/// A sentence after a colon.
fn going_on(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// The clause about other processes on the server's host.
fn other_load(summary: &Summary) -> String {
    summary.other_processes_cpu.as_ref().map_or_else(String::new, |others| {
        format!(", while other processes on the host used {:.1} cores", others.cores())
    })
}

fn failure(summary: &Summary, aborted: &str) -> String {
    let crowd = &summary.participants;
    if crowd.intended == 0 {
        return "No participant was to join before the run ended, so there is nothing to judge"
            .into();
    }
    match (crowd.connected, most_failed(summary)) {
        (0, Some(most)) => format!("None of {} connected: {most}", everybody(summary)),
        (0, None) => format!("None of {} connected", everybody(summary)),
        _ => capitalised(aborted),
    }
}

/// The most frequent failure: `3 failed with ice`.
fn most_failed(summary: &Summary) -> Option<String> {
    let (reason, failed) = summary.failures.iter().max_by_key(|(_, failed)| **failed)?;
    Some(format!("{failed} failed with {reason}"))
}

/// Where everybody failed, though some were served before.
fn nobody_stayed(summary: &Summary) -> Option<String> {
    let crowd = &summary.participants;
    let most = most_failed(summary).filter(|_| crowd.failed >= crowd.intended)?;
    // Nobody knows how long a run without an ending lasts.
    let has_ended = summary.ending != Ending::Unfinished.key();
    let lasted = has_ended.then(|| format!("; the run lasted {}", duration(summary)));
    Some(format!("None of {} stayed: {most}{}", everybody(summary), lasted.unwrap_or_default()))
}

/// A clause as a sentence.
pub(crate) fn capitalised(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The crowd by its roles.
fn everybody(summary: &Summary) -> String {
    if summary.conference.is_some() {
        return count(summary.participants.intended, "participants");
    }
    RoleCounts::of(summary).all()
}

/// The noun for who receives media: in a conference they send it too.
fn receivers(summary: &Summary) -> &'static str {
    if summary.conference.is_some() { "participants" } else { "viewers" }
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
    let objectives = noun(missed.len() as u64, "Objectives");
    format!("{objectives} missed: {}", missed.join("; "))
}

fn played(summary: &Summary) -> String {
    if let Some(nobody) = nobody_stayed(summary) {
        return nobody;
    }
    let crowd = &summary.participants;
    let duration = duration(summary);
    if let Some(sent) = summary.sent.as_ref().filter(|_| is_send_only(summary)) {
        return published(crowd, sent, &duration);
    }
    if let Some(chat) = summary.chat.as_ref().filter(|_| summary.is_chat_only()) {
        return chatted(summary, chat, &duration);
    }
    // Publishers and viewers in one run.
    let roles = RoleCounts::of(summary);
    let publishers = match roles.publishers {
        0 => String::new(),
        publishers => format!("{} sent, ", count(publishers, "publishers")),
    };
    let viewers = count(roles.viewers, receivers(summary));
    let loss = summary.video.loss_ratio.unwrap_or(0.0).max(summary.audio.loss_ratio.unwrap_or(0.0));
    // A track that never arrived is lost entirely; and a run with a bottleneck was not clean.
    let clean = crowd.failed == 0
        && summary.bottleneck.is_none()
        && crowd.playing > 0
        && crowd.without_frame == 0
        && !summary.events.contains_key(INNER_MARKERS_EVENT)
        && loss < 0.001
        && !summary.events.contains_key(TIME_JUMP_EVENT)
        && summary.playback.as_ref().is_none_or(|playback| playback.stalls == 0)
        && summary.video.freeze_ratio.unwrap_or(0.0) < 0.001;
    let how = if clean { "cleanly " } else { "" };
    let missing: String = summary
        .media()
        .iter()
        .filter_map(|(name, media)| missing(name, media))
        .chain(frameless(summary))
        .chain(summary.playback.iter().filter_map(stalled))
        .chain(inner_markers(summary))
        .chain(time_jumps(summary))
        .collect();
    if crowd.playing == roles.viewers && crowd.connected == crowd.intended && crowd.failed == 0 {
        return format!("{publishers}{viewers} played {how}for {duration}{missing}");
    }
    let failed = failed(crowd);
    format!("{publishers}{} of {viewers} played {how}in {duration}{failed}{missing}", crowd.playing)
}

fn chatted(summary: &Summary, chat: &Chat, duration: &str) -> String {
    let crowd = &summary.participants;
    let all = everybody(summary);
    let sums = &chat.sums;
    let missing = match sums.missing_ratio {
        Some(ratio) if sums.messages_missing > 0 => {
            format!("; {} of the messages never came", percent(ratio))
        }
        _ => String::new(),
    };
    if crowd.playing == crowd.intended && crowd.failed == 0 {
        let is_clean = missing.is_empty() && summary.bottleneck.is_none() && sums.reconnects == 0;
        let how = if is_clean { "cleanly " } else { "" };
        return format!("{all} chatted {how}for {duration}{missing}");
    }
    let failed = failed(crowd);
    format!("{} of {all} chatted in {duration}{failed}{missing}", crowd.playing)
}

/// Missing tracks and missing time, for the end of a sentence.
fn missing(name: &str, media: &Media) -> Option<String> {
    match (media.tracks_missing, media.missing_ratio.unwrap_or(0.0)) {
        (0, ratio) if ratio <= MISSING_RATIO_MAX => None,
        (0, ratio) => Some(format!("; {name} was missing {} of the time", percent(ratio))),
        (never, _) if never == media.tracks => {
            Some(format!("; {name} was negotiated and never received by any participant"))
        }
        (never, _) => {
            Some(format!("; {name} was never received on {never} of {} tracks", media.tracks))
        }
    }
}

/// Viewers without a frame, for the end of a sentence.
fn frameless(summary: &Summary) -> Option<String> {
    let without = summary.participants.without_frame;
    (without > 0).then(|| format!("; {} never had a frame", count(without, receivers(summary))))
}

/// Stalls, for the end of a sentence.
fn stalled(playback: &Playback) -> Option<String> {
    let (ratio, viewers) = (playback.stall_ratio?, playback.viewers_stalled);
    (playback.stalls > 0)
        .then(|| format!("; {viewers} of them stalled, {} of the time", percent(ratio)))
}

/// The frames are whole, and browsers may show none of them.
fn inner_markers(summary: &Summary) -> Option<String> {
    let has_some = summary.events.contains_key(INNER_MARKERS_EVENT);
    has_some.then(|| {
        "; the RTP marker is set inside pictures, which browsers cut there and may not show".into()
    })
}

/// The frames are whole, and browsers drop many of them.
fn time_jumps(summary: &Summary) -> Option<String> {
    let has_some = summary.events.contains_key(TIME_JUMP_EVENT);
    has_some.then(|| "; the RTP time jumps, at which browsers drop frames and freeze".into())
}

/// Share of packets that may be requested again on a path with negligible loss.
const REPEATED_RATIO_MAX: f64 = 0.001;

fn published(crowd: &Participants, sent: &Sent, duration: &str) -> String {
    let (all, rate) = (count(crowd.intended, "publishers"), bit_rate(sent.bps));
    if crowd.connected == crowd.intended && crowd.failed == 0 {
        let (repeated, all_packets) = (sent.sums.packets_repeated, sent.sums.packets);
        let is_clean = repeated as f64 <= all_packets as f64 * REPEATED_RATIO_MAX;
        let how = if is_clean { "cleanly " } else { "" };
        return format!("{all} sent {how}for {duration}, {rate}");
    }
    let failed = failed(crowd);
    format!("{} of {all} sent in {duration}, {rate}{failed}", crowd.connected)
}

/// How many failed, if any did.
fn failed(crowd: &Participants) -> String {
    match crowd.failed {
        0 => String::new(),
        failed => format!("; {failed} failed"),
    }
}

/// How long the crowd was connected, without the time that leave requests waited for an answer.
fn duration(summary: &Summary) -> String {
    let (lasted_s, planned_s) = (summary.duration_s, summary.planned_duration_s);
    if planned_s <= 0.0 || lasted_s <= planned_s {
        return seconds(lasted_s);
    }
    let waited_s = (lasted_s - planned_s).round();
    let is_unanswered = summary.events.contains_key("leave_unanswered");
    match is_unanswered && waited_s >= 1.0 {
        true => {
            format!(
                "{}, and {waited_s:.0} s waiting for unanswered leave requests",
                seconds(planned_s)
            )
        }
        false => seconds(planned_s),
    }
}

fn seconds(seconds: f64) -> String {
    if seconds >= 120.0 {
        format!("{} min {:02} s", (seconds / 60.0) as u64, seconds as u64 % 60)
    } else if seconds < 1.0 {
        duration_ms(seconds * 1e3)
    } else {
        format!("{seconds:.0} s")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::run::{ABORT_EVENT, Ending, EventRow};
    use throng_observation::{
        Failure, FailureReason, INNER_MARKERS_EVENT, MediaKind, Outcome, Phase, RunTime,
        TIME_JUMP_EVENT,
    };

    use crate::summary::RunOutcome;
    use crate::{example, summarise};

    #[test]
    fn who_sends_in_a_conference_is_no_viewer() {
        let run = crate::conference::tests::lesson(10, 30, |_| 1.0);
        let headline = summarise(&run, &[], Duration::ZERO).headline;
        assert!(headline.contains("10 participants") && !headline.contains("viewer"), "{headline}");
    }

    #[test]
    fn a_run_in_which_everybody_failed_played_nothing_to_its_end() {
        let mut run = example::healthy(5, 1);
        for row in &mut run.participants {
            let why = Failure::new(FailureReason::MediaLost, "no media for 10 s");
            row.outcome = Some(Outcome::Failed(why));
        }
        run.ended_at = Some(RunTime(300_000));
        let headline = |run: &_| summarise(run, &[], Duration::ZERO).headline;
        assert_eq!(
            headline(&run),
            "None of 5 viewers stayed: 5 failed with media_lost; the run lasted 300 ms"
        );
        run.participants[0].outcome = None;
        assert!(headline(&run).starts_with("5 of 5 viewers played in 300 ms; 4 failed"));
    }

    #[test]
    fn a_run_in_progress_says_how_far_it_is_and_is_not_called_partial() {
        let mut run = example::healthy(5, 20);
        run.info.planned_duration_us = 60_000_000;
        (run.ending, run.ended_at, run.in_progress) = (Ending::Unfinished, None, true);
        let headline = |run: &_| summarise(run, &[], Duration::ZERO).headline;
        let progress = "In progress, 20 of 60 s so far: ";
        assert_eq!(headline(&run), format!("{progress}5 viewers played cleanly for 20 s"));
        let reasons = summarise(&run, &[], Duration::ZERO).partial_reasons;
        assert_eq!(
            reasons,
            ["the run is in progress; known until 20 s of the 60 s that were planned"]
        );
        for row in &mut run.participants {
            let why = Failure::new(FailureReason::MediaLost, "no media for 10 s");
            row.outcome = Some(Outcome::Failed(why));
        }
        let nobody = "none of 5 viewers stayed: 5 failed with media_lost";
        assert_eq!(headline(&run), format!("{progress}{nobody}"));
        run.participants.clear();
        assert_eq!(headline(&run), format!("{progress}nobody was to join yet"));
        // Its process is gone.
        run.in_progress = false;
        assert!(headline(&run).starts_with("Partial: "), "{}", headline(&run));
    }

    #[test]
    fn a_run_that_a_guard_ended_says_by_which() {
        let mut run = example::healthy(5, 20);
        run.ending = Ending::Aborted;
        let detail = "15.2 Mbit/s were received and sent, more than the 10 Mbit/s allowed, for 3 s";
        let (at, kind) = (RunTime(5_000_000), ABORT_EVENT.to_owned());
        run.events.push(EventRow { at, participant: None, kind, count: 1, detail: detail.into() });
        let summary = summarise(&run, &[], Duration::ZERO);
        assert_eq!(summary.headline, format!("Partial: a guard ended the run: {detail}"));
    }

    #[test]
    fn waiting_for_goodbyes_is_no_playing() {
        let mut run = example::healthy(10, 20);
        let received_bps = |run: &_| summarise(run, &[], Duration::ZERO).received_bps;
        let received = received_bps(&run);
        run.ended_at = Some(RunTime(22_100_000));
        assert_eq!(received_bps(&run), received, "nobody was there to receive");
        let sentence = |run: &_| summarise(run, &[], Duration::ZERO).headline;
        assert_eq!(sentence(&run), "10 viewers played cleanly for 20 s");
        let (at, kind) = (RunTime(20_000_000), "leave_unanswered".to_owned());
        run.events.push(EventRow { at, participant: None, kind, count: 1, detail: "".into() });
        assert_eq!(
            sentence(&run),
            "10 viewers played cleanly for 20 s, and 2 s waiting for unanswered leave requests"
        );
        run.ended_at = Some(RunTime(8_000_000));
        assert_eq!(
            sentence(&run),
            "10 viewers played cleanly for 8 s",
            "it was ended before its time"
        );
    }

    #[test]
    fn viewers_who_got_packets_and_no_frame_did_not_play_cleanly() {
        let mut run = example::healthy(10, 20);
        for row in run.participants.iter_mut().take(4) {
            row.reached.remove(&Phase::FirstFrame);
        }
        let of = |run: &_| summarise(run, &[], Duration::ZERO);
        let some = of(&run);
        assert_eq!(some.headline, "10 viewers played for 20 s; 4 viewers never had a frame");
        assert_eq!(some.outcome, RunOutcome::Missed);
        // Who came at the end had no time for it, and who got no video has no frame to wait for.
        let ended_at = run.ended_at;
        run.ended_at = Some(RunTime(2_000_000));
        assert_eq!(of(&run).participants.without_frame, 0);
        run.ended_at = ended_at;
        let mut patient = run.clone();
        patient.info.plan.as_mut().unwrap().objectives.push("connect p99 < 60s".into());
        assert_eq!(of(&patient).participants.without_frame, 0, "a join may take longer");
        run.tracks.retain(|track| track.kind == MediaKind::Audio);
        assert_eq!(of(&run).participants.without_frame, 0);
    }

    #[test]
    fn pictures_that_browsers_may_not_show_are_not_played_cleanly() {
        for (kind, words) in [
            (
                INNER_MARKERS_EVENT,
                "the RTP marker is set inside pictures, which browsers cut there and may not show",
            ),
            (TIME_JUMP_EVENT, "the RTP time jumps, at which browsers drop frames and freeze"),
        ] {
            let mut run = example::healthy(10, 20);
            let (at, kind) = (RunTime(2_000_000), kind.to_owned());
            let detail = "".into();
            run.events.push(EventRow { at, participant: None, kind, count: 1, detail });
            assert_eq!(
                summarise(&run, &[], Duration::ZERO).headline,
                format!("10 viewers played for 20 s; {words}")
            );
        }
    }
}
