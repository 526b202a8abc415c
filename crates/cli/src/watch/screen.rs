//! The full-screen view of a watched host: CPU, the hottest threads, errors and limits, the
//! watcher's own cost.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};
use throng_observation::host::{is_stacked_disk, is_upper_interface, lowest};
use throng_observation::units::{bytes, percent};
use throng_observation::untrusted;

use super::figures::{Figure, Figures};
use crate::console::{BAD, FULL_THREAD_RATIO, GOOD, QUIET, head_line, sparkline, titled};

pub(super) fn draw(frame: &mut Frame<'_>, title: &str, figures: &Figures, at: Duration) {
    let [head, host, chart, threads, wrong, own] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(5),
        Constraint::Min(5),
        Constraint::Length(6),
        Constraint::Length(2),
    ])
    .areas(frame.area());
    let at = format!("{:.0} s", at.as_secs_f64());
    let line = head_line("throng watch ", title, &at, "q ends");
    frame.render_widget(Paragraph::new(line), head);
    draw_host(frame, host, figures);
    draw_chart(frame, chart, figures);
    draw_threads(frame, threads, figures);
    draw_wrong(frame, wrong, figures);
    draw_own(frame, own, figures);
}

fn draw_host(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let now = |metric: &str| figures.one(metric).map_or(0.0, |figure| figure.now);
    let lines = vec![
        Line::from(format!(
            "CPU {:.2} cores (user {:.2}, system {:.2}, softirq {:.2}, iowait {:.2}, steal \
                 {:.2})   waiting for CPU {}, memory {}, I/O {}",
            now("host.cpu.busy"),
            now("host.cpu.user"),
            now("host.cpu.system"),
            now("host.cpu.softirq"),
            now("host.cpu.iowait"),
            now("host.cpu.steal"),
            percent(now("host.pressure.cpu.some")),
            percent(now("host.pressure.memory.some")),
            percent(now("host.pressure.io.some")),
        )),
        Line::from(format!(
            "memory available {}   disk read {}/s, written {}/s   UDP {:.0} in, {:.0} out a \
                 second   TCP {:.0} connections",
            bytes(now("host.memory.available")),
            bytes(of_disks(figures, "disk.read_bytes")),
            bytes(of_disks(figures, "disk.write_bytes")),
            now("udp.in_datagrams"),
            now("udp.out_datagrams"),
            now("tcp.established"),
        )),
        Line::from(format!(
            "interfaces: received {}/s, sent {}/s",
            bytes(of_interfaces(figures, "nic.rx_bytes")),
            bytes(of_interfaces(figures, "nic.tx_bytes"))
        )),
    ];
    frame.render_widget(Paragraph::new(lines).block(titled("Host")), area);
}

fn sum(figures: Vec<&Figure>) -> f64 {
    figures.into_iter().map(|figure| figure.now).filter(|now| !now.is_nan()).sum()
}

/// A rate summed over all disks. Each byte of stacked devices counts once.
fn of_disks(figures: &Figures, metric: &str) -> f64 {
    sum(lowest(figures.of(metric).collect(), |disk| is_stacked_disk(disk.label("device"))))
}

/// A rate summed over the interfaces of the server's namespace, without loopback unless it carries
/// most.
fn of_interfaces(figures: &Figures, metric: &str) -> f64 {
    let own = figures.of(metric).filter(|nic| nic.label("netns").is_empty());
    let (local, others): (Vec<_>, Vec<_>) = own.partition(|nic| nic.label("interface") == "lo");
    let local = sum(local);
    if others.iter().all(|nic| nic.now.is_nan() || nic.now < local) {
        return local;
    }
    sum(lowest(others, |nic| is_upper_interface(nic.label("interface"))))
}

fn draw_chart(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let cores =
        figures.one("host.cpu.busy").and_then(|figure| figure.of.limit).unwrap_or(1.0).max(1.0);
    let width = area.width.saturating_sub(2) as usize;
    let skipped = figures.busy.len().saturating_sub(width);
    // Sparkline takes integers: thousandths of all cores keep the shape.
    let seen =
        figures.busy.iter().skip(skipped).map(|busy| (busy / cores * 1000.0).max(0.0) as u64);
    let title = format!("Cores busy, of {cores:.0}");
    frame.render_widget(sparkline(&title, seen.collect(), GOOD), area);
}

