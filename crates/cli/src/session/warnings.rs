//! Warnings before anything is sent: limits of this machine, and plans that servers will not play
//! as written.

use std::collections::BTreeSet;
use std::net::IpAddr;

use throng_engine::preflight::{self, Needs};
use throng_scenario::{Destination, Part, Plan};

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
