//! From the rows of a run to its summary.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use throng_analysis::bottleneck::{BottleneckVerdict, explain};
use throng_observation::fleet::WORKER_LOST_EVENT;
use throng_observation::run::{
    ABORT_EVENT, ADDRESS_EVENT, ClockError, CrowdRow, Ending, EventRow, MARK_EVENT, ParticipantRow,
    RunData,
};
use throng_observation::{
    Distribution, Goal, MediaKind, MediaPath, Outcome, Phase, Received, SecondRow as _,
};
use throng_scenario::Objective;

use crate::figures::Figures;
use crate::media_sums::MediaSums;
use crate::planned::duration_s;
use crate::summary::{
    ClockSummary, FailureExample, Media, Participants, PhaseTime, RunOutcome, SUMMARY_VERSION,
    Summary,
};
use crate::{
    answer, canary, capacity, cause, conference, decoded, headline, health, judge, sent, server,
};

/// The summary of `run`, judged by `objectives`; media figures leave the first `warm_up` out.
#[must_use]
pub fn summarise(run: &RunData, objectives: &[Objective], warm_up: Duration) -> Summary {
    let objectives = if run.holds.is_empty() { objectives } else { &[] };
    let warm_up_s = warm_up.as_secs_f64();
    let (figures, by_second) = (Figures::of(run, warm_up_s), Crowd::of(run));
    let failures = failures(&figures);
    let received = Received::of_run(run);
    let (partial_reasons, connect) = (partial_reasons(run), figures.connect.summary());
    let explained = explain(run, Goal::Acceptable);
    // The bottleneck and the capacity always refer to the same failing load.
    let was_generator = explained.bottleneck.verdict == BottleneckVerdict::GeneratorLimited;
    let generator = health::examine(run, by_second.connected_seconds, by_second.connected_max);
    let mut summary = Summary {
        summary_version: SUMMARY_VERSION,
        outcome: RunOutcome::Error,
        headline: String::new(),
        answer: None,
        partial: !partial_reasons.is_empty(),
        partial_reasons,
        in_progress: run.in_progress,
        ending: run.ending.key().into(),
        target: run.info.target.clone(),
        started_at_unix_us: run.info.started_at_unix_us,
        duration_s: figures.duration_s,
        planned_duration_s: run.info.planned_duration_us as f64 / 1e6,
        warm_up_s,
        participants: participants(&figures, &by_second),
        video: media(run, MediaKind::Video, &figures),
        audio: media(run, MediaKind::Audio, &figures),
        connect_ms_p50: connect.ms_p50,
        connect_ms_p99: connect.ms_p99,
        connect,
        first_frame: figures.first_frame.summary(),
        playback: figures.playback.summary(
            &figures.players,
            figures.startup.summary(),
            figures.page_loaded.summary(),
        ),
        chat: figures.chat.summary(figures.joined.summary()),
        phases: phases(&figures.intended),
        received_bps: received.bps_since_first(figures.seconds.clone()).unwrap_or(0.0),
        received_bps_max: received.bps_max(figures.seconds.clone()),
        sent: sent::sent(run, warm_up_s),
        layer_switches: sent::layer_switches(run),
        capacity: capacity::summarise(run, was_generator, &generator.reasons),
        generator,
        media_paths: counted(run, MediaPath::EVENT),
        addresses: counted(run, ADDRESS_EVENT),
        events: events(run),
        hosts: server::summarise(run),
        decoded: decoded::summarise(run),
        canary: canary::summarise(run, warm_up_s),
        failures: failures
            .iter()
            .map(|(reason, example)| (reason.clone(), example.count))
            .collect(),
        failure_examples: failures.into_values().collect(),
        bottleneck: None,
        demand: Vec::new(),
        join_cost: None,
        chat_cost: None,
        other_processes_cpu: None,
        conference: None,
        objectives: objectives.iter().map(|objective| judge::judge(objective, &figures)).collect(),
        clock_error: clock_error(&run.info.clock, crate::workers::clock_growth_us(run)),
        warnings: run.info.warnings.clone(),
        throng_version: run.info.throng_version.clone(),
        run_format: run.info.format,
    };
    cause::explain(explained, &mut summary);
    summary.conference = conference::summarise(run, line_rate_bps(&summary));
    summary.outcome = headline::outcome(&summary, run.ending);
    summary.headline = headline::headline(&summary, &aborted(run));
    summary.answer = answer::answer(&summary);
    summary
}

