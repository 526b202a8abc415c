//! What the full-screen view shows: the crowd, four sparklines, the worst participants, the generator's health.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Sparkline, Table};
use throng_engine::Live;
use throng_engine::live::{KindFigures, ParticipantFigures, Point, Stage};
use throng_observation::units::{bit_rate, bytes, percent};
use throng_observation::{MediaKind, Quantiles};

const GOOD: Color = Color::Green;
const BAD: Color = Color::Red;
const QUIET: Color = Color::DarkGray;
const ACCENT: Color = Color::Cyan;

pub(super) fn draw(frame: &mut Frame<'_>, title: &str, live: &Live) {
    let [head, crowd, charts, worst, health] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(5),
        Constraint::Length(10),
        Constraint::Min(4),
        Constraint::Length(5),
    ])
    .areas(frame.area());
    draw_head(frame, head, title, live);
    draw_crowd(frame, crowd, live);
    draw_charts(frame, charts, live);
    draw_worst(frame, worst, &live.worst);
    draw_health(frame, health, live);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, title: &str, live: &Live) {
    let [text, bar] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let stage = match live.stage {
        Stage::Starting => "starting",
        Stage::Running => "running",
        Stage::Leaving => "leaving",
        Stage::Finished => "finished",
    };
    let line = Line::from(vec![
        Span::styled("throng ", Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(title.to_owned()),
        Span::styled(format!("  {stage}  "), Style::new().fg(ACCENT)),
        Span::styled("q ends the run and reports", Style::new().fg(QUIET)),
    ]);
    frame.render_widget(Paragraph::new(line), text);
    let (at, end) = (live.at.as_secs_f64().max(0.0), live.ends_at.as_secs_f64());
    let [clock, bar] = Layout::horizontal([Constraint::Length(18), Constraint::Min(0)]).areas(bar);
    frame.render_widget(Paragraph::new(format!("{at:.0} of {end:.0} s")), clock);
    let ratio = (at / end.max(1.0)).clamp(0.0, 1.0);
    let filled = (ratio * f64::from(bar.width)).round() as usize;
    let line = Line::from(vec![
        Span::styled("━".repeat(filled), Style::new().fg(ACCENT)),
        Span::styled("─".repeat((bar.width as usize).saturating_sub(filled)), Style::new().fg(QUIET)),
    ]);
    frame.render_widget(Paragraph::new(line), bar);
}

fn draw_crowd(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    let crowd = &live.crowd;
    let [new, checking, connected, disconnected, failed, closed] = crowd.ice;
    let lines = vec![
        Line::from(vec![
            Span::raw(format!("intended {:>5} of {:<5}  ", crowd.intended, crowd.planned)),
            Span::styled(format!("connected {:>5}  ", crowd.connected), Style::new().fg(ACCENT)),
            Span::styled(format!("playing {:>5}  ", crowd.playing), Style::new().fg(GOOD)),
            figure_if(crowd.failed > 0, format!("failed {:>5}  ", crowd.failed)),
            Span::raw(format!("left {:>5}", crowd.left)),
        ]),
        Line::from(format!(
            "ICE  new {new}  checking {checking}  connected {connected}  disconnected {disconnected}  failed {failed}  closed {closed}"
        )),
        Line::from(format!(
            "join to connected {}   to first frame {}{}",
            quantiles_ms(live.connect_ms.as_ref()),
            quantiles_ms(live.first_frame_ms.as_ref()),
            failures(live),
        )),
    ];
    frame.render_widget(Paragraph::new(lines).block(titled("Crowd")), area);
}

fn failures(live: &Live) -> String {
    let mut by_count: Vec<_> = live.failures.iter().collect();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let list: Vec<_> = by_count.iter().take(4).map(|(reason, count)| format!("{reason} {count}")).collect();
    if list.is_empty() { String::new() } else { format!("   failures: {}", list.join(", ")) }
}

/// Its title, what it draws of a second, and whether high is bad.
type Chart = (String, fn(&Point) -> f64, bool);

fn draw_charts(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    let rows = Layout::vertical([Constraint::Length(5), Constraint::Length(5)]).split(area);
    let kind = if live.video.tracks > 0 { &live.video } else { &live.audio };
    let charts: [Chart; 4] = [
        (
            format!("Delay p95 {}", ms(kind.relative_delay_ms.map(|q| q.p95))),
            |p| p.delay_ms_p95.unwrap_or(0.0),
            true,
        ),
        (format!("Loss {}", percent(kind.loss_ratio)), |p| p.loss_ratio, true),
        (format!("fps, median {}", fps(kind)), |p| p.fps_p50.unwrap_or(0.0), false),
        (
            format!("Received {}", bit_rate(live.video.bitrate_bps + live.audio.bitrate_bps)),
            |p| p.bitrate_bps,
            false,
        ),
    ];
    for (row, pair) in rows.iter().zip(charts.chunks(2)) {
        let cells = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).split(*row);
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

fn draw_chart(frame: &mut Frame<'_>, area: Rect, title: &str, values: &[f64], high_is_bad: bool) {
    let width = area.width.saturating_sub(2) as usize;
    let seen = &values[values.len().saturating_sub(width)..];
    // Sparkline takes integers: thousandths of the largest value keep its shape.
    let top = seen.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scaled: Vec<u64> = seen.iter().map(|v| (v / top * 1000.0).max(0.0) as u64).collect();
    let colour = if high_is_bad { Color::Yellow } else { GOOD };
    let chart =
        Sparkline::default().data(scaled).max(1000).style(Style::new().fg(colour)).block(titled(title));
    frame.render_widget(chart, area);
}

fn draw_worst(frame: &mut Frame<'_>, area: Rect, worst: &[ParticipantFigures]) {
    let head = Row::new(["viewer", "track", "loss", "fps", "delay max", "received in all", "lost in all"])
        .style(Style::new().fg(QUIET));
    let rows = worst.iter().flat_map(|participant| {
        participant.tracks.iter().map(move |track| {
            Row::new([
                format!("{}", participant.participant.0),
                format!("{} {}", track.kind.key(), track.codec.name()),
                percent(track.loss_ratio),
                if track.kind == MediaKind::Video { format!("{:.1}", track.fps) } else { "–".into() },
                ms(track.delay_ms_max),
                bytes(track.wire_bytes as f64),
                track.packets_lost.to_string(),
            ])
        })
    });
    let widths = [8, 12, 10, 8, 12, 16, 12].map(Constraint::Length);
    frame
        .render_widget(Table::new(rows, widths).header(head).block(titled("Worst in the last second")), area);
}

fn draw_health(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    let process = &live.generator.process;
    let workers: Vec<_> = live
        .generator
        .workers
        .iter()
        .map(|w| format!("{:.0} % / {:.1} ms", w.cpu_us as f64 / 1e4, w.lag_p99_us as f64 / 1e3))
        .collect();
    let lines = vec![
        Line::from(format!(
            "CPU {:.0} %   memory {}   descriptors {}   own drops {}   steal {}",
            process.cpu_us as f64 / 1e4,
            bytes(process.rss_bytes as f64),
            process.open_fds,
            process.socket_drops + process.send_drops,
            percent(process.steal_ratio),
        )),
        Line::from(format!("workers (CPU / loop lag p99): {}", workers.join("   "))),
        if live.generator.limited.is_empty() {
            Line::styled("healthy", Style::new().fg(GOOD))
        } else {
            Line::styled(
                format!("over the limit: {}", live.generator.limited.join("; ")),
                Style::new().fg(BAD),
            )
        },
    ];
    frame.render_widget(Paragraph::new(lines).block(titled("This generator")), area);
}

fn titled(title: &str) -> Block<'_> {
    Block::new().borders(Borders::TOP).border_style(Style::new().fg(QUIET)).title(format!(" {title} "))
}

fn figure_if<'a>(bad: bool, text: String) -> Span<'a> {
    if bad { Span::styled(text, Style::new().fg(BAD)) } else { Span::raw(text) }
}

fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), throng_observation::units::duration_ms)
}

fn fps(kind: &KindFigures) -> String {
    match (&kind.fps, kind.source_fps) {
        (Some(fps), Some(source)) => format!("{:.1} of {source:.1}", fps.p50),
        (Some(fps), None) => format!("{:.1}", fps.p50),
        _ => "–".into(),
    }
}

fn quantiles_ms(quantiles: Option<&Quantiles>) -> String {
    quantiles.map_or_else(|| "–".into(), |q| format!("{} (p99 {})", ms(Some(q.p50)), ms(Some(q.p99))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(live: &Live, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, "whep+http://127.0.0.1:7080/whep", live)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        (0..height)
            .map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>())
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_limited_generator_and_failures_stand_out() {
        let mut live = Live::default();
        live.crowd.failed = 3;
        live.failures.insert("ice".into(), 3);
        live.generator.limited = vec!["worker 0 used 97 % of its core".into()];
        let screen = drawn(&live, 110, 32);
        for text in ["failed     3", "failures: ice 3", "over the limit: worker 0 used 97 % of its core"] {
            assert!(screen.contains(text), "{text} is not on\n{screen}");
        }
    }

    #[test]
    fn any_size_of_terminal_is_drawn() {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 80)] {
            drawn(&Live::default(), width, height);
        }
    }
}
