//! The answer of a proof: what each variant did to the capacity (or the service) of the baseline,
//! by pairs of neighbouring runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_analysis::demand::Demand;
use throng_analysis::experiment::{
    CapacityPrediction, Claim, NamedLimit, ProofOutcome, RATIO_MARGIN, RatioEstimate, RunPair,
    decide, is_control_off, is_relieved, mean, predict, resource_of, resource_of_relief,
};
use throng_observation::Relief;

use super::environment::difference;
use super::ratio_bound::RatioBound;
use super::summarise::majority;
use super::{
    MatrixCell, MatrixMeasure, MatrixReport, MatrixRun, RunFigures, RunStatus, proof_text, valid,
};

/// A share of user-seconds below it counts as it: a crowd that is served not at all has a ratio,
/// and the noise of hardly any service is no difference. A crowd that is just beyond the limit of
/// SRS was served for 3 to 7 % of its seconds by turns, whatever was changed.
const SERVED_MIN: f64 = 0.10;
/// A baseline that serves more than this cannot be served better by more than the margin.
const SERVED_WELL: f64 = 0.95;

/// What the file says about a variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProofVariant {
    /// Its cell, an index of `cells`; that of the baseline is 0.
    pub cell: usize,
    /// What it has more of.
    pub relieves: Option<Relief>,
    /// How many times as much.
    pub more: Option<f64>,
    /// The resource of which it has less.
    pub shrink: Option<ProofShrink>,
}

/// A resource that was shrunk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofShrink {
    /// `cpu`, `memory`, `disk`, `network`, `nofile` or `rmem`.
    pub resource: String,
    /// The share of it that was left.
    pub to: f64,
    /// Whether it is the placebo: another resource than the accused one.
    pub is_placebo: bool,
}

/// A run: the index of its cell, and which run of the cell it is, from 1.
pub type RunId = (usize, u32);

/// Four runs in the order A B B A.
pub type ProofBlock = (usize, [RunId; 4]);

/// Two runs that were made once more for a pair that did not count.
pub type RepeatedPair = (usize, [RunId; 2]);

/// A proof, next to the cells of its report.
#[derive(Clone, Debug, Default)]
pub struct ProofInput {
    /// The variants.
    pub variants: Vec<ProofVariant>,
    /// The blocks: the variant's cell, and the runs.
    pub blocks: Vec<ProofBlock>,
    /// The pairs that were made once more: the variant's cell, and the runs.
    pub repeated: Vec<RepeatedPair>,
    /// How often the pairs are looked at, at most.
    pub looks: usize,
    /// The demand of a user in each valid run of the baseline.
    pub demands: Vec<Vec<Demand>>,
    /// The most by which the share of CPU time that others used before and during the two runs of a
    /// pair may differ.
    pub busy_difference: f64,
    /// What is measured and why, in a sentence, if a search of the baseline chose it.
    pub chosen: Option<String>,
    /// The largest crowd that may be tried, if that search served it well: the baseline has no
    /// limit then, and nothing is compared.
    pub no_limit_up_to: Option<u32>,
    /// How many times as large the held crowd is as the largest that the baseline served well, if
    /// that search chose it.
    pub beyond: Option<f64>,
}

