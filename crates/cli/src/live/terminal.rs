//! The full-screen view: takes the terminal, gives it back whatever happens.

use std::io::{self, IsTerminal, Stdout};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Frame;
use ratatui::backend::CrosstermBackend;
use throng_analysis::search::Progress;
use throng_engine::LiveSnapshot;
use throng_report::ObjectiveResult;

use super::screen::Subject;
use super::{Display, screen};
use crate::live_hosts::ServerFigures;
use crate::messages;

/// The terminal in raw mode on its alternate screen; both are undone on drop, also when the run panics.
pub(crate) struct Screen(ratatui::Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        crossterm::execute!(io::stdout(), EnterAlternateScreen)?;
        let screen = Self(ratatui::Terminal::new(CrosstermBackend::new(io::stdout()))?);
        if io::stderr().is_terminal() {
            messages::hold_messages();
        }
        Ok(screen)
    }

    /// Draws a picture. A terminal that cannot be drawn to must not end what is shown: the figures are kept elsewhere.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) {
        let _ = self.0.draw(picture);
    }

    /// Whether the person asked to end. Raw mode swallows Ctrl-C, so it is read as a key like `q`.
    pub(crate) fn wants_to_leave() -> bool {
        while event::poll(Duration::ZERO).unwrap_or(false) {
            let Ok(Event::Key(key)) = event::read() else { continue };
            let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if key.kind != KeyEventKind::Release && (control_c || key.code == KeyCode::Char('q')) {
                return true;
            }
        }
        false
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing better can be done when giving the terminal back fails.
        let _ = crossterm::execute!(io::stdout(), LeaveAlternateScreen);
        let _ = disable_raw_mode();
        messages::flush_messages();
    }
}

/// The view of a run.
pub(crate) struct TerminalDisplay {
    screen: Screen,
    subject: Subject,
}

impl TerminalDisplay {
    /// Takes the terminal.
    pub(crate) fn take(subject: Subject) -> io::Result<Self> {
        Ok(Self { screen: Screen::take()?, subject })
    }
}

impl Display for TerminalDisplay {
    fn show(
        &mut self,
        live: &LiveSnapshot,
        objectives: &[ObjectiveResult],
        servers: &[ServerFigures],
        search: Option<&Progress>,
    ) -> bool {
        let subject = &self.subject;
        self.screen.draw(|frame| screen::draw(frame, subject, live, objectives, servers, search));
        Screen::wants_to_leave()
    }

    fn shows_objectives(&self) -> bool {
        true
    }
}
