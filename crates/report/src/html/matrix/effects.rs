//! What the factors did: the mean of each level as bars, differences as a table, interactions where
//! effects do not add up.

use std::fmt::Write as _;

use throng_analysis::experiment::{FactorEffect, Interaction};

use super::super::markup::{escape, known, table};
use super::super::page::{Bar, bars};
use crate::Quantity;
use crate::matrix::{MatrixReport, MatrixResponse, text};

pub(super) fn render(report: &MatrixReport) -> String {
    if report.responses.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h2>Effects</h2>");
    for (index, response) in report.responses.iter().enumerate() {
        let Some(kind) = Quantity::of_key(&response.key) else { continue };
        let inner = one(kind, response);
        // The first is what the matrix is about; the others explain it.
        if index == 0 {
            let _ = write!(out, "<h3>{}</h3>{inner}", escape(&response.name));
        } else {
            let _ = write!(
                out,
                "<details><summary>{}</summary>{inner}</details>",
                escape(&response.name)
            );
        }
    }
    out
}

fn one(kind: Quantity, response: &MatrixResponse) -> String {
    let mut out = String::from("<div class=\"means\">");
    for effect in &response.effects {
        let _ = write!(
            out,
            "<div><h3>{} <small>{}</small></h3>{}</div>",
            escape(&effect.factor),
            effect.verdict.words(),
            means(kind, effect)
        );
    }
    out.push_str("</div>");
    let rows: Vec<Vec<String>> = response
        .effects
        .iter()
        .flat_map(|effect| effect.differences.iter().map(move |difference| (effect, difference)))
        .map(|(effect, difference)| {
            vec![
                effect.factor.clone(),
                format!("{} → {}", difference.against, difference.level),
                known(difference.difference, |by| kind.show_difference(by)),
                text::interval(kind, difference.interval),
                difference.pairs.to_string(),
                difference.verdict.words().to_owned(),
            ]
        })
        .collect();
    out += &table(
        &["factor", "change", "difference", "95 % interval", "pairs of cells", "verdict"],
        &rows,
    );
    let noise = match response.deviation {
        Some(deviation) => format!(
            "Standard deviation of a run: {}, from {} degrees of freedom. Differences within ±{} \
             do not matter.",
            kind.show(deviation),
            response.freedom,
            kind.show(response.margin)
        ),
        None => "Every cell was run once: the noise of a run is not known.".to_owned(),
    };
    let _ = write!(out, "<p class=\"over\">{}</p>", escape(&noise));
    out += &interactions(kind, &response.interactions);
    out
}

fn means(kind: Quantity, effect: &FactorEffect) -> String {
    let bar = |level: &throng_analysis::experiment::LevelMean| Bar {
        name: level.level.clone(),
        value: level.mean.unwrap_or(0.0),
        text: known(level.mean, |mean| kind.show(mean)),
        colour: 1,
    };
    bars(&effect.levels.iter().map(bar).collect::<Vec<_>>())
}

fn interactions(kind: Quantity, all: &[Interaction]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .filter_map(|both| {
            let contrast = both.largest.as_ref()?;
            let ([a, b], [i, j]) = (&both.factors, &contrast.levels);
            Some(vec![
                format!("{a} × {b}"),
                format!("{a}={i} and {b}={j}"),
                kind.show_difference(contrast.difference),
                text::interval(kind, contrast.interval),
                contrast.verdict.words().to_owned(),
            ])
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>Interactions</summary>{}<p class=\"over\">The largest difference of \
         differences of each pair of factors: what both together do beyond the sum of their \
         effects. 0: they add up.</p></details>",
        table(&["factors", "levels", "beyond the sum", "95 % interval", "verdict"], &rows)
    )
}
