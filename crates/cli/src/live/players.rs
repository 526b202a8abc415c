//! Players in the live views: stalls and buffers in place of loss and delay.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Row, Table};
use throng_engine::LiveSnapshot;
use throng_engine::live::{LivePlayers, ParticipantFigures, PlayerFigures};
use throng_observation::PlaybackRow;
use throng_observation::units::{bit_rate, bytes, duration_ms, percent};

use super::words::{Chart, fps, last, ms, quantiles, quantiles_ms};
use crate::console::{QUIET, no_rows, titled};

/// The time until playback began; empty where nobody is a player.
pub(super) fn startup(live: &LiveSnapshot) -> String {
    let startup = live.startup_ms.as_ref();
    startup.map_or_else(String::new, |startup| {
        format!("   to playback {}", quantiles_ms(Some(startup)))
    })
}

/// Charts of players: stalls and buffers in place of loss and delay.
pub(super) fn charts(live: &LiveSnapshot, row: &PlaybackRow) -> [Chart; 4] {
    let PlaybackRow { players, stalled, starting, buffer_us, .. } = row;
    let last = last(live);
    [
        (
            format!(
                "Lowest buffer {}, median {}",
                ms(buffer_us.quantile_in(0.0, 1e3)),
                ms(buffer_us.quantile_in(0.5, 1e3))
            ),
            |p| p.buffer_ms_min.unwrap_or(0.0),
            false,
        ),
        (
            format!("Stalled {stalled} of {players}, starting {starting}"),
            |p| p.stalled_ratio.unwrap_or(0.0),
            true,
        ),
        (format!("fps, median {}", fps(&live.video.last)), |p| p.fps_p50.unwrap_or(0.0), false),
        (format!("Received {}", bit_rate(last.received_bps)), |p| p.received_bps, false),
    ]
}

/// The players that wait, or whose delivery lacks something.
pub(super) fn draw_worst(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot) {
    let title = titled("Worst in the last second");
    let is_troubled = |player: &PlayerFigures| {
        player.stall_ms > 0.0
            || player.is_starting
            || player.delivery_ratio.is_some_and(|ratio| ratio < 1.0)
    };
    let troubled: Vec<(&ParticipantFigures, PlayerFigures)> = live
        .worst
        .iter()
        .filter_map(|participant| Some((participant, participant.player.filter(is_troubled)?)))
        .collect();
    if troubled.is_empty() {
        let text = if live.worst.is_empty() { "" } else { "no viewer has problems" };
        return frame.render_widget(no_rows(text, title), area);
    }
    let head = Row::new(["viewer", "state", "stalled", "buffer", "delivery", "stalls in all"])
        .style(Style::new().fg(QUIET));
    let rows = troubled.into_iter().map(|(participant, player)| {
        let state = match player {
            PlayerFigures { is_starting: true, .. } => "starting",
            PlayerFigures { stall_ms, .. } if stall_ms > 0.0 => "stalled",
            _ => "playing",
        };
        Row::new([
            participant.participant.0.to_string(),
            state.to_owned(),
            ms(Some(player.stall_ms)),
            ms(Some(player.buffer_ms)),
            player.delivery_ratio.map_or_else(|| "–".into(), percent),
            player.stalls.to_string(),
        ])
    });
    let widths = [7, 9, 9, 9, 9, 13].map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).header(head).block(title), area);
}

/// The lines of a summary block.
pub(super) fn lines(live: &LiveSnapshot, playback: &LivePlayers) -> String {
    let LivePlayers { last, so_far } = playback;
    let PlaybackRow { players, stalled, starting, buffer_us, .. } = last;
    let delivery = last.delivery_ratio(0.0).map_or_else(|| "–".into(), percent);
    let latency = last.latency_us_by(live.latency_vote.basis()).quantiles(1e3);
    let latency = latency.map_or_else(String::new, |latency| {
        format!("; behind live {}", quantiles(Some(latency), duration_ms))
    });
    let fps = live.video.last.fps_milli.quantile_in(0.5, 1e3);
    let fps = fps.map_or_else(String::new, |fps| format!(", fps {fps:.1}"));
    format!(
        "  playback   {} of media to {players} players, {stalled} stalled, {starting} \
         starting{fps}\n             startup {}\n             buffer {}, lowest {}; delivery at \
         least {delivery} of the bit rate{latency}\n             so far {} stalls, {} of the \
         time; {} in {} requests ({} failed) on {} connections\n",
        bit_rate(last.counters.media_bytes as f64 * 8.0),
        quantiles(live.startup_ms, duration_ms),
        quantiles(buffer_us.quantiles(1e3), duration_ms),
        ms(buffer_us.quantile_in(0.0, 1e3)),
        so_far.stall_count,
        so_far.stall_ratio().map_or_else(|| "–".into(), percent),
        bytes(so_far.media_bytes.saturating_add(so_far.other_bytes) as f64),
        so_far.requests,
        so_far.requests_failed,
        so_far.connections,
    )
}
