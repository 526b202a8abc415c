//! Players in the live views: stalls and buffers in place of loss and delay.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Paragraph, Row, Table};
use throng_engine::LiveSnapshot;
use throng_engine::live::{ParticipantFigures, PlaybackFigures, PlayerFigures};
use throng_observation::units::{bit_rate, bytes, duration_ms, percent};

use super::words::{Chart, fps, ms, quantiles, quantiles_ms};
use crate::console::{QUIET, titled};

/// The time until playback began; empty where nobody is a player.
pub(super) fn startup(live: &LiveSnapshot) -> String {
    let startup = live.startup_ms.as_ref();
    startup.map_or_else(String::new, |startup| {
        format!("   to playback {}", quantiles_ms(Some(startup)))
    })
}

/// Charts of players: stalls and buffers in place of loss and delay.
pub(super) fn charts(live: &LiveSnapshot, playback: &PlaybackFigures) -> [Chart; 4] {
    let PlaybackFigures { players, stalled, starting, .. } = playback;
    [
        (
            format!(
                "Lowest buffer {}, median {}",
                ms(playback.buffer_ms_min),
                ms(playback.buffer_ms.as_ref().map(|q| q.p50))
            ),
            |p| p.buffer_ms_min.unwrap_or(0.0),
            false,
        ),
        (
            format!("Stalled {stalled} of {players}, starting {starting}"),
            |p| p.stalled_ratio.unwrap_or(0.0),
            true,
        ),
        (format!("fps, median {}", fps(&live.video)), |p| p.fps_p50.unwrap_or(0.0), false),
        (format!("Received {}", bit_rate(playback.media_bps)), |p| p.bitrate_bps, false),
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
        return frame
            .render_widget(Paragraph::new(text).style(Style::new().fg(QUIET)).block(title), area);
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
pub(super) fn lines(live: &LiveSnapshot, playback: &PlaybackFigures) -> String {
    let PlaybackFigures { players, stalled, starting, so_far, .. } = playback;
    let delivery = playback.delivery_ratio_min.map_or_else(|| "–".into(), percent);
    let latency = playback.latency_ms.as_ref();
    let latency = latency.map_or_else(String::new, |latency| {
        format!("; behind live {}", quantiles(Some(latency), duration_ms))
    });
    let fps =
        live.video.fps.as_ref().map_or_else(String::new, |fps| format!(", fps {:.1}", fps.p50));
    format!(
        "  playback   {} of media to {players} players, {stalled} stalled, {starting} starting{fps}\n             \
         startup {}\n             \
         buffer {}, lowest {}; delivery at least {delivery} of the bit rate{latency}\n             \
         so far {} stalls, {} of the time; {} in {} requests ({} failed) on {} connections\n",
        bit_rate(playback.media_bps),
        quantiles(live.startup_ms.as_ref(), duration_ms),
        quantiles(playback.buffer_ms.as_ref(), duration_ms),
        playback.buffer_ms_min.map_or_else(|| "–".into(), duration_ms),
        so_far.stall_count,
        so_far.stall_ratio().map_or_else(|| "–".into(), percent),
        bytes((so_far.media_bytes + so_far.other_bytes) as f64),
        so_far.requests,
        so_far.requests_failed,
        so_far.connections,
    )
}
