//! The peers of a run: who is connected with whom, who has which segment, and who sends which to
//! whom.
//!
//! All viewers of a run are in this process, so that a segment that one of them has downloaded
//! needs not to be sent to another: the other one learns what is in it, when it would have come. So
//! a server sees the requests that it would see with real peers, and a generator carries a crowd
//! whose peers would exchange far more than the server sends.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use throng_media::timing::WholeSegment;

use super::hashes::HashLists;
use super::number_set::NumberSet;
use super::tracker::Id;
use super::uplink::{Progress, Uplink, Upload};

/// The swarms of a run, one for each rendition of each stream, and the lists of hashes that their
/// viewers have read.
#[derive(Clone, Debug, Default)]
pub struct Swarms {
    swarms: Arc<Mutex<BTreeMap<String, Swarm>>>,
    lists: HashLists,
}

/// The swarm of a rendition.
#[derive(Clone, Debug, Default)]
pub(super) struct Swarm(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    peers: HashMap<PeerId, Peer>,
    /// By their names at the tracker.
    named: HashMap<Id, PeerId>,
    /// As long as somebody has them.
    segments: BTreeMap<u64, SharedSegment>,
    /// Those of which there are bytes, and how many bytes in all.
    with_bytes: NumberSet,
    bytes_len: u64,
    next: u64,
}

/// A segment that viewers of this process have.
#[derive(Debug, Default)]
struct SharedSegment {
    /// How many have it.
    holders: usize,
    /// What is in it: once for all who have it.
    whole: Option<WholeSegment>,
    /// Its bytes, for peers of other processes.
    bytes: Option<Arc<[u8]>>,
}

/// A viewer in a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PeerId(u64);

#[derive(Debug)]
struct Peer {
    /// Its number in the run.
    number: u32,
    name: Option<Id>,
    /// Its peers are real ones.
    has_channels: bool,
    shares: bool,
    connected: BTreeMap<PeerId, Connected>,
    kept: BTreeMap<u64, HeldSegment>,
    kept_numbers: NumberSet,
    said: Holdings,
    uplink: Uplink<PeerId>,
    /// A neighbour has announced something, or is gone.
    has_news: bool,
    /// It left without a word: nothing comes from it, and its neighbours do not know.
    silent_since: Option<Instant>,
}

/// A neighbour.
#[derive(Clone, Copy, Debug)]
struct Connected {
    since: Instant,
    /// How often in a row nothing came from it in time.
    late_count: u32,
}

/// A segment that a viewer has.
#[derive(Debug)]
struct HeldSegment {
    segment: WholeSegment,
    since: Instant,
}

/// What a viewer says that it has, and that it loads from the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holdings {
    pub(super) loaded: NumberSet,
    pub(super) loading: BTreeSet<u64>,
}

impl Holdings {
    /// Whether segment `number` is among them.
    pub(super) fn has(&self, number: u64) -> bool {
        self.loaded.contains(number) || self.loading.contains(&number)
    }
}

/// A viewer of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) id: PeerId,
    /// Its number in the run.
    pub(super) number: u32,
    pub(super) has_channels: bool,
}

/// What the neighbours have of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Announced {
    /// One of them is loading it from the server.
    Loading,
    /// One of them has it.
    Loaded,
}

/// How far a segment has come that a neighbour sends.
#[derive(Debug)]
pub(super) enum Sent {
    /// So many bytes; all of them at about this time.
    Partly(u64, Instant),
    /// All of it.
    Whole(WholeSegment),
    /// The neighbour is gone.
    Broken,
}

/// Bytes that a viewer has sent to others, and how many it is connected with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) uploaded_bytes: u64,
    pub(super) peers: u32,
}

impl Swarms {
    /// The swarm of this identity.
    pub(super) fn swarm(&self, identity: &str) -> Swarm {
        let mut swarms = self.swarms.lock().unwrap_or_else(PoisonError::into_inner);
        swarms.entry(identity.to_owned()).or_default().clone()
    }

    /// The lists of hashes that were read.
    pub(super) fn lists(&self) -> &HashLists {
        &self.lists
    }
}

