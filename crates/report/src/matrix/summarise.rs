//! Puts the cells of a matrix together: the verdict of each, the effects of the factors, what is
//! confirmed.

use std::collections::BTreeMap;

use throng_analysis::experiment::{
    CellValues, Factor, JudgedCell, NamedLimit, Noise, Service, confirmations, effects,
    interactions, mean, most_named, resource_of,
};
use throng_observation::Relief;
use throng_observation::limits::STEAL_RATIO_MAX;

use super::environment::SAME;
use super::{
    CellMeans, CellVerdict, MATRIX_VERSION, MatrixCell, MatrixFactor, MatrixMeasure, MatrixReport,
    MatrixResponse, MatrixRun, RunFigures, RunStatus, valid,
};
use crate::Quantity;

/// The cells of a matrix with their runs, and what the file says about them.
pub struct MatrixInput<'a> {
    /// The title.
    pub name: Option<String>,
    /// What is measured.
    pub measure: MatrixMeasure,
    /// Planned runs of each cell.
    pub repeats: u32,
    /// The seed of the order.
    pub seed: u64,
    /// `random`, `written` or `abba`.
    pub order: String,
    /// The factors.
    pub factors: Vec<MatrixFactor>,
    /// The cells; of each, number, levels, name and runs.
    pub cells: Vec<MatrixCell>,
    /// What the step of a factor (its index) from one level to another gives more of.
    pub relieved: &'a dyn Fn(usize, usize, usize) -> Option<&'a Relief>,
    /// The throng that makes the report.
    pub throng_version: String,
}

/// The report of a matrix.
#[must_use]
pub fn summarise(input: MatrixInput<'_>) -> MatrixReport {
    let cells: Vec<MatrixCell> = input.cells.into_iter().map(judged).collect();
    let factors: Vec<Factor> = input
        .factors
        .iter()
        .map(|factor| Factor { name: factor.name.clone(), levels: factor.levels.clone() })
        .collect();
    let (first, service) = match input.measure {
        MatrixMeasure::Hold => (Quantity::Served, Service::OfCrowd),
        MatrixMeasure::Find => (Quantity::Capacity, Service::Capacity),
    };
    let kinds = [first, Quantity::Received, Quantity::ServerCpu, Quantity::Iowait];
    let responses = kinds.iter().filter_map(|kind| response(*kind, &factors, &cells)).collect();
    let judged: Vec<JudgedCell> = cells
        .iter()
        .map(|cell| JudgedCell {
            number: cell.number,
            service: values(first, cell),
            // A limit that only some runs name is nothing to confirm.
            limit: majority(cell),
        })
        .collect();
    let confirmations = confirmations(&factors, &judged, input.relieved, service, first.margin());
    let notes = notes(&cells, input.repeats);
    let partial = runs(&cells).any(|run| run.status == RunStatus::Pending);
    let mut report = MatrixReport {
        matrix_version: MATRIX_VERSION,
        headline: String::new(),
        name: input.name,
        partial,
        measure: input.measure,
        repeats: input.repeats,
        seed: input.seed,
        order: input.order,
        factors: input.factors,
        cells,
        responses,
        confirmations,
        proofs: Vec::new(),
        method: method(input.measure, input.repeats),
        notes,
        throng_version: input.throng_version,
    };
    report.headline = super::text::headline(&report);
    report
}

fn runs(cells: &[MatrixCell]) -> impl Iterator<Item = &MatrixRun> {
    cells.iter().flat_map(|cell| &cell.runs)
}

/// The limit of each valid run that names one.
fn limits(cell: &MatrixCell) -> Vec<NamedLimit> {
    valid(cell).filter_map(RunFigures::limit).collect()
}

/// The limit that more than half of the valid runs name, by whichever finding.
pub(super) fn majority(cell: &MatrixCell) -> Option<NamedLimit> {
    let limits = limits(cell);
    let (limit, runs) = most_named(&limits)?;
    (runs * 2 > valid(cell).count()).then(|| limit.clone())
}

fn values(kind: Quantity, cell: &MatrixCell) -> CellValues {
    CellValues {
        levels: cell.levels.clone(),
        values: valid(cell).filter_map(|figures| figures.value(kind)).collect(),
    }
}

fn response(kind: Quantity, factors: &[Factor], cells: &[MatrixCell]) -> Option<MatrixResponse> {
    let values: Vec<CellValues> = cells.iter().map(|cell| values(kind, cell)).collect();
    if values.iter().all(|cell| cell.values.is_empty()) {
        return None;
    }
    let noise = Noise::of(&values);
    Some(MatrixResponse {
        key: kind.key(),
        name: kind.name(),
        margin: kind.margin().of(&values),
        deviation: noise.map(|noise| noise.variance.sqrt()),
        freedom: noise.map_or(0, |noise| noise.freedom),
        effects: effects(factors, &values, kind.margin()),
        interactions: interactions(factors, &values, kind.margin()),
    })
}

