//! The folder of a matrix: the file, what was done, and a run folder for each run.
//!
//! ```text
//! matrix.toml  scenario.toml   as they were when it began, without secrets
//! options.json                 where the file is, and the flags, without secrets
//! journal.jsonl                what has to be undone (throng-rig)
//! chosen.json                  what the pairs of a proof measure, if a search chose it
//! decided.json                 after how many pairs a proof was decided, if before its end
//! cells/CELL/REPEAT/           a run folder; REPEAT 0 of the baseline is that search, 0-narrowed
//!                              the one that continues it between its ends
//!   record.json                how the run ended
//!   server/                    the server's files and output
//! matrix.json  report.html     the answer
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use throng_folder::read_text;
use throng_observation::shell;
use throng_report::matrix::{MatrixRun, RunStatus};
use throng_scenario::matrix::PlannedRun;
use throng_scenario::{Override, masked_toml};
use throng_store::{RunFolder, create_private};

use super::chosen::Chosen;
use super::options::{HiddenOfCopies, Options};
use super::plan::MatrixPlan;
use super::shown;
use crate::console::{CliError, Exit};
use crate::kept::{Hidden, covers};
use crate::secrets::override_text;

const MATRIX: &str = "matrix.toml";
const SCENARIO: &str = "scenario.toml";
const OPTIONS: &str = "options.json";
const RECORD: &str = "record.json";
const CHOSEN: &str = "chosen.json";
const DECIDED: &str = "decided.json";
/// The table of a matrix whose keys are paths of the scenario.
const SET: &str = "set";
/// Longer names of cells are cut in paths.
const NAME_MAX: usize = 80;

pub(super) struct MatrixFolder {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Decided {
    /// Pairs of each variant.
    pairs: u32,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The matrix file.
    file: PathBuf,
    options: Options,
}

impl MatrixFolder {
    pub(super) fn is_one(path: &Path) -> bool {
        path.join(OPTIONS).is_file() && path.join(MATRIX).is_file()
    }

    /// Makes the folder.
    pub(super) fn create(path: &Path, plan: &MatrixPlan) -> Result<Self, CliError> {
        if Self::is_one(path) {
            return Err(CliError::usage(format!(
                "{} holds a matrix already; continue it with --resume, or choose another --output",
                path.display()
            )));
        }
        let wrong = |error| CliError::usage(format!("{}: {error}", path.display()));
        create_private(path).map_err(wrong)?;
        let folder = Self { path: path.canonicalize().map_err(wrong)? };
        let kept = Kept { file: plan.file.clone(), options: plan.options.kept() };
        let kept = serde_json::to_string_pretty(&kept).map_err(CliError::invalid)?;
        folder.put(MATRIX, &masked_toml(&plan.text))?;
        folder.put(SCENARIO, &masked_toml(&plan.scenario_text))?;
        // Last: with it the folder is one of a matrix.
        folder.put(OPTIONS, &kept)?;
        Ok(folder)
    }

