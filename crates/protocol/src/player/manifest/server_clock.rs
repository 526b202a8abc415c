//! The clock of the server of a live DASH stream, by which its segments exist (`UTCTiming`). The
//! rules are those of dash.js (`TimeSyncController.js`): before the first segment the sources of
//! the manifest are asked in their order, until one tells the time; its clock is compared with this
//! host's in the middle of the round trip. Where none tells the time, this host's clock is used.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use http::header::DATE;
use throng_media::manifest::dash::{ToldTime, UtcMethod, UtcTiming};
use throng_media::quality::WallClock;
use throng_observation::Url;

use crate::participant::{DownloadEvent, FetchId};
use crate::player::download::whole::{WholeDownload, WholeEvent};
use crate::player::lane::Context;

/// How long a source may take (`HTTP_TIMEOUT_MS`).
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest body with a time in it.
const TIME_LEN_MAX: usize = 256;

/// Sources that are asked, of all that a manifest names.
const SOURCES_MAX: usize = 8;

/// A clock that is further off shows no time: local time that is said to be UTC is off by up to 14
/// hours.
const AHEAD_MAX_US: i64 = 86_400_000_000;

/// A difference that is reported: clocks that are synchronised differ by less.
const REPORTED_US: i64 = 1_000_000;

/// What is known of the server's clock.
pub(in crate::player) struct ServerClock {
    host: WallClock,
    /// Sources that were not asked yet.
    sources: VecDeque<Source>,
    asked: Option<ClockRequest>,
    /// How far it is ahead of this host's.
    ahead_us: i64,
}

/// Who tells the time.
enum Source {
    Manifest(String),
    Body(Url),
    Head(Url),
}

/// A source that was asked.
struct ClockRequest {
    download: WholeDownload,
    is_head: bool,
    /// `Date` of its response.
    date: Option<String>,
}

impl ServerClock {
    pub(in crate::player) fn new(host: WallClock) -> Self {
        Self { host, sources: VecDeque::new(), asked: None, ahead_us: 0 }
    }

    /// How far it is ahead of this host's clock, as far as that is known.
    pub(in crate::player) fn ahead_us(&self) -> i64 {
        self.ahead_us
    }

    /// Whether there is no source left that may tell.
    pub(in crate::player) fn is_settled(&self) -> bool {
        self.sources.is_empty() && self.asked.is_none()
    }

    /// The manifest from `base` names these sources.
    pub(in crate::player) fn learn(
        &mut self,
        context: &mut Context<'_>,
        timings: &[UtcTiming],
        base: &Url,
    ) {
        self.sources =
            timings.iter().flat_map(|timing| sources(timing, base)).take(SOURCES_MAX).collect();
        if let Some(first) = timings.first().filter(|_| self.sources.is_empty()) {
            context.client.anomaly(format!(
                "UTCTiming `{:.80}` with `{:.80}` cannot be asked; segments exist by this host's \
                 clock",
                first.scheme, first.value
            ));
        }
    }

