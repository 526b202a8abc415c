//! The pages of a folder of runs: the list, each run, comparisons and trends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode};
use throng_folder::Folder;
use throng_observation::calendar;
use throng_report::html::live::{HistoryRow, Served, history};

use super::named::{Named, in_path, in_query};
use crate::commands::compare;
use crate::commands::runs::{Entry, Known, again, ended, remarks};
use crate::console::CliError;
use crate::http_server::{Reply, Site, document, is_read, only_read, text};
use crate::page::{LivePage, Now, Source, new_nonce, policy, say_dropped};

/// How long a list is shown again.
const LIST_LASTS: Duration = Duration::from_secs(1);
/// Most pages that are kept for those who look.
const PAGES_MAX: usize = 16;
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
    /// By the names of the runs in URLs.
    pages: BTreeMap<String, (Source, LivePage)>,
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
            pages: BTreeMap::new(),
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
        }
        self.listed_at = Instant::now();
    }

    fn overview(&self) -> Response<Full<Bytes>> {
        let rows: Vec<HistoryRow> = self.runs.iter().map(row).collect();
        let page = history(&self.folder.display().to_string(), &rows, &self.nonce);
        document(StatusCode::OK, page.into(), &policy(&self.nonce))
    }

    /// The page of a run (`/RUN/`), and what changes of it (`/RUN/events`).
    fn of_run(&mut self, path: &str) -> Option<Reply> {
        let (name, what) = path.strip_prefix('/')?.split_once('/')?;
        let act = match what {
            "" => LivePage::page,
            "events" => LivePage::events,
            _ => return None,
        };
        let run = in_path(&self.runs, name)?;
        // It may have become a link since it was listed.
        Folder::open_itself(&run.entry.path).ok()?;
        if self.pages.len() >= PAGES_MAX {
            self.pages.retain(|_, (_, page)| page.has_readers());
        }
        let new = || (source(&run.entry), LivePage::default());
        let (source, page) = self.pages.entry(run.address.clone()).or_insert_with(new);
        let served = Served { nonce: &self.nonce, strip: "" };
        Some(act(page, &Now { source: Some(source), served, is_readable: true }))
    }

    fn comparison(&self, query: &str) -> Result<String, Refusal> {
        let chosen = in_query(&self.runs, query).map_err(Refusal::asked)?;
        let [new, base] = chosen.as_slice() else {
            return Err(Refusal::asked("choose two runs: the older one is the base"));
        };
        let [base, new] = [base, new].map(|run| [run.entry.path.clone()]);
        compare::comparison_page(&base, &new).map_err(|stop| Refusal::failed(&stop))
    }

    fn trend(&self, query: &str) -> Result<String, Refusal> {
        let chosen = in_query(&self.runs, query).map_err(Refusal::asked)?;
        if chosen.is_empty() || chosen.len() > TREND_MAX {
            return Err(Refusal::asked(format!("choose 1 to {TREND_MAX} runs")));
        }
        let paths: Vec<PathBuf> = chosen.iter().map(|run| run.entry.path.clone()).collect();
        compare::trend_page(&paths).map_err(|stop| Refusal::failed(&stop))
    }
}

impl Site for HistorySite {
    fn answer(&mut self, request: &Request<()>) -> Reply {
        if !is_read(request) {
            return only_read().into();
        }
        self.list();
        let query = request.uri().query().unwrap_or_default();
        match request.uri().path() {
            "/" => self.overview().into(),
            "/compare" => made(self.comparison(query)).into(),
            "/trend" => made(self.trend(query)).into(),
            path => self.of_run(path).unwrap_or_else(|| {
                let help = "There is no such run; the list is at /, a run at /RUN/.\n";
                text(StatusCode::NOT_FOUND, help.into()).into()
            }),
        }
    }

    fn each_second(&mut self) {
        let served = Served { nonce: &self.nonce, strip: "" };
        for (source, page) in self.pages.values_mut() {
            page.each_second(&Now { source: Some(source), served, is_readable: true });
        }
    }

    fn end(&mut self) {
        let served = Served { nonce: &self.nonce, strip: "" };
        let mut dropped = 0;
        for (source, page) in self.pages.values_mut() {
            dropped += page.end(&Now { source: Some(source), served, is_readable: false });
        }
        say_dropped(dropped);
    }
}

/// Why there is no page.
struct Refusal {
    status: StatusCode,
    help: String,
}

impl Refusal {
    /// What was asked makes no sense.
    fn asked(help: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, help: help.into() }
    }

    /// It was tried.
    fn failed(stop: &CliError) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, help: format!("{:#}", stop.error) }
    }
}

fn made(page: Result<String, Refusal>) -> Response<Full<Bytes>> {
    match page {
        Ok(page) => document(StatusCode::OK, page.into(), OF_FILES),
        Err(Refusal { status, help }) => text(status, format!("{help}\n")),
    }
}

/// What the page of a run is made from.
fn source(entry: &Entry) -> Source {
    match entry.kind.as_str() {
        "matrix" | "proof" => Source::Matrix(entry.path.clone()),
        _ => Source::Run(entry.path.clone()),
    }
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
