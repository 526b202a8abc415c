//! The full-screen view of a run: the crowd, four sparklines, the objectives, the worst
//! participants, the watched hosts, the generator's health.

mod charts;
mod crowd;
mod judged;
mod machines;
#[cfg(test)]
mod tests;
mod worst;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use throng_engine::LiveSnapshot;
use throng_engine::live::RunState;

use self::charts::draw_charts;
use self::crowd::draw_crowd;
use self::judged::{draw_objectives, draw_search};
use self::machines::{draw_health, draw_servers};
use self::worst::draw_worst;
use super::{State, Who};
use crate::console::{ACCENT, QUIET, head_line};

/// Objectives that are shown; the report has all.
const OBJECTIVES_MAX: usize = 8;
/// Lines of a terminal from which charts have their full height.
const ROOMY_LINES: u16 = 30;

/// The target, what the participants are, and what is served where.
pub(crate) struct Subject {
    pub(crate) title: String,
    pub(crate) who: Who,
    /// What `--serve` and `--prometheus` serve and where, a line each: what was printed is on the
    /// screen that this one covers.
    pub(crate) addresses: Vec<String>,
}

pub(crate) fn draw(frame: &mut Frame<'_>, subject: &Subject, state: &State<'_>) {
    let State { live, objectives, servers, search } = *state;
    // A title and a line for each watched host.
    let servers_height = if servers.is_empty() { 0 } else { servers.len() as u16 + 1 };
    let objectives = objectives.get(..OBJECTIVES_MAX).unwrap_or(objectives);
    let objectives_height = match search {
        Some(_) => 4,
        None if objectives.is_empty() => 0,
        None => objectives.len() as u16 + 1,
    };
    let addresses_height = subject.addresses.len() as u16;
    let others_height = addresses_height + objectives_height + servers_height;
    let is_roomy = frame.area().height >= ROOMY_LINES + others_height;
    let [head, addresses, crowd, charts, judged, worst, watched, health] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(addresses_height),
        Constraint::Length(4),
        Constraint::Length(if is_roomy { 10 } else { 6 }),
        Constraint::Length(objectives_height),
        Constraint::Min(3),
        Constraint::Length(servers_height),
        Constraint::Length(4),
    ])
    .areas(frame.area());
    draw_head(frame, head, &subject.title, live);
    frame.render_widget(Paragraph::new(subject.addresses.join("\n")), addresses);
    draw_crowd(frame, crowd, live, subject.who);
    draw_charts(frame, charts, live, subject.who);
    match search {
        Some(search) => draw_search(frame, judged, search),
        None => draw_objectives(frame, judged, objectives),
    }
    match subject.who {
        Who::Chatters => {}
        Who::Viewers | Who::Publishers => draw_worst(frame, worst, live),
    }
    draw_servers(frame, watched, servers);
    draw_health(frame, health, live);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, title: &str, live: &LiveSnapshot) {
    let [text, bar] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let stage = match live.state {
        RunState::Starting => "starting",
        RunState::Running => "running",
        RunState::Leaving => "leaving",
        RunState::Finished => "finished",
    };
    let line = head_line("throng ", title, stage, "q ends the run and reports");
    frame.render_widget(Paragraph::new(line), text);
    let (at, end) = (live.at.as_secs_f64().max(0.0), live.ends_at.as_secs_f64());
    let [clock, bar] = Layout::horizontal([Constraint::Length(18), Constraint::Min(0)]).areas(bar);
    frame.render_widget(Paragraph::new(format!("{at:.0} of {end:.0} s")), clock);
    let ratio = (at / end.max(1.0)).clamp(0.0, 1.0);
    let filled = (ratio * f64::from(bar.width)).round() as usize;
    let line = Line::from(vec![
        Span::styled("━".repeat(filled), Style::new().fg(ACCENT)),
        Span::styled(
            "─".repeat((bar.width as usize).saturating_sub(filled)),
            Style::new().fg(QUIET),
        ),
    ]);
    frame.render_widget(Paragraph::new(line), bar);
}
