//! Turns the events of the engine threads into the run's rows and the live snapshot. A second is
//! closed 1.2 s after its end, when the intervals of all participants have arrived.

mod chat_record;
mod chats;
mod closing;
mod ended_participants;
mod events;
mod experience;
mod generator;
mod join_times;
mod last_seconds;
mod merged;
mod missing;
mod mute_period;
mod observed;
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

use throng_observation::limits::STANDSTILL_MS_MIN;
use throng_observation::run::{ABORT_EVENT, Ending, EventRow, Row};
use throng_observation::{BadIf, MediaPath, Outcome, RunTime};
use throng_scenario::Secret;

use crate::clock::{RunClock, Suspension};
use crate::config::{Guards, Join};
use crate::control::{Control, RunEnd};
use crate::crowd::CrowdCommand;
use crate::driver::DriverEvent;
use crate::guards::{JoinFailureGuard, LoadGuard};
use crate::live::{LiveSnapshot, RunState};
use crate::requests::RequestTable;
use crate::sockets::ChosenAddresses;
use generator::Health;
use join_times::JoinTimes;
use participant_record::ParticipantRecord;
use participants::Participants;
use seconds::Seconds;

/// Time from the end of a second until it is closed.
const CLOSED_AFTER_US: i64 = 1_200_000;

/// Between two looks of the collector, if it stood still.
const STOOD_STILL_US: i64 = STANDSTILL_MS_MIN as i64 * 1000;

/// How often the guard of memory looks: a crowd that joins may take a small control group's within
/// a second.
const MEMORY_EVERY_US: i64 = 100_000;

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
    /// What servers were told, and is not told of what they say.
    pub(crate) secrets: Vec<Secret>,
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
        snapshot.planned = u32::try_from(participants.planned()).unwrap_or(u32::MAX);
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
                    self.snapshot.planned = self.snapshot.planned.saturating_add(1);
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
            // A server may have redirected to a place that has a secret.
            DriverEvent::Requests(requests) => {
                self.requests.merge_shown(requests, |path| self.config.without_secrets(path));
            }
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

    fn write(&self, row: Row) {
        // Without a reader the run continues for the live snapshot.
        let _ = self.config.rows.send(row);
    }

    fn abort(&mut self, why: &str) {
        self.config.control.stop(Ending::Aborted, why);
        self.write_stop();
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

#[cfg(test)]
mod day_tests;
#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod player_tests;
#[cfg(test)]
mod secrets_tests;
#[cfg(test)]
mod unloaded_tests;
