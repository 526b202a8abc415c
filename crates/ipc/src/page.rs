//! The page: the table, and a bar for each transport, in the style of all reports.

use std::fmt::Write as _;

use throng_report::html::page::{self, Bar, escape};

use crate::cost::{byte_rate, duration_us, figure, grouped, money};
use crate::{IpcReport, Measured, Outcome, Row};

impl IpcReport {
    /// `report.html`: one self-contained page that loads nothing from the network.
    #[must_use]
    pub fn html(&self) -> String {
        let mut body = format!(
            "<header><p class=\"over\">throng ipc · {}</p><h1>{}</h1></header>",
            escape(&self.circumstances()),
            escape(&self.headline)
        );
        let bad: Vec<_> = self.rows.iter().filter(|row| row.outcome != Outcome::Measured).collect();
        if self.partial || !bad.is_empty() {
            body.push_str("<ul class=\"notes\">");
            for row in &bad {
                let what = if row.outcome == Outcome::Failed { "failed" } else { "is not here" };
                let reason = row.reason.as_deref().unwrap_or_default();
                let _ =
                    write!(body, "<li>{}</li>", escape(&format!("{} {what}: {reason}", row.name)));
            }
            if self.partial {
                body.push_str("<li>Ended early: what is not on this page was not measured.</li>");
            }
            body.push_str("</ul>");
        }
        body.push_str(&self.chart("CPU seconds per GB, all processes", 1, |figures| {
            (figures.cpu_s_per_gb, figure(figures.cpu_s_per_gb))
        }));
        let streams = grouped(f64::from(self.assumptions.streams));
        body.push_str(&self.chart(&format!("What {streams} streams cost a year"), 2, |figures| {
            (figures.cost_per_year, money(figures.cost_per_year))
        }));
        body.push_str(&self.chart("Throughput", 3, |figures| {
            (figures.bytes_per_second, byte_rate(figures.bytes_per_second))
        }));
        body.push_str(&self.chart("Latency, 99th percentile", 5, |figures| {
            figures.latency.map_or((0.0, "–".into()), |latency| {
                (latency.us_p99, duration_us(latency.us_p99))
            })
        }));
        body.push_str("<h2>All figures</h2>");
        let columns = self.columns();
        let columns: Vec<_> = columns.iter().map(String::as_str).collect();
        let rows: Vec<_> = self
            .rows
            .iter()
            .filter_map(|row| Some(self.cells(row, row.figures.as_ref()?)))
            .collect();
        body.push_str(&page::table(&columns, &rows));
        let spent: Vec<_> =
            self.spent().map(|(name, functions)| vec![name.to_owned(), functions]).collect();
        if !spent.is_empty() {
            body.push_str("<h2>Where the time goes</h2>");
            body.push_str(&page::table(
                &["transport", "innermost functions, of all its processes"],
                &spent,
            ));
        }
        body.push_str("<h2>How to read this</h2>");
        for note in self.notes() {
            let _ = write!(body, "<p class=\"over\">{}</p>", escape(&note));
        }
        page::document(&format!("throng ipc: {}", self.headline), &body)
    }

    /// A bar for each row; also for baselines where their figure is meaningful.
    fn chart(
        &self,
        title: &str,
        colour: u8,
        figure: impl Fn(&Measured) -> (f64, String),
    ) -> String {
        let bars: Vec<_> = self
            .rows
            .iter()
            .filter_map(|row| Some((row, row.figures.as_ref()?)))
            .map(|(row, figures)| {
                let (value, text) = figure(figures);
                // Baselines are references for the others, not competitors.
                Bar {
                    name: row.name.clone(),
                    value,
                    text,
                    colour: if row.transport.is_baseline() { 6 } else { colour },
                }
            })
            .collect();
        format!("<h2>{}</h2>{}", escape(title), page::bars(&bars))
    }

    fn notes(&self) -> Vec<String> {
        let of_row = |row: &Row| Some(format!("{}: {}", row.name, row.note.as_ref()?));
        self.rows
            .iter()
            .filter(|row| row.figures.is_some())
            .filter_map(of_row)
            .chain(self.remarks())
            .collect()
    }
}
