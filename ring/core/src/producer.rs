//! The producer's side: join, claim, write in place, commit or abort, under a back-pressure policy.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::claim::{self, CachedPositions, ClaimAttempt, Eviction};
use crate::drop_reason::DropReason;
use crate::error::RingError;
use crate::frame::{Flags, FrameInfo};
use crate::handshake;
use crate::layout::{ROWS, Row};
use crate::memory::{Access, Memory};
use crate::packed::{Position, UNIT};
use crate::policy::Policy;
use crate::streams::Streams;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::token::ClaimToken;
use crate::wake::{self, Sleep};

/// How often a waiting producer checks that its consumer is alive.
const LIVENESS_PERIOD: Duration = Duration::from_millis(100);
/// Attempts on a full ring before sleeping: about a microsecond, less than the cost of going to
/// sleep.
const SPINS: u32 = 50;
/// Check (a system call) whether the consumer is alive after this many drops.
const DROPS_PER_LOOK: u32 = 64;

/// State shared by all handles of one process on a lane; dropping it closes the handshake socket.
#[derive(Debug)]
struct LaneConnection {
    memory: Memory,
    socket: OwnedFd,
    frame_event: OwnedFd,
    room_event: OwnedFd,
    session: u32,
    pid: u32,
}

/// A handle that puts frames into a ring. One per thread: [`Producer::try_clone`] makes more.
///
/// A child process must not use a handle that it inherited through `fork`: parent and child would
/// count as one. It may drop it, which leaves the parent's claims as they are.
#[derive(Debug)]
pub struct Producer {
    joined: Arc<LaneConnection>,
    row: u16,
    cached: CachedPositions,
    policy: Policy,
    streams: Streams,
    drops: u32,
}

impl Producer {
    /// Joins through a connected Unix socket: an [`crate::Invitation`], or one that was passed on.
    /// Waits for the consumer's message, which is there already in case of an invitation.
    ///
    /// # Errors
    /// Nothing, or no valid ring, came through the socket.
    pub fn join(socket: impl Into<OwnedFd>) -> Result<Self, RingError> {
        let socket = socket.into();
        let offer = handshake::receive(socket.as_fd())?;
        let memory = Memory::attach(offer.memfd.as_fd(), Access::Producer, false)?;
        let joined = LaneConnection {
            memory,
            socket,
            frame_event: offer.frame_event,
            room_event: offer.room_event,
            session: offer.session,
            pid: std::process::id(),
        };
        Self::open(Arc::new(joined))
    }

    /// Joins through the socket that this process inherited from [`crate::Invitation::give_to`].
    ///
    /// # Errors
    /// The environment names no such socket, or as [`Producer::join`].
    pub fn join_inherited() -> Result<Self, RingError> {
        Self::join(handshake::inherited()?)
    }

    /// Joins at a socket path where a consumer accepts: [`crate::Consumer::accept`].
    ///
    /// # Errors
    /// No consumer listens there, or as [`Producer::join`].
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, RingError> {
        let socket = UnixStream::connect(path)
            .map_err(RingError::io("connecting to the consumer's socket"))?;
        Self::join(socket)
    }

    /// One more handle of this process on the same lane, for another thread: with its own policy
    /// and its own counters.
    ///
    /// # Errors
    /// The lane's 32 rows are taken.
    pub fn try_clone(&self) -> Result<Self, RingError> {
        let mut another = Self::open(Arc::clone(&self.joined))?;
        another.policy = self.policy;
        Ok(another)
    }

    fn open(joined: Arc<LaneConnection>) -> Result<Self, RingError> {
        let free = |row: &&(usize, &Row)| {
            row.1.session.compare_exchange(0, joined.session, AcqRel, Relaxed).is_ok()
        };
        let rows: Vec<_> = joined.memory.rows().iter().enumerate().collect();
        let (index, row) =
            *rows.iter().find(free).ok_or(RingError::TooManyProducers { max: ROWS })?;
        row.pid.store(joined.pid, Relaxed);
        // The previous owner of the row may have died before it cleared this.
        row.claiming.store(0, Release);
        let cached = CachedPositions::new(&joined.memory);
        let row = index as u16;
        drop(rows);
        Ok(Self {
            joined,
            row,
            cached,
            policy: Policy::DropNewest,
            streams: Streams::default(),
            drops: 0,
        })
    }

    /// Sets what happens when there is no room. A new handle has [`Policy::DropNewest`].
    pub fn set_policy(&mut self, policy: Policy) {
        if policy == Policy::DropOldest {
            // From here on the consumer publishes each release at once.
            self.joined.memory.control().consumer.0.evicts.store(1, Relaxed);
        }
        self.policy = policy;
    }

