//! How a producer joins: one message with three descriptors over a Unix socket, which stays open
//! for liveness.
//!
//! The kernel closes a dead process's socket, whatever killed it: no reused process ids, no
//! heartbeat to tune, and it works in a sandbox that allows nothing but inherited descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::error::RingError;
use crate::layout::{ABI_MAJOR, ABI_MINOR, MAGIC};

/// Environment variable in which [`Invitation::give_to`] names the inherited socket.
pub(crate) const INHERITED: &str = "THRONG_RING_FD";

/// Bytes of the message.
const OFFER_BYTES: usize = 32;

/// The producer's end of a handshake socket. Pass it to the producer: as an inherited descriptor,
/// through fork, or over a socket of your own (SCM_RIGHTS); there it becomes a [`crate::Producer`].
/// Dropping it unused ends the lane.
#[derive(Debug)]
pub struct Invitation {
    socket: OwnedFd,
}

impl Invitation {
    /// A connected pair: the consumer's end, and the one to give away.
    pub(crate) fn pair() -> Result<(OwnedFd, Self), RingError> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(RingError::io("making a handshake socket"))?;
        Ok((ours, Self { socket: theirs }))
    }

    /// Lets a program that is about to be started inherit the socket; it joins with
    /// [`crate::Producer::join_inherited`]. The descriptor's number goes into the environment
    /// variable `THRONG_RING_FD`. Keep the command no longer than until it was started: it holds
    /// the socket open.
    pub fn give_to(self, command: &mut Command) {
        use std::os::unix::process::CommandExt;
        command.env(INHERITED, self.socket.as_raw_fd().to_string());
        let socket = self.socket;
        let keep_open = move || {
            // Runs between fork and exec, where only system calls are allowed: this is one.
            rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty())
                .map_err(std::io::Error::from)
        };
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe { command.pre_exec(keep_open) };
    }
}

impl From<Invitation> for OwnedFd {
    fn from(invitation: Invitation) -> Self {
        invitation.socket
    }
}

/// The socket that this process inherited through [`Invitation::give_to`]. To be called once.
pub(crate) fn inherited() -> Result<OwnedFd, RingError> {
    let missing = || RingError::NoInheritedSocket { variable: INHERITED };
    let number: RawFd =
        std::env::var(INHERITED).ok().and_then(|n| n.parse().ok()).ok_or_else(missing)?;
    if number < 3 {
        return Err(missing());
    }
    // SAFETY: only asks about the number; the variable says that this descriptor was passed for
    // this purpose.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC).map_err(|_| missing())?;
    // SAFETY: the process that set the variable passed this descriptor to this process for this
    // purpose.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The message that a producer gets.
#[derive(Debug)]
pub(crate) struct Offer {
    /// Number of the socket within the lane, from 1.
    pub(crate) session: u32,
    pub(crate) memfd: OwnedFd,
    /// Eventfd that wakes a polling consumer.
    pub(crate) frame_event: OwnedFd,
    /// Eventfd that wakes polling producers.
    pub(crate) room_event: OwnedFd,
}

/// Sends the message. `fds` in the order of [`Offer`].
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    session: u32,
    fds: [BorrowedFd<'_>; 3],
) -> Result<(), RingError> {
    let mut message = [0u8; OFFER_BYTES];
    message[..8].copy_from_slice(&MAGIC.to_le_bytes());
    message[8..10].copy_from_slice(&ABI_MAJOR.to_le_bytes());
    message[10..12].copy_from_slice(&ABI_MINOR.to_le_bytes());
    message[12..16].copy_from_slice(&session.to_le_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fits = ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    debug_assert!(fits);
    let sent = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&message)],
        &mut ancillary,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    )
    .map_err(RingError::io("handing the ring over"))?;
    if sent == OFFER_BYTES {
        Ok(())
    } else {
        Err(RingError::BadHandshake { what: "the socket took only part of the message" })
    }
}

/// Waits for the message and checks it.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> Result<Offer, RingError> {
    let bad = |what| RingError::BadHandshake { what };
    let mut message = [0u8; OFFER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match rustix::net::recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut message)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL,
        ) {
            Err(Errno::INTR) => {}
            Err(Errno::NOTSOCK) => return Err(bad("the descriptor is no socket")),
            other => break other.map_err(RingError::io("receiving the ring"))?,
        }
    };
    let mut fds: Vec<OwnedFd> = Vec::new();
    for control in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = control {
            fds.extend(rights);
        }
    }
    match received.bytes {
        0 => {
            return Err(bad(
                "the consumer closed the socket; was it ended, or the invitation used before?",
            ));
        }
        OFFER_BYTES => {}
        _ => return Err(bad("the message has another size; is the other side a ring's consumer?")),
    }
    let [m0, m1, m2, m3, m4, m5, m6, m7, v0, v1, _, _, s0, s1, s2, s3, ..] = message;
    let magic = u64::from_le_bytes([m0, m1, m2, m3, m4, m5, m6, m7]);
    if magic != MAGIC {
        return Err(RingError::WrongMagic { found: magic, expected: MAGIC });
    }
    let version = u16::from_le_bytes([v0, v1]);
    if version != ABI_MAJOR {
        return Err(RingError::UnsupportedVersion { found: version, supported: ABI_MAJOR });
    }
    let session = u32::from_le_bytes([s0, s1, s2, s3]);
    if session == 0 {
        return Err(bad("session 0 does not exist"));
    }
    let [memfd, frame_event, room_event] =
        <[OwnedFd; 3]>::try_from(fds).map_err(|_| bad("it does not carry three descriptors"))?;
    Ok(Offer { session, memfd, frame_event, room_event })
}

/// Whether any process still holds the other end of a handshake socket. Checked by the state of the
/// connection, not by reading: data that the other side sent against the rules would hide its end.
pub(crate) fn is_open(socket: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
    match rustix::event::poll(&mut fds, Some(&Timespec::default())) {
        Ok(0) => true,
        Ok(_) => {
            let [fd] = fds;
            !fd.revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::NVAL)
        }
        // The system is short of memory, or a signal came: the next check decides.
        Err(_) => true,
    }
}

/// A counter descriptor for pollers.
pub(crate) fn event() -> Result<OwnedFd, RingError> {
    let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
    rustix::event::eventfd(0, flags).map_err(RingError::io("making an eventfd"))
}

/// A second descriptor of the same open file.
pub(crate) fn duplicate(fd: impl AsFd) -> Result<OwnedFd, RingError> {
    fd.as_fd().try_clone_to_owned().map_err(RingError::io("duplicating a descriptor"))
}
