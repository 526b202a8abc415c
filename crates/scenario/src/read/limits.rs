//! Judges values together: does the crowd arrive within the run, and does it stay below the caps?

use std::time::Duration;

use super::crowd::SIZE_MAX;
use super::fields::Reader;
use super::{Places, Span};
use crate::arrival::Arrival;
use crate::scenario::{Cohort, Scenario};
use crate::units::write_duration;

/// More visits than one run could hold in memory.
const VISITS_MAX: f64 = 5e6;
/// No run is longer, whatever its caps say: a month.
const DURATION_MAX: Duration = Duration::from_secs(31 * 24 * 60 * 60);

pub(super) fn check(reader: &mut Reader, scenario: &Scenario, places: &Places) {
    times(reader, scenario, places);
    for (index, cohort) in scenario.crowd.iter().enumerate() {
        let place = |of: &[Option<Span>]| of.get(index).copied().flatten();
        let late = latest([places.duration, place(&places.size), place(&places.arrival)]);
        let size = cohort.size.saturating_mul(scenario.target.rooms);
        arrives_in_time(reader, (cohort, size), scenario.run.duration, late);
        visits(reader, (cohort, size), scenario.run.duration, place(&places.stay));
    }
    caps(reader, scenario, places);
}

/// Of places that are wrong together, the one that was laid over the others last: what the person just wrote. In the file
/// alone, the last of them.
fn latest(places: impl IntoIterator<Item = Option<Span>>) -> Option<Span> {
    places.into_iter().flatten().max_by_key(|span| span.source)
}

fn times(reader: &mut Reader, scenario: &Scenario, places: &Places) {
    let run = &scenario.run;
    if run.duration < Duration::from_secs(1) || run.duration > DURATION_MAX {
        reader.fail(
            places.duration,
            "`run.duration` must be from 1 s to 31 days",
            "write duration = \"60s\"",
        );
    } else if run.warm_up >= run.duration {
        let help = format!("write less than \"{}\"", write_duration(run.duration));
        reader.fail(places.warm_up, "`run.warm_up` leaves nothing of the run for the objectives", help);
    }
    if scenario.users() > SIZE_MAX {
        let span = places.size.last().copied().flatten();
        reader.fail(
            span,
            format!("more than {SIZE_MAX} participants in all"),
            "make the cohorts smaller, or the rooms fewer",
        );
    }
}

/// Everybody must have come before the run ends.
fn arrives_in_time(
    reader: &mut Reader,
    (cohort, size): (&Cohort, u32),
    duration: Duration,
    place: Option<Span>,
) {
    let Some(last) = cohort.arrival.offsets(size).last().filter(|last| *last >= duration) else {
        return;
    };
    let message = format!(
        "the last of {size} {} would join at {}, but the run ends at {}",
        cohort.name,
        write_duration(rounded_up(last)),
        write_duration(duration)
    );
    let help = format!(
        "lengthen run.duration beyond \"{}\", let them arrive faster, or make the crowd smaller",
        write_duration(rounded_up(last))
    );
    reader.fail(place, message, help);
}

/// Up to a whole second, for messages.
fn rounded_up(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)))
}

fn visits(reader: &mut Reader, (cohort, size): (&Cohort, u32), duration: Duration, place: Option<Span>) {
    let Some(stay) = cohort.stay.filter(|stay| stay.rejoin) else { return };
    let visits = f64::from(size) * (1.0 + duration.as_secs_f64() / stay.mean().as_secs_f64());
    if visits > VISITS_MAX {
        let message = format!("about {visits:.0} visits, more than the {VISITS_MAX:.0} that a run can hold");
        reader.fail(place, message, "lengthen the stay, shorten the run or make the crowd smaller");
    }
}

fn caps(reader: &mut Reader, scenario: &Scenario, places: &Places) {
    let caps = &scenario.caps;
    let users = scenario.users();
    let largest =
        scenario.crowd.iter().enumerate().max_by_key(|(_, cohort)| cohort.size).map_or(0, |(index, _)| index);
    let place = |of: &[Option<Span>]| of.get(largest).copied().flatten();
    let mut exceeded = |span, what: String, cap: String, key: &str, value: String| {
        let message = format!("{what} exceed the cap of {cap}, which guards against harm by mistake");
        let help = format!("make it less, or, with the server owner's agreement, set caps.{key} = {value}");
        reader.fail(span, message, help);
    };
    if let Some(cap) = caps.users.filter(|cap| users > u64::from(*cap)) {
        exceeded(
            latest(places.size.iter().copied().chain([place(&places.size)])),
            format!("{users} users"),
            format!("{cap} users"),
            "users",
            users.to_string(),
        );
    }
    let joins_per_s = joins_per_s(&scenario.crowd, scenario.target.rooms);
    if let Some(cap) = caps.joins_per_s.filter(|cap| joins_per_s > cap * (1.0 + 1e-9)) {
        let (what, value) = (format!("{joins_per_s:.1} joins/s"), format!("{:.0}", joins_per_s.ceil()));
        exceeded(place(&places.arrival), what, format!("{cap} joins/s"), "joins_per_s", value);
    }
    let mbit_per_s = scenario.stream.mbit_per_s(users);
    // What is only assumed is no reason to refuse; the generator measures against the cap as it runs.
    if let Some(cap) = caps.mbit_per_s.filter(|cap| mbit_per_s > *cap && places.video.is_some()) {
        let (what, value) = (format!("{mbit_per_s:.0} Mbit/s"), format!("{:.0}", mbit_per_s.ceil()));
        exceeded(places.video, what, format!("{cap} Mbit/s"), "mbit_per_s", value);
    }
    let duration = scenario.run.duration;
    if let Some(cap) = caps.duration.filter(|cap| duration > *cap) {
        let value = format!("\"{}\"", write_duration(duration));
        exceeded(
            places.duration,
            format!("{} of run", write_duration(duration)),
            write_duration(cap),
            "duration",
            value,
        );
    }
}

/// The most joins in a second that the cohorts together are meant to offer, those who replace others included.
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
