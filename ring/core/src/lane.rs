//! One lane on the consumer's side: a ring, the processes that joined it, and the liveness of each.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::cursor::{Cursor, Peeked, Violation};
use crate::error::RingError;
use crate::frame::LaneId;
use crate::handshake::{self, Invitation};
use crate::layout::Row;
use crate::memory::{Access, Memory};
use crate::options::RingOptions;
use crate::packed::Position;
use crate::producer_wakeup;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{AtomicU32, AtomicU64};
use crate::wake::{self, Sleep};

/// The descriptors of a lane. A supervisor that keeps a copy (from [`crate::Consumer::export`]) can
/// start a new consumer after the old one died, without the producers noticing:
/// [`crate::Consumer::adopt`].
#[derive(Debug)]
pub struct LaneFds {
    /// The ring.
    pub memfd: OwnedFd,
    /// The eventfd that wakes the consumer.
    pub frame_event: OwnedFd,
    /// The eventfd that wakes producers.
    pub room_event: OwnedFd,
    /// The consumer's ends of the handshake sockets, with their session numbers. While any process
    /// holds them, producers see the consumer as alive.
    pub sessions: Vec<(u32, OwnedFd)>,
}

/// A handshake socket and the processes behind it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) number: u32,
    pub(crate) socket: OwnedFd,
}

/// A session that died with positions claimed or reserved.
#[derive(Clone, Copy, Debug)]
struct DeadSession {
    session: u32,
    /// `reserve` when the session was found dead: it owns nothing from there on.
    until: u32,
}

/// A session whose processes have all ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedSession {
    pub(crate) session: u32,
    /// It had closed its producers before.
    pub(crate) clean: bool,
}

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) id: LaneId,
    memory: Memory,
    cursor: Cursor,
    memfd: OwnedFd,
    /// On an open file description of its own: the lock ends with this consumer, not with others
    /// that share the memfd.
    lock: Lock,
    pub(crate) frame_event: OwnedFd,
    room_event: OwnedFd,
    pub(crate) sessions: Vec<Session>,
    next_session: u32,
    /// Sessions that died with producers open, until all positions reserved by then are passed.
    dead: Vec<DeadSession>,
    /// `reserve` when the latest of them was found dead.
    recover_until: u32,
    /// Bytes that this lane may still deliver before the next lane's turn.
    pub(crate) credit: i64,
    /// A producer corrupted it: nothing more is read.
    pub(crate) closed: bool,
    /// The latest peek found nothing.
    idle: bool,
    /// The caller waits for the eventfd, and may release meanwhile.
    armed: bool,
}

impl Lane {
    pub(crate) fn create(id: LaneId, options: &RingOptions) -> Result<Self, RingError> {
        let geometry = options.geometry()?;
        let memfd = Memory::create(geometry, id.0.into(), options.wants_prefault())?;
        let memory = Memory::attach(memfd.as_fd(), Access::Consumer, options.wants_huge_pages())?;
        crate::layout::start(memory.control(), memory.slots(), Position::default());
        let fds = LaneFds {
            memfd,
            frame_event: handshake::event()?,
            room_event: handshake::event()?,
            sessions: Vec::new(),
        };
        Self::take_over(id, memory, fds)
    }

    /// Becomes the consumer of a ring that exists.
    pub(crate) fn adopt(id: LaneId, fds: LaneFds) -> Result<Self, RingError> {
        let memory = Memory::attach(fds.memfd.as_fd(), Access::Consumer, false)?;
        let mut lane = Self::take_over(id, memory, fds)?;
        // Sessions that ended while there was no consumer.
        let known: Vec<u32> = lane.sessions.iter().map(|session| session.number).collect();
        for row in lane.memory.rows() {
            let session = row.session.load(Acquire);
            if session != 0
                && !known.contains(&session)
                && lane.dead.iter().all(|dead| dead.session != session)
            {
                lane.dead.push(DeadSession { session, until: lane.reserved() });
            }
        }
        // And positions of sessions whose rows are free already: the previous consumer may have
        // skipped them without publishing.
        lane.dead.push(DeadSession { session: 0, until: lane.reserved() });
        lane.recover_until = lane.reserved();
        // A dead session's number must not be reused while its rows are still taken.
        let highest = lane.dead.iter().map(|dead| dead.session).chain(known).max().unwrap_or(0);
        lane.next_session = highest.wrapping_add(1).max(1);
        Ok(lane)
    }

