//! Scenarios from files and from flags.

use std::path::Path;

use anyhow::anyhow;
use throng_scenario::{Override, Scenario, ScenarioError, ScenarioFlags};

use crate::args::{Common, Find, Run, View};
use crate::console::CliError;
use crate::kept::is_kept;
use crate::secrets;

/// The scenario of `throng run FILE`.
pub(crate) fn of_file(command: &Run) -> Result<(Scenario, Common), CliError> {
    let file = command.file.as_deref().ok_or_else(|| CliError::usage("run which scenario?"))?;
    let scenario = read(file, &overrides(&command.common)?)?;
    Ok((scenario, command.common.clone()))
}

/// The scenario of `throng view URL`.
pub(crate) fn of_flags(command: &View) -> Result<(Scenario, Common), CliError> {
    let common = &command.common;
    let form = ScenarioFlags {
        url: command.target.clone().or_else(|| command.url.clone()).unwrap_or_default(),
        size: Some(command.n),
        every: command.every.clone(),
        duration: command.duration.as_deref().map(duration),
        summary_every: command.summary.clone(),
        warm_up: command.warm_up.clone(),
        token: command.token.clone(),
        tls_insecure: command.tls_insecure,
        set: overrides(common)?,
        ..ScenarioFlags::default()
    };
    let scenario =
        Scenario::from_flags(&form).map_err(|error| problems("the command line", &error))?;
    Ok((scenario, common.clone()))
}

/// The scenario of `throng find`, with the overrides `more`.
pub(crate) fn of_find(command: &Find, more: &[Override]) -> Result<Scenario, CliError> {
    let mut over = overrides(&command.common)?;
    over.extend_from_slice(more);
    of_file_or_url(&command.scenario, over)
}

/// The scenario of a file, or of one participant at a target's URL.
pub(crate) fn of_file_or_url(named: &str, overrides: Vec<Override>) -> Result<Scenario, CliError> {
    if !named.contains("://") {
        return read(Path::new(named), &overrides);
    }
    let form = ScenarioFlags { url: named.to_owned(), set: overrides, ..ScenarioFlags::default() };
    Scenario::from_flags(&form).map_err(|error| problems("the command line", &error))
}

/// `forever` is a year: a person ends the run.
fn duration(text: &str) -> String {
    if text == "forever" { FOREVER.into() } else { text.into() }
}

const FOREVER: &str = "8760h";

/// Reads a scenario file.
pub(crate) fn read(file: &Path, overrides: &[Override]) -> Result<Scenario, CliError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::usage(anyhow!("cannot read {}: {error}", file.display())))?;
    let scenario = Scenario::parse_with(&text, overrides);
    let mut scenario = scenario.map_err(|error| problems(&file.display().to_string(), &error))?;
    // In a scenario that a run folder has kept, paths are those from where the run was started.
    if !is_kept(file) {
        recordings_beside(&mut scenario, file);
    }
    Ok(scenario)
}

/// Reads a scenario file to evaluate what was made with it: secrets that were not kept (`…`) are no
/// errors.
pub(crate) fn read_stored(file: &Path, overrides: &[Override]) -> Result<Scenario, CliError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::usage(anyhow!("cannot read {}: {error}", file.display())))?;
    Scenario::parse_masked(&text, overrides)
        .map_err(|error| problems(&file.display().to_string(), &error))
}

/// Paths of recorded pages are relative to the folder of the scenario file.
fn recordings_beside(scenario: &mut Scenario, file: &Path) {
    let Some(folder) = file.parent() else { return };
    let roles = scenario.crowd.iter_mut().filter_map(|cohort| cohort.role.as_mut());
    for page in roles.filter_map(|role| role.player.recorded_page.as_mut()) {
        page.har = folder.join(&page.har).display().to_string();
    }
}

/// A scenario that a run folder has kept; `of` names it in errors.
pub(crate) fn of_text(text: &str, common: &Common, of: &str) -> Result<Scenario, CliError> {
    Scenario::parse_with(text, &overrides(common)?).map_err(|error| problems(of, &error))
}

/// The overrides that `--set` and the flags in common mean.
fn overrides(common: &Common) -> Result<Vec<Override>, CliError> {
    let watch = common.watch.iter().map(|given| secrets::flag_text("--watch", given));
    let form = ScenarioFlags {
        allow: common.allow_target.clone(),
        source_ips: common.source_ip.clone(),
        objectives: common.objective.clone(),
        watch: watch.collect::<Result<_, CliError>>()?,
        tap: common.tap,
        streams: common.streams,
        folder: common.outputs.output.as_ref().map(|path| path.display().to_string()),
        csv: common.outputs.csv,
        set: parse_sets(&common.set)?,
        ..ScenarioFlags::default()
    };
    // These flags always have a URL and a size; over a file only those of `--set` count.
    Ok(form
        .overrides()
        .into_iter()
        .filter(|o| !matches!(o.path.as_str(), "target.url" | "crowd.size"))
        .chain(
            form.set
                .iter()
                .filter(|o| matches!(o.path.as_str(), "target.url" | "crowd.size"))
                .cloned(),
        )
        .collect())
}

/// Reads `--set PATH=VALUE`; `env:NAME` and `file:PATH` hold that, so that it is in no list of
/// arguments.
pub(crate) fn parse_sets(sets: &[String]) -> Result<Vec<Override>, CliError> {
    let parse = |set: &String| {
        let text = secrets::override_text(set)?;
        Override::parse(&text).map_err(|error| problems("--set", &error))
    };
    sets.iter().map(parse).collect()
}

fn problems(of: &str, error: &ScenarioError) -> CliError {
    CliError::usage(format!("{of} cannot be run as it is:\n{error}"))
}
