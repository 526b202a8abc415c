//! One allocation on a TURN server (RFC 8656): a relay to a peer that cannot be reached directly.
//!
//! `turn-client-proto` implements the TURN protocol; framing of streams and forwarding of media
//! packets are implemented here, because that library does not support the padding of RFC 8656
//! section 12.5 and would copy partial frames.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use throng_scenario::{RelayTransport, Secret};
use turn_client_proto::api::{
    Transmit, TurnClientApi, TurnConfig, TurnEvent, TurnPollRet, TurnRecvRet,
};
use turn_client_proto::client::TurnClient;
use turn_client_proto::stun::Instant as TurnInstant;
use turn_client_proto::stun::types::attribute::ErrorCode;
use turn_client_proto::stun::types::message::{Message as StunMessage, MessageClass};
use turn_client_proto::tcp::TurnClientTcp;
use turn_client_proto::types::{AddressFamily, TransportType, TurnCredentials};
use turn_client_proto::udp::TurnClientUdp;

mod frames;
pub use frames::{Frames, NotTurn, is_turn_frame};

#[cfg(test)]
pub(super) mod tests;

/// How many peer addresses one relay is asked to permit; further ones are ignored.
const PEERS_MAX: usize = 32;
/// First retransmission of a request to the relay (RFC 8489 section 6.2.1).
const FIRST_REPEAT: Duration = Duration::from_millis(500);
/// Sent at 0, 0.5, 1.5 and 3.5 s: a relay that does not respond for longer would not carry a stream
/// either.
const REPEATS: u32 = 4;
/// How long to wait for the response to the last request.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// Longer than the library's pause between two requests.
const PAST_CADENCE: Duration = Duration::from_secs(1);
/// How often the library is polled at once; two or three times suffice.
const ROUNDS_MAX: usize = 64;
/// The library's deadline when it has nothing to do.
const IDLE: Duration = Duration::from_secs(9_999);

/// A TURN server and the credential for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayAccount {
    /// The TURN server.
    pub server: SocketAddr,
    /// The transport to it.
    pub transport: RelayTransport,
    /// Long-term credential user name.
    pub username: String,
    /// Long-term credential password.
    pub credential: Secret,
}

/// A request or report of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayOutput {
    /// Send these bytes to the TURN server: one datagram, or the next of the stream.
    Send(Vec<u8>),
    /// The relayed address was allocated; it is a local candidate.
    Allocated(SocketAddr),
    /// A refused request that leaves the relay usable.
    Anomaly(String),
    /// The relay cannot be used, or no longer.
    Failed(String),
}

/// One allocation on a TURN server.
pub struct Relay {
    client: TurnClient,
    server: SocketAddr,
    local: SocketAddr,
    is_stream: bool,
    /// Zero on the library's clock.
    base: Instant,
    relayed: Option<SocketAddr>,
    peers: Vec<SocketAddr>,
    next_at: Instant,
    /// The last error response of the server before the allocation: code and reason phrase.
    refused: Option<(u16, String)>,
    over: bool,
    outputs: VecDeque<RelayOutput>,
}

impl Relay {
    /// Requests an allocation over a channel that is open from `local`. The relayed address has the
    /// same family as the server's address.
    #[must_use]
    pub fn new(now: Instant, local: SocketAddr, account: &RelayAccount) -> Self {
        let server = account.server;
        let mut config =
            TurnConfig::new(TurnCredentials::new(&account.username, account.credential.expose()));
        config.set_request_retransmits(FIRST_REPEAT, Duration::MAX, REPEATS, LAST_WAIT);
        if server.is_ipv6() {
            config.set_address_family(AddressFamily::IPV6);
        }
        let is_stream = account.transport.is_stream();
        let client = if is_stream {
            TurnClient::Tcp(TurnClientTcp::allocate(local, server, config))
        } else {
            TurnClient::Udp(TurnClientUdp::allocate(local, server, config))
        };
        let mut relay = Self {
            client,
            server,
            local,
            is_stream,
            base: now,
            relayed: None,
            peers: Vec::new(),
            next_at: now,
            refused: None,
            over: false,
            outputs: VecDeque::new(),
        };
        relay.timeout(now);
        relay
    }