impl Swarm {
    /// Viewer `number` enters it; `shares`: it sends to others, at `upload_bps`.
    pub(super) fn enter(&self, number: u32, shares: bool, upload_bps: Option<u64>) -> Membership {
        let mut state = self.lock();
        let id = PeerId(state.next);
        state.next += 1;
        let peer = Peer {
            number,
            name: None,
            has_channels: false,
            shares,
            connected: BTreeMap::new(),
            kept: BTreeMap::new(),
            kept_numbers: NumberSet::default(),
            said: Holdings::default(),
            uplink: Uplink::new(upload_bps),
            has_news: false,
            silent_since: None,
        };
        state.peers.insert(id, peer);
        drop(state);
        Membership { swarm: self.clone(), id }
    }

    /// The viewer of this name at the tracker.
    pub(super) fn of_name(&self, name: &Id) -> Option<Known> {
        let state = self.lock();
        let id = *state.named.get(name)?;
        let peer = state.peers.get(&id)?;
        Some(Known { id, number: peer.number, has_channels: peer.has_channels })
    }

    /// A name for a peer of another process.
    pub(super) fn name_stranger(&self) -> PeerId {
        let mut state = self.lock();
        let id = PeerId(state.next);
        state.next += 1;
        id
    }

    /// Whether nobody has brought the bytes of segment `number`.
    pub(super) fn lacks_bytes(&self, number: u64) -> bool {
        !self.lock().with_bytes.contains(number)
    }

    /// The segments of which somebody has brought the bytes.
    pub(super) fn with_bytes(&self) -> NumberSet {
        self.lock().with_bytes.clone()
    }

    /// These are the bytes of segment `number`.
    pub(super) fn keep_bytes(&self, number: u64, bytes: Arc<[u8]>) {
        let mut state = self.lock();
        let State { segments, with_bytes, bytes_len, .. } = &mut *state;
        let shared = segments.entry(number).or_default();
        if shared.bytes.is_none() {
            *bytes_len += bytes.len() as u64;
            with_bytes.insert(number);
            shared.bytes = Some(bytes);
        }
    }

    /// Lets bytes go until there are no more than `most`: those of the first segments, which most
    /// have played.
    pub(super) fn limit_bytes(&self, most: u64) {
        let mut state = self.lock();
        while state.bytes_len > most {
            let Some(first) = state.with_bytes.iter().next() else { return };
            state.drop_bytes(first);
        }
    }

    /// Peers that `but` is not connected with, in no order, and their numbers in the run; at most
    /// `count`.
    pub(super) fn others(
        &self,
        but: PeerId,
        count: usize,
        rng: &mut fastrand::Rng,
    ) -> Vec<(PeerId, u32)> {
        let state = self.lock();
        let Some(peer) = state.peers.get(&but) else { return Vec::new() };
        let is_other = |id: &PeerId| *id != but && !peer.connected.contains_key(id);
        let is_there = |peer: &Peer| peer.silent_since.is_none();
        let others = state.peers.iter().filter(|(id, peer)| is_other(id) && is_there(peer));
        let mut others: Vec<(PeerId, u32)> = others.map(|(id, peer)| (*id, peer.number)).collect();
        // The order of a hash map differs between runs.
        others.sort_unstable();
        rng.shuffle(&mut others);
        others.truncate(count);
        others
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The presence of a viewer in a swarm, which ends when it is dropped: in order, unless it has
/// fallen silent before.
#[derive(Debug)]
pub(super) struct Membership {
    swarm: Swarm,
    id: PeerId,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut state = self.swarm.lock();
        if state.peers.get(&self.id).is_some_and(|peer| peer.silent_since.is_none()) {
            state.remove(self.id);
        }
    }
}

impl Membership {
    pub(super) fn id(&self) -> PeerId {
        self.id
    }

    pub(super) fn swarm(&self) -> &Swarm {
        &self.swarm
    }

    /// This is its name at the tracker.
    pub(super) fn name(&self, name: Id) {
        let mut state = self.swarm.lock();
        state.named.insert(name, self.id);
        if let Some(peer) = state.peers.get_mut(&self.id) {
            peer.name = Some(name);
        }
    }

