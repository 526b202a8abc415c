//! From measured runs to the trend.

use throng_analysis::comparison::trend::{BEFORE_MAX, BEFORE_MIN, SCORE_MAX, TrendMark, marks};
use throng_analysis::comparison::{ComparisonVerdict, Direction};

use super::{TREND_VERSION, TrendChange, TrendQuantity, TrendReport, TrendRun, text};
use crate::Quantity;
use crate::compare::{MeasuredRun, machine_differences, scenario_differences};
use crate::playback::basis_words;

/// So many runs are drawn over their time, the newest: colours tell no more apart.
const DRAWN_MAX: usize = 6;

/// The trend of `runs`, in any order.
#[must_use]
pub fn summarise(
    mut runs: Vec<MeasuredRun>,
    margin_ratio: f64,
    throng_version: &str,
) -> TrendReport {
    runs.sort_by(|a, b| (a.started_at_unix_us, &a.folder).cmp(&(b.started_at_unix_us, &b.folder)));
    let newest = runs.iter().rev().find(|run| run.unusable.is_none()).cloned();
    let excluded: Vec<Option<String>> =
        runs.iter().map(|run| excluded(run, newest.as_ref())).collect();
    let quantities =
        quantities(&runs).into_iter().map(|quantity| one(quantity, &runs, &excluded, margin_ratio));
    let quantities: Vec<TrendQuantity> = quantities.collect();
    let last = runs.len().saturating_sub(1);
    let drawn = runs.iter().skip(runs.len().saturating_sub(DRAWN_MAX));
    let is_worse =
        |change: &TrendChange| change.run == last && change.verdict == ComparisonVerdict::Worse;
    let mut report = TrendReport {
        trend_version: TREND_VERSION,
        headline: String::new(),
        newest_is_worse: quantities.iter().flat_map(|quantity| &quantity.changes).any(is_worse),
        runs: described(&runs, excluded),
        margin_ratio,
        quantities,
        method: method(margin_ratio),
        throng_version: throng_version.to_owned(),
        over_time: drawn.map(|run| run.over_time.clone()).collect(),
    };
    report.headline = text::headline(&report);
    report
}

/// Why a run does not count.
fn excluded(run: &MeasuredRun, newest: Option<&MeasuredRun>) -> Option<String> {
    if let Some(why) = &run.unusable {
        return Some(why.clone());
    }
    let newest = newest?;
    if run.is_search != newest.is_search {
        return Some("a search among runs of a given crowd, or the reverse".into());
    }
    let machines = machine_differences(&[newest, run]);
    if let Some(one) = machines.iter().find(|one| one.refuses) {
        return Some(format!("another machine: {} of {} was {}", one.fact, one.machine, one.new));
    }
    let loads = scenario_differences(&[newest, run]);
    let load = loads.iter().find(|one| one.changes_load)?;
    Some(format!("another load: {} was {}", load.key, load.new.as_deref().unwrap_or("absent")))
}

/// What any run measured, in the order of a comparison.
fn quantities(runs: &[MeasuredRun]) -> Vec<Quantity> {
    let mut all = vec![Quantity::Capacity, Quantity::Served];
    let of_objectives =
        runs.iter().flat_map(|run| &run.objectives).map(|(_, quantity, _)| *quantity);
    for quantity in of_objectives.chain(Quantity::standard()) {
        if !all.contains(&quantity) {
            all.push(quantity);
        }
    }
    all.retain(|quantity| runs.iter().any(|run| run.figures.contains_key(quantity)));
    all
}

