//! One folder as a line of the list: what it is, how it ended, what is wrong with it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use throng_folder::is_at_work;
use throng_observation::run::{Ending, RunData};
use throng_store::RunFolder;

use crate::kept::{
    FolderKind, KeptCommand, Labels, MatrixFile, OPTIONS, OptionsFile, SummaryFile, read_json,
};

/// Outcomes of runs without a `summary.json` to tell. A process is at work in the folder.
const IN_PROGRESS: &str = "in_progress";
/// None is, and there is no ending.
const UNFINISHED: &str = "unfinished";
const BROKEN: &str = "broken";
/// It ended, and its report was not made.
const UNREPORTED: &str = "unreported";
/// Of a matrix, whose cells have outcomes of their own.
const DONE: &str = "done";

/// Folders below this depth are not measured: those of a matrix are three levels deep.
const DEPTH_MAX: u32 = 8;
/// An unfinished run that was written to within this time may be in progress all the same, where
/// nobody can know it.
const FRESH: Duration = Duration::from_secs(600);

/// A run in the list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// The folder's name.
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    #[serde(skip)]
    pub(crate) folder_kind: FolderKind,
    /// Microseconds since the Unix epoch; `null` if not known.
    pub(crate) started_at_unix_us: Option<i64>,
    /// `run`, `view`, `find`, `matrix` or `proof`.
    pub(crate) kind: String,
    /// The name of the scenario's file, or the target.
    pub(crate) scenario: Option<String>,
    /// What was loaded; `null` if not known.
    pub(crate) target: Option<String>,
    /// `met`, `missed`, `disputed`, `invalid`, `error`; `in_progress`; without a summary
    /// `unfinished` or `unreported`; `broken`; `done` of a matrix.
    pub(crate) outcome: String,
    /// `complete`, `interrupted`, `aborted`, `unfinished`; `null` if not known.
    pub(super) ending: Option<String>,
    pub(crate) headline: Option<String>,
    /// What limited the server, in a sentence; `null` if nothing did, or it is not known.
    pub(crate) cause: Option<String>,
    #[serde(flatten)]
    pub(crate) labels: Labels,
    /// It may have labels, which cannot be read.
    #[serde(skip)]
    pub(super) has_unread_labels: bool,
    pub(super) size_bytes: u64,
    /// What is wrong with the folder, in sentences.
    pub(crate) problems: Vec<String>,
    /// Why it must not be deleted; `None` if it may be.
    #[serde(skip)]
    pub(super) kept_because: Option<String>,
}

