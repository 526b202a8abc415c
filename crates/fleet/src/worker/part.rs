//! A worker's part of a run in progress: what is wanted of it, and where its rows go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::run::{Ending, Row};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::assignment::Assignment;
use super::beats::Beats;
use super::clock::ClockKeeper;
use super::rows::RowSpool;
use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::message::{ClockSaid, CrowdChange, End, Pulse, write};

/// Time between two pulses.
const PULSE_EVERY: Duration = Duration::from_millis(500);

/// How long the last rows wait for a bus that is away, when no coordinator is heard either.
const GIVES_UP_AFTER: Duration = Duration::from_secs(60);

/// What the coordinator wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Why the run ends now, if it does.
    pub stop: Option<String>,
    /// Changes of the crowd since the last time.
    pub changes: Vec<CrowdChange>,
}

/// A part of a run.
pub struct Part {
    runtime: Arc<Runtime>,
    bus: Bus,
    subjects: Subjects,
    keeper: ClockKeeper,
    beats: Beats,
    spool: RowSpool,
    worker: u16,
    started_at: Instant,
    end: Arc<Mutex<Option<End>>>,
    has_packed: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Part {
    pub(super) fn begin(
        assignment: Assignment,
        subjects: Subjects,
        keeper: ClockKeeper,
        (beats, listening): (Beats, JoinHandle<()>),
        started_at: Instant,
        spool_bytes_max: usize,
    ) -> Self {
        let Assignment { runtime, bus, order, .. } = assignment;
        let mut part = Self {
            runtime,
            bus,
            subjects,
            keeper,
            beats,
            spool: RowSpool::new(spool_bytes_max),
            worker: order.worker,
            started_at,
            end: Arc::default(),
            has_packed: Arc::default(),
            tasks: vec![listening],
        };
        let (bus, subjects) = (part.bus.clone(), part.subjects.clone());
        let publish = part.spool.clone().publish(bus.clone(), subjects.clone(), part.worker);
        let keep = part.keeper.clone().keep(bus, subjects);
        let pulses = part.pulses();
        part.tasks.push(part.runtime.spawn(publish));
        part.tasks.push(part.runtime.spawn(keep));
        part.tasks.push(part.runtime.spawn(pulses));
        part
    }

    /// Time 0 of the run.
    #[must_use]
    pub fn started_at(&self) -> Instant {
        self.started_at
    }

    /// The difference between this worker's clock and the coordinator's.
    #[must_use]
    pub fn clock(&self) -> ClockSaid {
        self.keeper.said()
    }

    /// Where the engine's rows go.
    ///
    /// # Errors
    /// If there is no thread to pack them.
    pub fn rows(&self) -> Result<SyncSender<Row>, FleetError> {
        let has_packed = Arc::clone(&self.has_packed);
        let packing = self.spool.pack(move || has_packed.store(true, Ordering::Release));
        packing.map_err(|error| FleetError::Bus(error.to_string()))
    }

    /// What the coordinator wants now.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        self.beats.wanted()
    }

    /// Ends the part: waits until the bus has every row, and until the coordinator has heard so or is gone. Returns how many
    /// batches could not be delivered because `is_interrupted` said to wait no longer.
    ///
    /// All senders of [`Self::rows`] must be gone.
    pub fn finish(
        self,
        ending: Ending,
        why: Option<String>,
        ended_at: RunTime,
        is_interrupted: &dyn Fn() -> bool,
    ) -> u64 {
        let pause = || std::thread::sleep(Duration::from_millis(20));
        while !self.has_packed.load(Ordering::Acquire) {
            pause();
        }
        // A coordinator that has ended the run, or given this worker up, wants none of it. Without coordinator and bus nobody will.
        let since = Instant::now();
        let nobody_comes = || self.spool.has_no_stream() || since.elapsed() > GIVES_UP_AFTER;
        let is_unwanted = || self.beats.is_silent() && nobody_comes();
        while self.spool.holds().batches > 0 && !is_unwanted() && !is_interrupted() {
            pause();
        }
        let left = self.spool.holds();
        if left.batches == 0 {
            let end = End { ending, why, ended_at, batches: left.made };
            *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
            while !self.beats.is_over() && !self.beats.is_silent() && !is_interrupted() {
                pause();
            }
        }
        left.batches
    }

    /// Tells how it goes, until the task is dropped.
    fn pulses(&self) -> impl Future<Output = ()> + Send + 'static {
        let (bus, subject) = (self.bus.clone(), self.subjects.pulses());
        let (worker, keeper, beats) = (self.worker, self.keeper.clone(), self.beats.clone());
        let (spool, end) = (self.spool.clone(), Arc::clone(&self.end));
        async move {
            loop {
                let held = spool.holds();
                let pulse = Pulse {
                    worker,
                    changed: beats.changed(),
                    clock: keeper.said(),
                    spooled: held.batches,
                    spooled_bytes: held.bytes,
                    given_up: held.given_up,
                    end: end.lock().unwrap_or_else(PoisonError::into_inner).clone(),
                };
                let _ = bus.client.publish(subject.clone(), write(&pulse)).await;
                tokio::time::sleep(PULSE_EVERY).await;
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
