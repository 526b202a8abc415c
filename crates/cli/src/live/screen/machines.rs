//! The watched hosts, and the generator's own health.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use throng_engine::LiveSnapshot;
use throng_observation::units::{bytes, percent};

use crate::console::{BAD, FULL_THREAD_RATIO, GOOD, titled};
use crate::live_hosts::ServerFigures;

pub(super) fn draw_servers(frame: &mut Frame<'_>, area: Rect, servers: &[ServerFigures]) {
    let line = |server: &ServerFigures| {
        let is_full = server.hottest.as_ref().is_some_and(|(_, cpu)| *cpu > FULL_THREAD_RATIO);
        let style = if is_full { Style::new().fg(BAD) } else { Style::new() };
        let name = if servers.len() > 1 { format!("{}: ", server.name) } else { String::new() };
        Line::styled(format!("{name}{}", server.line()), style)
    };
    if !servers.is_empty() {
        let lines: Vec<Line<'_>> = servers.iter().map(line).collect();
        frame.render_widget(Paragraph::new(lines).block(titled("The server")), area);
    }
}

pub(super) fn draw_health(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot) {
    let process = &live.generator.process;
    let threads: Vec<_> = live
        .generator
        .threads
        .iter()
        .map(|w| format!("{:.0} % / {:.1} ms", w.cpu_us as f64 / 1e4, w.lag_p99_us as f64 / 1e3))
        .collect();
    let drops: u64 = live.generator.threads.iter().map(|w| w.socket_drops + w.send_drops).sum();
    let lines = vec![
        Line::from(format!(
            "CPU {:.0} %   memory {}   descriptors {}   own drops {}   steal {}",
            process.cpu_us as f64 / 1e4,
            bytes(process.rss_bytes as f64),
            process.open_fds,
            drops,
            percent(process.steal_ratio),
        )),
        Line::from(format!("threads (CPU / loop lag p99): {}", threads.join("   "))),
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