    /// It leaves as a tab does that is closed: without a word to its neighbours.
    pub(super) fn fall_silent(&self, now: Instant) {
        let mut state = self.swarm.lock();
        state.forget_silent(now);
        let Some(peer) = state.peers.get_mut(&self.id) else { return };
        peer.silent_since = Some(now);
        peer.uplink.stop(now);
        if let Some(name) = peer.name.take() {
            state.named.remove(&name);
        }
    }

    /// It exchanges segments over data channels.
    pub(super) fn has_channels(&self) {
        let mut state = self.swarm.lock();
        if let Some(peer) = state.peers.get_mut(&self.id) {
            peer.has_channels = true;
        }
    }

    /// Is connected with `other` from `at` on, unless either has `degree_max` peers.
    pub(super) fn connect(&self, other: PeerId, at: Instant, degree_max: usize) {
        let mut state = self.swarm.lock();
        let has_room =
            |id| state.peers.get(id).is_some_and(|peer| peer.connected.len() < degree_max);
        if other == self.id || !has_room(&other) || !has_room(&self.id) {
            return;
        }
        for (of, with) in [(self.id, other), (other, self.id)] {
            if let Some(peer) = state.peers.get_mut(&of) {
                peer.connected.entry(with).or_insert(Connected { since: at, late_count: 0 });
                peer.has_news = true;
            }
        }
    }

    /// Peers that it is connected with.
    pub(super) fn degree(&self, now: Instant) -> usize {
        self.swarm.lock().neighbours(now, self.id).count()
    }

    /// Whether a neighbour has announced something since the last call, or is connected from now
    /// on.
    pub(super) fn take_news(&self) -> bool {
        let mut state = self.swarm.lock();
        state.peers.get_mut(&self.id).is_some_and(|peer| std::mem::take(&mut peer.has_news))
    }

    /// It has a segment, of which the neighbours learn with the next announcement. What others who
    /// have it know of it, which is the same.
    pub(super) fn keep(&self, now: Instant, number: u64, segment: WholeSegment) -> WholeSegment {
        let mut state = self.swarm.lock();
        let State { peers, segments, .. } = &mut *state;
        let Some(peer) = peers.get_mut(&self.id) else { return segment };
        let shared = segments.entry(number).or_default();
        let known = shared.whole.get_or_insert_with(|| segment.clone());
        let segment = if known.is_like(&segment) { known.clone() } else { segment };
        let held = HeldSegment { segment: segment.clone(), since: now };
        if peer.kept.insert(number, held).is_none() {
            shared.holders += 1;
        }
        peer.kept_numbers.insert(number);
        segment
    }

    /// It has no segment before this one any more, of which the neighbours learn with the next
    /// announcement; whether it had any.
    pub(super) fn forget_before(&self, number: u64) -> bool {
        let mut state = self.swarm.lock();
        let Some(peer) = state.peers.get_mut(&self.id) else { return false };
        let later = peer.kept.split_off(&number);
        let gone = std::mem::replace(&mut peer.kept, later);
        peer.kept_numbers.forget_before(number);
        state.release(&gone);
        !gone.is_empty()
    }

    /// Tells the neighbours what it has and what it loads from the server.
    pub(super) fn announce(&self, loading: &[u64]) {
        let mut state = self.swarm.lock();
        let Some(peer) = state.peers.get_mut(&self.id) else { return };
        peer.said.loaded.clone_from(&peer.kept_numbers);
        peer.said.loading = loading.iter().copied().collect();
        if !peer.shares {
            return;
        }
        let neighbours: Vec<PeerId> = peer.connected.keys().copied().collect();
        for neighbour in neighbours {
            if let Some(neighbour) = state.peers.get_mut(&neighbour) {
                neighbour.has_news = true;
            }
        }
    }

    /// What the neighbours have of the segments `within` these: what some of them have, and what
    /// some of them load.
    pub(super) fn overview(&self, now: Instant, within: &RangeInclusive<u64>) -> Holdings {
        let state = self.swarm.lock();
        let mut overview = Holdings::default();
        for (_, peer, since) in state.neighbours(now, self.id) {
            peer.add_to(&mut overview, since, within);
        }
        overview
    }

