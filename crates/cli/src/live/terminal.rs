//! The full-screen view: takes the terminal, and restores it whatever happens.

use std::io::{self, IsTerminal, Stdout};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Frame;
use ratatui::backend::CrosstermBackend;

use super::screen::Subject;
use super::{Display, State, screen};
use crate::messages;

/// The terminal in raw mode on its alternate screen; both are undone on drop, also when the run
/// panics.
pub(crate) struct Screen(ratatui::Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    pub(crate) fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        crossterm::execute!(io::stdout(), EnterAlternateScreen)?;
        let screen = Self(ratatui::Terminal::new(CrosstermBackend::new(io::stdout()))?);
        if io::stderr().is_terminal() {
            messages::hold_messages();
        }
        Ok(screen)
    }

    /// Draws a frame. An error must not end the run: its figures are kept elsewhere.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) {
        let _ = self.0.draw(picture);
    }

    /// Whether `q` or Ctrl-C was pressed; in raw mode Ctrl-C is a key.
    pub(crate) fn wants_to_leave() -> bool {
        while event::poll(Duration::ZERO).unwrap_or(false) {
            let Ok(Event::Key(key)) = event::read() else { continue };
            let control_c =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if key.kind != KeyEventKind::Release && (control_c || key.code == KeyCode::Char('q')) {
                return true;
            }
        }
        false
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing can be done when restoring the terminal fails.
        let _ = crossterm::execute!(io::stdout(), LeaveAlternateScreen);
        let _ = disable_raw_mode();
        messages::flush_messages();
    }
}

pub(crate) struct TerminalDisplay {
    pub(super) screen: Screen,
    pub(super) subject: Subject,
}

impl Display for TerminalDisplay {
    fn show(&mut self, state: &State<'_>) -> bool {
        let subject = &self.subject;
        self.screen.draw(|frame| screen::draw(frame, subject, state));
        Screen::wants_to_leave()
    }

    fn shows_objectives(&self) -> bool {
        true
    }
}
