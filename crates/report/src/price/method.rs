//! How sizes and prices are made, and what limits them, in sentences.

use throng_analysis::sizing::{CURVED_REACH, LINEAR_REACH, Sizing, Traffic};

use crate::summary::Summary;

/// How the figures were made.
pub(super) fn sentences(is_priced: bool) -> Vec<String> {
    let mut all = vec![
        "The demand of a user is fitted to the loads that passed, one point a load; an interval \
         holds the mean use with 95 % by the error of the fit, and is at least ± 2 %, what a \
         server differs by from run to run."
            .to_owned(),
        format!(
            "Beyond the largest load that was measured a figure is an extrapolation (×N). A \
             straight demand is followed to ×{LINEAR_REACH:.0}, a curved one along its curve to \
             ×{CURVED_REACH:.0}; beyond that only the order of magnitude is known, and no machine \
             is planned with so many users."
        ),
        "A core is a CPU of the measured host as Linux counts it; servers are assumed to be \
         independent of each other."
            .to_owned(),
    ];
    if is_priced {
        all.push(
            "All viewers stay for the whole event. Traffic and requests are those of a user in \
             the run, measured at the receiver: retransmissions that were lost, and headers of \
             HTTP and TCP, are not in them. Traffic is charged as if nothing else was sent in the \
             month. The ends of the total are the sums of the ends of its parts."
                .to_owned(),
        );
    }
    all
}

/// What limits these figures in particular.
pub(super) fn notes(
    summary: &Summary,
    traffic: Option<&Traffic>,
    sizing: &Sizing<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.hosts.is_empty() {
        notes.push(
            "The server was not watched, so its CPU and memory are not known: --watch, \
             docs/watching.md"
                .into(),
        );
    } else if !sizing.has_cpu() {
        notes.push(
            "The CPU time that a user costs is within the noise: more loads that pass and differ \
             are needed, as `throng find` holds them with a larger budget, on a host that does \
             nothing else"
                .into(),
        );
    }
    let is_search = summary.capacity.is_some();
    if summary.generator.limited && !is_search {
        notes.push(
            "The generator was the limit of this run: its figures do not describe the server"
                .into(),
        );
    }
    if summary.partial {
        notes.push("The run is partial".into());
    }
    if traffic.is_some_and(|traffic| !traffic.is_of_good_service) {
        notes.push(
            "No load passed: the traffic is that of the whole run, served badly or not".into(),
        );
    }
    if summary.chat.is_some() && summary.chat_cost.is_none() {
        notes.push(
            "What the chat costs could not be determined: watch the process of its server, and \
             let the crowd come in groups"
                .into(),
        );
    } else if summary.chat_cost.is_some() {
        notes.push(
            "A join of a chat is an impulse and no steady use, so that seconds in which \
             participants came or went are not in the sizes of servers, where others were left; \
             the section on the chat has them"
                .into(),
        );
    }
    if summary.conference.is_some() {
        notes.push(
            "Participants of a conference: one room with more of them costs more each, so that \
             rooms should be sized and not viewers"
                .into(),
        );
    }
    notes
}