/// The verdict and the means of a cell, from its runs.
fn judged(cell: MatrixCell) -> MatrixCell {
    let figures: Vec<&RunFigures> = valid(&cell).collect();
    let valid_runs = figures.len();
    if figures.is_empty() {
        let verdict = without_valid_runs(&cell.runs);
        return MatrixCell { verdict, valid_runs, ..cell };
    }
    let limits = limits(&cell);
    let mut unnamed: BTreeMap<CellVerdict, usize> = BTreeMap::new();
    for figures in figures.iter().filter(|figures| figures.limit().is_none()) {
        *unnamed.entry(figures.verdict).or_default() += 1;
    }
    let unnamed = unnamed.into_iter().max_by_key(|(_, runs)| *runs);
    let of_unnamed = unnamed.map_or(0, |(_, runs)| runs);
    let named = most_named(&limits).filter(|(_, runs)| *runs >= of_unnamed);
    let (finding, verdict, agreeing_runs) = match (named, unnamed) {
        (Some((limit, runs)), _) => {
            // Runs that name the same limit agree, however sure each is of it: the least sure.
            let names_it =
                |figures: &&&RunFigures| figures.limit().is_some_and(|other| other.is_same(limit));
            let verdict = figures.iter().filter(names_it).map(|figures| figures.verdict).max();
            (Some(limit.finding.clone()), verdict.unwrap_or_default(), runs)
        }
        (None, Some((verdict, runs))) => (None, verdict, runs),
        (None, None) => (None, CellVerdict::Failed, 0),
    };
    let mean = |of: &dyn Fn(&RunFigures) -> Option<f64>| {
        mean(figures.iter().filter_map(|figures| of(figures)))
    };
    let means = CellMeans {
        served_ratio: mean(&|figures| figures.served_ratio),
        capacity: mean(&|figures| figures.capacity.map(f64::from)),
        received_bps: mean(&|figures| Some(figures.received_bps)),
        server_cpu_cores: mean(&|figures| figures.server_cpu_cores),
        idle_ratio: mean(&|figures| figures.idle_ratio),
        iowait_ratio: mean(&|figures| figures.iowait_ratio),
    };
    let resource = finding.as_deref().and_then(resource_of).map(str::to_owned);
    MatrixCell { verdict, finding, resource, agreeing_runs, valid_runs, means: Some(means), ..cell }
}

fn without_valid_runs(runs: &[MatrixRun]) -> CellVerdict {
    let has = |status: RunStatus| runs.iter().any(|run| run.status == status);
    if has(RunStatus::Pending) || runs.is_empty() {
        CellVerdict::Pending
    } else if has(RunStatus::Skipped) {
        CellVerdict::Skipped
    } else if has(RunStatus::Invalid) {
        CellVerdict::Invalid
    } else {
        CellVerdict::Failed
    }
}

fn method(measure: MatrixMeasure, repeats: u32) -> Vec<String> {
    let what = match measure {
        MatrixMeasure::Find => {
            "A cell's value is the largest crowd that was served well, by a search (docs/find.md)."
        }
        MatrixMeasure::Hold => {
            "A cell's value is the share of user-seconds that were served well while the crowd was \
             held (docs/find.md); users that could not join count as bad."
        }
    };
    let noise = if repeats > 1 {
        "Intervals are 95 %, by Student's t from the variance between runs of the same cell, \
         pooled over all cells. They hold for each difference by itself."
    } else {
        "Each cell was run once: there are no intervals, and no effect is decided. Write repeats = \
         2 for both."
    };
    vec![
        what.to_owned(),
        "An effect is the mean difference between cells that differ in nothing but this factor. \
         Invalid and skipped cells are left out together with their partners."
            .to_owned(),
        noise.to_owned(),
        "No effect: the interval lies within the margin (5 points of a share, 5 % of the mean of \
         other values)."
            .to_owned(),
    ]
}

fn notes(cells: &[MatrixCell], repeats: u32) -> Vec<String> {
    let mut notes = Vec::new();
    for key in SAME {
        let mut values: Vec<&str> =
            runs(cells).filter_map(|run| run.environment.get(key).map(String::as_str)).collect();
        values.sort_unstable();
        values.dedup();
        if values.len() > 1 {
            notes.push(format!(
                "The runs were not made in one environment: {key} was {}. Differences between \
                 cells may come from that.",
                values.join(" and ")
            ));
        }
    }
    let steal = |run: &MatrixRun| {
        run.environment.get("steal_ratio").and_then(|text| text.parse::<f64>().ok())
    };
    let stolen =
        runs(cells).filter(|run| steal(run).is_some_and(|ratio| ratio > STEAL_RATIO_MAX)).count();
    if stolen > 0 {
        notes.push(format!(
            "In {stolen} runs a hypervisor took more than {:.0} % of the CPU time.",
            STEAL_RATIO_MAX * 1e2
        ));
    }
    let at_least = runs(cells)
        .filter(|run| run.status == RunStatus::Valid)
        .filter_map(|run| run.figures.as_ref()?.capacity_verdict.as_deref())
        .filter(|verdict| *verdict == "at_least")
        .count();
    if at_least > 0 {
        notes.push(format!(
            "In {at_least} runs the largest crowd that may be tried was served well: the capacity \
             there is at least that, and effects may be larger than they look."
        ));
    }
    let split = cells
        .iter()
        .filter(|cell| cell.valid_runs > 1 && cell.agreeing_runs * 2 <= cell.valid_runs)
        .count();
    if split > 0 && repeats > 1 {
        notes.push(format!("In {split} cells the runs disagree about the cause."));
    }
    notes
}
