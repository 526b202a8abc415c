//! The list of hashes of a stream's segments, as PeerTube writes it (`segments-sha256.json`): a
//! segment that came is used once the list names it. Its page fetches the list with the first
//! segment, and again and again while it lacks the file of one (`segment-validator.ts`). What it
//! fetches goes through the browser's HTTP cache, which asks with the validators of what it has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use throng_observation::Url;
use throng_scenario::har::{WhenWarm, when_warm};

use crate::participant::{DownloadEvent, FetchId};
use crate::player::download::whole::{WholeDownload, WholeEvent};
use crate::player::lane::Context;
use crate::player::manifest::presentation::Resource;

mod list;

pub(super) use list::HashLists;
use list::{HashList, file_of};

/// The list of a live stream has some dozens of entries of a hundred bytes, that of a recording one
/// for each segment of each rendition: of a day in five renditions 10 MB.
const LEN_MAX: usize = 16 << 20;

/// How long after a list without the segment the next one is fetched, and how often.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const TRIES_MAX: u32 = 10;

/// The list.
#[derive(Debug)]
pub(super) struct Hashes {
    url: Url,
    lists: HashLists,
    /// The last one that came.
    list: Option<Arc<HashList>>,
    cached: Option<Cached>,
    download: Option<WholeDownload>,
    wanted: Vec<Wanted>,
    has_reported: bool,
}

/// What the cache knows of the list that it has.
#[derive(Debug)]
struct Cached {
    /// The headers of the response, as of the last time the server was asked.
    headers: Vec<(String, String)>,
    stored_at: Instant,
}

/// A file that the list lacks.
#[derive(Debug)]
struct Wanted {
    file: String,
    tries: u32,
    fetch_at: Instant,
}

impl Hashes {
    /// `lists` has those of other viewers.
    pub(super) fn new(url: Url, lists: HashLists) -> Self {
        Self {
            url,
            lists,
            list: None,
            cached: None,
            download: None,
            wanted: Vec::new(),
            has_reported: false,
        }
    }

    /// One with a list that has come.
    #[cfg(test)]
    pub(super) fn with_list(url: Url, text: &str) -> Self {
        let lists = HashLists::default();
        let list = lists.read(text.as_bytes()).ok();
        Self { list, ..Self::new(url, lists) }
    }

    /// Whether the list names `segment`.
    pub(super) fn names(&self, segment: &Resource) -> bool {
        self.list.as_ref().is_some_and(|list| list.names(segment))
    }

    /// Whether `bytes` are those of `segment`, as far as the list says.
    pub(super) fn match_bytes(&self, segment: &Resource, bytes: &[u8]) -> bool {
        self.list.as_ref().is_some_and(|list| list.match_bytes(segment, bytes))
    }

    /// `segment` has come: its hash is looked for. A list that has the file and not the range does
    /// not get it later.
    pub(super) fn want(&mut self, now: Instant, segment: &Resource) {
        let file = file_of(segment);
        if !self.list.as_ref().is_some_and(|list| list.lists(file)) {
            let fetch_at = if self.list.is_some() { now + AGAIN_AFTER } else { now };
            self.wanted.push(Wanted { file: file.to_owned(), tries: 0, fetch_at });
        }
    }

    /// Whether the hash of `segment` is not looked for any more.
    pub(super) fn has_given_up(&self, segment: &Resource) -> bool {
        let file = file_of(segment);
        !self.names(segment) && !self.wanted.iter().any(|wanted| wanted.file == file)
    }

    /// Gives up what is under way.
    pub(super) fn stop(&mut self, context: &mut Context<'_>) {
        self.wanted.clear();
        self.download.take().into_iter().for_each(|download| download.cancel(context));
    }

    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        self.download.as_ref().is_some_and(|download| download.owns(fetch))
    }

    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) {
        let Some(download) = &mut self.download else { return };
        match download.handle(now, context, event) {
            WholeEvent::Nothing => return,
            WholeEvent::Complete if download.is_unchanged() => {
                let cached = self.cached.take();
                self.cached = Some(Cached::updated(cached, now, download.headers()));
            }
            WholeEvent::Complete => {
                self.cached = Some(Cached::updated(None, now, download.headers()));
                match self.lists.read(download.bytes()) {
                    Ok(list) => self.list = Some(list),
                    Err(error) => self.note_anomaly(context, &error.to_string()),
                }
            }
            WholeEvent::Failed(error) => self.note_anomaly(context, &error.failure.detail),
        }
        self.download = None;
        self.fetched(now);
    }

    /// A fetch has ended.
    fn fetched(&mut self, now: Instant) {
        let list = self.list.as_ref();
        self.wanted.retain_mut(|wanted| {
            wanted.tries += 1;
            wanted.fetch_at = now + AGAIN_AFTER;
            !list.is_some_and(|list| list.lists(&wanted.file)) && wanted.tries <= TRIES_MAX
        });
    }

    fn note_anomaly(&mut self, context: &mut Context<'_>, what: &str) {
        if !std::mem::replace(&mut self.has_reported, true) {
            context.client.anomaly(format!("{}: {what}", self.url));
        }
    }

    /// Fetches the list when it is needed.
    pub(super) fn pump(&mut self, now: Instant, context: &mut Context<'_>) {
        if let Some(download) = &mut self.download
            && let Err(error) = download.pump(now, context)
        {
            self.note_anomaly(context, &error.failure.detail);
            self.download.take().into_iter().for_each(|download| download.cancel(context));
            self.fetched(now);
        }
        if self.download.is_none() && self.wanted.iter().any(|wanted| now >= wanted.fetch_at) {
            self.fetch(now, context);
        }
    }

    /// Fetches the list as a page does: from the cache while that is fresh, else with its
    /// validators.
    fn fetch(&mut self, now: Instant, context: &mut Context<'_>) {
        let when = self.cached.as_ref().map(|cached| {
            when_warm(200, &cached.headers, now.saturating_duration_since(cached.stored_at))
        });
        let conditions = match when {
            Some(WhenWarm::FromCache) => return self.fetched(now),
            Some(WhenWarm::Revalidated(conditions)) => conditions,
            Some(WhenWarm::Requested) | None => Vec::new(),
        };
        let conditions = conditions.into_iter().filter_map(|(name, value)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        });
        match WholeDownload::begin_if(now, context, &self.url, conditions.collect(), LEN_MAX) {
            Ok(download) => self.download = Some(download),
            Err(failure) => {
                self.note_anomaly(context, &failure.detail);
                self.wanted.clear();
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match &self.download {
            Some(download) => download.next_timeout(),
            None => self.wanted.iter().map(|wanted| wanted.fetch_at).min(),
        }
    }
}

impl Cached {
    /// The headers of a new response; of an answer that nothing has changed those that it has
    /// replace those of `before` (RFC 9111 section 3.2).
    fn updated(before: Option<Self>, now: Instant, headers: &HeaderMap) -> Self {
        let text = |(name, value): (&HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let before = before.map(|cached| cached.headers).unwrap_or_default();
        let kept = before.into_iter().filter(|(name, _)| !headers.contains_key(name));
        Self { headers: kept.chain(headers.iter().filter_map(text)).collect(), stored_at: now }
    }
}

#[cfg(test)]
mod tests;
