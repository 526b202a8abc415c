//! The playlist of the rendition that is played: loaded once, and again and again while the stream
//! is live, as hls.js does it (`base-playlist-controller.ts`, `computeReloadInterval` of
//! `level-helper.ts`).
//!
//! ```text
//! changed:    the next request comes one target duration after the last one was sent
//! unchanged:  after half of it
//! blocking:   (CAN-BLOCK-RELOAD) at once, for the segment and part that come next; the server
//!             holds the request
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::manifest::hls::MediaPlaylist;
use throng_media::manifest::{MANIFEST_LEN_MAX, PlaylistCache};
use throng_observation::{Failure, Phase, Url};

use super::hls::{self, Received};
use super::presentation::{Rendition, Segments};
use super::rendition_report::awaited;
use super::window::{Change, Window};
use crate::participant::{DownloadEvent, FetchId};
use crate::player::download::retry::{PLAYLIST_RETRY, Retry};
use crate::player::download::transfer::TransferError;
use crate::player::download::whole::{WholeDownload, WholeEvent};
use crate::player::lane::Context;

/// Closer to the end than this, in target durations, the last segment's duration counts where it is
/// shorter.
const NEAR_EDGE: u64 = 4;

/// Loads the playlist of one rendition.
pub(in crate::player) struct PlaylistLoader {
    /// Parts are played where there are some.
    low_latency: bool,
    download: Option<(WholeDownload, ReloadRequest)>,
    retry: Retry,
    next_at: Option<Instant>,
    /// What the next request asks for.
    next: ReloadRequest,
    /// The window of the rendition that was played before.
    before: Option<Window>,
}

/// What a request asks the server for beyond the playlist (RFC 8216bis section 6.2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReloadRequest {
    /// Answered when this segment, or this part of it, exists (`_HLS_msn`, `_HLS_part`).
    until: Option<(u64, Option<u64>)>,
    /// Old segments, and with `v2` old date ranges, may be left out (`_HLS_skip`).
    skips: Option<&'static str>,
}

/// What came of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) enum Loaded {
    /// Nothing.
    Nothing,
    /// The first playlist of the rendition, or one whose numbers have nothing in common with those
    /// before.
    New,
    /// The next one.
    Next,
}

impl PlaylistLoader {
    pub(in crate::player) fn new(low_latency: bool) -> Self {
        let retry = Retry::new(PLAYLIST_RETRY);
        Self {
            low_latency,
            download: None,
            retry,
            next_at: None,
            next: ReloadRequest::default(),
            before: None,
        }
    }

    pub(in crate::player) fn owns(&self, fetch: FetchId) -> bool {
        self.download.as_ref().is_some_and(|(download, _)| download.owns(fetch))
    }

    /// `rendition` is played from now on instead of that with the window `before`: its playlist is
    /// loaded at once where it is live or not known.
    pub(in crate::player) fn switched(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        before: Option<&Window>,
        rendition: &Rendition,
    ) {
        if let Some((download, _)) = self.download.take() {
            download.cancel(context);
        }
        let next_at = before.map(|_| now);
        let reported = before.zip(rendition.playlist.as_ref());
        let until = reported.and_then(|(before, url)| awaited(before, url, now, self.low_latency));
        // What is known of it from an earlier time may be updated only.
        let known =
            rendition.segments.as_ref().and_then(Segments::window).filter(|_| until.is_some());
        let skips = known.and_then(|window| skips(window.playlist(), now, window.advanced_at()));
        let next = ReloadRequest { until, skips };
        *self = Self { next_at, next, before: before.cloned(), ..Self::new(self.low_latency) };
    }

    /// The rendition that was played before is played again: its playlist is loaded at once where
    /// it is live.
    pub(in crate::player) fn returned(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        is_live: bool,
    ) {
        if let Some((download, _)) = self.download.take() {
            download.cancel(context);
        }
        *self = Self { next_at: is_live.then_some(now), ..Self::new(self.low_latency) };
    }

    /// The playlist of this rendition was received as the manifest itself.
    pub(in crate::player) fn has_first(
        &mut self,
        now: Instant,
        window: &Window,
        times: (Instant, Instant),
    ) {
        self.schedule(now, window, Change::Advanced, times, None);
    }

