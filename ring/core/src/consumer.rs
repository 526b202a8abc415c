//! The consumer's side: lanes of many producers, read fairly, with one descriptor to wait on.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll;

use crate::error::RingError;
use crate::event::Event;
use crate::frame::{Frame, FrameId, LaneId, Payload};
use crate::handshake::Invitation;
use crate::lane::{Lane, LaneFds};
use crate::options::RingOptions;
use crate::stats::LaneStats;
use crate::wake::{self, Sleep};

/// Bytes a lane may deliver in its turn (deficit round robin): frames of a megabyte and packets of
/// a kilobyte share fairly, and small ones are still delivered in batches.
const QUANTUM_BYTES: i64 = 64 * 1024;
/// Charged for a frame in addition to its bytes, so that empty ones are not free.
const FRAME_COST_BYTES: i64 = 64;
/// Attempts before sleeping: about a microsecond, less than the cost of going to sleep.
const SPINS: u32 = 50;
/// How often a consumer that sleeps on a futex checks the handshake sockets, which a futex cannot
/// watch.
const LIVENESS_PERIOD: Duration = Duration::from_millis(50);
/// A consumer that never sleeps checks for dead producers once in this many peeks (one system call
/// for all lanes).
const PEEKS_PER_LOOK: u32 = 256;
/// Most lanes of one consumer.
const LANES_MAX: usize = 1 << 16;

/// Reads the frames of all its producers: one lane (a ring) for each producer process.
///
/// It belongs to the process that made it. A child that inherits it through `fork` may only drop
/// it.
#[derive(Debug)]
pub struct Consumer {
    /// By the lower half of the lane number.
    lanes: Vec<Option<Lane>>,
    /// Upper half of the next lane number, so that an old number does not name a new lane.
    generation: u32,
    /// Whose turn it is.
    turn: usize,
    peeks: u32,
    events: VecDeque<Event>,
    epoll: OwnedFd,
    /// Longest delay of a frame so that several share a wake-up; zero for none.
    coalescing: Duration,
    /// The latest wait was shorter than that.
    comes_fast: bool,
}

