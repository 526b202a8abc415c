//! The publishers of the room.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use throng_observation::MediaKind;

use super::event::{self, LIST_MAX, Publisher};
use crate::signalling::RunMark;
use crate::signalling::room::Subscriptions;

/// The publishers of a room, without this participant.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    mark: RunMark,
    feeds: BTreeMap<String, Feed>,
}

/// One publisher.
#[derive(Debug)]
pub(super) struct Feed {
    /// Its id in Janus's JSON.
    pub(super) id: Value,
    pub(super) name: String,
    /// Streams by mid. Janus 0.x sends none and is not supported here.
    pub(super) streams: Vec<(String, MediaKind)>,
    /// The mids of the simulcast streams.
    simulcasts: BTreeSet<String>,
}

impl Feeds {
    /// An empty list.
    pub(super) fn new(mark: RunMark) -> Self {
        Self { mark, feeds: BTreeMap::new() }
    }

    /// The name within the run that belongs to a display name.
    pub(super) fn name(&self, called: &str) -> String {
        self.mark.take(called).to_owned()
    }

    /// Adds and updates publishers.
    pub(super) fn published(&mut self, publishers: Vec<Publisher>) {
        for publisher in publishers {
            let Some(key) = event::key(&publisher.id) else { continue };
            if self.feeds.len() >= LIST_MAX && !self.feeds.contains_key(&key) {
                return;
            }
            let streams = publisher.streams.iter().take(LIST_MAX).filter(|stream| !stream.disabled);
            let simulcasts =
                streams.clone().filter(|s| s.simulcast).filter_map(|s| s.mid.clone()).collect();
            let streams =
                streams.filter_map(|s| Some((s.mid.clone()?, event::kind(&s.kind)?))).collect();
            let name = publisher.display.map_or_else(|| key.clone(), |called| self.name(&called));
            self.feeds.insert(key, Feed { id: publisher.id, name, streams, simulcasts });
        }
    }

    /// Removes a publisher that stopped publishing, or left.
    pub(super) fn gone(&mut self, id: &Value) -> Option<String> {
        let key = event::key(id)?;
        self.feeds.remove(&key).map(|_| key)
    }

    /// The names of all publishers.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.feeds.values().map(|feed| feed.name.clone()).collect()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Feed> {
        self.feeds.get(key)
    }

    /// Whether a stream of a subscription is simulcast.
    pub(super) fn is_simulcast(&self, stream: &event::Stream) -> bool {
        let feed = event::key(&stream.feed_id).and_then(|key| self.feeds.get(&key));
        feed.zip(stream.feed_mid.as_ref()).is_some_and(|(feed, mid)| feed.simulcasts.contains(mid))
    }

    /// The (feed, mid) pairs that `subscriptions` selects.
    pub(super) fn wanted(&self, subscriptions: &Subscriptions) -> BTreeSet<(String, String)> {
        let pairs = self.feeds.iter().flat_map(|(key, feed)| {
            let streams =
                feed.streams.iter().filter(|(_, kind)| subscriptions.wants(&feed.name, *kind));
            streams.map(move |(mid, _)| (key.clone(), mid.clone()))
        });
        pairs.collect()
    }
}
