//! The coordinator: finds workers, gives each its share, starts them together, and takes what they measured.

mod gather;
mod ledger;
mod stream;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::mpsc;

pub use gather::{GatherConfig, Member};
pub use ledger::{FleetEnd, Ledger, Notice, NoticeKind};
pub use tasks::{FleetEvent, Wishes};

use crate::FleetError;
use crate::bus::{Bus, BusConfig, MayBePlain, Subjects};
use crate::message::{Beat, CrowdChange, Start};
use crate::steady::SteadyClock;
use tasks::Tasks;

/// Events that may wait to be merged; each is a pulse or a batch of rows.
const EVENTS_WAITING_MAX: usize = 256;

/// A coordinator on the bus.
pub struct Coordinator {
    runtime: Arc<Runtime>,
    bus: Bus,
    subjects: Subjects,
    steady: SteadyClock,
    shown: String,
}

impl Coordinator {
    /// Connects to the bus, for the run that is named `run` on it (see [`is_run_name`](crate::is_run_name)).
    ///
    /// # Errors
    /// If the bus cannot be reached, refuses the credentials, is neither encrypted nor allowed without, or has no JetStream.
    pub fn connect(config: &BusConfig, run: &str, may_be_plain: MayBePlain<'_>) -> Result<Self, FleetError> {
        let runtime = crate::worker::runtime("fleet")?;
        let subjects = Subjects::of(run);
        let bus = runtime.block_on(async {
            let bus = config.connect("throng coordinator", may_be_plain).await?;
            stream::make(&bus, &subjects, &config.shown()).await?;
            Ok::<_, FleetError>(bus)
        })?;
        let steady = SteadyClock::now_on();
        Ok(Self { runtime: Arc::new(runtime), bus, subjects, steady, shown: config.shown() })
    }

    /// The clock that the whole fleet follows.
    #[must_use]
    pub fn clock(&self) -> SteadyClock {
        self.steady
    }

    /// The bus, without user and password.
    #[must_use]
    pub fn bus(&self) -> &str {
        &self.shown
    }

    /// Finds workers and lets them prepare; returns them by number, once all are ready.
    ///
    /// # Errors
    /// If too few come, one refuses, or `is_interrupted`.
    pub fn gather(
        &self,
        config: &GatherConfig,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<Member>, FleetError> {
        let telling =
            self.runtime.spawn(tasks::tell_time(self.bus.clone(), self.subjects.clone(), self.steady));
        // Workers that are ready hear that others still prepare.
        let waiting = tasks::beat(self.bus.clone(), self.subjects.beats(), Wishes::new(Beat::default()));
        let beating = self.runtime.spawn(waiting);
        let gathered = self.runtime.block_on(gather::gather(&self.bus, config, is_interrupted));
        telling.abort();
        beating.abort();
        gathered
    }

    /// Lets all begin in `lead`, and takes what comes from them.
    ///
    /// # Errors
    /// If the bus takes no subscriptions.
    pub fn start(&self, lead: Duration) -> Result<FleetRun, FleetError> {
        let lead_us = i64::try_from(lead.as_micros()).unwrap_or(i64::MAX);
        let start = Start { at_unix_us: self.steady.us().saturating_add(lead_us) };
        self.take(Beat { start: Some(start), ..Beat::default() })
    }

    /// Takes what is left of a run whose coordinator is gone.
    ///
    /// # Errors
    /// If the bus takes no subscriptions.
    pub fn resume(&self) -> Result<FleetRun, FleetError> {
        self.take(Beat { stop: Some("its coordinator was gone".into()), ..Beat::default() })
    }

    fn take(&self, beat: Beat) -> Result<FleetRun, FleetError> {
        let wishes = Wishes::new(beat);
        let (send, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let (bus, subjects) = (self.bus.clone(), self.subjects.clone());
        let starting = Tasks::start(bus, subjects, self.steady, wishes.clone(), send);
        let tasks = self.runtime.block_on(starting)?;
        Ok(FleetRun { runtime: Arc::clone(&self.runtime), wishes, events, tasks })
    }

    /// Removes the rows of the run from the bus.
    pub fn forget(&self) {
        self.runtime.block_on(stream::delete(&self.bus, &self.subjects));
    }

    /// How many batches of rows the bus holds.
    ///
    /// # Errors
    /// If it does not know the run.
    pub fn batches_held(&self) -> Result<u64, FleetError> {
        self.runtime.block_on(stream::batches(&self.bus, &self.subjects))
    }
}

/// A run in progress, as the coordinator has it.
pub struct FleetRun {
    runtime: Arc<Runtime>,
    wishes: Wishes,
    events: mpsc::Receiver<FleetEvent>,
    tasks: Tasks,
}

impl FleetRun {
    /// What is wanted of the workers; shared, so that others can change it.
    #[must_use]
    pub fn wishes(&self) -> Wishes {
        self.wishes.clone()
    }

    /// The next event within `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Option<FleetEvent> {
        let events = &mut self.events;
        self.runtime.block_on(async { tokio::time::timeout(timeout, events.recv()).await.ok().flatten() })
    }

    /// Tells the workers that everything has come, and lets go.
    pub fn end(self) {
        self.wishes.is_over();
        // A beat may be lost; workers that hear none let go by themselves.
        std::thread::sleep(2 * tasks::BEAT_EVERY);
        self.tasks.stop();
    }
}

/// A change of the crowd for one worker.
pub type ChangeOf = (u16, CrowdChange);
