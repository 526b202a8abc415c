//! The section "Size" of a run's page: users per core, per Gbit/s, per GB.

use throng_analysis::sizing::users_per_unit;

use super::{shares_host_with_crowd, text};
use crate::html::page::{escape, table};
use crate::summary::Summary;

/// Empty without a demand that grows with the users.
pub(crate) fn render(summary: &Summary) -> String {
    let rows: Vec<Vec<String>> = users_per_unit(&summary.demand, shares_host_with_crowd(summary))
        .into_iter()
        .map(|(resource, users)| {
            let (_, per) = resource.counted_per();
            vec![resource.name().to_owned(), text::users_per(&users, per)]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let note = "At the largest load that passed, without headroom; the interval is that of the \
                fit (95 %). `throng price RUN --viewers N` says what another crowd needs, on \
                which machines, and with a price file what it costs.";
    [
        "<h2>Size</h2>",
        &table(&["Resource", "users served by one more"], &rows),
        "<p class=\"over\">",
        &escape(note),
        "</p>",
    ]
    .concat()
}
