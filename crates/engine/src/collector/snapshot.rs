//! Updates the live snapshot from a closed second.

use throng_observation::run::{EventRow, GeneratorRow, SeriesRow, SourceFps};
use throng_observation::{
    ChatRow, Distribution, LatencyVote, MediaKind, OneWayDelay, PlaybackRow, TrackCounters,
};

use super::participant_record::ParticipantRecord;
use super::participants::Participants;
use super::seconds::ClosedSecond;
use super::track_record::loss_ratio;
use crate::live::{
    ChatFigures, CrowdFigures, HISTORY_SECONDS, HistoryPoint, KindFigures, LiveSnapshot,
    PlaybackFigures, RECENT_EVENTS, Spread,
};

/// Adds the rows of a closed second to the snapshot.
pub(super) fn second(snapshot: &mut LiveSnapshot, second: i64, closed: &ClosedSecond) {
    snapshot.second = Some(second);
    let mut crowd = CrowdFigures { planned: snapshot.crowd.planned, ..CrowdFigures::default() };
    for row in &closed.crowd {
        crowd.intended += row.intended;
        crowd.started += row.started;
        crowd.connected += row.connected;
        crowd.playing += row.playing;
        crowd.failed += row.failed;
        crowd.left += row.left;
        crowd.ice.iter_mut().zip(row.ice).for_each(|(sum, count)| *sum += count);
    }
    snapshot.crowd = crowd;
    for (figures, of) in
        [(&mut snapshot.video, MediaKind::Video), (&mut snapshot.audio, MediaKind::Audio)]
    {
        let before = figures.so_far;
        *figures = kind(&closed.series, of);
        figures.so_far += before;
    }
    if !closed.playback.is_empty() || snapshot.playback.is_some() {
        let before = snapshot.playback.take().unwrap_or_default();
        let mut figures = playback(&closed.playback, before.latency_vote);
        figures.so_far += before.so_far;
        snapshot.playback = Some(figures);
    }
    if !closed.chat.is_empty() || snapshot.chat.is_some() {
        let before = snapshot.chat.take().unwrap_or_default().so_far;
        let mut figures = chat(&closed.chat);
        figures.so_far += before;
        snapshot.chat = Some(figures);
    }
    let in_chat = snapshot.chat.as_ref();
    let players = snapshot.playback.as_ref().filter(|playback| playback.players > 0);
    let (video, audio) = (&snapshot.video, &snapshot.audio);
    let first = if video.tracks > 0 { video } else { audio };
    let mut counters = TrackCounters::default();
    closed.series.iter().for_each(|row| counters += row.counters);
    let point = HistoryPoint {
        second,
        connected: crowd.connected,
        bitrate_bps: closed.received_bytes() as f64 * 8.0,
        loss_ratio: loss_ratio(&counters),
        stalled_ratio: players
            .map(|playback| f64::from(playback.stalled) / f64::from(playback.players)),
        buffer_ms_min: players.and_then(|playback| playback.buffer_ms_min),
        in_room: in_chat.map(|chat| chat.joined),
        delivery_ms_p95: in_chat.and_then(|chat| chat.delivery_ms).map(|delivery| delivery.p95),
        messages_missing: in_chat.map_or(0, |chat| chat.counters.messages_missing),
        delay_ms_p95: first.relative_delay_ms.map(|delay| delay.p95),
        fps_p50: first.fps.map(|fps| fps.p50),
    };
    if snapshot.history.len() >= HISTORY_SECONDS {
        snapshot.history.pop_front();
    }
    snapshot.history.push_back(point);
}

