//! The rows of a run in JetStream, the ends of its workers' parts, and the coordinator's decisions: stored by the bus until the
//! coordinator has them, across restarts of either.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, consumer::DeliverPolicy};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use super::FleetEvent;
use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::message::{Decision, End, read as read_message, write};
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
        subjects: vec![subjects.all_rows(), subjects.all_ends(), subjects.decisions()],
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

/// The first and the last message of a stream, by their numbers; numbers begin at 1, and the last one is 0 before the first came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// What the bus holds of the run; `None` if it does not know it.
pub(super) async fn held(bus: &Bus, subjects: &Subjects) -> Result<Option<Held>, FleetError> {
    let context = jetstream::new(bus.client.clone());
    let stream = match context.get_stream(subjects.stream()).await {
        Ok(stream) => stream,
        Err(error) => {
            return match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    Ok(None)
                }
                _ => Err(FleetError::Bus(error.to_string())),
            };
        }
    };
    let state = &stream.cached_info().state;
    Ok(Some(Held { first: state.first_sequence, last: state.last_sequence }))
}

/// Stores a decision; whether the bus has it.
pub(super) async fn keep(bus: &Bus, subjects: &Subjects, decision: &Decision) -> bool {
    let stream = jetstream::new(bus.client.clone());
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", format!("decision-{}", decision.worker));
    match stream.publish_with_headers(subjects.decisions(), headers, write(decision)).await {
        Ok(stored) => stored.await.is_ok(),
        Err(_) => false,
    }
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
        let Some(event) = event(subjects, &message) else { continue };
        if events.send(event).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// What a message of the stream says.
fn event(subjects: &Subjects, message: &async_nats::Message) -> Option<FleetEvent> {
    if let Some(worker) = subjects.worker_of(&message.subject) {
        let sequence = message.headers.as_ref().and_then(|headers| headers.get(SEQUENCE))?;
        let sequence = sequence.as_str().parse().ok()?;
        return Some(FleetEvent::Rows { worker, sequence, bytes: message.payload.to_vec() });
    }
    let event = match subjects.ended_by(&message.subject) {
        Some(worker) => {
            read_message::<End>("an end", &message.payload).map(|end| FleetEvent::Ended { worker, end })
        }
        None => read_message::<Decision>("a decision", &message.payload).map(FleetEvent::Decided),
    };
    event.inspect_err(|error| tracing::warn!("{error}")).ok()
}