fn participants(figures: &Figures<'_>, by_second: &Crowd) -> Participants {
    Participants {
        intended: figures.intended.len() as u64,
        publishers: figures.publishers,
        connected: figures.reached(&Phase::CONNECTED),
        playing: figures.reached(&Phase::PLAYING),
        without_frame: figures.without_frame,
        failed: figures.failed(),
        playing_max: by_second.playing_max,
        connected_max: by_second.connected_max,
    }
}

/// The error of one-way delays at any time of the run: the clocks of workers come `grown_us`
/// further apart until its end.
fn clock_error(clock: &ClockError, grown_us: u64) -> ClockSummary {
    let grown_ms = grown_us as f64 / 1e3;
    let mut basis = clock.basis.clone();
    if grown_us > 0 {
        basis.push_str(&format!("; {grown_ms:.1} ms more at the end"));
    }
    ClockSummary { bound_ms: clock.bound_us.map(|us| us as f64 / 1e3 + grown_ms), basis }
}

/// The line rate of the busiest interface of a watched host.
fn line_rate_bps(summary: &Summary) -> Option<f64> {
    summary
        .hosts
        .iter()
        .flat_map(|server| &server.network)
        .find_map(|interface| interface.line_rate_bps)
}

/// The crowd of all cohorts together.
struct Crowd {
    playing_max: u64,
    connected_max: u64,
    connected_seconds: u64,
}

impl Crowd {
    fn of(run: &RunData) -> Self {
        let by_second = CrowdRow::by_second(&run.crowd);
        let max = |of: fn(&CrowdRow) -> u32| {
            by_second.values().map(|row| u64::from(of(row))).max().unwrap_or(0)
        };
        Self {
            playing_max: max(|row| row.playing),
            connected_max: max(|row| row.connected),
            connected_seconds: by_second.values().map(|row| u64::from(row.connected)).sum(),
        }
    }
}

/// Why a run is partial, as clauses; empty for one that is whole.
#[must_use]
pub fn partial_reasons(run: &RunData) -> Vec<String> {
    let mut because = Vec::new();
    match run.ending {
        Ending::Complete => {}
        Ending::Interrupted => because.push("the run was ended early".into()),
        Ending::Aborted => because.push(aborted(run)),
        Ending::Unfinished => because.push(unfinished(run)),
    }
    if run.rows_lost > 0 {
        because.push(format!("{} rows could not be stored", run.rows_lost));
    }
    because
}

/// Why a run has no ending, and until when it is known.
fn unfinished(run: &RunData) -> String {
    let (known_s, planned_s) = (duration_s(run), run.info.planned_duration_us as f64 / 1e6);
    let until = if known_s > 0.0 {
        format!("known until {known_s:.0} s of the {planned_s:.0} s that were planned")
    } else {
        "no second of it was written".into()
    };
    let state = if run.in_progress {
        "the run is in progress"
    } else {
        "no ending was written, and no process of this machine writes it"
    };
    format!("{state}; {until}")
}

/// What ended a run that was aborted, as a clause.
fn aborted(run: &RunData) -> String {
    if run.events.iter().any(|event| event.kind == WORKER_LOST_EVENT) {
        return "a worker of the fleet was lost".into();
    }
    let guard = run.events.iter().find(|event| event.kind == ABORT_EVENT);
    let why = guard.map_or_else(String::new, |event| format!(": {}", event.detail));
    format!("a guard ended the run{why}")
}

