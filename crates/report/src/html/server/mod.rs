//! The watched hosts, on the same axis of time as the viewers' figures.

use std::fmt::Write as _;

use throng_observation::host::catalogue::LOG_LINES;
use throng_observation::host::{BOOT_ID_FACT, HostEventKind};
use throng_observation::pack::PACKS_FACT;
use throng_observation::run::{RunData, SeriesRow};
use throng_observation::units::{bytes, percent};

use super::chart::{Line, Scale};
use super::markup::{escape, notes, table, titled_table};
use super::timeline::{Point, Timeline};
use crate::server::{Accounts, Host, Knowledge, Threads, hosts};
use charts::ServerCharts;

mod charts;
mod cpu;
mod errors;
mod levels;
mod resources;
mod uncatalogued;

/// The sections of all hosts; nothing where nothing was watched.
pub(crate) fn render(run: &RunData) -> String {
    if run.host.series.is_empty() && run.host.events.is_empty() {
        return String::new();
    }
    let time = Timeline::of(run);
    let hosts = hosts(run);
    hosts.iter().map(|host| section(host, &time, hosts.len() > 1)).collect()
}

fn section(host: &Host<'_>, time: &Timeline, is_one_of_several: bool) -> String {
    let (threads, knowledge) = (Threads::of(host), Knowledge::of(host.info));
    let charts =
        ServerCharts { host, threads: &threads, knowledge: &knowledge, time, grid: time.grid() };
    let title =
        if is_one_of_several { format!("The server {}", host.name()) } else { "The server".into() };
    let mut out = format!("<h2>{}</h2>", escape(&title));
    out += &lead(&charts);
    out += &format!("<div class=\"wall\">{}{}</div>", cpu::over_time(&charts), experience(time));
    out += &cpu::over_users(&charts);
    out += &cpu::hottest(&charts);
    out += &format!("<div class=\"charts\">{}</div>", resources::render(&charts));
    let endpoints = uncatalogued::render(&charts);
    if !endpoints.is_empty() {
        out +=
            &format!("<h3>What its endpoints report</h3><div class=\"charts\">{endpoints}</div>");
    }
    out += &log_lines(&charts);
    out += &accounts(host);
    out += &errors::render(&charts);
    out += &profiles(host);
    out += &uncatalogued::listed(&charts);
    out += &watcher(host);
    out
}

/// The main findings of the section, before its charts.
fn lead(charts: &ServerCharts<'_>) -> String {
    let mut out = String::new();
    if let Some(hottest) = charts.threads.hottest() {
        let _ = write!(
            out,
            "<p>The busiest thread was <b>{}</b> of {} (tid {}): {} of one core in the median, {} \
             at most; a thread cannot have more than one core.",
            escape(hottest.name),
            escape(hottest.process),
            escape(hottest.tid),
            percent(hottest.cpu_p50),
            percent(hottest.cpu_max),
        );
        if let Some(known) = charts.knowledge.thread(hottest.process, hottest.name) {
            let _ = write!(out, " Its work: {}.", escape(&known.meaning));
        }
        out.push_str("</p>");
    }
    let ended = charts.host.events_of(HostEventKind::ProcessEnded);
    let ended: Vec<_> =
        ended.map(|event| format!("{:.1} s: {}", event.at.as_secs_f64(), event.detail)).collect();
    out + &notes(ended.iter().take(10))
}

/// The viewers' delay and loss (of players: stalls and buffers), on the same axis right below.
fn experience(time: &Timeline) -> String {
    let delay = |p: &Point| {
        let ms = |tracks: &SeriesRow| tracks.relative_delay_us.quantile_in(0.95, 1e3);
        ms(&p.video).or_else(|| ms(&p.audio))
    };
    let loss = |p: &Point| {
        let tracks = if p.video.tracks > 0 { &p.video } else { &p.audio };
        tracks.counters.loss_ratio()
    };
    let thin = |title, unit, scale, lines| {
        format!("<div class=\"thin\">{}</div>", time.chart(title, unit, scale, "", lines))
    };
    let playing = || {
        let playing = time.each(|p| p.crowd.map(|sums| sums[2]));
        thin("Viewers", "playing", Scale::Plain, vec![Line::solid("playing", 3, playing)])
    };
    if !time.has_packets() {
        let stalled = time.each(|p| p.playback.stalled_ratio());
        let buffer = time.each(|p| p.playback.buffer_us.quantile_in(0.05, 1e6));
        return [
            thin(
                "Viewers: stalled",
                "of players, in each second",
                Scale::Percent,
                vec![Line::solid("stalled", 2, stalled)],
            ),
            thin(
                "Viewers: buffer",
                "seconds of media, p5",
                Scale::Plain,
                vec![Line::solid("buffer", 4, buffer)],
            ),
            playing(),
        ]
        .concat();
    }
    [
        thin(
            "Viewers: delay",
            "ms above each track's own floor, p95",
            Scale::Plain,
            vec![Line::solid("delay", 4, time.each(delay))],
        ),
        thin(
            "Viewers: packet loss",
            "of packets expected",
            Scale::Percent,
            vec![Line::solid("loss", 2, time.each(loss))],
        ),
        playing(),
    ]
    .concat()
}

