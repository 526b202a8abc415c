//! What a command serves while it runs: its figures (`--prometheus`) and its page (`--serve`). The
//! ports are taken before anything is sent.

use std::path::Path;

use throng_report::openmetrics::Metrics;

use crate::args::ListenAddress;
use crate::console::{CliError, Interrupt, say};
use crate::exporter::{self, LiveFigures};
use crate::http_server::{HttpServer, Listener};
use crate::page::{Page, Source};

/// The ports that the flags name, taken.
pub(crate) struct Ports {
    metrics: Option<Listener>,
    page: Option<Listener>,
}

impl Ports {
    /// Takes them, and says where the figures are.
    pub(crate) fn take(
        prometheus: Option<&ListenAddress>,
        serve: Option<&ListenAddress>,
    ) -> Result<Self, CliError> {
        let metrics = prometheus.map(|asked| Listener::bind("--prometheus", asked)).transpose()?;
        if let Some(port) = &metrics {
            say(&format!("metrics     http://{}/metrics", port.address()));
        }
        let page = serve.map(|asked| Listener::bind("--serve", asked)).transpose()?;
        Ok(Self { metrics, page })
    }

    /// Answers at them; who has the page's token can end the command by `interrupt`.
    pub(crate) fn serve(self, metrics: Metrics, interrupt: &Interrupt) -> Result<Served, CliError> {
        let Self { metrics: of_metrics, page } = self;
        let is_asked = of_metrics.is_some() || page.is_some();
        let figures = LiveFigures::new(metrics);
        let exporter = of_metrics.map(|port| exporter::serve(port, figures.clone())).transpose()?;
        let page = page.map(|port| Page::start(port, figures.clone(), interrupt)).transpose()?;
        Ok(Served { figures: Some(figures).filter(|_| is_asked), page, _exporter: exporter })
    }
}

/// What is served, until it is dropped.
pub(crate) struct Served {
    figures: Option<LiveFigures>,
    page: Option<Page>,
    _exporter: Option<HttpServer>,
}

impl Served {
    /// The figures, if anybody may ask for them.
    pub(crate) fn figures(&self) -> Option<LiveFigures> {
        self.figures.clone()
    }

    /// The run has its folder: from now on its page is made from it.
    pub(crate) fn began(&self, scenario: &str, folder: &Path) {
        if let Some(figures) = &self.figures {
            figures.set_subject(scenario, folder);
        }
        self.shows(|| Source::Run(folder.to_owned()));
    }

    /// What the page is made from.
    pub(crate) fn shows(&self, source: impl FnOnce() -> Source) {
        if let Some(page) = &self.page {
            page.shows(source());
        }
    }

    /// What was marked on the page since the last call.
    pub(crate) fn marks(&self) -> Vec<String> {
        self.page.as_ref().map(Page::marks).unwrap_or_default()
    }

    /// Does what needs the folder for itself: the page is not made meanwhile.
    pub(crate) fn apart<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.page {
            Some(page) => page.apart(act),
            None => act(),
        }
    }
}