fn failures(figures: &Figures<'_>) -> BTreeMap<String, FailureExample> {
    let mut failures: BTreeMap<String, FailureExample> = BTreeMap::new();
    for row in &figures.intended {
        if let (Some(_), Some(Outcome::Failed(failure))) = (row.failure(), &row.outcome) {
            let reason = failure.reason.key();
            failures
                .entry(reason.clone())
                .or_insert_with(|| FailureExample {
                    reason,
                    count: 0,
                    participant: row.participant.0,
                    detail: failure.detail.to_string(),
                })
                .count += 1;
        }
    }
    failures
}

/// Counts of the events whose kind begins so, by the rest of it.
fn counted(run: &RunData, prefix: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for event in &run.events {
        if let Some(what) = event.kind.strip_prefix(prefix) {
            *counts.entry(what.to_owned()).or_default() += u64::from(event.count);
        }
    }
    counts
}

/// Counts of events by kind; failures, marks, media paths and addresses have their own tables.
fn events(run: &RunData) -> BTreeMap<String, u64> {
    let mut events = BTreeMap::new();
    let is_told = |event: &&EventRow| {
        !["failed", MARK_EVENT].contains(&event.kind.as_str())
            && ![MediaPath::EVENT, ADDRESS_EVENT].iter().any(|of| event.kind.starts_with(of))
    };
    for event in run.events.iter().filter(is_told) {
        *events.entry(event.kind.clone()).or_default() += u64::from(event.count);
    }
    events
}

/// Each phase's distance from the latest phase before it that the participant passed.
fn phases(intended: &[&ParticipantRow]) -> Vec<PhaseTime> {
    let mut steps_us: BTreeMap<Phase, Distribution> = BTreeMap::new();
    for row in intended {
        let mut before = row.intended_at;
        // A BTreeMap of phases runs in the order of a join.
        for (phase, at) in &row.reached {
            let step_us =
                u64::try_from(at.as_micros().saturating_sub(before.as_micros())).unwrap_or(0);
            steps_us.entry(*phase).or_default().record(step_us);
            before = before.max(*at);
        }
    }
    let ms = |steps: &Distribution, quantile| steps.quantile_in(quantile, 1e3).unwrap_or(0.0);
    steps_us
        .iter()
        .map(|(phase, steps)| PhaseTime {
            phase: phase.key().into(),
            reached: steps.count(),
            ms_p50: ms(steps, 0.50),
            ms_p95: ms(steps, 0.95),
        })
        .collect()
}