fn log_lines(charts: &ServerCharts<'_>) -> String {
    let host = charts.host;
    let mut counted: Vec<(&str, f64)> = host
        .metric(LOG_LINES)
        .iter()
        .map(|series| (series.label("pattern"), series.integral(host.window).unwrap_or(0.0)))
        .filter(|(_, count)| *count >= 0.5)
        .collect();
    counted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rows: Vec<Vec<String>> = counted
        .iter()
        .map(|(pattern, count)| {
            let known = charts.knowledge.log(pattern);
            vec![
                (*pattern).to_owned(),
                format!("{count:.0}"),
                known.map(|known| known.meaning.clone()).unwrap_or_default(),
                known.and_then(|known| known.hint.clone()).unwrap_or_default(),
            ]
        })
        .collect();
    let first = host.events_of(HostEventKind::LogLine).take(20);
    let first: Vec<_> =
        first.map(|e| vec![format!("{:.1} s", e.at.as_secs_f64()), e.detail.clone()]).collect();
    let header = ["pattern", "lines", "meaning", "points to"];
    titled_table("<h3>Log lines</h3>", &header, &rows)
        + &titled_table("<h3>The first of each pattern</h3>", &["at", "line"], &first)
}

/// Groups of the table; what is left is summed up.
const URI_GROUPS_MAX: usize = 30;

fn accounts(host: &Host<'_>) -> String {
    let Some(accounts) = Accounts::of(host) else { return String::new() };
    let total: f64 = accounts.groups.iter().map(|group| group.bytes).sum();
    let list = |counts: &std::collections::BTreeMap<String, f64>| {
        let parts: Vec<_> =
            counts.iter().map(|(name, count)| format!("{name} {count:.0}")).collect();
        parts.join(", ")
    };
    let rows: Vec<Vec<String>> = accounts
        .groups
        .iter()
        .take(URI_GROUPS_MAX)
        .map(|group| {
            vec![
                group.name.clone(),
                bytes(group.bytes),
                percent(group.bytes / total.max(1.0)),
                format!("{:.0}", group.requests),
                list(&group.by_status),
                list(&group.by_protocol),
            ]
        })
        .collect();
    let note = match accounts.unaccounted_ratio {
        Some(ratio) => {
            format!("{} of the bytes sent by the interfaces is in no access log.", percent(ratio))
        }
        None => "It is not known how much of the bytes sent by the interfaces is in no access log."
            .into(),
    };
    format!(
        "<h3>Accounts by URI</h3>{}<p class=\"over\">{}</p>",
        table(&["URIs", "sent", "share", "requests", "status", "protocol"], &rows),
        escape(&note)
    )
}

/// Where the time went at each moment that was profiled, and what changed.
fn profiles(host: &Host<'_>) -> String {
    let profiles: Vec<_> = host.profiles.iter().map(|profile| (*profile).clone()).collect();
    if profiles.is_empty() {
        return String::new();
    }
    format!("<div class=\"profiles\">{}</div>", super::flame_page::sections(&profiles))
}

/// The watcher's own cost, its clock error, and what it could not read.
fn watcher(host: &Host<'_>) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    if let Some(info) = host.info {
        let seconds = host.window.seconds();
        if info.watcher_cpu_us > 0 && seconds > 0.0 {
            let share = percent(info.watcher_cpu_us as f64 / 1e6 / seconds);
            rows.push(vec!["its own CPU".into(), format!("{share} of one core")]);
        }
        if info.watcher_rss_bytes > 0 {
            rows.push(vec!["its own memory".into(), bytes(info.watcher_rss_bytes as f64)]);
        }
        let error = match info.clock_error_us {
            0 => "none: the same host and clock".into(),
            us => format!("at most {:.1} ms", us as f64 / 1e3),
        };
        rows.push(vec!["clock error".into(), error]);
        for (name, value) in info
            .facts
            .iter()
            .filter(|(name, _)| ![PACKS_FACT, BOOT_ID_FACT].contains(&name.as_str()))
        {
            rows.push(vec![name.clone(), value.clone()]);
        }
    }
    let events = |kind: HostEventKind| {
        host.events_of(kind)
            .take(30)
            .map(|event| vec![format!("{:.1} s", event.at.as_secs_f64()), event.detail.clone()])
    };
    let unreadable: Vec<_> = events(HostEventKind::Unreadable).collect();
    let header = ["at", "what, why, and what to do about it"];
    let unreadable = titled_table("<h3>What could not be read</h3>", &header, &unreadable);
    let happened: Vec<_> = [
        HostEventKind::ProcessFound,
        HostEventKind::ProcessEnded,
        HostEventKind::Watcher,
        HostEventKind::RateLowered,
        HostEventKind::Mark,
    ]
    .into_iter()
    .flat_map(events)
    .collect();
    format!(
        "{unreadable}<details><summary>The watcher, the host and its settings</summary>{}{}\
         </details>",
        table(&["fact", "value"], &rows),
        titled_table("", &["at", "what happened"], &happened)
    )
}
