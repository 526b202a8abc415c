//! By which way the datagrams of one socket come to its participant: by the socket, or by the ring.
//! Kernel arrival times decide: ring and socket have the same for the same datagram, so that each
//! is delivered once, also while the way changes.
//!
//! Before a ring is used both ways are compared for a while, and again now and then: a firewall
//! rule or the reverse path filter may drop what is in the ring, and the ring lacks what comes by
//! another interface. While they are compared the socket delivers, as it would without a ring.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// How long ring and socket are compared: with audio and video some 170 datagrams, of which a rule
/// that drops 1 % drops one with a chance of four in five.
const COMPARED: Duration = Duration::from_secs(1);

/// From the begin of a comparison until what arrives counts in it, and from its end until it is
/// judged: the block timeout of the ring, the time until the event loop takes it, and as much
/// again.
const SETTLING: Duration = Duration::from_millis(40);

/// Fewest datagrams that make a comparison count: less than an audio track has.
const COMPARED_MIN: u32 = 20;

/// How late a datagram may be read: on a host whose CPUs are full it waits for the kernel to hand
/// it to ring and socket, and for this thread. A difference counts if it lasts longer, and a way
/// that is left is listened to for so long.
const LATE: Duration = Duration::from_millis(250);

/// What the socket gets so long after the ring was to have it shows that it is not left to the
/// ring.
const LEFT_WITHIN: Duration = Duration::from_millis(100);

/// Comparisons in a row with a difference that disprove the ring: one may be caused by a wall clock
/// that is set.
const DIFFERENCES_MAX: u8 = 2;

/// Comparisons in a row in which the ring dropped datagrams and lacks some.
const DROPPING_MAX: u8 = 3;

/// A comparison without enough datagrams is repeated after this.
const AGAIN: Duration = Duration::from_secs(2);

/// A moment on both clocks: steps are due by the monotonic one, datagrams have arrived by the wall
/// clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Instant,
    pub(super) unix: Duration,
    /// All that arrived until then has come by the ring.
    pub(super) heard: Duration,
}

/// What is whose while the ring is left.
#[derive(Clone, Copy, Debug)]
struct Parting {
    /// What arrived from here on came by the ring,
    ring_from: Duration,
    /// and until here.
    until: Duration,
    /// What the socket has from before this moment only the socket had.
    rest_before: Duration,
}

impl Parting {
    fn is_of_ring(self, arrived_unix: Duration) -> bool {
        (self.ring_from..self.until).contains(&arrived_unix)
    }

    fn is_of_socket(self, arrived_unix: Duration) -> bool {
        // Not what only seems older because the wall clock was set back.
        let is_rest = arrived_unix < self.rest_before && arrived_unix + LATE >= self.rest_before;
        arrived_unix >= self.until || is_rest
    }
}

/// Datagrams of one way within a time, in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    count: u32,
    sum: u64,
}

impl Tally {
    fn add(&mut self, arrived_unix: Duration, length: usize, port: u16) {
        let nanos = arrived_unix.as_nanos() as u64;
        // No more of it is read from a socket.
        let length = length.min(throng_net::DATAGRAM_BYTES_MAX);
        let mixed = (nanos ^ (length as u64) << 44 ^ u64::from(port) << 28)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.count += 1;
        self.sum = self.sum.wrapping_add(mixed ^ mixed >> 32);
    }
}

/// A comparison of both ways.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    from: Duration,
    until: Duration,
    ring: Tally,
    socket: Tally,
    /// Datagrams were dropped meanwhile, so that a difference means nothing.
    has_drops: bool,
    /// It was judged before, and may have been early.
    is_judged: bool,
}

impl Comparison {
    fn starting(unix: Duration) -> Self {
        let from = unix + SETTLING / 4;
        let (ring, socket) = Default::default();
        Self { from, until: from + COMPARED, ring, socket, has_drops: false, is_judged: false }
    }

    fn covers(&self, arrived_unix: Duration) -> bool {
        (self.from..self.until).contains(&arrived_unix)
    }
}

/// The state of a socket beside a ring. But for [`State::Emptying`] and [`State::Settled`] the
/// socket gets all.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The socket delivers; both are compared.
    Proving,
    /// What arrived from here on is delivered by the ring, what arrived before by the socket.
    Changing { from: Duration },
    /// The ring delivers what arrived from `ring_from` on. The socket leaves to it what it has,
    /// since this moment, and what it still holds came by the ring as well.
    Emptying { since: Duration, ring_from: Duration },
    /// The ring delivers what it has, the socket the rest.
    Settled,
    /// The ring delivers; the socket gets all again, and keeps it.
    Opening { ring_from: Duration, rest_before: Duration },
    /// The socket keeps what it gets until the ring has delivered its part: its datagrams come
    /// later.
    Holding(Parting),
    /// The socket delivers its part. What is late of the ring's comes by the ring.
    Leaving(Parting),
}

