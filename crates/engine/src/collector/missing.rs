//! Missing media: media that was expected and did not arrive, unlike media that its sender did not
//! intend to send.
//!
//! Offer, answer and signalling determine what is expected. Media may take as long to begin as a
//! join may. Whether a sender of this run is muted or has left is known from that participant
//! itself, not from the server.

use std::time::Instant;

use throng_observation::{MediaKind, RunTime, TrackInterval};

use super::participants::{Participants, Sender};
use crate::clock::RunClock;

/// The interval as it is counted; `None` while it has no meaning. `due_for_us`: if no packet
/// arrived, how long media had been expected to begin when the interval began. `awaited_for_us`:
/// how long the first frame had been awaited. `is_intended`: for some of the interval the sender
/// sent nothing on purpose.
fn judge(
    mut interval: TrackInterval,
    due_for_us: Option<i64>,
    awaited_for_us: Option<i64>,
    patience_us: i64,
    is_intended: bool,
) -> Option<TrackInterval> {
    let counters = &mut interval.counters;
    match due_for_us {
        Some(us) if is_intended || us < patience_us => return None,
        Some(_) => {
            counters.missing_us = counters.active_us;
            interval.frames_due_us = counters.active_us;
            if interval.kind == MediaKind::Video {
                // Missing video counts as frozen.
                counters.freeze_us = counters.active_us;
            }
        }
        // Media arrived in a part of the interval, so its rates and freezes have no meaning.
        None if is_intended => {
            (counters.active_us, counters.freeze_us, counters.freeze_count) = (0, 0, 0);
            interval.frames_due_us = 0;
        }
        // Packets arrive, but no frame for longer than a join may take.
        None if awaited_for_us.is_some_and(|us| us >= patience_us) => {
            interval.frames_due_us = counters.active_us;
        }
        None => {}
    }
    Some(interval)
}

/// `interval` of participant `id`, as it is counted; `None` while it has no meaning.
pub(super) fn judged(
    interval: TrackInterval,
    id: u32,
    participants: &Participants,
    clock: RunClock,
    patience_us: i64,
) -> Option<TrackInterval> {
    let ended = clock.run_time(interval.ended_at);
    let active_us = i64::try_from(interval.counters.active_us).unwrap_or(i64::MAX);
    let began = RunTime(ended.0.saturating_sub(active_us));
    let for_us = |since: Instant| began.0 - clock.run_time(since).0;
    // What has stopped had its time to begin.
    let due_for_us = interval
        .missing
        .map(|missing| if missing.has_stopped { i64::MAX } else { for_us(missing.since) });
    let awaited_for_us = interval.first_frame_awaited_since.map(for_us);
    let sender = participants.get(id).and_then(|receiver| receiver.sender_of(interval.track));
    let is_intended = match sender.map_or(Sender::Unknown, |sender| participants.sender(sender)) {
        Sender::Current(sender) => {
            sender.ended_before(ended)
                || sender.mute_period(interval.kind).covers(began, ended, patience_us)
        }
        Sender::Left => true,
        Sender::Unknown => false,
    };
    judge(interval, due_for_us, awaited_for_us, patience_us, is_intended)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use throng_observation::{Missing, TrackCounters, TrackId};

    use super::*;

    const S: i64 = 1_000_000;

    fn interval(kind: MediaKind) -> TrackInterval {
        let counters =
            TrackCounters { active_us: 1_000_000, freeze_us: 7, ..TrackCounters::default() };
        TrackInterval {
            track: TrackId(0),
            kind,
            ended_at: Instant::now(),
            counters,
            jitter_us: None,
            relative_delay_us: Vec::new(),
            absolute_delay_us: Vec::new(),
            capture_basis: None,
            oven_rtc_tester_delay_us: None,
            source_fps: None,
            frames_due_us: 1_000_000,
            first_frame_awaited_since: None,
            picture_lines: None,
            missing: None,
        }
    }

    #[test]
    fn media_that_is_due_may_take_time_to_begin_and_is_missing_after_that() {
        type Figures = Option<(u64, u64, u64)>;
        let (missing, playing): (Figures, Figures) =
            (Some((1_000_000, 1_000_000, 1_000_000)), Some((1_000_000, 7, 0)));
        let cases: [(&str, MediaKind, Option<i64>, bool, Figures); 7] = [
            ("it came", MediaKind::Video, None, false, playing),
            ("it is due for two seconds", MediaKind::Video, Some(2 * S), false, None),
            ("it is due for three", MediaKind::Video, Some(3 * S), false, missing),
            ("sound", MediaKind::Audio, Some(9 * S), false, Some((1_000_000, 7, 1_000_000))),
            ("its sender is mute", MediaKind::Video, Some(9 * S), true, None),
            ("it came, then its sender was mute", MediaKind::Video, None, true, Some((0, 0, 0))),
            ("a muted sender is not waited for", MediaKind::Video, Some(S), true, None),
        ];
        for (what, kind, due_for_us, is_intended, expect) in cases {
            let judged = judge(interval(kind), due_for_us, None, 3 * S, is_intended);
            let figures =
                judged.map(|i| (i.counters.active_us, i.counters.freeze_us, i.counters.missing_us));
            assert_eq!(figures, expect, "{what}");
        }
    }

    #[test]
    fn what_has_begun_and_stops_is_missing_at_once() {
        let started_at = Instant::now();
        let clock = RunClock { start: started_at };
        let participants = Participants::new(Arc::from([]), 1);
        let of = |has_stopped| {
            let missing = Some(Missing { since: started_at, has_stopped });
            let ended_at = started_at + Duration::from_secs(2);
            let interval = TrackInterval { ended_at, missing, ..interval(MediaKind::Audio) };
            judged(interval, 0, &participants, clock, 3 * S)
                .map(|interval| interval.counters.missing_us)
        };
        assert_eq!((of(false), of(true)), (None, Some(1_000_000)));
    }

    #[test]
    fn the_first_frame_is_given_time_to_come_and_then_frames_are_due() {
        let waiting = || TrackInterval { frames_due_us: 0, ..interval(MediaKind::Video) };
        let due = |awaited_for_us, is_intended| {
            let judged = judge(waiting(), None, awaited_for_us, 3 * S, is_intended);
            judged.map(|interval| interval.frames_due_us)
        };
        assert_eq!(due(Some(2 * S), false), Some(0), "it still joins");
        assert_eq!(due(Some(3 * S), false), Some(1_000_000), "packets come, and no picture");
        assert_eq!((due(Some(9 * S), true), due(None, false)), (Some(0), Some(0)));
    }
}