    pub(in crate::player) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        cache: &PlaylistCache,
        rendition: &mut Rendition,
        event: DownloadEvent<'_>,
    ) -> Result<Loaded, Failure> {
        let Some((download, _)) = &mut self.download else { return Ok(Loaded::Nothing) };
        match download.handle(now, context, event) {
            WholeEvent::Nothing => Ok(Loaded::Nothing),
            WholeEvent::Complete => self.complete(now, context, cache, rendition),
            WholeEvent::Failed(error) => {
                self.failed(now, context, rendition, error)?;
                Ok(Loaded::Nothing)
            }
        }
    }

    fn complete(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        cache: &PlaylistCache,
        rendition: &mut Rendition,
    ) -> Result<Loaded, Failure> {
        let Some((download, asked)) = self.download.take() else { return Ok(Loaded::Nothing) };
        let times = (download.requested_at(), download.answered_at());
        let imported = Arc::clone(&rendition.variables);
        let received = Received {
            url: download.url(),
            text: download.bytes(),
            answered_at: times.1,
            imported: &imported,
        };
        let is_known = matches!(rendition.segments, Some(Segments::Live(_)));
        let media = match hls::media(cache, &received) {
            Ok(media) => media,
            Err(failure) => {
                context.client.failed();
                if !is_known {
                    return Err(failure);
                }
                // One that cannot be read between others is passed over; hls.js loads it again as
                // after an error.
                context.client.anomaly(failure.detail.clone());
                self.failed(now, context, rendition, TransferError::unreadable(failure))?;
                return Ok(Loaded::Nothing);
            }
        };
        context.client.life.reach(Phase::Described, now);
        let Some(Segments::Live(window)) = &mut rendition.segments else {
            let segments = rendition.segments.insert(hls::segments(&received, &media)?);
            self.retry.progressed();
            if let Segments::Live(window) = segments {
                if let Some(before) = self.before.take() {
                    window.align(&before);
                }
                self.schedule(now, window, Change::Advanced, times, None);
            }
            return Ok(Loaded::New);
        };
        let Some(media) = whole(cache, &media, window) else {
            // The update leaves out what is not known here: the next request is for all of it.
            if asked.skips.is_some() {
                self.next = ReloadRequest { skips: None, ..asked };
                self.next_at = Some(now);
                return Ok(Loaded::Nothing);
            }
            // A server that always answers so would be asked without end.
            let failure = hls::unasked_update(received.url);
            context.client.failed();
            context.client.anomaly(failure.detail.clone());
            self.failed(now, context, rendition, TransferError::unreadable(failure))?;
            return Ok(Loaded::Nothing);
        };
        self.retry.progressed();
        let before = window.end();
        let change = window.update(received.url, media, times.1);
        match change {
            Change::WentBack => context.client.anomaly(format!(
                "{}: an older playlist than before, which ended at segment {before}",
                received.url
            )),
            Change::Restarted => context.client.anomaly(format!(
                "{}: the stream began anew: its segments end at {}, before at {before}",
                received.url,
                window.end()
            )),
            Change::Advanced | Change::Unchanged => {}
        }
        if let Some((number, by_us)) = window.take_date_jump() {
            context.client.anomaly(format!(
                "{}: the dates jump by {:+.1} s at segment {number}; media is played on",
                received.url,
                by_us as f64 / 1e6
            ));
        }
        if let Some(before) = self.before.take() {
            window.align(&before);
        }
        let ends_us = window.edge(self.low_latency).ends_us;
        let behind_us =
            context.position_us.and_then(|us| u64::try_from(ends_us.saturating_sub(us)).ok());
        self.schedule(now, window, change, times, behind_us);
        Ok(if change == Change::Restarted { Loaded::New } else { Loaded::Next })
    }

    /// When the next request is due, and what it asks for.
    fn schedule(
        &mut self,
        now: Instant,
        window: &Window,
        change: Change,
        (requested_at, answered_at): (Instant, Instant),
        behind_us: Option<u64>,
    ) {
        let playlist = window.playlist();
        if playlist.has_ended {
            self.next_at = None;
            return;
        }
        let interval = reload_interval(playlist, change, behind_us);
        let control = &playlist.server_control;
        let is_advanced = matches!(change, Change::Advanced | Change::Restarted);
        self.next = ReloadRequest { until: None, skips: skips(playlist, now, answered_at) };
        let anchored = (requested_at + interval).max(now);
        self.next_at = Some(anchored);
        if control.can_block_reload && is_advanced {
            let (until, is_at_segment_end) = next_update(window, self.low_latency);
            self.next.until = Some(until);
            if self.low_latency || !is_at_segment_end {
                self.next_at = Some(now);
            } else {
                // Without parts the server holds the request for up to a segment: it need not be
                // sent at once.
                let elapsed = now.saturating_duration_since(answered_at);
                let wait = interval.saturating_sub(elapsed * 2).max(interval / 2);
                self.next_at = Some((answered_at + wait).max(now));
            }
        }
    }

    fn failed(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        rendition: &Rendition,
        error: TransferError,
    ) -> Result<(), Failure> {
        let asked = self.download.take().map(|(_, asked)| asked).unwrap_or_default();
        self.next = ReloadRequest { until: None, ..asked };
        self.next_at = Some(now);
        // A rendition report may be wrong: the server may refuse what it was asked for, and still
        // have the playlist.
        let may_be_misled =
            error.is_refused && asked.until.is_some() && rendition.segments.is_none();
        if may_be_misled || self.retry.failed(now, &error) {
            return Ok(());
        }
        // A stream that is on its way goes on: pages start their player again after its last
        // repeat. One that was switched to is not.
        match &rendition.segments {
            Some(Segments::Live(window)) if self.before.is_none() => {
                let target_us = window.playlist().target_duration_us.max(1_000_000);
                context.meter.missed();
                self.retry.given_up(now, Duration::from_micros(target_us));
                Ok(())
            }
            _ => Err(error.failure),
        }
    }

    /// Requests the playlist when it is due.
    pub(in crate::player) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        rendition: &Rendition,
    ) -> Result<(), Failure> {
        if let Some((download, _)) = &mut self.download
            && let Err(error) = download.pump(now, context)
        {
            if let Some((download, asked)) = self.download.take() {
                download.cancel(context);
                self.next = asked;
            }
            self.failed(now, context, rendition, error)?;
        }
        let is_due = match (&rendition.segments, self.next_at) {
            (None, None) => true,
            (_, next_at) => next_at.is_some_and(|at| now >= at),
        };
        let Some(url) = rendition.playlist.as_ref().filter(|_| is_due) else { return Ok(()) };
        if self.download.is_some() || self.retry.waits(now) {
            return Ok(());
        }
        self.retry.begun();
        let asked = std::mem::take(&mut self.next);
        self.next_at = None;
        let url = with_directives(url, asked);
        self.download =
            Some((WholeDownload::begin(now, context, &url, None, MANIFEST_LEN_MAX)?, asked));
        // The body is asked for when its head has come.
        Ok(())
    }

    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        match &self.download {
            Some((download, _)) => download.next_timeout(),
            None => [self.next_at, self.retry.next_timeout()].into_iter().flatten().max(),
        }
    }
}

