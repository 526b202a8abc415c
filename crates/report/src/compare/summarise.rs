//! Puts two sides together: what both measured, what that says, and the answer.

use throng_analysis::comparison::{
    Basis, ComparisonVerdict, Difference, Figure, Judged, Question, judge,
};

use super::sides::{
    limits, machine_differences, machine_notes, scenario_differences, unlike_latency,
};
use super::{
    COMPARE_VERSION, CompareOutcome, CompareReport, CompareSide, ComparedObjective,
    ComparedQuantity, ComparedRun, MeasuredRun, text,
};
use crate::Quantity;
use crate::html::OverTime;

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareOptions {
    /// The share of the base's figure that does not matter.
    pub margin_ratio: f64,
    /// Whether runs of different machines are compared all the same.
    pub allow_different_machines: bool,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { margin_ratio: 0.05, allow_different_machines: false }
    }
}

/// So many runs of a side are drawn over their time: colours tell no more apart.
const DRAWN_MAX: usize = 4;

/// Quantities of the question share their error probability, and so do those that are measured
/// besides.
const ASKED: u8 = 0;
const BESIDES: u8 = 1;

/// The report of a comparison.
#[must_use]
pub fn summarise(
    base: &[MeasuredRun],
    new: &[MeasuredRun],
    options: CompareOptions,
    throng_version: &str,
) -> CompareReport {
    let (old, now) = (usable(base), usable(new));
    // What does not count need not fit.
    let all: Vec<&MeasuredRun> = old.iter().chain(&now).copied().collect();
    let mut report = CompareReport {
        compare_version: COMPARE_VERSION,
        base: side(base),
        new: side(new),
        margin_ratio: options.margin_ratio,
        limits: limits(&old, &now),
        machine_differences: machine_differences(&all),
        scenario_differences: scenario_differences(&all),
        notes: machine_notes(&all),
        throng_version: throng_version.to_owned(),
        over_time: [base, new].map(over_time),
        ..CompareReport::default()
    };
    report.refusals = refusals(&report, &old, &now, options);
    note_differences(&mut report, &all);
    if report.refusals.is_empty() {
        compare(&mut report, &old, &now, options);
    }
    report.outcome = outcome(&report);
    report.method = method(&report);
    report.headline = text::headline(&report);
    report
}

/// The runs that count.
fn usable(runs: &[MeasuredRun]) -> Vec<&MeasuredRun> {
    runs.iter().filter(|run| run.unusable.is_none()).collect()
}

fn side(runs: &[MeasuredRun]) -> CompareSide {
    let compared = runs.iter().map(|run| ComparedRun {
        folder: run.folder.clone(),
        started_at_unix_us: run.started_at_unix_us,
        throng_version: run.throng_version.clone(),
        target: run.target.clone(),
        headline: run.headline.clone(),
        excluded: run.unusable.clone(),
    });
    CompareSide { runs: compared.collect(), usable_runs: usable(runs).len() }
}

fn over_time(runs: &[MeasuredRun]) -> Vec<OverTime> {
    runs.iter().take(DRAWN_MAX).map(|run| run.over_time.clone()).collect()
}

/// Why the sides cannot be compared.
fn refusals(
    report: &CompareReport,
    base: &[&MeasuredRun],
    new: &[&MeasuredRun],
    options: CompareOptions,
) -> Vec<String> {
    let mut refusals = Vec::new();
    for (name, side, usable) in [("base", &report.base, base), ("new", &report.new, new)] {
        if usable.is_empty() {
            let why = side
                .runs
                .iter()
                .find_map(|run| run.excluded.clone())
                .unwrap_or_else(|| "it has no runs".into());
            refusals.push(format!("no run of the {name} side decides anything: {why}"));
        }
    }
    let mut kinds = base.iter().chain(new).map(|run| run.is_search);
    if let Some(first) = kinds.next()
        && kinds.any(|other| other != first)
    {
        refusals.push(
            "searches (throng find) and runs of a given crowd do not measure the same".into(),
        );
    }
    if !options.allow_different_machines {
        let differ = report.machine_differences.iter().filter(|one| one.refuses);
        refusals.extend(differ.map(|one| {
            format!(
                "the runs are of different machines: {} of {} is {} and {}",
                one.fact, one.machine, one.base, one.new
            )
        }));
    }
    refusals
}

