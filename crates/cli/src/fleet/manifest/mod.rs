//! `throng fleet manifest`: what runs a scenario in a Kubernetes cluster, as YAML on standard
//! output, or as a chart of Helm.

mod base;
mod chart;
mod need;
mod portable;
mod scalar;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use throng_fleet::shares::Shares;
use throng_observation::Url;
use throng_scenario::{Plan, Scenario};

use super::gathered;
use crate::args::Manifest;
use crate::console::{CliError, Exit, print, say};
use crate::{media, scenario};
use base::{Slot, filled};
use need::Need;
use portable::{SCENARIO_KEY, key, travels, variables, warnings};

/// What may pass beside the run itself: images are fetched, the bus starts, the last rows come.
const BESIDE_RUN_S: u64 = 1_800;

/// Prints the manifest, or writes the chart.
pub(super) fn manifest(command: &Manifest) -> Result<Exit, CliError> {
    let scenario = scenario::read(&command.file, &[])?;
    let plan = scenario.plan();
    let fleet = Fleet::of(command, &scenario, &plan)?;
    warnings(&plan).iter().for_each(|warning| say(&format!("warning: {warning}")));
    match &command.helm {
        None => print(&printed(&fleet)),
        Some(folder) => chart::write(folder, &fleet)?,
    }
    Ok(Exit::Met)
}

/// A scenario that a cluster can play, and what stands in the places of the base's values.
struct Fleet<'a> {
    command: &'a Manifest,
    /// What all names begin with.
    name: &'a str,
    scenario: &'a str,
    /// Its name in the ConfigMap.
    key: &'a str,
    variables: BTreeSet<String>,
    slots: Vec<Slot>,
}

impl<'a> Fleet<'a> {
    fn of(command: &'a Manifest, scenario: &'a Scenario, plan: &Plan) -> Result<Self, CliError> {
        let file = command.file.display();
        gathered::check(plan, command.workers.into())?;
        let variables =
            variables(scenario).map_err(|why| CliError::usage(format!("{file}: {why}")))?;
        travels(scenario, plan).map_err(|why| CliError::usage(format!("{file}: {why}")))?;
        let name = if command.helm.is_some() { chart::RELEASE } else { command.name.as_str() };
        let key = key(&command.file);
        let bus =
            bus_url(command, name).map_err(|why| CliError::usage(format!("--nats: {why}")))?;
        let share = share(command, plan)?;
        let slots = slots(command, &share, plan, (name, key, &bus, &variables));
        Ok(Self { command, name, scenario: scenario.source.expose(), key, variables, slots })
    }

    /// The files of the base, by name: the bus only if it is not another's.
    fn files(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let own_bus = self.command.nats.is_none().then_some(("bus.yaml", base::BUS));
        let others = [("workers.yaml", base::WORKERS), ("coordinator.yaml", base::COORDINATOR)];
        own_bus.into_iter().chain(others)
    }

    /// What has to be there before: Secrets, which are never printed. That of a consent proof is
    /// one of its own.
    fn secrets(&self, namespace: Option<&str>) -> Vec<String> {
        let name = self.name;
        let of_bus = match &self.command.nats {
            None => {
                let arguments: Vec<&str> = std::iter::once(name).chain(namespace).collect();
                format!(
                    "{name}-bus: password, tls.crt, tls.key; `deploy/kubernetes/secret.sh {}` \
                     prints one",
                    arguments.join(" ")
                )
            }
            Some(_) => format!(
                "{name}-bus: password of the bus, and as tls.crt its certificate or that of its \
                 authority"
            ),
        };
        let keys: Vec<&str> = self.variables.iter().map(String::as_str).collect();
        let of_scenario = (!keys.is_empty()).then(|| format!("{name}-env: {}", keys.join(", ")));
        std::iter::once(of_bus).chain(of_scenario).collect()
    }
}

/// The Secret of a consent proof, as one that has to be there.
fn of_consent(secret: &str) -> String {
    format!("{secret}: secret, that of the consent proof")
}

fn printed(fleet: &Fleet<'_>) -> String {
    let Fleet { command, scenario, key, slots, .. } = fleet;
    let scenario = scalar::scalar(scenario);
    let config = format!("{}  \"{key}\": {scenario}", filled(base::SCENARIO, slots));
    let mut documents = vec![config];
    if command.namespace.is_some() {
        documents.insert(0, filled(base::NAMESPACE, slots));
    }
    documents.extend(fleet.files().map(|(_, file)| filled(file, slots)));
    head(fleet) + &documents.join("---\n")
}

