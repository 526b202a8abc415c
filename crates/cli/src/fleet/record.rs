//! What a run folder keeps of a fleet from its start on, so that the run can be collected if its
//! coordinator is killed. It has no secrets: the bus's password is asked for again, and rows are
//! read without any.

use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use throng_fleet::message::Build;
use throng_scenario::Plan;
use throng_store::{RunFolder, StoreError};

use super::build;
use super::gathered::Gathered;
use crate::args::OnLoss;
use crate::console::say;

/// Its name in the folder.
const FILE: &str = "fleet.json";

/// Its format.
const FORMAT: u32 = 1;

/// A longer file is not one of these: 4,096 weights take some 30 kB.
const BYTES_MAX: u64 = 1 << 20;

/// The fleet of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    format: u32,
    /// The run's name on the bus.
    pub(super) run: String,
    /// The bus, without user and password.
    pub(super) bus: String,
    /// The program of the coordinator.
    pub(super) build: Build,
    /// The weight of each worker, by number.
    pub(super) weights: Vec<u32>,
    /// Who joins when, as a hash.
    pub(super) crowd_sha256: String,
    pub(super) is_search: bool,
    /// Participants of lost workers were given to others.
    pub(super) reassigns: bool,
    /// What was collected after the coordinator was gone.
    pub(super) collected: Option<Collected>,
}

/// What was collected of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Collected {
    /// Workers of which something may still come.
    pub(super) missing: Vec<String>,
    /// The last message of the run on the bus.
    pub(super) last: u64,
}

impl Gathered {
    /// What whoever collects the run has to know, should this process be killed.
    pub(crate) fn record(&self, plan: &Plan, is_search: bool) -> Record {
        let weights = self.members.iter().map(|member| member.weight).collect();
        Record::new(self, weights, plan, is_search)
    }
}

impl Record {
    pub(super) fn new(
        gathered: &Gathered,
        weights: Vec<u32>,
        plan: &Plan,
        is_search: bool,
    ) -> Self {
        Self {
            format: FORMAT,
            run: gathered.run.clone(),
            bus: gathered.coordinator.bus().to_owned(),
            build: gathered.build.clone(),
            weights,
            crowd_sha256: build::crowd_sha256(plan),
            is_search,
            reassigns: gathered.on_loss == OnLoss::Reassign,
            collected: None,
        }
    }

    /// With what was collected.
    pub(super) fn with(&self, collected: Collected) -> Self {
        Self { collected: Some(collected), ..self.clone() }
    }

    /// Keeps it in the run folder. A run goes on without it.
    pub(crate) fn keep(&self, folder: &Path) {
        if let Err(error) = self.put(folder) {
            say(&format!("`throng run --resume` cannot collect this run: {error}"));
        }
    }

    /// The same where nothing goes on without it.
    pub(super) fn put(&self, folder: &Path) -> Result<(), StoreError> {
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        RunFolder::open(folder).and_then(|folder| folder.put(FILE, json)).map(drop)
    }

    /// Whether a run folder has one.
    pub(super) fn is_in(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// That of a run folder; `None` if no fleet played it. An error is a sentence.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, String> {
        let path = folder.join(FILE);
        let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = match throng_folder::read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(problem(&error)),
        };
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).map_err(|error| problem(&error))?;
        let record: Self = serde_json::from_str(&text).map_err(|error| problem(&error))?;
        if record.format > FORMAT || !throng_fleet::is_run_name(&record.run) {
            return Err(problem(&format!(
                "format {}, this throng reads up to {FORMAT}",
                record.format
            )));
        }
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_kept_and_what_is_none_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Record::read(folder.path()), Ok(None));
        let record = Record {
            format: FORMAT,
            run: "0123456789abcdef".into(),
            bus: "nats://10.0.0.5:4222".into(),
            build: Build::default(),
            weights: vec![2, 1],
            crowd_sha256: "00".into(),
            is_search: false,
            reassigns: true,
            collected: Some(Collected { missing: vec!["b".into()], last: 7 }),
        };
        record.keep(folder.path());
        assert_eq!(Record::read(folder.path()), Ok(Some(record.clone())));
        assert!(record.put(&folder.path().join("none")).is_err(), "whoever relies on it is told");
        Record { format: FORMAT + 1, ..record.clone() }.keep(folder.path());
        assert!(
            Record::read(folder.path()).is_err_and(|error| error.contains("fleet.json: format 2"))
        );
        Record { run: "../x".into(), ..record }.keep(folder.path());
        assert!(Record::read(folder.path()).is_err());
        std::fs::write(folder.path().join(FILE), "{").expect("written");
        assert!(Record::read(folder.path()).is_err_and(|error| error.contains("fleet.json: EOF")));
    }
}
