//! The map: cells coloured by what limits them. Rows and columns are the two factors with most
//! levels; for each combination of the others there is a map of its own.

use super::super::markup::{Cell, Table, escape, known};
use super::{link, served, shown};
use crate::matrix::{CellVerdict, MatrixCell, MatrixReport, text};

/// Classes of cells in the legend, with their names.
const CLASSES: [(&str, &str); 8] = [
    ("m-served", "served well"),
    ("m-cpu", "CPU"),
    ("m-disk", "disk"),
    ("m-memory", "memory"),
    ("m-network", "network"),
    ("m-sockets", "sockets"),
    ("m-other", "other limit"),
    ("m-none", "no answer"),
];

pub(super) fn render(report: &MatrixReport) -> String {
    let used = |class: &str| report.cells.iter().any(|cell| class_of(cell) == class);
    let legend: String = CLASSES
        .iter()
        .filter(|(class, _)| used(class))
        .map(|(class, name)| format!("<span class=\"swatch {class}\">{name}</span>"))
        .collect();
    let (rows, columns, others) = axes(report);
    let grids: String = combinations(report, &others)
        .iter()
        .map(|fixed| grid(report, rows, columns, &others, fixed))
        .collect();
    format!(
        "<h2>What limits each cell</h2><div class=\"legend\">{legend}</div><div \
         class=\"grids\">{grids}</div><p class=\"over\">{}. A cell leads to the report of its \
         first run, the first valid one if there is one.</p>",
        match report.measure {
            crate::matrix::MatrixMeasure::Hold => "The number: user-seconds served well",
            crate::matrix::MatrixMeasure::Find => "The number: users served well",
        }
    )
}

fn class_of(cell: &MatrixCell) -> &'static str {
    match (cell.verdict, cell.resource.as_deref()) {
        (CellVerdict::Served, _) => "m-served",
        (_, Some("cpu")) => "m-cpu",
        (_, Some("disk")) => "m-disk",
        (_, Some("memory")) => "m-memory",
        (_, Some("network")) => "m-network",
        (_, Some("sockets")) => "m-sockets",
        _ if cell.finding.is_some() || cell.verdict == CellVerdict::Unattributed => "m-other",
        _ => "m-none",
    }
}

/// The factors of rows and columns, and the rest. A missing axis is `None`.
fn axes(report: &MatrixReport) -> (Option<usize>, Option<usize>, Vec<usize>) {
    let mut by_levels: Vec<usize> = (0..report.factors.len()).collect();
    let levels =
        |factor: &usize| report.factors.get(*factor).map_or(0, |factor| factor.levels.len());
    by_levels.sort_by_key(|factor| std::cmp::Reverse(levels(factor)));
    let (columns, rows) = (by_levels.first().copied(), by_levels.get(1).copied());
    let mut others: Vec<usize> = by_levels.into_iter().skip(2).collect();
    others.sort_unstable();
    (rows, columns, others)
}

/// The combinations of levels of `factors` that cells have.
fn combinations(report: &MatrixReport, factors: &[usize]) -> Vec<Vec<usize>> {
    let of = |cell: &MatrixCell| -> Vec<usize> {
        factors.iter().map(|factor| cell.levels.get(*factor).copied().unwrap_or(0)).collect()
    };
    let mut all: Vec<Vec<usize>> = report.cells.iter().map(of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn grid(
    report: &MatrixReport,
    rows: Option<usize>,
    columns: Option<usize>,
    others: &[usize],
    fixed: &[usize],
) -> String {
    let levels = |factor: Option<usize>| {
        let factor = factor.and_then(|factor| report.factors.get(factor));
        factor.map_or_else(|| vec![String::new()], |factor| factor.levels.clone())
    };
    let name = |factor: Option<usize>| {
        factor
            .and_then(|factor| report.factors.get(factor))
            .map_or("", |factor| factor.name.as_str())
    };
    let chosen = others.iter().zip(fixed).filter_map(|(factor, level)| {
        let factor = report.factors.get(*factor)?;
        Some(format!("{}={}", factor.name, factor.levels.get(*level)?))
    });
    let caption = chosen.collect::<Vec<_>>().join(" ");
    let corner = [name(rows), name(columns)]
        .iter()
        .filter(|name| !name.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(" × ");
    let levels_of_columns = levels(columns);
    let mut header = vec![corner.as_str()];
    header.extend(levels_of_columns.iter().map(String::as_str));
    let mut table = Table::new("map", &header, &[]);
    for (row, level) in levels(rows).iter().enumerate() {
        let cells = (0..levels_of_columns.len()).map(|column| {
            let is_there = |cell: &&MatrixCell| {
                let at = |factor: Option<usize>, level: usize| {
                    factor.is_none_or(|factor| cell.levels.get(factor) == Some(&level))
                };
                at(rows, row)
                    && at(columns, column)
                    && others.iter().zip(fixed).all(|(factor, level)| at(Some(*factor), *level))
            };
            let cell = report.cells.iter().find(is_there);
            Cell::markup(cell.map(|cell| one(report, cell)).unwrap_or_default())
        });
        table.row("", std::iter::once(Cell::head(level)).chain(cells));
    }
    format!(
        "<figure><figcaption><b>{}</b></figcaption>{}</figure>",
        escape(&caption),
        table.finish()
    )
}

fn one(report: &MatrixReport, cell: &MatrixCell) -> String {
    let number = known(served(report, cell), |value| report.service().show(value));
    let inner = format!("<b>{}</b><small>{}</small>", escape(&number), escape(&text::limit(cell)));
    let class = class_of(cell);
    let run = shown(cell).or_else(|| cell.runs.iter().find(|run| run.folder.is_some()));
    match run.and_then(link) {
        Some(link) => format!(
            "<a class=\"{class}\" href=\"{}\" title=\"{}\">{inner}</a>",
            escape(&link),
            escape(&cell.name)
        ),
        None => {
            format!("<span class=\"cell {class}\" title=\"{}\">{inner}</span>", escape(&cell.name))
        }
    }
}
