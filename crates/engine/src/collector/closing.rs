//! What is measured and judged of a second when it is closed.

use throng_observation::limits::{
    GENERATOR_LIMITED_EVENT, HOST_DROPS_EVENT, MEMORY_EVENT, SUSPENDED_EVENT,
};
use throng_observation::run::{CohortId, EventRow, ParticipantId, Row};
use throng_observation::{ExperienceRow, RunTime, SecondClosed};

use super::generator::event_of_second;
use super::participants::Sender;
use super::{Collector, experience, snapshot};
use crate::live::RunState;

/// How often the tracks of a playing participant are written, so that an interrupted run has them.
const TRACKS_WRITTEN_EVERY_S: i64 = 30;

impl Collector {
    /// Ends the run before the kernel ends the process.
    pub(super) fn guard_memory(&mut self, second: i64) {
        let memory = self.health.memory();
        if memory.ratio > self.config.guards.memory_ratio_max
            && self.config.control.stopped().is_none()
        {
            let why = memory.to_string();
            self.abort(&why);
            self.event_row(event_of_second(second, MEMORY_EVENT, why));
        }
    }

    /// Measures the process and the host for `second`, and applies the guard of joins.
    pub(super) fn measure(&mut self, second: i64) {
        if let Some(detail) = self.health.measure(second) {
            self.event_row(event_of_second(second, HOST_DROPS_EVENT, detail));
        }
        if let Some(time) = self.suspension.since_last() {
            let why = format!(
                "the generator's machine was suspended for {:.1} s, in which servers went on",
                time.as_secs_f64()
            );
            self.event_row(event_of_second(second, SUSPENDED_EVENT, why));
        }
        if let Some(why) = self.joins.reason_to_abort(self.now()) {
            self.abort(&why);
        }
    }

    pub(super) fn close_second(&mut self, now: RunTime) {
        let second = self.open;
        self.open += 1;
        // Bounds that are raised stay so.
        if let Some(unloaded) = self.config.control.unloaded() {
            self.config.bad_if = self.config.bad_if.beyond(unloaded);
        }
        let (health, limits) = self.health.take(second);
        if !limits.is_empty() {
            self.event_row(event_of_second(second, GENERATOR_LIMITED_EVENT, limits.join("; ")));
        }
        let end = RunTime((second + 1) * 1_000_000).min(self.offered_until());
        self.participants.make_due(end);
        let intended = self.participants.intended(end);
        let intended = |cohort: u16| intended.get(usize::from(cohort)).copied().unwrap_or(0);
        let closed = self.seconds.close(second, intended);
        for record in self.participants.iter_mut() {
            let with_tracks = record.is_alive()
                && (second + i64::from(record.participant().0)) % TRACKS_WRITTEN_EVERY_S == 0;
            let with_tracks = with_tracks || record.has_unwritten_tracks;
            if record.is_changed || with_tracks || (record.is_overdue(end) && !record.is_written) {
                for row in record.rows(with_tracks) {
                    let _ = self.config.rows.send(row);
                }
            }
        }
        let (experience, is_generator_limited) = (self.experience(second), !limits.is_empty());
        let received = closed.received_bytes();
        let sent = health.iter().map(|row| row.sent_bytes).sum::<u64>();
        if let Some(why) = self.load.second(received.saturating_add(sent)) {
            self.abort(&why);
        }
        self.snapshot.at = now;
        self.snapshot.state = match self.config.control.stopped() {
            None if now < self.config.ends_at => RunState::Running,
            _ => RunState::Leaving,
        };
        self.join_times.show(&mut self.snapshot);
        snapshot::second(&mut self.snapshot, second, &closed);
        snapshot::clients(&mut self.snapshot, &self.participants);
        snapshot::worst(&mut self.snapshot, &self.participants, self.config.worst);
        snapshot::health(&mut self.snapshot, &health, limits);
        closed.crowd.into_iter().for_each(|row| self.write(Row::Crowd(row)));
        closed.series.into_iter().for_each(|row| self.write(Row::Series(Box::new(row))));
        closed.sent.into_iter().for_each(|row| self.write(Row::Sent(row)));
        closed.playback.into_iter().for_each(|row| self.write(Row::Playback(Box::new(row))));
        closed.chat.into_iter().for_each(|row| self.write(Row::Chat(Box::new(row))));
        health.into_iter().for_each(|row| self.write(Row::Generator(row)));
        self.write_requests();
        self.write(Row::SecondClosed(SecondClosed { second, experience, is_generator_limited }));
        self.participants.forget(second);
        self.publish();
    }

    /// The quality of the participants that should be served in `second`; empty while no joins are
    /// offered.
    fn experience(&mut self, second: i64) -> Vec<ExperienceRow> {
        let end = RunTime((second + 1) * 1_000_000);
        if second < 0 || end > self.offered_until() {
            return Vec::new();
        }
        let row =
            |cohort| ExperienceRow { second, cohort: CohortId(cohort), ..ExperienceRow::default() };
        let mut rows: Vec<_> = (0..self.config.cohorts.max(1)).map(row).collect();
        for (row, lost) in rows.iter_mut().zip(self.participants.lost(end)) {
            experience::count_lost(row, *lost);
        }
        let pause_us = |sender: ParticipantId| match self.participants.sender(sender) {
            Sender::Current(record) => record.pause_us(second),
            Sender::Left | Sender::Unknown => 0,
        };
        let mut paused = 0;
        for record in self.participants.iter() {
            if let Some(quality) = record.experience(second, &self.config.bad_if, pause_us) {
                paused += quality.paused;
                experience::count(&mut rows, record.cohort(), quality);
            }
        }
        if paused > 0 {
            self.event_row(EventRow {
                at: RunTime(second * 1_000_000),
                participant: None,
                kind: "sender_paused".to_owned(),
                count: paused,
                detail: format!(
                    "{paused} received video tracks froze because throng's own senders paused: \
                     not counted"
                )
                .into(),
            });
        }
        rows
    }
}