/// What is to be done with the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Wait,
    /// It leaves to the ring what the ring has.
    LeaveToRing,
    /// It takes all.
    TakeAll,
    /// What it kept is read.
    Read,
    /// It has nothing to do with the ring any more.
    Forget,
    /// It is not to be used with this ring: they differ, by the ring's count and the socket's.
    Differs { ring: u32, socket: u32 },
}

/// The way of one socket's datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivePath {
    state: State,
    /// Who sends the media: what others send is not compared, since the kernel may refuse it for
    /// reasons of its own.
    peer: IpAddr,
    comparison: Comparison,
    differences: u8,
    dropping: u8,
    /// It is to be left at the next step.
    gives_up: bool,
    /// It is to be checked at the next step.
    checks: bool,
    /// When [`Self::step`] has something to do.
    due: Option<Instant>,
    /// It has at once.
    is_urgent: bool,
}

impl ReceivePath {
    /// The path of a socket that plays what `peer` sends.
    pub(super) fn new(peer: IpAddr, at: Moment) -> Self {
        let mut path = Self {
            state: State::Proving,
            peer,
            comparison: Comparison::starting(at.unix),
            differences: 0,
            dropping: 0,
            gives_up: false,
            checks: false,
            due: None,
            is_urgent: false,
        };
        path.compare(at);
        path
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.is_urgent || self.due.is_some_and(|due| due <= now)
    }

    /// Whether it changes by and by: it must be asked again.
    pub(super) fn is_changing(&self) -> bool {
        self.is_urgent || self.due.is_some()
    }

    /// Whether the media comes from there.
    pub(super) fn is_peer(&self, source: IpAddr) -> bool {
        source == self.peer
    }