    pub(in crate::player) fn owns(&self, fetch: FetchId) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.download.owns(fetch))
    }

    pub(in crate::player) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) {
        let Some(asked) = &mut self.asked else { return };
        if let DownloadEvent::Head { head, .. } = &event {
            let date = head.headers.get(DATE).and_then(|date| date.to_str().ok());
            asked.date = date.map(str::to_owned);
        }
        match asked.download.handle(now, context, event) {
            WholeEvent::Nothing => {}
            WholeEvent::Complete => self.told(now, context),
            WholeEvent::Failed(error) => {
                self.asked = None;
                failed(context, &error.failure.detail);
            }
        }
    }

    /// A source has answered.
    fn told(&mut self, now: Instant, context: &mut Context<'_>) {
        let Some(ClockRequest { download, is_head, date }) = self.asked.take() else { return };
        let body = String::from_utf8_lossy(download.bytes());
        let text = if is_head { date.unwrap_or_default().into() } else { body };
        let told = if is_head { ToldTime::of_header(&text) } else { ToldTime::of_date(&text) };
        let asked_for = now.saturating_duration_since(download.requested_at());
        if !self.set(context, told, now - asked_for / 2) {
            context.client.failed();
            context
                .client
                .anomaly(format!("{}: `{text:.80}` is not the time (UTCTiming)", download.url()));
        }
    }

    /// Takes the time that a source told at `at`; false if it is none.
    fn set(&mut self, context: &mut Context<'_>, told: Option<ToldTime>, at: Instant) -> bool {
        let host_us = i64::try_from(self.host.unix_ns(at) / 1_000).unwrap_or(i64::MAX);
        let ahead_us = told.map(|told| told.ahead_us(host_us));
        let Some(ahead_us) = ahead_us.filter(|us| us.saturating_abs() <= AHEAD_MAX_US) else {
            return false;
        };
        self.sources.clear();
        self.ahead_us = ahead_us;
        if ahead_us.abs() > REPORTED_US {
            context.client.anomaly(format!(
                "the clock of the server (UTCTiming) is {:.1} s {} this host's; segments exist by \
                 the server's",
                ahead_us.abs() as f64 / 1e6,
                if ahead_us > 0 { "ahead of" } else { "behind" }
            ));
        }
        true
    }

    /// Asks the next source, when there is no answer to be waited for.
    pub(in crate::player) fn pump(&mut self, now: Instant, context: &mut Context<'_>) {
        let Some(asked) = &mut self.asked else { return self.ask(now, context) };
        let is_late = now >= asked.download.requested_at() + TIMEOUT;
        let overdue = asked.download.pump(now, context).err();
        if let Some(error) = overdue {
            self.give_up(context, &error.failure.detail);
        } else if is_late {
            context.client.failed();
            let (url, seconds) = (asked.download.url(), TIMEOUT.as_secs());
            let detail = format!("{url}: no time (UTCTiming) within {seconds} s");
            self.give_up(context, &detail);
        } else {
            return;
        }
        self.ask(now, context);
    }

    fn ask(&mut self, now: Instant, context: &mut Context<'_>) {
        while self.asked.is_none()
            && let Some(source) = self.sources.pop_front()
        {
            let (is_head, download) = match source {
                Source::Manifest(text) => {
                    if !self.set(context, ToldTime::of_date(&text), now) {
                        context.client.anomaly(format!("UTCTiming: `{text:.80}` is not the time"));
                    }
                    continue;
                }
                Source::Body(url) => {
                    (false, WholeDownload::begin(now, context, &url, None, TIME_LEN_MAX))
                }
                Source::Head(url) => (true, WholeDownload::begin_head(now, context, &url)),
            };
            match download {
                Ok(download) => self.asked = Some(ClockRequest { download, is_head, date: None }),
                // One that must not be asked, such as a public time server, is none.
                Err(failure) => failed(context, &failure.detail),
            }
        }
    }

    fn give_up(&mut self, context: &mut Context<'_>, why: &str) {
        if let Some(asked) = self.asked.take() {
            asked.download.cancel(context);
        }
        failed(context, why);
    }

    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        let asked = self.asked.as_ref()?;
        let late_at = asked.download.requested_at() + TIMEOUT;
        Some(asked.download.next_timeout().map_or(late_at, |at| at.min(late_at)))
    }
}

fn failed(context: &mut Context<'_>, why: &str) {
    context.client.anomaly(format!("the clock of the server is not known from UTCTiming: {why}"));
}

/// Where the time can be got.
fn sources(timing: &UtcTiming, base: &Url) -> Vec<Source> {
    let urls = || timing.urls().filter_map(|url| base.join(url).ok());
    match timing.method() {
        Some(UtcMethod::Direct) => vec![Source::Manifest(timing.value.clone())],
        Some(UtcMethod::Body) => urls().map(Source::Body).collect(),
        Some(UtcMethod::Head) => urls().map(Source::Head).collect(),
        None => Vec::new(),
    }
}
