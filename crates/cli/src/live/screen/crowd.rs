//! The crowd: how many are where, and why some failed.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use throng_engine::LiveSnapshot;
use throng_observation::IceState;

use super::super::words::quantiles_ms;
use super::super::{Who, chat, players};
use crate::console::{ACCENT, BAD, GOOD, titled};

pub(super) fn draw_crowd(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot, who: Who) {
    let crowd = &live.crowd;
    let by_state = IceState::ALL.into_iter().zip(crowd.ice);
    let by_state = by_state.map(|(state, count)| format!("  {} {count}", state.key()));
    let playing = match who {
        Who::Viewers => format!("playing {:>4}  ", crowd.playing),
        Who::Publishers => String::new(),
        Who::Chatters => {
            format!("in the room {:>4}  ", live.chat.as_ref().map_or(0, |chat| chat.last.joined))
        }
    };
    let lines = vec![
        Line::from(vec![
            Span::raw(format!("intended {:>4} of {:<4}  ", crowd.intended, live.planned)),
            Span::styled(format!("connected {:>4}  ", crowd.connected), Style::new().fg(ACCENT)),
            Span::styled(playing, Style::new().fg(GOOD)),
            figure_if(crowd.failed > 0, format!("failed {:>4}  ", crowd.failed)),
            Span::raw(format!("left {:>4}", crowd.left)),
        ]),
        Line::from(match who {
            Who::Chatters => chat::crowd(live),
            _ if live.playback.is_some() => String::new(),
            _ => format!("ICE{}", by_state.collect::<Vec<_>>().concat()),
        }),
        Line::from(match who {
            Who::Chatters => format!("{}{}", chat::joins(live), failures(live)),
            Who::Viewers | Who::Publishers => format!(
                "join to connected {}   to first frame {}{}{}",
                quantiles_ms(live.connect_ms.as_ref()),
                quantiles_ms(live.first_frame_ms.as_ref()),
                players::startup(live),
                failures(live),
            ),
        }),
    ];
    frame.render_widget(
        Paragraph::new(lines).block(titled(if who == Who::Publishers {
            "Publishers"
        } else {
            "Crowd"
        })),
        area,
    );
}

fn failures(live: &LiveSnapshot) -> String {
    let mut by_count: Vec<_> = live.failures.iter().collect();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let list: Vec<_> =
        by_count.iter().take(4).map(|(reason, count)| format!("{reason} {count}")).collect();
    if list.is_empty() { String::new() } else { format!("   failures: {}", list.join(", ")) }
}

fn figure_if<'a>(bad: bool, text: String) -> Span<'a> {
    if bad { Span::styled(text, Style::new().fg(BAD)) } else { Span::raw(text) }
}