/// The playlist with what it leaves out.
fn whole(
    cache: &PlaylistCache,
    media: &Arc<MediaPlaylist>,
    window: &Window,
) -> Option<Arc<MediaPlaylist>> {
    if hls::leaves_out(media) {
        cache.with_skipped(media, window.playlist())
    } else {
        Some(Arc::clone(media))
    }
}

/// How an update of a playlist is asked for, if the server makes them and the playlist is not older
/// than half of the skip boundary (RFC 8216bis section 6.3.7).
fn skips(playlist: &MediaPlaylist, now: Instant, received_at: Instant) -> Option<&'static str> {
    let control = &playlist.server_control;
    let age_us = now.saturating_duration_since(received_at).as_micros();
    let may_skip =
        control.can_skip_until_us.is_some_and(|until_us| age_us < u128::from(until_us / 2));
    may_skip.then_some(if control.can_skip_date_ranges { "v2" } else { "YES" })
}

/// How long after the last request the next one comes.
fn reload_interval(playlist: &MediaPlaylist, change: Change, behind_us: Option<u64>) -> Duration {
    let target_us = playlist.target_duration_us.max(1);
    let is_near = behind_us.is_some_and(|us| us < target_us.saturating_mul(NEAR_EDGE));
    let last_us = playlist.segments.last().map(|segment| segment.duration_us);
    let interval_us = match change {
        Change::Unchanged => target_us / 2,
        Change::Advanced | Change::WentBack | Change::Restarted => {
            last_us.filter(|us| is_near && (1..target_us).contains(us)).unwrap_or(target_us)
        }
    };
    // A server that names no time is not asked more often than hls.js could.
    Duration::from_micros(interval_us).max(Duration::from_millis(100))
}

/// The segment and part that will exist next, and whether all known parts are those of complete
/// segments.
fn next_update(window: &Window, low_latency: bool) -> ((u64, Option<u64>), bool) {
    let playlist = window.playlist();
    let listed = &playlist.parts;
    let last = playlist.segments.last().map_or(0, |segment| segment.parts.len());
    if playlist.part_target_us.is_none() || (listed.is_empty() && last == 0) {
        return ((window.end(), None), true);
    }
    let last_index = |parts: usize| u64::try_from(parts).unwrap_or(0).saturating_sub(1);
    if listed.is_empty() {
        ((window.end(), Some(if low_latency { 0 } else { last_index(last) })), true)
    } else {
        let part =
            if low_latency { listed.len() as u64 } else { last_index(listed.len().max(last)) };
        ((window.end(), Some(part)), false)
    }
}

/// The URL with the directives, after its own parameters.
fn with_directives(url: &Url, asked: ReloadRequest) -> Url {
    let mut url = url.clone();
    if asked == ReloadRequest::default() {
        return url;
    }
    // Its own parameters stay as they are written: they may be signed.
    let own = url.in_clear().query().unwrap_or_default().split('&');
    let own = own.filter(|pair| !pair.is_empty() && !pair.starts_with("_HLS_"));
    let mut pairs: Vec<String> = own.map(str::to_owned).collect();
    if let Some((segment, part)) = asked.until {
        pairs.push(format!("_HLS_msn={segment}"));
        pairs.extend(part.map(|part| format!("_HLS_part={part}")));
    }
    pairs.extend(asked.skips.map(|skips| format!("_HLS_skip={skips}")));
    url.set_query(Some(&pairs.join("&")));
    url
}
