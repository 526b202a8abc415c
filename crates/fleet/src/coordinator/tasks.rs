//! What a coordinator does all the time: it tells its time and its wishes, and hears pulses and
//! rows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::{ChangeOf, stream};
use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::host_clock::HostClock;
use crate::message::{
    Decision, End, Heartbeat, Pulse, Reassignment, Start, TimeAsked, TimeSaid, read, write,
};
use crate::steady_clock::SteadyClock;

/// Time between two beats.
pub(super) const BEAT_EVERY: Duration = Duration::from_millis(500);

/// Shortest time between two beats.
const PACE: Duration = Duration::from_millis(20);

/// Most changes of the crowd in a beat: a bus takes 1 MB. Later ones wait until workers have made
/// these.
const CHANGES_MAX: usize = 2_000;

/// Bytes of reassignments in a beat, some more for the first one. Later ones wait likewise.
const REASSIGNED_BYTES_MAX: usize = 500_000;

/// What came from the fleet.
#[derive(Debug)]
pub enum FleetEvent {
    /// How it goes for a worker.
    Pulse(Pulse),
    /// A batch of rows, not decoded.
    Rows {
        /// Whose.
        worker: u16,
        /// Its number, from 0 for each worker.
        sequence: u64,
        /// As [`wire`](crate::wire) has it.
        bytes: Vec<u8>,
    },
    /// How a worker's part ended, as it stored it behind its rows.
    Ended {
        /// Whose.
        worker: u16,
        /// How.
        end: End,
    },
    /// What the coordinator of the run had decided.
    Decided(Decision),
    /// All was read that the bus had of the run when somebody began to collect it.
    CaughtUp,
    /// The connection to the bus came up or went down.
    Bus(bool),
}

/// What is wanted of all workers.
#[derive(Clone)]
pub struct Wishes(Arc<(Mutex<Heartbeat>, Notify)>);

impl Wishes {
    pub(super) fn new(beat: Heartbeat) -> Self {
        Self(Arc::new((Mutex::new(beat), Notify::new())))
    }

    fn lock(&self) -> MutexGuard<'_, Heartbeat> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Heartbeat)) {
        change(&mut self.lock());
        self.0.1.notify_one();
    }

    /// What a beat says.
    fn said(&self) -> Heartbeat {
        let beat = self.lock();
        let changes = beat.changes.iter().take(CHANGES_MAX).copied().collect();
        Heartbeat {
            start: beat.start,
            stop: beat.stop.clone(),
            changes,
            lost: beat.lost.clone(),
            reassigned: fitting(&beat.reassigned),
            is_over: beat.is_over,
        }
    }

    /// When all begin.
    #[must_use]
    pub fn start(&self) -> Option<Start> {
        self.lock().start
    }

    /// Ends the run; the first reason stays.
    pub fn stop(&self, why: &str) {
        self.change(|beat| {
            beat.stop.get_or_insert_with(|| why.to_owned());
        });
    }

    /// Whether the run was ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.lock().stop.is_some()
    }

    /// Gives a worker up.
    pub fn give_up(&self, worker: u16) {
        self.change(|beat| {
            if !beat.lost.contains(&worker) {
                beat.lost.push(worker);
            }
        });
    }

    /// Gives participants to other workers.
    pub fn reassign(&self, reassignment: Reassignment) {
        self.change(|beat| beat.reassigned.push(reassignment));
    }

    /// Forgets the reassignments that all workers have made.
    pub fn reassigned(&self, up_to: u32) {
        self.lock().reassigned.retain(|reassignment| reassignment.number > up_to);
    }

    /// Changes the crowd; `number` is that of the change, from 1 without gaps.
    pub fn change_crowd(&self, number: u64, (worker, change): ChangeOf) {
        self.change(|beat| beat.changes.push((number, worker, change)));
    }

    /// Forgets the changes that all workers have made.
    pub fn changed(&self, up_to: u64) {
        self.lock().changes.retain(|change| change.0 > up_to);
    }

    pub(super) fn is_over(&self) {
        self.change(|beat| beat.is_over = true);
    }
}

