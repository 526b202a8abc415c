//! What the run is judged by: its objectives, or the bounds of a search.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use throng_analysis::search::Progress;
use throng_observation::untrusted;
use throng_report::ObjectiveResult;

use crate::console::{ACCENT, BAD, GOOD, QUIET, titled};

/// The progress of the search, and the bounds of the limit.
pub(super) fn draw_search(frame: &mut Frame<'_>, area: Rect, search: &Progress) {
    let bound = |load: Option<u32>| load.map_or_else(|| "?".to_owned(), |load| search.load(load));
    let (repeat, repeats) = search.repeat;
    let earlier: Vec<String> = search
        .found
        .iter()
        .map(|(low, high)| format!("{}–{}", search.load(*low), search.load(*high)))
        .collect();
    let is_value = !search.values.is_empty();
    let load =
        if is_value { search.load(search.users) } else { format!("{:>6} users", search.users) };
    let lines = vec![
        Line::from(vec![
            Span::styled(format!("{load}  "), Style::new().fg(ACCENT)),
            Span::raw(search.phase(false).to_string()),
        ]),
        Line::from(vec![
            Span::raw("the limit lies between "),
            Span::styled(bound(search.passing), Style::new().fg(GOOD)),
            Span::raw(" and "),
            Span::styled(bound(search.failing), Style::new().fg(BAD)),
        ]),
        Line::styled(
            format!(
                "search {repeat} of {repeats}{}{}",
                if earlier.is_empty() { "" } else { ": before, " },
                earlier.join(", ")
            ),
            Style::new().fg(QUIET),
        ),
    ];
    frame.render_widget(Paragraph::new(lines).block(titled("The search")), area);
}

/// The rolling objectives.
pub(super) fn draw_objectives(frame: &mut Frame<'_>, area: Rect, objectives: &[ObjectiveResult]) {
    let lines: Vec<_> = objectives
        .iter()
        .map(|objective| {
            let (sign, colour) = match objective.result.as_str() {
                "met" => ("met     ", GOOD),
                "missed" => ("MISSED  ", BAD),
                _ => ("–       ", QUIET),
            };
            Line::from(vec![
                Span::styled(sign, Style::new().fg(colour)),
                Span::raw(format!("{:<34} ", untrusted::line(&objective.text))),
                Span::styled(objective.measured_text.clone(), Style::new().fg(colour)),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).block(titled("Objectives at present")), area);
}