/// Says where machines, versions and scenarios differ.
fn note_differences(report: &mut CompareReport, all: &[&MeasuredRun]) {
    let mut notes = Vec::new();
    let refused: Vec<&str> = report
        .machine_differences
        .iter()
        .filter(|one| one.refuses)
        .map(|one| one.fact.as_str())
        .collect();
    if !refused.is_empty() {
        notes.push(format!(
            "the machines differ ({}): a difference between the sides need not come from the \
             server's software",
            refused.join(", ")
        ));
    }
    let loads: Vec<&str> = report
        .scenario_differences
        .iter()
        .filter(|one| one.changes_load)
        .map(|one| one.key.as_str())
        .collect();
    if !loads.is_empty() {
        notes.push(format!("the sides had different loads: {}", loads.join(", ")));
    }
    let mut versions: Vec<&str> = all.iter().map(|run| run.throng_version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        notes
            .push(format!("the runs are of different versions of throng: {}", versions.join(", ")));
    }
    notes.extend(
        all.iter()
            .filter_map(|run| Some(format!("{}: {}", run.folder, run.capacity_note.as_ref()?))),
    );
    notes.append(&mut report.notes);
    report.notes = notes;
}

fn compare(
    report: &mut CompareReport,
    base: &[&MeasuredRun],
    new: &[&MeasuredRun],
    options: CompareOptions,
) {
    let all = || base.iter().chain(new).copied();
    let mut asked: Vec<Quantity> = vec![Quantity::Capacity, Quantity::Served];
    for (_, quantity, _) in all().flat_map(|run| &run.objectives) {
        if !asked.contains(quantity) {
            asked.push(*quantity);
        }
    }
    let mut quantities: Vec<Quantity> = asked.clone();
    quantities.extend(Quantity::standard().filter(|quantity| !asked.contains(quantity)));
    let (mut questions, mut compared) = (Vec::new(), Vec::new());
    for quantity in quantities {
        match both(quantity, base, new) {
            Ok(Some((old, now))) => {
                let is_asked = asked.contains(&quantity);
                questions.push(question(quantity, is_asked, old, now, base, new, options));
                compared.push((quantity, is_asked));
            }
            Ok(None) => {}
            Err(lacking) => report.not_compared.push(lacking),
        }
    }
    let judged = judge(&questions);
    for (((quantity, is_asked), question), judged) in
        compared.into_iter().zip(&questions).zip(judged)
    {
        report.quantities.push(row(quantity, is_asked, question, judged));
    }
    withhold_at_least(report, base, new);
    withhold_unlike_latency(report, &all().collect::<Vec<_>>());
    report.objectives = objectives(report, base, new);
}

type Figures = Vec<Figure>;

/// The figures of both sides; `None` if neither has any, or what is said of a quantity that one
/// side lacks.
fn both(
    quantity: Quantity,
    base: &[&MeasuredRun],
    new: &[&MeasuredRun],
) -> Result<Option<(Figures, Figures)>, String> {
    let of = |side: &[&MeasuredRun]| -> Option<Figures> {
        side.iter().map(|run| run.figures.get(&quantity).cloned()).collect()
    };
    let has_any =
        |side: &[&MeasuredRun]| side.iter().any(|run| run.figures.contains_key(&quantity));
    if quantity == Quantity::Capacity {
        let mut values = base.iter().chain(new).map(|run| &run.values);
        if let Some(first) = values.next()
            && values.any(|other| other != first)
        {
            return Err("capacity: the searches varied different values".into());
        }
    }
    match (of(base), of(new)) {
        (Some(old), Some(now)) => Ok(Some((old, now))),
        _ if !has_any(base) && !has_any(new) => Ok(None),
        (Some(_), None) => Err(format!("{}: not measured in all new runs", quantity.key())),
        (None, Some(_)) => Err(format!("{}: not measured in all runs of the base", quantity.key())),
        (None, None) => Err(format!("{}: not measured in all runs", quantity.key())),
    }
}

