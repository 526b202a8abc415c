//! Programs choose the names of their processes and threads, and the lines of logs: none of this
//! text may control the terminal of the user.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use throng_engine::LiveSnapshot;
use throng_observation::RunTime;
use throng_observation::host::{
    HostEvent, HostEventKind, HostId, HostInfo, HostRow, HostSample, HostSeries, SeriesId, Unit,
};
use throng_observation::untrusted::is_harmful;

use super::figures::Figures;
use super::{screen, view};
use crate::live;
use crate::live_hosts::LiveHosts;

const HOSTILE: [&str; 5] = [
    "\x1b[2J\x1b]0;x\x07",
    "\u{9b}31m\0\x7f",
    "\x1b]52;c;eA==\x07",
    "\r\nFORGED\nFORGED",
    "\u{202e}txt.exe\u{2067}",
];

/// Rows of a host on which everything is called `name`.
fn rows(name: &str) -> Vec<HostRow> {
    let labels = ["process", "thread", "pid", "tid", "interface", "cgroup", name];
    let labels = labels.map(|key| (key.to_owned(), name.to_owned()));
    let metrics =
        ["process.cpu", "thread.cpu", "process.fds", "udp.rcvbuf_errors", "host.cpu.busy"];
    let series = (0..).zip(metrics).map(|(id, metric)| {
        let (labels, metric, limit) = (labels.clone().into(), metric.to_owned(), Some(2.0));
        HostRow::Series(HostSeries {
            id: SeriesId(id),
            metric,
            labels,
            limit,
            unit: Unit::Count,
            ..HostSeries::default()
        })
    });
    let sample =
        |id, at| HostRow::Sample(HostSample { series: SeriesId(id), at: RunTime(at), value: 1.9 });
    let samples = (0..5).flat_map(|id| [sample(id, 0), sample(id, 1_000_000)]);
    let event = HostEvent::new(HostId(0), RunTime(1), HostEventKind::Unreadable, name);
    let info = HostInfo { name: name.to_owned(), ..HostInfo::default() };
    series.chain(samples).chain([HostRow::Event(event), HostRow::Info(info)]).collect()
}

fn is_plain(what: &str, shown: &str) {
    assert_eq!(shown.chars().find(|c| is_harmful(*c) && *c != '\n'), None, "{what}: {shown:?}");
    assert!(!shown.lines().any(|line| line.trim_start().starts_with("FORGED")), "{what}: {shown}");
}

/// What a screen of that size shows.
fn drawn(draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(160, 50)).unwrap();
    terminal.draw(draw).unwrap();
    terminal.backend().to_string()
}

#[test]
fn names_of_a_watched_host_stay_text_on_every_view() {
    for name in HOSTILE {
        let (mut figures, mut now) = (Figures::default(), LiveHosts::default());
        for row in rows(name) {
            figures.take(&row);
            now.take(&row);
        }
        let at = Duration::from_secs(2);
        is_plain("table", &figures.table(at, 0));
        is_plain("line", &view::line(&figures, at));
        let seen = drawn(|frame| screen::draw(frame, name, &figures, at));
        is_plain("screen", &seen);
        let servers = [now.figures(), now.figures()].concat();
        is_plain("server", &servers[0].line());
        assert!(servers[0].hottest.is_some());
        let (title, who) = (name.to_owned(), live::Who::Viewers);
        let subject = live::screen::Subject { title, who, addresses: Vec::new() };
        let live = LiveSnapshot::default();
        let state = live::State { live: &live, objectives: &[], servers: &servers, search: None };
        let seen = drawn(|frame| live::screen::draw(frame, &subject, &state));
        is_plain("run", &seen);
    }
}
