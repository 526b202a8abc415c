//! Reads `[canary]`.

use std::time::Duration;

use super::fields::{Fields, Reader};
use super::tree::Span;
use crate::canary::{BROWSERS_MAX, Canary, unsupported};
use crate::scenario::Scenario;
use crate::units;

/// Reads `[canary]`; `None` if it is absent.
pub(super) fn canary(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Canary> {
    let node = top.get("canary")?;
    let mut fields = reader.table(node, "canary", "a table such as { browsers = 1 }")?;
    let browsers = reader.integer(&mut fields, "browsers", 1, BROWSERS_MAX);
    if fields.get("browsers").is_none() && fields.lacks("browsers") {
        let message = "`canary.browsers` is missing";
        reader.fail(node.span, message, "write under [canary] browsers = 1");
    }
    let at = reader.quantity(&mut fields, "at", "2s", units::duration);
    let every = reader.quantity(&mut fields, "every", "1s", units::duration);
    let named = fields.get("browser");
    let browser =
        named.and_then(|node| reader.text(node, "canary.browser", "the path of a program"));
    if let (Some(node), Some("")) = (named, browser.as_deref()) {
        let help = "write browser = \"/usr/bin/chromium\", or leave it out";
        reader.fail(node.span, "`canary.browser` is empty", help);
    }
    reader.finish(&fields);
    Some(Canary {
        browsers: browsers.unwrap_or(1),
        at: at.unwrap_or_default(),
        every: every.unwrap_or(Duration::from_secs(1)),
        browser,
    })
}

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
