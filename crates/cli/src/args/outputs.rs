//! The flags that say where a run is shown, written and sent. A run that is done again has its own.

use std::path::PathBuf;

use clap::Args;

use super::listen::ListenAddress;

/// Where a run is shown, written and sent.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Outputs {
    /// Run folder to make [default: a new one under runs/]
    #[arg(short, long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Plain summary lines even on a terminal
    #[arg(long, help_heading = "Output")]
    pub(crate) plain: bool,
    /// Print nothing but addresses and problems while it runs
    #[arg(short, long, conflicts_with = "plain", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print the figures of every participant at the end
    #[arg(long, help_heading = "Output")]
    pub(crate) details: bool,
    /// Print summary.json at the end instead of the summary
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Also write series.csv and participants.csv
    #[arg(long, help_heading = "Output")]
    pub(crate) csv: bool,
    /// Also write JUnit XML to this file: a test case for each objective
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) junit: Option<PathBuf>,
    /// Also add the answer as Markdown to the end of this file, such as $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Serve the live figures to Prometheus while it runs, at http://ADDRESS/metrics;
    /// docs/metrics.md. ADDRESS is PORT (of this machine alone) or HOST:PORT; port 0 is any that is
    /// free
    #[arg(long, value_name = "ADDRESS", help_heading = "Output")]
    pub(crate) prometheus: Option<ListenAddress>,
    /// Send metrics and traces to this collector of OpenTelemetry while it runs, by OTLP over HTTP:
    /// http://127.0.0.1:4318; its key in OTEL_EXPORTER_OTLP_HEADERS; docs/metrics.md
    #[arg(long, value_name = "URL", help_heading = "Output")]
    pub(crate) otlp: Option<String>,
    /// Trace at most N joins of each second
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(0..=1_000),
        requires = "otlp",
        help_heading = "Output"
    )]
    pub(crate) otlp_traces: u32,
    /// Serve the report's page while it runs, at http://ADDRESS/; the address that is printed has
    /// the token by which the run can be ended there; docs/serve.md. ADDRESS is PORT (of this
    /// machine alone) or HOST:PORT; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", help_heading = "Output")]
    pub(crate) serve: Option<ListenAddress>,
}

impl Outputs {
    /// The same from any other working folder: of each path where it leads now.
    pub(crate) fn anywhere(self) -> Self {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Self {
            output: self.output.map(absolute),
            junit: self.junit.map(absolute),
            markdown: self.markdown.map(absolute),
            ..self
        }
    }
}
