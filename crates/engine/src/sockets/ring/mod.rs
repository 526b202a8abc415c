//! Memory-mapped receive rings of an engine thread: they have the datagrams of all its playing participants.
//!
//! A socket stays open beside the ring. It holds its port, sends, and takes what the ring does not have: datagrams by another
//! interface or to another address, and those that arrived in fragments. See [`path`] for how one way becomes the other.

mod path;
use path::{Moment, ReceivePath, Step};

mod ports;
pub(crate) use ports::LocalPorts;

mod opened;
use opened::{OpenedRing, Opening, RingPlace, RingToOpen};

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use throng_net::Received;
use throng_net::packet_ring::{self, FrameKind, InRing, RingDatagram};
use throng_observation::run::{RECEIVE_RING_EVENT, RECEIVE_SOCKETS_EVENT};
use throng_protocol::participant::Channel;

use crate::clock::{ClockPair, Clocks};
use crate::config::{EngineError, Receive};
use crate::preflight;
use crate::sockets::udp::RingUse;

/// Bytes a second of a participant for which a ring is sized at first; it grows with what arrives.
const BYTES_PER_PARTICIPANT: usize = 160_000;
/// Least and most memory of a ring.
const RING_BYTES_MIN: usize = 40 << 20;
const RING_BYTES_MAX: usize = 1 << 30;

/// What a ring is made for.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveConfig {
    pub(crate) receive: Receive,
    pub(crate) ports: LocalPorts,
    /// Participants of the thread that are known before the run.
    pub(crate) planned: usize,
    /// Memory of a ring in place of that by the number of participants; for tests of rings that are too small.
    pub(crate) ring_bytes: Option<usize>,
}

/// Number of a socket in [`ReceiveRings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingEntry(u32);

/// Which datagrams of a socket may be in a ring.
struct Entry {
    slot: u32,
    channel: Channel,
    port: u16,
    ring: usize,
    in_ring: InRing,
    path: ReceivePath,
    /// Its datagrams of this pass: first and last in [`ReceiveRings::arrived`].
    arrived: Option<(u32, u32)>,
}

/// A datagram of this pass.
#[derive(Clone, Copy)]
struct Arrived {
    ring: usize,
    place: RingPlace,
    index: u16,
    next: u32,
}

/// After the last of a socket's datagrams.
const LAST: u32 = u32::MAX;

/// What to do with a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketStep {
    /// Nothing now.
    Wait,
    /// It leaves to the ring what the ring has: [`packet_ring::leave_to_ring`].
    LeaveToRing(InRing),
    /// It takes all: [`packet_ring::take_all`].
    TakeAll,
    /// What it held back is read.
    Read,
    /// The same, and it is no longer known here.
    Forget,
}

/// A ring for a socket, and what it has of it; or it is being opened.
enum Found {
    Ring(usize, InRing),
    Opening,
}

