//! A worker: waits on the bus for its share of a run, and tells how it goes.

mod assignment;
mod clock;
mod heartbeats;
mod late_delivery;
mod mirror;
mod part;
mod rows;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::runtime::Runtime;

pub use assignment::{Assignment, FleetClock};
pub use late_delivery::LateDelivery;
use late_delivery::Settled;
pub use mirror::Say;
pub use part::{Part, SpoolConfig, Undelivered, Wanted};
pub(crate) use rows::SEQUENCE;

use crate::FleetError;
use crate::bus::{Bus, BusConfig, MayBePlain, Subjects, is_run_name};
use crate::message::{Call, Offer, Order, read, write};
use crate::spool_folder::SpoolFolder;

/// How often somebody who waits looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A worker on the bus.
pub struct Worker {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) bus: Bus,
    offer: Offer,
}

impl Worker {
    /// Connects to the bus.
    ///
    /// # Errors
    /// If the bus cannot be reached, refuses the credentials, or is neither encrypted nor allowed
    /// without.
    pub fn connect(
        config: &BusConfig,
        offer: Offer,
        may_be_plain: MayBePlain<'_>,
    ) -> Result<Self, FleetError> {
        let runtime = runtime("fleet-worker")?;
        let bus = runtime
            .block_on(config.connect(&format!("throng worker {}", offer.name), may_be_plain))?;
        Ok(Self { runtime: Arc::new(runtime), bus, offer })
    }

    /// What hands in the rows that were left in `folder`.
    #[must_use]
    pub fn late_delivery(&self, folder: SpoolFolder) -> LateDelivery {
        let (runtime, bus) = (Arc::clone(&self.runtime), self.bus.clone());
        LateDelivery { runtime, bus, folder, said: HashSet::new(), settled: Settled::default() }
    }

    /// Offers itself to whoever calls, until it gets an order; `None` once `is_interrupted` says
    /// so.
    ///
    /// # Errors
    /// If the bus takes no subscriptions.
    pub fn next_order(
        &self,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Assignment>, FleetError> {
        self.runtime.block_on(async {
            let subscribe = async |subject: String| {
                let subscribed = self.bus.client.subscribe(subject).await;
                subscribed.map_err(|error| FleetError::Bus(error.to_string()))
            };
            let mut calls = subscribe(Subjects::calls().to_owned()).await?;
            let mut orders = subscribe(Subjects::order(&self.offer.id)).await?;
            loop {
                tokio::select! {
                    Some(call) = calls.next() => self.answer(&call).await,
                    Some(order) = orders.next() => {
                        if let Some(assignment) = self.assignment(order) {
                            return Ok(Some(assignment));
                        }
                    }
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
                if is_interrupted() {
                    return Ok(None);
                }
            }
        })
    }

    /// Offers itself to who called.
    async fn answer(&self, call: &async_nats::Message) {
        let Some(reply) = &call.reply else { return };
        match read::<Call>("a call", &call.payload) {
            Ok(_) => drop(self.bus.client.publish(reply.clone(), write(&self.offer)).await),
            Err(error) => tracing::warn!("{error}"),
        }
    }

    fn assignment(&self, message: async_nats::Message) -> Option<Assignment> {
        let order = match read::<Order>("an order", &message.payload) {
            Ok(order)
                if is_run_name(&order.run) && usize::from(order.worker) < order.weights.len() =>
            {
                order
            }
            Ok(_) => return None,
            Err(error) => {
                tracing::warn!("{error}");
                return None;
            }
        };
        let (runtime, bus) = (Arc::clone(&self.runtime), self.bus.clone());
        Some(Assignment { runtime, bus, order, reply: message.reply? })
    }
}

/// The runtime of a bus: one thread, so that the crowd keeps the cores.
pub(crate) fn runtime(name: &str) -> Result<Runtime, FleetError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .enable_all()
        .build();
    runtime.map_err(|error| FleetError::Bus(error.to_string()))
}
