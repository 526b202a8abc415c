//! Observations of participants, until their end.

use std::time::Instant;

use throng_observation::run::{EventRow, LayerSwitchRow, Row};
use throng_observation::{
    FailureReason, LayerSwitch, Observation, Outcome, Phase, RefusedDestination, RunTime,
    SentInterval, TrackInterval,
};

use super::{Collector, experience, missing, pauses};

/// Half the length below which a track's last interval counts to the second before.
const LEFTOVER_US: i64 = 125_000;

/// How long after a sender's pause receivers may still be frozen by it.
const REACHES_US: i64 = 500_000;

impl Collector {
    pub(super) fn observed(&mut self, id: u32, at: Instant, observation: Observation) {
        let clock = self.config.clock;
        match observation {
            Observation::Reached(phase, moment) => self.reached(id, phase, clock.run_time(moment)),
            Observation::Ice(state) => {
                self.update(id, |record, seconds| record.ice(state, clock.run_time(at), seconds));
            }
            Observation::Path(path) => *self.paths.entry(path).or_default() += 1,
            Observation::TrackOpened { track, kind, codec, is_recording } => {
                self.update(id, |record, _| record.track_opened(track, kind, codec, is_recording));
            }
            Observation::Interval(interval) => self.interval(id, *interval),
            Observation::Playback(interval) => self.playback(id, &interval),
            Observation::Chat(interval) => self.chat(id, &interval),
            Observation::Mutes { kind, is_muted, at } => {
                self.update(id, |record, _| record.mutes(kind, is_muted, clock.run_time(at)));
            }
            Observation::TrackFrom { track, from } => {
                self.update(id, |record, _| record.track_from(track, from));
            }
            Observation::TrackFirstFrame { track, at } => {
                self.update(id, |record, _| record.track_first_frame(track, clock.run_time(at)));
            }
            Observation::Sent(interval) => self.sent(id, &interval),
            Observation::LayerSwitched(switch) => self.layer_switched(id, &switch),
            Observation::SizeChanged { track, from, to, at } => {
                let detail =
                    format!("track {}: from {}×{} to {}×{}", track.0, from.0, from.1, to.0, to.1);
                self.event(id, at, "resolution_changed", detail);
            }
            Observation::Refused(what, to) => {
                let kind = match what {
                    RefusedDestination::IceCandidate => "refused_ice_candidate",
                    RefusedDestination::Redirect => "refused_redirect",
                    RefusedDestination::IceServer => "refused_ice_server",
                };
                self.event(id, at, kind, format!("the server named {to}, which is not allowed"));
            }
            Observation::LeaveUnanswered => {
                self.event(
                    id,
                    at,
                    "leave_unanswered",
                    "the server did not answer its leave request",
                );
            }
            // Frames go through the tap, not through the collector.
            Observation::Frame(_) => {}
            Observation::ProtocolAnomaly { place, detail } => {
                self.event(id, at, &format!("protocol_anomaly_{place}"), detail);
            }
        }
    }

    fn reached(&mut self, id: u32, phase: Phase, at: RunTime) {
        let Some(record) = self.participants.get_mut(id) else { return };
        let was_connected = record.was_connected();
        let Some(since_intended_us) = record.reached(phase, at, &mut self.seconds) else { return };
        tracing::debug!("participant {id}: {} at {:.3} s", phase.key(), at.as_secs_f64());
        if let Some(times) = self.join_times.to(phase) {
            times.record(since_intended_us);
        }
        if phase.is_connected() && !was_connected {
            self.joins.decided(at, true);
        }
    }

    fn interval(&mut self, id: u32, interval: TrackInterval) {
        let (clock, patience_us) =
            (self.config.clock, (self.config.bad_if.join_ms_max * 1e3) as i64);
        let judged = missing::judged(interval, id, &self.participants, clock, patience_us);
        let Some(interval) = judged else { return };
        let Some(record) = self.participants.get_mut(id) else { return };
        let ended_at = self.config.clock.run_time(interval.ended_at);
        let length_us = within_a_second(interval.counters.active_us.into());
        let middle = middle(ended_at, length_us).max(self.open);
        self.seconds.add(middle, id, record.cohort(), &interval);
        record.interval(&interval, middle, &self.config.bad_if);
        if interval.counters.packets_original > 0 {
            self.mark_played(id, ended_at, length_us);
        }
    }

