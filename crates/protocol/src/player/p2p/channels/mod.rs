//! Peers of other processes, over WebRTC data channels: browsers with p2p-media-loader, and viewers
//! of throng that a scenario gives real channels. What they have and send is real; the decisions
//! are those of all viewers ([`super::loader`]).
//!
//! A viewer has one socket. Which connection a datagram is for follows from its ICE credentials,
//! then from its source address. Of several connections to the same peer the first that opens is
//! used.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use throng_scenario::PeerEngine;

use super::swarm::{Holdings, LATE_MAX, Membership, PeerId};
use super::tracker::Id;
use super::uplink::Upload;
use super::wire::{PeerCommand, Wire};
use crate::participant::Transmit;
use crate::webrtc::MayReach;
use crate::webrtc::data_link::{DataLink, LinkOutput, local_of};
use crate::webrtc::session::SessionError;

mod connection;

use connection::{Connection, Event};

/// How long an offer waits for an answer, and a connection until it is open.
const OFFER_TIMEOUT: Duration = Duration::from_secs(50);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections that are not open yet: all, and with peers of one name. Each has a DTLS session and
/// its timers, and offers come from whoever the tracker lets in.
const PENDING_MAX: usize = 50;
const PENDING_OF_PEER_MAX: usize = 3;
/// How soon more of a segment may be sent where the uplink is limited.
const UPLOAD_EVERY: Duration = Duration::from_millis(20);
/// Most that one connection does at once.
const POLLS_MAX: usize = 10_000;

/// What the connections of a viewer have in common.
#[derive(Clone)]
pub(super) struct ChannelOptions {
    pub(super) engine: PeerEngine,
    /// What names the swarm of the rendition in names of segments.
    pub(super) swarm: String,
    pub(super) may_reach: MayReach,
    /// It sends to others.
    pub(super) shares: bool,
    pub(super) degree_max: usize,
}

/// The connections of a viewer in one swarm.
pub(super) struct Channels {
    options: ChannelOptions,
    /// The addresses of its socket.
    locals: Vec<SocketAddr>,
    /// Offers that nobody has answered yet.
    offers: HashMap<Id, (DataLink, Instant)>,
    connections: Vec<Connection>,
    transmits: Vec<Transmit>,
    /// A peer has announced something, or is gone.
    has_news: bool,
    /// What this viewer has to say of its segments has changed.
    is_unsaid: bool,
    problems: Vec<String>,
    counters: ChannelCounters,
    rng: fastrand::Rng,
}

/// Counts since they were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChannelCounters {
    /// Bytes of segments that came over data channels.
    pub(super) received_bytes: u64,
    /// Bytes of segments that were sent over them.
    pub(super) sent_bytes: u64,
}

