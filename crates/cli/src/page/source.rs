//! What a page is made from: the files that a command writes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use throng_report::ReportRows;
use throng_report::html::live::Served;
use throng_report::matrix::MatrixReport;
use throng_store::HostFile;

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

impl Source {
    pub(super) fn stamp(&self) -> Stamp {
        match self {
            Self::Run(folder) => stamp_of(with_log(&folder.join("run.db"))),
            Self::Matrix(folder) => stamp_of([folder.join("matrix.json")]),
            Self::Watch { file, .. } => stamp_of(with_log(file)),
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
                    let help = "Its page comes when all of its runs are done.";
                    return Ok(served.message("in progress", help));
                };
                // Their pages are not below this one.
                for run in matrix.cells.iter_mut().flat_map(|cell| &mut cell.runs) {
                    run.folder = None;
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

/// A database, and the log beside it in which the last seconds are (SQLite's write-ahead log).
fn with_log(database: &Path) -> [PathBuf; 2] {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    [database.to_owned(), log.into()]
}

#[cfg(test)]
mod tests {
    use throng_report::html::live::ServedBy;

    use super::*;

    const SERVED: Served<'_> = Served { nonce: "", strip: "", by: ServedBy::Serve };

    #[test]
    fn a_page_is_as_new_as_the_database_and_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Run(folder.path().to_owned());
        assert_eq!(source.stamp(), [None, None]);
        std::fs::write(folder.path().join("run.db"), "1").unwrap();
        let first = source.stamp();
        std::fs::write(folder.path().join("run.db-wal"), "2").unwrap();
        assert_ne!(source.stamp(), first);
        assert!(source.render(&SERVED).is_err(), "no database");
    }

    #[test]
    fn the_runs_of_a_matrix_have_no_links_that_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Matrix(folder.path().to_owned());
        assert!(source.render(&SERVED).unwrap().contains("in progress"));
        let mut matrix = MatrixReport { headline: "two cells".into(), ..MatrixReport::default() };
        let run = throng_report::matrix::MatrixRun {
            folder: Some("cells/1/1".into()),
            ..Default::default()
        };
        let runs = vec![run];
        let cell = throng_report::matrix::MatrixCell { runs, ..Default::default() };
        matrix.cells.push(cell);
        std::fs::write(folder.path().join("matrix.json"), matrix.to_json()).unwrap();
        let page = source.render(&SERVED).unwrap();
        assert!(page.contains("two cells") && !page.contains("href=\"cells"), "{page}");
    }
}
