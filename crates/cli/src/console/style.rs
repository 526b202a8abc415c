//! How full-screen views look.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Sparkline};
use throng_observation::untrusted;

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

/// The first line of a view: whose it is, of what, how far it has come, and what a key does.
pub(crate) fn head_line<'a>(of: &'a str, title: &'a str, stage: &str, keys: &'a str) -> Line<'a> {
    Line::from(vec![
        Span::styled(of, Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(untrusted::line(title)),
        Span::styled(format!("  {stage}  "), Style::new().fg(ACCENT)),
        Span::styled(keys, Style::new().fg(QUIET)),
    ])
}

/// A chart of thousandths under its title.
pub(crate) fn sparkline(title: &str, thousandths: Vec<u64>, colour: Color) -> Sparkline<'_> {
    Sparkline::default()
        .data(thousandths)
        .max(1000)
        .style(Style::new().fg(colour))
        .block(titled(title))
}

/// Words in place of a table that has no rows.
pub(crate) fn no_rows<'a>(text: &'a str, block: Block<'a>) -> Paragraph<'a> {
    Paragraph::new(text).style(Style::new().fg(QUIET)).block(block)
}