impl Channels {
    pub(super) fn new(options: ChannelOptions, locals: Vec<SocketAddr>, seed: u64) -> Self {
        Self {
            options,
            locals,
            offers: HashMap::new(),
            connections: Vec::new(),
            transmits: Vec::new(),
            has_news: false,
            is_unsaid: false,
            problems: Vec::new(),
            counters: ChannelCounters::default(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Offers a connection to whom the tracker gives it.
    pub(super) fn offer(&mut self, now: Instant, id: Id) -> Option<String> {
        self.offers.retain(|_, (_, until)| now < *until);
        let made = DataLink::offer(now, &self.locals, self.options.may_reach.clone());
        let (link, sdp) = self.heed("an offer", made)?;
        self.offers.insert(id, (link, now + OFFER_TIMEOUT));
        Some(sdp)
    }

    /// A peer offers a connection.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        id: PeerId,
        peer: Id,
        offer: &str,
    ) -> Option<String> {
        if !self.has_room(&peer) {
            return None;
        }
        let made = DataLink::answer(now, &self.locals, self.options.may_reach.clone(), offer);
        let (link, sdp) = self.heed("the offer of a peer", made)?;
        self.connect(now, id, peer, link);
        Some(sdp)
    }

    /// A peer has answered an offer.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        id: PeerId,
        offer: &Id,
        peer: Id,
        answer: &str,
    ) {
        let Some((mut link, _)) = self.offers.remove(offer) else { return };
        if !self.has_room(&peer) {
            return;
        }
        let accepted = link.accept(answer);
        if self.heed("the answer of a peer", accepted).is_some() {
            self.connect(now, id, peer, link);
        }
    }

    /// Somebody else was found by this offer.
    pub(super) fn withdraw(&mut self, offer: &Id) {
        self.offers.remove(offer);
    }

    fn connect(&mut self, now: Instant, id: PeerId, peer: Id, link: DataLink) {
        let wire = Wire::new(self.options.engine, &self.options.swarm);
        self.connections.push(Connection::new(now, id, peer, link, wire));
    }

    /// Whether a peer of this name is connected.
    fn has(&self, peer: &Id) -> bool {
        self.connections.iter().any(|connection| connection.is_open && connection.peer == *peer)
    }

    /// Whether another connection, to this peer, may be made.
    fn has_room(&self, peer: &Id) -> bool {
        let pending = self.connections.iter().filter(|connection| !connection.is_open);
        let (all, of_peer) = pending.fold((0, 0), |(all, of_peer), connection| {
            (all + 1, of_peer + usize::from(connection.peer == *peer))
        });
        !self.is_full() && !self.has(peer) && all < PENDING_MAX && of_peer < PENDING_OF_PEER_MAX
    }

    fn is_full(&self) -> bool {
        self.open().count() >= self.options.degree_max
    }

    fn open(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(|connection| connection.is_open)
    }

    fn heed<T>(&mut self, of: &str, result: Result<T, SessionError>) -> Option<T> {
        result.map_err(|error| self.problems.push(format!("{of}: {error}"))).ok()
    }

    /// A datagram came.
    pub(super) fn datagram(
        &mut self,
        now: Instant,
        membership: &Membership,
        (source, local): (SocketAddr, Option<IpAddr>),
        bytes: &[u8],
    ) {
        let Some(local) = local_of(&self.locals, local) else { return };
        for at in 0..self.connections.len() {
            let Some(connection) = self.connections.get_mut(at) else { break };
            match connection.link.datagram(now, (source, local), bytes) {
                Ok(false) => {}
                Ok(true) => return self.advance(now, membership, at),
                Err(error) => return self.leave(now, membership, at, Some(&error.to_string())),
            }
        }
        for (link, _) in self.offers.values_mut() {
            // A check may be earlier than the answer, which goes by the tracker.
            if !matches!(link.datagram(now, (source, local), bytes), Ok(false)) {
                return;
            }
        }
    }

    /// Does what is due. All peers are told `said` when it has changed, new ones `all` that this
    /// viewer has.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        membership: &Membership,
        said: &Holdings,
        all: &Holdings,
    ) {
        self.offers.retain(|_, (_, until)| now < *until);
        self.drain_offers(now);
        for at in (0..self.connections.len()).rev() {
            let Some(connection) = self.connections.get_mut(at) else { continue };
            if !connection.is_open && now >= connection.began_at + CONNECT_TIMEOUT {
                let detail = connection
                    .link
                    .refused()
                    .map(|address| format!("{address} is not an allowed target"));
                self.leave(now, membership, at, detail.as_deref());
            } else if now >= connection.next_at {
                let result = connection.link.timeout(now);
                match result {
                    Ok(()) => self.advance(now, membership, at),
                    Err(error) => self.leave(now, membership, at, Some(&error.to_string())),
                }
            }
        }
        self.say_holdings(now, membership, said, all);
        for at in (0..self.connections.len()).rev() {
            self.send_more(now, membership, at);
        }
    }

    /// Offers send nothing before they are answered, but their timers run.
    fn drain_offers(&mut self, now: Instant) {
        for (link, _) in self.offers.values_mut() {
            for _ in 0..POLLS_MAX {
                match link.poll() {
                    Ok(LinkOutput::Timeout(at)) if at <= now => {
                        if link.timeout(now).is_err() {
                            break;
                        }
                    }
                    Ok(LinkOutput::Transmit { from, to, bytes }) => {
                        self.transmits.push(Transmit { to, from: Some(from.ip()), bytes });
                    }
                    Ok(LinkOutput::Timeout(_)) | Err(_) => break,
                    Ok(_) => {}
                }
            }
        }
    }

    /// Goes on with a connection until it waits.
    fn advance(&mut self, now: Instant, membership: &Membership, at: usize) {
        for _ in 0..POLLS_MAX {
            let Some(connection) = self.connections.get_mut(at) else { return };
            match connection.poll() {
                Ok(LinkOutput::Timeout(next_at)) => {
                    connection.next_at = next_at;
                    return;
                }
                Ok(LinkOutput::Transmit { from, to, bytes }) => {
                    self.transmits.push(Transmit { to, from: Some(from.ip()), bytes });
                }
                Ok(LinkOutput::Open) => {
                    let peer = connection.peer;
                    (connection.is_open, connection.is_new) = (true, true);
                    self.has_news = true;
                    let is_second =
                        self.open().filter(|connection| connection.peer == peer).count() > 1;
                    if is_second {
                        return self.leave(now, membership, at, None);
                    }
                }
                Ok(LinkOutput::Message(message)) => {
                    let event = connection.message(&message);
                    if let Some(event) = event {
                        self.heard(now, membership, at, event);
                    }
                }
                Ok(LinkOutput::Drained) => {}
                Ok(LinkOutput::Closed) => return self.leave(now, membership, at, None),
                Err(error) => return self.leave(now, membership, at, Some(&error.to_string())),
            }
        }
    }

