//! By which way the datagrams of one socket come to its participant: by the socket, or by the ring. Kernel arrival times
//! decide: ring and socket have the same for the same datagram, so that each is delivered once, also while the way changes.
//!
//! Before a ring is used both ways are compared for a while, and again now and then: a firewall rule or the reverse path
//! filter may drop what is in the ring, and the ring lacks what comes by another interface.

use std::time::Duration;

/// How long ring and socket are compared: with audio and video some 170 datagrams, of which a rule that drops 1 % drops one with
/// a chance of four in five.
const COMPARED: Duration = Duration::from_secs(1);

/// From the change of a socket's filter until all that arrived before it has been read: the block timeout of the ring, the time until
/// the event loop takes it, and as much again.
const SETTLING: Duration = Duration::from_millis(40);

/// Fewest datagrams that make a comparison count: less than an audio track has.
const COMPARED_MIN: u32 = 20;

/// How long a difference may last before it counts: on a host whose CPUs are full a datagram waits for the kernel to hand it to ring
/// and socket.
const LATE: Duration = Duration::from_millis(250);

/// Comparisons in a row with a difference that disprove the ring: one may be caused by a wall clock that is set.
const DIFFERENCES_MAX: u8 = 2;

/// A comparison without enough datagrams is repeated after this.
const AGAIN: Duration = Duration::from_secs(2);

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
        let mixed =
            (nanos ^ (length as u64) << 44 ^ u64::from(port) << 28).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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
    fn starting(now: Duration) -> Self {
        let from = now + SETTLING / 4;
        let (ring, socket) = Default::default();
        Self { from, until: from + COMPARED, ring, socket, has_drops: false, is_judged: false }
    }

    fn covers(&self, arrived_unix: Duration) -> bool {
        (self.from..self.until).contains(&arrived_unix)
    }
}

/// The state of a socket beside a ring.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The socket delivers; both are compared.
    Proving,
    /// What arrived from here on is delivered by the ring, what arrived before by the socket, which still gets all.
    Changing { from: Duration },
    /// The same, and the socket leaves to the ring what the ring has.
    Emptying { from: Duration },
    /// The ring delivers what it has, the socket the rest.
    Settled,
    /// The ring delivers; the socket gets all for a comparison.
    Checking,
    /// What arrived from here on is delivered by the socket, which gets all.
    Leaving { until: Duration },
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
    /// It has nothing to do with the ring any more.
    Forget,
    /// It is not to be used with this ring: they differ, by the ring's count and the socket's.
    Differs { ring: u32, socket: u32 },
}

/// The way of one socket's datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivePath {
    state: State,
    comparison: Comparison,
    differences: u8,
    /// It is to be left at the next step.
    gives_up: bool,
    /// It is to be checked at the next step.
    checks: bool,
    /// When [`Self::step`] has something to do, by the wall clock.
    due: Option<Duration>,
}

impl ReceivePath {
    /// The path of a socket that plays: `now` by the wall clock.
    pub(super) fn new(now: Duration) -> Self {
        let comparison = Comparison::starting(now);
        let due = Some(comparison.until + SETTLING);
        Self { state: State::Proving, comparison, differences: 0, gives_up: false, checks: false, due }
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Whether it changes by and by: it must be asked again.
    pub(super) fn is_changing(&self) -> bool {
        self.due.is_some()
    }

    /// Whether the ring delivers, and nothing is in progress.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, State::Settled)
    }

    /// Whether the socket's filter was never changed.
    pub(super) fn is_proving(&self) -> bool {
        matches!(self.state, State::Proving)
    }

    /// Notes a datagram of the ring; whether it is delivered.
    pub(super) fn by_ring(&mut self, arrived_unix: Duration, length: usize, port: u16) -> bool {
        match self.state {
            State::Settled => true,
            State::Proving | State::Checking => {
                if self.comparison.covers(arrived_unix) {
                    self.comparison.ring.add(arrived_unix, length, port);
                }
                matches!(self.state, State::Checking)
            }
            State::Changing { from } | State::Emptying { from } => arrived_unix >= from,
            State::Leaving { until } => arrived_unix < until,
        }
    }