fn head(fleet: &Fleet<'_>) -> String {
    let command = fleet.command;
    let secrets = fleet.secrets(command.namespace.as_deref()).into_iter();
    let secrets = secrets.chain(command.consent_secret_name.as_deref().map(of_consent));
    let secrets: String = secrets.map(|secret| format!("#   {secret}\n")).collect();
    format!(
        "# {} workers play a scenario (docs/fleet.md). Secrets that have to be there:\n{secrets}",
        command.workers
    )
}

/// The largest share: by equal weights that of the first worker, which the last join may be for.
fn share(command: &Manifest, plan: &Plan) -> Result<Plan, CliError> {
    let shares = Shares::of(&vec![1; command.workers.into()]).map_err(CliError::usage)?;
    let share = plan.part(|number| shares.worker_of(number) == 0);
    match command.max_users.filter(|most| share.expected.users > *most) {
        Some(most) => Err(CliError::usage(format!(
            "--max-users {most}: a share has up to {} participants at a time; more --workers \
             have smaller ones",
            share.expected.users
        ))),
        None => Ok(share),
    }
}

fn slots(
    command: &Manifest,
    share: &Plan,
    plan: &Plan,
    (name, key, bus, variables): (&str, &str, &str, &BTreeSet<String>),
) -> Vec<Slot> {
    // Relative to this folder, as they are to that of the pods.
    let sizes = media::files(plan).filter_map(|path| Some(std::fs::metadata(path).ok()?.len()));
    let need = Need::of(share, sizes.sum());
    let one = |value: &dyn ToString| [value.to_string()];
    let seconds = plan.duration.as_secs().saturating_add(BESIDE_RUN_S);
    vec![
        Slot::new("--name", "throng", one(&name)),
        Slot::new("--namespace", "throng", command.namespace.clone()),
        Slot::new("--workers", "2", one(&command.workers)),
        Slot::new("--image", "throng:latest", one(&command.image)),
        Slot::new(
            "--allow-target",
            "10.0.0.0/8",
            command.allow_target.iter().map(ToString::to_string),
        ),
        Slot::new("--max-users", "500", command.max_users.map(|most| most.to_string())),
        Slot::new("--consent-secret-name", "throng-consent", command.consent_secret_name.clone()),
        Slot::new("--nats", "tls://throng:$(BUS_PASSWORD)@throng-bus:4222", one(&bus)),
        Slot::new("scenario: file", SCENARIO_KEY, one(&key)),
        Slot::new("scenario: env", "TOKEN", variables.iter().cloned()),
        Slot::new("scenario: seconds", "1920", one(&seconds)),
        Slot::new("scenario: cpu", "300m", [format!("{}m", need.cpu_milli)]),
        Slot::new("scenario: memory", "256Mi", [format!("{}Mi", need.memory_mib)]),
        Slot::new(
            "scenario: load",
            "50 participants at a time, 5 joins within a second, 56 Mbit/s",
            [need.load],
        ),
    ]
}

/// The bus's address in a pod, which puts the password in its place. Always with TLS, as the base
/// explains.
fn bus_url(command: &Manifest, name: &str) -> Result<String, String> {
    let Some(text) = &command.nats else {
        return Ok(format!("tls://throng:$(BUS_PASSWORD)@{name}-bus:4222"));
    };
    // The text may have a password, and is not repeated.
    let url = Url::parse(text).map_err(|error| format!("{error}; write tls://bus.example:4222"))?;
    let is_plain =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:[]%".contains(c));
    let host = url.host_str().filter(|host| !host.is_empty() && is_plain(host));
    let clear = url.in_clear();
    match (url.scheme(), host) {
        _ if clear.password().is_some() => Err(format!(
            "its password would be printed: leave it to the key `password` of {name}-bus"
        )),
        ("nats" | "tls", Some(host)) if is_plain(clear.username()) => {
            let user = if clear.username().is_empty() { "throng" } else { clear.username() };
            Ok(format!("tls://{user}:$(BUS_PASSWORD)@{host}:{}", url.port().unwrap_or(4222)))
        }
        _ => Err("write tls://bus.example:4222, or tls://user@bus.example:4222".to_owned()),
    }
}
