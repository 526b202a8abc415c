//! The transports: one file each, behind two small traits; everything else is common to all.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use serde::{Deserialize, Serialize};

use crate::frame::FrameHeader;

mod kind;
pub use kind::Transport;

mod ring;
pub(crate) use ring::bytes as ring_bytes;

mod stream;

mod seqpacket;

mod vmsplice;
pub(crate) use vmsplice::slots as splice_slots;

mod websocket;

pub(crate) mod gstreamer;
pub use gstreamer::load_gstreamer;

#[cfg(feature = "iceoryx2")]
mod iceoryx;

/// Why a transport could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The machine lacks something; the message says what to install or to allow.
    #[error("{0}")]
    Missing(String),
    /// A system call failed.
    #[error("{operation}: {error}")]
    System {
        /// The operation.
        operation: &'static str,
        /// Its error.
        error: io::Error,
    },
    /// A library failed.
    #[error("{operation}: {reason}")]
    Library {
        /// The operation.
        operation: &'static str,
        /// Its error.
        reason: String,
    },
    /// A frame was lost or changed.
    #[error("producer {producer}, frame {sequence}: {reason}")]
    Frame {
        /// Counted from 0.
        producer: u8,
        /// Counted from 0.
        sequence: u64,
        /// The difference.
        reason: String,
    },
    /// A process of the measurement failed.
    #[error("the {role} {reason}")]
    Role {
        /// Which role.
        role: String,
        /// How it failed.
        reason: String,
    },
}

/// A library failed at `operation`.
pub(crate) fn failed(operation: &'static str, reason: impl std::fmt::Display) -> TransportError {
    TransportError::Library { operation, reason: reason.to_string() }
}

/// Adds the operation to an `io::Result`.
pub(crate) trait IoContext<T> {
    fn context(self, operation: &'static str) -> Result<T, TransportError>;
}

impl<T, E: Into<io::Error>> IoContext<T> for Result<T, E> {
    fn context(self, operation: &'static str) -> Result<T, TransportError> {
        self.map_err(|error| TransportError::System { operation, error: error.into() })
    }
}

/// A frame to be sent.
pub(crate) struct Outgoing<'a> {
    pub(crate) header: FrameHeader,
    /// The frame in the producer's memory, with header and tail.
    pub(crate) bytes: &'a [u8],
    /// Its slot in the producer's pool; slots are reused in turn.
    pub(crate) slot: usize,
}

/// The producer's side of a transport.
pub(crate) trait Sender {
    /// Sends one frame; waits while the transport is full.
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError>;
}

/// Result of [`Receiver::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// A frame was received.
    Frame,
    /// The other side closed.
    Closed,
}

/// The consumer's side of a transport; one for each producer, or one for all.
pub(crate) trait Receiver: Send {
    /// Waits for a frame and passes it in place: in shared memory, or in a buffer of the
    /// receiver's.
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<Received, TransportError>;
}

/// One end of a transport: an inherited descriptor, an address, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) fd: Option<RawFd>,
    pub(crate) address: Option<String>,
}

/// What a role needs to open its side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Side {
    pub(crate) transport: Transport,
    /// A producer has one; a consumer one for each producer, or one for all.
    pub(crate) ends: Vec<End>,
    pub(crate) producers: u8,
    /// Which of them; 0 for a consumer.
    pub(crate) producer: u8,
    /// The largest frame, bytes.
    pub(crate) frame_bytes_max: usize,
    /// Number of slots in a producer's pool.
    pub(crate) slots: usize,
}

/// The operation that fails where a role was given too little.
const OPENING: &str = "opening the transport";

impl Side {
    fn end(&self) -> Result<&End, TransportError> {
        self.ends.first().ok_or_else(|| failed(OPENING, "the role was given nothing to open"))
    }
}

impl End {
    /// Takes the inherited descriptor; to be called once.
    fn take_fd(&self) -> Result<OwnedFd, TransportError> {
        use std::os::fd::FromRawFd;
        let fd = self.fd.filter(|fd| *fd > 2);
        let fd = fd.ok_or_else(|| failed(OPENING, "the role was given no descriptor"))?;
        // SAFETY: the process was started with this descriptor for this use, and nothing else in it
        // knows the number.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn address(&self) -> Result<&str, TransportError> {
        self.address.as_deref().ok_or_else(|| failed(OPENING, "the role was given no address"))
    }
}

/// What the harness prepares before it starts the roles.
#[derive(Default)]
pub(crate) struct Wiring {
    /// For each producer.
    pub(crate) producers: Vec<End>,
    /// For the consumer.
    pub(crate) consumer: Vec<End>,
    /// Descriptors that the ends name; closed in this process once the roles have them.
    pub(crate) fds: Vec<OwnedFd>,
    /// Folder of named sockets; removed with its contents.
    pub(crate) folder: Option<tempfile::TempDir>,
}

