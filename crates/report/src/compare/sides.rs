//! Whether two sides may be compared: machines, scenarios, and what limited each.

use std::collections::{BTreeMap, BTreeSet};

use throng_analysis::comparison::machines::{self, FactDifference};
use throng_observation::units::percent;
use throng_scenario::differences;

use super::measured::GENERATOR;
use super::{ComparedLimits, MeasuredRun, ScenarioDifference};
use crate::playback::basis_words;

/// The facts in which the machines of any two runs differ. All are compared with the first run of
/// the base.
pub(crate) fn machine_differences(runs: &[&MeasuredRun]) -> Vec<FactDifference> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let mut found = BTreeSet::new();
    for other in others {
        for (machine, base, new) in pairs(first, other) {
            found.extend(machines::differences(&machine, base, new));
        }
    }
    found.into_iter().collect()
}

type Machine<'a> = (String, &'a machines::Facts, &'a machines::Facts);

/// The machines of two runs that belong together: by name, or the only watched host of each.
fn pairs<'a>(base: &'a MeasuredRun, new: &'a MeasuredRun) -> Vec<Machine<'a>> {
    let hosts = |run: &'a MeasuredRun| run.machines.iter().filter(|(name, _)| *name != GENERATOR);
    let mut pairs: Vec<Machine<'a>> = base
        .machines
        .iter()
        .filter_map(|(name, facts)| Some((name.clone(), facts, new.machines.get(name)?)))
        .collect();
    let only = |run: &'a MeasuredRun| hosts(run).next().filter(|_| hosts(run).count() == 1);
    if let (Some((name, base)), Some((other, new))) = (only(base), only(new))
        && name != other
    {
        pairs.push((name.clone(), base, new));
    }
    pairs
}

/// What is not known of the machines, and CPU steal that one side had and the other had not.
pub(super) fn machine_notes(runs: &[&MeasuredRun]) -> Vec<String> {
    let mut notes = BTreeSet::new();
    for run in runs {
        if run.machines.get(GENERATOR).is_none_or(|facts| !machines::is_known(facts)) {
            notes.insert(format!("{} does not say on which machine its generator ran", run.folder));
        }
    }
    let watched = |run: &&&MeasuredRun| run.machines.keys().any(|name| name != GENERATOR);
    match runs.iter().filter(watched).count() {
        0 => drop(notes.insert(
            "no run watched the server, so whether its machine was the same is not known".into(),
        )),
        count if count < runs.len() => drop(notes.insert(
            "only some runs watched the server, so whether its machine was the same is not known"
                .into(),
        )),
        _ => {}
    }
    let mut by_machine: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (machine, ratio) in runs.iter().flat_map(|run| &run.steal_ratio) {
        let [least, most] = by_machine.entry(machine).or_insert([*ratio, *ratio]);
        (*least, *most) = (least.min(*ratio), most.max(*ratio));
    }
    for (machine, [least, most]) in by_machine {
        if most - least > STEAL_DIFFERENCE {
            notes.insert(format!(
                "CPU steal of {machine} differs between runs: {} to {} of its CPU time",
                percent(least),
                percent(most)
            ));
        }
    }
    notes.into_iter().collect()
}

/// A difference of CPU steal, share of all CPU time, from which on it is named.
const STEAL_DIFFERENCE: f64 = 0.01;

/// The keys in which the scenarios of any two runs differ, and published files with other contents.
pub(crate) fn scenario_differences(runs: &[&MeasuredRun]) -> Vec<ScenarioDifference> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let mut found = BTreeSet::new();
    for other in others {
        for one in differences(&first.scenario, &other.scenario) {
            let changes_load = one.changes_load();
            found.insert(ScenarioDifference {
                key: one.key,
                base: one.base,
                new: one.new,
                changes_load,
            });
        }
        for (path, hash) in &first.media_files {
            if let Some(theirs) = other.media_files.get(path).filter(|theirs| *theirs != hash) {
                found.insert(ScenarioDifference {
                    key: format!("media {path}"),
                    base: Some(hash.clone()),
                    new: Some(theirs.clone()),
                    changes_load: true,
                });
            }
        }
    }
    found.into_iter().collect()
}

/// Why the latency of these runs cannot be compared; `None` if all measured it by one basis.
pub(super) fn unlike_latency(runs: &[&MeasuredRun]) -> Option<String> {
    let mut measured = runs.iter().filter_map(|run| Some((run, run.latency_basis?)));
    let (first, basis) = measured.next()?;
    let (other, unlike) = measured.find(|(_, other)| *other != basis)?;
    Some(format!(
        "{} measured it {}, {} {}",
        first.folder,
        basis_words(basis),
        other.folder,
        basis_words(unlike)
    ))
}

/// The limit of each side, and whether it moved.
pub(super) fn limits(base: &[&MeasuredRun], new: &[&MeasuredRun]) -> ComparedLimits {
    let (old, now) = (limit(base), limit(new));
    let statement = match (&old, &now) {
        (None, None) => None,
        (Some((key, title)), Some((other, _))) if key == other => {
            Some(format!("the limit is the same: {title}"))
        }
        (Some((_, title)), Some((_, other))) => {
            Some(format!("the limit moved from “{title}” to “{other}”"))
        }
        (Some((_, title)), None) => {
            Some(format!("the limit is gone: “{title}” in the base, nothing failed in the new"))
        }
        (None, Some((_, title))) => Some(format!("there is a limit that was not there: “{title}”")),
    };
    ComparedLimits { base: old.map(|(key, _)| key), new: now.map(|(key, _)| key), statement }
}

/// The limit that most runs name, with the sentence of the first that does.
fn limit(runs: &[&MeasuredRun]) -> Option<(String, String)> {
    let mut counts: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.limit.as_ref().map(|(key, _)| key.as_str())).or_default() += 1;
    }
    let (key, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let key = key?;
    runs.iter().filter_map(|run| run.limit.clone()).find(|(finding, _)| finding == key)
}