/// What a proof says about a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantProof {
    /// The variant.
    pub variant: String,
    /// The number of its cell.
    pub cell: usize,
    /// The baseline.
    pub baseline: String,
    /// The resource of which it has more, of a finding without one the finding; `null` if it claims
    /// nothing.
    pub relieves: Option<String>,
    /// What is said to be the limit, in words: a thread with its setting, or a resource; empty if
    /// it claims nothing.
    #[serde(default)]
    pub accused: String,
    /// How many times as much; `null` if not known.
    pub more: Option<f64>,
    /// The resource of which it has less; `null` if none.
    pub shrink: Option<ProofShrink>,
    /// What follows.
    pub outcome: ProofOutcome,
    /// Capacity (or share of user-seconds served well) of the variant ÷ that of the baseline;
    /// `null` without a pair.
    pub effect: Option<RatioEstimate>,
    /// What the true ratio is, where a share counts as more than it is.
    #[serde(default)]
    pub bound: RatioBound,
    /// The same of runs of equal configuration, the later ÷ the earlier (A/A); `null` without a
    /// pair.
    pub control: Option<RatioEstimate>,
    /// For a shrunk resource in a search: the share by which the capacity follows the resource; 1:
    /// it is the limit, 0: it is not.
    pub elasticity: Option<f64>,
    /// Its 95 % interval.
    pub elasticity_interval: Option<[f64; 2]>,
    /// The pairs, in the order in which they were made.
    pub pairs: Vec<ProofPair>,
    /// What limits the baseline: the limit that most of its runs name, by the finding that most of
    /// these call it; `null` if there is none.
    pub baseline_finding: Option<String>,
    /// The same in words: a thread with its setting, or a resource with the finding.
    #[serde(default)]
    pub baseline_limit: Option<String>,
    /// What limits the variant.
    pub finding: Option<String>,
    /// The same in words.
    #[serde(default)]
    pub limit: Option<String>,
    /// The capacity that the demand model predicted; `null` for a hold, and where too little is
    /// known.
    pub prediction: Option<CapacityPrediction>,
    /// Why it is not decided, and what else a reader must know, in sentences.
    pub reasons: Vec<String>,
    /// The answer in a sentence.
    pub answer: String,
}

/// Two neighbouring runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofPair {
    /// The places of both in the order of all runs, the baseline first; `null` before they were
    /// made.
    pub places: [Option<usize>; 2],
    /// What they measured; `ratio` takes less than 10 % of user-seconds as 10 %.
    pub values: [Option<f64>; 2],
    /// Variant ÷ baseline.
    pub ratio: Option<f64>,
    /// What the true ratio is then.
    #[serde(default)]
    pub bound: RatioBound,
    /// Why the pair does not count; `null` if it does.
    pub discarded: Option<String>,
}

/// Adds the proofs to the report of its cells.
#[must_use]
pub fn with_proofs(mut report: MatrixReport, input: &ProofInput) -> MatrixReport {
    report.proofs =
        input.variants.iter().filter_map(|variant| proof(&report, input, variant)).collect();
    report.confirmations.clear();
    report.method = method(report.measure, input.looks);
    if let Some(chosen) = &input.chosen {
        report.notes.insert(0, chosen.clone());
    }
    report.headline = proof_text::headline(&report);
    report
}