    /// What the neighbours have of segment `number`.
    #[cfg(test)]
    pub(super) fn announced(&self, now: Instant, number: u64) -> Option<Announced> {
        let state = self.swarm.lock();
        let neighbours = state.neighbours(now, self.id);
        neighbours.filter_map(|(_, peer, since)| peer.announced(number, since)).max()
    }

    /// Neighbours that have segment `number`, and of which nothing else is received at the moment.
    pub(super) fn sources(&self, now: Instant, number: u64, busy: &[PeerId]) -> Vec<PeerId> {
        let state = self.swarm.lock();
        let has = |peer: &Peer, since| peer.announced(number, since) == Some(Announced::Loaded);
        let neighbours = state.neighbours(now, self.id);
        let sources =
            neighbours.filter(|(id, peer, since)| has(peer, *since) && !busy.contains(id));
        sources.map(|(id, ..)| id).collect()
    }

    /// Asks a neighbour for segment `number`; `None` if it does not have it any more.
    pub(super) fn request(&self, now: Instant, from: PeerId, number: u64) -> Option<()> {
        let mut state = self.swarm.lock();
        let peer = state.peers.get_mut(&from)?;
        let bytes = peer.kept.get(&number)?.segment.bytes();
        peer.uplink.begin(now, self.id, Upload { number, bytes });
        Some(())
    }

    /// Something is sent to a peer of another process, as fast as the uplink allows beside what
    /// else it sends. Its channel counts it.
    pub(super) fn begin_upload(&self, now: Instant, to: PeerId, upload: Upload) {
        self.with_uplink(|uplink| uplink.pace(now, to, upload));
    }

    /// How far the upload of segment `number` to `to` may be.
    pub(super) fn upload_progress(
        &self,
        now: Instant,
        to: PeerId,
        number: u64,
    ) -> Option<Progress> {
        self.with_uplink(|uplink| uplink.progress(now, to, number)).flatten()
    }

    /// Sends it no more.
    pub(super) fn cancel_upload(&self, now: Instant, to: PeerId) {
        self.with_uplink(|uplink| {
            uplink.advance(now);
            uplink.cancel(to);
        });
    }

    fn with_uplink<T>(&self, act: impl FnOnce(&mut Uplink<PeerId>) -> T) -> Option<T> {
        let mut state = self.swarm.lock();
        state.peers.get_mut(&self.id).map(|peer| act(&mut peer.uplink))
    }

    /// The bytes of segment `number`, if this viewer has it.
    pub(super) fn bytes_of(&self, number: u64) -> Option<Arc<[u8]>> {
        let state = self.swarm.lock();
        let has = state.peers.get(&self.id)?.kept_numbers.contains(number);
        state.segments.get(&number).filter(|_| has)?.bytes.clone()
    }

    /// How far segment `number` has come, which `from` sends.
    pub(super) fn received(&self, now: Instant, from: PeerId, number: u64) -> Sent {
        let mut state = self.swarm.lock();
        let Some(peer) = state.peers.get_mut(&from) else { return Sent::Broken };
        let Some(progress) = peer.uplink.progress(now, self.id, number) else {
            return Sent::Broken;
        };
        if !progress.is_whole {
            return Sent::Partly(progress.bytes, progress.whole_at);
        }
        peer.uplink.cancel(self.id);
        let Some(segment) = peer.kept.get(&number).map(|kept| kept.segment.clone()) else {
            return Sent::Broken;
        };
        if let Some(connected) = state.connection(self.id, from) {
            connected.late_count = 0;
        }
        Sent::Whole(segment)
    }

    /// Asks `from` to send no more; `is_late`: since nothing came in time, for which it is left at
    /// the third time in a row.
    pub(super) fn cancel(&self, now: Instant, from: PeerId, is_late: bool) {
        let mut state = self.swarm.lock();
        if let Some(peer) = state.peers.get_mut(&from) {
            peer.uplink.advance(now);
            peer.uplink.cancel(self.id);
        }
        let Some(connected) = state.connection(self.id, from).filter(|_| is_late) else { return };
        connected.late_count += 1;
        if connected.late_count >= LATE_MAX {
            state.disconnect(self.id, from);
        }
    }