fn media(run: &RunData, kind: MediaKind, figures: &Figures<'_>) -> Media {
    let window = match kind {
        MediaKind::Video => &figures.video,
        MediaKind::Audio => &figures.audio,
    };
    let series = run.series.iter().filter(|row| row.kind == Some(kind));
    let received = Received::of(series, &[], &[]);
    let tracks: Vec<_> = run.tracks.iter().filter(|track| track.kind == kind).collect();
    let aggregated = run.aggregated.of(kind);
    let mut codecs: BTreeSet<_> = tracks.iter().map(|track| track.codec.name()).collect();
    codecs.extend(aggregated.codecs);
    let ms = |samples: &Distribution, quantile| samples.quantile_in(quantile, 1e3);
    let one_way_delay = &window.absolute_delay;
    let c = window.counters;
    Media {
        tracks: tracks.len() as u64 + aggregated.tracks,
        codecs: codecs.into_iter().map(str::to_owned).collect(),
        tracks_missing: tracks.iter().filter(|track| track.counters.never_received()).count()
            as u64
            + aggregated.never_received,
        missing_ratio: c.missing_ratio(),
        loss_ratio: c.loss_ratio(),
        loss_ratio_p95: window.loss_ratio_at(0.95),
        fps_p50: window.fps_milli.quantile_in(0.50, 1e3),
        fps_p5: window.fps_milli.quantile_in(0.05, 1e3),
        fps_p1: window.fps_milli.quantile_in(0.01, 1e3),
        source_fps: window.source_fps.mean(),
        fps_good_ratio: window.fps_good_ratio(),
        delay_ms_p50: ms(&window.relative_delay_us, 0.50),
        delay_ms_p95: ms(&window.relative_delay_us, 0.95),
        delay_ms_p99: ms(&window.relative_delay_us, 0.99),
        delay_ms_max: ms(&window.relative_delay_us, 1.0),
        one_way_delay_ms_p50: one_way_delay.quantile_ms(0.50),
        one_way_delay_ms_p95: one_way_delay.quantile_ms(0.95),
        one_way_delay_ms_p99: one_way_delay.quantile_ms(0.99),
        one_way_delay_basis: one_way_delay.basis().map(|basis| basis.key().into()),
        clock_disagrees_ratio: one_way_delay.clock_disagrees_ratio(),
        clock_ahead_ms_p95: ms(one_way_delay.ahead(), 0.95),
        jitter_ms_p50: ms(&window.jitter_us, 0.50),
        jitter_ms_p95: ms(&window.jitter_us, 0.95),
        jitter_ms_p99: ms(&window.jitter_us, 0.99),
        freeze_ratio: if kind == MediaKind::Video { c.freeze_ratio() } else { None },
        freeze_count: c.freeze_count,
        received_bps: received.bps_since_first(figures.seconds.clone()).unwrap_or(0.0),
        track_bps: c.payload_bps(),
        sums: MediaSums::of(&c),
        oven_rtc_tester_delay_ms_p50: ms(&window.oven_rtc_tester_delay_us, 0.50),
        oven_rtc_tester_delay_ms_max: ms(&window.oven_rtc_tester_delay_us, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example, json_schema};
    use throng_observation::TrackCounters;

    fn summary(run: &RunData) -> Summary {
        summarise(run, &example::objectives(), Duration::ZERO)
    }

    #[test]
    fn the_schema_in_the_documentation_is_that_of_the_code() {
        let documented: serde_json::Value =
            serde_json::from_str(include_str!("../../../docs/summary.schema.json")).unwrap();
        let code = json_schema();
        if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/summary.schema.json");
            std::fs::write(file, format!("{code:#}\n")).unwrap();
        }
        assert_eq!(
            documented, code,
            "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-report schema"
        );
    }

    #[test]
    fn a_crowd_of_publishers_alone_is_judged_by_what_it_sent() {
        let mut run = example::healthy(5, 20);
        run.series.clear();
        run.tracks.clear();
        let scenario = "[target]\nurl = \"whip+http://127.0.0.1/a\"\n[crowd]\nsize = 5\n";
        example::plan(&mut run, scenario);
        let sent = |second| throng_observation::run::SentRow {
            second,
            cohort: throng_observation::run::CohortId(0),
            kind: MediaKind::Video,
            tracks: 5,
            counters: throng_observation::SentCounters {
                packets_sent: 10,
                wire_bytes: 125_000,
                ..Default::default()
            },
        };
        run.sent = (3..20).map(sent).collect();
        let summary = summarise(&run, &[], Duration::ZERO);
        assert_eq!(summary.outcome, RunOutcome::Met);
        let intended = summary.participants.intended;
        assert!(
            summary.headline.starts_with(&format!("{intended} publishers sent cleanly for")),
            "{}",
            summary.headline
        );
        assert!(summary.headline.ends_with(", 1.00 Mbit/s"), "{}", summary.headline);
        let text = crate::text::summary(&summary);
        assert!(text.contains(&format!("publishers   {intended} intended, ")), "{text}");
        assert!(!text.contains("viewers") && !text.contains("playing"), "{text}");
        assert!(text.contains("as 5 streams of video and 0 of audio"), "{text}");
        assert!(!text.contains("first frame"), "{text}");
    }

    #[test]
    fn a_summary_reads_back_as_it_was_written() {
        let summary = summary(&example::degraded());
        let back: Summary = serde_json::from_str(&summary.to_json()).unwrap();
        assert_eq!(back.to_json(), summary.to_json());
    }

    /// Of the first version, some keys had other names.
    #[test]
    fn a_summary_of_an_earlier_version_reads_as_one_of_this_and_a_newer_one_is_refused() {
        let json = summary(&example::degraded()).to_json();
        let versioned = |version: u32| {
            let own = format!("\"summary_version\": {SUMMARY_VERSION}");
            json.replace(&own, &format!("\"summary_version\": {version}"))
        };
        let first = versioned(1)
            .replace("\"packets_original\"", "\"packets_received\"")
            .replace("\"packets_unreadable\"", "\"packets_discarded\"");
        let back: Summary = serde_json::from_str(&first).unwrap();
        assert_eq!(back.to_json(), json);
        let newer = serde_json::from_str::<Summary>(&versioned(SUMMARY_VERSION + 1));
        let said = newer.unwrap_err().to_string();
        assert!(said.contains("version 3, this throng reads up to 2"), "{said}");
    }

    #[test]
    fn a_key_that_earlier_summaries_lack_may_be_absent() {
        let schema = json_schema();
        let required = |shape: &serde_json::Value| shape["required"].as_array().map_or(0, Vec::len);
        let shapes = schema["$defs"].as_object().unwrap().values();
        let all = required(&schema) + shapes.map(required).sum::<usize>();
        assert_eq!(all, 293, "a new key has `#[serde(default)]`; only a new object has more");
    }

    #[test]
    fn failures_stay_in_the_denominator_of_connect() {
        let degraded = summary(&example::degraded());
        assert_eq!(degraded.participants.failed, 3);
        assert_eq!(degraded.failures.get("ice"), Some(&3));
        assert!(
            degraded.connect_ms_p50.is_some() && degraded.connect_ms_p99.is_none(),
            "3 % never connected"
        );
    }

    #[test]
    fn outcomes_follow_the_run() {
        for (run, expect) in [
            (example::healthy(100, 60), RunOutcome::Met),
            (example::degraded(), RunOutcome::Missed),
            (example::limited(), RunOutcome::Invalid),
            (example::all_failed(), RunOutcome::Error),
            (RunData { ending: Ending::Complete, ..RunData::default() }, RunOutcome::Error),
        ] {
            assert_eq!(summary(&run).outcome, expect);
        }
    }

    #[test]
    fn a_search_that_reached_nobody_has_no_limit_to_tell() {
        let run = RunData { holds: example::searched().holds, ..example::all_failed() };
        let summary = summary(&run);
        assert!(summary.capacity.is_some());
        assert_eq!((summary.outcome, &summary.answer), (RunOutcome::Error, &None));
        assert!(summary.headline.starts_with("None of "), "{}", summary.headline);
    }

    #[test]
    fn what_was_agreed_on_and_never_came_is_no_good_run() {
        // So many of ten viewers never received video.
        let without = |pictures: usize| {
            let mut run = example::healthy(10, 20);
            let seconds = run.series.iter_mut().filter(|row| row.kind == Some(MediaKind::Video));
            seconds.for_each(|row| {
                row.counters.missing_us = row.counters.active_us * pictures as u64 / 10;
            });
            let tracks = run.tracks.iter_mut().filter(|track| track.kind == MediaKind::Video);
            for track in tracks.take(pictures) {
                let us = track.counters.active_us;
                track.counters =
                    TrackCounters { active_us: us, missing_us: us, ..TrackCounters::default() };
            }
            summarise(&run, &[], Duration::ZERO)
        };
        let cases = [
            (0, RunOutcome::Met, ""),
            (7, RunOutcome::Missed, "; video was never received on 7 of 10 tracks"),
        ];
        for (pictures, outcome, end) in cases {
            let summary = without(pictures);
            assert_eq!(summary.outcome, outcome);
            assert!(summary.headline.ends_with(end), "{}", summary.headline);
            assert_eq!(summary.headline.contains("cleanly"), pictures == 0, "{}", summary.headline);
            assert_eq!(summary.video.tracks_missing, pictures as u64);
        }
        assert!(
            without(10)
                .headline
                .ends_with("; video was negotiated and never received by any participant")
        );
        let loss = without(7).video.loss_ratio.unwrap_or(0.0);
        assert!((loss - 0.7).abs() < 0.01, "{loss}");
    }

    #[test]
    fn marks_are_no_events_of_the_summary() {
        let mut run = example::healthy(10, 20);
        let event = |kind: &str| EventRow {
            at: throng_observation::RunTime(1),
            participant: None,
            kind: kind.into(),
            count: 2,
            detail: "restarted".into(),
        };
        run.events = vec![event(MARK_EVENT), event("guard")];
        assert_eq!(summary(&run).events, BTreeMap::from([("guard".into(), 2)]));
    }

    #[test]
    fn an_objective_on_what_was_not_seen_is_not_met() {
        let audio = summary(&example::audio_only());
        assert_eq!(
            (audio.objectives[0].result.as_str(), audio.outcome),
            ("not_measured", RunOutcome::Missed)
        );
    }

    #[test]
    fn the_warm_up_is_left_out_of_media_and_not_of_joins() {
        let mut run = example::healthy(10, 20);
        run.series
            .iter_mut()
            .filter(|row| row.second < 5)
            .for_each(|row| row.counters.packets_lost = 10_000);
        let after = |s| summarise(&run, &[], Duration::from_secs(s));
        assert!(after(0).video.loss_ratio > Some(0.1));
        assert_eq!(after(5).video.loss_ratio, Some(0.0));
        assert_eq!(after(5).connect.reached, 10);
    }

    #[test]
    fn a_crowd_that_failed_counts_to_the_end_of_the_run_and_not_before_it_came() {
        let received = |seconds: std::ops::Range<i64>| {
            let mut run = example::healthy(10, 20);
            run.series.retain(|row| seconds.contains(&row.second));
            let summary = summarise(&run, &[], Duration::ZERO);
            [summary.received_bps, summary.video.received_bps, summary.audio.received_bps]
        };
        let whole = received(0..20);
        assert!(whole.iter().all(|bps| *bps > 0.0), "{whole:?}");
        for (seconds, share) in [(0..5, 0.25), (10..15, 0.5), (15..20, 1.0)] {
            for (got, of_whole) in received(seconds.clone()).into_iter().zip(whole) {
                assert!((got / of_whole - share).abs() < 1e-9, "{seconds:?}: {got}, {of_whole}");
            }
        }
    }

    #[test]
    fn a_run_without_an_ending_or_with_lost_rows_is_partial() {
        let mut run = example::healthy(10, 20);
        assert!(!summary(&run).partial);
        run.rows_lost = 1;
        assert!(summary(&run).partial);
        (run.rows_lost, run.ending) = (0, Ending::Unfinished);
        assert!(summary(&run).partial);
    }

    #[test]
    fn a_partial_run_is_never_met() {
        let lost = |run: RunData| RunData { rows_lost: 1, ..run };
        let ended = |run: RunData, ending| RunData { ending, ended_at: None, ..run };
        let good = || example::healthy(10, 20);
        let search = || RunData { ending: Ending::Unfinished, ..example::searched() };
        for (what, run, expect) in [
            ("rows were lost", lost(good()), RunOutcome::Invalid),
            ("Ctrl-C", ended(good(), Ending::Interrupted), RunOutcome::Invalid),
            (
                "a miss stays one",
                ended(example::degraded(), Ending::Interrupted),
                RunOutcome::Missed,
            ),
            ("killed", ended(good(), Ending::Unfinished), RunOutcome::Invalid),
            ("killed, a miss", ended(example::degraded(), Ending::Unfinished), RunOutcome::Invalid),
            ("a killed search", search(), RunOutcome::Invalid),
            ("killed at once", RunData::default(), RunOutcome::Invalid),
        ] {
            let summary = summary(&run);
            assert_eq!((summary.outcome, summary.partial), (expect, true), "{what}");
            assert!(summary.headline.starts_with("Partial: "), "{what}: {}", summary.headline);
            assert!(!summary.headline.contains("the generator was"), "{}", summary.headline);
        }
        let until = |run| summary(&run).partial_reasons.join("; ");
        let killed = RunData { ending: Ending::Unfinished, ended_at: None, ..good() };
        assert!(until(killed).contains("known until 20 s of the "));
        assert!(until(RunData::default()).contains("no second of it was written"));
    }
}
