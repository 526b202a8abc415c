//! The bottleneck on the first screen: what limited the server, its evidence, and what to change.

use throng_analysis::bottleneck::{Bottleneck, BottleneckVerdict};
use throng_analysis::reasons;
use throng_analysis::windows::{LoadWindow, judged_window, quality_by_second};
use throng_observation::host::Unit;
use throng_observation::run::RunData;
use throng_observation::{HoldOutcome, HoldRow};

use super::chart::{Chart, Line, Overlay, Scale};
use super::markup::{self, escape, known, table};
use super::timeline::Timeline;
use crate::cause::{certainty, other_finding, prediction};
use crate::server::{Grid, MeasuredSeries, hosts};
use crate::summary::Summary;

/// Nothing where no load failed.
pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let Some(found) = &summary.bottleneck else { return String::new() };
    let sure = matches!(
        found.verdict,
        BottleneckVerdict::Bottleneck
            | BottleneckVerdict::CoBottleneck
            | BottleneckVerdict::GeneratorLimited
    );
    let class = if sure { "cause" } else { "cause unsure" };
    let score = found.score.map_or_else(String::new, |score| format!(" · {score:.0} of 100"));
    let mut out = format!(
        "<section class=\"{class}\"><p class=\"over\"><span class=\"badge missed\">{}</span>What \
         stopped it{score}</p><h2 id=\"cause\">{}</h2>",
        certainty(found.verdict),
        escape(&found.title)
    );
    out += &suffered(found);
    out += &help(found);
    out += &charts(run, found);
    out += &evidence(found);
    out += &rest(found);
    out.push_str("</section>");
    out
}

/// What the users of the failing load had, whatever the cause.
fn suffered(found: &Bottleneck) -> String {
    let words = reasons::words(&found.reasons);
    words.map_or_else(String::new, |words| {
        format!("<p class=\"over\">Bad seconds: {}.</p>", escape(&words))
    })
}

fn help(found: &Bottleneck) -> String {
    let Some(change) = &found.change else { return String::new() };
    let then = found.prediction.as_ref().map_or_else(String::new, |then| {
        format!("<br><b>Would give</b> {}.", escape(&prediction(then)))
    });
    format!("<p class=\"help\"><b>Change</b> {}.{then}</p>", escape(change))
}

fn evidence(found: &Bottleneck) -> String {
    if found.evidence.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = found
        .evidence
        .iter()
        .map(|line| {
            vec![
                line.counter.clone(),
                line.show(line.baseline),
                line.show(line.pass),
                line.show(line.fail),
                line.show(line.limit),
                known(line.crossed_at_s, |at| format!("{at:.0} s")),
            ]
        })
        .collect();
    table(&["Evidence", "baseline", "passed", "failed", "limit", "crossed at"], &rows)
}

/// What was ruled out, the other findings, and what was not monitored.
fn rest(found: &Bottleneck) -> String {
    let list = |title: &str, items: Vec<String>| {
        if items.is_empty() {
            return String::new();
        }
        format!("<details><summary>{title}</summary><ul>{}</ul></details>", markup::items(items))
    };
    let not = match found.ruled_out.first() {
        Some(_) => format!("Ruled out ({})", found.ruled_out.len()),
        None => String::new(),
    };
    [
        list("Other findings", found.other_findings.iter().map(other_finding).collect()),
        list(&not, found.ruled_out.clone()),
        list("Not monitored", found.not_monitored.clone()),
    ]
    .concat()
}

/// The counter that shows it, and the users, over the run; holds shaded, the crossing marked.
fn charts(run: &RunData, found: &Bottleneck) -> String {
    let time = Timeline::of(run);
    let grid = time.grid();
    let overlay = overlay(run, found);
    let mut out = String::from("<div class=\"pairs\">");
    if let Some(chart) = counter(run, found, &time, grid, &overlay) {
        out += &chart;
    }
    let mut bad = vec![None; grid.count];
    for (second, quality) in quality_by_second(run) {
        let place = second
            .saturating_mul(1_000_000)
            .saturating_sub(grid.first_us)
            .div_euclid(grid.width_us.max(1));
        if let Some(worst) = usize::try_from(place).ok().and_then(|place| bad.get_mut(place))
            && quality.users > 0
        {
            let ratio = quality.bad_ratio();
            *worst = Some(worst.map_or(ratio, |worst: f64| worst.max(ratio)));
        }
    }
    let lines = vec![Line::solid("users with a bad second", 2, bad)];
    let chart = Chart {
        title: "The users",
        unit: "of the intended users",
        note: "Grey: loads that passed. Green, lines that rise: the largest of them. Red, dense \
               lines that fall: loads that failed.",
        scale: Scale::Percent,
        seconds: &time.starts,
        lines,
    };
    out += &chart.render_over(&overlay);
    out.push_str("</div>");
    out
}

