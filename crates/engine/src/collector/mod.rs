//! Turns the events of the engine threads into the run's rows and the live snapshot. A second is
//! closed 1.2 s after its end, when the intervals of all participants have arrived.

mod chat_record;
mod chats;
mod ended_participants;
mod experience;
mod generator;
mod join_times;
mod last_seconds;
mod merged;
mod missing;
mod mute_period;
mod participant_record;
mod participants;
mod pauses;
mod player_record;
mod players;
mod seconds;
mod snapshot;
mod track_record;

pub use merged::MergedLive;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_observation::limits::{
    GENERATOR_LIMITED_EVENT, HOST_DROPS_EVENT, MEMORY_EVENT, STANDSTILL_MS_MIN, SUSPENDED_EVENT,
};
use throng_observation::run::{
    ABORT_EVENT, ADDRESS_EVENT, CohortId, Ending, EventRow, LayerSwitchRow, ParticipantId, Row,
};
use throng_observation::{
    BadIf, Detail, ExperienceRow, FailureReason, LayerSwitch, MediaPath, Observation, Outcome,
    Phase, RefusedDestination, RunTime, SecondClosed, SentInterval, TrackInterval,
};

use crate::clock::{RunClock, Suspension};
use crate::config::{Guards, Join};
use crate::control::{Control, RunEnd};
use crate::crowd::CrowdCommand;
use crate::driver::DriverEvent;
use crate::guards::{JoinFailureGuard, LoadGuard};
use crate::live::{LiveSnapshot, RunState};
use crate::requests::RequestTable;
use crate::sockets::ChosenAddresses;
use generator::{Health, event_of_second};
use join_times::JoinTimes;
use participant_record::ParticipantRecord;
use participants::{Participants, Sender};
use seconds::Seconds;

/// Time from the end of a second until it is closed.
const CLOSED_AFTER_US: i64 = 1_200_000;

/// Between two looks of the collector, if it stood still.
const STOOD_STILL_US: i64 = STANDSTILL_MS_MIN as i64 * 1000;

/// How often the guard of memory looks: a crowd that joins may take a small control group's within
/// a second.
const MEMORY_EVERY_US: i64 = 100_000;

/// How often the tracks of a playing participant are written, so that an interrupted run has them.
const TRACKS_WRITTEN_EVERY_S: i64 = 30;

/// Half the length below which a track's last interval counts to the second before.
const LEFTOVER_US: i64 = 125_000;

/// How long after a sender's pause receivers may still be frozen by it.
const REACHES_US: i64 = 500_000;

/// Event rows of one kind, since a hostile server can cause endless anomalies. One row at the end
/// counts the rest.
const EVENTS_OF_A_KIND_MAX: u32 = 1000;

/// What the collector needs at its start.
pub(crate) struct CollectorConfig {
    pub(crate) clock: RunClock,
    pub(crate) ends_at: RunTime,
    pub(crate) cohorts: u16,
    /// The joins of the plan, in order of time.
    pub(crate) plan: Arc<[Join]>,
    pub(crate) worst: usize,
    pub(crate) guards: Guards,
    pub(crate) bad_if: BadIf,
    pub(crate) control: Arc<Control>,
    pub(crate) live: Arc<Mutex<LiveSnapshot>>,
    /// Which address of a name participants chose.
    pub(crate) addresses: Arc<ChosenAddresses>,
    pub(crate) rows: SyncSender<Row>,
}

/// Collects events of the threads.
pub(crate) struct Collector {
    config: CollectorConfig,
    participants: Participants,
    seconds: Seconds,
    requests: RequestTable,
    /// The next second to close.
    open: i64,
    health: Health,
    suspension: Suspension,
    joins: JoinFailureGuard,
    load: LoadGuard,
    /// Whether the event of an early end was written.
    stop_written: bool,
    snapshot: LiveSnapshot,
    join_times: JoinTimes,
    events: BTreeMap<String, u32>,
    /// Participants by the path of their media.
    paths: BTreeMap<MediaPath, u32>,
}

impl Collector {
    pub(crate) fn new(config: CollectorConfig) -> Self {
        let participants = Participants::new(Arc::clone(&config.plan), config.cohorts);
        let seconds = Seconds::new(config.cohorts);
        let mut snapshot = LiveSnapshot { ends_at: config.ends_at, ..LiveSnapshot::default() };
        snapshot.crowd.planned = u32::try_from(participants.planned()).unwrap_or(u32::MAX);
        let (joins, load) = (JoinFailureGuard::new(config.guards), LoadGuard::new(config.guards));
        Self {
            config,
            participants,
            seconds,
            requests: RequestTable::default(),
            open: 0,
            health: Health::begin(),
            suspension: Suspension::begin(),
            joins,
            load,
            stop_written: false,
            snapshot,
            join_times: JoinTimes::default(),
            events: BTreeMap::new(),
            paths: BTreeMap::new(),
        }
    }

