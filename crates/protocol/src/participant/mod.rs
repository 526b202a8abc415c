//! The interface between a participant and its driver.
//!
//! The driver passes the time and the events of a participant to [`Participant::handle`], then
//! drains its [`Output`]s until it returns [`Output::Timeout`], which names the next deadline and
//! the reason for it. A participant has no access to sockets, clocks or runtimes. Everything it
//! sends goes over a [`Channel`] that it asked the driver to open, so that WebRTC (one datagram
//! channel and one WebSocket), RTSP (a stream, or a stream and pairs of datagram channels), HTTP
//! video (only downloads), a chat (a WebSocket) and a conference of a hundred media streams on one
//! WebSocket all fit the same loop.
//!
//! ```text
//! driver:  handle(now, Start) → poll_output … → handle(now, Opened…) → poll_output …
//!          → handle(now, Datagram…)
//! ```
//! Several inputs may be handled before the outputs are drained: the driver passes a whole batch of
//! datagrams and drains once.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

pub use throng_media::prefetch::{LEVELS as PREFETCH_LEVELS, Prefetcher};
use throng_observation::{Observation, Outcome};

mod channel_error;
mod channels;
mod fetches;

pub use channel_error::{ChannelError, Close};
pub use channels::{Message, Open, Opening, StreamPeer, TOLD, Transmit};
pub use fetches::{
    Demand, DownloadEvent, HttpVersion, IGNORED_EVERY, KeptPath, Request, Response, TransportState,
};

/// One member of the crowd.
pub trait Participant: Send {
    /// Handles an event. `now` never decreases.
    fn handle(&mut self, now: Instant, input: Input<'_>);

    /// The next output, or [`Output::Timeout`] when there is none until a deadline.
    ///
    /// After [`Output::Ended`] the driver drops the participant and closes its channels.
    fn poll_output(&mut self, now: Instant) -> Output;

    /// From now on datagrams may be passed so long after they arrived, without any order among
    /// participants: what arrived in the last `lag` before the `now` of a call may be still to
    /// come. 0 until the driver calls this. Whoever judges that a packet is missing judges as of
    /// then.
    fn receive_lag(&mut self, lag: Duration) {
        let _ = lag;
    }

    /// Names the memory that the next datagram will need beside this value itself: see
    /// [`throng_media::prefetch`]. Levels count from 0; this is called with one after the other,
    /// below [`PREFETCH_LEVELS`].
    fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        let _ = (level, prefetcher);
    }
}

/// A channel, numbered within its participant; the participant chooses the number when it opens the
/// channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u16);

/// An HTTP fetch, numbered within its participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u32);

/// An event for a participant.
#[derive(Debug)]
pub enum Input<'a> {
    /// Join now. `intended_at` is before `now` when the generator was late; latencies count from
    /// it.
    Start {
        /// The intended time of this join.
        intended_at: Instant,
    },
    /// A channel is open.
    Opened {
        /// Its number.
        channel: Channel,
        /// How it was opened, with the local and remote addresses.
        opening: Opening,
    },
    /// A datagram arrived. The participant may change it in place (decrypt it); the driver does not
    /// read it again.
    Datagram {
        /// The channel.
        channel: Channel,
        /// The sender's address.
        source: SocketAddr,
        /// The local address that received it, where the channel has several.
        local: Option<IpAddr>,
        /// When the kernel received it, on the clock of `now`; never later than `now`.
        arrived_at: Instant,
        /// The datagram's payload.
        bytes: &'a mut [u8],
    },
    /// Bytes of a stream channel arrived.
    Bytes {
        /// The channel.
        channel: Channel,
        /// The next bytes, in order.
        bytes: &'a [u8],
    },
    /// A write on a stream channel has waited because the peer did not read, or the line was too
    /// slow.
    Blocked {
        /// The channel.
        channel: Channel,
        /// How long.
        duration: Duration,
    },
    /// A complete WebSocket message arrived.
    Message {
        /// The channel.
        channel: Channel,
        /// The message.
        message: Message,
    },
    /// A channel could not be opened, or was closed; it reports nothing further.
    Closed {
        /// Its number.
        channel: Channel,
        /// The reason.
        why: ChannelError,
    },
    /// A fetch ended.
    Fetched {
        /// Its number.
        fetch: FetchId,
        /// The response, or why there is none.
        result: Result<Response, ChannelError>,
    },
    /// Something of a download arrived.
    Download {
        /// The download.
        fetch: FetchId,
        /// What.
        event: DownloadEvent<'a>,
    },
    /// The deadline of the last [`Output::Timeout`] has passed.
    Timeout,
    /// Leave in an orderly way, like a closed browser tab: sign off, then output [`Output::Ended`].
    Leave {
        /// Whether other participants will join the same room, so that it must not be destroyed.
        others_follow: bool,
    },
}

impl Input<'_> {
    /// The channel of the event.
    #[must_use]
    pub fn channel(&self) -> Option<Channel> {
        match self {
            Self::Opened { channel, .. }
            | Self::Datagram { channel, .. }
            | Self::Bytes { channel, .. }
            | Self::Blocked { channel, .. }
            | Self::Message { channel, .. }
            | Self::Closed { channel, .. } => Some(*channel),
            Self::Start { .. }
            | Self::Fetched { .. }
            | Self::Download { .. }
            | Self::Timeout
            | Self::Leave { .. } => None,
        }
    }
}

/// A request or report of a participant to its driver.
#[derive(Debug)]
pub enum Output {
    /// Open a channel; answered by [`Input::Opened`] or [`Input::Closed`].
    Open(Channel, Open),
    /// Send a datagram, or bytes on a stream.
    Send(Channel, Transmit),
    /// Send a message on a WebSocket.
    Signal(Channel, Message),
    /// Close a channel after everything queued on it is sent.
    Close(Channel),
    /// Fetch over HTTP; answered by [`Input::Fetched`].
    Fetch(FetchId, Box<Request>),
    /// Request over HTTP and read the body bit by bit: answered by [`Input::Download`], with the
    /// head, then with as much of the body as [`Output::Demand`] asks for, then with its end.
    /// Without demand nothing is read, so that flow control (the TCP window, or that of HTTP/2 or
    /// QUIC) holds the server back, as a player does whose buffer is full. The request's timeout is
    /// that of the head, and includes the wait for a connection where all six HTTP/1.1 connections
    /// to the origin are in use; the participant has its own deadlines for the body, and cancels.
    Download(FetchId, Box<Request>, HttpVersion),
    /// Read this much more of a download's body, after what was demanded before. May precede the
    /// head. The end of a body is reported without further demand where `Content-Length` tells that
    /// no byte is left; without it (chunked), the end is found by reading, so that a participant
    /// that wants all of it demands more than there is.
    Demand(FetchId, Demand),
    /// Give up a download: its connection is closed (HTTP/1.1), or the stream is reset (HTTP/2,
    /// HTTP/3). No further input of it follows.
    Cancel(FetchId),
    /// An observation for the collector.
    Observed(Observation),
    /// The session is over.
    Ended(Outcome),
    /// Nothing to do before this moment unless an input arrives.
    Timeout(Instant, Why),
}

impl Output {
    /// Nothing to do before a deadline. One that has passed without any work would make the driver
    /// spin.
    #[inline]
    pub(crate) fn wait(now: Instant, (at, why): (Instant, Why)) -> Self {
        Self::Timeout(at.max(now + Duration::from_millis(1)), why)
    }
}

/// Longer than any run: a participant that waits for nothing but an input waits so long.
pub(crate) const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The reason of a deadline, shown in traces of a participant that is stuck.
pub type Why = &'static str;
