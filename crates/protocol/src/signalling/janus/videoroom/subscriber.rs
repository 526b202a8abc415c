//! Brings the subscriptions to the wanted ones, one request at a time: Janus accepts no second
//! change of a subscription while the first is being negotiated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::config::{SubscriberMode, room_json};
use super::event;
use super::feeds::Feeds;
use crate::signalling::janus::session::Handle;
use crate::signalling::room::{PeerId, RoomStream, Subscriptions};
use throng_scenario::JanusId;

/// How many numbers peer connections use before the first is reused: each has two channels.
const PEER_IDS: u16 = 32_000;

/// A stream of a feed: the feed's key and the stream's mid.
type Pair = (String, String);

/// The subscriptions of a participant.
pub(super) struct Subscribers {
    mode: Option<SubscriberMode>,
    subscriptions: Subscriptions,
    by_peer: BTreeMap<PeerId, Subscription>,
    next_peer: u16,
    /// `private_id` of `joined`: associates the subscriptions with this participant in Janus.
    pub(super) private_id: Option<u64>,
}

/// One subscriber handle and its peer connection.
struct Subscription {
    /// The feed, where the subscription receives one publisher only.
    feed: Option<String>,
    state: State,
    received: BTreeSet<Pair>,
    /// The streams that were requested last; they count as received once negotiated.
    asked: BTreeSet<Pair>,
    /// The goal of the last request. If it was refused, it is not repeated until the wanted streams
    /// change.
    goal: BTreeSet<Pair>,
    was_refused: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Attaching,
    /// The handle exists, without a subscription.
    Attached(Handle),
    /// A request is pending, or an offer is being answered.
    Busy(Handle),
    /// Everything requested is negotiated.
    Settled(Handle),
}

/// What to do next.
pub(super) enum Step {
    /// Attach a handle for a subscription.
    Attach(PeerId),
    /// Send a request to the plugin.
    Request(PeerId, Handle, Value),
    /// Detach a subscription's handle.
    Detach(PeerId, Handle),
}

impl Subscribers {
    pub(super) fn new(mode: Option<SubscriberMode>, subscriptions: Subscriptions) -> Self {
        Self { mode, subscriptions, by_peer: BTreeMap::new(), next_peer: 1, private_id: None }
    }

    pub(super) fn subscribe(&mut self, subscriptions: &Subscriptions) {
        self.subscriptions = subscriptions.clone();
    }

    pub(super) fn peer_of(&self, handle: Handle) -> Option<PeerId> {
        self.by_peer
            .iter()
            .find(|(_, subscription)| subscription.handle() == Some(handle))
            .map(|(peer, _)| *peer)
    }

    pub(super) fn handle(&self, peer: PeerId) -> Option<Handle> {
        self.by_peer.get(&peer)?.handle()
    }

    pub(super) fn attached(&mut self, peer: PeerId, handle: Handle) {
        if let Some(subscription) = self.by_peer.get_mut(&peer) {
            subscription.state = State::Attached(handle);
        }
    }

    /// The subscriptions with nothing pending.
    pub(super) fn all_settled(&self) -> Vec<(PeerId, Handle)> {
        let settled =
            self.by_peer.iter().filter_map(|(peer, subscription)| match subscription.state {
                State::Settled(handle) => Some((*peer, handle)),
                State::Attaching | State::Attached(_) | State::Busy(_) => None,
            });
        settled.collect()
    }

    /// An offer arrived; the participant will answer it.
    pub(super) fn offered(&mut self, peer: PeerId) {
        if let Some(subscription) = self.by_peer.get_mut(&peer)
            && let Some(handle) = subscription.handle()
        {
            subscription.state = State::Busy(handle);
        }
    }

    /// Nothing is pending any more.
    pub(super) fn settled(&mut self, peer: PeerId) {
        if let Some(subscription) = self.by_peer.get_mut(&peer)
            && let Some(handle) = subscription.handle()
        {
            subscription.received = subscription.asked.clone();
            subscription.state = State::Settled(handle);
        }
    }

    /// A request was refused because a publisher has left: request the wanted streams again,
    /// without its streams.
    pub(super) fn refused(&mut self, peer: PeerId) {
        if let Some(subscription) = self.by_peer.get_mut(&peer)
            && let Some(handle) = subscription.handle()
        {
            subscription.asked = subscription.received.clone();
            subscription.was_refused = true;
            let begun = !subscription.received.is_empty();
            subscription.state =
                if begun { State::Settled(handle) } else { State::Attached(handle) };
        }
    }

    /// Removes a subscription; returns whether it existed.
    pub(super) fn lost(&mut self, peer: PeerId) -> bool {
        self.by_peer.remove(&peer).is_some()
    }

    /// A publisher stopped: Janus itself removes its streams from a multistream subscription; a
    /// subscription to it alone ends.
    pub(super) fn gone(&mut self, key: &str) -> Vec<(PeerId, Option<Handle>)> {
        for subscription in self.by_peer.values_mut() {
            subscription.received.retain(|(feed, _)| feed != key);
            subscription.asked.retain(|(feed, _)| feed != key);
        }
        let alone = |subscription: &Subscription| subscription.feed.as_deref() == Some(key);
        self.by_peer.extract_if(.., |_, s| alone(s)).map(|(peer, s)| (peer, s.handle())).collect()
    }