    fn heard(&mut self, now: Instant, membership: &Membership, at: usize, event: Event) {
        match event {
            Event::Announced | Event::Progress => self.has_news = true,
            Event::NotAsked => {
                if let Some(connection) = self.connections.get(at) {
                    membership.cancel_upload(now, connection.id);
                }
            }
            Event::Requested { number, request, from_byte } => {
                self.asked(now, membership, at, (number, request, from_byte));
            }
            Event::Broken(why) => self.leave(now, membership, at, Some(&why)),
        }
    }

    /// A peer asks for a segment.
    fn asked(
        &mut self,
        now: Instant,
        membership: &Membership,
        at: usize,
        (number, request, from_byte): (u64, u64, u64),
    ) {
        let bytes = membership.bytes_of(number).filter(|_| self.options.shares);
        let Some(connection) = self.connections.get_mut(at) else { return };
        connection.stop_upload();
        membership.cancel_upload(now, connection.id);
        let from = usize::try_from(from_byte).unwrap_or(usize::MAX);
        let result = match bytes.filter(|bytes| from < bytes.len().max(1)) {
            Some(bytes) => {
                let left = (bytes.len() - from) as u64;
                membership.begin_upload(now, connection.id, Upload { number, bytes: left });
                connection.upload(number, request, bytes, from)
            }
            None => connection.say(&PeerCommand::Absent { segment: number, request }),
        };
        if let Err(error) = result {
            self.leave(now, membership, at, Some(&error.to_string()));
        }
    }

    /// Sends more of the segment that a peer is sent, as far as the uplink has come.
    fn send_more(&mut self, now: Instant, membership: &Membership, at: usize) {
        let Some(connection) = self.connections.get_mut(at) else { return };
        let uploading = connection.uploading();
        let allowed = match uploading {
            Some(number) => match membership.upload_progress(now, connection.id, number) {
                Some(progress) if progress.is_whole => u64::MAX,
                Some(progress) => progress.bytes,
                None => 0,
            },
            None if connection.has_unsaid() => 0,
            None => return,
        };
        match connection.send_up_to(allowed) {
            Ok((sent, is_done)) => {
                self.counters.sent_bytes += sent;
                if uploading.is_some() && is_done {
                    membership.cancel_upload(now, connection.id);
                }
            }
            Err(error) => return self.leave(now, membership, at, Some(&error.to_string())),
        }
        self.advance(now, membership, at);
    }

    /// Tells the peers what this viewer has.
    fn say_holdings(
        &mut self,
        now: Instant,
        membership: &Membership,
        said: &Holdings,
        all: &Holdings,
    ) {
        let is_unsaid = std::mem::take(&mut self.is_unsaid);
        for at in (0..self.connections.len()).rev() {
            let Some(connection) =
                self.connections.get_mut(at).filter(|connection| connection.is_open)
            else {
                continue;
            };
            let is_new = std::mem::take(&mut connection.is_new);
            if !self.options.shares || !(is_new || is_unsaid) {
                continue;
            }
            let holdings = if is_new { all } else { said };
            let (loaded, loading) =
                (holdings.loaded.iter().collect(), holdings.loading.iter().copied().collect());
            match connection.say(&PeerCommand::Announcement { loaded, loading }) {
                Ok(()) => self.advance(now, membership, at),
                Err(error) => self.leave(now, membership, at, Some(&error.to_string())),
            }
        }
    }

    /// Leaves a peer.
    fn leave(&mut self, now: Instant, membership: &Membership, at: usize, why: Option<&str>) {
        let mut connection = self.connections.swap_remove(at);
        self.has_news = true;
        membership.cancel_upload(now, connection.id);
        if let Some(why) = why {
            self.problems.push(format!("disconnected from a peer: {why}"));
        }
        connection.link.close();
        self.transmit_rest(&mut connection);
    }

