//! The live display of a run: a full screen on a terminal, plain lines elsewhere.

mod chat;
mod plain;
mod players;
pub(crate) mod screen;
mod terminal;
mod words;

use plain::PlainDisplay;
use screen::Subject;
use terminal::TerminalDisplay;

use std::io::IsTerminal;

use throng_analysis::search::Progress;
use throng_engine::LiveSnapshot;
use throng_report::ObjectiveResult;
use throng_scenario::{Part, Plan};

use crate::args::{Common, Outputs};
use crate::console::{Frames, Screen, Stream, can_be_drawn_on, say};
use crate::live_hosts::ServerFigures;

/// The display that the flags and the kind of terminal select; `addresses` says what is served
/// where.
pub(crate) fn open(plan: &Plan, common: &Common, addresses: Vec<String>) -> Box<dyn Display> {
    let Outputs { quiet, json, plain, .. } = common.outputs;
    if quiet || (json && !std::io::stderr().is_terminal()) {
        return Box::new(NoDisplay);
    }
    let who = Who::of(plan);
    if !plain && can_be_drawn_on() {
        let subject = Subject { title: plan.target.display(), who, addresses };
        match Screen::take() {
            Ok(screen) => return Box::new(TerminalDisplay { screen, subject }),
            Err(error) => say(&format!("no full-screen view on this terminal: {error}")),
        }
    }
    Box::new(PlainDisplay::new(Frames::on(Stream::Err), plan.summary_every, who))
}

/// What the participants of a run are, where all are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Some play, or others do both.
    Viewers,
    /// All publish and none plays.
    Publishers,
    /// All are in a chat and none plays.
    Chatters,
}

impl Who {
    fn of(plan: &Plan) -> Self {
        let all = |part: Part| plan.destinations.iter().all(|one| one.part() == part);
        if all(Part::Publish) {
            Self::Publishers
        } else if all(Part::Chat) {
            Self::Chatters
        } else {
            Self::Viewers
        }
    }
}

/// The state of a run at a moment.
pub(crate) struct State<'a> {
    pub(crate) live: &'a LiveSnapshot,
    /// The rolling objectives.
    pub(crate) objectives: &'a [ObjectiveResult],
    /// The watched hosts.
    pub(crate) servers: &'a [ServerFigures],
    /// The progress of a search.
    pub(crate) search: Option<&'a Progress>,
}

/// Shows a run in progress.
pub(crate) trait Display {
    /// Shows the current state; called a few times a second. `true` when the user wants to end the
    /// run.
    fn show(&mut self, state: &State<'_>) -> bool;

    /// Whether it shows the objectives, which cost CPU time to judge.
    fn shows_objectives(&self) -> bool {
        false
    }
}

pub(crate) struct NoDisplay;

impl Display for NoDisplay {
    fn show(&mut self, _: &State<'_>) -> bool {
        false
    }
}
