//! The manifest of a presentation in segments, downloaded before its lanes exist.

use std::time::Instant;

use throng_media::manifest::{MANIFEST_LEN_MAX, PlaylistCache};
use throng_observation::{Failure, Phase};
use throng_scenario::MediaFormat;
use url::Url;

use super::hls::Received;
use super::lane::Context;
use super::presentation::LanePlan;
use super::retry::{MANIFEST_RETRY, Retry};
use super::whole::{WholeDownload, WholeEvent};
use super::{dash, hls};
use crate::participant::{DownloadEvent, FetchId};

/// The download of a manifest.
pub(super) struct ManifestDownload {
    url: Url,
    format: MediaFormat,
    cache: PlaylistCache,
    download: Option<WholeDownload>,
    retry: Retry,
}

/// What a manifest says.
pub(super) struct Manifest {
    pub(super) lanes: Vec<LanePlan>,
    /// When it was requested, and when the response began.
    pub(super) times: (Instant, Instant),
}

impl ManifestDownload {
    pub(super) fn new(url: Url, format: MediaFormat, cache: PlaylistCache) -> Self {
        Self { url, format, cache, download: None, retry: Retry::new(MANIFEST_RETRY) }
    }

    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        self.download.as_ref().is_some_and(|download| download.owns(fetch))
    }

    /// Handles what the driver reports; what each lane is once the manifest was read.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) -> Result<Option<Manifest>, Failure> {
        let Some(download) = &mut self.download else { return Ok(None) };
        match download.handle(now, context, event)? {
            WholeEvent::Nothing => Ok(None),
            WholeEvent::Complete => {
                let times = (download.requested_at(), download.answered_at());
                let received = Received { url: download.url(), text: download.bytes(), answered_at: times.1 };
                let lanes = match self.format {
                    MediaFormat::Dash => dash::lanes(&self.cache, &received)?,
                    _ => hls::lanes(&self.cache, &received)?,
                };
                context.phases.reach(context.client, Phase::Described, now);
                Ok(Some(Manifest { lanes, times }))
            }
            WholeEvent::Failed(error) => {
                self.download = None;
                if self.retry.failed(now, &error) { Ok(None) } else { Err(error.failure) }
            }
        }
    }

    pub(super) fn pump(&mut self, now: Instant, context: &mut Context<'_>) -> Result<(), Failure> {
        let overdue = self.download.as_mut().and_then(|download| download.pump(now, context).err());
        if let Some(error) = overdue {
            if let Some(download) = self.download.take() {
                download.cancel(context);
            }
            if !self.retry.failed(now, &error) {
                return Err(error.failure);
            }
        }
        if self.download.is_none() && !self.retry.waits(now) {
            self.retry.begun();
            self.download = Some(WholeDownload::begin(now, context, &self.url, None, MANIFEST_LEN_MAX)?);
        }
        Ok(())
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let stuck = self.download.as_ref().and_then(WholeDownload::next_timeout);
        [stuck, self.retry.next_timeout()].into_iter().flatten().min()
    }
}
