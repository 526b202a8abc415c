//! A resource that is read as a whole: a playlist, an initialisation segment, a key.

use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use throng_observation::{Failure, FailureReason, Url};

use super::transfer::{Transfer, TransferError, TransferEvent};
use crate::participant::{Demand, DownloadEvent, FetchId};
use crate::player::lane::Context;

/// Bytes that are asked for at a time; the next are asked for when half of them have come.
const DEMAND_BYTES: u64 = 64 * 1024;

/// How long it may take in all (`maxLoadTimeMs` of hls.js' playlists and keys).
const LOAD_TIMEOUT: Duration = Duration::from_secs(20);

/// Its download.
#[derive(Debug)]
pub(in crate::player) struct WholeDownload {
    transfer: Transfer,
    bytes: Vec<u8>,
    bytes_max: usize,
    requested_at: Instant,
    /// When the head of the response came.
    answered_at: Option<Instant>,
}

/// What became of it.
#[derive(Debug)]
pub(in crate::player) enum WholeEvent {
    /// It goes on.
    Nothing,
    /// All of it is there.
    Complete,
    /// There will be no more of it.
    Failed(TransferError),
}

impl WholeDownload {
    /// Requests `url`, or the bytes from `range.0` to `range.1`, inclusive; it may have at most
    /// `bytes_max`.
    pub(in crate::player) fn begin(
        now: Instant,
        context: &mut Context<'_>,
        url: &Url,
        range: Option<(u64, u64)>,
        bytes_max: usize,
    ) -> Result<Self, Failure> {
        let range = range.map(|(first, last)| (first, Some(last)));
        let transfer = Transfer::begin(now, context.client, url, range)?;
        Ok(Self::of(now, transfer, bytes_max))
    }

    /// Requests `url` unless it is what the cache has: `conditions` are its validators.
    pub(in crate::player) fn begin_if(
        now: Instant,
        context: &mut Context<'_>,
        url: &Url,
        conditions: Vec<(HeaderName, HeaderValue)>,
        bytes_max: usize,
    ) -> Result<Self, Failure> {
        Ok(Self::of(now, Transfer::begin_if(now, context.client, url, conditions)?, bytes_max))
    }

    /// Requests the head of a response for `url` only.
    pub(in crate::player) fn begin_head(
        now: Instant,
        context: &mut Context<'_>,
        url: &Url,
    ) -> Result<Self, Failure> {
        Ok(Self::of(now, Transfer::begin_head(now, context.client, url)?, 0))
    }

    fn of(now: Instant, mut transfer: Transfer, bytes_max: usize) -> Self {
        transfer.limit_decoded(bytes_max);
        Self { transfer, bytes: Vec::new(), bytes_max, requested_at: now, answered_at: None }
    }

    pub(in crate::player) fn owns(&self, fetch: FetchId) -> bool {
        self.transfer.fetch() == fetch
    }

    /// Where its bytes come from: after redirects not where it was requested.
    pub(in crate::player) fn url(&self) -> &Url {
        self.transfer.url()
    }

    pub(in crate::player) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether what was cached is still what the server has: it has no bytes.
    pub(in crate::player) fn is_unchanged(&self) -> bool {
        self.transfer.is_unchanged()
    }

    /// The headers of its response.
    pub(in crate::player) fn headers(&self) -> &HeaderMap {
        self.transfer.headers()
    }

    pub(in crate::player) fn requested_at(&self) -> Instant {
        self.requested_at
    }

    /// When the head of the response came; the request, before it did.
    pub(in crate::player) fn answered_at(&self) -> Instant {
        self.answered_at.unwrap_or(self.requested_at)
    }

    pub(in crate::player) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) -> WholeEvent {
        match self.transfer.handle(now, context.client, event) {
            TransferEvent::Begun { .. } => self.answered_at = Some(now),
            TransferEvent::Bytes { bytes, received } => {
                context.meter.other_bytes(received);
                self.bytes.extend_from_slice(&bytes);
                if self.bytes.len() > self.bytes_max {
                    let detail = format!("{}: more than {} bytes", self.url(), self.bytes_max);
                    let failure = Failure::new(FailureReason::Protocol, detail);
                    let error = TransferError::lasting(failure);
                    return WholeEvent::Failed(self.transfer.give_up(context.client, error));
                }
            }
            TransferEvent::Complete => return WholeEvent::Complete,
            TransferEvent::Failed(error) => return WholeEvent::Failed(error),
            TransferEvent::Ignored(_) | TransferEvent::Nothing => {}
        }
        WholeEvent::Nothing
    }

    /// Asks for more of it; fails when it is overdue.
    pub(in crate::player) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Result<(), TransferError> {
        if let Some(error) = self.transfer.overdue(now, self.overdue_at(), LOAD_TIMEOUT) {
            context.client.failed();
            return Err(error);
        }
        if self.transfer.has_head() && self.transfer.outstanding() < DEMAND_BYTES / 2 {
            self.transfer.demand(now, context.client, Demand::Deliver(DEMAND_BYTES));
        }
        Ok(())
    }

    pub(in crate::player) fn cancel(self, context: &mut Context<'_>) {
        self.transfer.cancel(context.client);
    }

    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        Some(self.transfer.next_timeout().map_or(self.overdue_at(), |at| at.min(self.overdue_at())))
    }

    /// When it is given up although bytes of it still come.
    fn overdue_at(&self) -> Instant {
        self.requested_at + LOAD_TIMEOUT
    }
}
