//! What a page is made from: the files that a command writes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use throng_folder::{Folder, is_at_work};
use throng_report::ReportRows;
use throng_report::html::live::Served;
use throng_report::matrix::MatrixReport;
use throng_store::HostFile;

use crate::kept::{FolderKind, OptionsFile};
use crate::{kept, report};

/// What a page is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A run folder, of a finished or a current run.
    Run(PathBuf),
    /// The folder of a matrix or a proof.
    Matrix(PathBuf),
    /// The file of a watch.
    Watch {
        /// A database of hosts.
        file: PathBuf,
        /// What is watched, in words.
        title: String,
    },
}

/// When files were written, and how long they are: as long as it is the same, so is the page.
pub(crate) type Stamp = Vec<Option<(SystemTime, u64)>>;

/// The stamp of files; of one that is not there `None`.
pub(crate) fn stamp_of(files: impl IntoIterator<Item = PathBuf>) -> Stamp {
    let stamp = |file: PathBuf| {
        let found = file.symlink_metadata().ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    files.into_iter().map(stamp).collect()
}

/// The folder in that of a matrix that has those of its runs, by cell and repeat.
const CELLS: &str = "cells";

impl Source {
    /// That of a folder.
    pub(crate) fn of(kind: FolderKind, folder: PathBuf) -> Self {
        match kind {
            FolderKind::Run | FolderKind::Report => Self::Run(folder),
            FolderKind::Matrix => Self::Matrix(folder),
        }
    }

    /// The run of a matrix that a path below its page leads to: the run's part of the path, its
    /// folder, to which no link led, and the rest of the path.
    pub(super) fn run_at<'p>(&self, path: &'p str) -> Option<(&'p str, Self, &'p str)> {
        let Self::Matrix(matrix) = self else { return None };
        let (run, rest) = run_part(path)?;
        let mut folder = matrix.clone();
        for name in run.split('/') {
            folder.push(name);
            Folder::open_itself(&folder).ok()?;
        }
        Some((run, Self::Run(folder), rest))
    }

    /// The stamp of its files, and whether a process is at work in its folder: one that is killed
    /// writes nothing more, and the page is another one all the same.
    pub(super) fn stamp(&self) -> (Stamp, bool) {
        match self {
            Self::Run(folder) => (stamp_of(with_log(&folder.join("run.db"))), is_at_work(folder)),
            Self::Matrix(folder) => (stamp_of([folder.join("matrix.json")]), is_at_work(folder)),
            // Only its own command makes its page.
            Self::Watch { file, .. } => (stamp_of(with_log(file)), true),
        }
    }

    /// Makes the page. An error is a sentence.
    pub(super) fn render(&self, served: &Served<'_>) -> Result<String, String> {
        match self {
            Self::Run(folder) => {
                let run = report::read(folder, &mut ReportRows::default());
                let run = run.map_err(|error| error.to_string())?;
                Ok(served.run(&run, &report::summary(&run)))
            }
            Self::Matrix(folder) => {
                let Some(mut matrix) = kept::read_json::<MatrixReport>(folder, "matrix.json")?
                else {
                    return Ok(unanswered(folder, served));
                };
                // Links lead to pages below this one alone.
                for run in matrix.cells.iter_mut().flat_map(|cell| &mut cell.runs) {
                    run.folder = run.folder.take().filter(|folder| is_run(folder));
                }
                Ok(served.matrix(&matrix))
            }
            Self::Watch { file, title } => {
                let run = HostFile::read(file).map_err(|error| error.to_string())?;
                Ok(served.watch(title, &run))
            }
        }
    }
}

/// The first part of a path that can be a run of a matrix, `cells/CELL/REPEAT`, and what follows.
fn run_part(path: &str) -> Option<(&str, &str)> {
    let end = path.match_indices('/').nth(2)?.0;
    let (run, rest) = path.split_at_checked(end)?;
    let rest = rest.strip_prefix('/')?;
    let mut names = run.split('/');
    let is_cells = names.next() == Some(CELLS);
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('.');
    (is_cells && names.all(is_name)).then_some((run, rest))
}

/// Whether a folder of a report can be that of a run.
fn is_run(folder: &str) -> bool {
    run_part(&format!("{folder}/")) == Some((folder, ""))
}