fn counter(
    run: &RunData,
    found: &Bottleneck,
    time: &Timeline,
    grid: Grid,
    overlay: &Overlay,
) -> Option<String> {
    let first = found.evidence.first()?;
    let hosts = hosts(run);
    let metrics: Vec<_> = hosts.iter().flat_map(super::super::server::Host::metrics).collect();
    let series: Vec<MeasuredSeries<'_>> = metrics
        .iter()
        .flat_map(|(_, list)| list.iter())
        .filter(|series| found.series.contains(&series.series.id.0))
        .copied()
        .collect();
    let unit = series.first()?.series.unit;
    let (factor, scale, words) = match unit {
        Unit::Ratio => (1.0, Scale::Percent, "100 % is one core"),
        Unit::BytesPerSecond => (8e-6, Scale::Plain, "Mbit/s"),
        Unit::Bytes => (1e-6, Scale::Plain, "MB"),
        Unit::PerSecond => (1.0, Scale::Plain, "per second"),
        Unit::Milliseconds => (1.0, Scale::Plain, "ms"),
        Unit::Count => (1.0, Scale::Plain, ""),
    };
    let mut sums = vec![None; grid.count];
    series.iter().for_each(|series| series.add_to(grid, &mut sums));
    let values = sums.iter().map(|value| value.map(|value| value * factor)).collect();
    let name = series.first()?.series.metric.clone();
    let mut lines = vec![Line::solid(name, 1, values)];
    let limit = series.first()?.limit().filter(|limit| *limit > 0.0);
    if let Some(limit) = limit {
        lines.push(Line::dashed("limit", 6, vec![Some(limit * factor); grid.count]));
    }
    let chart =
        Chart { title: &first.counter, unit: words, note: "", scale, seconds: &time.starts, lines };
    Some(chart.render_over(overlay))
}

/// Loads as stretches, and the moments that matter.
fn overlay(run: &RunData, found: &Bottleneck) -> Overlay {
    let mut bands = Vec::new();
    for hold in HoldRow::judged_alike(&run.holds) {
        let Some(LoadWindow { window, .. }) = judged_window(hold) else { continue };
        let from = window.from_us as f64 / 1e6;
        let is_pass = found.pass_s.is_some_and(|[pass, _]| (pass - from).abs() < 0.5);
        let class = match hold.passed(throng_observation::Goal::Acceptable) {
            HoldOutcome::No => "fail",
            HoldOutcome::Yes if is_pass => "pass",
            HoldOutcome::Yes => "",
            // It says nothing of the server: ended early, or the generator was the limit.
            HoldOutcome::Undecided => continue,
        };
        bands.push((from, window.until_us as f64 / 1e6, class));
    }
    if run.holds.is_empty() {
        bands.extend(found.pass_s.map(|[from, until]| (from, until, "pass")));
        bands.extend(found.fail_s.map(|[from, until]| (from, until, "fail")));
    }
    let crossed = found.evidence.iter().find_map(|line| line.crossed_at_s);
    let mut marks: Vec<(f64, String)> = Vec::new();
    marks.extend(crossed.map(|at| (at, format!("crossed at {at:.0} s"))));
    marks.extend(found.first_bad_s.map(|at| (at as f64, format!("first bad second: {at} s"))));
    Overlay { bands, marks, ..Overlay::default() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::{HoldRow, RunTime};

    use super::*;

    #[test]
    fn loads_are_shaded_by_what_they_came_to() {
        let at = |s| RunTime::after_start(Duration::from_secs(s));
        let hold = |from, passed| HoldRow {
            from: at(from),
            judged_from: Some(at(from + 3)),
            until: Some(at(from + 10)),
            passed: [passed; 3],
            ..HoldRow::default()
        };
        let holds = vec![
            hold(0, HoldOutcome::Yes),
            hold(20, HoldOutcome::Yes),
            hold(40, HoldOutcome::No),
            hold(60, HoldOutcome::Undecided),
            // Ended before a second of it was judged, because too many users had bad service.
            HoldRow { judged_from: Some(at(86)), until: Some(at(86)), ..hold(80, HoldOutcome::No) },
        ];
        let run = RunData { holds, ..RunData::default() };
        let found = Bottleneck { pass_s: Some([23.0, 30.0]), ..Bottleneck::default() };
        let bands = overlay(&run, &found).bands;
        assert_eq!(
            bands,
            [(3.0, 10.0, ""), (23.0, 30.0, "pass"), (43.0, 50.0, "fail"), (80.0, 86.0, "fail")]
        );
    }
}