fn proof(
    report: &MatrixReport,
    input: &ProofInput,
    variant: &ProofVariant,
) -> Option<VariantProof> {
    let (baseline, cell) = (report.cells.first()?, report.cells.get(variant.cell)?);
    let most = input.busy_difference;
    let pairs = pairs(input, variant.cell);
    let compared: Vec<(ProofPair, Option<RunPair>)> =
        pairs.iter().map(|[a, b]| compare(report, *a, *b, most)).collect();
    let counted: Vec<RunPair> = compared.iter().filter_map(|(_, pair)| *pair).collect();
    let effect = RatioEstimate::of_looks(&counted, input.looks);
    let counting = pairs.iter().zip(&compared).filter(|(_, (_, pair))| pair.is_some());
    let counting: Vec<[RunId; 2]> = counting.map(|(runs, _)| *runs).collect();
    let control = RatioEstimate::of(&controls(report, &counting, most));
    let named = [baseline, cell].map(majority);
    let words = named.each_ref().map(|limit| limit.as_ref().map(NamedLimit::words));
    let [baseline_limit, limit] = words;
    let [baseline_finding, finding] = named.map(|limit| limit.map(|limit| limit.finding));
    let is_search = report.measure == MatrixMeasure::Find;
    let names_it =
        |cell: &MatrixCell| variant.relieves.as_ref().map(|relief| is_named(cell, relief));
    let is_still_named = !is_search && names_it(cell) == Some(true);
    let mut proof = VariantProof {
        variant: level_name(report, cell),
        cell: cell.number,
        baseline: level_name(report, baseline),
        relieves: variant.relieves.as_ref().map(what),
        accused: accused(variant, baseline),
        more: variant.more,
        shrink: variant.shrink.clone(),
        outcome: decide(effect.as_ref(), control.as_ref(), claim(variant), is_still_named),
        effect,
        bound: RatioBound::of_all(
            compared.iter().filter(|(_, counted)| counted.is_some()).map(|(pair, _)| pair.bound),
        ),
        control,
        pairs: compared.into_iter().map(|(pair, _)| pair).collect(),
        baseline_finding,
        baseline_limit,
        finding,
        limit,
        prediction: is_search.then(|| predicted(input, variant, baseline, cell)).flatten(),
        ..VariantProof::default()
    };
    if let Some((elasticity, interval)) = variant
        .shrink
        .as_ref()
        .filter(|_| is_search)
        .and_then(|shrink| effect?.elasticity(shrink.to))
    {
        (proof.elasticity, proof.elasticity_interval) = (Some(elasticity), interval);
    }
    let smallest = smallest_gain(&mut proof, [baseline, cell], input.beyond);
    if smallest.is_none()
        && let Some(reason) = cannot_say(&proof, report.measure, [baseline, cell])
    {
        proof.outcome = ProofOutcome::NotDecided;
        proof.reasons.push(reason);
    }
    proof.reasons.extend(smallest);
    proof.reasons.extend(
        input.no_limit_up_to.map(|users| format!("{}.", proof_text::no_limit(&proof, users))),
    );
    let repeated = input.repeated.iter().filter(|(of, _)| *of == variant.cell).count();
    let is_other_named = names_it(baseline) == Some(false);
    proof.reasons.extend(reasons(&proof, repeated, is_other_named, is_still_named));
    proof.answer = match input.no_limit_up_to {
        Some(users) => {
            format!("{}: {}", proof.outcome.words(), proof_text::no_limit(&proof, users))
        }
        None => {
            let named = [cell.finding.is_some(), names_it(cell) == Some(true)];
            proof_text::answer(&proof, report.measure, named)
        }
    };
    Some(proof)
}

/// The pairs of a variant, in the order in which they were made, the baseline first.
fn pairs(input: &ProofInput, variant: usize) -> Vec<[RunId; 2]> {
    let blocks = input.blocks.iter().filter(|(of, _)| *of == variant);
    let of_blocks = blocks.flat_map(|(_, [a, b, c, d])| [[*a, *b], [*c, *d]]);
    let repeated = input.repeated.iter().filter(|(of, _)| *of == variant).map(|(_, runs)| *runs);
    let baseline_first = |[x, y]: [RunId; 2]| if x.0 == 0 { [x, y] } else { [y, x] };
    of_blocks.chain(repeated).map(baseline_first).collect()
}

/// The runs of equal configuration of each two successive pairs that count, the earlier first: of a
/// block where none is lost. Those that were made once more take part as all others.
fn controls(report: &MatrixReport, counting: &[[RunId; 2]], busy_difference: f64) -> Vec<RunPair> {
    let (earlier, later) = (counting.iter().step_by(2), counting.iter().skip(1).step_by(2));
    let alike = earlier.zip(later).flat_map(|([a, b], [c, d])| [(*a, *c), (*b, *d)]);
    alike.filter_map(|(first, second)| compare(report, first, second, busy_difference).1).collect()
}

/// Whether more than half of the valid runs name what `relief` gives more of, by whichever finding.
fn is_named(cell: &MatrixCell, relief: &Relief) -> bool {
    let named =
        valid(cell).filter_map(RunFigures::limit).filter(|limit| is_relieved(limit, relief));
    named.count() * 2 > valid(cell).count()
}

/// The resource that `relief` gives more of, else its finding.
fn what(relief: &Relief) -> String {
    resource_of_relief(relief).or(relief.finding.as_deref()).unwrap_or_default().to_owned()
}

/// What is said to be the limit, in words: a thread by the name that the runs of the baseline give
/// it.
fn accused(variant: &ProofVariant, baseline: &MatrixCell) -> String {
    let Some(relief) = &variant.relieves else {
        return variant.shrink.as_ref().map(|shrink| shrink.resource.clone()).unwrap_or_default();
    };
    let mut limits = valid(baseline).filter_map(RunFigures::limit);
    let named = limits.find(|limit| is_relieved(limit, relief)).unwrap_or_default();
    relief.words(named.thread.as_deref(), named.setting.as_deref())
}

