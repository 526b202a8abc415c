//! The rows of a run in JetStream: stored by the bus until the coordinator has them, across restarts of either.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, consumer::DeliverPolicy};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use super::FleetEvent;
use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::worker::SEQUENCE;

/// How long the bus keeps the rows of a run that nobody fetched.
const KEPT_FOR: Duration = Duration::from_hours(24);

/// In which time the bus notices that a batch was sent twice.
const SAME_WITHIN: Duration = Duration::from_mins(2);

/// Time until a consumer that failed is made again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Makes the stream of a run, or finds it.
pub(super) async fn make(bus: &Bus, subjects: &Subjects, shown: &str) -> Result<(), FleetError> {
    let config = Config {
        name: subjects.stream(),
        subjects: vec![subjects.all_rows()],
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        max_age: KEPT_FOR,
        duplicate_window: SAME_WITHIN,
        storage: StorageType::File,
        ..Config::default()
    };
    let made = jetstream::new(bus.client.clone()).get_or_create_stream(config).await;
    made.map(drop).map_err(|error| FleetError::NoJetStream { bus: shown.to_owned(), why: error.to_string() })
}

/// Removes it.
pub(super) async fn delete(bus: &Bus, subjects: &Subjects) {
    let _ = jetstream::new(bus.client.clone()).delete_stream(subjects.stream()).await;
}

/// How many batches it holds.
pub(super) async fn batches(bus: &Bus, subjects: &Subjects) -> Result<u64, FleetError> {
    let bus_error = |error: String| FleetError::Bus(error);
    let context = jetstream::new(bus.client.clone());
    let mut stream = context.get_stream(subjects.stream()).await.map_err(|e| bus_error(e.to_string()))?;
    let info = stream.info().await.map_err(|error| bus_error(error.to_string()))?;
    Ok(info.state.messages)
}

/// Reads the rows in the order in which they were stored, and goes on after the last one read when the bus was away.
pub(super) async fn read(bus: Bus, subjects: Subjects, events: mpsc::Sender<FleetEvent>) {
    let (mut next, mut is_up) = (1, bus.is_up.clone());
    loop {
        tokio::select! {
            read = read_from(&bus, &subjects, &events, &mut next) => if let Err(error) = read {
                tracing::debug!("rows are read again from {next}: {error}");
            },
            // The server that comes back does not know the consumer any more, which would take a while to notice.
            Ok(()) = is_up.changed() => {}
        }
        if events.is_closed() {
            return;
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn read_from(
    bus: &Bus,
    subjects: &Subjects,
    events: &mpsc::Sender<FleetEvent>,
    next: &mut u64,
) -> Result<(), async_nats::Error> {
    let stream = jetstream::new(bus.client.clone()).get_stream(subjects.stream()).await?;
    let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: *next };
    let config = OrderedConfig { deliver_policy, ..OrderedConfig::default() };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        *next = message.info()?.stream_sequence.saturating_add(1);
        let sequence = message.headers.as_ref().and_then(|headers| headers.get(SEQUENCE));
        let sequence = sequence.and_then(|sequence| sequence.as_str().parse().ok());
        let (Some(worker), Some(sequence)) = (subjects.worker_of(&message.subject), sequence) else {
            continue;
        };
        let rows = FleetEvent::Rows { worker, sequence, bytes: message.payload.to_vec() };
        if events.send(rows).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
