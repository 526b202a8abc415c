//! Checks values against each other: whether the crowd arrives within the run and stays below the
//! caps.

use std::time::Duration;

use super::crowd::CohortSpans;
use super::fields::{Fields, Reader};
use super::tree::Span;
use crate::arrival::Arrival;
use crate::scenario::{Cohort, SIZE_MAX, Scenario};
use crate::units::write_duration;

/// Most visits of a run, because of its memory.
const VISITS_MAX: f64 = 5e6;
/// The longest run, whatever its caps: a month.
const DURATION_MAX: Duration = Duration::from_secs(31 * 24 * 60 * 60);

pub(super) fn check(
    reader: &mut Reader,
    scenario: &Scenario,
    top: &Fields<'_>,
    cohorts: &[CohortSpans],
) {
    times(reader, scenario, top, cohorts);
    for (cohort, spans) in scenario.crowd.iter().zip(cohorts) {
        let late = latest([top.span_at("run", "duration"), Some(spans.size), Some(spans.arrival)]);
        let size = cohort.size.saturating_mul(scenario.target.rooms);
        arrives_in_time(reader, (cohort, size), scenario.run.duration, late);
        visits(reader, (cohort, size), scenario.run.duration, spans.stay);
    }
    caps(reader, scenario, top, cohorts);
}

/// Of values that contradict each other, the last override, which is what the user just wrote;
/// without overrides, the last one of the file.
fn latest(spans: impl IntoIterator<Item = Option<Span>>) -> Option<Span> {
    spans.into_iter().flatten().max_by_key(|span| span.source)
}

fn times(reader: &mut Reader, scenario: &Scenario, top: &Fields<'_>, cohorts: &[CohortSpans]) {
    let run = &scenario.run;
    if run.duration < Duration::from_secs(1) || run.duration > DURATION_MAX {
        let span = top.span_at("run", "duration");
        reader.fail(span, "`run.duration` must be from 1 s to 31 days", "write duration = \"60s\"");
    } else if run.warm_up >= run.duration {
        let help = format!("write less than \"{}\"", write_duration(run.duration));
        let message =
            "`run.warm_up` must be less than `run.duration`: objectives exclude the warm-up";
        reader.fail(top.span_at("run", "warm_up"), message, help);
    }
    if scenario.users() > SIZE_MAX {
        let message = format!("the crowd has more than {SIZE_MAX} participants in total");
        let span = cohorts.last().map(|spans| spans.size);
        reader.fail(span, message, "reduce crowd.size or target.rooms");
    }
}

/// All participants must join before the run ends.
fn arrives_in_time(
    reader: &mut Reader,
    (cohort, size): (&Cohort, u32),
    duration: Duration,
    span: Option<Span>,
) {
    let Some(last) = cohort.joins(size, duration).last().filter(|last| *last >= duration) else {
        return;
    };
    let message = format!(
        "the last of {size} {} would join at {}, but the run ends at {}",
        cohort.name,
        write_duration(rounded_up(last)),
        write_duration(duration)
    );
    let help = format!(
        "increase run.duration beyond \"{}\", shorten the arrival, or reduce crowd.size",
        write_duration(rounded_up(last))
    );
    reader.fail(span, message, help);
}

/// `time` in whole seconds, rounded up.
fn rounded_up(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)))
}

fn visits(
    reader: &mut Reader,
    (cohort, size): (&Cohort, u32),
    duration: Duration,
    span: Option<Span>,
) {
    let Some(stay) = cohort.stay.filter(|stay| stay.rejoin) else { return };
    let visits = f64::from(size) * (1.0 + duration.as_secs_f64() / stay.mean().as_secs_f64());
    if visits > VISITS_MAX {
        let message = format!("about {visits:.0} visits; a run can have {VISITS_MAX:.0}");
        reader.fail(span, message, "increase the stay, or reduce run.duration or crowd.size");
    }
}

fn caps(reader: &mut Reader, scenario: &Scenario, top: &Fields<'_>, cohorts: &[CohortSpans]) {
    let caps = &scenario.caps;
    let users = scenario.users();
    let largest = scenario
        .crowd
        .iter()
        .enumerate()
        .max_by_key(|(_, cohort)| cohort.size)
        .map_or(0, |(index, _)| index);
    let largest = cohorts.get(largest);
    let mut exceeded = |span, what: String, cap: String, key: &str, value: String| {
        let message = format!("{what} exceed the cap of {cap}, which prevents harm by mistake");
        let help = format!("reduce it, or, if the server's owner agrees, set caps.{key} = {value}");
        reader.fail(span, message, help);
    };
    if let Some(cap) = caps.users.filter(|cap| users > u64::from(*cap)) {
        exceeded(
            latest(cohorts.iter().chain(largest).map(|spans| Some(spans.size))),
            format!("{users} users"),
            format!("{cap} users"),
            "users",
            users.to_string(),
        );
    }
    let joins_per_s = joins_per_s(&scenario.crowd, scenario.target.rooms);
    if let Some(cap) = caps.joins_per_s.filter(|cap| joins_per_s > cap * (1.0 + 1e-9)) {
        let (what, value) =
            (format!("{joins_per_s:.1} joins/s"), format!("{:.0}", joins_per_s.ceil()));
        exceeded(
            largest.map(|spans| spans.arrival),
            what,
            format!("{cap} joins/s"),
            "joins_per_s",
            value,
        );
    }
    let mbit_per_s = scenario.stream.mbit_per_s(users);
    // An assumed bit rate is no reason to refuse: the run measures its bit rate against the cap.
    let video = top.span_at("stream", "video");
    if let Some(cap) = caps.mbit_per_s.filter(|cap| mbit_per_s > *cap && video.is_some()) {
        let (what, value) =
            (format!("{mbit_per_s:.0} Mbit/s"), format!("{:.0}", mbit_per_s.ceil()));
        exceeded(video, what, format!("{cap} Mbit/s"), "mbit_per_s", value);
    }
    let duration = scenario.run.duration;
    if let Some(cap) = caps.duration.filter(|cap| duration > *cap) {
        let value = format!("\"{}\"", write_duration(duration));
        exceeded(
            top.span_at("run", "duration"),
            format!("{} of run", write_duration(duration)),
            write_duration(cap),
            "duration",
            value,
        );
    }
}

/// The highest planned join rate of all cohorts, replacements included.
fn joins_per_s(crowd: &[Cohort], rooms: u32) -> f64 {
    crowd
        .iter()
        .map(|cohort| {
            let size = cohort.size.saturating_mul(rooms);
            let replaced = match cohort.stay {
                Some(stay) if stay.rejoin => f64::from(size) / stay.mean().as_secs_f64(),
                _ => 0.0,
            };
            cohort.arrival.joins_per_s(size).max(replaced)
        })
        .sum()
}