/// The page of a matrix or a proof without an answer.
fn unanswered(folder: &Path, served: &Served<'_>) -> String {
    if is_at_work(folder) {
        return served.message("in progress", "Its page comes with the first run.");
    }
    let options = kept::read_json::<OptionsFile>(folder, kept::OPTIONS);
    let (kind, command) = options.ok().flatten().unwrap_or_default().kind();
    let help = format!(
        "Not all runs of this {kind} are done, and no process of this machine is at it: `throng \
         {command} --resume` continues it."
    );
    served.message("not finished", &help)
}

/// A database, and the log beside it in which the last seconds are (SQLite's write-ahead log).
fn with_log(database: &Path) -> [PathBuf; 2] {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    [database.to_owned(), log.into()]
}

#[cfg(test)]
mod tests {
    use throng_folder::AtWork;
    use throng_report::html::live::ServedBy;

    use super::*;

    const SERVED: Served<'_> = Served { nonce: "", strip: "", by: ServedBy::Serve };

    #[test]
    fn a_page_is_as_new_as_the_database_and_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Run(folder.path().to_owned());
        assert_eq!(source.stamp(), (vec![None, None], false));
        std::fs::write(folder.path().join("run.db"), "1").unwrap();
        let first = source.stamp();
        std::fs::write(folder.path().join("run.db-wal"), "2").unwrap();
        let second = source.stamp();
        assert_ne!(second, first);
        let _at_work = AtWork::begin(folder.path()).unwrap();
        assert_ne!(source.stamp(), second, "it is another page once its process is gone");
        assert!(source.render(&SERVED).is_err(), "no database");
    }

    #[test]
    fn the_runs_of_a_matrix_are_found_below_it_and_never_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        let matrix = place.path().join("matrix");
        let run = matrix.join("cells/01_a/1");
        for folder in [&outside, &run] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(&outside, matrix.join("cells/01_a/2")).unwrap();
        std::os::unix::fs::symlink(place.path(), matrix.join("cells/02_b")).unwrap();
        let source = Source::Matrix(matrix);
        let found = |path: &'static str| source.run_at(path);
        assert_eq!(found("cells/01_a/1/"), Some(("cells/01_a/1", Source::Run(run.clone()), "")));
        let events = Some(("cells/01_a/1", Source::Run(run), "events"));
        assert_eq!(found("cells/01_a/1/events"), events);
        for path in [
            "",
            "events",
            "cells/01_a/1",
            "cells/01_a/2/",
            "cells/01_a/3/",
            "cells/02_b/outside/",
            "cells/../outside/",
            "cells/01_a/../",
            "cells//1/",
            "other/01_a/1/",
        ] {
            assert_eq!(found(path), None, "{path}");
        }
    }

    #[test]
    fn the_runs_of_a_matrix_have_links_that_lead_below_it_alone() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Matrix(folder.path().to_owned());
        assert!(source.render(&SERVED).unwrap().contains("`throng matrix --resume`"));
        let at_work = AtWork::begin(folder.path()).unwrap();
        assert!(source.render(&SERVED).unwrap().contains("in progress"));
        drop(at_work);
        let mut matrix = MatrixReport { headline: "two cells".into(), ..MatrixReport::default() };
        let folders = ["cells/1/1", "cells/../..", "javascript:alert(1)//", "/etc/x/y", "cells/1"];
        let run = |folder: &str| throng_report::matrix::MatrixRun {
            folder: Some(folder.into()),
            ..Default::default()
        };
        let runs = Vec::from(folders.map(run));
        let cell = throng_report::matrix::MatrixCell { runs, ..Default::default() };
        matrix.cells.push(cell);
        std::fs::write(folder.path().join("matrix.json"), matrix.to_json()).unwrap();
        let page = source.render(&SERVED).unwrap();
        assert!(page.contains("two cells"), "{page}");
        let links: Vec<&str> = page.split("<a href=\"").skip(1).collect();
        let mut led: Vec<&str> = links.iter().filter_map(|link| link.split('"').next()).collect();
        led.retain(|link| !link.starts_with('#'));
        led.dedup();
        assert_eq!(led, ["cells/1/1/report.html"], "{page}");
    }
}
