//! The peers of a viewer in one swarm: those of the same process ([`Membership`]), and those over
//! data channels ([`Channels`]), where it has them. The loader asks both alike.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::timing::WholeSegment;

use super::channels::Channels;
use super::swarm::{Holdings, Known, Membership, PeerId, Sent};
use super::tracker::{Described, Id};

/// When more of a segment is looked for that comes over a data channel: its datagrams wake the
/// viewer before.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The peers.
pub(super) struct Neighbours {
    membership: Membership,
    channels: Option<Channels>,
    /// What it has the bytes of, and loads; and what of that it has announced last.
    holdings: Holdings,
    said: Holdings,
    /// Segments that came over data channels.
    arrived: Vec<Arrived>,
}

/// A segment that came whole over a data channel.
pub(super) struct Arrived {
    from: PeerId,
    pub(super) number: u64,
    pub(super) bytes: Arc<[u8]>,
    /// It was not judged yet.
    pub(super) is_new: bool,
    /// What is in it, once it is known to be the segment.
    whole: Option<WholeSegment>,
}

impl Neighbours {
    pub(super) fn new(membership: Membership, channels: Option<Channels>) -> Self {
        Self {
            membership,
            channels,
            holdings: Holdings::default(),
            said: Holdings::default(),
            arrived: Vec::new(),
        }
    }

    pub(super) fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(super) fn channels(&mut self) -> Option<&mut Channels> {
        self.channels.as_mut()
    }

    /// Peers of other processes can be reached from now on.
    pub(super) fn reach_out(&mut self, channels: Channels) {
        self.membership.has_channels();
        self.channels = Some(channels);
    }

    /// The tracker gives this viewer the offer of `peer`: the answer, which is one on paper for a
    /// viewer of this process without data channels.
    pub(super) fn answer(&mut self, now: Instant, peer: Id, offer: &str) -> Described {
        let is_model = |known: &Known| !known.has_channels;
        if self.membership.swarm().of_name(&peer).as_ref().is_some_and(is_model) {
            return Described::Invented;
        }
        let Some(channels) = &mut self.channels else { return Described::Invented };
        let id = self.membership.swarm().name_stranger();
        // To a peer that it has no room for nothing is promised.
        channels.answer(now, id, peer, offer).map_or(Described::Refused, Described::As)
    }

    /// `peer` has answered an offer.
    pub(super) fn answered(&mut self, now: Instant, peer: Id, (offer, answer): (&Id, &str)) {
        let id = self.membership.swarm().name_stranger();
        if let Some(channels) = &mut self.channels {
            channels.answered(now, id, offer, peer, answer);
        }
    }

    /// Peers that it is connected with.
    pub(super) fn degree(&self, now: Instant) -> usize {
        self.membership.degree(now) + self.channels.as_ref().map_or(0, Channels::degree)
    }

    /// Whether a peer has announced something since the last call, or is connected from now on.
    pub(super) fn take_news(&mut self) -> bool {
        self.membership.take_news() | self.channels.as_mut().is_some_and(Channels::take_news)
    }

    /// Tells the peers what it has, and what is being loaded from the server.
    pub(super) fn announce(&mut self, loading: &[u64]) {
        self.membership.announce(loading);
        self.holdings.loading = loading.iter().copied().collect();
        if self.channels.is_some() {
            // There is a limit to the bytes of all segments.
            self.holdings.loaded.keep_only(&self.membership.swarm().with_bytes());
        }
        self.said.clone_from(&self.holdings);
        self.channels.iter_mut().for_each(Channels::holdings_changed);
    }

