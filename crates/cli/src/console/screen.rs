//! The full-screen view: takes the terminal, and gives it back whatever happens.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Frame;
use ratatui::backend::CrosstermBackend;

use super::keys::Keys;
use super::messages;
use super::writer::{self, Frames, Stream};

/// How long the end of the process waits for a terminal that takes no output.
const GIVEN_BACK_WITHIN: Duration = Duration::from_millis(500);

/// Who has the terminal. Held while a frame is drawn, so that no part of one comes after the
/// terminal was given back.
static OWNER: Mutex<Owner> = Mutex::new(Owner::Shell);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// Whoever started throng.
    Shell,
    /// A full-screen view.
    View,
    /// As `Shell`, and no view takes it any more: the process ends.
    Last,
}

fn owner() -> MutexGuard<'static, Owner> {
    OWNER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether standard output is a terminal that can be drawn on.
pub(crate) fn can_be_drawn_on() -> bool {
    io::stdout().is_terminal() && !is_dumb()
}

/// Whether the terminal knows no control sequences: that of an editor, or of a service.
pub(crate) fn is_dumb() -> bool {
    names_no_terminal(std::env::var_os("TERM").as_deref())
}

fn names_no_terminal(term: Option<&OsStr>) -> bool {
    term.is_none_or(|name| name.is_empty() || name == "dumb")
}

/// The terminal in raw mode on its alternate screen; both are undone on drop, also when the run
/// panics.
pub(crate) struct Screen {
    terminal: ratatui::Terminal<CrosstermBackend<Frames>>,
    keys: Keys,
}

impl Screen {
    pub(crate) fn take() -> io::Result<Self> {
        let keys = Keys::of_terminal()?;
        let terminal = take_terminal().inspect_err(|_| give_back(Owner::Shell))?;
        if io::stderr().is_terminal() {
            messages::hold_messages();
        }
        Ok(Self { terminal, keys })
    }

    /// Draws a frame, unless the terminal has not taken the one before: a frame is what differs
    /// from it. An error must not end the run: its figures are kept elsewhere.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) {
        let owner = owner();
        if *owner == Owner::View && !writer::is_behind() {
            let _ = self.terminal.draw(picture);
        }
    }

    /// Whether `q` or Ctrl-C was pressed.
    pub(crate) fn wants_to_leave(&mut self) -> bool {
        let wants = self.keys.ask_to_leave();
        if wants {
            writer::end_is_asked();
        }
        wants
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back(Owner::Shell);
        messages::flush_messages();
    }
}

fn take_terminal() -> io::Result<ratatui::Terminal<CrosstermBackend<Frames>>> {
    let mut owner = owner();
    if *owner == Owner::Last {
        return Err(io::ErrorKind::Interrupted.into());
    }
    *owner = Owner::View;
    enable_raw_mode()?;
    let mut modes = Frames::of_modes(Stream::Out);
    crossterm::execute!(modes, EnterAlternateScreen)?;
    ratatui::Terminal::new(CrosstermBackend::new(Frames::on(Stream::Out)))
}

/// Nothing can be done when the terminal cannot be restored.
fn give_back(to: Owner) {
    // Its modes first: that waits for nobody, also where the terminal takes no output.
    let _ = disable_raw_mode();
    leave_screen(to);
    writer::wait();
}

fn leave_screen(to: Owner) {
    let mut owner = owner();
    if *owner == Owner::View {
        // Once more: the view may have taken it meanwhile.
        let _ = disable_raw_mode();
        let mut modes = Frames::of_modes(Stream::Out);
        let _ = crossterm::execute!(modes, LeaveAlternateScreen, Show);
    }
    if *owner != Owner::Last {
        *owner = to;
    }
}

/// Gives the terminal back before the process exits while the view still has it. Waits a moment at
/// most.
pub(crate) fn give_back_for_good() {
    let (done, is_done) = channel();
    let _ = std::thread::Builder::new().name("terminal".into()).spawn(move || {
        give_back(Owner::Last);
        messages::flush_messages();
        writer::wait();
        let _ = done.send(());
    });
    let _ = is_done.recv_timeout(GIVEN_BACK_WITHIN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_control_sequences_is_not_drawn_on() {
        let is_dumb = |term: Option<&str>| names_no_terminal(term.map(OsStr::new));
        for term in [None, Some(""), Some("dumb")] {
            assert!(is_dumb(term), "{term:?}");
        }
        for term in ["xterm-256color", "screen", "linux", "dumb-emacs-ansi"] {
            assert!(!is_dumb(Some(term)), "{term}");
        }
    }

    #[test]
    fn no_view_takes_a_terminal_that_was_given_back_for_good() {
        give_back(Owner::Last);
        give_back(Owner::Shell);
        assert!(take_terminal().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted));
    }
}
