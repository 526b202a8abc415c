//! What of a scenario a pod can have: its text goes into a ConfigMap, its secrets into variables,
//! its files with the image.

use std::collections::BTreeSet;
use std::path::Path;

use throng_scenario::{Plan, Scenario};

use crate::secrets::references;
use crate::{kept, media};

/// The name of the scenario in the ConfigMap, if that of its file cannot be a key.
pub(super) const SCENARIO_KEY: &str = "scenario.toml";

/// Variables that the pods have anyway.
const OWN_VARIABLES: [&str; 4] = ["BUS_PASSWORD", "BUS_URL", "CONSENT_SECRET", "POD_NAME"];

/// The variables that the scenario takes its secrets from; the pods have them from a Secret.
pub(super) fn variables(scenario: &Scenario) -> Result<BTreeSet<String>, String> {
    let name = |reference: &String| match reference.strip_prefix("env:") {
        None => Err(format!("{reference} is a file that the pods do not have: write env:NAME")),
        Some(name) if OWN_VARIABLES.contains(&name) => Err(format!(
            "the pods have a {name} of their own: give the variable of {reference} another name"
        )),
        Some(name) if is_variable(name) => Ok(name.to_owned()),
        Some(_) => {
            Err(format!("{reference} cannot be a variable of a pod: write letters, digits and _"))
        }
    };
    references(&scenario.to_toml())?.iter().map(name).collect()
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether the scenario can go into a ConfigMap, and the rest of what it names comes with the
/// image. A ConfigMap carries 1 MiB (`MaxSecretSize` of the API, for both), which no scenario
/// exceeds.
pub(super) fn travels(scenario: &Scenario, plan: &Plan) -> Result<(), String> {
    let secrets = kept::written_out(scenario);
    if !secrets.is_empty() {
        return Err(format!(
            "{}: what is or may be a secret is written out, and a ConfigMap is for everybody who \
             may read the namespace: {}",
            secrets.join(", "),
            instead_of(&secrets)
        ));
    }
    if let Some(page) = plan.roles.iter().find_map(|role| role.player.recorded_page.as_ref()) {
        return Err(format!("the recording {} does not travel with a ConfigMap", page.har));
    }
    match media::files(plan).find(|path| Path::new(path).is_absolute()) {
        Some(path) => Err(format!(
            "workers play files below the folder in which they start, in a pod the image's: \
             write {path} as a relative path"
        )),
        None => Ok(()),
    }
}

/// What to write in place of secrets at these paths. Not all of them can be references.
pub(super) fn instead_of(paths: &[String]) -> String {
    let advice = paths.iter().map(|path| {
        if path.ends_with(".player.page") {
            "shorten the query of the page"
        } else if path.contains(".chat.template.") {
            "write {token} into the template of the chat, and target.token = \"env:NAME\""
        } else {
            "write env:NAME"
        }
    });
    let advice: BTreeSet<&str> = advice.collect();
    advice.into_iter().collect::<Vec<_>>().join("; ")
}

/// What may be meant, and may not work.
pub(super) fn warnings(plan: &Plan) -> Vec<String> {
    let files: BTreeSet<&str> = media::files(plan).map(String::as_str).collect();
    let files = (!files.is_empty()).then(|| {
        let files: Vec<&str> = files.into_iter().collect();
        format!(
            "{} must be in the image, at the same path below /: a ConfigMap carries no media",
            files.join(", ")
        )
    });
    let loopback = plan.target.is_loopback().then(|| {
        format!(
            "{} is a loopback address: in a cluster each pod reaches only itself by it",
            plan.target.display()
        )
    });
    let canary = plan.canary.as_ref().map(|_| "[canary] needs a browser in the image".to_owned());
    files.into_iter().chain(loopback).chain(canary).collect()
}

/// The scenario's key in its ConfigMap.
pub(super) fn key(file: &Path) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_key =
        |name: &&str| name.len() <= 253 && name.chars().all(is_plain) && !name.starts_with('.');
    file.file_name().and_then(|name| name.to_str()).filter(is_key).unwrap_or(SCENARIO_KEY)
}