fn one(
    quantity: Quantity,
    runs: &[MeasuredRun],
    excluded: &[Option<String>],
    margin_ratio: f64,
) -> TrendQuantity {
    // Latency by another basis is no figure of the same kind.
    let mut newest = runs.iter().zip(excluded).rev().filter(|(_, excluded)| excluded.is_none());
    let basis = newest.find_map(|(run, _)| run.latency_basis);
    let values: Vec<Option<f64>> = runs
        .iter()
        .map(|run| {
            run.figures.get(&quantity).map(|figure| figure.value).filter(|value| value.is_finite())
        })
        .collect();
    let counts = |run: &MeasuredRun| !quantity.is_latency() || run.latency_basis == basis;
    let counted: Vec<Option<f64>> = values
        .iter()
        .zip(runs)
        .zip(excluded)
        .map(|((value, run), excluded)| value.filter(|_| excluded.is_none() && counts(run)))
        .collect();
    let points = marks(&counted, |median| quantity.tolerance(margin_ratio, median).around(median));
    let is_better = |by: f64| (by > 0.0) == (quantity.direction() == Direction::Higher);
    let changes = points.iter().zip(&values).enumerate().filter_map(|(run, (point, value))| {
        let (from, to) = (point.median?, (*value)?);
        matches!(point.mark, TrendMark::Change | TrendMark::Outlier).then(|| TrendChange {
            run,
            mark: point.mark,
            verdict: if is_better(to - from) {
                ComparisonVerdict::Better
            } else {
                ComparisonVerdict::Worse
            },
            from,
            to,
            score: point.score.filter(|score| score.is_finite()),
        })
    });
    TrendQuantity {
        key: quantity.key(),
        name: quantity.name(),
        unit: quantity.unit().symbol().into(),
        better: quantity.direction(),
        changes: changes.collect(),
        medians: points.iter().map(|point| point.median).collect(),
        marks: points.iter().map(|point| point.mark).collect(),
        values,
    }
}

fn described(runs: &[MeasuredRun], excluded: Vec<Option<String>>) -> Vec<TrendRun> {
    let before = std::iter::once(None).chain(runs.iter().map(Some));
    let described =
        runs.iter().zip(before).zip(excluded).map(|((run, before), excluded)| TrendRun {
            folder: run.folder.clone(),
            started_at_unix_us: run.started_at_unix_us,
            throng_version: run.throng_version.clone(),
            headline: run.headline.clone(),
            limit: run.limit.as_ref().map(|(key, _)| key.clone()),
            remarks: before.map(|before| remarks(before, run)).unwrap_or_default(),
            excluded,
        });
    described.collect()
}

/// What changed from the run before.
fn remarks(before: &MeasuredRun, run: &MeasuredRun) -> Vec<String> {
    let mut remarks = Vec::new();
    if before.throng_version != run.throng_version {
        remarks.push(format!("throng {} after {}", run.throng_version, before.throng_version));
    }
    if before.target != run.target {
        remarks.push(format!("target {} after {}", run.target, before.target));
    }
    for one in machine_differences(&[before, run]) {
        remarks.push(format!("{} of {}: {} after {}", one.fact, one.machine, one.new, one.base));
    }
    if let Some((was, is)) = before.latency_basis.zip(run.latency_basis).filter(|(a, b)| a != b) {
        remarks.push(format!(
            "latency {} after {}: only runs that measure it as the newest does are judged by it",
            basis_words(is),
            basis_words(was)
        ));
    }
    let limit =
        |run: &MeasuredRun| run.limit.as_ref().map_or("none".to_owned(), |(key, _)| key.clone());
    if limit(before) != limit(run) {
        remarks.push(format!("limit {} after {}", limit(run), limit(before)));
    }
    remarks
}

fn method(margin_ratio: f64) -> Vec<String> {
    vec![format!(
        "Each figure is compared with the median of the last {BEFORE_MAX} before it, of at least \
         {BEFORE_MIN}, by the modified z-score of Iglewicz and Hoaglin: above {SCORE_MAX} median \
         absolute deviations × 1.4826, and further away than the margin, {} % of the median or \
         the least that matters of the quantity. Two in a row on the same side are a change that \
         began with the first; one alone is an outlier. A change starts a new reference.",
        (margin_ratio * 1e3).round() / 10.0
    )]
}