fn draw_threads(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let head = Row::new(["thread", "process", "tid", "CPU", "max", "waits for CPU"])
        .style(Style::new().fg(QUIET));
    let rows = figures.threads().into_iter().take(area.height as usize).map(|thread| {
        let row = Row::new([
            thread.shown("thread").into_owned(),
            thread.shown("process").into_owned(),
            thread.shown("tid").into_owned(),
            percent(thread.now),
            percent(thread.max),
            percent(figures.wait_of(thread)),
        ]);
        if thread.now > FULL_THREAD_RATIO { row.style(Style::new().fg(BAD)) } else { row }
    });
    let widths = [18, 18, 10, 10, 10, 14].map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).header(head).block(titled("Threads")), area);
}

fn draw_wrong(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let errors =
        figures.errors().into_iter().map(|(what, worst)| format!("{what}: at most {worst:.1}"));
    let bad =
        errors.chain(figures.near_limits()).map(|text| Line::styled(text, Style::new().fg(BAD)));
    let events =
        figures.events.iter().rev().map(|event| Line::from(untrusted::line(&event.detail)));
    let lines: Vec<_> = bad.chain(events).take(area.height as usize).collect();
    frame.render_widget(Paragraph::new(lines).block(titled("Errors, limits, events")), area);
}

fn draw_own(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let cost = figures.one("watcher.cpu").map_or(0.0, |figure| figure.now);
    let rss = figures.one("watcher.rss").map_or(0.0, |figure| figure.now);
    let line = format!("{:.2} % of a core, {}", cost * 100.0, bytes(rss));
    frame.render_widget(Paragraph::new(line).block(titled("This watcher")), area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use throng_observation::RunTime;
    use throng_observation::host::{HostRow, HostSample, HostSeries, SeriesId};

    /// What each series says now: metric, label, its value, and the rate.
    fn figures(series: &[(&str, &str, &str, f64)]) -> Figures {
        let mut figures = Figures::default();
        for (number, (metric, label, of, value)) in (0..).zip(series) {
            let id = SeriesId(number);
            let labels = [((*label).to_owned(), (*of).to_owned())].into();
            let metric = (*metric).to_owned();
            figures.take(&HostRow::Series(HostSeries {
                id,
                metric,
                labels,
                ..HostSeries::default()
            }));
            let at = RunTime(1_000_000);
            figures.take(&HostRow::Sample(HostSample { series: id, at, value: *value }));
        }
        figures
    }

    #[test]
    fn a_byte_that_passes_two_devices_counts_once() {
        let figures = figures(&[
            ("disk.read_bytes", "device", "vda", 3e6),
            ("disk.read_bytes", "device", "vdb", 1e6),
            ("disk.read_bytes", "device", "dm-0", 4e6),
            ("disk.write_bytes", "device", "dm-0", 5e6),
            ("nic.tx_bytes", "interface", "eth0", 8e6),
            ("nic.tx_bytes", "interface", "docker0", 8e6),
            ("nic.tx_bytes", "interface", "lo", 2e6),
            ("nic.rx_bytes", "interface", "eth0", 1e6),
            ("nic.rx_bytes", "interface", "lo", 2e6),
        ]);
        assert_eq!(of_disks(&figures, "disk.read_bytes"), 4e6);
        assert_eq!(of_disks(&figures, "disk.write_bytes"), 5e6);
        assert_eq!(of_interfaces(&figures, "nic.tx_bytes"), 8e6);
        assert_eq!(of_interfaces(&figures, "nic.rx_bytes"), 2e6);
        let mut terminal = Terminal::new(TestBackend::new(120, 30)).unwrap();
        terminal.draw(|frame| draw(frame, "this host", &figures, Duration::ZERO)).unwrap();
        let shown = terminal.backend().to_string();
        assert!(
            shown.contains(&format!("disk read {}/s, written {}/s", bytes(4e6), bytes(5e6))),
            "{shown}"
        );
    }

    #[test]
    fn any_size_of_terminal_is_drawn() {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 80)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal
                .draw(|frame| draw(frame, "this host", &Figures::default(), Duration::ZERO))
                .unwrap();
        }
    }
}
