//! The page of a trend: what changed, a chart of each quantity over the runs, the runs.

use throng_analysis::comparison::trend::TrendMark;
use throng_observation::calendar;

use super::chart::{Chart, Line, Overlay, Scale};
use super::markup::{escape, method, notes, table};
use super::over_time::{Drawn, section};
use super::page::document;
use crate::trend::{TrendQuantity, TrendReport, text};

/// The whole page.
#[must_use]
pub fn render(report: &TrendReport) -> String {
    let head = format!(
        "<header><h1>{}</h1>{}</header>",
        escape(&report.headline),
        notes(text::sentences(report))
    );
    let method = method(&report.method, &report.throng_version);
    let body = [head, charts(report), over_time(report), runs(report), method].concat();
    document(&format!("throng: {}", report.headline), &body)
}

fn charts(report: &TrendReport) -> String {
    let charts: String = report.quantities.iter().map(|quantity| chart(report, quantity)).collect();
    if charts.is_empty() {
        return String::new();
    }
    format!(
        "<h2>Over the runs</h2><div class=\"charts\">{charts}</div><p class=\"over\">Runs are \
         numbered by their time, as in the table below. The dashed line is the median that a \
         figure was compared with.</p>"
    )
}

fn chart(report: &TrendReport, quantity: &TrendQuantity) -> String {
    let places: Vec<i64> = (1..).take(report.runs.len()).collect();
    let counts = |index: usize| report.runs.get(index).is_some_and(|run| run.excluded.is_none());
    let of = |wanted: bool| -> Vec<Option<f64>> {
        let values = quantity.values.iter().enumerate();
        values
            .map(|(index, value)| value.filter(|_| counts(index) == wanted))
            .map(|value| value.map(|value| scaled(quantity, value)))
            .collect()
    };
    let medians = quantity
        .medians
        .iter()
        .map(|median| median.map(|median| scaled(quantity, median)))
        .collect();
    let lines = vec![
        Line::solid("figure", 1, of(true)),
        Line::solid("does not count", 6, of(false)),
        Line::dashed("median before", 6, medians),
    ];
    let marks = quantity.changes.iter().map(|change| {
        let what =
            if change.mark == TrendMark::Change { change.verdict.words() } else { "outlier" };
        ((change.run + 1) as f64, format!("{what}: run {}", change.run + 1))
    });
    let overlay = Overlay { marks: marks.collect(), counts_runs: true, ..Overlay::default() };
    let (unit, scale) = axis(quantity);
    Chart { title: &quantity.name, unit, note: "", scale, seconds: &places, lines }
        .render_over(&overlay)
}

/// The newest runs on one axis.
fn over_time(report: &TrendReport) -> String {
    let first = report.runs.len().saturating_sub(report.over_time.len());
    let drawn = (1_u8..).zip(&report.over_time);
    let drawn = drawn.map(|(colour, run)| {
        let name = format!("run {}", first + usize::from(colour));
        Drawn { name, colour, dashed: false, run }
    });
    section(&drawn.collect::<Vec<_>>(), "The newest six runs are drawn.")
}

/// The unit of the axis; shares are shown in percent.
fn axis(quantity: &TrendQuantity) -> (&str, Scale) {
    match quantity.unit.as_str() {
        "ratio" => ("", Scale::Percent),
        "bit/s" => ("Mbit/s", Scale::Plain),
        "B" => ("MB", Scale::Plain),
        unit => (unit, Scale::Plain),
    }
}

fn scaled(quantity: &TrendQuantity, value: f64) -> f64 {
    match quantity.unit.as_str() {
        "bit/s" | "B" => value / 1e6,
        _ => value,
    }
}

fn runs(report: &TrendReport) -> String {
    let row = |(index, run): (usize, &crate::trend::TrendRun)| {
        let remarks: Vec<String> = run
            .excluded
            .iter()
            .map(|why| format!("does not count: {why}"))
            .chain(run.remarks.iter().cloned())
            .collect();
        vec![
            (index + 1).to_string(),
            run.folder.clone(),
            calendar::shown(run.started_at_unix_us),
            run.throng_version.clone(),
            run.limit.clone().unwrap_or_else(|| "–".into()),
            run.headline.clone(),
            remarks.join("; "),
        ]
    };
    let rows: Vec<Vec<String>> = report.runs.iter().enumerate().map(row).collect();
    format!(
        "<h2>Runs</h2>{}",
        table(&["", "run", "started", "throng", "limit", "answer", "remarks"], &rows)
    )
}