fn question(
    quantity: Quantity,
    is_asked: bool,
    old: Figures,
    now: Figures,
    base: &[&MeasuredRun],
    new: &[&MeasuredRun],
    options: CompareOptions,
) -> Question {
    let finite: Vec<f64> =
        old.iter().map(|figure| figure.value).filter(|value| value.is_finite()).collect();
    let mean = finite.iter().sum::<f64>() / finite.len().max(1) as f64;
    let step = base.iter().chain(new).map(|run| run.capacity_step).max().unwrap_or(1);
    Question {
        direction: quantity.direction(),
        tolerance: quantity.tolerance(options.margin_ratio, mean),
        resolution: if quantity == Quantity::Capacity { f64::from(step) } else { 0.0 },
        group: if is_asked { ASKED } else { BESIDES },
        base: old,
        new: now,
    }
}

fn row(
    quantity: Quantity,
    is_asked: bool,
    question: &Question,
    judged: Option<Judged>,
) -> ComparedQuantity {
    let finite = |figures: &[Figure]| -> Vec<Option<f64>> {
        figures.iter().map(|figure| Some(figure.value).filter(|value| value.is_finite())).collect()
    };
    let (base_runs, new_runs) = (finite(&question.base), finite(&question.new));
    let is_reached = base_runs.iter().chain(&new_runs).all(Option::is_some);
    let named = ComparedQuantity {
        key: quantity.key(),
        name: quantity.name(),
        unit: quantity.unit().symbol().into(),
        better: quantity.direction(),
        is_asked,
        base_runs,
        new_runs,
        ..ComparedQuantity::default()
    };
    // A side with a run that never reached it has no mean: "slower than any" is no number.
    let Some(judged) = judged.filter(|_| is_reached) else {
        let note = Some("never reached in a run, because too many participants failed".into());
        return ComparedQuantity { note, ..named };
    };
    let difference: Difference = judged.difference;
    let share = difference.value() / difference.base.abs();
    ComparedQuantity {
        base: Some(difference.base),
        new: Some(difference.new),
        difference: Some(difference.value()),
        difference_ratio: Some(share).filter(|share| share.is_finite()),
        interval: difference.interval(),
        interval_from: difference.basis,
        margin: judged.margin,
        p_corrected: judged.p_corrected,
        verdict: judged.verdict,
        note: (difference.basis == Basis::None).then(|| no_interval(quantity).to_owned()),
        ..named
    }
}

/// Why a run alone gives no interval of a quantity, and what would.
fn no_interval(quantity: Quantity) -> &'static str {
    if quantity == Quantity::Capacity {
        "a search without repeats has no interval: search for longer, or several times"
    } else if quantity.hangs_on_joins() {
        "the joins of one run are one sample: several runs a side"
    } else {
        "too short for an interval: 20 s after the warm-up a side, or several runs"
    }
}

/// A capacity that is only known to be at least something cannot have become worse or better.
fn withhold_at_least(report: &mut CompareReport, base: &[&MeasuredRun], new: &[&MeasuredRun]) {
    let is_open = |side: &[&MeasuredRun]| side.iter().any(|run| run.is_lower_bound);
    let (old, now) = (is_open(base), is_open(new));
    let key = Quantity::Capacity.key();
    for row in report.quantities.iter_mut().filter(|row| row.key == key && (old || now)) {
        // The truth lies above an open figure: only a worse base, or a better new side, follows
        // from it.
        let still_follows = match row.verdict {
            ComparisonVerdict::Better => !old,
            ComparisonVerdict::Worse => !now,
            ComparisonVerdict::Same | ComparisonVerdict::NotDecided => false,
        };
        if !still_follows {
            row.verdict = ComparisonVerdict::NotDecided;
            row.note = Some(
                "the largest load that was tried passed: raise the ceiling of the search".into(),
            );
        }
    }
}

/// Latency to the end of the playlist lacks what latency by dates has: their difference is none of
/// the server.
fn withhold_unlike_latency(report: &mut CompareReport, all: &[&MeasuredRun]) {
    let Some(why) = unlike_latency(all) else { return };
    let rows = report.quantities.iter_mut();
    for row in rows.filter(|row| Quantity::of_key(&row.key).is_some_and(Quantity::is_latency)) {
        (row.difference, row.difference_ratio) = (None, None);
        (row.interval, row.p_corrected) = (None, None);
        row.verdict = ComparisonVerdict::NotDecided;
        row.note = Some(why.clone());
    }
}

