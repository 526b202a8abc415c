//! The manifest of a presentation in segments, downloaded before its lanes exist.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::manifest::dash::Manifest;
use throng_media::manifest::{ByteRange, MANIFEST_LEN_MAX, ManifestError, PlaylistCache};
use throng_media::quality::WallClock;
use throng_observation::{Failure, FailureReason, Phase, Url};
use throng_scenario::MediaFormat;

use self::presentation::LanePlan;
use self::server_clock::ServerClock;
use super::download::retry::{MANIFEST_RETRY, Retry};
use super::download::transfer::TransferError;
use super::download::whole::{WholeDownload, WholeEvent};
use super::lane::Context;
use crate::participant::{DownloadEvent, FetchId};

mod dash;
mod dash_window;
mod hls;
pub(super) mod playlist;
pub(super) mod presentation;
mod program_time;
mod rendition_report;
pub(super) mod screen;
mod server_clock;
mod window;

/// A live manifest is loaded at most so often.
const UPDATE_MIN: Duration = Duration::from_millis(500);

/// After how long a live manifest that could not be read is loaded again.
const UNREADABLE_DELAY: Duration = Duration::from_secs(2);

/// The download of a manifest.
pub(super) struct ManifestDownload {
    url: Url,
    format: MediaFormat,
    cache: PlaylistCache,
    download: Option<WholeDownload>,
    retry: Retry,
    /// The lanes were made of it.
    is_known: bool,
    /// When a live manifest is loaded again (`minimumUpdatePeriod`).
    again_at: Option<Instant>,
    server_clock: ServerClock,
    /// What was read of the first one, until the server's clock is known: segments exist by it.
    ready: Option<(Vec<LanePlan>, (Instant, Instant))>,
}

/// What a manifest says.
pub(super) enum Received {
    /// The first one.
    First {
        /// What each lane is.
        lanes: Vec<LanePlan>,
        /// When it was requested, and when the response began.
        times: (Instant, Instant),
        /// How far the server's clock is ahead of this host's, microseconds.
        server_ahead_us: i64,
    },
    /// The next version of a live DASH manifest, and where it came from.
    Update(Url, Arc<Manifest>),
}