    /// The address that peers see, once allocated.
    #[must_use]
    pub fn relayed(&self) -> Option<SocketAddr> {
        self.relayed
    }

    /// The TURN server.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// The local address of the channel to the TURN server.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Permits `peer` in both directions (ChannelBind, RFC 8656 section 11), as soon as there is an
    /// allocation.
    pub fn permit(&mut self, now: Instant, peer: SocketAddr) {
        let same_family = peer.is_ipv4() == self.server.is_ipv4();
        if !same_family || self.peers.contains(&peer) || self.peers.len() == PEERS_MAX {
            return;
        }
        self.peers.push(peer);
        if self.relayed.is_some() {
            self.bind(now, peer);
            self.timeout(now);
        }
    }

    fn bind(&mut self, now: Instant, peer: SocketAddr) {
        let at = self.turn_time(now);
        if let Err(error) = self.client.bind_channel(TransportType::Udp, peer, at) {
            self.outputs.push_back(RelayOutput::Anomaly(format!("no channel to {peer}: {error}")));
        }
    }

    /// Handles one frame from the TURN server: a datagram, or one that [`Frames`] extracted from
    /// the stream. For data of a peer, returns the peer and the range of its datagram in the frame.
    pub fn receive(&mut self, now: Instant, frame: &[u8]) -> Option<(SocketAddr, Range<usize>)> {
        if self.over || !is_turn_frame(frame) {
            return None;
        }
        let at = self.turn_time(now);
        let carried_by = if self.is_stream { TransportType::Tcp } else { TransportType::Udp };
        let transmit = Transmit::new(frame, carried_by, self.server, self.local);
        let client = &mut self.client;
        // A panic of the library on a server's data costs this relay, not the run.
        let received = catch_unwind(AssertUnwindSafe(|| match client.recv(transmit, at) {
            TurnRecvRet::PeerData(from) => {
                within(frame, from.data()).map(|range| (from.peer, range))
            }
            TurnRecvRet::Handled | TurnRecvRet::Ignored(_) | TurnRecvRet::PeerIcmp { .. } => None,
        }));
        match received {
            Ok(Some(data)) => Some(data),
            Ok(None) => {
                self.note_refusal(frame);
                self.timeout(now);
                None
            }
            Err(_) => {
                self.fail("the TURN library failed on what the server sent");
                None
            }
        }
    }

