//! Refusals in words.

use anyhow::anyhow;
use throng_scenario::Refusal;

use crate::watchers::Agents;

/// A refusal, with the reasons why no agent's agreement lifts it.
pub(super) fn refused(refusal: Refusal, port: u16, agents: &Agents) -> anyhow::Error {
    let problems: Vec<&str> = agents.problems().collect();
    let elsewhere = agents.agreements().into_iter().filter_map(|agreement| {
        agreement.proof.validate(refusal.address(), port).err().map(|error| error.to_string())
    });
    let said: Vec<String> = problems.into_iter().map(str::to_owned).chain(elsewhere).collect();
    if said.is_empty() { refusal.into() } else { anyhow!("{refusal}; {}", said.join("; ")) }
}

/// That a refused address gets no load, and why.
pub(super) fn no_load(refusal: Refusal, port: u16, agents: &Agents) -> String {
    format!("{} gets no load: {}", refusal.address(), refused(refusal, port, agents))
}