fn claim(variant: &ProofVariant) -> Claim {
    match &variant.shrink {
        Some(shrink) if !shrink.is_placebo => Claim::Shrunk,
        None if variant.relieves.is_some() => Claim::Relieved,
        _ => Claim::Nothing,
    }
}

/// Whether a pair of runs does not count for a reason that it may not have another time: the
/// generator was the limit, a search could not decide, or others used the machine differently. What
/// is not possible here, or fails, would be so again.
#[must_use]
pub fn is_lost(runs: [&MatrixRun; 2], busy_difference: f64) -> bool {
    let has = |wanted: RunStatus| runs.iter().any(|run| run.status == wanted);
    if [RunStatus::Pending, RunStatus::Skipped, RunStatus::Failed].into_iter().any(has) {
        return false;
    }
    let [a, b] = runs;
    has(RunStatus::Invalid) || difference(&a.environment, &b.environment, busy_difference).is_some()
}

/// Two runs, and what their comparison counts as; `None` if they cannot be compared.
fn compare(
    report: &MatrixReport,
    a: RunId,
    b: RunId,
    busy_difference: f64,
) -> (ProofPair, Option<RunPair>) {
    let find = |(cell, repeat): RunId| {
        report.cells.get(cell)?.runs.iter().find(|run| run.repeat == repeat)
    };
    let runs = [find(a), find(b)];
    let figures =
        runs.map(|run| run.filter(|run| run.status == RunStatus::Valid)?.figures.as_ref());
    let measured = figures.map(|figures| value(report.measure, figures?));
    let shown = |figures: &RunFigures| figures.value(report.service());
    let mut pair = ProofPair {
        places: runs.map(|run| run.and_then(|run| run.place)),
        values: figures.map(|figures| figures.and_then(shown)),
        ..ProofPair::default()
    };
    let [Some((x, of_x)), Some((y, of_y))] = measured else {
        pair.discarded = Some(why_not(runs));
        return (pair, None);
    };
    pair.discarded = runs[0]
        .zip(runs[1])
        .and_then(|(a, b)| difference(&a.environment, &b.environment, busy_difference));
    if pair.discarded.is_some() {
        return (pair, None);
    }
    pair.ratio = Some(y / x);
    pair.bound = RatioBound::of(pair.values.map(|value| is_raised(report.measure, value)));
    (pair, Some(RunPair { values: [x, y], resolution: [of_x, of_y] }))
}

/// Why one of two runs has no value.
fn why_not(runs: [Option<&MatrixRun>; 2]) -> String {
    let why = |run: Option<&MatrixRun>| {
        let what = match run.map_or(RunStatus::Pending, |run| run.status) {
            RunStatus::Valid => return None,
            RunStatus::Pending => return Some("not made yet".to_owned()),
            RunStatus::Invalid => "invalid",
            RunStatus::Skipped => "not possible on this machine",
            RunStatus::Failed => "failed",
        };
        let reason = run.and_then(|run| run.reason.as_ref());
        Some(reason.map_or_else(|| what.to_owned(), |reason| format!("{what}: {reason}")))
    };
    runs.into_iter().find_map(why).unwrap_or_else(|| "nothing was measured".to_owned())
}

/// The value of a run, above 0, and its resolution as a standard deviation of its logarithm.
fn value(measure: MatrixMeasure, figures: &RunFigures) -> Option<(f64, f64)> {
    match measure {
        MatrixMeasure::Hold => {
            // A share of few user-seconds has few possible values.
            let served = figures.served_ratio?.max(SERVED_MIN);
            let [from_s, until_s] = figures.window_s;
            let counted = figures.users * (until_s - from_s).max(0.0) * served;
            Some((served, if counted > 0.0 { 1.0 / counted / 12f64.sqrt() } else { 0.0 }))
        }
        MatrixMeasure::Find => {
            // The limit lies somewhere between the load that passed and the one that failed.
            let users = f64::from(figures.capacity?.max(1));
            let failing = figures.first_failing.map_or(users, f64::from).max(users);
            Some((users, (failing / users).ln() / 12f64.sqrt()))
        }
    }
}

