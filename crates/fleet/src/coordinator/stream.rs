//! The rows of a run in JetStream, the ends of its workers' parts, and the coordinator's decisions:
//! stored by the bus until the coordinator has them, across restarts of either.

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
    made.map(drop)
        .map_err(|error| FleetError::NoJetStream { bus: shown.to_owned(), why: error.to_string() })
}

/// Removes it.
pub(super) async fn delete(bus: &Bus, subjects: &Subjects) {
    let _ = jetstream::new(bus.client.clone()).delete_stream(subjects.stream()).await;
}

/// The first and the last message of a stream, by their numbers; numbers begin at 1, and the last
/// one is 0 before the first came.
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
                GetStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
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

/// How far the rows were read.
struct Reading {
    /// The next message.
    next: u64,
    /// The last message that was there when somebody began to collect, until it is told that it was
    /// read.
    last: Option<u64>,
}

impl Reading {
    /// Whether all of what was there was read, which is yet to be told.
    fn has_caught_up(&self) -> bool {
        self.last.is_some_and(|last| last < self.next)
    }

    /// Tells so; whether somebody is there to hear it. The reading may be broken off at each
    /// `await`: only what was told counts.
    async fn tell(&mut self, events: &mpsc::Sender<FleetEvent>) -> bool {
        if self.has_caught_up() {
            if events.send(FleetEvent::CaughtUp).await.is_err() {
                return false;
            }
            self.last = None;
        }
        true
    }
}

/// Reads the rows in the order in which they were stored, and goes on after the last one read when
/// the bus was away. Tells when message `last` was read, and all before it.
pub(super) async fn read(
    bus: Bus,
    subjects: Subjects,
    last: Option<u64>,
    events: mpsc::Sender<FleetEvent>,
) {
    let (mut reading, mut is_up) = (Reading { next: 1, last }, bus.is_up.clone());
    loop {
        tokio::select! {
            read = read_from(&bus, &subjects, &events, &mut reading) => if let Err(error) = read {
                tracing::debug!("rows are read again from {}: {error}", reading.next);
            },
            // The server that comes back does not know the consumer any more, which would take a
            // while to notice.
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
    reading: &mut Reading,
) -> Result<(), async_nats::Error> {
    let stream = jetstream::new(bus.client.clone()).get_stream(subjects.stream()).await?;
    let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: reading.next };
    let config = OrderedConfig { deliver_policy, ..OrderedConfig::default() };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    // Nothing was there, or the bus went away before it was told.
    if !reading.tell(events).await {
        return Ok(());
    }
    while let Some(message) = messages.next().await {
        let message = message?;
        let next = message.info()?.stream_sequence.saturating_add(1);
        if let Some(event) = event(subjects, &message)
            && events.send(event).await.is_err()
        {
            return Ok(());
        }
        reading.next = next;
        if !reading.tell(events).await {
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
        Some(worker) => read_message::<End>("an end", &message.payload)
            .map(|end| FleetEvent::Ended { worker, end }),
        None => read_message::<Decision>("a decision", &message.payload).map(FleetEvent::Decided),
    };
    event.inspect_err(|error| tracing::warn!("{error}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_has_come_once_the_last_message_was_read_that_was_there() {
        let has_caught_up = |next, last| Reading { next, last }.has_caught_up();
        assert_eq!(
            [1, 7, 8, 9].map(|next| has_caught_up(next, Some(7))),
            [false, false, true, true]
        );
        assert!(has_caught_up(1, Some(0)), "nothing was there");
        assert!(!has_caught_up(9, None), "it leads the run, or has told so");
    }
}