    /// Bytes of the largest frame that this ring takes: half its arena.
    pub fn frame_bytes_max(&self) -> usize {
        self.joined.memory.geometry().arena_bytes / 2
    }

    /// Whether the consumer's end of the handshake socket is open. Costs a system call.
    pub fn has_consumer(&self) -> bool {
        handshake::is_open(self.joined.socket.as_fd())
    }

    /// Claims room for `len` bytes, to be written in place. Nothing if the policy drops the frame,
    /// which is counted.
    ///
    /// # Errors
    /// The frame can never fit; or there is no room and the consumer has gone, or closed the lane.
    pub fn claim(&mut self, len: usize, info: &FrameInfo) -> Result<Option<Claim<'_>>, RingError> {
        let token = self.claim_token(len, info)?;
        Ok(token.map(|token| Claim { producer: self, token: Some(token) }))
    }

    /// Copies a frame into the ring. False if the policy dropped it.
    ///
    /// # Errors
    /// As [`Producer::claim`].
    #[inline]
    pub fn send(&mut self, bytes: &[u8], info: &FrameInfo) -> Result<bool, RingError> {
        let Some(token) = self.claim_token(bytes.len(), info)? else { return Ok(false) };
        // SAFETY: `len` bytes were claimed for this call alone; `bytes` cannot overlap them, since
        // no reference points there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), token.as_ptr(), bytes.len()) };
        self.commit(token, bytes.len())?;
        Ok(true)
    }

    /// [`Producer::claim`] without a borrow: several claims may be open, and a C caller can keep
    /// them.
    ///
    /// # Errors
    /// As [`Producer::claim`].
    #[inline]
    pub fn claim_token(
        &mut self,
        len: usize,
        info: &FrameInfo,
    ) -> Result<Option<ClaimToken>, RingError> {
        let max = self.frame_bytes_max();
        if len > max {
            self.drop_frame(info.stream, DropReason::TooLarge);
            return Err(RingError::FrameTooLarge { len, max });
        }
        let waits_for_key =
            self.policy == Policy::DropUntilKeyframe && self.streams.get(info.stream).lost;
        if waits_for_key && !info.flags.contains(Flags::KEYFRAME) {
            self.drop_frame(info.stream, DropReason::UntilKeyframe);
            return self.look_after_drops().map(|()| None);
        }
        // At least one unit, so that no two frames start at the same place.
        let units = len.div_ceil(UNIT).max(1) as u32;
        let position =
            match claim::try_claim(&self.joined.memory, &mut self.cached, self.row, units) {
                ClaimAttempt::Claimed(position) => position,
                ClaimAttempt::Corrupt(what) => return Err(self.corrupt(what)),
                ClaimAttempt::Full => match self.make_room(units)? {
                    Ok(position) => position,
                    Err(reason) => {
                        self.drop_frame(info.stream, reason);
                        return self.look_after_drops().map(|()| None);
                    }
                },
            };
        let stream = self.streams.get(info.stream);
        let mut info = *info;
        if std::mem::take(&mut stream.lost) {
            info.flags = info.flags | Flags::DISCONTINUITY;
        }
        let sequence = stream.next_sequence();
        let start = self.joined.memory.payload(position.unit);
        Ok(Some(ClaimToken { position, start, len, info, sequence }))
    }

    /// Makes the first `len` bytes of a claim visible to the consumer, and wakes it if it sleeps.
    ///
    /// # Errors
    /// `len` is more than was claimed (the claim is aborted), or the claim is not open.
    #[inline]
    pub fn commit(&mut self, token: ClaimToken, len: usize) -> Result<(), RingError> {
        if len > token.len {
            let claimed = token.len;
            self.abort(token)?;
            return Err(RingError::CommitTooLong { len, claimed });
        }
        let descriptor = token.info.descriptor(len as u32, token.sequence);
        if !claim::commit(&self.joined.memory, token.position, self.row, &descriptor) {
            return Err(RingError::UnknownClaim { sequence: token.position.sequence });
        }
        let row = self.row();
        add(&row.committed_frames, 1);
        add(&row.committed_bytes, len as u64);
        self.wake_consumer();
        Ok(())
    }

    /// Aborts a claim. The consumer never sees it; the stream's sequence has a gap.
    ///
    /// # Errors
    /// The claim is not open.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a claim is aborted once: the token ends here"
    )]
    pub fn abort(&mut self, token: ClaimToken) -> Result<(), RingError> {
        if !claim::abort(&self.joined.memory, token.position, self.row) {
            return Err(RingError::UnknownClaim { sequence: token.position.sequence });
        }
        add(&self.row().aborted_frames, 1);
        self.streams.get(token.info.stream).lost = true;
        self.wake_consumer();
        Ok(())
    }

    /// For event loops: whether a claim of `len` bytes would find room. If not, the descriptor from
    /// [`Producer::room_event`] becomes readable when there may be. Handles of one lane share that
    /// descriptor: one that finds too little room for itself may take the signal from another that
    /// needs less, so that several of them poll with a timeout.
    ///
    /// # Errors
    /// The shared words contradict each other.
    pub fn poll_room(&mut self, len: usize) -> Result<bool, RingError> {
        let units = len.div_ceil(UNIT).max(1) as u32;
        if self.has_room(units) {
            return Ok(true);
        }
        Ok(self.arm_room(units))
    }

    /// Arms the room event. True if there is room by now.
    fn arm_room(&self, units: u32) -> bool {
        // It may be readable from before: empty it, then arm it.
        let was_readable = rustix::io::read(&self.joined.room_event, &mut [0; 8][..]).is_ok();
        wake::announce(&self.joined.memory.control().producer_sleep.0, Sleep::EVENT);
        let has_room = self.has_room(units);
        if has_room && was_readable {
            // The signal read here may have been the one for another handle of the lane, which
            // polls the same descriptor.
            let _ = rustix::io::write(&self.joined.room_event, &1u64.to_ne_bytes());
        }
        has_room
    }

    /// The eventfd that [`Producer::poll_room`] arms; shared by all producers of the lane.
    pub fn room_event(&self) -> BorrowedFd<'_> {
        self.joined.room_event.as_fd()
    }

    fn has_room(&self, units: u32) -> bool {
        let control = self.joined.memory.control();
        let release = Position::unpack(control.release.0.load(Acquire));
        let reserve = Position::unpack(control.reserve.0.load(Acquire));
        let geometry = self.joined.memory.geometry();
        let slots_used = reserve.sequence.wrapping_sub(release.sequence);
        let units_used = reserve.unit.wrapping_sub(release.unit);
        slots_used < geometry.slots
            && u64::from(units_used) + u64::from(units) <= u64::from(geometry.units())
    }

    fn row(&self) -> &Row {
        // `open` took the index from the table.
        &self.joined.memory.rows()[usize::from(self.row)]
    }

    /// Applies the policy to a full ring: a position after all, or the reason to drop.
    fn make_room(&mut self, units: u32) -> Result<Result<Position, DropReason>, RingError> {
        match self.policy {
            Policy::Wait { timeout } => self.wait_for_room(units, timeout),
            Policy::DropOldest => self.evict_for_room(units),
            Policy::DropNewest | Policy::DropUntilKeyframe => Ok(Err(DropReason::Full)),
        }
    }

    fn try_again(&mut self, units: u32) -> Result<Option<Position>, RingError> {
        match claim::try_claim(&self.joined.memory, &mut self.cached, self.row, units) {
            ClaimAttempt::Claimed(position) => Ok(Some(position)),
            ClaimAttempt::Full => Ok(None),
            ClaimAttempt::Corrupt(what) => Err(self.corrupt(what)),
        }
    }

    fn wait_for_room(
        &mut self,
        units: u32,
        timeout: Duration,
    ) -> Result<Result<Position, DropReason>, RingError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            for _ in 0..SPINS {
                std::hint::spin_loop();
                if let Some(position) = self.try_again(units)? {
                    return Ok(Ok(position));
                }
            }
            let left =
                deadline.map_or(LIVENESS_PERIOD, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(Err(DropReason::TimedOut));
            }
            let value =
                wake::announce(&self.joined.memory.control().producer_sleep.0, Sleep::FUTEX);
            if let Some(position) = self.try_again(units)? {
                return Ok(Ok(position));
            }
            self.look_for_consumer()?;
            let row = self.row();
            row.sleeps.store(row.sleeps.load(Relaxed).wrapping_add(1), Relaxed);
            let word = &self.joined.memory.control().producer_sleep.0;
            wake::futex_wait(word, value, left.min(LIVENESS_PERIOD));
        }
    }

    fn evict_for_room(&mut self, units: u32) -> Result<Result<Position, DropReason>, RingError> {
        loop {
            match claim::evict_oldest(&self.joined.memory) {
                Eviction::Held => return Ok(Err(DropReason::HeldByConsumer)),
                Eviction::Empty | Eviction::Progress => {}
            }
            if let Some(position) = self.try_again(units)? {
                self.look_after_drops()?;
                return Ok(Ok(position));
            }
        }
    }

    /// Counts a dropped frame, also in the stream's sequence.
    fn drop_frame(&mut self, stream: u32, reason: DropReason) {
        // An eviction by another producer may count in this row at the same time, under its own
        // reason only.
        add(&self.row().dropped[reason as usize], 1);
        let stream = self.streams.get(stream);
        stream.next_sequence();
        stream.lost = true;
    }

    fn look_after_drops(&mut self) -> Result<(), RingError> {
        self.drops = self.drops.wrapping_add(1);
        if self.drops % DROPS_PER_LOOK == 1 { self.look_for_consumer() } else { Ok(()) }
    }

    fn look_for_consumer(&self) -> Result<(), RingError> {
        let control = self.joined.memory.control();
        if control.consumer.0.closed.load(Relaxed) != 0 {
            return Err(RingError::Closed);
        }
        if self.has_consumer() {
            return Ok(());
        }
        let reserve = Position::unpack(control.reserve.0.load(Relaxed));
        let release = Position::unpack(control.release.0.load(Relaxed));
        Err(RingError::ConsumerGone {
            unread_frames: reserve.sequence.wrapping_sub(release.sequence),
        })
    }

    fn corrupt(&self, what: &'static str) -> RingError {
        let reserve = Position::unpack(self.joined.memory.control().reserve.0.load(Relaxed));
        RingError::Corrupt { lane: self.joined.memory.lane(), sequence: reserve.sequence, what }
    }

    #[inline(always)]
    fn wake_consumer(&self) {
        let word = &self.joined.memory.control().consumer_sleep.0;
        // Commit and abort end with a compare-and-swap; so does `abort_all`, if it aborted
        // anything.
        let how = wake::sleepers_after_rmw(word);
        if how != 0 {
            wake::wake(word, how, self.joined.frame_event.as_fd());
            add(&self.row().wakes, 1);
        }
    }
}

