//! Every error of the library, with what to do about it.

use std::io;

/// Why a call on a ring failed. Dropping a frame under a back-pressure policy is no error: see
/// [`crate::Policy`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The descriptor cannot carry seals, so it is no memfd.
    #[error(
        "this descriptor is not a memfd, so its owner could truncate it while it is mapped: \
         pass the memfd that a ring's consumer made, or the socket from its invitation"
    )]
    NotAMemfd,
    /// Its size could still change: a peer that truncates it would end this process by SIGBUS.
    #[error(
        "the memfd lacks the seals {missing}: the process that makes a ring must set \
         SHRINK|GROW|SEAL by fcntl(F_ADD_SEALS) before passing it on"
    )]
    SealsMissing {
        /// Names of those that are absent, such as `SHRINK|GROW`.
        missing: String,
    },
    /// There is no ring in that memory.
    #[error(
        "no ring here: it begins with {found:#018x} where {expected:#018x} should be; was \
         another descriptor passed?"
    )]
    WrongMagic {
        /// First eight bytes, little endian.
        found: u64,
        /// What a ring begins with.
        expected: u64,
    },
    /// Made by an implementation whose words mean something else.
    #[error(
        "the ring has layout version {found}, this library supports {supported}: use the \
         same major version on both sides"
    )]
    UnsupportedVersion {
        /// Major version in the header.
        found: u16,
        /// Major version of this library.
        supported: u16,
    },
    /// A size in the header, or a requested one, is invalid.
    #[error("{field} is {value}: {rule}")]
    BadGeometry {
        /// Which size.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What holds for it.
        rule: &'static str,
    },
    /// The memory is shorter than its header says.
    #[error(
        "the memfd has {found} bytes where its header needs {expected}: it was cut or \
         never filled; make a new ring"
    )]
    Truncated {
        /// Bytes there.
        found: u64,
        /// Bytes needed.
        expected: u64,
    },
    /// A ring has one consumer.
    #[error(
        "the ring has a consumer already (process {pid}): end that one first, or invite \
         producers to a ring of your own"
    )]
    ConsumerAttached {
        /// Process id that it wrote down; 0 if none.
        pid: u32,
    },
    /// The frame is larger than the ring allows.
    #[error(
        "a frame of {len} bytes never fits: this ring takes up to {max} bytes; make it \
         with RingOptions::for_frames({len}, 4)"
    )]
    FrameTooLarge {
        /// Bytes requested.
        len: usize,
        /// Half the ring.
        max: usize,
    },
    /// `commit` named more bytes than were claimed.
    #[error(
        "committed {len} bytes of a claim of {claimed}: claim as many as may be needed, \
         then commit fewer"
    )]
    CommitTooLong {
        /// Bytes named.
        len: usize,
        /// Bytes claimed.
        claimed: usize,
    },
    /// The consumer has left.
    #[error("the consumer has gone ({unread_frames} frames were not read): join a new one, or end")]
    ConsumerGone {
        /// Committed frames that were never released.
        unread_frames: u32,
    },
    /// The consumer closed this lane.
    #[error(
        "the consumer closed this lane: it removed the lane, or found it corrupt; \
         look for stray writes, then join again"
    )]
    Closed,
    /// All rows of the producer table are taken.
    #[error(
        "{max} producers are open on this lane: drop some, or ask the consumer for another lane"
    )]
    TooManyProducers {
        /// Rows there are.
        max: usize,
    },
    /// Shared words contradict each other.
    #[error("lane {lane} is corrupt at frame {sequence}: {what}; the lane is closed, others go on")]
    Corrupt {
        /// Number of the lane.
        lane: u64,
        /// Sequence number of the descriptor at which it showed.
        sequence: u32,
        /// Which rule was broken.
        what: &'static str,
    },
    /// The frame is not held: it was released, or its lane ended.
    #[error("frame {frame} is not held: it was released before, or its lane has ended")]
    UnknownFrame {
        /// The id as a number.
        frame: u64,
    },
    /// The claim is not open: it was committed or aborted.
    #[error("claim {sequence} is not open: it was committed or aborted before")]
    UnknownClaim {
        /// Sequence number of its descriptor.
        sequence: u32,
    },
    /// The consumer has no lane of that number.
    #[error("there is no lane {lane} here: it has ended and was forgotten")]
    UnknownLane {
        /// The number.
        lane: u32,
    },
    /// The message on the socket is no valid invitation.
    #[error("no ring was received over this socket: {what}")]
    BadHandshake {
        /// What was wrong.
        what: &'static str,
    },
    /// The environment names no inherited socket.
    #[error(
        "{variable} is not set to a descriptor number: start this program with \
         Invitation::give_to(&mut command)"
    )]
    NoInheritedSocket {
        /// Name of the variable.
        variable: &'static str,
    },
    /// A system call failed.
    #[error("{operation} failed: {source}{}", advice(source))]
    Io {
        /// What was being done.
        operation: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl RingError {
    /// For `map_err`: an error of the system, with the operation that failed.
    pub(crate) fn io<E: Into<io::Error>>(operation: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { operation, source: source.into() }
    }
}

/// Advice for the usual errors of the system.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull => {
            "; ask for a smaller ring, or raise the memory limit"
        }
        io::ErrorKind::PermissionDenied => "; a sandbox or another user's process may forbid it",
        _ if matches!(error.raw_os_error(), Some(23 | 24)) => {
            "; raise the limit of open files (ulimit -n)"
        }
        _ => "",
    }
}
