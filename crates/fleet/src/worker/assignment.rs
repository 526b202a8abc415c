//! An order that came: refused, or prepared until the run begins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::clock::{ClockKeeper, measure};
use super::heartbeats::Heartbeats;
use super::part::{Part, SpoolConfig};
use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::host_clock::HostClock;
use crate::message::{Order, Prepared, Ready, write};
use crate::steady_clock::SteadyClock;

/// Less time than this before the start is too late to begin with the others.
const LEAD_MIN: Duration = Duration::from_millis(100);

/// The coordinator's clock, as far as this worker knows it.
pub struct FleetClock(ClockKeeper);

impl FleetClock {
    /// The coordinator's clock at `instant`, microseconds since the Unix epoch.
    #[must_use]
    pub fn us_at(&self, instant: Instant) -> i64 {
        self.0.steady.us_at(instant).saturating_add(self.0.said().offset_us)
    }
}

/// An order for this worker.
pub struct Assignment {
    pub(super) runtime: Arc<Runtime>,
    pub(super) bus: Bus,
    /// What is to be played.
    pub order: Order,
    pub(super) reply: async_nats::Subject,
}

impl Assignment {
    /// Says why it will not be played.
    pub fn refuse(self, why: &str) {
        self.answer(&Prepared::Refused(why.to_owned()));
    }

    fn answer(&self, prepared: &Prepared) {
        self.runtime.block_on(async {
            let _ = self.bus.client.publish(self.reply.clone(), write(prepared)).await;
            let _ = self.bus.client.flush().await;
        });
    }

    /// Measures the difference between this worker's clock and the coordinator's; `host` is what
    /// this host says of its clock.
    ///
    /// # Errors
    /// If the coordinator does not tell its time.
    pub fn measure_clocks(&self, host: HostClock) -> Result<FleetClock, FleetError> {
        let keeper = ClockKeeper::new(SteadyClock::now_on(), host);
        let subjects = Subjects::of(&self.order.run);
        self.runtime.block_on(measure(&self.bus, &subjects, &keeper))?;
        Ok(FleetClock(keeper))
    }

    /// Says that everything is `ready`, and waits for the start. `None` when the coordinator does
    /// without this worker: it stopped, it was not heard any more, or `is_interrupted`.
    ///
    /// # Errors
    /// If the bus takes no subscriptions, or the start comes too late.
    pub fn ready(
        self,
        ready: Ready,
        FleetClock(keeper): FleetClock,
        spool: SpoolConfig,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Part>, FleetError> {
        let subjects = Subjects::of(&self.order.run);
        let steady = keeper.steady;
        let listening = Heartbeats::listen(&self.bus, &subjects, self.order.worker);
        let (beats, listening) = self.runtime.block_on(listening)?;
        self.answer(&Prepared::Ready(Ready { clock: keeper.said(), ..ready }));
        beats.heard_now();
        let start = loop {
            if is_interrupted() || beats.wanted().stop.is_some() {
                listening.abort();
                return Ok(None);
            }
            if let Some(start) = beats.start() {
                break start;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let at = steady.instant(start.at_unix_us.saturating_sub(keeper.said().offset_us));
        if at < Instant::now() + LEAD_MIN {
            return Err(FleetError::Bus(
                "the start came too late to begin with the other workers".into(),
            ));
        }
        Ok(Some(Part::begin(self, subjects, keeper, (beats, listening), at, spool)))
    }
}
