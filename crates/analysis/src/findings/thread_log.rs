//! What a server's own log says of a thread: the lines that a knowledge pack ties to threads of its
//! name, and the values in them. It is evidence next to what was measured of the thread, and
//! decides nothing: what a server does not log is not there.

use std::collections::BTreeSet;

use super::Evidence;
use crate::context::{Context, Thread};

/// The lines of evidence; none if the log said nothing of it under the load that failed.
pub(super) fn evidence(context: &Context<'_>, thread: &Thread<'_>) -> Vec<Evidence> {
    let mut all = Vec::new();
    for pattern in context.knowledge.logs_of_thread(thread.process, thread.name) {
        let lines = context.log_lines(&[pattern.id.as_str()]);
        if lines.fail() <= 0.0 {
            continue;
        }
        all.push(Evidence::count(format!("log lines: {}", pattern.meaning), lines).of_events());
        for value in &pattern.values {
            let series = context.host.metric(&value.metric);
            let largest = context
                .reading(|window| series.iter().filter_map(|one| one.max(window)).reduce(f64::max));
            let name = format!("{}: {}", value.metric, value.meaning);
            all.push(Evidence::new(name, value.unit, largest));
        }
    }
    all
}

/// The same of all threads of the server, for what limits them together; each line once, those of
/// the busiest threads first.
pub(super) fn of_all(context: &Context<'_>) -> Vec<Evidence> {
    let (mut names, mut all) = (BTreeSet::new(), Vec::<Evidence>::new());
    for thread in &context.threads {
        if !names.insert((thread.process, thread.name)) {
            continue;
        }
        for line in evidence(context, thread) {
            if all.iter().all(|known| known.counter != line.counter) {
                all.push(line);
            }
        }
    }
    all
}