    /// It has a segment, of which the peers learn with the next announcement. What others who have
    /// it know of it, which is the same.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        number: u64,
        segment: WholeSegment,
    ) -> WholeSegment {
        let segment = self.membership.keep(now, number, segment);
        self.holdings.loading.remove(&number);
        // Of what viewers of this process gave each other the bytes may be gone: that is not for
        // others.
        if !self.membership.swarm().lacks_bytes(number) {
            self.holdings.loaded.insert(number);
        }
        segment
    }

    /// It has no segment before this one any more, of which the peers learn with the next
    /// announcement; whether it had any.
    pub(super) fn forget_before(&mut self, number: u64) -> bool {
        self.holdings.loaded.forget_before(number);
        self.membership.forget_before(number)
    }

    /// What the peers have of the segments `within` these: what some of them have, and what some of
    /// them load.
    pub(super) fn overview(&self, now: Instant, within: &RangeInclusive<u64>) -> Holdings {
        let mut overview = self.membership.overview(now, within);
        if let Some(channels) = &self.channels {
            channels.add_to(&mut overview, within);
        }
        overview
    }

    /// Asks a peer for segment `number`: one that has it, and of which nothing else is received at
    /// the moment.
    pub(super) fn request(
        &mut self,
        now: Instant,
        number: u64,
        busy: &[PeerId],
        rng: &mut fastrand::Rng,
    ) -> Option<PeerId> {
        let mut sources = self.membership.sources(now, number, busy);
        if let Some(channels) = &self.channels {
            sources
                .extend(channels.sources(number).into_iter().filter(|from| !busy.contains(from)));
        }
        let from = *sources.get(rng.usize(..sources.len().max(1)))?;
        match self.channels.as_mut().filter(|channels| channels.owns(from)) {
            Some(channels) => channels.request(now, &self.membership, from, number),
            None => self.membership.request(now, from, number)?,
        }
        Some(from)
    }

    /// How far segment `number` has come, which `from` sends.
    pub(super) fn received(&mut self, now: Instant, from: PeerId, number: u64) -> Sent {
        let is_of = |arrived: &Arrived| arrived.from == from && arrived.number == number;
        if let Some(at) = self.arrived.iter().position(is_of) {
            let bytes = self.arrived.get(at).map_or(0, |arrived| arrived.bytes.len() as u64);
            let proven = self.arrived.get_mut(at).and_then(|arrived| arrived.whole.take());
            let Some(whole) = proven else { return Sent::Partly(bytes, now + LOOK_AGAIN) };
            self.membership.swarm().keep_bytes(number, self.arrived.swap_remove(at).bytes);
            return Sent::Whole(whole);
        }
        match self.channels.as_ref().filter(|channels| channels.owns(from)) {
            Some(channels) => match channels.received(from, number) {
                Some(bytes) => Sent::Partly(bytes, now + LOOK_AGAIN),
                None => Sent::Broken,
            },
            None => self.membership.received(now, from, number),
        }
    }

    /// Asks `from` to send no more; `is_late`: since nothing came in time.
    pub(super) fn cancel(&mut self, now: Instant, from: PeerId, is_late: bool) {
        self.arrived.retain(|arrived| arrived.from != from);
        match self.channels.as_mut().filter(|channels| channels.owns(from)) {
            Some(channels) => channels.cancel(now, &self.membership, from, is_late),
            None => self.membership.cancel(now, from, is_late),
        }
    }

    /// A datagram came.
    pub(super) fn datagram(
        &mut self,
        now: Instant,
        (source, local): (SocketAddr, Option<IpAddr>),
        bytes: &[u8],
    ) {
        if let Some(channels) = &mut self.channels {
            channels.datagram(now, &self.membership, (source, local), bytes);
        }
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        let Some(channels) = &mut self.channels else { return };
        channels.tick(now, &self.membership, &self.said, &self.holdings);
        let complete = channels.take_complete().into_iter();
        self.arrived.extend(complete.map(|(from, number, bytes)| {
            let bytes = Arc::from(bytes);
            Arrived { from, number, bytes, is_new: true, whole: None }
        }));
    }

    /// Judges what has come over data channels: `judge` says what is in a segment, nothing as long
    /// as its hash is not known, or why it is not the segment, whereupon the peer that sent it is
    /// left.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        judge: &mut dyn FnMut(&Arrived) -> Result<Option<WholeSegment>, String>,
    ) {
        let mut refused = Vec::new();
        self.arrived.retain_mut(|arrived| {
            if arrived.whole.is_some() {
                return true;
            }
            let judged = judge(arrived);
            arrived.is_new = false;
            match judged {
                Ok(whole) => arrived.whole = whole,
                Err(why) => {
                    refused.push((arrived.from, why));
                    return false;
                }
            }
            true
        });
        for (from, why) in refused {
            if let Some(channels) = &mut self.channels {
                channels.refuse(now, &self.membership, from, &why);
            }
        }
    }

    pub(super) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.channels.as_ref()?.next_timeout(now)
    }

    /// Leaves as a tab does that is closed: peers of this process are told nothing.
    pub(super) fn fall_silent(&mut self, now: Instant) {
        self.membership.fall_silent(now);
        self.leave(now);
    }

    /// Leaves all peers.
    pub(super) fn leave(&mut self, now: Instant) {
        if let Some(channels) = &mut self.channels {
            channels.close(now, &self.membership);
        }
    }
}