    fn take_over(id: LaneId, memory: Memory, fds: LaneFds) -> Result<Self, RingError> {
        let words = &memory.control().consumer.0;
        let lock = lock(fds.memfd.as_fd(), &words.pid)?;
        words.epoch.fetch_add(1, Relaxed);
        words.pid.store(std::process::id(), Relaxed);
        memory.control().consumer_sleep.0.store(0, Relaxed);
        let cursor = Cursor::new(&memory);
        let sessions =
            fds.sessions.into_iter().map(|(number, socket)| Session { number, socket }).collect();
        Ok(Self {
            id,
            memory,
            cursor,
            memfd: fds.memfd,
            lock,
            frame_event: fds.frame_event,
            room_event: fds.room_event,
            sessions,
            next_session: 1,
            dead: Vec::new(),
            recover_until: 0,
            credit: 0,
            closed: false,
            idle: false,
            armed: false,
        })
    }

    /// Makes an invitation for one more process; with the number of its session.
    pub(crate) fn invite(&mut self) -> Result<(u32, Invitation), RingError> {
        let (ours, theirs) = Invitation::pair()?;
        Ok((self.offer(ours)?, theirs))
    }

    /// Sends the lane's descriptors over a connected socket.
    pub(crate) fn offer(&mut self, socket: OwnedFd) -> Result<u32, RingError> {
        let number = self.next_session;
        let fds = [self.memfd.as_fd(), self.frame_event.as_fd(), self.room_event.as_fd()];
        handshake::send(socket.as_fd(), number, fds)?;
        self.next_session = number.wrapping_add(1).max(1);
        self.sessions.push(Session { number, socket });
        Ok(number)
    }

    pub(crate) fn export(&self) -> Result<LaneFds, RingError> {
        let session = |s: &Session| Ok((s.number, handshake::duplicate(&s.socket)?));
        Ok(LaneFds {
            memfd: handshake::duplicate(&self.memfd)?,
            frame_event: handshake::duplicate(&self.frame_event)?,
            room_event: handshake::duplicate(&self.room_event)?,
            sessions: self.sessions.iter().map(session).collect::<Result<_, RingError>>()?,
        })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn memfd(&self) -> BorrowedFd<'_> {
        self.memfd.as_fd()
    }

    /// Whether [`Lane::peek`] would find a frame, or an abandoned claim to skip.
    pub(crate) fn is_ready(&self) -> bool {
        if self.closed {
            return false;
        }
        self.cursor.is_ready(&self.memory)
            || (!self.dead.is_empty() && self.has_dead_claims())
            || (self.is_abandoned()
                && !self.cursor.is_full(&self.memory)
                && self.cursor.is_behind(&self.memory))
    }

    /// No session is left that could reserve or commit anything.
    fn is_abandoned(&self) -> bool {
        self.sessions.is_empty()
    }

    fn has_dead_claims(&self) -> bool {
        let (rows, abandoned) = (self.memory.rows(), self.is_abandoned());
        let is_dead = |owner: u16| abandoned || is_dead(rows, &self.dead, owner);
        self.cursor.is_past(self.recover_until)
            || self.cursor.may_be_abandoned(
                &self.memory,
                self.cursor.next_sequence(),
                &is_dead,
                self.recover_until,
            )
    }