/// Claimed space in the ring, to write a frame into. Dropping it without a commit aborts the claim.
#[derive(Debug)]
pub struct Claim<'a> {
    pub(crate) producer: &'a mut Producer,
    pub(crate) token: Option<ClaimToken>,
}

impl Claim<'_> {
    /// The bytes to write; until then they hold those of earlier frames.
    ///
    /// The consumer made this memory and could write to it too; a producer trusts it not to (this
    /// library's consumer maps payload read-only).
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, len) =
            self.token.as_ref().map_or((NonNull::dangling(), 0), |t| (t.start, t.len));
        // SAFETY: initialised (a memfd starts as zeros), claimed for this handle alone until the
        // commit, which needs `self` by value; no other reference to it exists in this process.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Makes all claimed bytes visible to the consumer.
    ///
    /// # Errors
    /// The ring's words were overwritten.
    pub fn commit(self) -> Result<(), RingError> {
        let len = self.token.as_ref().map_or(0, ClaimToken::len);
        self.commit_len(len)
    }

    /// Makes the first `len` bytes visible: for encoders that know the size only afterwards.
    ///
    /// # Errors
    /// `len` is more than was claimed.
    pub fn commit_len(mut self, len: usize) -> Result<(), RingError> {
        match self.token.take() {
            Some(token) => self.producer.commit(token, len),
            None => Ok(()),
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // Fails only if the ring's words were overwritten; the next claim reports it.
            let _ = self.producer.abort(token);
        }
    }
}

