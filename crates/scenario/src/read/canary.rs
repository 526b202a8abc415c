//! Checks `[canary]` against the crowd.

use super::fields::Reader;
use super::tree::Span;
use crate::canary::unsupported;
use crate::scenario::Scenario;

/// Checks the browsers against the target and the length of the run.
pub(super) fn check(reader: &mut Reader, scenario: &Scenario, span: Option<Span>) {
    let Some(canary) = &scenario.canary else { return };
    // That of `Plan::endpoint_of_browser`.
    let joined = scenario
        .crowd
        .iter()
        .map(|cohort| cohort.target.as_ref().unwrap_or(&scenario.target))
        .find(|target| target.part().receives_media());
    if let Some(why) = unsupported(&scenario.target).or_else(|| joined.and_then(unsupported)) {
        let help =
            "remove [canary]: browsers join by WHEP, Janus Streaming, Janus VideoRoom and LiveKit";
        reader.fail(span, format!("`canary`: {why}"), help);
    }
    if canary.joins_at(canary.browsers.saturating_sub(1)) >= scenario.run.duration {
        let message = "`canary`: the last browser would join after the run has ended";
        reader.fail(
            span,
            message,
            "reduce `canary.at` or `canary.every`, or increase `run.duration`",
        );
    }
}
