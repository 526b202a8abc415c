//! A worker's part of a run in progress: what is wanted of it, and where its rows go.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::run::{Ending, Row};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::assignment::Assignment;
use super::clock::ClockKeeper;
use super::heartbeats::Heartbeats;
use super::mirror::{Mirror, Say};
use super::rows::RowSpool;
use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::message::{ClockSaid, CrowdChange, End, Pulse, Reassignment, write};
use crate::spool_folder::KeptSpool;

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
    /// Participants that were given to other workers since the last time, in order.
    pub reassigned: Vec<Reassignment>,
}

/// What could not be delivered when a part ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// Batches of rows.
    pub batches: u64,
    /// Those of them that a file holds; the others are lost with this process.
    pub kept: u64,
    /// The file; `None` where there is none, or it holds nothing.
    pub kept_in: Option<PathBuf>,
}

/// Where rows wait that the bus has not stored.
pub struct SpoolConfig {
    /// Most bytes in memory.
    pub bytes_max: usize,
    /// The file that they are written to as well.
    pub file: Option<KeptSpool>,
    /// Says what happens to the file.
    pub say: Say,
}

/// A part of a run.
pub struct Part {
    runtime: Arc<Runtime>,
    bus: Bus,
    subjects: Subjects,
    keeper: ClockKeeper,
    beats: Heartbeats,
    spool: RowSpool,
    mirror: Option<Mirror>,
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
        (beats, listening): (Heartbeats, JoinHandle<()>),
        started_at: Instant,
        spool: SpoolConfig,
    ) -> Self {
        let SpoolConfig { bytes_max, file, say } = spool;
        let spool = RowSpool::new(bytes_max);
        let mirrored = file.and_then(|file| Mirror::start(spool.clone(), file, say).ok());
        let Assignment { runtime, bus, order, .. } = assignment;
        let mut part = Self {
            runtime,
            bus,
            subjects,
            keeper,
            beats,
            spool,
            mirror: mirrored,
            worker: order.worker,
            started_at,
            end: Arc::default(),
            has_packed: Arc::default(),
            tasks: vec![listening],
        };
        let (bus, subjects) = (part.bus.clone(), part.subjects.clone());
        let publish = part.spool.clone().publish_all(bus.clone(), subjects.clone(), part.worker);
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

    /// Ends the part: waits until the bus has every row and how the part ended, and until the
    /// coordinator has heard so or is gone. Returns what could not be delivered, because
    /// `is_interrupted` said to wait no longer or nobody takes it.
    ///
    /// All senders of [`Self::rows`] must be gone.
    pub fn finish(
        mut self,
        ending: Ending,
        why: Option<String>,
        ended_at: RunTime,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Undelivered {
        let pause = || std::thread::sleep(Duration::from_millis(20));
        while !self.has_packed.load(Ordering::Acquire) {
            pause();
        }
        // A coordinator that has ended the run, or given this worker up, wants none of it. Without
        // coordinator and bus nobody will.
        let since = Instant::now();
        let nobody_comes = || self.spool.has_no_stream() || since.elapsed() > GIVES_UP_AFTER;
        let is_unwanted = || self.beats.is_silent() && nobody_comes();
        while self.spool.holds().batches > 0 && !is_unwanted() && !is_interrupted() {
            pause();
        }
        let left = self.spool.holds();
        let end = End { ending, why, ended_at, batches: left.made };
        let message = write(&end).to_vec();
        let mut is_stored = false;
        if left.batches == 0 {
            *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
            let (bus, subjects) = (self.bus.clone(), self.subjects.clone());
            let telling = self.spool.clone().tell_end(bus, subjects, self.worker, message.clone());
            let telling = self.runtime.spawn(telling);
            let nobody_hears = || self.beats.is_silent() || self.beats.is_given_up();
            let is_told = || self.beats.is_over() || telling.is_finished() && nobody_hears();
            while !is_told() && !is_unwanted() && !is_interrupted() {
                pause();
            }
            is_stored = telling.is_finished();
            telling.abort();
        }
        let is_done = is_stored || self.beats.is_over() || self.beats.is_given_up();
        let (batches, mirror) = (left.batches, self.mirror.take());
        match mirror.and_then(|mirror| self.keep(mirror, &message, is_done)) {
            Some((kept, path)) => {
                Undelivered { batches, kept: kept.min(batches), kept_in: Some(path) }
            }
            None => Undelivered { batches, ..Undelivered::default() },
        }
    }

    /// Writes what is left to the file, unless nobody wants it; how many batches it holds then, and
    /// where it is. A file that has no room for the rest holds what it has.
    fn keep(&self, mirror: Mirror, end: &[u8], is_done: bool) -> Option<(u64, PathBuf)> {
        let mut writer = mirror.stop()?;
        if is_done {
            writer.kept.remove();
            return None;
        }
        let written = writer.take(&self.spool).and_then(|()| writer.kept.end(end));
        let batches = writer.kept.batches();
        (written.is_ok() || batches > 0).then(|| (batches, writer.kept.path().to_owned()))
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
                    reassigned: beats.reassigned(),
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
        // Its file is nobody's until the thread that writes it has ended.
        drop(self.mirror.take().and_then(Mirror::stop));
    }
}
