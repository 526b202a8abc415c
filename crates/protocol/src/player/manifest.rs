//! The manifest of a presentation in segments, downloaded before its lanes exist.

use std::time::Instant;

use throng_media::manifest::MANIFEST_LEN_MAX;
use throng_observation::{Failure, FailureReason, Phase};
use throng_scenario::MediaFormat;
use url::Url;

use super::lane::Context;
use super::presentation::LanePlan;
use super::retry::Retry;
use super::transfer::{Transfer, TransferEvent};
use super::{dash, hls};
use crate::participant::{Demand, DownloadEvent, FetchId};

/// Bytes that are asked for at a time.
const DEMAND_BYTES: u64 = 64 * 1024;

/// Repeats of the request (hls.js `manifestLoadPolicy`).
const RETRIES_MAX: u32 = 1;

/// The download of a manifest.
pub(super) struct ManifestDownload {
    url: Url,
    format: MediaFormat,
    transfer: Option<Transfer>,
    text: Vec<u8>,
    retry: Retry,
}

impl ManifestDownload {
    pub(super) fn new(url: Url, format: MediaFormat) -> Self {
        Self { url, format, transfer: None, text: Vec::new(), retry: Retry::new(RETRIES_MAX) }
    }

    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        self.transfer.as_ref().is_some_and(|transfer| transfer.fetch() == fetch)
    }

    /// Handles what the driver reports; what each lane is once the manifest was read.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) -> Result<Option<Vec<LanePlan>>, Failure> {
        let Some(transfer) = &mut self.transfer else { return Ok(None) };
        match transfer.handle(now, context.client, event) {
            TransferEvent::Bytes(bytes) => {
                context.meter.other_bytes(bytes.len() as u64);
                self.text.extend_from_slice(bytes);
                if self.text.len() > MANIFEST_LEN_MAX {
                    let detail = format!("{}: more than {MANIFEST_LEN_MAX} bytes", self.url);
                    return Err(Failure::new(FailureReason::Protocol, detail));
                }
            }
            TransferEvent::Complete => {
                let url = transfer.url();
                let lanes = match self.format {
                    MediaFormat::Dash => dash::lanes(url, &self.text)?,
                    _ => hls::lanes(url, &self.text)?,
                };
                context.phases.reach(context.client, Phase::Described, now);
                return Ok(Some(lanes));
            }
            TransferEvent::Failed(error) => {
                self.transfer = None;
                self.text.clear();
                if !error.may_retry || !self.retry.failed(now) {
                    return Err(error.failure);
                }
            }
            TransferEvent::Begun { .. } | TransferEvent::Ignored(_) | TransferEvent::Nothing => {}
        }
        Ok(None)
    }

    pub(super) fn pump(&mut self, now: Instant, context: &mut Context<'_>) -> Result<(), Failure> {
        if self.transfer.as_ref().and_then(Transfer::next_timeout).is_some_and(|at| now >= at)
            && let Some(transfer) = self.transfer.take()
        {
            let error = transfer.stuck();
            context.client.failed();
            transfer.cancel(context.client);
            self.text.clear();
            if !self.retry.failed(now) {
                return Err(error.failure);
            }
        }
        if self.transfer.is_none() && !self.retry.waits(now) {
            self.retry.begun();
            self.transfer = Some(Transfer::begin(now, context.client, &self.url, None)?);
        }
        if let Some(transfer) =
            self.transfer.as_mut().filter(|t| t.has_head() && t.outstanding() < DEMAND_BYTES / 2)
        {
            transfer.demand(now, context.client, Demand::Deliver(DEMAND_BYTES));
        }
        Ok(())
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let stuck = self.transfer.as_ref().and_then(Transfer::next_timeout);
        [stuck, self.retry.next_timeout()].into_iter().flatten().min()
    }
}
