//! Which program this is, and which plan it made: a fleet plays one plan by one program.

use std::fs;

use aws_lc_rs::digest::{Context, SHA256};
use throng_fleet::message::{Build, PROTOCOL};
use throng_scenario::{Plan, Scenario};

use crate::CliError;

/// This program.
pub(super) fn build() -> Result<Build, CliError> {
    let program = fs::read("/proc/self/exe").map_err(CliError::invalid)?;
    Ok(Build {
        version: env!("CARGO_PKG_VERSION").into(),
        arch: std::env::consts::ARCH.into(),
        sha256: sha256(&[&program]),
        protocol: PROTOCOL,
    })
}

/// The plan of a scenario, as both sides make it: what it says, and each join.
pub(super) fn plan_sha256(scenario: &Scenario, plan: &Plan) -> String {
    sha256(&[scenario.to_toml().as_bytes(), crowd_sha256(plan).as_bytes()])
}

/// Who joins when: what is needed to read the rows of a run.
pub(super) fn crowd_sha256(plan: &Plan) -> String {
    let cohorts = plan.cohorts.join("\n");
    let mut joins = Vec::with_capacity(plan.joins.len() * 24);
    for join in &plan.joins {
        let leaves_us = join.leave_at.map_or(u64::MAX, |at| at.as_micros() as u64);
        joins.extend_from_slice(&join.participant.0.to_le_bytes());
        joins.extend_from_slice(&join.cohort.0.to_le_bytes());
        joins.extend_from_slice(&join.place.to_le_bytes());
        joins.extend_from_slice(&(join.at.as_micros() as u64).to_le_bytes());
        joins.extend_from_slice(&leaves_us.to_le_bytes());
    }
    sha256(&[cohorts.as_bytes(), &joins])
}

fn sha256(parts: &[&[u8]]) -> String {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