    /// An existing one.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        if !Self::is_one(path) {
            return Err(CliError::usage(format!("{} holds no matrix", path.display())));
        }
        let path = path
            .canonicalize()
            .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
        Ok(Self { path })
    }

    /// Whether no other user can have written what is run when it is continued: the journal, and
    /// the commands of its files.
    pub(super) fn check_is_own(&self) -> Result<(), CliError> {
        let files = [MATRIX, SCENARIO, OPTIONS].map(|name| self.path.join(name));
        let all = files.into_iter().chain(Some(self.journal()).filter(|path| path.exists()));
        for path in all {
            throng_folder::check_own(&path).map_err(|error| {
                let mend = error.mend().map(shell::line);
                let mend = mend.map(|line| format!(". If all that lies there is yours: {line}"));
                CliError::usage(format!(
                    "{error}: the commands of {} are not run{}",
                    self.path.display(),
                    mend.unwrap_or_default()
                ))
            })?;
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// The plan of this matrix to be continued, with the secrets that are given again.
    pub(super) fn plan(&self, secrets: &[String]) -> Result<MatrixPlan, CliError> {
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

    /// The plan for a report, which needs no secrets.
    pub(super) fn stored_plan(&self) -> Result<MatrixPlan, CliError> {
        Ok(MatrixPlan { is_stored: true, ..self.plan_of(Ok)? })
    }

    fn kept(&self) -> Result<Kept, CliError> {
        serde_json::from_str(&self.text(OPTIONS)?).map_err(|error| {
            CliError::usage(format!("{}: {error}", shown(&self.path.join(OPTIONS))))
        })
    }

    /// Read again from its file; from the copy if that file is gone.
    fn plan_of(
        &self,
        options: impl FnOnce(Options) -> Result<Options, CliError>,
    ) -> Result<MatrixPlan, CliError> {
        let kept = self.kept()?;
        let options = options(kept.options)?;
        let plan = if kept.file.is_file() {
            MatrixPlan::read(&kept.file, options)?
        } else {
            // It is read by its name later.
            self.text(SCENARIO)?;
            let scenario = self.path.join(SCENARIO);
            MatrixPlan::of_copies(&self.text(MATRIX)?, &scenario, &kept.file, options)?
        };
        Ok(self.as_decided(self.as_chosen(plan)))
    }

    /// The plan with what a search of the baseline chose to measure, if it did already.
    fn as_chosen(&self, plan: MatrixPlan) -> MatrixPlan {
        let text = read_text(&self.path.join(CHOSEN)).ok();
        let chosen = text.and_then(|text| serde_json::from_str::<Chosen>(&text).ok());
        match chosen.filter(|_| plan.matrix.first_search().is_some()) {
            Some(chosen) => plan.measuring(chosen),
            None => plan,
        }
    }

    /// Writes what the pairs measure: another throng might choose otherwise, and runs of different
    /// crowds cannot be compared.
    pub(super) fn choose(&self, chosen: &Chosen) -> Result<(), CliError> {
        let text = serde_json::to_string(chosen).map_err(CliError::invalid)?;
        self.put(CHOSEN, &text).map(drop)
    }

    /// The plan without the runs that were not needed.
    pub(super) fn as_decided(&self, plan: MatrixPlan) -> MatrixPlan {
        match self.decided().filter(|pairs| plan.looks.contains(pairs)) {
            Some(pairs) => plan.ending_after(pairs),
            None => plan,
        }
    }

    /// After how many pairs the proof was decided, if before its end.
    pub(super) fn decided(&self) -> Option<u32> {
        let text = read_text(&self.path.join(DECIDED)).ok()?;
        serde_json::from_str::<Decided>(&text).ok().map(|decided| decided.pairs)
    }

    /// Writes that no more runs are needed.
    pub(super) fn decide(&self, pairs: u32) -> Result<(), CliError> {
        let text = serde_json::to_string(&Decided { pairs }).map_err(CliError::invalid)?;
        self.put(DECIDED, &text).map(drop)
    }

    /// Runs of different files cannot be compared. A secret may be another one.
    pub(super) fn check_unchanged(&self, plan: &MatrixPlan) -> Result<(), CliError> {
        for (name, file, text) in
            [(MATRIX, &plan.file, &plan.text), (SCENARIO, &plan.scenario, &plan.scenario_text)]
        {
            let (kept, now) = (self.text(name)?, masked_toml(text));
            // Folders of versions that kept the secrets have the same without them.
            if kept != now && masked_toml(&kept) != now {
                return Err(CliError::usage(format!(
                    "{} has changed since this matrix began: its cells could not be compared. Undo the change \
                     ({} has what it was), or begin a new matrix",
                    file.display(),
                    self.path.join(name).display()
                )));
            }
        }
        Ok(())
    }

    /// The run folder of a run.
    pub(super) fn run_folder(&self, planned: &PlannedRun, plan: &MatrixPlan) -> PathBuf {
        self.path.join(relative(planned, plan))
    }

    /// How a run ended; `None` if it was not made.
    pub(super) fn record(&self, planned: &PlannedRun, plan: &MatrixPlan) -> Option<MatrixRun> {
        let text = read_text(&self.run_folder(planned, plan).join(RECORD)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Why another run of the same cell was skipped, if one was.
    pub(super) fn skipped(&self, planned: &PlannedRun, plan: &MatrixPlan) -> Option<String> {
        let earlier = (1..planned.repeat).map(|repeat| PlannedRun { repeat, ..planned.clone() });
        let skipped = earlier.filter_map(|earlier| self.record(&earlier, plan));
        skipped.filter(|run| run.status == RunStatus::Skipped).find_map(|run| run.reason)
    }

    /// Writes how a run ended. Its figures are measured again from its rows.
    pub(super) fn keep(
        &self,
        planned: &PlannedRun,
        plan: &MatrixPlan,
        run: &MatrixRun,
    ) -> Result<(), CliError> {
        let folder = self.run_folder(planned, plan);
        let wrong =
            |error| CliError::new(Exit::Invalid, anyhow::anyhow!("{}: {error}", folder.display()));
        create_private(&folder).map_err(wrong)?;
        let record = MatrixRun { figures: None, ..run.clone() };
        let text = serde_json::to_string_pretty(&record).map_err(CliError::invalid)?;
        RunFolder::open(&folder)
            .and_then(|folder| folder.put(RECORD, text))
            .map_err(CliError::invalid)?;
        Ok(())
    }

    pub(super) fn put(&self, name: &str, text: &str) -> Result<PathBuf, CliError> {
        RunFolder::open(&self.path)
            .and_then(|folder| folder.put(name, text))
            .map_err(CliError::invalid)
    }

    fn text(&self, name: &str) -> Result<String, CliError> {
        let path = self.path.join(name);
        read_text(&path).map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
    }
}

/// The run folder below the matrix's: `cells/04_files=30_storage=disk/1`.
pub(super) fn relative(planned: &PlannedRun, plan: &MatrixPlan) -> String {
    let cell = plan.cell(planned);
    let name = cell.map(|cell| plan.matrix.describe(cell)).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".=_-".contains(c);
    let name: String = name
        .replace(' ', "_")
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .take(NAME_MAX)
        .collect();
    let run = match planned.repeat {
        PlannedRun::NARROWED => "0-narrowed".to_owned(),
        repeat => repeat.to_string(),
    };
    format!("cells/{:02}_{name}/{run}", cell.map_or(0, |cell| cell.number))
}

#[cfg(test)]
mod tests {
    use super::super::options::Kind;
    use super::*;

    /// A test that waits for a writer does not end.
    #[test]
    fn pipes_and_links_at_the_names_of_its_files_are_not_read() {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = MatrixFolder { path: place.path().to_owned() };
        std::fs::write(place.path().join(DECIDED), "{\"pairs\":3}").unwrap();
        assert_eq!(folder.decided(), Some(3));
        std::fs::rename(place.path().join(DECIDED), outside.path().join("a")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("a"), place.path().join(DECIDED)).unwrap();
        assert_eq!(folder.decided(), None);
        for name in [RECORD, CHOSEN, SCENARIO] {
            let made = std::process::Command::new("mkfifo").arg(place.path().join(name)).status();
            assert!(made.unwrap().success());
            let error = folder.text(name).unwrap_err().error.to_string();
            assert!(error.ends_with("is no ordinary file"), "{error}");
        }
    }

    #[test]
    fn a_copy_without_secrets_is_not_run_in_place_of_its_file() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("proof.toml");
        let scenario =
            "[target]\nurl = \"whep+http://me:S3CRET@127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";
        std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
        let variants = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
        std::fs::write(&file, format!("scenario = \"viewers.toml\"\nhold = \"5s\"\n{variants}"))
            .unwrap();
        let options = Options { kind: Kind::Proof, is_sequential: true, ..Options::default() };
        let plan =
            MatrixPlan::read(&file, options).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        let folder = MatrixFolder::create(&place.path().join("out"), &plan)
            .unwrap_or_else(|stop| panic!("{:#}", stop.error));
        assert!(folder.plan(&[]).is_ok(), "its file has all");
        std::fs::remove_file(&file).unwrap();
        let refused = folder.plan(&[]).map(drop).unwrap_err().error.to_string();
        let flag = "--set 'target.url=whep+http://…@127.0.0.1:7080/whep'";
        assert!(refused.contains(flag), "{refused}");
        assert!(folder.stored_plan().is_ok(), "a report needs no secrets");
        let again = "target.url=whep+http://me:S3CRET@127.0.0.1:7080/whep".to_owned();
        assert!(folder.plan(&[again]).is_ok());
    }

    #[test]
    fn lists_with_secrets_are_given_again_when_the_file_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("proof.toml");
        let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n\
            [[watch]]\ncommand = [\"server\", \"--token\", \"S3CRET\"]\n\
            metrics = [\"http://me:S3CRET@h/m\", \"http://me:S3CRET@h/n\"]\n";
        std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
        let variants = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
        std::fs::write(&file, format!("scenario = \"viewers.toml\"\nhold = \"5s\"\n{variants}"))
            .unwrap();
        let options = Options { kind: Kind::Proof, is_sequential: true, ..Options::default() };
        let plan =
            MatrixPlan::read(&file, options).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        let folder = MatrixFolder::create(&place.path().join("out"), &plan)
            .unwrap_or_else(|stop| panic!("{:#}", stop.error));
        std::fs::remove_file(&file).unwrap();
        let refused = folder.plan(&[]).map(drop).unwrap_err().error.to_string();
        let flag = r#"--set 'watch.metrics=["http://…@h/m", "http://…@h/n"]'"#;
        assert!(refused.contains(flag), "{refused}");
        let metrics = r#"watch.metrics=["http://me:S3CRET@h/m", "http://me:S3CRET@h/n"]"#;
        for (command, is_same) in [
            (r#"watch.command=["server", "--token", "S3CRET"]"#, true),
            (r#"watch.command=["other", "--token", "S3CRET"]"#, false),
            (r#"watch.command=["server", "--token", "…"]"#, false),
            (r#"watch.command=["S3CRET"]"#, false),
        ] {
            let given = [metrics, command].map(str::to_owned);
            assert_eq!(folder.plan(&given).is_ok(), is_same, "{command}");
        }
        assert!(folder.plan(&[metrics.to_owned()]).is_err(), "the command is missing");
    }
}
