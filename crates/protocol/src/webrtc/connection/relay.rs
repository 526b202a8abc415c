//! The TURN relay of a connection, from the scenario or signalling: in addition to direct
//! candidates, as in browsers, where ICE chooses; or alone, as in a browser with
//! `iceTransportPolicy: "relay"`.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{FailureReason, MediaPath, Observation, RefusedDestination};
use throng_scenario::{IpProtocol, RelayTransport, TurnUri};

use super::{Connection, ConnectionOutput, Socket, State, Via};
use crate::excerpt::excerpt;
use crate::participant::{Open, Opening, StreamPeer, Transmit};
use crate::signalling::RelayServer;
use crate::webrtc::relay::{Frames, Relay, RelayAccount, RelayOutput};

/// How many peer addresses are kept for a relay that is not allocated yet.
const PEERS_MAX: usize = 32;

/// The state of the relay.
#[derive(Default)]
pub(super) enum RelayState {
    /// No relay is configured or announced.
    #[default]
    None,
    /// Its channel is being opened.
    Opening { account: RelayAccount, peers: Vec<SocketAddr> },
    /// Its channel is open for TURN.
    Open { relay: Box<Relay>, frames: Frames, path: MediaPath },
    /// It failed, or was released.
    Over,
}

impl RelayState {
    pub(super) fn was_named(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The relayed address, and the local address toward the relay.
    pub(super) fn allocated(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Open { relay, .. } => Some((relay.relayed()?, relay.local())),
            _ => None,
        }
    }

    /// The media path through it.
    pub(super) fn path(&self) -> Option<MediaPath> {
        match self {
            Self::Open { path, .. } => Some(*path),
            _ => None,
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Open { relay, .. } => relay.next_timeout(),
            _ => None,
        }
    }

    /// A datagram for `peer` as sent to the TURN server, and that server's address; `None` while
    /// the peer is not permitted.
    pub(super) fn wrap(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        datagram: &[u8],
    ) -> Option<(SocketAddr, Vec<u8>)> {
        let Self::Open { relay, .. } = self else { return None };
        Some((relay.server(), relay.wrap(now, peer, datagram)?))
    }

    /// Whether it may still yield a local candidate.
    fn is_pending(&self) -> bool {
        match self {
            Self::Opening { .. } => true,
            Self::Open { relay, .. } => relay.relayed().is_none(),
            Self::None | Self::Over => false,
        }
    }
}

impl Connection {
    /// Signalling announces a TURN server. One in the scenario takes precedence.
    pub(in crate::webrtc) fn relay_announced(&mut self, server: RelayServer) {
        if self.config.options.turn.is_none() {
            self.open_relay(server);
        }
    }

    /// Opens the channel to the scenario's TURN server.
    pub(super) fn open_turn(&mut self) {
        if let (Some(turn), RelayState::None) = (&self.config.options.turn, &self.transport.relay) {
            self.open_relay(turn.clone());
        }
    }

    /// Opens the channel to a relay. A host name is accepted only if it is that of the signalling
    /// server, whose address is known: participants do not resolve names, and in a guarded run a
    /// name could point to any host.
    fn open_relay(&mut self, server: RelayServer) {
        let uri = match TurnUri::parse(&server.url) {
            Ok(uri) => uri,
            Err(error) => {
                return self.anomaly("relay", format!("{}: {error}", excerpt(&server.url)));
            }
        };
        let named = self.server.filter(|_| server.is_signalling_host).map(|address| address.ip());
        let Some(address) = uri.address(named) else {
            let what =
                "names another host than the signalling URL, and relay names are not resolved";
            return self.anomaly("relay", format!("{} {what}", excerpt(&server.url)));
        };
        let protocol = if uri.transport.is_stream() { IpProtocol::Tcp } else { IpProtocol::Udp };
        if !(self.config.options.may_reach)(protocol, address) {
            return self.observe(Observation::Refused(RefusedDestination::IceServer, address));
        }
        if self.transport.relay.was_named() {
            let detail = format!("{} is not used: one relay is enough", excerpt(&server.url));
            return self.anomaly("relay", detail);
        }
        let open = match &uri.transport {
            RelayTransport::Udp => {
                Open::Datagrams { toward: vec![address], otherwise: None, gathers: false }
            }
            RelayTransport::Tcp => Open::Stream { to: StreamPeer::Address(address), tls: None },
            RelayTransport::Tls(name) => {
                Open::Stream { to: StreamPeer::Address(address), tls: Some(name.clone()) }
            }
        };
        let RelayServer { username, credential, .. } = server;
        let account =
            RelayAccount { server: address, transport: uri.transport, username, credential };
        self.transport.relay = RelayState::Opening { account, peers: Vec::new() };
        self.transport.open(Socket::Relay, open);
    }

    pub(super) fn relay_opened(&mut self, now: Instant, opening: &Opening) {
        let RelayState::Opening { account, peers } = &self.transport.relay else { return };
        let Some(local) = opening.local else {
            return self.relay_closed(now, "its channel has no local address");
        };
        let path = match account.transport {
            RelayTransport::Udp => MediaPath::RelayUdp,
            RelayTransport::Tcp => MediaPath::RelayTcp,
            RelayTransport::Tls(_) => MediaPath::RelayTls,
        };
        let mut relay = Relay::new(now, local, account);
        peers.iter().for_each(|peer| relay.permit(now, *peer));
        self.transport.relay =
            RelayState::Open { relay: Box::new(relay), frames: Frames::default(), path };
        self.drain_relay(now);
    }

