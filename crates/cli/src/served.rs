//! What a command gives out while it runs: its figures to who asks for them (`--prometheus`) and to
//! a collector (`--otlp`), and its page (`--serve`). Flags are checked and ports taken before
//! anything is sent.

use std::path::Path;

use throng_observation::run::RunInfo;
use throng_report::html::live::ServedBy;
use throng_report::openmetrics::Metrics;

use crate::args::ListenAddress;
use crate::background::Background;
use crate::console::{CliError, Interrupt, say};
use crate::exporter::{self, Collector, LiveFigures, LiveTraces};
use crate::generator::Generator;
use crate::http_server::Listener;
use crate::page::{Page, Source};

/// The ports that the flags name, taken, and the collector.
pub(crate) struct Outlets {
    metrics: Option<Listener>,
    collector: Option<Collector>,
    page: Option<Listener>,
}

impl Outlets {
    /// Those of `--prometheus`, `--otlp` and `--serve`; says where the figures are.
    pub(crate) fn take(
        prometheus: Option<&ListenAddress>,
        otlp: Option<&str>,
        serve: Option<&ListenAddress>,
    ) -> Result<Self, CliError> {
        let collector = otlp.map(Collector::of).transpose()?;
        let metrics = prometheus.map(|asked| Listener::bind("--prometheus", asked)).transpose()?;
        if let Some(port) = &metrics {
            say(&format!("metrics     {}", metrics_url(port)));
        }
        let page = serve.map(|asked| Listener::bind("--serve", asked)).transpose()?;
        Ok(Self { metrics, collector, page })
    }

    /// Begins with the figures of a run. Of the joins that are intended in one second, so many at
    /// most are traced; who has the page's token can end the run by `interrupt`.
    pub(crate) fn of_run(
        self,
        info: &RunInfo,
        joins_per_second_max: u32,
        interrupt: &Interrupt,
    ) -> Result<Served, CliError> {
        let traces = self.collector.is_some();
        let traces = traces.then(|| exporter::traces(info, joins_per_second_max));
        self.begin(LiveFigures::new(Metrics::of_run(info), traces), interrupt, ServedBy::Run)
    }

    /// The same with those of watched hosts alone.
    pub(crate) fn of_watch(self, interrupt: &Interrupt) -> Result<Served, CliError> {
        let metrics = Metrics::of_watch(env!("CARGO_PKG_VERSION"));
        self.begin(LiveFigures::new(metrics, None), interrupt, ServedBy::Watch)
    }

    fn begin(
        self,
        figures: LiveFigures,
        interrupt: &Interrupt,
        by: ServedBy,
    ) -> Result<Served, CliError> {
        let Self { metrics, collector, page } = self;
        let metrics_url = metrics.as_ref().map(metrics_url);
        let answering = metrics.map(|port| exporter::serve(port, figures.clone())).transpose()?;
        let sending = collector.map(|to| exporter::send(to, figures.clone())).transpose()?;
        let strip = figures.clone();
        let strip = Box::new(move || strip.strip());
        let page = page.map(|port| Page::start(port, strip, interrupt, by)).transpose()?;
        let is_wanted = answering.is_some() || sending.is_some() || page.is_some();
        let figures = is_wanted.then_some(figures);
        Ok(Served { figures, metrics_url, page, _exporters: [answering, sending] })
    }
}

/// Where the figures are.
fn metrics_url(port: &Listener) -> String {
    format!("http://{}/metrics", port.authority())
}

/// What is given out, until it is dropped.
pub(crate) struct Served {
    figures: Option<LiveFigures>,
    metrics_url: Option<String>,
    page: Option<Page>,
    _exporters: [Option<Background>; 2],
}

impl Served {
    /// The figures, if anybody gets them.
    pub(crate) fn figures(&self) -> Option<LiveFigures> {
        self.figures.clone()
    }

    /// The traces, if anybody gets them.
    pub(crate) fn traces(&self) -> Option<LiveTraces> {
        self.figures.as_ref().and_then(LiveFigures::traces)
    }

    /// The run has its folder, of which its page is made from now on, and its RunTime 0,
    /// microseconds since the Unix epoch.
    pub(crate) fn began(&self, scenario: &str, folder: &Path, started_at_unix_us: i64) {
        if let Some(figures) = &self.figures {
            figures.set_subject(scenario, folder, started_at_unix_us);
        }
        self.shows(|| Source::Run(folder.to_owned()));
    }

    /// How it goes for the workers that play the crowd, if any do.
    pub(crate) fn look_at_workers(&self, crowd: &dyn Generator) {
        if let Some(figures) = &self.figures
            && let Some(now) = crowd.fleet()
        {
            figures.set_fleet(now);
        }
    }

    /// What the page is made from.
    pub(crate) fn shows(&self, source: impl FnOnce() -> Source) {
        if let Some(page) = &self.page {
            page.shows(source());
        }
    }

    /// What is served and where, in words: the page with its token, and the figures.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let page = self.page.as_ref().map(|page| format!("page {}", page.url()));
        let metrics = self.metrics_url.as_ref().map(|url| format!("metrics {url}"));
        page.into_iter().chain(metrics).collect()
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

    /// The run is over, and its report is in this folder.
    pub(crate) fn ended(&self, folder: &Path) {
        if let Some(figures) = &self.figures {
            figures.end(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_traced_only_for_a_collector() {
        let any: ListenAddress = "127.0.0.1:0".parse().unwrap();
        let traced = |otlp| {
            let outlets = Outlets::take(Some(&any), otlp, None).unwrap();
            let served = outlets.of_run(&RunInfo::default(), 10, &Interrupt::default()).unwrap();
            assert!(served.figures().is_some());
            let addresses = served.addresses();
            assert!(
                addresses.len() == 1 && addresses[0].starts_with("metrics http://127.0.0.1:"),
                "{addresses:?}"
            );
            served.traces().is_some()
        };
        assert!(!traced(None));
        // Nobody answers there, which is said.
        assert!(traced(Some("http://127.0.0.1:9")));
    }
}
