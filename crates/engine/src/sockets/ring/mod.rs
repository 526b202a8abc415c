//! Memory-mapped receive rings of an engine thread: they have the datagrams of all its playing
//! participants.
//!
//! A socket stays open beside the ring. It holds its port, sends, and takes what the ring does not
//! have: datagrams by another interface or to another address, and those that arrived in fragments.
//! See [`path`] for how one way becomes the other.

mod delivery;
mod entering;
mod upkeep;

mod path;
use path::{Moment, ReceivePath};

mod ports;
pub(crate) use ports::LocalPorts;

mod opened;
use opened::{OpenedRing, Opening, RingToOpen};

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use throng_net::packet_ring::{self, InRing, Place};
use throng_observation::run::RECEIVE_SOCKETS_EVENT;
use throng_protocol::participant::Channel;

use crate::clock::{ClockPair, Clocks};
use crate::config::{EngineError, Receive};
use crate::memory_use::available_bytes;
use crate::sockets::silence::Silence;

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
    /// Threads of the run, which share the free memory.
    pub(crate) threads: usize,
    /// Memory of a ring in place of that by the number of participants; for tests of rings that are
    /// too small.
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
    silence: Silence,
    /// Its datagrams of this pass: first and last in [`ReceiveRings::arrived`].
    arrived: Option<(u32, u32)>,
}

/// A datagram of this pass.
#[derive(Clone, Copy)]
struct Arrived {
    ring: usize,
    place: Place,
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
    /// It takes all, and is no longer known here.
    Forget,
}

/// What happened in the rings of a thread since the second before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RingSecond {
    /// Datagrams that were delivered.
    pub(crate) delivered: u64,
    /// Datagrams that were dropped: by the kernel, for lack of room, or here, where their place was
    /// not good any more.
    pub(crate) dropped: u64,
    /// Datagrams that were dropped in bursts after silence, and the longest such silence.
    pub(crate) burst: u64,
    pub(crate) silent: Duration,
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
    second: RingSecond,
    /// When rings were read last.
    collected: ClockPair,
}

impl ReceiveRings {
    pub(crate) fn new(config: ReceiveConfig) -> Self {
        let given_up = config.receive == Receive::Sockets;
        let by_port = vec![0; if given_up { 0 } else { config.ports.range().len() }].into();
        let (rings, entries, free, arrived) = Default::default();
        let (touched, changing, own_addresses, news) = Default::default();
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
            checked: 0,
            own_addresses,
            news,
            given_up,
            second: RingSecond::default(),
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

    /// The memory that a ring of this thread may take, bytes: all threads together leave three
    /// quarters of what is free.
    fn memory_share(&self) -> usize {
        let bytes = |free: u64| usize::try_from(free).unwrap_or(usize::MAX);
        available_bytes("").map_or(usize::MAX, |free| bytes(free) / 4 / self.config.threads.max(1))
    }

    fn leave_all(&mut self, which: impl Fn(&Entry) -> bool) {
        for (id, entry) in self.entries.iter_mut().enumerate() {
            if let Some(entry) = entry.as_mut().filter(|entry| which(entry)) {
                entry.path.give_up();
                change(&mut self.changing, id as u32);
            }
        }
    }

    fn entry(&mut self, id: u32) -> Option<&mut Entry> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    /// A socket was closed, or has left.
    pub(crate) fn forget(&mut self, entry: RingEntry) {
        let Some(gone) = self.entries.get_mut(entry.0 as usize).and_then(Option::take) else {
            return;
        };
        if let Some(port) = self.place_of(gone.port).and_then(|at| self.by_port.get_mut(at)) {
            *port = 0;
        }
        self.changing.retain(|id| *id != entry.0);
        self.free.push(entry.0);
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
