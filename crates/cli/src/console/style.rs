//! How full-screen views look.

use ratatui::style::{Color, Style};
use ratatui::widgets::{Block, Borders};

pub(crate) const GOOD: Color = Color::Green;
pub(crate) const BAD: Color = Color::Red;
pub(crate) const QUIET: Color = Color::DarkGray;
pub(crate) const ACCENT: Color = Color::Cyan;
/// The share of its core from which a thread is shown as full.
pub(crate) const FULL_THREAD_RATIO: f64 = 0.9;

/// A part of a view under its title.
pub(crate) fn titled(title: &str) -> Block<'_> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(Style::new().fg(QUIET))
        .title(format!(" {title} "))
}
