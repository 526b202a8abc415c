//! Warnings before anything is sent: limits of this machine, and plans that servers will not play
//! as written.

use std::collections::BTreeSet;
use std::net::IpAddr;

use throng_engine::preflight::{self, Needs};
use throng_scenario::{Carriage, Destination, Part, Plan};

use crate::console::say_lines;
use crate::media::Pages;
use crate::run_id::random;

/// Prints warnings to standard error.
pub(crate) fn print_warnings(warnings: &[String]) {
    warnings.iter().for_each(|warning| say_lines(&format!("warning: {warning}")));
}

/// All problems of a plan that do not refuse it, and what of its recorded pages is not requested.
pub(crate) fn warnings(plan: &Plan, pages: &Pages) -> Vec<String> {
    let limits = preflight::preflight(&needs(plan));
    let limits = limits.iter().map(ToString::to_string);
    limits.chain(foreign_source(plan)).chain(one_stream(plan)).chain(pages.warnings()).collect()
}

/// What a plan needs of the machine that plays it.
pub(crate) fn needs(plan: &Plan) -> Needs {
    let (descriptors_each, ports_each) = plan.sockets_each();
    Needs {
        participants: plan.expected.users.into(),
        descriptors_each,
        ports_each,
        source_ips: (source_ips(plan).len() as u64).max(1),
        receive_buffer_bytes: 1 << 20,
        memory_each_bytes: memory_each_bytes(plan),
    }
}

/// The mean of what the participants of a plan take, bytes.
fn memory_each_bytes(plan: &Plan) -> u64 {
    let destinations = plan.joins.iter().map(|join| usize::from(join.cohort.0));
    let destinations = destinations.filter_map(|cohort| plan.destinations.get(cohort));
    let (all, count) = destinations.fold((0_u64, 0_u64), |(all, count), destination| {
        (all + participant_bytes(destination.target.protocol().carriage()), count + 1)
    });
    all / count.max(1)
}

/// What a participant takes at least, as it was measured (docs/measurements/webrtc-viewers.md, by
/// sockets, hls-viewers.md, rtsp-viewers.md; a chat's member takes about what a viewer by RTSP
/// does). Of publishers by FFmpeg, whose processes take more, it is the least of all.
fn participant_bytes(carriage: Carriage) -> u64 {
    match carriage {
        Carriage::WebRtc => 77_000,
        Carriage::Http => 81_000,
        Carriage::Rtsp | Carriage::Ingest | Carriage::Nothing => 29_000,
    }
}

/// Cohorts whose publishers all publish to one stream, because their URL is constant; servers
/// accept only one.
fn one_stream(plan: &Plan) -> Vec<String> {
    let users =
        |cohort: usize| plan.joins.iter().filter(move |join| usize::from(join.cohort.0) == cohort);
    let may_be_one = |destination: &Destination| {
        destination.part() == Part::Publish && destination.target.api_key.is_none()
    };
    plan.destinations
        .iter()
        .enumerate()
        .filter(|(_, destination)| may_be_one(destination))
        .filter_map(|(cohort, destination)| {
            let mut joins = users(cohort).map(|join| join.place);
            let (one, other) = (joins.next()?, joins.max()?);
            let endpoint = |place| destination.endpoint(place, random(place));
            let is_one = one != other && endpoint(one) == endpoint(other);
            let name = plan.cohorts.get(cohort)?;
            is_one.then(|| {
                format!(
                    "all {name} go to {}, and servers take one publisher a stream (SRS, MediaMTX, \
                     OvenMediaEngine); write {{n}} into the URL's path or query, such as \
                     …/live-{{n}} or …&stream={{n}}",
                    destination.target.display()
                )
            })
        })
        .collect()
}

/// A source address that this host does not have: no participant could bind to it.
pub(crate) fn foreign_source(plan: &Plan) -> Option<String> {
    let (address, why) = preflight::foreign_address(source_ips(plan))?;
    let ours: Vec<_> = preflight::own_addresses().iter().map(ToString::to_string).collect();
    Some(format!(
        "source address {address} (--source-ip, source_ips) is not one of this host's: {why}\n  \
         help: use one of {}, or give it to an interface (`ip addr add {address} dev …`)",
        ours.join(", ")
    ))
}

/// The local addresses that participants of the plan bind to.
pub(crate) fn source_ips(plan: &Plan) -> BTreeSet<IpAddr> {
    plan.joins.iter().filter_map(|join| join.source_ip).collect()
}

#[cfg(test)]
mod tests {
    use throng_scenario::Scenario;

    use super::*;

    #[test]
    fn memory_is_needed_as_it_was_measured() {
        let each = |text: &str| {
            let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
            needs(&scenario.plan()).memory_each_bytes
        };
        let of = |url: &str| each(&format!("[target]\nurl = \"{url}\"\n[crowd]\nsize = 3\n"));
        assert_eq!(of("whep+http://127.0.0.1/whep"), 77_000);
        assert_eq!(of("rtsp://127.0.0.1/cam"), 29_000);
        assert_eq!(of("http://127.0.0.1/film.m3u8"), 81_000);
    }
}