    /// Bytes that it has sent to peers of this process since the last call, and its peers.
    pub(super) fn take_shared(&self, now: Instant) -> Shared {
        let mut state = self.swarm.lock();
        let Some(peer) = state.peers.get_mut(&self.id) else { return Shared::default() };
        peer.uplink.advance(now);
        let uploaded_bytes = peer.uplink.take_sent();
        let peers = state.neighbours(now, self.id).count();
        Shared { uploaded_bytes, peers: u32::try_from(peers).unwrap_or(u32::MAX) }
    }
}

impl State {
    /// Who `of` is connected with, and since when.
    fn neighbours(
        &self,
        now: Instant,
        of: PeerId,
    ) -> impl Iterator<Item = (PeerId, &Peer, Instant)> {
        let connected = self.peers.get(&of).into_iter().flat_map(|peer| &peer.connected);
        let connected = connected.filter(move |(_, connected)| connected.since <= now);
        let neighbours = connected
            .filter_map(|(id, connected)| Some((*id, self.peers.get(id)?, connected.since)));
        neighbours.filter(move |(_, peer, _)| !peer.is_missed(now))
    }

    fn connection(&mut self, of: PeerId, with: PeerId) -> Option<&mut Connected> {
        self.peers.get_mut(&of)?.connected.get_mut(&with)
    }

    fn disconnect(&mut self, a: PeerId, b: PeerId) {
        for (of, with) in [(a, b), (b, a)] {
            if let Some(peer) = self.peers.get_mut(&of) {
                peer.connected.remove(&with);
                peer.uplink.cancel(with);
                peer.has_news = true;
            }
        }
    }

    /// A viewer is gone, and its neighbours know.
    fn remove(&mut self, id: PeerId) {
        let Some(gone) = self.peers.remove(&id) else { return };
        self.release(&gone.kept);
        gone.name.and_then(|name| self.named.remove(&name));
        for other in gone.connected.keys() {
            self.disconnect(id, *other);
        }
    }

    /// Somebody has these no more: what nobody has goes.
    fn release(&mut self, gone: &BTreeMap<u64, HeldSegment>) {
        for number in gone.keys() {
            let Some(shared) = self.segments.get_mut(number) else { continue };
            shared.holders = shared.holders.saturating_sub(1);
            if shared.holders == 0 {
                self.drop_bytes(*number);
                self.segments.remove(number);
            }
        }
    }

    fn drop_bytes(&mut self, number: u64) {
        let bytes = self.segments.get_mut(&number).and_then(|shared| shared.bytes.take());
        self.bytes_len -= bytes.map_or(0, |bytes| bytes.len() as u64);
        self.with_bytes.remove(number);
    }

    /// Removes those who fell silent so long ago that everybody has noticed.
    fn forget_silent(&mut self, now: Instant) {
        let missed = self.peers.iter().filter(|(_, peer)| peer.is_missed(now)).map(|(id, _)| *id);
        for id in missed.collect::<Vec<_>>() {
            self.remove(id);
        }
    }
}

impl Peer {
    /// What it has said of segment `number` to whom it is connected with `since` then. A new
    /// neighbour is told all.
    fn announced(&self, number: u64, since: Instant) -> Option<Announced> {
        let was_there = || self.kept.get(&number).is_some_and(|kept| kept.since < since);
        if !self.shares {
            None
        } else if self.said.loaded.contains(number) || was_there() {
            Some(Announced::Loaded)
        } else {
            self.said.loading.contains(&number).then_some(Announced::Loading)
        }
    }

    /// The same of all segments `within` these.
    fn add_to(&self, overview: &mut Holdings, since: Instant, within: &RangeInclusive<u64>) {
        if !self.shares {
            return;
        }
        overview.loaded.add(&self.said.loaded, within);
        for number in self.kept_numbers.without(&self.said.loaded) {
            if self.kept.get(&number).is_some_and(|kept| kept.since < since) {
                overview.loaded.insert(number);
            }
        }
        overview.loading.extend(&self.said.loading);
    }

