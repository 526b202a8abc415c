//! What a person sees while a run goes on: a full screen on a terminal, plain lines elsewhere.

mod plain;
mod screen;
mod terminal;

pub(crate) use plain::PlainDisplay;
pub(crate) use screen::Subject;
#[cfg(test)]
pub(crate) use screen::draw;
pub(crate) use terminal::{Screen, TerminalDisplay};

use throng_analysis::search::Progress;
use throng_engine::LiveSnapshot;
use throng_report::ObjectiveResult;

use crate::live_hosts::ServerFigures;

/// Shows a run while it goes on.
pub(crate) trait Display {
    /// Shows the picture of the moment, what the objectives come to at present, what the watched hosts do, and where a
    /// search is; called a few times a second. `true` when the person wants to end the run.
    fn show(
        &mut self,
        live: &LiveSnapshot,
        objectives: &[ObjectiveResult],
        servers: &[ServerFigures],
        search: Option<&Progress>,
    ) -> bool;

    /// Whether it shows the objectives: judging them costs something.
    fn shows_objectives(&self) -> bool {
        false
    }
}

/// Shows nothing.
pub(crate) struct NoDisplay;

impl Display for NoDisplay {
    fn show(
        &mut self,
        _: &LiveSnapshot,
        _: &[ObjectiveResult],
        _: &[ServerFigures],
        _: Option<&Progress>,
    ) -> bool {
        false
    }
}
