//! Four sparklines of the last seconds.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use throng_engine::LiveSnapshot;
use throng_observation::ChatRow;
use throng_observation::run::SeriesRow;
use throng_observation::units::{bit_rate, percent};

use super::super::words::{Chart, fps, last, ms};
use super::super::{Who, chat, players};
use crate::console::{GOOD, sparkline};

pub(super) fn draw_charts(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot, who: Who) {
    let rows =
        Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]).split(area);
    let (video, audio) = (&live.video.last, &live.audio.last);
    let tracks = if video.tracks > 0 { video } else { audio };
    let charts = match (&live.playback, who) {
        (_, Who::Chatters) => {
            let nobody = ChatRow::default();
            chat::charts(live, live.chat.as_ref().map_or(&nobody, |chat| &chat.last))
        }
        (Some(playback), _) => players::charts(live, &playback.last),
        (None, _) => packet_charts(live, tracks),
    };
    for (row, pair) in rows.iter().zip(charts.chunks(2)) {
        let cells = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)])
            .split(*row);
        for (cell, (title, value, high_is_bad)) in cells.iter().zip(pair) {
            draw_chart(
                frame,
                *cell,
                title,
                &live.history.iter().map(value).collect::<Vec<_>>(),
                *high_is_bad,
            );
        }
    }
}

fn packet_charts(live: &LiveSnapshot, tracks: &SeriesRow) -> [Chart; 4] {
    let last = last(live);
    [
        (
            format!(
                "Delay p95 {}{}",
                ms(tracks.relative_delay_us.quantile_in(0.95, 1e3)),
                one_way(tracks)
            ),
            |p| p.delay_ms_p95.unwrap_or(0.0),
            true,
        ),
        (format!("Loss {}", percent(last.loss_ratio)), |p| p.loss_ratio, true),
        (format!("fps, median {}", fps(tracks)), |p| p.fps_p50.unwrap_or(0.0), false),
        (format!("Received {}", bit_rate(last.received_bps)), |p| p.received_bps, false),
    ]
}

/// The one-way delay, where capture times are known.
fn one_way(tracks: &SeriesRow) -> String {
    tracks
        .absolute_delay
        .quantiles(1e3)
        .map_or_else(String::new, |q| format!(", one-way p95 {}", ms(Some(q.p95))))
}

fn draw_chart(frame: &mut Frame<'_>, area: Rect, title: &str, values: &[f64], high_is_bad: bool) {
    let width = area.width.saturating_sub(2) as usize;
    let seen = &values[values.len().saturating_sub(width)..];
    // Sparkline takes integers: thousandths of the largest value keep its shape.
    let top = seen.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scaled: Vec<u64> = seen.iter().map(|v| (v / top * 1000.0).max(0.0) as u64).collect();
    let colour = if high_is_bad { Color::Yellow } else { GOOD };
    frame.render_widget(sparkline(title, scaled, colour), area);
}