    /// Whether it fell silent, and its neighbours have noticed.
    fn is_missed(&self, now: Instant) -> bool {
        self.silent_since.is_some_and(|since| now >= since + MISSED_AFTER)
    }
}

/// How long it takes until two peers that found each other are connected: ICE and DTLS.
pub(super) const CONNECT_TIME: Duration = Duration::from_millis(500);

/// How long it takes until ICE takes a peer for lost that has fallen silent: Chromium 156 calls the
/// connection `disconnected` after 6.8 s and `failed` after 16.8 s (measured; the engine waits for
/// the latter).
const MISSED_AFTER: Duration = Duration::from_secs(17);

/// A peer from which nothing came in time so often in a row is left (`p2pErrorRetries`).
pub(super) const LATE_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn segment() -> WholeSegment {
        WholeSegment::opaque(9_400)
    }

    #[test]
    fn neighbours_learn_what_is_loaded_and_receive_it_at_the_rate_of_the_uplink() {
        let (swarms, now) = (Swarms::default(), Instant::now());
        let swarm = swarms.swarm("a");
        let [has, wants, alone] =
            [Some(75_200), None, None].map(|upload_bps| swarm.enter(1, true, upload_bps));
        has.connect(wants.id(), now, 9);
        assert_eq!((wants.degree(now), alone.degree(now)), (1, 0));
        has.announce(&[7]);
        assert_eq!(wants.announced(now, 7), Some(Announced::Loading));
        assert!(wants.take_news() && !wants.take_news());
        has.keep(now, 7, segment());
        assert_eq!(wants.announced(now, 7), Some(Announced::Loading), "it was not told");
        has.announce(&[]);
        assert_eq!(
            (wants.announced(now, 7), alone.announced(now, 7)),
            (Some(Announced::Loaded), None)
        );
        let from = wants.sources(now, 7, &[])[0];
        wants.request(now, from, 7).unwrap();
        assert_eq!(wants.sources(now, 7, &[from]), [], "one segment at a time from each");
        let half = now + Duration::from_millis(500);
        assert!(
            matches!(wants.received(half, from, 7), Sent::Partly(4_700, at) if at == now + Duration::from_secs(1))
        );
        assert!(matches!(wants.received(now + Duration::from_secs(1), from, 7), Sent::Whole(_)));
        assert_eq!(
            has.take_shared(now + Duration::from_secs(2)),
            Shared { uploaded_bytes: 9_400, peers: 1 }
        );
    }

    #[test]
    fn who_does_not_share_announces_nothing_and_who_leaves_is_gone() {
        let (swarm, now) = (Swarm::default(), Instant::now());
        let [mobile, wants, has] =
            [false, true, true].map(|shares| swarm.enter(1, shares, Some(1)));
        mobile.connect(wants.id(), now, 9);
        has.connect(wants.id(), now, 1);
        assert_eq!(wants.degree(now), 1, "it has no room for a second one");
        mobile.keep(now, 7, segment());
        mobile.announce(&[]);
        assert_eq!(wants.announced(now, 7), None);
        drop(mobile);
        has.connect(wants.id(), now, 1);
        has.keep(now, 7, segment());
        has.announce(&[]);
        let from = wants.sources(now, 7, &[])[0];
        wants.request(now, from, 7).unwrap();
        drop(has);
        assert!(matches!(wants.received(now, from, 7), Sent::Broken));
        assert_eq!((wants.degree(now), wants.announced(now, 7)), (0, None));
    }

    #[test]
    fn a_connection_is_of_use_when_it_is_made() {
        let (swarm, now) = (Swarm::default(), Instant::now());
        let [a, b] = [true, true].map(|shares| swarm.enter(1, shares, None));
        a.connect(b.id(), now + CONNECT_TIME, 9);
        a.keep(now, 1, segment());
        assert_eq!((b.degree(now), b.announced(now, 1)), (0, None));
        let later = now + CONNECT_TIME;
        assert_eq!((b.degree(later), b.announced(later, 1)), (1, Some(Announced::Loaded)));
    }