/// Something to tell of the way in which datagrams come: an event's kind and its sentence.
pub(crate) type RingNews = (&'static str, String);

/// The rings of a thread, and the sockets whose datagrams they have.
pub(crate) struct ReceiveRings {
    config: ReceiveConfig,
    /// By number; `None` in the place of one that ended.
    rings: Vec<Option<OpenedRing>>,
    /// One that is being opened.
    opening: Option<Opening>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Entry + 1 by port, counted from the start of the range.
    by_port: Box<[u32]>,
    arrived: Vec<Arrived>,
    /// Entries with datagrams in this pass.
    touched: Vec<u32>,
    /// Entries whose path changes.
    changing: Vec<u32>,
    /// The entry that was checked last.
    checked: u32,
    own_addresses: Vec<IpAddr>,
    news: Vec<RingNews>,
    /// Why no ring is used any more in this run.
    given_up: bool,
    drops: u64,
    delivered: u64,
    /// When rings were read last.
    collected: ClockPair,
}

impl ReceiveRings {
    pub(crate) fn new(config: ReceiveConfig) -> Self {
        let given_up = config.receive == Receive::Sockets;
        let by_port = vec![0; if given_up { 0 } else { config.ports.range().len() }].into();
        let (rings, entries, free, arrived) = Default::default();
        let (touched, changing, own_addresses, news) = Default::default();
        let (checked, drops, delivered) = (0, 0, 0);
        Self {
            config,
            rings,
            opening: None,
            entries,
            free,
            by_port,
            arrived,
            touched,
            changing,
            checked,
            own_addresses,
            news,
            given_up,
            drops,
            delivered,
            collected: Clocks::new().read(),
        }
    }

    /// Whether there is a ring.
    pub(crate) fn is_used(&self) -> bool {
        self.rings.iter().any(Option::is_some)
    }

    /// The ports for new sockets; `None` where the kernel's choice will do.
    pub(crate) fn ports(&mut self) -> Option<&mut LocalPorts> {
        (!self.given_up).then_some(&mut self.config.ports)
    }

    /// The place of a port of the thread, while rings are used.
    fn place_of(&self, port: u16) -> Option<usize> {
        let range = self.config.ports.range();
        range.contains(&port).then(|| usize::from(port - range.start()))
    }

    /// A socket that plays, and got a datagram from `source` at `local`: from now on its datagrams are looked for in a ring, if
    /// there is one for it.
    pub(crate) fn enter(
        &mut self,
        (slot, channel): (u32, Channel),
        local: SocketAddr,
        source: IpAddr,
        clocks: ClockPair,
    ) -> RingUse {
        self.try_enter((slot, channel), local, source, clocks).unwrap_or(RingUse::Never)
    }

    fn try_enter(
        &mut self,
        (slot, channel): (u32, Channel),
        local: SocketAddr,
        source: IpAddr,
        clocks: ClockPair,
    ) -> Option<RingUse> {
        let at = self.place_of(local.port()).filter(|at| self.by_port.get(*at) == Some(&0))?;
        if self.given_up {
            return None;
        }
        let found = self.ring_for(local.ip(), source);
        if self.given_up {
            return None;
        }
        let (ring, in_ring) = match found? {
            Found::Ring(ring, in_ring) => (ring, in_ring),
            Found::Opening => return Some(RingUse::Possible),
        };
        let path = ReceivePath::new(source, moment(clocks, Duration::ZERO));
        let entry = Entry { slot, channel, port: local.port(), ring, in_ring, path, arrived: None };
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        *self.entries.get_mut(id as usize)? = Some(entry);
        *self.by_port.get_mut(at)? = id + 1;
        self.changing.push(id);
        Some(RingUse::Entered(RingEntry(id)))
    }

    /// The ring of the interface by which datagrams come from `source` to `local`; it is being opened if there is none yet.
    fn ring_for(&mut self, local: IpAddr, source: IpAddr) -> Option<Found> {
        if let Some((_, opening)) = &mut self.opening {
            if !opening.is_finished() {
                return Some(Found::Opening);
            }
            self.opened();
        }
        if self.own_addresses.is_empty() {
            self.own_addresses = preflight::own_addresses();
        }
        // What this host sends to itself comes by loopback, whatever its address.
        let is_own = source.is_loopback() || self.own_addresses.binary_search(&source).is_ok();
        for (at, ring) in self.rings.iter_mut().enumerate() {
            if let Some(ring) = ring
                && ring.is_for(local, is_own)
            {
                return Some(Found::Ring(at, ring.in_ring(local)));
            }
        }
        let bytes = self.config.ring_bytes.unwrap_or_else(|| {
            (self.config.planned * BYTES_PER_PARTICIPANT).clamp(RING_BYTES_MIN, RING_BYTES_MAX / 4)
        });
        // An address that is on no interface has no ring.
        let opening = RingToOpen::at((local, is_own), self.config.ports.range(), bytes).ok()?;
        self.opening = opening.spawn();
        self.opening.is_some().then_some(Found::Opening)
    }

    /// A ring was opened, or could not be.
    fn opened(&mut self) {
        let Some((wanted, opening)) = self.opening.take() else { return };
        match wanted.opened(opening.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))) {
            Ok(ring) => {
                self.news.push((RECEIVE_RING_EVENT, ring.sentence()));
                match self.rings.iter_mut().find(|place| place.is_none()) {
                    Some(place) => *place = Some(ring),
                    None => self.rings.push(Some(ring)),
                }
            }
            Err(why) => self.give_up(&why),
        }
    }

    /// Uses no ring any more: all sockets take their datagrams themselves.
    fn give_up(&mut self, why: &str) {
        if std::mem::replace(&mut self.given_up, true) {
            return;
        }
        self.news.push((RECEIVE_SOCKETS_EVENT, format!("datagrams come by sockets: {why}")));
        self.leave_all(|_| true);
    }

    /// The kernel refused a filter.
    pub(crate) fn cannot_filter(&mut self, error: &io::Error) {
        self.give_up(&format!("the kernel refused a socket filter ({error})"));
    }

    fn leave_all(&mut self, which: impl Fn(&Entry) -> bool) {
        for (id, entry) in self.entries.iter_mut().enumerate() {
            if let Some(entry) = entry.as_mut().filter(|entry| which(entry)) {
                entry.path.give_up();
                change(&mut self.changing, id as u32);
            }
        }
    }

    /// Whether a datagram that the socket got is delivered, or the ring's own is.
    pub(crate) fn by_socket(&mut self, id: RingEntry, datagram: &Received<'_>) -> bool {
        let Self { entries, rings, changing, news, .. } = self;
        let Some(Some(entry)) = entries.get_mut(id.0 as usize) else { return true };
        let Some(arrived) = datagram.arrived_unix else { return true };
        // What goes to another address of a socket on several is in no ring, such as checks of other candidate pairs.
        if datagram.local.is_some_and(|local| local != entry.in_ring.local) {
            return true;
        }
        if entry.in_ring.has(datagram.bytes.len()) {
            return entry.path.by_socket(arrived, datagram.bytes.len(), datagram.source);
        }
        // It would overtake those that come by the ring.
        if entry.path.is_peer(datagram.source.ip()) {
            entry.path.give_up();
            change(changing, id.0);
            let ring = rings.get_mut(entry.ring).and_then(Option::as_mut);
            news.extend(ring.and_then(OpenedRing::first_fragment));
        }
        true
    }

    /// Whether a socket is not to be read now: its datagrams come after those of the ring.
    pub(crate) fn holds(&self, entry: RingEntry) -> bool {
        let entry = self.entries.get(entry.0 as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| entry.path.holds_socket())
    }

    /// The socket dropped datagrams for lack of room.
    pub(crate) fn socket_dropped(&mut self, entry: RingEntry) {
        if let Some(entry) = self.entry(entry.0) {
            entry.path.dropped();
        }
    }

    /// Whether the kernel's count of the socket's drops counts datagrams that are lost; what a socket leaves to the ring counts there,
    /// too.
    pub(crate) fn counts_drops(&mut self, entry: RingEntry) -> bool {
        self.entry(entry.0).is_some_and(|entry| !entry.path.is_left_to_ring())
    }

    fn entry(&mut self, id: u32) -> Option<&mut Entry> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    /// A socket was closed, or has left.
    pub(crate) fn forget(&mut self, entry: RingEntry) {
        let Some(gone) = self.entries.get_mut(entry.0 as usize).and_then(Option::take) else { return };
        if let Some(port) = self.place_of(gone.port).and_then(|at| self.by_port.get_mut(at)) {
            *port = 0;
        }
        self.changing.retain(|id| *id != entry.0);
        self.free.push(entry.0);
    }

    /// Takes what has arrived in all rings; `each` gets slot and channel of the sockets with datagrams.
    pub(crate) fn collect(&mut self, clocks: ClockPair, groups: &mut Vec<(u32, Channel, RingEntry)>) {
        self.collected = clocks;
        let Self {
            rings, entries, by_port, arrived, touched, changing, config, drops, delivered, news, ..
        } = self;
        let start = *config.ports.range().start();
        for (ring, opened) in rings.iter_mut().enumerate() {
            let Some(opened) = opened else { continue };
            let mut has_fragments = false;
            opened.collect(clocks.unix(), |place, frame| {
                let at = usize::from(frame.local.port().wrapping_sub(start));
                let id = by_port.get(at).copied().unwrap_or(0).wrapping_sub(1);
                let Some(Some(entry)) = entries.get_mut(id as usize) else { return };
                if entry.ring != ring || entry.in_ring.local != frame.local.ip() {
                    return;
                }
                match frame.kind {
                    FrameKind::Datagrams { .. } => {}
                    FrameKind::Fragment => {
                        // The socket has it as a whole, but not while it leaves to the ring what is so short.
                        if entry.in_ring.has(frame.length()) && entry.path.is_peer(frame.source.ip()) {
                            has_fragments = true;
                            *drops += u64::from(entry.path.is_by_ring(frame.arrived_unix));
                            entry.path.give_up();
                            change(changing, id);
                        }
                        return;
                    }
                    FrameKind::TooLong => {
                        *drops += u64::from(entry.path.needs_ring());
                        return;
                    }
                    FrameKind::Damaged => return,
                }
                for index in 0..frame.datagrams() {
                    let length = frame.length_of(index);
                    if !entry.in_ring.has(length) {
                        continue;
                    }
                    if !entry.path.by_ring(frame.arrived_unix, length, frame.source) {
                        continue;
                    }
                    *delivered += 1;
                    let new = arrived.len() as u32;
                    arrived.push(Arrived { ring, place, index, next: LAST });
                    match &mut entry.arrived {
                        Some((_, last)) => {
                            if let Some(before) = arrived.get_mut(*last as usize) {
                                before.next = new;
                            }
                            *last = new;
                        }
                        none => {
                            *none = Some((new, new));
                            touched.push(id);
                        }
                    }
                }
            });
            if has_fragments {
                news.extend(opened.first_fragment());
            }
        }
        groups.extend(touched.drain(..).filter_map(|id| {
            let entry = entries.get(id as usize)?.as_ref()?;
            Some((entry.slot, entry.channel, RingEntry(id)))
        }));
    }

    /// How long ago that was until which all datagrams of a socket are known that arrived.
    pub(crate) fn lag(&self, entry: RingEntry, now: Instant) -> Duration {
        let entry = self.entries.get(entry.0 as usize).and_then(Option::as_ref);
        let ring = entry
            .filter(|entry| !entry.path.is_proving())
            .and_then(|entry| self.rings.get(entry.ring)?.as_ref());
        ring.map_or(Duration::ZERO, |ring| {
            let lag = self.collected.unix().saturating_sub(ring.heard_until());
            lag + now.saturating_duration_since(self.collected.now)
        })
    }

    /// The first datagram of this pass for a socket; each has the next.
    pub(crate) fn first(&mut self, entry: RingEntry) -> Option<u32> {
        self.entry(entry.0)?.arrived.take().map(|(first, _)| first)
    }

    /// A datagram of this pass, and the number of the next one of its socket.
    pub(crate) fn datagram(&mut self, number: u32) -> Option<(RingDatagram<'_>, Option<u32>)> {
        let arrived = *self.arrived.get(number as usize)?;
        let next = (arrived.next != LAST).then_some(arrived.next);
        Some((self.rings.get_mut(arrived.ring)?.as_mut()?.datagram(arrived.place, arrived.index)?, next))
    }

    /// Gives the memory of this pass back to the kernel. `groups` are those of [`Self::collect`].
    pub(crate) fn release(&mut self, groups: &[(u32, Channel, RingEntry)]) {
        // A socket whose participant did not take its datagrams must not look for them in the next pass.
        for (.., entry) in groups {
            self.first(*entry);
        }
        self.arrived.clear();
        self.rings.iter_mut().flatten().for_each(OpenedRing::release);
    }

    /// The sockets for which something is due.
    pub(crate) fn due(&mut self, now: Instant, due: &mut Vec<(u32, Channel, RingEntry)>) {
        let entries = &self.entries;
        let entry = |id: &u32| entries.get(*id as usize).and_then(Option::as_ref);
        due.extend(self.changing.iter().filter_map(|id| {
            let entry = entry(id).filter(|entry| entry.path.is_due(now))?;
            Some((entry.slot, entry.channel, RingEntry(*id)))
        }));
    }

    /// Goes on with the path of a socket.
    pub(crate) fn step(&mut self, id: RingEntry, clocks: ClockPair) -> SocketStep {
        let Self { entries, rings, .. } = self;
        let Some(Some(entry)) = entries.get_mut(id.0 as usize) else { return SocketStep::Wait };
        let heard =
            rings.get(entry.ring).and_then(Option::as_ref).map_or(clocks.unix(), OpenedRing::heard_until);
        let (step, in_ring, ring) = (entry.path.step(moment(clocks, heard)), entry.in_ring, entry.ring);
        if !entry.path.is_changing() {
            self.changing.retain(|changing| *changing != id.0);
        }
        match step {
            Step::Wait => SocketStep::Wait,
            Step::LeaveToRing => SocketStep::LeaveToRing(in_ring),
            Step::TakeAll => SocketStep::TakeAll,
            Step::Read => SocketStep::Read,
            Step::Forget => {
                self.forget(id);
                SocketStep::Forget
            }
            Step::Differs { ring: by_ring, socket } => {
                self.differs((id, ring), by_ring, socket);
                SocketStep::Wait
            }
        }
    }

    /// Ring and socket do not have the same. What the socket lacks would not have reached any; what the ring lacks costs the socket
    /// that ring, and no more.
    fn differs(&mut self, (id, ring): (RingEntry, usize), by_ring: u32, socket: u32) {
        let Some(opened) = self.rings.get_mut(ring).and_then(Option::as_mut) else { return };
        let name = opened.name();
        if by_ring > socket {
            let why = format!(
                "of {by_ring} datagrams that arrived at {name} {socket} reached their socket; a firewall rule or the reverse path \
                 filter (net.ipv4.conf.*.rp_filter) drops the others"
            );
            return self.give_up(&why);
        }
        let why = format!(
            "of {socket} datagrams of a socket {by_ring} were in the ring of {name}; the others come another way, or the kernel does \
             not write them into a ring. It is used for other sockets"
        );
        if opened.is_first_difference() {
            self.news.push((RECEIVE_SOCKETS_EVENT, why));
        }
        if let Some(entry) = self.entry(id.0) {
            entry.path.give_up();
            change(&mut self.changing, id.0);
        }
    }

    /// Once a second: drops, errors and growth of the rings, and a check of one socket. Returns the datagrams that were
    /// dropped and delivered since the last call.
    pub(crate) fn finish_second(&mut self, clocks: ClockPair) -> (u64, u64) {
        for at in 0..self.rings.len() {
            let Some(Some(ring)) = self.rings.get_mut(at) else { continue };
            let mut users = self.entries.iter_mut().flatten().filter(|entry| entry.ring == at).peekable();
            if users.peek().is_none() && (self.given_up || !ring.is_open()) {
                // Its memory is of use to nobody.
                self.rings.get_mut(at).into_iter().for_each(|ring| *ring = None);
                continue;
            }
            match ring.finish_second(clocks.unix()) {
                Ok(0) => {}
                Ok(dropped) => {
                    let mut is_needed = false;
                    for entry in users {
                        is_needed |= entry.path.needs_ring();
                        entry.path.dropped();
                    }
                    self.drops += if is_needed { u64::from(dropped) } else { 0 };
                }
                Err(why) => {
                    let name = ring.name().to_owned();
                    self.news
                        .push((RECEIVE_SOCKETS_EVENT, format!("datagrams by {name} come by sockets: {why}")));
                    self.leave_all(|entry| entry.ring == at);
                }
            }
        }
        if self.given_up {
            self.opening = None;
        } else {
            self.grow(clocks.unix());
            self.check_next(clocks.now);
        }
        (std::mem::take(&mut self.drops), std::mem::take(&mut self.delivered))
    }

    /// Memory of the rings, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.rings.iter().flatten().map(|ring| ring.bytes() as u64).sum()
    }

    /// Makes room for a second of what arrives.
    fn grow(&mut self, now: Duration) {
        if self.config.ring_bytes.is_some() {
            return;
        }
        for ring in self.rings.iter_mut().flatten() {
            if let Some(news) = ring.grow(self.config.ports.range(), RING_BYTES_MAX, now) {
                self.news.push(news);
            }
        }
    }

    fn check_next(&mut self, now: Instant) {
        let count = self.entries.len() as u32;
        let is_settled = |id: &u32| {
            self.entries
                .get(*id as usize)
                .and_then(Option::as_ref)
                .is_some_and(|entry| entry.path.is_settled())
        };
        let next = (1..=count).map(|ahead| (self.checked + ahead) % count.max(1)).find(is_settled);
        if let Some(id) = next {
            self.checked = id;
            if let Some(entry) = self.entry(id) {
                entry.path.check(now);
                change(&mut self.changing, id);
            }
        }
    }

    /// What is to be told since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<RingNews> {
        std::mem::take(&mut self.news)
    }
}

