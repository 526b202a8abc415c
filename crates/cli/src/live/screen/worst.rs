//! The participants with the worst quality in the last second.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Row, Table};
use throng_engine::LiveSnapshot;
use throng_engine::live::TrackFigures;
use throng_observation::units::{bytes, percent};
use throng_observation::{MediaKind, TrackInterval};

use super::super::players;
use super::super::words::ms;
use crate::console::{QUIET, no_rows, titled};

pub(super) fn draw_worst(frame: &mut Frame<'_>, area: Rect, live: &LiveSnapshot) {
    if live.playback.is_some() {
        return players::draw_worst(frame, area, live);
    }
    let source_fps = live.video.last.source_fps.mean();
    let is_shown = |track: &&TrackFigures| is_troubled(track, source_fps);
    let title = titled("Worst in the last second");
    if !live.worst.iter().any(|participant| participant.tracks.iter().any(|track| is_shown(&track)))
    {
        let text = if live.worst.is_empty() { "" } else { "no track has problems" };
        return frame.render_widget(no_rows(text, title), area);
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

/// Whether a track is shown among the worst: it lost packets, had more delay than a usual jitter
/// buffer, or lacks frames.
fn is_troubled(track: &TrackFigures, source_fps: Option<f64>) -> bool {
    const LATE_MS: f64 = 50.0;
    let frames_are_missing = track.kind == MediaKind::Video
        && source_fps.is_some_and(|source| track.fps < TrackInterval::FPS_NEAR_SOURCE * source);
    track.loss_ratio > 0.0
        || track.delay_ms_max.is_some_and(|ms| ms > LATE_MS)
        || frames_are_missing
}
