//! The live figures of a command, on their way out: `--prometheus` answers who scrapes, `--otlp`
//! sends to a collector of OpenTelemetry. Rows come to them on their way to the store.

mod answer;
mod live;
mod otlp;

use crate::background::Background;
use crate::console::CliError;
use crate::http_server::Listener;
use answer::Answers;
pub(crate) use live::{LiveFigures, LiveTraces};
pub(crate) use otlp::{Collector, send, traces};

/// Answers scrapers with these figures until the server is dropped.
pub(crate) fn serve(port: Listener, figures: LiveFigures) -> Result<Background, CliError> {
    let answers = Answers::new(figures, port.authority());
    port.serve("metrics", answers)
}
