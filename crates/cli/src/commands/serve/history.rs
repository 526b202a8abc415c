//! The pages of a folder of runs: the list, each run, comparisons and trends.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode};
use throng_folder::Folder;
use throng_observation::calendar;
use throng_report::html::live::{HistoryRow, ServedBy, history};

use super::named::{Named, in_path, in_query};
use crate::commands::compare;
use crate::commands::runs::{Known, again, ended, remarks};
use crate::console::CliError;
use crate::http_server::{Reply, Site, document, is_read, only_read, text};
use crate::page::{Pages, Source, new_nonce, policy, say_dropped};

/// How long a list is shown again.
const LIST_LASTS: Duration = Duration::from_secs(1);
/// Most runs of a trend.
const TREND_MAX: usize = 100;

/// What pages may do that were made to be files: nothing but run their own scripts.
const OF_FILES: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src \
                        'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; \
                        frame-ancestors 'none'";

/// The pages of a folder of runs.
pub(super) struct HistorySite {
    folder: PathBuf,
    known: Known,
    /// When the runs were listed, newest first.
    listed_at: Instant,
    runs: Vec<Named>,
    /// What could not be looked at, in sentences.
    unreadable: Vec<String>,
    /// By the names of the runs in URLs.
    pages: Pages,
    nonce: String,
}

impl HistorySite {
    /// Of a folder that can be listed.
    pub(super) fn of(folder: &Path) -> Result<Self, CliError> {
        let mut known = Known::default();
        let listed = again(folder, &mut known)?;
        Ok(Self {
            folder: folder.to_owned(),
            known,
            listed_at: Instant::now(),
            runs: listed.entries.into_iter().map(Named::of).collect(),
            unreadable: listed.unreadable,
            pages: Pages::new(ServedBy::Serve)?,
            nonce: new_nonce()?,
        })
    }

    /// Lists the runs anew, if that is due.
    fn list(&mut self) {
        if self.listed_at.elapsed() < LIST_LASTS {
            return;
        }
        // A folder that is gone for a moment keeps its list.
        if let Ok(listed) = again(&self.folder, &mut self.known) {
            self.runs = listed.entries.into_iter().map(Named::of).collect();
            self.unreadable = listed.unreadable;
        }
        self.listed_at = Instant::now();
    }

    fn overview(&self) -> Response<Full<Bytes>> {
        let rows: Vec<HistoryRow> = self.runs.iter().map(row).collect();
        let folder = self.folder.display().to_string();
        let page = history(&folder, &rows, &self.unreadable, &self.nonce);
        document(StatusCode::OK, page.into(), &policy(&self.nonce))
    }

    /// The page of a run (`/RUN/`), what changes of it (`/RUN/events`), and the same of the runs of
    /// a matrix below it.
    fn of_run(&mut self, path: &str) -> Option<Reply> {
        let (name, what) = path.strip_prefix('/')?.split_once('/')?;
        let run = in_path(&self.runs, name)?;
        // It may have become a link since it was listed.
        check_is_itself(&run.entry.path).ok()?;
        let source = Source::found(run.entry.folder_kind, run.entry.path.clone());
        self.pages.answer(&run.address, source, what)
    }

    /// Two runs in comparison; an error says what to ask for.
    fn comparison(&self, query: &str) -> Result<Reply, String> {
        let chosen = in_query(&self.runs, query)?;
        let [new, base] = chosen.as_slice() else {
            return Err("choose two runs: the older one is the base".into());
        };
        let [base, new] = [base, new].map(|run| [run.entry.path.clone()]);
        Ok(later(move || {
            base.iter().chain(&new).try_for_each(|run| check_is_itself(run))?;
            compare::comparison_page(&base, &new)
        }))
    }

    /// The same of a trend.
    fn trend(&self, query: &str) -> Result<Reply, String> {
        let chosen = in_query(&self.runs, query)?;
        if chosen.is_empty() || chosen.len() > TREND_MAX {
            return Err(format!("choose 1 to {TREND_MAX} runs"));
        }
        let paths: Vec<PathBuf> = chosen.iter().map(|run| run.entry.path.clone()).collect();
        Ok(later(move || {
            paths.iter().try_for_each(|run| check_is_itself(run))?;
            compare::trend_page(&paths)
        }))
    }
}