/// Whether a value counts as more than it is.
fn is_raised(measure: MatrixMeasure, value: Option<f64>) -> bool {
    measure == MatrixMeasure::Hold && value.is_some_and(|served| served < SERVED_MIN)
}

/// The least share of user-seconds that counts, in words.
pub(super) fn least_share() -> String {
    format!("{:.0} %", SERVED_MIN * 1e2)
}

fn level_name(report: &MatrixReport, cell: &MatrixCell) -> String {
    let level = cell.levels.first().copied().unwrap_or(0);
    report.factors.first().and_then(|factor| factor.levels.get(level)).cloned().unwrap_or_default()
}

/// What the demand model says about the variant, judged by what was measured.
fn predicted(
    input: &ProofInput,
    variant: &ProofVariant,
    baseline: &MatrixCell,
    cell: &MatrixCell,
) -> Option<CapacityPrediction> {
    let relief = variant.relieves.as_ref()?;
    // Without a crowd that failed there is no limit of which there could be more.
    let measured = limit(baseline).filter(|[_, failing]| failing.is_finite())?;
    let named = majority(baseline).map(|limit| limit.finding);
    let prediction = predict(&input.demands, named.as_deref(), relief, variant.more, measured)?;
    Some(match limit(cell) {
        Some([passing, failing]) => prediction.judged(passing, failing),
        None => prediction,
    })
}

/// The largest crowd that a cell served well and the first that it did not, in the mean of its
/// valid runs; the latter infinite if a run has none.
fn limit(cell: &MatrixCell) -> Option<[f64; 2]> {
    let passing = valid(cell).map(|figures| f64::from(figures.capacity.unwrap_or(0)));
    let failing = valid(cell).map(|figures| figures.first_failing.map_or(f64::INFINITY, f64::from));
    let (passing, failing) = (mean(passing)?, mean(failing)?);
    Some([passing, failing.max(passing)])
}

/// The share of user-seconds that a cell served well.
fn served(cell: &MatrixCell) -> Option<f64> {
    cell.means.as_ref().and_then(|means| means.served_ratio)
}

/// Whether neither cell serves more of a held crowd than counts.
fn serve_nobody(cells: [&MatrixCell; 2]) -> bool {
    cells.into_iter().all(|cell| served(cell).is_some_and(|served| served <= SERVED_MIN))
}

/// What follows from a crowd of which neither side serves anybody, and is just `beyond` what the
/// baseline serves. Refuted is the accused limit only if the variant has so much more of it that it
/// had served this crowd; else the gain may be smaller than that, and nothing is decided.
fn smallest_gain(
    proof: &mut VariantProof,
    cells: [&MatrixCell; 2],
    beyond: Option<f64>,
) -> Option<String> {
    let is_refuted = proof.outcome == ProofOutcome::Refuted && proof.relieves.is_some();
    let beyond = beyond.filter(|_| is_refuted && serve_nobody(cells))?;
    if proof.more.is_none_or(|more| more <= beyond * (1.0 + RATIO_MARGIN)) {
        proof.outcome = ProofOutcome::NotDecided;
    }
    Some(format!(
        "Both serve hardly anybody of a crowd that is {:.0} % larger than what {} serves well: a \
         smaller gain is not excluded.",
        (beyond - 1.0) * 1e2,
        proof.baseline
    ))
}