impl Wiring {
    /// Adds a connected pair: the producer's descriptor, then the consumer's.
    fn pair(&mut self, producer: OwnedFd, consumer: OwnedFd) {
        let end = |fd: &OwnedFd| End { fd: Some(fd.as_raw_fd()), address: None };
        self.producers.push(end(&producer));
        self.consumer.push(end(&consumer));
        self.fds.extend([producer, consumer]);
    }
}

/// Prepares the endpoints of both sides of `transport`.
pub(crate) fn wire(transport: Transport, producers: u8) -> Result<Wiring, TransportError> {
    let mut wiring = Wiring::default();
    for _ in 0..producers {
        match transport {
            Transport::Memcpy | Transport::Fill => {}
            Transport::Vmsplice | Transport::Pipe => stream::pipe(&mut wiring)?,
            Transport::Ring | Transport::RingInPlace => ring::wire(&mut wiring)?,
            Transport::UnixStream => stream::unix(&mut wiring)?,
            Transport::UnixSeqpacket => seqpacket::pair(&mut wiring)?,
            Transport::Tcp | Transport::WebsocketUnmasked | Transport::Websocket => {
                stream::tcp(&mut wiring)?;
            }
            // The Python process listens and says where.
            Transport::WebsocketPython => wiring.producers.push(End::default()),
            Transport::GstreamerShm => gstreamer::wire(&mut wiring)?,
            Transport::Iceoryx2 => wire_iceoryx(&mut wiring)?,
        }
    }
    Ok(wiring)
}

/// Opens the producer's side.
pub(crate) fn sender(side: &Side) -> Result<Box<dyn Sender>, TransportError> {
    Ok(match side.transport {
        Transport::Memcpy | Transport::Fill => return Err(no_peer()),
        Transport::Ring | Transport::RingInPlace => Box::new(ring::Writer::open(side)?),
        Transport::Vmsplice => Box::new(vmsplice::Splicer::open(side)?),
        Transport::Pipe | Transport::UnixStream | Transport::Tcp => {
            Box::new(stream::Writer::open(side)?)
        }
        Transport::UnixSeqpacket => Box::new(seqpacket::Writer::open(side)?),
        Transport::WebsocketUnmasked | Transport::Websocket | Transport::WebsocketPython => {
            Box::new(websocket::Client::open(side)?)
        }
        Transport::GstreamerShm => Box::new(gstreamer::Sink::open(side)?),
        Transport::Iceoryx2 => open_iceoryx_sender(side)?,
    })
}

/// Opens the consumer's side.
pub(crate) fn receivers(side: &Side) -> Result<Vec<Box<dyn Receiver>>, TransportError> {
    // These have one receiver for all producers.
    match side.transport {
        Transport::Iceoryx2 => return open_iceoryx_receiver(side),
        Transport::Ring | Transport::RingInPlace => {
            return Ok(vec![Box::new(ring::Reader::open(side)?)]);
        }
        _ => {}
    }
    side.ends
        .iter()
        .map(|end| {
            Ok(match side.transport {
                Transport::Vmsplice | Transport::Pipe | Transport::UnixStream | Transport::Tcp => {
                    Box::new(stream::Reader::open(end, side)?) as Box<dyn Receiver>
                }
                Transport::UnixSeqpacket => Box::new(seqpacket::Reader::open(end, side)?),
                Transport::WebsocketUnmasked | Transport::Websocket => {
                    Box::new(websocket::Server::open(end, side)?)
                }
                Transport::GstreamerShm => Box::new(gstreamer::Source::open(end)?),
                Transport::Memcpy
                | Transport::Fill
                | Transport::WebsocketPython
                | Transport::Iceoryx2
                | Transport::Ring
                | Transport::RingInPlace => return Err(no_peer()),
            })
        })
        .collect()
}

fn no_peer() -> TransportError {
    failed(OPENING, "this role has no such side")
}

#[cfg(feature = "iceoryx2")]
use iceoryx::{
    open_receiver as open_iceoryx_receiver, open_sender as open_iceoryx_sender,
    wire as wire_iceoryx,
};

#[cfg(not(feature = "iceoryx2"))]
mod without_iceoryx {
    use super::{Receiver, Sender, Side, TransportError, Wiring};

    fn missing() -> TransportError {
        TransportError::Missing("built without it: build with `--features iceoryx2`".into())
    }

    pub(super) fn wire_iceoryx(_: &mut Wiring) -> Result<(), TransportError> {
        Err(missing())
    }

    pub(super) fn open_iceoryx_sender(_: &Side) -> Result<Box<dyn Sender>, TransportError> {
        Err(missing())
    }

    pub(super) fn open_iceoryx_receiver(
        _: &Side,
    ) -> Result<Vec<Box<dyn Receiver>>, TransportError> {
        Err(missing())
    }
}
#[cfg(not(feature = "iceoryx2"))]
use without_iceoryx::{open_iceoryx_receiver, open_iceoryx_sender, wire_iceoryx};
