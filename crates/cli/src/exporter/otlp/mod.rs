//! `--otlp`: metrics and traces to a collector of OpenTelemetry, by OTLP over HTTP in JSON. A
//! collector that is away, slow or none costs the run nothing but the memory of spans that wait.

mod answer;
mod collector;
mod connection;
mod environment;
mod sender;
#[cfg(test)]
mod sender_tests;
mod signal;

use throng_observation::run::RunInfo;
use throng_report::otlp::{Resource, Traces};

pub(crate) use collector::Collector;

use super::live::LiveFigures;
use crate::background::Background;
use crate::console::{CliError, say};
use crate::run_id;
use sender::Sender;

/// The traces of a run. Of the joins that are intended in one second, so many at most are traced,
/// which is said.
pub(crate) fn traces(info: &RunInfo, joins_per_second_max: u32) -> Traces {
    say(&match joins_per_second_max {
        0 => "traces      of the run alone; --otlp-traces N adds joins".to_owned(),
        most => format!("traces      of the run, and of up to {most} joins a second"),
    });
    Traces::new(info, run_id::seed(), joins_per_second_max)
}

/// Sends these figures until the sender is dropped, and then the last ones.
pub(crate) fn send(collector: Collector, figures: LiveFigures) -> Result<Background, CliError> {
    let resource = Resource::new(env!("CARGO_PKG_VERSION"), run_id::mark().letters());
    let attributes = &collector.environment.attributes;
    let resource =
        attributes.iter().fold(resource, |resource, (name, value)| resource.with(name, value));
    say(&format!("otlp        {}", collector.shown()));
    let sender = Sender::new(collector, figures, resource);
    Background::start("otlp", move |stopped| sender.run(stopped)).map_err(CliError::invalid)
}
