//! Updates the live snapshot from a closed second.

use throng_observation::run::{CrowdRow, EventRow, GeneratorRow};
use throng_observation::{MediaKind, PlaybackRow, SecondRow as _};

use super::participant_record::ParticipantRecord;
use super::participants::Participants;
use super::seconds::ClosedSecond;
use super::track_record::loss_ratio;
use crate::live::{HISTORY_SECONDS, HistoryPoint, LiveSnapshot, RECENT_EVENTS, Spread};

/// Adds the rows of a closed second to the snapshot.
pub(super) fn second(snapshot: &mut LiveSnapshot, second: i64, closed: &ClosedSecond) {
    snapshot.second = Some(second);
    snapshot.crowd = CrowdRow::sum(&closed.crowd);
    for (tracks, kind) in
        [(&mut snapshot.video, MediaKind::Video), (&mut snapshot.audio, MediaKind::Audio)]
    {
        let rows = closed.series.iter().filter(|row| row.kind == Some(kind));
        tracks.close(rows, |row| row.counters);
    }
    if !closed.playback.is_empty() || snapshot.playback.is_some() {
        closed.playback.iter().for_each(|row| snapshot.latency_vote.add(row));
        let players = snapshot.playback.get_or_insert_default();
        players.close(&closed.playback, |row| row.counters);
    }
    if !closed.chat.is_empty() || snapshot.chat.is_some() {
        snapshot.chat.get_or_insert_default().close(&closed.chat, |row| row.counters);
    }
    let chat = snapshot.chat.as_ref().map(|chat| &chat.last);
    let players = snapshot.playback.as_ref().map(|players| &players.last);
    let (video, audio) = (&snapshot.video.last, &snapshot.audio.last);
    let first = if video.tracks > 0 { video } else { audio };
    let mut counters = video.counters;
    counters += audio.counters;
    let point = HistoryPoint {
        second,
        connected: snapshot.crowd.connected,
        received_bps: closed.received_bytes() as f64 * 8.0,
        loss_ratio: loss_ratio(&counters),
        stalled_ratio: players.and_then(PlaybackRow::stalled_ratio),
        buffer_ms_min: players.and_then(|row| row.buffer_us.quantile_in(0.0, 1e3)),
        in_room: chat.map(|row| row.joined),
        delivery_ms_p95: chat.and_then(|row| row.delay_us.quantile_in(0.95, 1e3)),
        messages_missing: chat.map_or(0, |row| row.counters.messages_missing),
        delay_ms_p95: first.relative_delay_us.quantile_in(0.95, 1e3),
        fps_p50: first.fps_milli.quantile_in(0.5, 1e3),
    };
    if snapshot.history.len() >= HISTORY_SECONDS {
        snapshot.history.pop_front();
    }
    snapshot.history.push_back(point);
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

#[cfg(test)]
mod tests {
    use throng_observation::TrackCounters;
    use throng_observation::run::{CohortId, SeriesRow};

    use super::*;
    use crate::live::LiveTracks;

    #[test]
    fn the_last_second_is_the_sum_of_its_cohorts_and_the_run_so_far_that_of_all_seconds() {
        let row = |cohort, packets_lost| SeriesRow {
            cohort: CohortId(cohort),
            kind: Some(MediaKind::Video),
            tracks: 1,
            counters: TrackCounters {
                packets_original: 90,
                packets_lost,
                wire_bytes: 1_000,
                ..TrackCounters::default()
            },
            ..SeriesRow::default()
        };
        let mut snapshot = LiveSnapshot::default();
        for (number, lost) in [(0, 0), (1, 10)] {
            let series = vec![row(0, lost), row(1, lost)];
            second(&mut snapshot, number, &ClosedSecond { series, ..ClosedSecond::default() });
        }
        let LiveTracks { last, so_far } = &snapshot.video;
        assert_eq!(
            (last.tracks, last.counters.packets_lost, so_far.packets_original),
            (2, 20, 360)
        );
        let point = snapshot.history.back().expect("a point");
        assert_eq!((point.loss_ratio, point.received_bps), (0.1, 16_000.0));
    }
}