    #[test]
    fn who_falls_silent_is_asked_in_vain_until_it_is_left_or_missed() {
        let (swarm, now) = (Swarm::default(), Instant::now());
        let [has, patient, hasty] = [1, 2, 3].map(|number| swarm.enter(number, true, None));
        for other in [&patient, &hasty] {
            has.connect(other.id(), now, 9);
        }
        has.keep(now, 7, segment());
        has.announce(&[]);
        let has_id = has.id();
        has.fall_silent(now);
        drop(has);
        assert_eq!(hasty.sources(now, 7, &[]), [has_id], "nobody knows");
        for late in 0..LATE_MAX {
            assert_eq!(hasty.degree(now), 1, "{late}");
            hasty.request(now, has_id, 7).unwrap();
            assert!(matches!(
                hasty.received(now + Duration::from_secs(2), has_id, 7),
                Sent::Partly(0, _)
            ));
            hasty.cancel(now + Duration::from_secs(2), has_id, true);
        }
        assert_eq!(hasty.degree(now), 0);
        let just_before = now + MISSED_AFTER - Duration::from_millis(1);
        assert_eq!((patient.degree(just_before), patient.degree(now + MISSED_AFTER)), (1, 0));
        assert_eq!(
            swarm.others(hasty.id(), 9, &mut fastrand::Rng::with_seed(1)),
            [(patient.id(), 2)]
        );
        patient.fall_silent(now + MISSED_AFTER);
        assert_eq!(swarm.lock().peers.len(), 2, "the first is forgotten");
    }

    #[test]
    fn what_many_have_is_there_once_and_goes_with_the_last_of_them() {
        let (swarm, now) = (Swarm::default(), Instant::now());
        let [a, b] = [1, 2].map(|number| swarm.enter(number, true, None));
        let bytes = |count: usize| -> Arc<[u8]> { vec![0_u8; count].into() };
        for number in 0..3 {
            swarm.keep_bytes(number, bytes(100));
            a.keep(now, number, WholeSegment::opaque(100));
            b.keep(now, number, WholeSegment::opaque(100));
        }
        let other = b.keep(now, 1, WholeSegment::opaque(99));
        assert_eq!(other.bytes(), 99, "another one of that number is not that of the others");
        assert_eq!(swarm.lock().segments.len(), 3);
        assert!(a.forget_before(2) && !a.forget_before(2));
        assert!(!swarm.lacks_bytes(1) && a.bytes_of(1).is_none() && b.bytes_of(1).is_some());
        swarm.limit_bytes(200);
        assert!(swarm.lacks_bytes(0) && swarm.with_bytes().iter().eq(1..3_u64));
        drop(b);
        assert!(swarm.lock().segments.keys().eq([&2]), "{:?}", swarm.lock().segments.keys());
        drop(a);
        let state = swarm.lock();
        assert!(state.segments.is_empty() && state.bytes_len == 0);
    }

    #[test]
    fn what_all_neighbours_have_is_what_each_of_them_says() {
        let (swarm, now) = (Swarm::default(), Instant::now());
        let [asks, has, loads, mobile] =
            [true, true, true, false].map(|shares| swarm.enter(1, shares, None));
        let later = now + Duration::from_secs(1);
        for other in [&has, &loads, &mobile] {
            other.connect(asks.id(), later, 9);
        }
        for number in [3, 200, 9_000] {
            has.keep(now, number, segment());
            mobile.keep(now, number, segment());
        }
        has.announce(&[]);
        mobile.announce(&[]);
        loads.announce(&[7]);
        has.keep(later, 4, segment());
        // Who comes later is told all, but what it says with its next announcement.
        loads.keep(now, 5, segment());
        let overview = asks.overview(later, &(0..=300));
        assert!(overview.loaded.iter().eq([3, 5, 200_u64]), "{overview:?}");
        for number in [3, 4, 5, 7, 200] {
            let alone = asks.announced(later, number);
            assert_eq!(overview.has(number), alone.is_some(), "{number}");
            assert_eq!(overview.loaded.contains(number), alone == Some(Announced::Loaded));
        }
        assert_eq!(asks.overview(now, &(0..=300)), Holdings::default(), "nobody is connected");
    }
}
