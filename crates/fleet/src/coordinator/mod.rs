//! The coordinator: finds workers, gives each its share, starts them together, and takes what they
//! measured.

mod gather;
mod ledger;
mod stream;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

pub use gather::{GatherConfig, Member};
pub use ledger::{FleetEnd, Ledger, Notice, NoticeKind};
pub use tasks::{FleetEvent, Wishes};

use crate::FleetError;
use crate::bus::{Bus, BusConfig, MayBePlain, Subjects};
use crate::disciplined::ClockWord;
use crate::host_clock::HostClock;
use crate::message::{CrowdChange, Decision, Heartbeat, Start, read};
use crate::steady_clock::SteadyClock;
use tasks::Tasks;

/// Events that may wait to be merged; each is a pulse or a batch of rows.
const EVENTS_WAITING_MAX: usize = 256;

/// How long the bus may take to store a decision: whoever waits for it hears no worker meanwhile.
const KEPT_WITHIN: Duration = Duration::from_secs(1);

/// In so long a coordinator that leads a run is heard.
const LED_WITHIN: Duration = Duration::from_secs(2);

/// A coordinator on the bus.
pub struct Coordinator {
    runtime: Arc<Runtime>,
    bus: Bus,
    subjects: Subjects,
    steady: SteadyClock,
    host: HostClock,
    shown: String,
}

impl Coordinator {
    /// Connects to the bus, for the run that is named `run` on it (see
    /// [`is_run_name`](crate::is_run_name)).
    ///
    /// # Errors
    /// If the bus cannot be reached, refuses the credentials, is neither encrypted nor allowed
    /// without, or has no JetStream.
    pub fn connect(
        config: &BusConfig,
        run: &str,
        may_be_plain: MayBePlain<'_>,
    ) -> Result<Self, FleetError> {
        let found = Self::on(config, run, may_be_plain)?;
        found.runtime.block_on(stream::make(&found.bus, &found.subjects, &found.shown))?;
        Ok(found)
    }

    /// Connects to the bus, for what is left there of a run whose coordinator is gone; with the
    /// number of the last message that the bus has of it.
    ///
    /// # Errors
    /// As [`Self::connect`]; [`FleetError::RowsGone`] if the bus has not all rows of the run;
    /// [`FleetError::IsLed`].
    pub fn find(
        config: &BusConfig,
        run: &str,
        may_be_plain: MayBePlain<'_>,
    ) -> Result<(Self, u64), FleetError> {
        let found = Self::on(config, run, may_be_plain)?;
        let gone = |what: &str| {
            let (bus, run) = (found.shown.clone(), run.to_owned());
            Err(FleetError::RowsGone { bus, run, what: what.to_owned() })
        };
        let last = match found.runtime.block_on(stream::held(&found.bus, &found.subjects))? {
            None => return gone("has no rows"),
            Some(held) if held.first > 1 => return gone("has only the last rows"),
            Some(held) => held.last,
        };
        if found.runtime.block_on(is_led(&found.bus, &found.subjects))? {
            return Err(FleetError::IsLed { bus: found.shown.clone(), run: run.to_owned() });
        }
        Ok((found, last))
    }

    fn on(config: &BusConfig, run: &str, may_be_plain: MayBePlain<'_>) -> Result<Self, FleetError> {
        let runtime = crate::worker::runtime("fleet")?;
        let bus = runtime.block_on(config.connect("throng coordinator", may_be_plain))?;
        let (subjects, steady, host) =
            (Subjects::of(run), SteadyClock::now_on(), HostClock::default());
        Ok(Self { runtime: Arc::new(runtime), bus, subjects, steady, host, shown: config.shown() })
    }

    /// Tells workers, with its time, what its host says of its clock.
    #[must_use]
    pub fn with_host_clock(self, host: HostClock) -> Self {
        Self { host, ..self }
    }

    /// What this host says of its clock.
    #[must_use]
    pub fn word(&self) -> Option<ClockWord> {
        self.host.word(&self.steady)
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
        let telling = self.runtime.spawn(tasks::tell_time(
            self.bus.clone(),
            self.subjects.clone(),
            self.clocks(),
        ));
        // Workers that are ready hear that others still prepare.
        let waiting =
            tasks::beat(self.bus.clone(), self.subjects.beats(), Wishes::new(Heartbeat::default()));
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
        self.take(Heartbeat { start: Some(start), ..Heartbeat::default() }, None)
    }

    /// Takes what is left of a run whose coordinator is gone: all that the bus has of it from its
    /// beginning, and what workers still bring. Those that play are stopped.
    /// [`FleetEvent::CaughtUp`] comes behind message `last`, which [`Self::find`] has told.
    ///
    /// # Errors
    /// If the bus takes no subscriptions.
    pub fn resume(&self, last: u64) -> Result<FleetRun, FleetError> {
        self.take(
            Heartbeat { stop: Some("its coordinator was gone".into()), ..Heartbeat::default() },
            Some(last),
        )
    }

    fn take(&self, beat: Heartbeat, last: Option<u64>) -> Result<FleetRun, FleetError> {
        let wishes = Wishes::new(beat);
        let (send, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let (bus, subjects) = (self.bus.clone(), self.subjects.clone());
        let starting = Tasks::start(bus, subjects, self.clocks(), wishes.clone(), last, send);
        let tasks = self.runtime.block_on(starting)?;
        Ok(FleetRun { runtime: Arc::clone(&self.runtime), wishes, events, tasks })
    }

    fn clocks(&self) -> (SteadyClock, HostClock) {
        (self.steady, self.host.clone())
    }

    /// Removes the rows of the run from the bus.
    pub fn forget(&self) {
        self.runtime.block_on(stream::delete(&self.bus, &self.subjects));
    }

    /// The number of the last message that the bus has of the run; `None` if it does not say.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.runtime
            .block_on(stream::held(&self.bus, &self.subjects))
            .ok()
            .flatten()
            .map(|held| held.last)
    }

    /// Stores a decision between the rows, for whoever may have to collect them; whether the bus
    /// has it.
    pub fn keep(&self, decision: &Decision) -> bool {
        let keeping = stream::keep(&self.bus, &self.subjects, decision);
        self.runtime
            .block_on(async { tokio::time::timeout(KEPT_WITHIN, keeping).await.unwrap_or(false) })
    }
}

/// Whether somebody tells the workers of a run what is wanted.
async fn is_led(bus: &Bus, subjects: &Subjects) -> Result<bool, FleetError> {
    let subscribed = bus.client.subscribe(subjects.beats()).await;
    let mut beats = subscribed.map_err(|error| FleetError::Bus(error.to_string()))?;
    let heard = tokio::time::timeout(LED_WITHIN, beats.next()).await.ok().flatten();
    Ok(heard.is_some_and(|beat| read::<Heartbeat>("a beat", &beat.payload).is_ok()))
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
        self.runtime
            .block_on(async { tokio::time::timeout(timeout, events.recv()).await.ok().flatten() })
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