    /// Requests permission for a peer, if it is an allowed target.
    pub(super) fn permit_peer(&mut self, now: Instant, peer: SocketAddr) {
        match &mut self.transport.relay {
            RelayState::Opening { peers, .. } if peers.len() < PEERS_MAX => peers.push(peer),
            RelayState::Open { relay, .. } => {
                relay.permit(now, peer);
                self.drain_relay(now);
            }
            _ => {}
        }
    }

    pub(super) fn relay_bytes(&mut self, now: Instant, bytes: &[u8]) {
        // The frames are moved out while the connection handles them, so that media is decrypted in
        // place.
        let RelayState::Open { frames, .. } = &mut self.transport.relay else { return };
        let mut cut = std::mem::take(frames);
        cut.push(bytes);
        loop {
            match cut.next_frame() {
                Ok(Some(frame)) => self.relay_frame(now, now, frame),
                Ok(None) => break,
                Err(error) => return self.relay_closed(now, &error.to_string()),
            }
        }
        if let RelayState::Open { frames, .. } = &mut self.transport.relay {
            *frames = cut;
        }
    }

    pub(super) fn relay_datagram(
        &mut self,
        now: Instant,
        source: SocketAddr,
        arrived_at: Instant,
        bytes: &mut [u8],
    ) {
        if let RelayState::Open { relay, .. } = &self.transport.relay
            && relay.server() == source
        {
            self.relay_frame(now, arrived_at, bytes);
        }
    }

    fn relay_frame(&mut self, now: Instant, arrived_at: Instant, frame: &mut [u8]) {
        let RelayState::Open { relay, .. } = &mut self.transport.relay else { return };
        let relayed = relay.relayed();
        let Some((peer, range)) = relay.receive(now, frame) else { return self.drain_relay(now) };
        if let (Some(local), Some(datagram)) = (relayed, frame.get_mut(range)) {
            self.datagram(now, (Via::Relay, Some(local)), peer, arrived_at, datagram);
        }
    }

    pub(super) fn tick_relay(&mut self, now: Instant) {
        if let RelayState::Open { relay, .. } = &mut self.transport.relay
            && relay.next_timeout().is_some_and(|at| now >= at)
        {
            relay.timeout(now);
            self.drain_relay(now);
        }
    }

    fn drain_relay(&mut self, now: Instant) {
        while let RelayState::Open { relay, .. } = &mut self.transport.relay {
            let (to, local) = (relay.server(), relay.local());
            match relay.poll_output() {
                None => return,
                Some(RelayOutput::Send(bytes)) => {
                    self.transport.send_on(Socket::Relay, Transmit { to, from: None, bytes });
                }
                Some(RelayOutput::Allocated(relayed)) => self.relay_allocated(now, relayed, local),
                Some(RelayOutput::Anomaly(detail)) => self.anomaly("relay", detail),
                Some(RelayOutput::Failed(why)) => {
                    self.transport.close_relay();
                    self.relay_closed(now, &why);
                }
            }
        }
    }

    fn relay_allocated(&mut self, now: Instant, relayed: SocketAddr, local: SocketAddr) {
        // Before the session exists, its description will contain the candidate.
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return;
        };
        match peer.session.add_relayed_candidate(relayed, local) {
            Ok(line) => {
                self.transport.outputs.push_back(ConnectionOutput::Candidate(line));
                self.no_more_candidates();
                self.drain(now);
            }
            Err(error) => self.anomaly("relay", error.to_string()),
        }
    }

    /// Signals end-of-candidates, once.
    pub(super) fn no_more_candidates(&mut self) {
        let has_session = matches!(self.state, State::Connecting { .. } | State::Playing { .. });
        if has_session && !self.candidates_done && !self.transport.relay.is_pending() {
            self.candidates_done = true;
            self.transport.outputs.push_back(ConnectionOutput::CandidatesDone);
        }
    }

    /// Continues without the relay, unless media came through it.
    pub(super) fn relay_closed(&mut self, now: Instant, why: &str) {
        if matches!(self.transport.relay, RelayState::None | RelayState::Over) {
            return;
        }
        self.transport.relay = RelayState::Over;
        if self.is_playing() && matches!(self.remote, Some((Via::Relay, _))) {
            return self.fail(now, FailureReason::MediaLost, &format!("the relay was lost: {why}"));
        }
        if self.config.options.relay_only {
            let detail = format!("the relay, the only path allowed: {why}");
            return self.fail(now, FailureReason::Ice, &detail);
        }
        self.anomaly("relay", why);
        self.no_more_candidates();
    }

    /// Releases the allocation.
    pub(super) fn leave_relay(&mut self, now: Instant) {
        match std::mem::replace(&mut self.transport.relay, RelayState::Over) {
            RelayState::Open { mut relay, .. } => {
                relay.close(now);
                let to = relay.server();
                while let Some(output) = relay.poll_output() {
                    if let RelayOutput::Send(bytes) = output {
                        self.transport.send_on(Socket::Relay, Transmit { to, from: None, bytes });
                    }
                }
                self.transport.close_relay();
            }
            RelayState::Opening { .. } => self.transport.close_relay(),
            RelayState::None | RelayState::Over => {}
        }
    }
}