    fn transmit_rest(&mut self, connection: &mut Connection) {
        for _ in 0..POLLS_MAX {
            match connection.poll() {
                Ok(LinkOutput::Transmit { from, to, bytes }) => {
                    self.transmits.push(Transmit { to, from: Some(from.ip()), bytes });
                }
                Ok(LinkOutput::Timeout(_)) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Leaves all peers.
    pub(super) fn close(&mut self, now: Instant, membership: &Membership) {
        self.offers.clear();
        for at in (0..self.connections.len()).rev() {
            self.leave(now, membership, at, None);
        }
    }

    /// What this viewer has, or loads, has changed: its peers are told at the next tick.
    pub(super) fn holdings_changed(&mut self) {
        self.is_unsaid = true;
    }

    pub(super) fn degree(&self) -> usize {
        self.open().count()
    }

    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Adds what the peers have of the segments `within` these.
    pub(super) fn add_to(&self, overview: &mut Holdings, within: &RangeInclusive<u64>) {
        self.open().for_each(|connection| connection.add_to(overview, within));
    }

    /// Peers that have segment `number` and send nothing else.
    pub(super) fn sources(&self, number: u64) -> Vec<PeerId> {
        let has =
            |connection: &&Connection| connection.has_loaded(number) && !connection.is_sending();
        self.connections.iter().filter(has).map(|connection| connection.id).collect()
    }

    fn at(&self, id: PeerId) -> Option<usize> {
        self.connections.iter().position(|connection| connection.id == id)
    }

    pub(super) fn owns(&self, id: PeerId) -> bool {
        self.at(id).is_some()
    }

    /// Asks a peer for segment `number`.
    pub(super) fn request(
        &mut self,
        now: Instant,
        membership: &Membership,
        from: PeerId,
        number: u64,
    ) {
        let Some(at) = self.at(from) else { return };
        let Some(connection) = self.connections.get_mut(at) else { return };
        match connection.request(number, &mut self.rng) {
            Ok(()) => self.advance(now, membership, at),
            Err(error) => self.leave(now, membership, at, Some(&error.to_string())),
        }
    }

    /// Bytes of segment `number` that `from` has sent; `None` if it does not send it any more.
    pub(super) fn received(&self, from: PeerId, number: u64) -> Option<u64> {
        self.connections.get(self.at(from)?)?.received(number)
    }

    /// Asks a peer to send no more; `is_late`: since nothing came in time.
    pub(super) fn cancel(
        &mut self,
        now: Instant,
        membership: &Membership,
        from: PeerId,
        is_late: bool,
    ) {
        let Some(at) = self.at(from) else { return };
        let Some(connection) = self.connections.get_mut(at) else { return };
        connection.late_count += u32::from(is_late);
        let is_too_late = connection.late_count >= LATE_MAX;
        match connection.cancel() {
            Ok(()) if is_too_late => self.leave(now, membership, at, Some("late three times")),
            Ok(()) => self.advance(now, membership, at),
            Err(error) => self.leave(now, membership, at, Some(&error.to_string())),
        }
    }

    /// Segments that have come whole and are not checked.
    pub(super) fn take_complete(&mut self) -> Vec<(PeerId, u64, Vec<u8>)> {
        let connections = self.connections.iter_mut();
        let complete: Vec<_> = connections
            .filter_map(|connection| {
                connection.take_complete().map(|(number, bytes)| (connection.id, number, bytes))
            })
            .collect();
        self.counters.received_bytes +=
            complete.iter().map(|(.., bytes)| bytes.len() as u64).sum::<u64>();
        complete
    }

    /// A peer sent what is not the segment.
    pub(super) fn refuse(
        &mut self,
        now: Instant,
        membership: &Membership,
        from: PeerId,
        why: &str,
    ) {
        if let Some(at) = self.at(from) {
            self.leave(now, membership, at, Some(why));
        }
    }

    pub(super) fn take_transmits(&mut self) -> Vec<Transmit> {
        std::mem::take(&mut self.transmits)
    }

    pub(super) fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    pub(super) fn take_counters(&mut self) -> ChannelCounters {
        std::mem::take(&mut self.counters)
    }

    pub(super) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let has_new = self.open().any(|connection| connection.is_new);
        let unsaid = (self.is_unsaid || has_new).then_some(now);
        let waits =
            |connection: &Connection| connection.uploading().is_some() || connection.has_unsaid();
        let uploads = self.connections.iter().any(waits);
        let uploads = uploads.then(|| now + UPLOAD_EVERY);
        let links = self.connections.iter().map(|connection| {
            let expires = connection.began_at + CONNECT_TIMEOUT;
            if connection.is_open { connection.next_at } else { connection.next_at.min(expires) }
        });
        links.chain(unsaid).chain(uploads).min()
    }
}

#[cfg(test)]
mod tests;