    /// Notes a datagram of the socket; whether it is delivered.
    pub(super) fn by_socket(&mut self, arrived_unix: Duration, length: usize, port: u16) -> bool {
        match self.state {
            // What the ring has, the filter keeps away.
            State::Settled => true,
            State::Proving | State::Checking => {
                if self.comparison.covers(arrived_unix) {
                    self.comparison.socket.add(arrived_unix, length, port);
                }
                matches!(self.state, State::Proving)
            }
            State::Changing { from } | State::Emptying { from } => arrived_unix < from,
            State::Leaving { until } => arrived_unix >= until,
        }
    }

    /// Datagrams were dropped on either way.
    pub(super) fn dropped(&mut self) {
        self.comparison.has_drops = true;
    }

    /// Has a settled path checked at the next step.
    pub(super) fn check(&mut self, now: Duration) {
        if self.is_settled() {
            self.checks = true;
            self.due = Some(now);
        }
    }

    /// Gives the ring up at the next step.
    pub(super) fn give_up(&mut self) {
        if !std::mem::replace(&mut self.gives_up, true) {
            self.due = Some(Duration::ZERO);
        }
    }

    fn compare(&mut self, state: State, now: Duration) {
        self.state = state;
        self.comparison = Comparison::starting(now);
        self.due = Some(self.comparison.until + SETTLING);
    }

    /// Goes on, when it is due.
    pub(super) fn step(&mut self, now: Duration) -> Step {
        if self.gives_up {
            return self.step_out(now);
        }
        match self.state {
            State::Proving | State::Checking => self.judge(now),
            State::Changing { from } => {
                self.state = State::Emptying { from };
                self.due = Some(now + SETTLING);
                Step::LeaveToRing
            }
            State::Settled if std::mem::take(&mut self.checks) => {
                self.compare(State::Checking, now);
                Step::TakeAll
            }
            State::Settled | State::Emptying { .. } | State::Leaving { .. } => {
                self.state = State::Settled;
                self.due = None;
                Step::Wait
            }
        }
    }

    fn step_out(&mut self, now: Duration) -> Step {
        if matches!(self.state, State::Proving | State::Leaving { .. }) {
            self.due = None;
            return Step::Forget;
        }
        let until = now + SETTLING / 2;
        self.state = State::Leaving { until };
        self.due = Some(until + SETTLING);
        Step::TakeAll
    }

    fn judge(&mut self, now: Duration) -> Step {
        let Comparison { ring, socket, has_drops, .. } = self.comparison;
        let is_proving = matches!(self.state, State::Proving);
        if ring != socket && !has_drops && !std::mem::replace(&mut self.comparison.is_judged, true) {
            self.due = Some(now + LATE);
            return Step::Wait;
        }
        if ring != socket && !has_drops {
            self.differences = self.differences.saturating_add(1);
            if self.differences >= DIFFERENCES_MAX {
                return Step::Differs { ring: ring.count, socket: socket.count };
            }
            self.compare(self.state, now);
            return Step::Wait;
        }
        if has_drops || ring.count < COMPARED_MIN {
            // While nothing comes, either way will do.
            let later = if has_drops { now } else { now + AGAIN };
            if is_proving || has_drops {
                self.compare(self.state, later);
                return Step::Wait;
            }
        }
        self.differences = 0;
        if is_proving {
            self.state = State::Changing { from: now };
            self.due = Some(now + SETTLING);
            return Step::Wait;
        }
        // All that the socket still has came by the ring as well.
        self.state = State::Emptying { from: Duration::ZERO };
        self.due = Some(now + SETTLING);
        Step::LeaveToRing
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