impl Entry {
    /// The run in a folder; `None` if it is no run folder of throng.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let folder_kind = FolderKind::of(path)?;
        let files = Files::of(path);
        let id = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let id =
            id.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut entry = Self {
            id,
            path: path.to_owned(),
            folder_kind,
            started_at_unix_us: None,
            kind: "run".into(),
            scenario: None,
            target: None,
            outcome: BROKEN.into(),
            ending: None,
            headline: None,
            cause: None,
            labels: Labels::default(),
            has_unread_labels: false,
            size_bytes: files.bytes,
            problems: Vec::new(),
            kept_because: None,
        };
        match Labels::read(path) {
            Ok(labels) => entry.labels = labels,
            Err(problem) => {
                entry.has_unread_labels = true;
                entry.problems.push(problem);
            }
        }
        let began = match folder_kind {
            FolderKind::Matrix => {
                entry.fill_matrix();
                OPTIONS
            }
            FolderKind::Run | FolderKind::Report => {
                entry.fill_run();
                "run.db"
            }
        };
        entry.started_at_unix_us = entry.started_at_unix_us.filter(|at| *at > 0).or_else(|| {
            let at = path.join(began).symlink_metadata().and_then(|found| found.modified()).ok()?;
            i64::try_from(at.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_micros()).ok()
        });
        let is_fresh = files.newest.is_some_and(|at| at.elapsed().is_ok_and(|age| age < FRESH));
        if entry.is_in_progress() {
            entry.kept_because = Some("it is in progress".into());
        } else if is_at_work(path) {
            // Whatever its files say: its report may be in the making.
            entry.kept_because = Some("a process is at work in it".into());
        } else if entry.has_no_ending() && is_fresh {
            entry.kept_because = Some("it was in progress a few minutes ago".into());
        }
        Some(entry)
    }

    /// Whether a process is at work in the folder.
    pub(super) fn is_in_progress(&self) -> bool {
        self.outcome == IN_PROGRESS
    }

    /// The outcome may be that of a report which was made nevertheless.
    fn has_no_ending(&self) -> bool {
        self.outcome == UNFINISHED || self.ending.as_deref() == Some(Ending::Unfinished.key())
    }

    fn fill_run(&mut self) {
        match KeptCommand::read(&self.path) {
            Ok(Some(asked)) => {
                (self.kind, self.scenario) = (asked.command().to_owned(), Some(asked.name()));
            }
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
        let has_asked = self.scenario.is_some();
        let summary = match read_json::<SummaryFile>(&self.path, "summary.json") {
            Ok(summary) => summary,
            Err(problem) => {
                self.problems.push(format!("{problem}; `throng report` makes it again"));
                None
            }
        };
        if let Some(summary) = summary {
            self.started_at_unix_us = Some(summary.started_at_unix_us);
            self.scenario.get_or_insert_with(|| summary.target.clone());
            self.target = Some(summary.target);
            self.cause = summary.bottleneck.map(|found| found.title);
            if !has_asked && summary.capacity.is_some() {
                self.kind = "find".into();
            }
            self.ending = Some(summary.ending);
            // What was known in the middle is not what came of it.
            if !summary.in_progress {
                (self.headline, self.outcome) = (Some(summary.headline), summary.outcome);
            }
        }
        if self.folder_kind == FolderKind::Report {
            self.outcome = BROKEN.into();
            self.problems.push("there is no run.db, so its report cannot be made again".into());
            self.kept_because = Some("it has no run.db".into());
            return;
        }
        // The database is opened only where the small files do not tell.
        let has_ended = self.ending.is_some() && !self.has_no_ending();
        if has_ended && is_database(&self.path.join("run.db")) {
            return;
        }
        match RunFolder::outline(&self.path) {
            Ok(run) => {
                self.started_at_unix_us = Some(run.info.started_at_unix_us);
                self.scenario.get_or_insert_with(|| run.info.target.clone());
                self.target.get_or_insert_with(|| run.info.target.clone());
                if !has_asked && !run.holds.is_empty() {
                    self.kind = "find".into();
                }
                self.judge(&run);
            }
            Err(error) => {
                self.outcome = BROKEN.into();
                self.problems.push(error.to_string());
                self.kept_because = Some("its run.db is not one that throng can read".into());
            }
        }
    }

    /// The outcome by the database, where the summary does not tell it.
    fn judge(&mut self, run: &RunData) {
        self.ending = Some(run.ending.key().to_owned());
        let (outcome, state) = match run.ending {
            Ending::Unfinished if run.in_progress => (IN_PROGRESS, None),
            _ if self.headline.is_some() => return,
            Ending::Unfinished => {
                (UNFINISHED, Some("its end is not recorded, and no process here writes it"))
            }
            Ending::Complete | Ending::Interrupted | Ending::Aborted => {
                (UNREPORTED, Some("it has no summary"))
            }
        };
        self.outcome = outcome.into();
        if let Some(state) = state.filter(|_| self.problems.is_empty()) {
            self.problems.push(format!("{state}; `throng report` makes its report"));
        }
    }

    fn fill_matrix(&mut self) {
        let options = read_json::<OptionsFile>(&self.path, OPTIONS);
        let (kind, command) = options.ok().flatten().unwrap_or_default().kind();
        self.kind = kind.into();
        let is_written = is_at_work(&self.path);
        self.outcome = if is_written { IN_PROGRESS } else { UNFINISHED }.into();
        let is_open = match read_json::<MatrixFile>(&self.path, "matrix.json") {
            Ok(Some(matrix)) => {
                self.headline = Some(matrix.headline);
                self.scenario = matrix.name;
                matrix.partial
            }
            Ok(None) => true,
            Err(problem) => {
                self.problems.push(problem);
                return;
            }
        };
        match (is_written, is_open) {
            (true, _) => {}
            (false, true) => self.problems.push(format!(
                "runs are missing, and no process here makes them; `throng {command} --resume` does"
            )),
            (false, false) => self.outcome = DONE.into(),
        }
    }
}

/// Whether a file begins as a database of SQLite does.
fn is_database(path: &Path) -> bool {
    use std::io::Read as _;
    let mut head = [0; 16];
    throng_folder::read(path).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && head == *b"SQLite format 3\0"
}

/// The files of a folder, links not followed.
#[derive(Debug, Default)]
struct Files {
    bytes: u64,
    newest: Option<SystemTime>,
}

impl Files {
    fn of(path: &Path) -> Self {
        let mut files = Self::default();
        files.add(path, 0);
        files
    }

    fn add(&mut self, folder: &Path, depth: u32) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            // Of the link itself, not of what it leads to.
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                if depth < DEPTH_MAX {
                    self.add(&entry.path(), depth + 1);
                }
                continue;
            }
            self.bytes += found.len();
            self.newest = self.newest.max(found.modified().ok());
        }
    }
}