    /// Counts participant `id` as playing in the seconds of an interval. Half-covered seconds at
    /// both ends count, so that a participant does not seem to pause between two intervals.
    pub(super) fn mark_played(&mut self, id: u32, ended_at: RunTime, length_us: i64) {
        let Some(record) = self.participants.get_mut(id) else { return };
        let first = RunTime(ended_at.0 - length_us + 250_000).second();
        for second in first..=RunTime(ended_at.0 - 250_000).second() {
            if second >= self.open && record.mark_played(second) {
                self.seconds.crowd(second, record.cohort()).playing += 1;
            }
        }
    }

    fn sent(&mut self, id: u32, interval: &SentInterval) {
        let Some(record) = self.participants.get_mut(id) else { return };
        record.sends = true;
        let ended_at = self.config.clock.run_time(interval.ended_at);
        // Assigned as received intervals are, so that both are compared in the same second.
        let second = middle(ended_at, within_a_second(interval.length.as_micros())).max(self.open);
        self.seconds.add(second, id, record.cohort(), interval);
        if let Some(pause_us) = pauses::own_pause_us(interval) {
            let began = RunTime(ended_at.0 - within_a_second(interval.length.as_micros()));
            // Its receivers' intervals begin at other times than its own.
            for second in began.second()..=RunTime(ended_at.0 + REACHES_US).second() {
                record.paused(second, pause_us);
            }
        }
        if record.receives_nothing() {
            record.add_remote_report(
                second,
                experience::remote_loss_clauses(interval, &self.config.bad_if),
            );
        }
    }

    fn layer_switched(&mut self, id: u32, switch: &LayerSwitch) {
        let Some(record) = self.participants.get(id) else { return };
        let (width, height) = switch.shown.map_or((0, 0), |(_, width, height)| (width, height));
        self.write(Row::LayerSwitch(LayerSwitchRow {
            participant: record.participant(),
            track: switch.track,
            layer: switch.layer,
            requested_at: self.config.clock.run_time(switch.requested_at),
            shown_at: switch.shown.map(|(at, ..)| self.config.clock.run_time(at)),
            width,
            height,
        }));
    }

    pub(super) fn ended(&mut self, id: u32, at: Instant, outcome: &Outcome) {
        let ended_at = self.config.clock.run_time(at);
        let outcome = &self.told(outcome);
        let Some(record) = self.participants.get_mut(id) else { return };
        if !record.ended(ended_at, outcome, &mut self.seconds) {
            return;
        }
        let (participant, connected) = (record.participant(), record.was_connected());
        let rows = record.rows(true);
        let how = match outcome {
            Outcome::Completed => "as planned".to_owned(),
            Outcome::Failed(failure) => format!("{}: {failure}", failure.reason.key()),
        };
        tracing::debug!("participant {id}: ended at {:.3} s, {how}", ended_at.as_secs_f64());
        self.participants.ended(id, ended_at.second().max(self.open));
        // A join that the end of the run interrupted is not a failure.
        if let Outcome::Failed(failure) = outcome
            && failure.reason != FailureReason::NotStarted
        {
            *self.snapshot.failures.entry(failure.reason.key()).or_default() += 1;
            self.snapshot.last_failure_at = self.snapshot.last_failure_at.max(Some(ended_at));
            if !connected {
                self.joins.decided(ended_at, false);
            }
            let (kind, detail) = ("failed".to_owned(), failure.to_string().into());
            self.event_row(EventRow {
                at: ended_at,
                participant: Some(participant),
                kind,
                count: 1,
                detail,
            });
        }
        rows.into_iter().for_each(|row| self.write(row));
    }
}

/// The length of an interval, microseconds, cut to a second: late ticks make some a little longer.
pub(super) fn within_a_second(us: u128) -> i64 {
    i64::try_from(us).unwrap_or(1_000_000).clamp(1, 1_000_000)
}

/// The second in which most of an interval lies. A short rest of a track at the beginning of a
/// second belongs to the second before.
pub(super) fn middle(ended_at: RunTime, length_us: i64) -> i64 {
    RunTime(ended_at.0 - (length_us / 2).max(LEFTOVER_US)).second()
}
