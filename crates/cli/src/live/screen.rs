//! The full-screen view of a run: the crowd, four sparklines, the objectives, the worst
//! participants, the watched hosts, the generator's health.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Sparkline, Table};
use throng_analysis::search::Progress;
use throng_engine::LiveSnapshot;
use throng_engine::live::{ChatFigures, HistoryPoint, KindFigures, RunState, TrackFigures};
use throng_observation::units::{bit_rate, bytes, percent};
use throng_observation::untrusted;
use throng_observation::{MediaKind, Quantiles};
use throng_report::ObjectiveResult;

use super::{State, Who, chat, players};
use crate::live_hosts::ServerFigures;

const GOOD: Color = Color::Green;
pub(crate) const BAD: Color = Color::Red;
pub(crate) const QUIET: Color = Color::DarkGray;
pub(crate) const ACCENT: Color = Color::Cyan;
/// The share of its core from which a thread is shown as full.
pub(crate) const FULL_THREAD_RATIO: f64 = 0.9;

/// Objectives that are shown; the report has all.
const OBJECTIVES_MAX: usize = 8;
/// Lines of a terminal from which charts have their full height.
const ROOMY_LINES: u16 = 30;

/// The target, and what the participants are.
pub(crate) struct Subject {
    pub(crate) title: String,
    pub(crate) who: Who,
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
    let is_roomy = frame.area().height >= ROOMY_LINES + objectives_height + servers_height;
    let [head, crowd, charts, judged, worst, watched, health] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(4),
        Constraint::Length(if is_roomy { 10 } else { 6 }),
        Constraint::Length(objectives_height),
        Constraint::Min(3),
        Constraint::Length(servers_height),
        Constraint::Length(4),
    ])
    .areas(frame.area());
    draw_head(frame, head, &subject.title, live);
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