impl Consumer {
    /// A consumer without lanes.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new() -> Result<Self, RingError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(RingError::io("making an epoll descriptor"))?;
        Ok(Self {
            lanes: Vec::new(),
            generation: 0,
            turn: 0,
            peeks: 0,
            events: VecDeque::new(),
            epoll,
            coalescing: Duration::ZERO,
            comes_fast: false,
        })
    }

    /// Longest delay of a frame in exchange for fewer wake-ups, as a network card's interrupts are
    /// coalesced (`rx-usecs` of `ethtool -c`). While frames come faster than that,
    /// [`Consumer::wait`] sleeps for that time and then finds several; no producer has to wake it.
    /// Lanes need room for the frames of that time, or their producers wait too. Zero, the default,
    /// means a wake-up for each frame. Has no effect on callers that poll ([`Consumer::arm`]).
    pub fn set_coalescing(&mut self, most: Duration) {
        self.coalescing = most;
        self.comes_fast = false;
    }

    /// Makes a lane and the invitation that a producer process joins with.
    ///
    /// # Errors
    /// The size is invalid, or memory or descriptors are short.
    pub fn add_lane(&mut self, options: &RingOptions) -> Result<(LaneId, Invitation), RingError> {
        let id = self.free_id()?;
        let mut lane = Lane::create(id, options)?;
        let (session, invitation) = lane.invite()?;
        self.watch_lane(&lane)?;
        self.watch_session(&lane, session)?;
        self.put(lane);
        Ok((id, invitation))
    }

    /// Makes a lane for the process at the other end of a connected socket, which calls
    /// [`crate::Producer::connect`] or [`crate::Producer::join`].
    ///
    /// # Errors
    /// As [`Consumer::add_lane`], or the socket is no Unix socket.
    pub fn accept(
        &mut self,
        socket: impl Into<OwnedFd>,
        options: &RingOptions,
    ) -> Result<LaneId, RingError> {
        let id = self.free_id()?;
        let mut lane = Lane::create(id, options)?;
        let session = lane.offer(socket.into())?;
        self.watch_lane(&lane)?;
        self.watch_session(&lane, session)?;
        self.put(lane);
        Ok(id)
    }

    /// Invites one more process to an existing lane. Processes of a lane share its memory: one that
    /// writes wildly can corrupt the others' frames, which it could not from a lane of its own.
    ///
    /// # Errors
    /// The lane does not exist, or descriptors are short.
    pub fn invite(&mut self, lane: LaneId) -> Result<Invitation, RingError> {
        // Frees the rows of processes that died since the last check, for the new one.
        self.check_liveness();
        let lane = self.lane_mut(lane).ok_or(RingError::UnknownLane { lane: lane.0 })?;
        let (session, invitation) = lane.invite()?;
        let id = lane.id;
        if let Some(lane) = self.lane(id) {
            self.watch_session(lane, session)?;
        }
        Ok(invitation)
    }

    /// Closes a lane at once, also while producers are connected: for producers that misbehave
    /// within the rules (send the wrong content, or claim and never commit). Its unread frames are
    /// lost; frames that are held count as released, and their bytes must not be used any more.
    /// Producers get an error when they next find the ring full. Returns the lane's final
    /// statistics; no [`Event::LaneEnded`] follows.
    ///
    /// # Errors
    /// The lane does not exist, or its statistics cannot be read; then it stays.
    pub fn remove_lane(&mut self, lane: LaneId) -> Result<LaneStats, RingError> {
        let unknown = RingError::UnknownLane { lane: lane.0 };
        let slot = self
            .lanes
            .get_mut(index(lane))
            .filter(|slot| slot.as_ref().is_some_and(|l| l.id == lane));
        let Some(removed) = slot.and_then(Option::as_mut) else { return Err(unknown) };
        removed.give_up();
        let stats = LaneStats::read(removed.memfd())?;
        unwatch(&self.epoll, removed);
        if let Some(slot) = self.lanes.get_mut(index(lane)) {
            *slot = None;
        }
        Ok(stats)
    }

    /// Copies of a lane's descriptors, to be kept by a supervisor. Export again after each
    /// invitation: a new consumer takes sessions that it has no socket of for dead.
    ///
    /// # Errors
    /// The lane does not exist, or descriptors are short.
    pub fn export(&self, lane: LaneId) -> Result<LaneFds, RingError> {
        self.lane(lane).ok_or(RingError::UnknownLane { lane: lane.0 })?.export()
    }

    /// Takes over a lane from a dead consumer. Frames that it had peeked and not released are
    /// delivered again.
    ///
    /// # Errors
    /// That consumer is alive, or the descriptors are of no valid ring.
    pub fn adopt(&mut self, fds: LaneFds) -> Result<LaneId, RingError> {
        let id = self.free_id()?;
        let lane = Lane::adopt(id, fds)?;
        self.watch_lane(&lane)?;
        for session in &lane.sessions {
            self.watch_session(&lane, session.number)?;
        }
        self.put(lane);
        self.check_liveness();
        Ok(id)
    }

    /// The next frame of any lane, if there is one; lanes take turns by bytes. It stays where it is
    /// until [`Consumer::release`]; any number may be held. Frames of one lane are delivered in the
    /// order of their claims.
    #[inline]
    pub fn peek(&mut self) -> Option<Frame> {
        self.peeks = self.peeks.wrapping_add(1);
        if self.peeks.is_multiple_of(PEEKS_PER_LOOK) {
            // If the system refuses, the next peek or wait tries again.
            let _ = self.drain_epoll(Duration::ZERO);
        }
        // The first round spends credit; if all ready lanes are out of credit, one refill serves
        // the second.
        for _ in 0..2 {
            for _ in 0..self.lanes.len().max(1) {
                match self.peek_turn() {
                    Some(frame) => return Some(frame),
                    None => self.next_turn(),
                }
            }
            self.refill()?;
        }
        None
    }

    #[inline]
    fn peek_turn(&mut self) -> Option<Frame> {
        let several = self.lanes.len() > 1;
        let lane = self.lanes.get_mut(self.turn)?.as_mut()?;
        if lane.credit <= 0 && several {
            if !lane.is_ready() {
                lane.found_nothing();
            }
            return None;
        }
        match lane.peek() {
            Ok(Some(peeked)) => {
                let frame = Frame::new(lane.id, &peeked);
                lane.credit -= frame.len as i64 + FRAME_COST_BYTES;
                Some(frame)
            }
            Ok(None) => {
                // An idle lane does not accumulate credit.
                lane.credit = lane.credit.min(0);
                None
            }
            Err(error) => {
                self.events.push_back(Event::LaneCorrupt { lane: lane.id, error });
                None
            }
        }
    }

    fn next_turn(&mut self) {
        self.turn = if self.turn + 1 < self.lanes.len() { self.turn + 1 } else { 0 };
        if let Some(Some(lane)) = self.lanes.get_mut(self.turn) {
            lane.credit = (lane.credit + QUANTUM_BYTES).min(QUANTUM_BYTES);
        }
    }

    /// All ready lanes are in debt: adds the credit of as many rounds as the least indebted needs.
    /// None if no lane is ready.
    fn refill(&mut self) -> Option<()> {
        let ready = |lane: &&mut Lane| lane.is_ready();
        let debt = self.lanes.iter_mut().flatten().filter(ready).map(|lane| lane.credit).max()?;
        let missing = 1 - debt.min(0);
        for lane in self.lanes.iter_mut().flatten() {
            lane.credit = (lane.credit + missing).min(QUANTUM_BYTES);
        }
        Some(())
    }

    /// The bytes of a held frame.
    ///
    /// # Errors
    /// The frame is not held.
    #[inline]
    pub fn payload(&self, frame: FrameId) -> Result<Payload<'_>, RingError> {
        let (start, len) = self
            .lane(frame.lane())
            .and_then(|lane| lane.payload(frame.sequence()))
            .ok_or(RingError::UnknownFrame { frame: frame.get() })?;
        Ok(Payload::new(start, len))
    }

    /// Releases a frame, in any order. Its space becomes free for the producer once all earlier
    /// frames of the lane are released too. Small frames are freed in batches of up to 16 and an
    /// eighth of the lane, at the latest when there is nothing to peek or the consumer waits; one
    /// by one if a producer drops the oldest, or sleeps for lack of room.
    ///
    /// # Errors
    /// The frame is not held.
    #[inline]
    pub fn release(&mut self, frame: FrameId) -> Result<(), RingError> {
        let released =
            self.lane_mut(frame.lane()).is_some_and(|lane| lane.release(frame.sequence()));
        if released { Ok(()) } else { Err(RingError::UnknownFrame { frame: frame.get() }) }
    }

    /// Sleeps until there may be a frame or an [`Event`], at most for `timeout`. True if there may
    /// be. Makes no system call when there is something.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, RingError> {
        for _ in 0..SPINS {
            if self.has_something() {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        // Producers that wait for the room there is would otherwise sleep as long as this consumer
        // does.
        self.lanes.iter_mut().flatten().for_each(Lane::be_idle);
        // The clock is read only here: reading it for each small frame would add a quarter to its
        // cost.
        let began = Instant::now();
        if self.comes_fast {
            std::thread::sleep(self.coalescing.min(timeout));
            if self.has_something() {
                return Ok(true);
            }
        }
        let found = self.sleep_until(began.checked_add(timeout))?;
        self.comes_fast = !self.coalescing.is_zero() && found && began.elapsed() < self.coalescing;
        Ok(found)
    }

    fn sleep_until(&mut self, deadline: Option<Instant>) -> Result<bool, RingError> {
        loop {
            let left =
                deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                self.check_liveness();
                return Ok(self.has_something());
            }
            let mut lanes = self.lanes.iter().flatten();
            match (lanes.next(), lanes.next()) {
                (Some(only), None) => {
                    sleep_on_futex(only, left.min(LIVENESS_PERIOD));
                    if !self.has_something() {
                        self.check_liveness();
                    }
                }
                _ => self.sleep_on_epoll(left)?,
            }
            if self.has_something() {
                return Ok(true);
            }
        }
    }

    fn sleep_on_epoll(&mut self, left: Duration) -> Result<(), RingError> {
        if self.arm() {
            self.lanes.iter().flatten().for_each(Lane::count_sleep);
            self.drain_epoll(left)?;
        }
        self.disarm();
        Ok(())
    }

    /// For event loops (epoll, tokio's `AsyncFd`, GLib): asks for the descriptor from
    /// [`Consumer::event_fd`] to become readable with the next frame or event. False, and nothing
    /// is armed, if there is something already.
    pub fn arm(&mut self) -> bool {
        self.lanes.iter_mut().flatten().for_each(Lane::arm);
        if self.has_something() {
            self.disarm();
            return false;
        }
        self.lanes.iter_mut().flatten().for_each(Lane::be_idle);
        true
    }

    /// The descriptor that becomes readable, once [`Consumer::arm`] returned true. Poll it for
    /// reading; then call [`Consumer::process_events`] and peek.
    pub fn event_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// To be called after the event descriptor became readable: processes its events without
    /// waiting.
    ///
    /// # Errors
    /// The system refuses.
    pub fn process_events(&mut self) -> Result<(), RingError> {
        self.drain_epoll(Duration::ZERO)?;
        self.disarm();
        Ok(())
    }

    /// The next event, oldest first. Ended lanes are freed here, so call it regularly.
    pub fn next_event(&mut self) -> Option<Event> {
        for slot in &mut self.lanes {
            let Some(lane) = slot.as_mut().filter(|lane| lane.has_ended()) else { continue };
            lane.end();
            // The descriptor is valid, so this can fail only if the system is out of memory; the
            // lane is kept until it works.
            let Ok(stats) = LaneStats::read(lane.memfd()) else { continue };
            let id = lane.id;
            unwatch(&self.epoll, lane);
            *slot = None;
            self.events.push_back(Event::LaneEnded { lane: id, stats });
        }
        self.events.pop_front()
    }

    /// Numbers of all lanes.
    pub fn lanes(&self) -> impl Iterator<Item = LaneId> + '_ {
        self.lanes.iter().flatten().map(|lane| lane.id)
    }

    /// Frames that are peeked and not released, of all lanes.
    pub fn held(&self) -> usize {
        self.lanes.iter().flatten().map(Lane::held).sum()
    }

    /// Statistics of a lane, as any other process can read them.
    ///
    /// # Errors
    /// The lane does not exist.
    pub fn stats(&self, lane: LaneId) -> Result<LaneStats, RingError> {
        LaneStats::read(self.lane(lane).ok_or(RingError::UnknownLane { lane: lane.0 })?.memfd())
    }

    /// Whether the kernel took the advice to use huge pages for a lane.
    pub fn has_huge_pages(&self, lane: LaneId) -> bool {
        self.lane(lane).is_some_and(|lane| lane.memory().has_huge_pages())
    }

    /// Checks all handshake sockets for ended producers; for callers that never call
    /// [`Consumer::wait`], which does it.
    pub fn check_liveness(&mut self) {
        for lane in self.lanes.iter_mut().flatten() {
            let id = lane.id;
            self.events.extend(lane.check_liveness().into_iter().map(|left| Event::ProducerLeft {
                lane: id,
                session: left.session,
                clean: left.clean,
            }));
        }
    }

    fn has_something(&self) -> bool {
        !self.events.is_empty()
            || self.lanes.iter().flatten().any(|lane| lane.is_ready() || lane.has_ended())
    }

    fn drain_epoll(&mut self, left: Duration) -> Result<(), RingError> {
        let mut ready = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 32];
        let timeout = (left < Duration::from_secs(86_400)).then(|| wake::timespec(left));
        let count = match epoll::wait(&self.epoll, &mut ready[..], timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => 0,
            other => other.map_err(RingError::io("waiting for frames"))?,
        };
        let hung_up = epoll::EventFlags::HUP | epoll::EventFlags::RDHUP;
        let mut flags = ready.iter().take(count).map(|event| event.flags);
        if flags.any(|flags| flags.intersects(hung_up)) {
            self.check_liveness();
        }
        Ok(())
    }

    fn disarm(&mut self) {
        self.lanes.iter_mut().flatten().for_each(Lane::disarm);
    }

    fn watch_lane(&self, lane: &Lane) -> Result<(), RingError> {
        // Edge-triggered: each write is one event, and the counter need not be read.
        self.watch(lane.frame_event.as_fd(), epoll::EventFlags::IN | epoll::EventFlags::ET)
    }

    fn watch_session(&self, lane: &Lane, session: u32) -> Result<(), RingError> {
        match lane.sessions.iter().find(|s| s.number == session) {
            Some(session) => {
                self.watch(session.socket.as_fd(), epoll::EventFlags::RDHUP | epoll::EventFlags::ET)
            }
            None => Ok(()),
        }
    }

    fn watch(&self, fd: BorrowedFd<'_>, flags: epoll::EventFlags) -> Result<(), RingError> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(0), flags)
            .map_err(RingError::io("watching a lane's descriptor"))
    }

    fn free_id(&mut self) -> Result<LaneId, RingError> {
        let index = self.lanes.iter().position(Option::is_none).unwrap_or(self.lanes.len());
        if index >= LANES_MAX {
            let rule = "lanes are in use, more than one consumer can have: share lanes, or start \
                        another consumer";
            return Err(RingError::BadGeometry { field: "lanes", value: index as u64, rule });
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(LaneId(self.generation << 16 | index as u32))
    }

    fn put(&mut self, lane: Lane) {
        let index = index(lane.id);
        if index == self.lanes.len() {
            self.lanes.push(None);
        }
        if let Some(slot) = self.lanes.get_mut(index) {
            *slot = Some(lane);
        }
    }

    fn lane(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(index(id))?.as_ref().filter(|lane| lane.id == id)
    }

    fn lane_mut(&mut self, id: LaneId) -> Option<&mut Lane> {
        self.lanes.get_mut(index(id))?.as_mut().filter(|lane| lane.id == id)
    }
}

/// Closing a descriptor does not remove it from epoll while a copy is open elsewhere: the producer
/// has one of the eventfd, a supervisor of all.
fn unwatch(epoll: &OwnedFd, lane: &Lane) {
    let sockets = lane.sessions.iter().map(|session| session.socket.as_fd());
    for fd in sockets.chain([lane.frame_event.as_fd()]) {
        // Not watched means done.
        let _ = epoll::delete(epoll, fd);
    }
}

fn index(id: LaneId) -> usize {
    (id.0 & 0xffff) as usize
}

/// Sleeps until the only lane has something, by futex.
fn sleep_on_futex(lane: &Lane, timeout: Duration) {
    let value = wake::announce(lane.sleep_word(), Sleep::FUTEX);
    if !lane.is_ready() {
        lane.count_sleep();
        wake::futex_wait(lane.sleep_word(), value, timeout);
    }
    lane.sleep_word().fetch_and(!Sleep::FUTEX, std::sync::atomic::Ordering::AcqRel);
}
