//! What was due and did not come, told from what nobody meant to send.
//!
//! A participant says what is due by offer, answer and signalling. How long it may take to begin is the time to join, and who
//! of the run's own participants is mute, or left, no server needs to say: they say so themselves.

use std::time::Instant;

use throng_observation::{MediaKind, RunTime, TrackInterval};

use super::Collector;
use super::participants::Sender;

/// When a participant last meant to send nothing of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MutePeriod {
    since: Option<RunTime>,
    until: Option<RunTime>,
}

impl MutePeriod {
    pub(super) fn changed(&mut self, is_muted: bool, at: RunTime) {
        *self =
            if is_muted { Self { since: Some(at), until: None } } else { Self { until: Some(at), ..*self } };
    }

    /// Whether it lay in the time from `began` to `ended`; after its end, `patience_us` are given to begin again.
    pub(super) fn covers(&self, began: RunTime, ended: RunTime, patience_us: i64) -> bool {
        self.since.is_some_and(|since| since <= ended)
            && self.until.is_none_or(|until| began.0 < until.0 + patience_us)
    }
}

/// The interval as it counts; `None` where it says nothing yet. Where nothing came, `due_for_us` is how long something was due
/// when the interval began, and `awaited_for_us` how long the first frame was waited for; `is_meant` says that in some of its
/// time its sender meant to send nothing.
fn judge(
    mut interval: TrackInterval,
    due_for_us: Option<i64>,
    awaited_for_us: Option<i64>,
    patience_us: i64,
    is_meant: bool,
) -> Option<TrackInterval> {
    let counters = &mut interval.counters;
    match due_for_us {
        Some(us) if is_meant || us < patience_us => return None,
        Some(_) => {
            counters.missing_us = counters.active_us;
            interval.frames_due_us = counters.active_us;
            if interval.kind == MediaKind::Video {
                // A picture that is not there stands still.
                counters.freeze_us = counters.active_us;
            }
        }
        // It came for a part of the time: that says nothing of a rate or a freeze.
        None if is_meant => {
            (counters.active_us, counters.freeze_us, counters.freeze_count) = (0, 0, 0);
            interval.frames_due_us = 0;
        }
        // Packets come, and no frame of them for longer than it may take to join.
        None if awaited_for_us.is_some_and(|us| us >= patience_us) => {
            interval.frames_due_us = counters.active_us;
        }
        None => {}
    }
    Some(interval)
}

impl Collector {
    /// The interval as it counts; `None` where it says nothing yet.
    pub(super) fn judged(&self, id: u32, interval: TrackInterval) -> Option<TrackInterval> {
        let ended = self.config.clock.run_time(interval.ended_at);
        let active_us = i64::try_from(interval.counters.active_us).unwrap_or(i64::MAX);
        let began = RunTime(ended.0.saturating_sub(active_us));
        let patience_us = (self.config.bad_if.join_ms_max * 1e3) as i64;
        let for_us = |since: Instant| began.0 - self.config.clock.run_time(since).0;
        let due_for_us = interval.missing_since.map(for_us);
        let awaited_for_us = interval.first_frame_awaited_since.map(for_us);
        let receiver = self.participants.get(id);
        let sender = receiver.and_then(|receiver| receiver.sender_of(interval.track));
        let is_meant = match sender.map_or(Sender::Unknown, |sender| self.participants.sender(sender)) {
            Sender::Current(sender) => {
                sender.ended_before(ended) || sender.silence(interval.kind).covers(began, ended, patience_us)
            }
            Sender::Left => true,
            Sender::Unknown => false,
        };
        judge(interval, due_for_us, awaited_for_us, patience_us, is_meant)
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::{TrackCounters, TrackId};

    use super::*;

    const S: i64 = 1_000_000;

    fn interval(kind: MediaKind) -> TrackInterval {
        let counters = TrackCounters { active_us: 1_000_000, freeze_us: 7, ..TrackCounters::default() };
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
            missing_since: None,
        }
    }

    #[test]
    fn what_is_due_is_given_time_to_begin_and_then_it_is_missing() {
        type Told = Option<(u64, u64, u64)>;
        let (missing, playing): (Told, Told) =
            (Some((1_000_000, 1_000_000, 1_000_000)), Some((1_000_000, 7, 0)));
        let cases: [(&str, MediaKind, Option<i64>, bool, Told); 7] = [
            ("it came", MediaKind::Video, None, false, playing),
            ("it is due for two seconds", MediaKind::Video, Some(2 * S), false, None),
            ("it is due for three", MediaKind::Video, Some(3 * S), false, missing),
            ("sound", MediaKind::Audio, Some(9 * S), false, Some((1_000_000, 7, 1_000_000))),
            ("its sender is mute", MediaKind::Video, Some(9 * S), true, None),
            ("it came, then its sender was mute", MediaKind::Video, None, true, Some((0, 0, 0))),
            ("who is mute is not waited for", MediaKind::Video, Some(S), true, None),
        ];
        for (what, kind, due_for_us, is_meant, expect) in cases {
            let judged = judge(interval(kind), due_for_us, None, 3 * S, is_meant);
            let told = judged.map(|i| (i.counters.active_us, i.counters.freeze_us, i.counters.missing_us));
            assert_eq!(told, expect, "{what}");
        }
    }

    #[test]
    fn the_first_frame_is_given_time_to_come_and_then_frames_are_due() {
        let waiting = || TrackInterval { frames_due_us: 0, ..interval(MediaKind::Video) };
        let due = |awaited_for_us, is_meant| {
            let judged = judge(waiting(), None, awaited_for_us, 3 * S, is_meant);
            judged.map(|interval| interval.frames_due_us)
        };
        assert_eq!(due(Some(2 * S), false), Some(0), "it still joins");
        assert_eq!(due(Some(3 * S), false), Some(1_000_000), "packets come, and no picture");
        assert_eq!((due(Some(9 * S), true), due(None, false)), (Some(0), Some(0)));
    }

    #[test]
    fn who_is_mute_is_so_until_it_had_time_to_begin_again() {
        let mut silence = MutePeriod::default();
        let covers = |silence: &MutePeriod, began: i64| {
            silence.covers(RunTime(began * S), RunTime((began + 1) * S), 3 * S)
        };
        assert!(!covers(&silence, 10));
        silence.changed(true, RunTime(10 * S + S / 2));
        assert_eq!([8, 9, 10, 60].map(|began| covers(&silence, began)), [false, false, true, true]);
        silence.changed(false, RunTime(20 * S));
        assert_eq!([15, 22, 23].map(|began| covers(&silence, began)), [true, true, false]);
    }
}