/// The first reassignments, as many as a beat has room for; one at least.
fn fitting(reassigned: &[Reassignment]) -> Vec<Reassignment> {
    let mut room = REASSIGNED_BYTES_MAX;
    let fits = |given: &&Reassignment| {
        // Longest numbers with a comma, names of fields.
        let bytes = 150 + 6 * given.to.len() + 11 * given.ended.len();
        let is_first = room == REASSIGNED_BYTES_MAX;
        let has_room = is_first || bytes <= room;
        room = room.saturating_sub(bytes);
        has_room
    };
    reassigned.iter().take_while(fits).cloned().collect()
}

/// The tasks of a run.
pub(super) struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    pub(super) async fn start(
        bus: Bus,
        subjects: Subjects,
        clocks: (SteadyClock, HostClock),
        wishes: Wishes,
        last: Option<u64>,
        events: mpsc::Sender<FleetEvent>,
    ) -> Result<Self, FleetError> {
        let pulses = bus.client.subscribe(subjects.pulses()).await;
        let pulses = pulses.map_err(|error| FleetError::Bus(error.to_string()))?;
        let rows = stream::read(bus.clone(), subjects.clone(), last, events.clone());
        Ok(Self(vec![
            tokio::spawn(tell_time(bus.clone(), subjects.clone(), clocks)),
            tokio::spawn(hear_pulses(pulses, events.clone())),
            tokio::spawn(watch_bus(bus.clone(), events)),
            tokio::spawn(rows),
            tokio::spawn(beat(bus, subjects.beats(), wishes)),
        ]))
    }

    pub(super) fn stop(&self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Says what is wanted, again and again.
pub(super) async fn beat(bus: Bus, subject: String, wishes: Wishes) {
    loop {
        let beat = write(&wishes.said());
        let _ = bus.client.publish(subject.clone(), beat).await;
        // Changes that come at once travel together.
        tokio::time::sleep(PACE).await;
        let changed = wishes.0.1.notified();
        let _ = tokio::time::timeout(BEAT_EVERY - PACE, changed).await;
    }
}

/// Answers questions for the time, with what the host says of its clock.
pub(super) async fn tell_time(
    bus: Bus,
    subjects: Subjects,
    (steady, host): (SteadyClock, HostClock),
) {
    let Ok(mut questions) = bus.client.subscribe(subjects.time()).await else { return };
    while let Some(question) = questions.next().await {
        let received_us = steady.us();
        let Some(reply) = question.reply else { continue };
        if read::<TimeAsked>("a question for the time", &question.payload).is_ok() {
            let word = host.word(&steady);
            let said = TimeSaid { received_us, sent_us: steady.us(), word };
            let _ = bus.client.publish(reply, write(&said)).await;
            let _ = bus.client.flush().await;
        }
    }
}

async fn hear_pulses(mut pulses: async_nats::Subscriber, events: mpsc::Sender<FleetEvent>) {
    while let Some(message) = pulses.next().await {
        match read::<Pulse>("a pulse", &message.payload) {
            Ok(pulse) => {
                if events.send(FleetEvent::Pulse(pulse)).await.is_err() {
                    return;
                }
            }
            Err(error) => tracing::warn!("{error}"),
        }
    }
}

async fn watch_bus(mut bus: Bus, events: mpsc::Sender<FleetEvent>) {
    while bus.is_up.changed().await.is_ok() {
        let is_up = *bus.is_up.borrow();
        if events.send(FleetEvent::Bus(is_up)).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;

    use super::*;

    #[test]
    fn a_beat_has_as_many_reassignments_as_the_bus_takes_and_the_first_one_always() {
        let given = |number, ended: u32| Reassignment {
            number,
            of: 1,
            to: vec![u16::MAX; 4_000],
            from: RunTime(i64::MAX),
            ended: (0..ended).map(|number| u32::MAX - number).collect(),
        };
        let said = |reassigned: Vec<Reassignment>| {
            let said = Wishes::new(Heartbeat { reassigned, ..Heartbeat::default() }).said();
            let numbers: Vec<u32> = said.reassigned.iter().map(|given| given.number).collect();
            (numbers, write(&said).len())
        };
        let (numbers, bytes) = said((1..9).map(|number| given(number, 20_000)).collect());
        assert!(numbers == [1, 2] && bytes < 600_000, "{numbers:?} {bytes}");
        // A later one does not pass one that has no room.
        let sizes = [(1, 30_000), (2, 30_000), (3, 0)];
        assert_eq!(said(sizes.map(|(number, ended)| given(number, ended)).to_vec()).0, [1]);
        assert_eq!(said(vec![given(1, 60_000), given(2, 0)]).0, [1]);
    }
}