/// Whether this process may open a ring at all.
///
/// # Errors
/// [`EngineError::Receive`] if not.
pub(crate) fn may_open_ring() -> Result<(), EngineError> {
    let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
    // A port of its own, and one block: nothing is to come.
    let ring = RingToOpen::at((loopback, true), &(1..=1), 1).and_then(RingToOpen::open);
    ring.map(drop).map_err(EngineError::Receive)
}

/// The moment of a reading of both clocks.
fn moment(clocks: ClockPair, heard: Duration) -> Moment {
    Moment { now: clocks.now, unix: clocks.unix(), heard }
}

/// Notes that entry `id` changes.
fn change(changing: &mut Vec<u32>, id: u32) {
    if !changing.contains(&id) {
        changing.push(id);
    }
}

/// Changes which datagrams a socket takes.
pub(crate) fn apply(step: SocketStep, socket: BorrowedFd<'_>) -> io::Result<()> {
    match step {
        SocketStep::Wait | SocketStep::Read => Ok(()),
        SocketStep::LeaveToRing(ring) => packet_ring::leave_to_ring(socket, &ring),
        // Nothing can be detached where nothing was attached.
        SocketStep::TakeAll | SocketStep::Forget => packet_ring::take_all(socket).or(Ok(())),
    }
}
