//! Rows on their way to the bus: packed into batches, kept in the spool until JetStream has stored
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream;
use async_nats::jetstream::context::PublishErrorKind;
use throng_observation::run::Row;
use tokio::sync::Notify;

use crate::bus::{Bus, Subjects};
use crate::spool::{Batch, BatchKind, Spool};
use crate::wire::{self, WireLimits};

/// The header with the number of a batch.
pub(crate) const SEQUENCE: &str = "Throng-Sequence";

/// Rows that may wait to be packed.
const ROWS_WAITING_MAX: usize = 16_384;

/// Rows that are packed together.
const ROWS_OF_A_BATCH: usize = 4_000;

/// Longest batch, bytes: below the longest message of a bus, which is 1 MB unless it is configured
/// otherwise.
const BATCH_BYTES_MAX: usize = 900_000;

/// How long a row waits for others: the coordinator needs the rows of a second soon after it.
const PACKED_WITHIN: Duration = Duration::from_millis(200);

/// Time until a batch that was not stored is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The rows of a worker that are not on the bus yet.
#[derive(Clone)]
pub(super) struct RowSpool {
    spool: Arc<Mutex<Spool>>,
    filled: Arc<Notify>,
    /// The bus does not know the run any more.
    has_no_stream: Arc<AtomicBool>,
}

/// What a spool holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spooled {
    pub(super) batches: u64,
    pub(super) bytes: u64,
    /// Batches that it had no room for.
    pub(super) given_up: u64,
    /// Batches that were ever made.
    pub(super) made: u64,
}

