//! A matrix that is continued: the secrets are given again, all else is as it was.

use std::path::Path;

use throng_scenario::{Override, masked_toml};

use super::super::options::{HiddenOfCopies, Options};
use super::super::plan::MatrixPlan;
use super::{MatrixFolder, SCENARIO};
use crate::console::CliError;
use crate::kept::{Hidden, MATRIX, covers, is_same_file};
use crate::secrets::override_text;

/// The table of a matrix whose keys are paths of the scenario.
const SET: &str = "set";

impl MatrixFolder {
    /// The plan of this matrix to be continued, with the secrets that are given again.
    pub(crate) fn plan(&self, secrets: &[String]) -> Result<MatrixPlan, CliError> {
        let mut matrix = self.text(MATRIX)?.parse::<toml::Table>().unwrap_or_default();
        let set = matrix.remove(SET);
        let set = set.as_ref().and_then(toml::Value::as_table).map(Hidden::of_table);
        let hidden = HiddenOfCopies {
            scenario: Hidden::of_file(&self.text(SCENARIO)?),
            set: set.unwrap_or_default(),
        };
        let others = Hidden::of_table(&matrix);
        let file = self.kept()?.file;
        self.plan_of(|options| {
            let options = options.with_secrets(secrets, &hidden)?;
            // Its copy says `…` where the file says a secret.
            if !file.is_file() {
                self.check_has_all(&file, &options, &hidden, &others)?;
            }
            Ok(options)
        })
    }

    /// Whether all that is hidden in the copies was given again.
    fn check_has_all(
        &self,
        file: &Path,
        options: &Options,
        hidden: &HiddenOfCopies,
        others: &[Hidden],
    ) -> Result<(), CliError> {
        let is_in = |sets: &[String], hidden: &Hidden| {
            let texts = sets.iter().filter_map(|set| override_text(set).ok());
            let mut overrides = texts.filter_map(|text| Override::parse(&text).ok());
            overrides.any(|set| covers(&set.path, &hidden.path))
        };
        let again = &options.again;
        let is_missing_in_set =
            |hidden: &&Hidden| !is_in(&options.set, hidden) && !is_in(&again.set, hidden);
        let of_set = hidden.set.iter().filter(is_missing_in_set);
        let of_scenario = hidden.scenario.iter().filter(is_missing_in_set);
        let of_scenario = of_scenario.filter(|hidden| !is_in(&again.scenario, hidden));
        let missing: Vec<&Hidden> = of_scenario.chain(of_set).collect();
        if missing.is_empty() && others.is_empty() {
            return Ok(());
        }
        let give = missing.iter().map(|hidden| format!(" {}", hidden.flag())).collect::<String>();
        let give =
            if others.is_empty() { format!(", or give --resume{give}") } else { String::new() };
        let all = missing.into_iter().chain(others);
        let paths: Vec<&str> = all.map(|hidden| hidden.path.as_str()).collect();
        Err(CliError::usage(format!(
            "{} is gone, and the copy in {} has no secrets ({}): put the file back{give}",
            file.display(),
            self.path.display(),
            paths.join(", ")
        )))
    }

    /// Runs of different files cannot be compared. A secret may be another one.
    pub(crate) fn check_unchanged(&self, plan: &MatrixPlan) -> Result<(), CliError> {
        for (name, file, text) in
            [(MATRIX, &plan.file, &plan.text), (SCENARIO, &plan.scenario, &plan.scenario_text)]
        {
            let (kept, now) = (self.text(name)?, masked_toml(text));
            // Folders of versions that kept the secrets have the same without them.
            let kept_now = masked_toml(&kept);
            if kept != now && kept_now != now && !is_same_file(&kept_now, &now) {
                return Err(CliError::usage(format!(
                    "{} has changed since this matrix began: its cells could not be compared. \
                     Undo the change ({} has what it was), or begin a new matrix",
                    file.display(),
                    self.path.join(name).display()
                )));
            }
        }
        Ok(())
    }
}