fn kind(series: &[SeriesRow], kind: MediaKind) -> KindFigures {
    let rows = || series.iter().filter(|row| row.kind == Some(kind));
    let merged = |part: fn(&SeriesRow) -> &Distribution, scale: f64| {
        let mut all = Distribution::new();
        rows().for_each(|row| all.merge(part(row)));
        (all.quantiles(scale), Spread::of(&all, scale))
    };
    let (fps, fps_spread) = merged(|row| &row.fps_milli, 1000.0);
    let (relative_delay_ms, relative_delay_spread_ms) =
        merged(|row| &row.relative_delay_us, 1000.0);
    let (oven_rtc_tester_delay_ms, oven_rtc_tester_delay_spread_ms) =
        merged(|row| &row.oven_rtc_tester_delay_us, 1000.0);
    let mut counters = TrackCounters::default();
    rows().for_each(|row| counters += row.counters);
    let mut absolute = OneWayDelay::default();
    rows().for_each(|row| absolute.merge(&row.absolute_delay));
    let mut sources = SourceFps::default();
    rows().for_each(|row| sources += row.source_fps);
    KindFigures {
        tracks: rows().map(|row| row.tracks).sum(),
        tracks_below_source_fps: rows().map(|row| row.tracks_below_source_fps).sum(),
        bitrate_bps: counters.wire_bytes as f64 * 8.0,
        so_far: counters,
        loss_ratio: loss_ratio(&counters),
        loss_percent: merged(|row| &row.loss_ppm, 10_000.0).0,
        fps,
        fps_spread,
        relative_delay_ms,
        relative_delay_spread_ms,
        absolute_delay_ms: absolute.quantiles(1000.0),
        absolute_delay_basis: absolute.basis(),
        clock_disagreement: absolute.disagreement(),
        jitter_ms: merged(|row| &row.jitter_us, 1000.0).0,
        oven_rtc_tester_delay_ms,
        oven_rtc_tester_delay_spread_ms,
        freezes: counters.freeze_count,
        source_fps: sources.mean(),
    }
}

/// The players of a second. `latency_vote`: that of all seconds before.
fn playback(rows: &[PlaybackRow], mut latency_vote: LatencyVote) -> PlaybackFigures {
    let mut figures = PlaybackFigures::default();
    let (mut buffer_us, mut shortfall_ppm) = (Distribution::new(), Distribution::new());
    rows.iter().for_each(|row| latency_vote.add(row));
    let (basis, mut latency_us) = (latency_vote.basis(), Distribution::new());
    for row in rows {
        figures.players += row.players;
        figures.stalled += row.stalled;
        figures.starting += row.starting;
        figures.so_far += row.counters;
        buffer_us.merge(&row.buffer_us);
        shortfall_ppm.merge(&row.shortfall_ppm);
        latency_us.merge(row.latency_us_by(basis));
    }
    let ratio =
        |quantile: f64| shortfall_ppm.quantile(1.0 - quantile).map(|ppm| 1.0 - ppm as f64 / 1e6);
    PlaybackFigures {
        media_bps: figures.so_far.media_bytes as f64 * 8.0,
        buffer_ms: buffer_us.quantiles(1000.0),
        buffer_ms_min: buffer_us.quantile(0.0).map(|us| us as f64 / 1e3),
        delivery_ratio_p50: ratio(0.5),
        delivery_ratio_min: ratio(0.0),
        latency_ms: latency_us.quantiles(1000.0),
        latency_vote,
        ..figures
    }
}

fn chat(rows: &[ChatRow]) -> ChatFigures {
    let (mut figures, mut delay_us) = (ChatFigures::default(), Distribution::new());
    for row in rows {
        figures.members += row.members;
        figures.joined += row.joined;
        figures.occupants_max = figures.occupants_max.max(row.occupants_max);
        figures.counters += row.counters;
        delay_us.merge(&row.delay_us);
    }
    ChatFigures { delivery_ms: delay_us.quantiles(1000.0), so_far: figures.counters, ..figures }
}

/// Updates the bit rates of receiving participants.
pub(super) fn clients(snapshot: &mut LiveSnapshot, participants: &Participants) {
    snapshot.client_bps = Spread::of(&participants.payload_bps(), 1.0);
}

/// Updates the `count` worst participants.
pub(super) fn worst(snapshot: &mut LiveSnapshot, participants: &Participants, count: usize) {
    let mut alive: Vec<&ParticipantRecord> =
        participants.iter().filter(|record| record.is_alive()).collect();
    alive.sort_by(|a, b| b.badness().total_cmp(&a.badness()));
    snapshot.worst = alive.into_iter().take(count).map(ParticipantRecord::figures).collect();
}

/// Updates the generator's health.
pub(super) fn health(snapshot: &mut LiveSnapshot, rows: &[GeneratorRow], limits: Vec<String>) {
    let generator = &mut snapshot.generator;
    generator.limited = limits;
    generator.limited_seconds += u32::from(!generator.limited.is_empty());
    if let Some(process) = rows.iter().rfind(|row| row.thread.is_none()) {
        generator.process = process.clone();
    }
    let threads: Vec<_> = rows.iter().filter(|row| row.thread.is_some()).cloned().collect();
    if !threads.is_empty() {
        generator.threads = threads;
    }
}

/// Adds an event to the latest ones.
pub(super) fn remember(snapshot: &mut LiveSnapshot, event: &EventRow) {
    if snapshot.events.len() >= RECENT_EVENTS {
        snapshot.events.pop_front();
    }
    snapshot.events.push_back(event.clone());
}