    /// The streams of a subscription, as the plugin lists them.
    pub(super) fn streams(
        &self,
        peer: PeerId,
        streams: &[event::Stream],
        feeds: &Feeds,
    ) -> Vec<RoomStream> {
        let feed = self.by_peer.get(&peer).and_then(|subscription| subscription.feed.as_deref());
        let of_feed = feed.and_then(|key| feeds.get(key)).map(|feed| feed.name.clone());
        let streams = streams.iter().take(event::LIST_MAX).filter_map(|stream| {
            Some(RoomStream {
                mid: stream.mid.clone()?,
                from: stream
                    .feed_display
                    .as_deref()
                    .map(|called| feeds.name(called))
                    .or_else(|| of_feed.clone())
                    .filter(|_| stream.active || of_feed.is_some()),
                // Janus does not signal to subscribers which streams of a publisher are mute.
                is_muted: false,
                kind: event::kind(&stream.kind)?,
                layers: Vec::new(),
                tells_layers: feeds.is_simulcast(stream),
            })
        });
        streams.collect()
    }

    /// The next step toward the wanted streams; `None` when nothing can be done now.
    pub(super) fn next_step(&mut self, feeds: &Feeds, room: &JanusId) -> Option<Step> {
        let wanted = feeds.wanted(&self.subscriptions);
        match self.mode? {
            SubscriberMode::Multistream => self.of_all(&wanted, feeds, room),
            SubscriberMode::HandlePerFeed => self.of_each(&wanted, feeds, room),
        }
    }

    fn of_all(&mut self, wanted: &BTreeSet<Pair>, feeds: &Feeds, room: &JanusId) -> Option<Step> {
        let Some((&peer, _)) = self.by_peer.first_key_value() else {
            return (!wanted.is_empty()).then(|| Step::Attach(self.begin(None)));
        };
        self.advance(peer, wanted.clone(), feeds, room)
    }

    fn of_each(&mut self, wanted: &BTreeSet<Pair>, feeds: &Feeds, room: &JanusId) -> Option<Step> {
        let keys: BTreeSet<&String> = wanted.iter().map(|(feed, _)| feed).collect();
        let has = |subscribers: &Self, key: &str| {
            subscribers
                .by_peer
                .values()
                .any(|subscription| subscription.feed.as_deref() == Some(key))
        };
        if let Some(key) = keys.iter().find(|key| !has(self, key)) {
            return Some(Step::Attach(self.begin(Some((*key).clone()))));
        }
        let idle = self
            .by_peer
            .iter()
            .find(|(_, s)| s.feed.as_ref().is_some_and(|feed| !keys.contains(feed)) && s.is_idle());
        if let Some((&peer, subscription)) = idle {
            let handle = subscription.handle()?;
            self.by_peer.remove(&peer);
            return Some(Step::Detach(peer, handle));
        }
        let peers: Vec<PeerId> = self.by_peer.keys().copied().collect();
        peers.into_iter().find_map(|peer| {
            let feed = self.by_peer.get(&peer)?.feed.clone()?;
            let of_feed = wanted.iter().filter(|(key, _)| *key == feed).cloned().collect();
            self.advance(peer, of_feed, feeds, room)
        })
    }

    fn begin(&mut self, feed: Option<String>) -> PeerId {
        let peer = PeerId(self.next_peer);
        self.next_peer = self.next_peer % PEER_IDS + 1;
        let (received, asked, goal) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        self.by_peer.insert(
            peer,
            Subscription {
                feed,
                state: State::Attaching,
                received,
                asked,
                goal,
                was_refused: false,
            },
        );
        peer
    }

    /// The request that brings a subscription to `wanted`, if it accepts one now.
    fn advance(
        &mut self,
        peer: PeerId,
        wanted: BTreeSet<Pair>,
        feeds: &Feeds,
        room: &JanusId,
    ) -> Option<Step> {
        let private_id = self.private_id;
        let subscription = self.by_peer.get_mut(&peer)?;
        if subscription.was_refused && subscription.goal == wanted {
            return None;
        }
        let list = |pairs: &mut dyn Iterator<Item = &Pair>| -> Vec<Value> {
            pairs
                .filter_map(|(feed, mid)| Some(json!({ "feed": feeds.get(feed)?.id, "mid": mid })))
                .collect()
        };
        let (handle, body) = match subscription.state {
            State::Attached(handle) if !wanted.is_empty() => {
                let mut body = json!({
                    "request": "join",
                    "ptype": "subscriber",
                    "room": room_json(room),
                    "streams": list(&mut wanted.iter()),
                });
                if let (Some(id), Some(body)) = (private_id, body.as_object_mut()) {
                    body.insert("private_id".into(), json!(id));
                }
                (handle, body)
            }
            State::Settled(handle) if wanted != subscription.received => {
                let more = list(&mut wanted.difference(&subscription.received));
                let fewer = list(&mut subscription.received.difference(&wanted));
                let mut body = json!({ "request": "update" });
                if let Some(body) = body.as_object_mut() {
                    if !more.is_empty() {
                        body.insert("subscribe".into(), json!(more));
                    }
                    if !fewer.is_empty() {
                        body.insert("unsubscribe".into(), json!(fewer));
                    }
                }
                (handle, body)
            }
            _ => return None,
        };
        subscription.goal.clone_from(&wanted);
        subscription.was_refused = false;
        subscription.asked = wanted;
        subscription.state = State::Busy(handle);
        Some(Step::Request(peer, handle, body))
    }
}

impl Subscription {
    fn handle(&self) -> Option<Handle> {
        match self.state {
            State::Attaching => None,
            State::Attached(handle) | State::Busy(handle) | State::Settled(handle) => Some(handle),
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.state, State::Attached(_) | State::Settled(_))
    }
}
