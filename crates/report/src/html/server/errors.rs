//! Answers 5xx a minute, by group of URIs and status, as the server's access logs have them.

use super::super::chart::{Line, Scale};
use super::super::markup::table;
use super::charts::{COLOURS, ServerCharts};
use crate::requests::grouped;
use crate::server::errors::{self, ErrorsOfUri};

/// Rows of the table: groups are bounded, statuses few.
const ROWS_MAX: usize = 30;

const NOTE: &str = "Each point has the count of its whole minute of the run; the last minute ends \
                    with the run. Refused upgrades to a WebSocket count as any other request.";

/// A chart of those with most, and a table of all; nothing where the log has none.
pub(super) fn render(charts: &ServerCharts<'_>) -> String {
    let all = errors::of(charts.host);
    if all.is_empty() {
        return String::new();
    }
    let lines = all.iter().zip(COLOURS).map(|(errors, colour)| {
        Line::solid(
            format!("{} on {}", errors.status, errors.uri_group),
            colour,
            on_the_axis(charts, errors),
        )
    });
    let unit = "a minute, by group of URIs";
    let chart = charts.time.chart("Answers 5xx", unit, Scale::Plain, NOTE, lines.collect());
    let rows: Vec<Vec<String>> = all.iter().take(ROWS_MAX).map(row).collect();
    let head = [
        "URIs",
        "status",
        "answers",
        "the most in a minute",
        "that minute began at",
        "minutes with any",
    ];
    format!(
        "<h3>Answers 5xx by URI and minute</h3><div class=\"charts\">{chart}</div>{}",
        table(&head, &rows)
    )
}

fn on_the_axis(charts: &ServerCharts<'_>, errors: &ErrorsOfUri) -> Vec<Option<f64>> {
    let count = |second: &i64| {
        let minute = usize::try_from(second.div_euclid(60)).ok()?;
        errors.by_minute.get(minute).map(|count| *count as f64)
    };
    charts.time.starts.iter().map(count).collect()
}

fn row(errors: &ErrorsOfUri) -> Vec<String> {
    let (worst, minute) = errors.worst();
    let with_any = errors.by_minute.iter().filter(|count| **count > 0).count();
    vec![
        errors.uri_group.clone(),
        errors.status.clone(),
        grouped(errors.answers()),
        grouped(worst),
        format!("{} s", minute * 60),
        format!("{with_any} of {}", errors.by_minute.len()),
    ]
}