fn objectives(
    report: &CompareReport,
    base: &[&MeasuredRun],
    new: &[&MeasuredRun],
) -> Vec<ComparedObjective> {
    let met = |side: &[&MeasuredRun], text: &str| -> Option<[usize; 2]> {
        let found = side.iter().map(|run| run.objectives.iter().find(|(other, ..)| other == text));
        let found: Vec<Option<bool>> =
            found.map(|found| found.map(|(.., met)| *met == Some(true))).collect();
        let all: Vec<bool> = found.into_iter().collect::<Option<_>>()?;
        Some([all.iter().filter(|met| **met).count(), all.len()])
    };
    let mut seen: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    for (text, quantity, _) in base.iter().flat_map(|run| &run.objectives) {
        if seen.contains(&text.as_str()) {
            continue;
        }
        seen.push(text);
        let (Some(base_met), Some(new_met)) = (met(base, text), met(new, text)) else { continue };
        let key = quantity.key();
        let row = report.quantities.iter().find(|row| row.key == key);
        all.push(ComparedObjective {
            text: text.clone(),
            quantity: key,
            base_met,
            new_met,
            verdict: row.map(|row| row.verdict).unwrap_or_default(),
        });
    }
    all
}

fn outcome(report: &CompareReport) -> CompareOutcome {
    let has =
        |verdict: ComparisonVerdict| report.quantities.iter().any(|row| row.verdict == verdict);
    let asked = || report.quantities.iter().filter(|row| row.is_asked);
    if !report.refusals.is_empty() {
        CompareOutcome::NotComparable
    } else if has(ComparisonVerdict::Worse) {
        CompareOutcome::Worse
    } else if asked().next().is_none() || asked().any(|row| is_open(report, row)) {
        CompareOutcome::NotDecided
    } else if asked().any(|row| row.verdict == ComparisonVerdict::Better) {
        CompareOutcome::Better
    } else {
        CompareOutcome::Same
    }
}

/// Whether the answer lacks a decision on `row`. Where all new runs meet the objective, how much of
/// the difference is noise is not asked: the objective is.
pub(super) fn is_open(report: &CompareReport, row: &ComparedQuantity) -> bool {
    let mut of_it =
        report.objectives.iter().filter(|objective| objective.quantity == row.key).peekable();
    let is_met = of_it.peek().is_some()
        && of_it.all(|objective| objective.new_met[0] == objective.new_met[1]);
    row.is_asked && row.verdict == ComparisonVerdict::NotDecided && !is_met
}

/// How the figures were made.
fn method(report: &CompareReport) -> Vec<String> {
    let uses = |basis: Basis| report.quantities.iter().any(|row| row.interval_from == basis);
    let mut method = Vec::new();
    if uses(Basis::Runs) {
        method.push("Intervals are Welch's, from how much the runs of each side differ.".into());
    }
    if uses(Basis::RunsOfOneSide) {
        method.push(
            "One side has one run: it is taken to vary from run to run as much as the runs of the \
             other side do."
                .into(),
        );
    }
    if uses(Basis::Parts) {
        method.push(
            "One run a side: intervals come from parts of each run (sectioning), at least 10 s \
             each. They do not contain what differs from run to run, so they are too narrow. What \
             depends on when users join has none: all joins of a run meet one phase of what the \
             server repeats, such as key frames. Several runs a side have no such flaw: --base A \
             --base B --new C --new D."
                .into(),
        );
    }
    if !report.quantities.is_empty() {
        method.push(format!(
            "Worse and better: significant at 5 % after Holm's correction, and by more than the \
             margin, {} % of the base or the least that matters of the quantity. Same: the 95 % \
             interval lies within the margin.",
            (report.margin_ratio * 1e3).round() / 10.0
        ));
        method.push(
            "Media and rates are of the time after the warm-up; joins are of the whole run.".into(),
        );
    }
    method
}