/// A counter with one writer needs no read-modify-write.
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
}

impl Drop for Producer {
    fn drop(&mut self) {
        if std::process::id() != self.joined.pid {
            return;
        }
        let aborted = claim::abort_all(&self.joined.memory, self.row);
        add(&self.row().aborted_frames, aborted);
        self.row().session.store(0, Release);
        if aborted > 0 {
            self.wake_consumer();
        }
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use crate::{Consumer, RingOptions};

    #[test]
    fn a_producer_that_finds_room_leaves_the_signal_to_the_others() {
        let mut consumer = Consumer::new().unwrap();
        let (_, invitation) = consumer.add_lane(&RingOptions::with_size(65_536, 8)).unwrap();
        let mut first = Producer::join(invitation).unwrap();
        let mut second = first.try_clone().unwrap();
        while first.send(b"fill", &FrameInfo::default()).unwrap() {}
        assert!(!first.poll_room(4).unwrap() && !second.poll_room(4).unwrap());
        while let Some(frame) = consumer.peek() {
            consumer.release(frame.id).unwrap();
        }
        // The first was just past its first check when that happened.
        assert!(first.arm_room(1));
        assert!(
            rustix::io::read(&second.joined.room_event, &mut [0; 8][..]).is_ok(),
            "the second sleeps on"
        );
        assert!(second.arm_room(1));
        let nothing = rustix::io::read(&second.joined.room_event, &mut [0; 8][..]);
        assert!(nothing.is_err(), "nothing was taken, so nothing is written back");
    }
}
