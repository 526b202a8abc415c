//! Which program this is, and which plan it made: a fleet plays one plan by one program.

use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use throng_fleet::message::{Build, PROTOCOL};
use throng_scenario::{Plan, Scenario};

use crate::console::CliError;
use crate::kept;

/// This program.
pub(crate) fn build() -> Result<Build, CliError> {
    let sha256 = kept::file_sha256(Path::new("/proc/self/exe")).map_err(CliError::invalid)?;
    Ok(Build {
        version: env!("CARGO_PKG_VERSION").into(),
        arch: std::env::consts::ARCH.into(),
        sha256,
        protocol: PROTOCOL,
    })
}

/// The plan of a scenario, as both sides make it: what it says, and each join.
pub(crate) fn plan_sha256(scenario: &Scenario, plan: &Plan) -> String {
    sha256(&[scenario.to_toml().as_bytes(), crowd_sha256(plan).as_bytes()])
}

/// Who joins when: what is needed to read the rows of a run.
pub(crate) fn crowd_sha256(plan: &Plan) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest resident memory of this process, bytes (proc_pid_status(5)).
    fn peak() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn a_program_is_hashed_without_being_in_memory() {
        let before = peak();
        let hashed = build().unwrap();
        let grown = peak() - before;
        let program = std::fs::read("/proc/self/exe").unwrap();
        assert!(grown < program.len() as u64 / 4, "{grown} of {} bytes", program.len());
        assert_eq!(hashed.sha256, sha256(&[&program]));
    }
}
