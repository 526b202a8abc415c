//! What a page is made from: the files that a command writes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use throng_folder::{Folder, is_at_work};
use throng_report::ReportRows;
use throng_report::html::live::{Served, ServedBy};
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
    /// Another one in a folder that was found: so many names at the end of its path, which nobody
    /// who started throng chose, must be no links whenever it is read.
    Found(Box<Self>, usize),
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
/// The names of the folder of a run below that of its matrix.
const NAMES_OF_RUN: usize = 3;

impl Source {
    /// That of a folder.
    pub(crate) fn of(kind: FolderKind, folder: PathBuf) -> Self {
        match kind {
            FolderKind::Run | FolderKind::Report => Self::Run(folder),
            FolderKind::Matrix => Self::Matrix(folder),
        }
    }

    /// That of a folder whose last name was found in another one.
    pub(crate) fn found(kind: FolderKind, folder: PathBuf) -> Self {
        Self::Found(Box::new(Self::of(kind, folder)), 1)
    }

    /// The run of a matrix that a path below its page leads to: the run's part of the path, its
    /// folder, to which no link leads, and the rest of the path.
    pub(super) fn run_at<'p>(&self, path: &'p str) -> Option<(&'p str, Self, &'p str)> {
        let (matrix, names) = match self {
            Self::Matrix(matrix) => (matrix, 0),
            Self::Found(of, names) => match &**of {
                Self::Matrix(matrix) => (matrix, *names),
                Self::Run(_) | Self::Found(..) | Self::Watch { .. } => return None,
            },
            Self::Run(_) | Self::Watch { .. } => return None,
        };
        let (run, rest) = run_part(path)?;
        let folder = Self::Run(matrix.join(run));
        let run_names = names + NAMES_OF_RUN;
        folder.check_is_itself(run_names).ok()?;
        Some((run, Self::Found(Box::new(folder), run_names), rest))
    }

    /// That none of so many names at the end of its path is a link. An error is a sentence.
    fn check_is_itself(&self, names: usize) -> Result<(), String> {
        let path = match self {
            Self::Run(folder) | Self::Matrix(folder) => folder,
            Self::Watch { file, .. } => file,
            Self::Found(of, more) => return of.check_is_itself(names.max(*more)),
        };
        path.ancestors().take(names).try_for_each(|folder| {
            let opened = Folder::open_itself(folder).map(drop);
            opened.map_err(|error| format!("{}: {error}", folder.display()))
        })
    }

    /// The stamp of its files, and whether a process is at work in its folder: one that is killed
    /// writes nothing more, and the page is another one all the same.
    pub(super) fn stamp(&self) -> (Stamp, bool) {
        match self {
            Self::Run(folder) => (stamp_of(with_log(&folder.join("run.db"))), is_at_work(folder)),
            Self::Matrix(folder) => (stamp_of([folder.join("matrix.json")]), is_at_work(folder)),
            Self::Found(of, names) => {
                of.check_is_itself(*names).map(|()| of.stamp()).unwrap_or_default()
            }
            // Only its own command makes its page.
            Self::Watch { file, .. } => (stamp_of(with_log(file)), true),
        }
    }

    /// Makes the page. An error is a sentence.
    pub(super) fn render(&self, served: &Served<'_>) -> Result<String, String> {
        match self {
            Self::Run(folder) if folder.is_dir() && FolderKind::of(folder).is_none() => {
                let help = "The page appears here by itself, once its server is ready.";
                Ok(served.message("throng is about to begin", help))
            }
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
                if matrix.partial && !is_being_made(folder, served) {
                    matrix.notes.push(how_to_continue(folder));
                }
                Ok(served.matrix(&matrix))
            }
            Self::Found(of, names) => {
                of.check_is_itself(*names)?;
                of.render(served)
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
    if is_being_made(folder, served) {
        return served.message("in progress", "The page appears here with the first run.");
    }
    served.message("not finished", &how_to_continue(folder))
}

/// Whether somebody makes the runs of a matrix or a proof, as whoever serves its page does, on file
/// systems without locks too.
fn is_being_made(folder: &Path, served: &Served<'_>) -> bool {
    served.by == ServedBy::Experiment || is_at_work(folder)
}

/// What is said of a matrix or a proof with missing runs that nobody makes.
fn how_to_continue(folder: &Path) -> String {
    let options = kept::read_json::<OptionsFile>(folder, kept::OPTIONS);
    let (kind, command) = options.ok().flatten().unwrap_or_default().kind();
    format!(
        "Runs of this {kind} are missing, and no process of this machine makes them: `throng \
         {command} --resume` does."
    )
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
    }

    #[test]
    fn a_run_whose_server_is_not_ready_is_about_to_begin() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Run(folder.path().to_owned());
        assert!(source.render(&SERVED).unwrap().contains("about to begin"));
        std::fs::write(folder.path().join("run.db"), "").unwrap();
        assert!(source.render(&SERVED).is_err(), "no database");
        assert!(Source::Run(folder.path().join("absent")).render(&SERVED).is_err());
    }

    #[test]
    fn a_folder_that_becomes_a_link_is_not_read_through_it() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        std::fs::create_dir_all(outside.join("1")).unwrap();
        std::fs::write(outside.join("1/run.db"), "").unwrap();
        let (study, cell) = (place.path().join("study"), place.path().join("study/cells/01_a"));
        std::fs::create_dir_all(cell.join("1")).unwrap();
        std::fs::write(cell.join("1/run.db"), "").unwrap();
        let of_list = Source::found(FolderKind::Matrix, study);
        let (_, run, _) = of_list.run_at("cells/01_a/1/").unwrap();
        assert_ne!(run.stamp(), Default::default());
        std::fs::remove_dir_all(&cell).unwrap();
        std::os::unix::fs::symlink(&outside, &cell).unwrap();
        assert_eq!(run.stamp(), Default::default());
        let error = run.render(&SERVED).unwrap_err();
        assert!(error.contains("01_a: "), "{error}");
        let linked = place.path().join("linked");
        std::os::unix::fs::symlink(outside.join("1"), &linked).unwrap();
        let found = Source::found(FolderKind::Run, linked.clone());
        assert!(found.stamp() == Default::default() && found.render(&SERVED).is_err());
        assert_ne!(Source::Run(linked).stamp(), Default::default(), "named by the user");
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
        let run = Source::Found(Box::new(Source::Run(run)), 3);
        assert_eq!(found("cells/01_a/1/"), Some(("cells/01_a/1", run.clone(), "")));
        let events = Some(("cells/01_a/1", run, "events"));
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
        assert!(page.contains("two cells") && !page.contains("--resume"), "{page}");
        let links: Vec<&str> = page.split("<a href=\"").skip(1).collect();
        let mut led: Vec<&str> = links.iter().filter_map(|link| link.split('"').next()).collect();
        led.retain(|link| !link.starts_with('#'));
        led.dedup();
        assert_eq!(led, ["cells/1/1/report.html"], "{page}");
    }

    #[test]
    fn an_answer_so_far_at_which_nobody_is_says_how_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Matrix(folder.path().to_owned());
        let matrix = MatrixReport { partial: true, ..MatrixReport::default() };
        std::fs::write(folder.path().join("matrix.json"), matrix.to_json()).unwrap();
        assert!(source.render(&SERVED).unwrap().contains("--resume"));
        let own = Served { by: ServedBy::Experiment, ..SERVED };
        assert!(!source.render(&own).unwrap().contains("--resume"));
        let _at_work = AtWork::begin(folder.path()).unwrap();
        assert!(!source.render(&SERVED).unwrap().contains("--resume"));
    }
}