    /// Whether the ring delivers, and nothing is in progress.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, State::Settled)
    }

    /// Whether datagrams come by the socket alone.
    pub(super) fn is_proving(&self) -> bool {
        matches!(self.state, State::Proving)
    }

    /// Whether what the ring drops is lost.
    pub(super) fn needs_ring(&self) -> bool {
        !matches!(self.state, State::Proving | State::Leaving(_))
    }

    /// Whether the kernel's count of the socket's drops, as of a datagram that arrived then, is of
    /// datagrams that are lost, and not of those that it left to the ring.
    pub(super) fn counts_drops(&self, arrived_unix: Option<Duration>) -> bool {
        match self.state {
            State::Emptying { .. } | State::Settled => false,
            State::Leaving(parting) => {
                arrived_unix.is_none_or(|arrived| arrived >= parting.rest_before)
            }
            State::Proving | State::Changing { .. } | State::Opening { .. } | State::Holding(_) => {
                true
            }
        }
    }

    /// Whether the socket keeps what it gets: it must not be read.
    pub(super) fn holds_socket(&self) -> bool {
        matches!(self.state, State::Opening { .. } | State::Holding(_))
    }

    /// Notes a datagram of the ring; whether it is delivered.
    pub(super) fn by_ring(
        &mut self,
        arrived_unix: Duration,
        length: usize,
        source: SocketAddr,
    ) -> bool {
        if self.is_proving() && self.is_peer(source.ip()) && self.comparison.covers(arrived_unix) {
            self.comparison.ring.add(arrived_unix, length, source.port());
        }
        self.is_by_ring(arrived_unix)
    }

    /// Whether the ring delivers what arrived then.
    pub(super) fn is_by_ring(&self, arrived_unix: Duration) -> bool {
        match self.state {
            State::Settled => true,
            State::Proving => false,
            State::Opening { ring_from, .. } | State::Emptying { ring_from, .. } => {
                arrived_unix >= ring_from
            }
            State::Changing { from } => arrived_unix >= from,
            State::Holding(parting) | State::Leaving(parting) => parting.is_of_ring(arrived_unix),
        }
    }

    /// Notes a datagram of the socket; whether it is delivered.
    pub(super) fn by_socket(
        &mut self,
        arrived_unix: Duration,
        length: usize,
        source: SocketAddr,
    ) -> bool {
        match self.state {
            // What the ring has, the filter keeps away.
            State::Settled => true,
            State::Proving => {
                if self.is_peer(source.ip()) && self.comparison.covers(arrived_unix) {
                    self.comparison.socket.add(arrived_unix, length, source.port());
                }
                true
            }
            State::Changing { from } => arrived_unix < from,
            // It is not read.
            State::Opening { .. } | State::Holding(_) => false,
            State::Emptying { since, .. } => {
                if self.is_peer(source.ip()) && arrived_unix > since + LEFT_WITHIN {
                    // The filter does not know the ring's datagrams, or the ring lacks this one.
                    self.give_up();
                }
                false
            }
            State::Leaving(parting) => parting.is_of_socket(arrived_unix),
        }
    }

    /// Datagrams were dropped on either way.
    pub(super) fn dropped(&mut self) {
        self.comparison.has_drops = true;
    }

    /// Has a settled path checked at the next step.
    pub(super) fn check(&mut self, now: Instant) {
        if self.is_settled() {
            self.checks = true;
            self.due = Some(now);
        }
    }

    /// Gives the ring up: at the next step, or as soon as the socket gets all again.
    pub(super) fn give_up(&mut self) {
        let goes_on = self.holds_socket() || matches!(self.state, State::Leaving(_));
        self.is_urgent |= !std::mem::replace(&mut self.gives_up, true) && !goes_on;
    }

    fn compare(&mut self, at: Moment) {
        self.state = State::Proving;
        self.comparison = Comparison::starting(at.unix);
        self.due = Some(at.now + SETTLING / 4 + COMPARED + SETTLING);
    }

    /// Goes on, when it is due.
    pub(super) fn step(&mut self, at: Moment) -> Step {
        self.is_urgent = false;
        match self.state {
            State::Proving if self.gives_up => self.forget(),
            State::Proving => self.judge(at),
            State::Changing { from } if self.gives_up => self.hold(from, from, at),
            State::Changing { from } => {
                // Where the wall clock was set back the socket has delivered all until now.
                let ring_from = if at.unix < from { at.unix } else { Duration::ZERO };
                self.state = State::Emptying { since: at.unix, ring_from };
                self.due = Some(at.now + LATE);
                Step::LeaveToRing
            }
            // What the socket still holds came by the ring as well.
            State::Emptying { .. } if self.gives_up => self.open(Duration::ZERO, at),
            State::Settled if self.gives_up || std::mem::take(&mut self.checks) => {
                self.open(at.unix, at)
            }
            State::Emptying { .. } | State::Settled => {
                self.state = State::Settled;
                self.due = None;
                Step::Wait
            }
            // From the pass before on the socket gets all.
            State::Opening { ring_from, rest_before } => self.hold(ring_from, rest_before, at),
            State::Holding(parting) if at.heard < parting.until && at.unix >= parting.until => {
                Step::Wait
            }
            State::Holding(parting) => {
                self.state = State::Leaving(parting);
                self.due = Some(at.now + LATE);
                Step::Read
            }
            State::Leaving(_) if self.gives_up => self.forget(),
            State::Leaving(_) => {
                self.compare(at);
                Step::Wait
            }
        }
    }

    /// The socket takes all; at the next step it surely does.
    fn open(&mut self, rest_before: Duration, at: Moment) -> Step {
        self.state = State::Opening { ring_from: Duration::ZERO, rest_before };
        self.due = Some(at.now);
        Step::TakeAll
    }

    fn hold(&mut self, ring_from: Duration, rest_before: Duration, at: Moment) -> Step {
        self.state = State::Holding(Parting { ring_from, until: at.unix, rest_before });
        self.due = Some(at.now);
        Step::Wait
    }

    fn forget(&mut self) -> Step {
        self.due = None;
        Step::Forget
    }

    fn judge(&mut self, at: Moment) -> Step {
        let Comparison { ring, socket, has_drops, .. } = self.comparison;
        let is_different = ring != socket;
        if is_different && !has_drops && !std::mem::replace(&mut self.comparison.is_judged, true) {
            self.due = Some(at.now + LATE);
            return Step::Wait;
        }
        let count =
            |so_far: u8, one_more: bool| if one_more { so_far.saturating_add(1) } else { 0 };
        self.differences = count(self.differences, is_different && !has_drops);
        self.dropping = count(self.dropping, has_drops && ring.count < socket.count);
        if self.differences >= DIFFERENCES_MAX || self.dropping >= DROPPING_MAX {
            return Step::Differs { ring: ring.count, socket: socket.count };
        }
        if is_different || has_drops {
            self.compare(at);
        } else if ring.count < COMPARED_MIN {
            // While nothing comes, either way will do.
            self.compare(Moment { now: at.now + AGAIN, unix: at.unix + AGAIN, ..at });
        } else {
            self.state = State::Changing { from: at.unix };
            self.due = Some(at.now + LATE);
        }
        Step::Wait
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