/// The progress of the search, and the bounds of the limit.
fn draw_search(frame: &mut Frame<'_>, area: Rect, search: &Progress) {
    let bound = |load: Option<u32>| load.map_or_else(|| "?".to_owned(), |load| search.load(load));
    let (judged, whole) = search.judged_s;
    let state = match search.purpose {
        None => "the server recovers".to_owned(),
        Some(purpose) if search.is_settling => format!("{}, settling", purpose.key()),
        Some(purpose) => format!("{}, {judged} of {whole} s judged", purpose.key()),
    };
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
            Span::raw(state),
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

fn draw_servers(frame: &mut Frame<'_>, area: Rect, servers: &[ServerFigures]) {
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

fn draw_head(frame: &mut Frame<'_>, area: Rect, title: &str, live: &LiveSnapshot) {
    let [text, bar] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let stage = match live.state {
        RunState::Starting => "starting",
        RunState::Running => "running",
        RunState::Leaving => "leaving",
        RunState::Finished => "finished",
    };
    let line = Line::from(vec![
        Span::styled("throng ", Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(untrusted::line(title)),
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
        Span::styled(
            "─".repeat((bar.width as usize).saturating_sub(filled)),
            Style::new().fg(QUIET),
        ),
    ]);
    frame.render_widget(Paragraph::new(line), bar);
}

fn draw_crowd(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot, who: Who) {
    let crowd = &live.crowd;
    let [new, checking, connected, disconnected, failed, closed] = crowd.ice;
    let playing = match who {
        Who::Viewers => format!("playing {:>4}  ", crowd.playing),
        Who::Publishers => String::new(),
        Who::Chatters => {
            format!("in the room {:>4}  ", live.chat.as_ref().map_or(0, |chat| chat.joined))
        }
    };
    let lines = vec![
        Line::from(vec![
            Span::raw(format!("intended {:>4} of {:<4}  ", crowd.intended, crowd.planned)),
            Span::styled(format!("connected {:>4}  ", crowd.connected), Style::new().fg(ACCENT)),
            Span::styled(playing, Style::new().fg(GOOD)),
            figure_if(crowd.failed > 0, format!("failed {:>4}  ", crowd.failed)),
            Span::raw(format!("left {:>4}", crowd.left)),
        ]),
        Line::from(match who {
            Who::Chatters => chat::crowd(live),
            _ if live.playback.is_some() => String::new(),
            _ => format!(
                "ICE  new {new}  checking {checking}  connected {connected}  disconnected {disconnected}  failed {failed}  closed {closed}"
            ),
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

/// Its title, its value of a second, and whether high values are bad.
pub(super) type Chart = (String, fn(&HistoryPoint) -> f64, bool);

fn draw_charts(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot, who: Who) {
    let rows =
        Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]).split(area);
    let kind = if live.video.tracks > 0 { &live.video } else { &live.audio };
    let charts = match (&live.playback, who) {
        (_, Who::Chatters) => {
            chat::charts(live, live.chat.as_ref().unwrap_or(&ChatFigures::default()))
        }
        (Some(playback), _) => players::charts(live, playback),
        (None, _) => packet_charts(live, kind),
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

fn packet_charts(live: &LiveSnapshot, kind: &KindFigures) -> [Chart; 4] {
    [
        (
            format!("Delay p95 {}{}", ms(kind.relative_delay_ms.map(|q| q.p95)), one_way(kind)),
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
    ]
}

fn draw_chart(frame: &mut Frame<'_>, area: Rect, title: &str, values: &[f64], high_is_bad: bool) {
    let width = area.width.saturating_sub(2) as usize;
    let seen = &values[values.len().saturating_sub(width)..];
    // Sparkline takes integers: thousandths of the largest value keep its shape.
    let top = seen.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scaled: Vec<u64> = seen.iter().map(|v| (v / top * 1000.0).max(0.0) as u64).collect();
    let colour = if high_is_bad { Color::Yellow } else { GOOD };
    let chart = Sparkline::default()
        .data(scaled)
        .max(1000)
        .style(Style::new().fg(colour))
        .block(titled(title));
    frame.render_widget(chart, area);
}

/// The rolling objectives.
fn draw_objectives(frame: &mut Frame<'_>, area: Rect, objectives: &[ObjectiveResult]) {
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

/// The one-way delay, where capture times are known.
fn one_way(kind: &KindFigures) -> String {
    kind.absolute_delay_ms
        .map_or_else(String::new, |q| format!(", one-way p95 {}", ms(Some(q.p95))))
}

/// Whether a track is shown among the worst: it lost packets, had more delay than a usual jitter
/// buffer, or lacks frames.
fn is_troubled(track: &TrackFigures, source_fps: Option<f64>) -> bool {
    const LATE_MS: f64 = 50.0;
    let frames_are_missing =
        track.kind == MediaKind::Video && source_fps.is_some_and(|source| track.fps < 0.9 * source);
    track.loss_ratio > 0.0
        || track.delay_ms_max.is_some_and(|ms| ms > LATE_MS)
        || frames_are_missing
}

fn draw_worst(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot) {
    if live.playback.is_some() {
        return players::draw_worst(frame, area, live);
    }
    let is_shown = |track: &&TrackFigures| is_troubled(track, live.video.source_fps);
    let title = titled("Worst in the last second");
    if !live.worst.iter().any(|participant| participant.tracks.iter().any(|track| is_shown(&track)))
    {
        let text = if live.worst.is_empty() { "" } else { "no track has problems" };
        return frame
            .render_widget(Paragraph::new(text).style(Style::new().fg(QUIET)).block(title), area);
    }
    let head =
        Row::new(["viewer", "track", "loss", "fps", "delay max", "received in all", "lost in all"])
            .style(Style::new().fg(QUIET));
    let rows = live.worst.iter().flat_map(|participant| {
        participant.tracks.iter().filter(is_shown).map(move |track| {
            Row::new([
                format!("{}", participant.participant.0),
                format!("{} {}", track.kind.key(), track.codec.name()),
                percent(track.loss_ratio),
                if track.kind == MediaKind::Video {
                    format!("{:.1}", track.fps)
                } else {
                    "–".into()
                },
                ms(track.delay_ms_max),
                bytes(track.wire_bytes as f64),
                track.packets_lost.to_string(),
            ])
        })
    });
    let widths = [7, 11, 8, 6, 10, 15, 11].map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).header(head).block(title), area);
}

fn draw_health(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot) {
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

pub(crate) fn titled(title: &str) -> Block<'_> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(Style::new().fg(QUIET))
        .title(format!(" {title} "))
}

fn figure_if<'a>(bad: bool, text: String) -> Span<'a> {
    if bad { Span::styled(text, Style::new().fg(BAD)) } else { Span::raw(text) }
}

pub(super) fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), throng_observation::units::duration_ms)
}

pub(super) fn fps(kind: &KindFigures) -> String {
    match (&kind.fps, kind.source_fps) {
        (Some(fps), Some(source)) => format!("{:.1} of {source:.1}", fps.p50),
        (Some(fps), None) => format!("{:.1}", fps.p50),
        _ => "–".into(),
    }
}

pub(super) fn quantiles_ms(quantiles: Option<&Quantiles>) -> String {
    quantiles
        .map_or_else(|| "–".into(), |q| format!("{} (p99 {})", ms(Some(q.p50)), ms(Some(q.p99))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use throng_engine::live::{ParticipantFigures, PlaybackFigures, PlayerFigures};
    use throng_observation::run::ParticipantId;
    use throng_observation::{Codec, IceState, RunTime};

    fn objectives() -> Vec<ObjectiveResult> {
        [("video.loss < 1%", "7.83 %", "missed"), ("connect p99 < 3s", "60 ms", "met")]
            .map(|(text, measured_text, verdict)| ObjectiveResult {
                text: text.into(),
                measured: None,
                measured_text: measured_text.into(),
                result: verdict.into(),
                met: verdict == "met",
            })
            .into()
    }

    fn drawn(live: &LiveSnapshot, width: u16, height: u16) -> String {
        drawn_with(live, &[], width, height)
    }

    fn drawn_with(
        live: &LiveSnapshot,
        servers: &[ServerFigures],
        width: u16,
        height: u16,
    ) -> String {
        drawn_for(Who::Viewers, live, servers, width, height)
    }

    fn drawn_for(
        who: Who,
        live: &LiveSnapshot,
        servers: &[ServerFigures],
        width: u16,
        height: u16,
    ) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let subject = Subject { title: "whep+http://127.0.0.1:7080/whep".into(), who };
        let state = State { live, objectives: &objectives(), servers, search: None };
        terminal.draw(|frame| draw(frame, &subject, &state)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        (0..height)
            .map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>())
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_limited_generator_and_failures_stand_out() {
        let mut live = LiveSnapshot::default();
        live.crowd.failed = 3;
        live.failures.insert("ice".into(), 3);
        live.generator.limited = vec!["thread 0 used 97 % of its core".into()];
        let screen = drawn(&live, 110, 32);
        for text in
            ["failed    3", "failures: ice 3", "over the limit: thread 0 used 97 % of its core"]
        {
            assert!(screen.contains(text), "{text} is not on\n{screen}");
        }
    }

    #[test]
    fn only_tracks_with_trouble_are_among_the_worst() {
        let healthy = TrackFigures {
            kind: MediaKind::Audio,
            codec: Codec::Opus,
            bitrate_bps: 48e3,
            loss_ratio: 0.0,
            fps: 0.0,
            delay_ms_max: Some(4.0),
            oven_rtc_tester_delay_ms: None,
            packets_received: 50,
            packets_lost: 0,
            wire_bytes: 6_000,
        };
        let lossy = TrackFigures {
            kind: MediaKind::Video,
            codec: Codec::H264,
            loss_ratio: 0.2,
            ..healthy.clone()
        };
        let viewer = |tracks| ParticipantFigures {
            participant: ParticipantId(7),
            ice: IceState::Connected,
            intended_at: RunTime::default(),
            tracks,
            player: None,
        };
        let screen = |tracks| {
            drawn(&LiveSnapshot { worst: vec![viewer(tracks)], ..LiveSnapshot::default() }, 110, 40)
        };
        assert!(screen(vec![healthy.clone()]).contains("no track has problems"));
        let mixed = screen(vec![healthy, lossy]);
        assert!(mixed.contains("video H264") && !mixed.contains("audio opus"), "{mixed}");
    }

    #[test]
    fn objectives_and_one_way_delay_are_shown_on_the_smallest_usual_terminal() {
        let mut live = LiveSnapshot::default();
        live.video.tracks = 1;
        let quantiles = Quantiles { count: 9, p50: 20.0, p95: 197.0, p99: 198.0, max: 199.0 };
        live.video.absolute_delay_ms = Some(quantiles);
        let screen = drawn(&live, 80, 24);
        for text in [
            "MISSED  video.loss < 1%",
            "7.83 %",
            "met     connect p99 < 3s",
            "one-way p95 197 ms",
            "left    0",
            "healthy",
        ] {
            assert!(screen.contains(text), "{text} is not on\n{screen}");
        }
    }

    #[test]
    fn players_have_stalls_and_buffers_in_place_of_loss_and_delay() {
        let player = PlayerFigures {
            buffer_ms: 300.0,
            stall_ms: 700.0,
            is_starting: false,
            delivery_ratio: Some(0.5),
            stalls: 4,
        };
        let worst = |player| ParticipantFigures {
            participant: ParticipantId(7),
            ice: IceState::New,
            intended_at: RunTime::default(),
            tracks: Vec::new(),
            player: Some(player),
        };
        let live = |player| LiveSnapshot {
            playback: Some(PlaybackFigures {
                players: 9,
                stalled: 2,
                ..PlaybackFigures::default()
            }),
            worst: vec![worst(player)],
            ..LiveSnapshot::default()
        };
        let screen = drawn(&live(player), 110, 40);
        for text in ["Stalled 2 of 9", "Lowest buffer", "stalled", "700 ms", "50.0 %"] {
            assert!(screen.contains(text), "{text} is not on\n{screen}");
        }
        for text in ["Loss", "Delay", "ICE  new", "delay max"] {
            assert!(!screen.contains(text), "{text} is on\n{screen}");
        }
        let well = PlayerFigures { stall_ms: 0.0, delivery_ratio: None, ..player };
        assert!(drawn(&live(well), 110, 40).contains("no viewer has problems"));
    }

    #[test]
    fn a_chat_has_rooms_and_messages_in_place_of_ice_and_frames() {
        use throng_observation::ChatCounters;
        let counters =
            ChatCounters { messages_due: 40, messages_missing: 3, ..ChatCounters::default() };
        let so_far = ChatCounters { messages_sent: 7, ..counters };
        let delivery_ms =
            Some(Quantiles { count: 9, p50: 20.0, p95: 197.0, p99: 198.0, max: 199.0 });
        let chat =
            ChatFigures { members: 9, joined: 8, occupants_max: 10, delivery_ms, counters, so_far };
        let live =
            LiveSnapshot { chat: Some(chat), joined_ms: delivery_ms, ..LiveSnapshot::default() };
        for (width, height) in [(110, 40), (80, 24)] {
            let screen = drawn_for(Who::Chatters, &live, &[], width, height);
            for text in [
                "in the room    8",
                "said 7  due 40  missing 3",
                "join to in the room 20 ms",
                "Delivery p95 197 ms",
                "Missing 3 of 40 messages",
                "In the room 8 of 9",
            ] {
                assert!(screen.contains(text), "{text} is not on\n{screen}");
            }
            for text in ["ICE", "first frame", "fps", "playing", "Loss"] {
                assert!(!screen.contains(text), "{text} is on\n{screen}");
            }
        }
        drawn_for(Who::Chatters, &LiveSnapshot::default(), &[], 80, 24);
    }

    #[test]
    fn a_watched_server_has_its_line() {
        let hottest = Some(("hloop 1".to_owned(), 0.97));
        let servers = [ServerFigures { cpu: Some(1.2), hottest, ..ServerFigures::default() }];
        let screen = drawn_with(&LiveSnapshot::default(), &servers, 110, 32);
        assert!(
            screen.contains("CPU 120.0 % of a core, hottest thread hloop 1 97.0 %"),
            "{screen}"
        );
    }

    #[test]
    fn any_size_of_terminal_is_drawn() {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 80)] {
            drawn(&LiveSnapshot::default(), width, height);
        }
    }
}