    /// Collects until every thread has ended.
    pub(crate) fn run(mut self, seen: &Receiver<Vec<DriverEvent>>) -> RunEnd {
        let mut measured = self.now().second();
        let (mut looked_at, mut not_before) = (self.now(), self.now());
        let mut guarded_at = looked_at;
        loop {
            match seen.recv_timeout(Duration::from_millis(100)) {
                Ok(batch) => {
                    // Added participants first: the batch may be about them.
                    self.take_crowd_commands();
                    batch.into_iter().for_each(|seen| self.take(seen));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.take_crowd_commands();
            self.write_stop();
            let now = self.now();
            if now.0 - looked_at.0 >= STOOD_STILL_US {
                // The threads stood still too: what they saw before that is still to come.
                not_before = RunTime(now.0 + CLOSED_AFTER_US);
            }
            looked_at = now;
            if now.0 - guarded_at.0 >= MEMORY_EVERY_US {
                guarded_at = now;
                self.guard_memory(now.second());
            }
            if now.second() > measured {
                self.measure(measured);
                measured = now.second();
            }
            while self.now().0 >= not_before.0.max((self.open + 1) * 1_000_000 + CLOSED_AFTER_US) {
                self.close_second(self.now());
            }
        }
        self.finish()
    }

    fn now(&self) -> RunTime {
        self.config.clock.run_time(Instant::now())
    }

    /// Until when joins were offered: to the end of the plan, or to an early end.
    fn offered_until(&self) -> RunTime {
        let stopped_at =
            self.config.control.stopped().map(|stop| self.config.clock.run_time(stop.at));
        stopped_at.map_or(self.config.ends_at, |at| at.min(self.config.ends_at))
    }

    /// Writes the event of an early end, once.
    fn write_stop(&mut self) {
        let Some(stop) = self.config.control.stopped().filter(|_| !self.stop_written) else {
            return;
        };
        self.stop_written = true;
        let kind = if stop.ending == Ending::Aborted { ABORT_EVENT } else { "stop" };
        let (at, detail) = (self.config.clock.run_time(stop.at), stop.why.as_str().into());
        self.event_row(EventRow { at, participant: None, kind: kind.into(), count: 1, detail });
    }

    /// Applies additions and removals of participants.
    fn take_crowd_commands(&mut self) {
        for command in self.config.control.crowd.take_for_collector() {
            match command {
                CrowdCommand::Add(id, join) => {
                    self.participants.added(id, &join);
                    self.snapshot.crowd.planned = self.snapshot.crowd.planned.saturating_add(1);
                }
                CrowdCommand::Remove(id) => {
                    let now = self.now();
                    self.participants.removed(id, now);
                }
            }
        }
    }

    fn take(&mut self, seen: DriverEvent) {
        match seen {
            DriverEvent::Started { id, at } => {
                let at = self.config.clock.run_time(at);
                if let Some(record) = self.participants.start(id) {
                    record.started(at, &mut self.seconds);
                }
            }
            DriverEvent::LocalAddress { id, address } => {
                self.update(id, |record, _| {
                    record.local_address.get_or_insert(address);
                });
            }
            DriverEvent::RefusedSend { id, at, to } => {
                self.event(id, at, "refused_send", format!("a datagram to {to} is not allowed"));
            }
            DriverEvent::UnreachableSend { id, at, to, why } => {
                self.event(
                    id,
                    at,
                    "unreachable_send",
                    format!("no route for a datagram to {to}: {why}"),
                );
            }
            DriverEvent::Ended { id, at, outcome } => self.ended(id, at, &outcome),
            DriverEvent::Health(row) => self.health.add(row),
            DriverEvent::Requests(requests) => self.requests.merge(requests),
            DriverEvent::Burst { second, thread, dropped, silent, by_ring } => {
                let event = self.health.burst((second, thread), dropped, silent, by_ring);
                self.event_row(event);
            }
            DriverEvent::Receive { at, thread, kind, detail } => {
                let at = self.config.clock.run_time(at);
                let detail = format!("thread {thread}: {detail}").into();
                self.event_row(EventRow {
                    at,
                    participant: None,
                    kind: kind.into(),
                    count: 1,
                    detail,
                });
            }
            DriverEvent::Observed { id, at, observation } => self.observed(id, at, observation),
        }
    }

    /// Calls `act` on the record of participant `id`, if it is kept.
    fn update(&mut self, id: u32, act: impl FnOnce(&mut ParticipantRecord, &mut Seconds)) {
        if let Some(record) = self.participants.get_mut(id) {
            act(record, &mut self.seconds);
        }
    }

    fn observed(&mut self, id: u32, at: Instant, observation: Observation) {
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
        self.seconds.interval(middle, id, record.cohort(), &interval);
        record.interval(&interval, middle, &self.config.bad_if);
        if interval.counters.packets_received > 0 {
            self.mark_played(id, ended_at, length_us);
        }
    }

    /// Counts participant `id` as playing in the seconds of an interval. Half-covered seconds at
    /// both ends count, so that a participant does not seem to pause between two intervals.
    fn mark_played(&mut self, id: u32, ended_at: RunTime, length_us: i64) {
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
        self.seconds.sent(second, id, record.cohort(), interval);
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

    fn ended(&mut self, id: u32, at: Instant, outcome: &Outcome) {
        let ended_at = self.config.clock.run_time(at);
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

    fn event(&mut self, id: u32, at: Instant, kind: &str, detail: impl Into<Detail>) {
        if self.is_counted_only(kind) {
            return;
        }
        let detail = detail.into();
        let (participant, at) =
            (Some(self.participants.number(id)), self.config.clock.run_time(at));
        self.event_row(EventRow { at, participant, kind: kind.to_owned(), count: 1, detail });
    }

    /// Whether there are enough rows of a kind: a server that says very much costs no words.
    fn is_counted_only(&mut self, kind: &str) -> bool {
        let count = self.events.get_mut(kind).filter(|count| **count >= EVENTS_OF_A_KIND_MAX);
        count.is_some_and(|count| {
            *count = count.saturating_add(1);
            true
        })
    }

    fn event_row(&mut self, event: EventRow) {
        let count = self.events.entry(event.kind.clone()).or_default();
        *count = count.saturating_add(1);
        if *count > EVENTS_OF_A_KIND_MAX {
            return; // counted in one row at the end
        }
        snapshot::remember(&mut self.snapshot, &event);
        self.write(Row::Event(event));
    }

    fn write(&self, row: Row) {
        // Without a reader the run continues for the live snapshot.
        let _ = self.config.rows.send(row);
    }

    fn abort(&mut self, why: &str) {
        self.config.control.stop(Ending::Aborted, why);
        self.write_stop();
    }

    /// Ends the run before the kernel ends the process.
    fn guard_memory(&mut self, second: i64) {
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
    fn measure(&mut self, second: i64) {
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

    fn close_second(&mut self, now: RunTime) {
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
                    "{paused} received video tracks froze because throng's own senders paused: not counted"
                )
                .into(),
            });
        }
        rows
    }

    fn write_requests(&mut self) {
        for row in self.requests.take_changed(self.config.clock) {
            self.write(Row::HttpRequests(Box::new(row)));
        }
    }

    fn publish(&self) {
        if let Ok(mut live) = self.config.live.lock() {
            live.clone_from(&self.snapshot);
        }
    }

    /// Writes one row for each kind of event that was too frequent, with the number of unwritten
    /// events.
    fn write_unwritten_events(&mut self, at: RunTime) {
        for (kind, count) in std::mem::take(&mut self.events) {
            let count = count.saturating_sub(EVENTS_OF_A_KIND_MAX);
            if count > 0 {
                let detail =
                    format!("{count} more events of this kind were not written individually")
                        .into();
                self.write(Row::Event(EventRow { at, participant: None, kind, count, detail }));
            }
        }
    }

    /// Writes one row for each media path, with the number of participants.
    fn write_media_paths(&mut self, at: RunTime) {
        for (path, count) in std::mem::take(&mut self.paths) {
            let kind = format!("{}{}", MediaPath::EVENT, path.key());
            let detail = format!("media of {count} participants took this path").into();
            self.write(Row::Event(EventRow { at, participant: None, kind, count, detail }));
        }
    }

    /// Writes one row for each address of a name with several, with the number of participants.
    fn write_addresses(&mut self, at: RunTime) {
        for (address, count) in self.config.addresses.take() {
            let kind = format!("{ADDRESS_EVENT}{address}");
            let detail =
                format!("{count} participants used this address of a name with several").into();
            self.write(Row::Event(EventRow { at, participant: None, kind, count, detail }));
        }
    }

    fn finish(self) -> RunEnd {
        let ended_at = self.now();
        self.finish_at(ended_at)
    }

    fn finish_at(mut self, ended_at: RunTime) -> RunEnd {
        let offered_until = self.offered_until();
        self.write_stop();
        for (id, failure) in self.participants.left_over(offered_until) {
            self.ended(id, self.config.clock.instant(ended_at), &Outcome::Failed(failure));
        }
        while self.open <= ended_at.second() {
            self.close_second(ended_at);
        }
        self.health.losses_of_others(ended_at).into_iter().for_each(|event| self.event_row(event));
        self.write_requests();
        self.write_unwritten_events(ended_at);
        self.write_media_paths(ended_at);
        self.write_addresses(ended_at);
        let stop = self.config.control.stopped();
        self.snapshot.state = RunState::Finished;
        self.snapshot.at = ended_at;
        self.publish();
        RunEnd {
            ending: stop.map_or(Ending::Complete, |stop| stop.ending),
            why: stop.map(|stop| stop.why.clone()),
            ended_at,
            limited_seconds: self.snapshot.generator.limited_seconds,
        }
    }
}

/// The length of an interval, microseconds, cut to a second: late ticks make some a little longer.
fn within_a_second(us: u128) -> i64 {
    i64::try_from(us).unwrap_or(1_000_000).clamp(1, 1_000_000)
}

/// The second in which most of an interval lies. A short rest of a track at the beginning of a
/// second belongs to the second before.
fn middle(ended_at: RunTime, length_us: i64) -> i64 {
    RunTime(ended_at.0 - (length_us / 2).max(LEFTOVER_US)).second()
}

#[cfg(test)]
mod day_tests;
#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod player_tests;
#[cfg(test)]
mod unloaded_tests;