impl ManifestDownload {
    pub(super) fn new(
        url: Url,
        format: MediaFormat,
        cache: PlaylistCache,
        clock: WallClock,
    ) -> Self {
        Self {
            url,
            format,
            cache,
            download: None,
            retry: Retry::new(MANIFEST_RETRY),
            is_known: false,
            again_at: None,
            server_clock: ServerClock::new(clock),
            ready: None,
        }
    }

    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        self.server_clock.owns(fetch)
            || self.download.as_ref().is_some_and(|download| download.owns(fetch))
    }

    /// Handles what the driver reports of the download `fetch`.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        fetch: FetchId,
        event: DownloadEvent<'_>,
    ) -> Result<Option<Received>, Failure> {
        if self.server_clock.owns(fetch) {
            self.server_clock.handle(now, context, event);
            return Ok(self.first());
        }
        let Some(download) = &mut self.download else { return Ok(None) };
        match download.handle(now, context, event) {
            WholeEvent::Nothing => Ok(None),
            WholeEvent::Complete => self.complete(now, context),
            WholeEvent::Failed(error) => {
                self.download = None;
                self.failed(now, context, error)?;
                Ok(None)
            }
        }
    }

    fn complete(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Result<Option<Received>, Failure> {
        let Some(download) = self.download.take() else { return Ok(None) };
        self.retry.progressed();
        let times = (download.requested_at(), download.answered_at());
        let received = hls::Received {
            url: download.url(),
            text: download.bytes(),
            answered_at: times.1,
            imported: &hls::NO_VARIABLES,
        };
        if self.format != MediaFormat::Dash {
            self.ready = Some((hls::lanes(&self.cache, &received)?, times));
            context.client.life.reach(Phase::Described, now);
            return Ok(self.first());
        }
        let manifest = match dash::manifest(&self.cache, &received) {
            Ok(manifest) => manifest,
            // One that cannot be read between others is passed over.
            Err(failure) if self.is_known => {
                context.client.failed();
                context.meter.missed();
                context.client.anomaly(failure.detail);
                self.again_at = Some(times.0 + UNREADABLE_DELAY);
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        };
        self.again_at = update_period(&manifest).map(|period| (times.0 + period).max(now));
        if let Some(url) =
            manifest.locations.first().and_then(|location| download.url().join(location).ok())
        {
            self.url = url;
        }
        if std::mem::replace(&mut self.is_known, true) {
            return Ok(Some(Received::Update(download.url().clone(), manifest)));
        }
        context.client.life.reach(Phase::Described, now);
        self.ready = Some((dash::lanes(download.url(), &manifest)?, times));
        if manifest.is_dynamic {
            self.server_clock.learn(context, &manifest.utc_timings, download.url());
        }
        self.server_clock.pump(now, context);
        Ok(self.first())
    }

    /// The first manifest, once the server's clock is known.
    fn first(&mut self) -> Option<Received> {
        let (lanes, times) = self.ready.take_if(|_| self.server_clock.is_settled())?;
        Some(Received::First { lanes, times, server_ahead_us: self.server_clock.ahead_us() })
    }

    /// Whether it is loaded again: of a live DASH presentation.
    pub(super) fn goes_on(&self) -> bool {
        self.again_at.is_some()
    }

    fn failed(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        error: TransferError,
    ) -> Result<(), Failure> {
        if self.retry.failed(now, &error) {
            return Ok(());
        }
        if !self.is_known {
            return Err(error.failure);
        }
        context.meter.missed();
        self.retry.progressed();
        self.again_at = Some(now + UNREADABLE_DELAY);
        Ok(())
    }

    /// Requests what is due. May bring the first manifest, when the server's clock stays unknown.
    pub(super) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Result<Option<Received>, Failure> {
        if self.ready.is_some() {
            self.server_clock.pump(now, context);
            return Ok(self.first());
        }
        let overdue = self.download.as_mut().and_then(|download| download.pump(now, context).err());
        if let Some(error) = overdue {
            if let Some(download) = self.download.take() {
                download.cancel(context);
            }
            self.failed(now, context, error)?;
        }
        let is_due = !self.is_known
            || self.again_at.is_some_and(|at| now >= at)
            || self.retry.next_timeout().is_some();
        if is_due && self.download.is_none() && !self.retry.waits(now) {
            self.retry.begun();
            self.download =
                Some(WholeDownload::begin(now, context, &self.url, None, MANIFEST_LEN_MAX)?);
        }
        Ok(None)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match &self.download {
            _ if self.ready.is_some() => self.server_clock.next_timeout(),
            Some(download) => download.next_timeout(),
            None => [self.retry.next_timeout(), self.again_at].into_iter().flatten().max(),
        }
    }
}

/// How long after its request a live manifest is loaded again; `None`: never.
fn update_period(manifest: &Manifest) -> Option<Duration> {
    let period_us = manifest.minimum_update_period_us.filter(|_| manifest.is_dynamic)?;
    // 0 means that any segment may be the last that it describes.
    Some(Duration::from_micros(period_us).max(UPDATE_MIN))
}

/// What came from `url` is not what it should be.
pub(super) fn broken(url: &Url, what: impl Display) -> Failure {
    Failure::new(FailureReason::Protocol, format!("{url}: {what}"))
}

/// The manifest from `url` breaks its format, or has what throng does not read of it.
fn unreadable(url: &Url, error: &ManifestError) -> Failure {
    match error.is_unsupported() {
        true => Failure::new(FailureReason::Unsupported, format!("{url}: {error}")),
        false => broken(url, error),
    }
}

fn resolved(base: &Url, uri: &str) -> Result<Url, Failure> {
    base.join(uri).map_err(|error| broken(base, format_args!("`{uri:.200}` is not a URI: {error}")))
}

/// A part of a file, as the bytes that are requested.
fn first_and_last(range: ByteRange) -> Option<(u64, u64)> {
    Some((range.offset, range.end().checked_sub(1)?)).filter(|(first, last)| first <= last)
}