    /// `datagram` for `peer` as sent to the TURN server; `None` while that peer is not permitted.
    pub fn wrap(&mut self, now: Instant, peer: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        if self.over {
            return None;
        }
        let at = self.turn_time(now);
        let built =
            self.client.send_to(TransportType::Udp, peer, datagram, at).ok().flatten()?.build();
        let mut bytes = built.data;
        if self.is_stream {
            // RFC 8656 section 12.5: over a stream ChannelData is padded to a multiple of four.
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        Some(bytes)
    }

    /// The deadline of [`Self::next_timeout`] has passed: sends refreshes and retransmissions.
    pub fn timeout(&mut self, now: Instant) {
        if self.over {
            return;
        }
        let at = self.turn_time(now);
        for _ in 0..ROUNDS_MAX {
            let wait = self.client.poll(at);
            self.take_transmits(at);
            while let Some(event) = self.client.poll_event() {
                self.happened(now, &event);
            }
            match wait {
                TurnPollRet::WaitUntil(until) if until > at => {
                    let wait = until.saturating_duration_since(at).min(IDLE);
                    self.next_at = now + wait;
                    return;
                }
                TurnPollRet::WaitUntil(_) => {}
                TurnPollRet::Closed => return self.fail_allocation(),
                // These belong to TCP allocations, which are not requested.
                TurnPollRet::AllocateTcpSocket { .. } | TurnPollRet::TcpClose { .. } => {}
            }
        }
        // The library wants to be polled again without progress: retry a moment later.
        self.next_at = now + Duration::from_millis(10);
    }

    fn take_transmits(&mut self, at: TurnInstant) {
        while let Some(transmit) = self.client.poll_transmit(at) {
            self.outputs.push_back(RelayOutput::Send(transmit.data.to_vec()));
        }
    }

    fn happened(&mut self, now: Instant, event: &TurnEvent) {
        match *event {
            TurnEvent::AllocationCreated(TransportType::Udp, relayed) => {
                self.relayed = Some(relayed);
                self.outputs.push_back(RelayOutput::Allocated(relayed));
                for at in 0..self.peers.len() {
                    self.bind(now, self.peers[at]);
                }
            }
            TurnEvent::AllocationCreateFailed(_) => self.fail_allocation(),
            TurnEvent::ChannelCreateFailed(_, peer) => {
                // Without a channel, Send and Data indications carry the same data at 36 bytes per
                // packet.
                let at = self.turn_time(now);
                let permitted =
                    self.client.create_permission(TransportType::Udp, peer.ip(), at).is_ok();
                let hope = if permitted { "; a permission is requested" } else { "" };
                self.outputs.push_back(RelayOutput::Anomaly(format!("no channel to {peer}{hope}")));
            }
            TurnEvent::PermissionCreateFailed(_, peer) => {
                self.outputs
                    .push_back(RelayOutput::Anomaly(format!("the relay does not permit {peer}")));
            }
            TurnEvent::AllocationCreated(..)
            | TurnEvent::PermissionCreated(..)
            | TurnEvent::ChannelCreated(..)
            | TurnEvent::TcpConnected(_)
            | TurnEvent::TcpConnectFailed(_) => {}
        }
    }

    /// Keeps an error response to an allocation request. The first 401 asks for credentials; the
    /// second refuses them, which the library would detect only by timeout.
    fn note_refusal(&mut self, frame: &[u8]) {
        if self.relayed.is_some() {
            return;
        }
        let Ok(message) = StunMessage::from_bytes(frame) else { return };
        if !message.has_class(MessageClass::Error) {
            return;
        }
        let Ok(error) = message.attribute::<ErrorCode>() else { return };
        let words = error.reason().chars().filter(|c| !c.is_control()).take(80).collect();
        let before = self.refused.replace((error.code(), words));
        if before.is_some_and(|(code, _)| code == ErrorCode::UNAUTHORIZED)
            && error.code() == ErrorCode::UNAUTHORIZED
        {
            self.fail_allocation();
        }
    }

    fn fail_allocation(&mut self) {
        let why = match &self.refused {
            Some((code, words)) => format!("no allocation: {code} {words}"),
            None => "no allocation: no answer".to_owned(),
        };
        self.fail(&why);
    }

    fn fail(&mut self, why: &str) {
        if !self.over {
            self.over = true;
            self.relayed = None;
            self.outputs.push_back(RelayOutput::Failed(why.to_owned()));
        }
    }

    /// Releases the allocation (Refresh with lifetime 0), without waiting for the response.
    pub fn close(&mut self, now: Instant) {
        let at = self.turn_time(now);
        if !self.over && self.client.delete(at).is_ok() {
            let later = self.turn_time(now + PAST_CADENCE);
            self.take_transmits(later);
        }
        self.over = true;
        self.relayed = None;
    }

    /// The next output, or `None`.
    pub fn poll_output(&mut self) -> Option<RelayOutput> {
        self.outputs.pop_front()
    }

    /// When it next needs [`Self::timeout`]; `None` when it is closed.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        (!self.over).then_some(self.next_at)
    }

    fn turn_time(&self, now: Instant) -> TurnInstant {
        let passed = now.saturating_duration_since(self.base).as_nanos();
        TurnInstant::from_nanos(i64::try_from(passed).unwrap_or(i64::MAX))
    }
}

/// The range of `part`, a slice of `whole`, within it.
fn within(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}
