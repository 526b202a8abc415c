//! How the service and the crowd went, in a line of block characters each.

use std::fmt::Write as _;

use throng_analysis::windows::quality_by_second;
use throng_observation::SecondRow as _;
use throng_observation::run::{CrowdRow, RunData};
use throng_observation::units::percent;

/// Most characters of a line.
const COLUMNS_MAX: i64 = 50;
/// From nothing to all.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The share of users that was served well, of each column's worst second, and the crowd; `None` of
/// a run without a second column.
pub(super) fn lines(run: &RunData) -> Option<String> {
    let crowd = CrowdRow::by_second(&run.crowd);
    let (first, last) = (*crowd.keys().next()?, *crowd.keys().next_back()?);
    let span = last.saturating_sub(first);
    let width = span / COLUMNS_MAX + 1;
    let columns = usize::try_from(span / width).ok().filter(|columns| *columns > 0)? + 1;
    let place = |second: i64| usize::try_from(second.saturating_sub(first).div_euclid(width)).ok();

    let mut connected = vec![None; columns];
    for (second, row) in &crowd {
        put(&mut connected, place(*second), Some(f64::from(row.connected)), f64::max);
    }
    let mut served = vec![None; columns];
    for (second, quality) in &quality_by_second(run) {
        put(&mut served, place(*second), quality.served_ratio(), f64::min);
    }
    Some(drawn(&served, &connected, [first, last.saturating_add(1)]))
}

/// Adds a second's value to its column.
fn put(
    columns: &mut [Option<f64>],
    place: Option<usize>,
    value: Option<f64>,
    of_both: fn(f64, f64) -> f64,
) {
    if let Some((column, value)) = place.and_then(|place| columns.get_mut(place)).zip(value) {
        *column = Some(column.map_or(value, |other| of_both(other, value)));
    }
}

fn drawn(served: &[Option<f64>], connected: &[Option<f64>], [from_s, until_s]: [i64; 2]) -> String {
    let mut out = String::new();
    if let Some(worst) = served.iter().flatten().copied().reduce(f64::min) {
        let _ = writeln!(out, "served  {}  at worst {}", blocks(served, 1.0), percent(worst));
    }
    let most = connected.iter().flatten().copied().fold(0.0, f64::max);
    let _ = writeln!(out, "crowd   {}  at most {most:.0} at once", blocks(connected, most));
    let (from, until) = (format!("{from_s} s"), format!("{until_s} s"));
    let width = connected.len().saturating_sub(from.len());
    let _ = writeln!(out, "        {from}{until:>width$}");
    out
}

/// Only what is all of `top` is a full block.
fn blocks(values: &[Option<f64>], top: f64) -> String {
    let highest = BLOCKS.len() - 1;
    let block = |value: f64| {
        let level = (value / top).clamp(0.0, 1.0) * highest as f64;
        BLOCKS.get(level as usize).copied()
    };
    values.iter().map(|value| value.and_then(block).unwrap_or(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_block_is_full_only_of_all_and_missing_of_nothing_known() {
        assert_eq!(blocks(&[Some(0.0), Some(0.5), Some(0.999), Some(1.0), None], 1.0), "▁▄▇█ ");
        assert_eq!(blocks(&[Some(0.0), Some(f64::NAN)], 0.0), "▁▁");
    }

    #[test]
    fn a_run_is_drawn_with_its_worst_seconds() {
        let text = lines(&example::degraded()).expect("60 s");
        let rows: Vec<&str> = text.lines().collect();
        assert!(
            rows[0].starts_with("served  ████") && rows[0].ends_with("▁  at worst 0 %"),
            "{text}"
        );
        assert!(
            rows[1].starts_with("crowd   ▂▃") && rows[1].ends_with("  at most 100 at once"),
            "{text}"
        );
        assert_eq!(rows[2], format!("        0 s{:>27}", "60 s"), "{text}");
        assert!(lines(&example::healthy(5, 20)).is_some_and(|text| text.contains("100.0 %")));
    }

    #[test]
    fn a_run_without_service_has_its_crowd_and_one_without_time_has_nothing() {
        let crowd = lines(&example::crowd_only(86_400)).expect("a day");
        assert!(crowd.starts_with("crowd   ▁") && crowd.contains("86400 s"), "{crowd}");
        assert_eq!(lines(&example::crowd_only(1)), None);
        assert_eq!(lines(&RunData::default()), None);
        let far = [i64::MIN, i64::MAX].map(|second| CrowdRow { second, ..CrowdRow::default() });
        let far = lines(&RunData { crowd: far.into(), ..RunData::default() });
        assert!(far.is_some_and(|text| text.lines().count() == 2));
    }
}