    /// The next frame of this lane; skips abandoned claims before it.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<Option<Peeked>, RingError> {
        if self.closed {
            return Ok(None);
        }
        let peeked = self.peek_or_recover();
        match peeked {
            Ok(None) => self.found_nothing(),
            _ => self.idle = false,
        }
        peeked.map_err(|violation| self.close(violation))
    }

    #[inline(always)]
    fn peek_or_recover(&mut self) -> Result<Option<Peeked>, Violation> {
        let abandoned = self.is_abandoned();
        if abandoned && self.cursor.is_past(self.recover_until) {
            self.free_dead_rows();
            let more = self.cursor.is_behind(&self.memory);
            return if more {
                Err(self.cursor.violation("reserved after all had left"))
            } else {
                Ok(None)
            };
        }
        if let Some(peeked) = self.cursor.peek(&self.memory)? {
            return Ok(Some(peeked));
        }
        if self.dead.is_empty() && !abandoned {
            return Ok(None);
        }
        let (rows, dead) = (self.memory.rows(), &self.dead);
        let is_dead = |owner: u16| abandoned || is_dead(rows, dead, owner);
        let put_aside = self.cursor.recover(&self.memory, &is_dead, self.recover_until)?;
        if put_aside > 0 {
            bump(&self.memory.control().consumer.0.abandoned_claims, put_aside);
        }
        if self.cursor.is_past(self.recover_until) {
            self.free_dead_rows();
        } else if put_aside == 0 && abandoned && self.is_stuck() {
            return Err(self.cursor.violation("neither a claim nor free, and all have left"));
        }
        if put_aside > 0 { self.cursor.peek(&self.memory) } else { Ok(None) }
    }

    /// The next position has no frame, and no frame that is held here is the reason.
    fn is_stuck(&self) -> bool {
        !self.cursor.is_full(&self.memory) && !self.cursor.is_ready(&self.memory)
    }

    /// Frees the rows of dead sessions whose positions are all passed. Each has its own `until`:
    /// with a common one, a lane that is never empty would free no row while processes keep dying,
    /// and after 32 deaths no producer could join.
    fn free_dead_rows(&mut self) {
        let (rows, cursor) = (self.memory.rows(), &self.cursor);
        self.dead.retain(|dead| {
            let is_over = cursor.is_past(dead.until);
            for row in
                rows.iter().filter(|row| is_over && row.session.load(Acquire) == dead.session)
            {
                // Fails if another producer took the row meanwhile: then it is that producer's.
                let _ = row.session.compare_exchange(dead.session, 0, AcqRel, Relaxed);
            }
            !is_over
        });
    }

    /// The lane has ended: leaves the shared words complete for later readers of statistics.
    pub(crate) fn end(&mut self) {
        self.cursor.publish(&self.memory);
        self.free_dead_rows();
    }

    /// Stops reading, and sets `closed` for producers.
    pub(crate) fn give_up(&mut self) {
        self.closed = true;
        self.memory.control().consumer.0.closed.store(1, Relaxed);
        self.wake(wake::sleepers(&self.memory.control().producer_sleep.0));
    }

    #[cold]
    fn close(&mut self, violation: Violation) -> RingError {
        self.give_up();
        RingError::Corrupt {
            lane: self.memory.lane(),
            sequence: violation.sequence,
            what: violation.what,
        }
    }

    #[inline(always)]
    pub(crate) fn payload(&self, sequence: u32) -> Option<(std::ptr::NonNull<u8>, usize)> {
        self.cursor.payload(&self.memory, sequence)
    }

    /// Releases a frame. False if it is not held.
    #[inline(always)]
    pub(crate) fn release(&mut self, sequence: u32) -> bool {
        let Some(released) = self.cursor.release(&self.memory, sequence) else { return false };
        let words = &self.memory.control().consumer.0;
        bump(&words.delivered_frames, 1);
        bump(&words.delivered_bytes, released.len.into());
        // While armed, publish each release: the consumer may find nothing to peek before it is
        // woken, and no producer may be left to wake it.
        if released.published || (self.armed && self.cursor.publish(&self.memory)) {
            self.wake(producer_wakeup::sleepers_after_release(&self.memory, &self.cursor));
        }
        true
    }

    /// Nothing to peek. A consumer that keeps up finds that after each small frame, and continues
    /// its batch; twice in a row, or while a producer sleeps for lack of room, counts as idle.
    #[inline(always)]
    pub(crate) fn found_nothing(&mut self) {
        if self.idle || self.memory.control().producer_sleep.0.load(Relaxed) != 0 {
            self.be_idle();
        }
        self.idle = true;
    }

    /// The consumer is idle or about to sleep: publishes everything and wakes waiting producers.
    pub(crate) fn be_idle(&mut self) {
        self.cursor.publish(&self.memory);
        self.wake(producer_wakeup::sleepers_when_idle(&self.memory));
    }

    /// Wakes producers in the ways that they asked for.
    fn wake(&self, how: u32) {
        if how != 0 {
            wake::wake(&self.memory.control().producer_sleep.0, how, self.room_event.as_fd());
            let wakes = &self.memory.control().consumer.0.wakes;
            wakes.store(wakes.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }

    pub(crate) fn sleep_word(&self) -> &AtomicU32 {
        &self.memory.control().consumer_sleep.0
    }

    pub(crate) fn count_sleep(&self) {
        bump(&self.memory.control().consumer.0.sleeps, 1);
    }

    /// Asks to be woken through the eventfd.
    pub(crate) fn arm(&mut self) {
        self.armed = true;
        wake::announce(self.sleep_word(), Sleep::EVENT);
    }

    pub(crate) fn disarm(&mut self) {
        self.armed = false;
        self.sleep_word().fetch_and(!Sleep::EVENT, AcqRel);
    }

    /// Checks each handshake socket (a system call each); returns the sessions that ended since.
    pub(crate) fn check_liveness(&mut self) -> Vec<EndedSession> {
        let mut left = Vec::new();
        let mut index = 0;
        while let Some(session) = self.sessions.get(index) {
            if handshake::is_open(session.socket.as_fd()) {
                index += 1;
                continue;
            }
            let session = self.sessions.swap_remove(index).number;
            let clean = self.memory.rows().iter().all(|row| row.session.load(Acquire) != session);
            self.recover_until = self.reserved();
            // A session that freed its rows may still have reserved positions without marking them.
            if !clean || self.cursor.is_behind(&self.memory) {
                self.dead.push(DeadSession { session, until: self.recover_until });
            }
            left.push(EndedSession { session, clean });
        }
        self.free_dead_rows();
        left
    }

    fn reserved(&self) -> u32 {
        Position::unpack(self.memory.control().reserve.0.load(Acquire)).sequence
    }

    /// Frames that are peeked and not released.
    pub(crate) fn held(&self) -> usize {
        self.cursor.held()
    }

    /// No producer is left, and all frames are read and released.
    pub(crate) fn has_ended(&self) -> bool {
        self.sessions.is_empty()
            && self.cursor.held() == 0
            && (self.closed || !self.cursor.is_behind(&self.memory))
    }
}

impl Drop for Lane {
    /// Publishes releases, so that another consumer does not deliver those frames again.
    fn drop(&mut self) {
        if !self.closed && self.lock.is_ours() {
            self.cursor.publish(&self.memory);
        }
    }
}

/// A free row has no claims: a producer aborts its claims before it frees its row.
fn is_dead(rows: &[Row], dead: &[DeadSession], owner: u16) -> bool {
    let session = rows.get(usize::from(owner)).map_or(0, |row| row.session.load(Acquire));
    session == 0 || dead.iter().any(|dead| dead.session == session)
}

/// A counter with one writer needs no read-modify-write.
fn bump(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
}

/// The consumer's file lock. Unlocked when dropped, also if a forked child holds a copy of the
/// descriptor; but not when that child drops its own.
#[derive(Debug)]
struct Lock {
    file: OwnedFd,
    pid: u32,
}

impl Lock {
    /// Whether this is the process that took the lock, and not a forked child.
    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_ours() {
            // Fails only if the kernel is out of memory; closing does the same then.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// Takes the consumer's lock, on a new open file description: all processes that were passed the
/// memfd share the old one, and a lock on it would last as long as any of them.
fn lock(memfd: BorrowedFd<'_>, pid: &AtomicU32) -> Result<Lock, RingError> {
    let path = format!("/proc/self/fd/{}", memfd.as_raw_fd());
    let own = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(RingError::io("opening the memfd anew through /proc, to lock it"))?;
    match rustix::fs::flock(&own, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock { file: own, pid: std::process::id() }),
        Err(rustix::io::Errno::AGAIN) => {
            Err(RingError::ConsumerAttached { pid: pid.load(Relaxed) })
        }
        Err(error) => Err(RingError::Io { operation: "locking the ring", source: error.into() }),
    }
}