/// Why the measurement cannot show what the outcome says.
fn cannot_say(
    proof: &VariantProof,
    measure: MatrixMeasure,
    cells: [&MatrixCell; 2],
) -> Option<String> {
    let is_no_change = matches!(proof.outcome, ProofOutcome::Refuted | ProofOutcome::Same);
    if !is_no_change {
        return None;
    }
    let has_no_limit =
        |figures: &RunFigures| figures.capacity_verdict.as_deref() == Some("at_least");
    match measure {
        // Twice as many might be served well, and still be few of a crowd far beyond the capacity.
        MatrixMeasure::Hold if serve_nobody(cells) => Some(
            "Both serve hardly anybody: a difference could not be seen. Hold a smaller crowd, or \
             search ([find])."
                .to_owned(),
        ),
        MatrixMeasure::Find if cells.iter().all(|cell| valid(cell).any(has_no_limit)) => Some(
            "Both serve the largest crowd that was tried: a difference could not be seen. Raise \
             `find.ceiling`, or `find.budget` if the searches ran out of time."
                .to_owned(),
        ),
        // More of a resource cannot serve a crowd better that is served well.
        MatrixMeasure::Hold
            if proof.outcome == ProofOutcome::Refuted
                && proof.relieves.is_some()
                && served(cells[0]).is_some_and(|served| served > SERVED_WELL) =>
        {
            Some(
                "The baseline serves this crowd well: nothing limits it. Hold a larger crowd, or \
                 search ([find])."
                    .to_owned(),
            )
        }
        _ => None,
    }
}

/// What a reader must know. `repeated` of the pairs were made once more; `is_other_named`: the
/// baseline's runs do not name what is accused.
fn reasons(
    proof: &VariantProof,
    repeated: usize,
    is_other_named: bool,
    is_still_named: bool,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let discarded = proof.pairs.iter().filter(|pair| pair.discarded.is_some()).count();
    if discarded > 0 {
        let again = match repeated {
            0 => String::new(),
            1 => "; 1 was made once more".to_owned(),
            more => format!("; {more} were made once more"),
        };
        reasons.push(format!("{discarded} of {} pairs do not count{again}.", proof.pairs.len()));
    }
    let accused = &proof.accused;
    let is_of_resource =
        proof.baseline_finding.as_deref().is_some_and(|key| resource_of(key).is_some());
    if let Some(named) = proof.baseline_limit.as_ref().filter(|_| is_of_resource && is_other_named)
    {
        reasons.push(format!("The runs of the baseline name {named}, not {accused}."));
    }
    if proof.outcome != ProofOutcome::NotDecided || !proof.reasons.is_empty() {
        return reasons;
    }
    let interval = proof.effect.and_then(|effect| effect.interval);
    reasons.push(match (&proof.effect, &proof.control, interval) {
        (None, ..) => "No pair of runs can be compared.".to_owned(),
        (Some(effect), Some(control), _) if is_control_off(effect, Some(control)) => format!(
            "Runs of equal configuration differ by {}: the change cannot be told from that.",
            proof_text::factor(control.ratio)
        ),
        (_, _, None) => "One pair has no interval.".to_owned(),
        (_, _, Some([low, _])) if is_still_named && low > 1.0 => {
            format!("It serves better, but {accused} is still named as the limit.")
        }
        _ => "The interval allows for a change and for none: more `pairs` would decide.".to_owned(),
    });
    reasons
}

fn method(measure: MatrixMeasure, looks: usize) -> Vec<String> {
    let what = match measure {
        MatrixMeasure::Find => {
            "The value of a run is the largest crowd that was served well, by a search \
             (docs/find.md)."
                .to_owned()
        }
        MatrixMeasure::Hold => {
            let least = least_share();
            format!(
                "The value of a run is the share of user-seconds that were served well while the \
                 crowd was held (docs/find.md); less than {least} counts as {least}."
            )
        }
    };
    let mut method = vec![
        what,
        "Runs are made in blocks of baseline, variant, variant, baseline, or the reverse, with a \
         new server for each. A ratio is the geometric mean over pairs of neighbouring runs; its \
         95 % interval is Student's t over the pairs."
            .to_owned(),
        "A/A is the same ratio for the runs of equal configuration in each two successive pairs \
         that count. If it is further from 1 than the effect, nothing is decided."
            .to_owned(),
        format!("A change within {:.0} % does not matter.", RATIO_MARGIN * 1e2),
    ];
    if looks > 1 {
        method.push(format!(
            "The pairs are looked at up to {looks} times, and the first look that decides all \
             variants ends the proof: intervals are wider, so that all looks together hold with \
             about 95 % (Pocock)."
        ));
    }
    method
}
