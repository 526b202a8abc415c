//! The host's CPU over each run: idle, and idle while a task waits for I/O.

use super::super::chart::{Chart, Line, Scale};
use super::shown;
use crate::matrix::MatrixReport;

pub(super) fn render(report: &MatrixReport) -> String {
    let charts: String = report
        .cells
        .iter()
        .filter_map(|cell| {
            let curves = shown(cell)?.figures.as_ref()?.curves.as_ref()?;
            let lines = vec![
                Line::solid("idle", 3, curves.idle.clone()),
                Line::solid("waiting for I/O", 2, curves.iowait.clone()),
            ];
            let chart = Chart {
                title: &cell.name,
                unit: "of the host's CPU time",
                note: "",
                scale: Scale::Whole,
                seconds: &curves.seconds,
                lines,
            };
            Some(chart.render())
        })
        .collect();
    if charts.is_empty() {
        return String::new();
    }
    format!("<h2>CPU idle and waiting for I/O</h2><div class=\"charts\">{charts}</div>")
}
