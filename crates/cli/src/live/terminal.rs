//! The display of a run on a full screen.

use super::screen::{self, Subject};
use super::{Display, State};
use crate::console::Screen;

pub(crate) struct TerminalDisplay {
    pub(super) screen: Screen,
    pub(super) subject: Subject,
}

impl Display for TerminalDisplay {
    fn show(&mut self, state: &State<'_>) -> bool {
        let subject = &self.subject;
        self.screen.draw(|frame| screen::draw(frame, subject, state));
        self.screen.wants_to_leave()
    }

    fn shows_objectives(&self) -> bool {
        true
    }
}
