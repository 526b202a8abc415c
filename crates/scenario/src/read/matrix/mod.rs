//! Reads a matrix file: its factors and their levels, the server of each cell, what is left out.
//! And the file of a proof, which has variants for factors.

use std::collections::BTreeSet;
use std::time::Duration;

use throng_observation::seed;

use super::document;
use super::fields::{Fields, Reader};
use super::tree::{Node, Value};
use crate::diagnostic::ScenarioError;
use crate::matrix::{BUILT_IN, Matrix, Measure, Order, SearchKeys};
use crate::units;

mod factor;
mod filter;
mod proof;
#[cfg(test)]
mod proof_tests;
mod server;
#[cfg(test)]
mod tests;
mod words;

use words::{Known, pairs};

/// Longer runs of a cell are a mistake.
const HOLD_MAX_S: u64 = 24 * 3600;
const REPEATS_MAX: u64 = 100;

impl Matrix {
    /// Reads a matrix file.
    ///
    /// # Errors
    /// With all errors that were found, each with its location and a hint.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        document(text, matrix)
    }

    /// Reads the file of a proof. `shrink` (`cpu`, `cpu=0.8`) takes the place of its variants.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_proof(text: &str, shrink: Option<&str>) -> Result<Self, ScenarioError> {
        document(text, |reader, top| proof::proof(reader, top, shrink))
    }
}

/// A matrix without its factors: the keys that all files of experiments have. `names` are the
/// variables of its levels, `measure` reads what is measured.
fn without_factors(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    names: Vec<String>,
    measure: impl FnOnce(&mut Reader, &mut Fields<'_>) -> Option<Measure>,
) -> (Option<Matrix>, Known) {
    let name = reader.text_of(top, "name", "text such as \"30 viewers on 1 to 30 files\"");
    let scenario = reader.text_of(top, "scenario", "the path of a scenario file");
    reader.require(top, "scenario", "write scenario = \"viewers.toml\"");
    let variables = variables(reader, top);
    let known = known(reader, top, &variables, names);
    let measure = measure(reader, top);
    let seed = reader.integer(top, "seed", 0, u64::from(u32::MAX)).unwrap_or(seed::USUAL);
    let set = words::set(reader, top, &known);
    let mut section = reader.section(top, "server");
    let server = server::server(reader, &mut section, &known);
    reader.finish(&section);
    let setup = words::setup(reader, top, &known);
    let matrix = measure.map(|measure| Matrix {
        name,
        scenario: scenario.unwrap_or_default(),
        measure,
        repeats: 1,
        seed,
        order: Order::default(),
        pairs: None,
        busy_difference: 1.0,
        variables,
        set,
        server,
        setup,
        factors: Vec::new(),
        only: Vec::new(),
        except: Vec::new(),
    });
    (matrix, known)
}

fn matrix(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Matrix> {
    let names = names_of_factors(top);
    let (matrix, known) = without_factors(reader, top, names, measure);
    let repeats = reader.integer(top, "repeats", 1, REPEATS_MAX).unwrap_or(1);
    let order = reader.word(top, "order", &["random", "written"]);
    let defaults = matrix.as_ref().map(|matrix| matrix.variables.clone()).unwrap_or_default();
    let factors = factor::factors(reader, top, &known, &defaults);
    let (only, except) = (
        filter::filters(reader, top, "only", &factors),
        filter::filters(reader, top, "except", &factors),
    );
    let order = if order.as_deref() == Some("written") { Order::Written } else { Order::Random };
    let matrix = Matrix { repeats, order, factors, only, except, ..matrix? };
    if matrix.factors.is_empty() && top.lacks("factor") {
        reader.fail(None, "there is no factor", "write a [[factor]] with name and levels");
    } else if matrix.grid_size() > Matrix::CELLS_MAX {
        let message = format!("the grid has {} cells", matrix.grid_size());
        reader.fail(top.span_of("factor"), message, format!("write at most {}", Matrix::CELLS_MAX));
    } else if matrix.cells().is_empty() && reader.is_clean() {
        let span = top.span_of("only").or(top.span_of("except"));
        reader.fail(span, "no cell is left", "`only` and `except` together leave out every cell");
    }
    Some(matrix)
}

/// What is measured: `hold` or `find`.
fn measure(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Measure> {
    match (top.span_of("hold"), top.get("find").is_some()) {
        (Some(span), true) => {
            reader.fail(span, "a cell is either held or searched", "remove `hold` or [find]");
            None
        }
        (Some(_), false) => hold(reader, top).map(Measure::Hold),
        (None, true) => search(reader, top).map(Measure::Find),
        (None, false) => {
            if top.lacks("hold") && top.lacks("find") {
                let help = "write hold = \"20s\", or a [find] with budget = \"1m\"";
                reader.fail(None, "`hold` is missing", help);
            }
            None
        }
    }
}

/// How long a crowd is held.
fn hold(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Duration> {
    let hold = reader.quantity(top, "hold", "20s", units::duration)?;
    if !(2..=HOLD_MAX_S).contains(&hold.as_secs()) {
        let span = top.span_of("hold");
        reader.fail(span, "`hold` must be from 2 s to 24 h", "write hold = \"20s\"");
    }
    Some(hold)
}

/// The table `[find]`.
fn search(reader: &mut Reader, top: &mut Fields<'_>) -> Option<SearchKeys> {
    let mut fields = reader.section(top, "find");
    let budget = reader.quantity(&mut fields, "budget", "1m", units::duration);
    reader.require(&fields, "budget", "write budget = \"1m\"");
    let most = 1_000_000;
    let start = reader.integer(&mut fields, "start", 1, most);
    let ceiling = reader.integer(&mut fields, "ceiling", 1, most);
    reader.finish(&fields);
    Some(SearchKeys { budget: budget?, start, ceiling })
}

fn variables(reader: &mut Reader, top: &mut Fields<'_>) -> Vec<(String, String)> {
    let defaults = pairs(reader, top, "variables");
    let value = |(name, node): (String, &Node)| Some((name, words::scalar(node)?));
    for (name, node) in &defaults {
        if words::scalar(node).is_none() {
            let message = format!("`variables.{name}` is not text, a number or true or false");
            reader.fail(node.span, message, "write for example folder = \"/srv/media\"");
        }
    }
    defaults.into_iter().filter_map(value).collect()
}

/// The names of all variables: `names`, those of `[variables]`, and the built-in ones.
fn known(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    defaults: &[(String, String)],
    names: Vec<String>,
) -> Known {
    let built_in = BUILT_IN.into_iter().map(str::to_owned);
    let of_defaults = defaults.iter().map(|(name, _)| name.clone());
    let names: BTreeSet<String> = built_in.chain(of_defaults).chain(names).collect();
    for name in BUILT_IN {
        if defaults.iter().any(|(known, _)| known == name) {
            let message = format!("the variable `{name}` is built in");
            reader.fail(top.span_of("variables"), message, "choose another name");
        }
    }
    Known { names }
}

/// The variables of factors: their names, and what their levels set.
fn names_of_factors(top: &mut Fields<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for factor in items(top.get("factor")) {
        names.extend(factor.get("name").and_then(Node::as_text).map(str::to_owned));
        names.extend(names_of_levels(items(factor.get("levels"))));
    }
    names
}

/// The variables that levels set.
fn names_of_levels(levels: &[Node]) -> Vec<String> {
    let variables = levels.iter().filter_map(|level| match &level.get("variables")?.value {
        Value::Table(entries) => Some(entries.iter().map(|entry| entry.key.clone())),
        _ => None,
    });
    variables.flatten().collect()
}

fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}