impl Site for HistorySite {
    const GIVES_WAY: bool = true;

    fn answer(&mut self, request: &Request<()>) -> Reply {
        if !is_read(request) {
            return only_read().into();
        }
        self.list();
        let query = request.uri().query().unwrap_or_default();
        match request.uri().path() {
            "/" => self.overview().into(),
            "/compare" => self.comparison(query).unwrap_or_else(unclear),
            "/trend" => self.trend(query).unwrap_or_else(unclear),
            path => self.of_run(path).unwrap_or_else(|| {
                let help = "There is no such run; the list is at /, a run at /RUN/.\n";
                text(StatusCode::NOT_FOUND, help.into()).into()
            }),
        }
    }

    fn each_second(&mut self) {
        self.pages.each_second();
    }

    fn end(&mut self) {
        say_dropped(self.pages.end());
    }
}

/// That the folder of a listed run is no link.
fn check_is_itself(run: &Path) -> Result<(), CliError> {
    let opened = Folder::open_itself(run).map(drop);
    opened.map_err(|error| CliError::usage(format!("{}: {error}", run.display())))
}

/// A page for which runs are read as a whole.
fn later(make: impl FnOnce() -> Result<String, CliError> + Send + 'static) -> Reply {
    Reply::Later(Box::new(move || match make() {
        Ok(page) => document(StatusCode::OK, page.into(), OF_FILES),
        Err(stop) => text(StatusCode::UNPROCESSABLE_ENTITY, format!("{:#}\n", stop.error)),
    }))
}

/// The answer to what makes no sense.
fn unclear(mut help: String) -> Reply {
    help.push('\n');
    text(StatusCode::BAD_REQUEST, help).into()
}

/// A run as a row of the list.
fn row(run: &Named) -> HistoryRow {
    let Named { address, entry } = run;
    HistoryRow {
        name: entry.id.clone(),
        address: address.clone(),
        began: entry.started_at_unix_us.map_or_else(|| "?".into(), calendar::shown),
        kind: entry.kind.clone(),
        outcome: ended(entry),
        scenario: entry.scenario.clone().unwrap_or_default(),
        target: entry.target.clone().unwrap_or_default(),
        answer: entry.headline.clone().unwrap_or_default(),
        cause: entry.cause.clone().unwrap_or_default(),
        remarks: remarks(entry).join("; "),
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;
    use throng_observation::run::{Ending, RunInfo};
    use throng_store::RunFolder;

    use super::*;
    use crate::kept::FolderKind;

    #[test]
    fn the_page_of_a_run_is_made_by_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path().join("run"), &RunInfo::default()).unwrap();
        run.finish(Ending::Complete, RunTime(5_000_000)).unwrap();
        let mut site = HistorySite::of(folder.path()).unwrap();
        assert!(site.of_run("/run/").is_some() && site.of_run("/run/cells/01_a/1/").is_none());
        std::fs::create_dir_all(folder.path().join("run/cells/01_a/1")).unwrap();
        assert!(site.of_run("/run/cells/01_a/1/").is_none(), "a run has none below it");
        site.runs.iter_mut().for_each(|run| run.entry.folder_kind = FolderKind::Matrix);
        assert!(site.of_run("/run/").is_some() && site.of_run("/run/cells/01_a/1/").is_some());
    }

    #[test]
    fn a_run_that_becomes_a_link_is_neither_shown_nor_compared() {
        let (place, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [run, moved] = [folder.path().join("run"), place.path().join("run")];
        let writer = RunFolder::create(&run, &RunInfo::default()).unwrap();
        writer.finish(Ending::Complete, RunTime(5_000_000)).unwrap();
        let mut site = HistorySite::of(folder.path()).unwrap();
        std::fs::rename(&run, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &run).unwrap();
        assert!(site.of_run("/run/").is_none());
        let query = format!("runs={}", site.runs[0].address);
        let Ok(Reply::Later(make)) = site.trend(&query) else { panic!("no page: {query}") };
        assert_eq!(make().status(), StatusCode::UNPROCESSABLE_ENTITY);
    }
}