impl RowSpool {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            spool: Arc::new(Mutex::new(Spool::new(bytes_max))),
            filled: Arc::default(),
            has_no_stream: Arc::default(),
        }
    }

    /// Whether the last batch found nowhere to be stored: the coordinator has removed the run, or
    /// the bus only comes up.
    pub(super) fn has_no_stream(&self) -> bool {
        self.has_no_stream.load(Ordering::Relaxed)
    }

    /// The number of the first batch that the bus has not stored, and those from `next` on.
    pub(super) fn unsent_from(&self, next: u64) -> (u64, Vec<Batch>) {
        let spool = self.lock();
        let first = spool.unsent(0).next().map_or(spool.next(), |batch| batch.number);
        (first, spool.unsent(next).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn holds(&self) -> Spooled {
        let spool = self.lock();
        Spooled {
            batches: spool.unsent(0).count() as u64,
            bytes: spool.bytes() as u64,
            given_up: BatchKind::ALL.iter().map(|kind| spool.given_up(*kind).batches).sum(),
            made: spool.next(),
        }
    }

    /// A sender for the engine's rows. The thread behind it ends once all senders are gone, and
    /// then calls `at_end`.
    pub(super) fn pack(
        &self,
        at_end: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<SyncSender<Row>> {
        let (rows, received) = sync_channel(ROWS_WAITING_MAX);
        let spool = self.clone();
        std::thread::Builder::new().name("fleet-rows".into()).spawn(move || {
            spool.pack_all(&received);
            at_end();
        })?;
        Ok(rows)
    }

    fn pack_all(&self, received: &Receiver<Row>) {
        let mut waiting: Vec<Row> = Vec::new();
        let mut pack_at = Instant::now();
        loop {
            if waiting.is_empty() {
                pack_at = Instant::now() + PACKED_WITHIN;
            }
            match received.recv_timeout(pack_at.saturating_duration_since(Instant::now())) {
                Ok(row) => waiting.push(row),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break self.put(&mut waiting),
            }
            if waiting.len() >= ROWS_OF_A_BATCH || Instant::now() >= pack_at {
                self.put(&mut waiting);
            }
        }
    }

    /// Puts rows into the spool, those that matter alike together: what later rows replace before
    /// those, and the ends of seconds last, so that all that belongs to a second is there when the
    /// coordinator hears that it is over.
    fn put(&self, rows: &mut Vec<Row>) {
        let mut of_kind =
            |kind| rows.extract_if(.., |row| BatchKind::of(row) == kind).collect::<Vec<_>>();
        let sorted = [BatchKind::Interim, BatchKind::Lasting, BatchKind::Second]
            .map(|kind| (kind, of_kind(kind)));
        sorted.iter().for_each(|(kind, rows)| self.put_batches(*kind, rows));
    }

    /// As many batches as the size of the rows needs.
    fn put_batches(&self, kind: BatchKind, rows: &[Row]) {
        if rows.is_empty() {
            return;
        }
        match wire::encode(rows, WireLimits::default()) {
            Ok(bytes) if bytes.len() <= BATCH_BYTES_MAX => {
                self.lock().push(kind, bytes);
                self.filled.notify_one();
            }
            Err(error) if rows.len() == 1 => tracing::error!("a row cannot be sent: {error}"),
            _ if rows.len() == 1 => tracing::error!("a row is too long to be sent"),
            _ => {
                let (first, rest) = rows.split_at(rows.len() / 2);
                self.put_batches(kind, first);
                self.put_batches(kind, rest);
            }
        }
    }

    /// Sends batches in order, each until it is stored; goes on until the task is dropped.
    pub(super) async fn publish_all(self, bus: Bus, subjects: Subjects, worker: u16) {
        loop {
            let next =
                self.lock().unsent(0).next().map(|batch| (batch.number, batch.bytes.clone()));
            let Some((sequence, bytes)) = next else {
                self.filled.notified().await;
                continue;
            };
            let stored = publish_batch(&bus, &subjects, worker, sequence, bytes).await;
            self.note(&stored);
            match stored {
                Ok(()) => self.lock().confirm(sequence.saturating_add(1)),
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            }
        }
    }

    /// Stores how the part ended, once all batches are there; goes on until the bus has it.
    pub(super) async fn tell_end(
        self,
        bus: Bus,
        subjects: Subjects,
        worker: u16,
        message: Vec<u8>,
    ) {
        loop {
            let stored = publish_end(&bus, &subjects, worker, message.clone()).await;
            self.note(&stored);
            if stored.is_ok() {
                return;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    fn note(&self, stored: &Result<(), Refused>) {
        self.has_no_stream.store(matches!(stored, Err(Refused::NoStream)), Ordering::Relaxed);
    }
}

/// Why the bus did not store something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It does not know the run.
    NoStream,
    /// It did not say that it has it; it may have it.
    NotStored,
}

/// Sends a batch, until the bus has stored it or says why not.
pub(super) async fn publish_batch(
    bus: &Bus,
    subjects: &Subjects,
    worker: u16,
    sequence: u64,
    bytes: Vec<u8>,
) -> Result<(), Refused> {
    let mut headers = HeaderMap::new();
    // The bus drops what it has stored already, where only its answer was lost.
    headers.insert("Nats-Msg-Id", format!("{worker}-{sequence}"));
    headers.insert(SEQUENCE, sequence.to_string());
    publish(bus, subjects.rows(worker), headers, bytes).await
}

/// The same for the message that tells how a part ended.
pub(super) async fn publish_end(
    bus: &Bus,
    subjects: &Subjects,
    worker: u16,
    message: Vec<u8>,
) -> Result<(), Refused> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", format!("{worker}-end"));
    publish(bus, subjects.end(worker), headers, message).await
}

async fn publish(
    bus: &Bus,
    subject: String,
    headers: HeaderMap,
    bytes: Vec<u8>,
) -> Result<(), Refused> {
    let stream = jetstream::new(bus.client.clone());
    let stored = match stream.publish_with_headers(subject, headers, bytes.into()).await {
        Ok(stored) => stored.await,
        Err(error) => Err(error),
    };
    stored.map(drop).map_err(|error| {
        tracing::debug!("a message is sent again: {error}");
        match error.kind() {
            PublishErrorKind::StreamNotFound => Refused::NoStream,
            _ => Refused::NotStored,
        }
    })
}
