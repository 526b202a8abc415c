//! How a viewer uses the relay that its server announced: beside the direct way, as browsers do, and ICE chooses; or alone,
//! as a browser does that is told `iceTransportPolicy: "relay"`.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{FailureReason, MediaPath, Observation, RefusedDestination};

use super::{RELAY, State, Via, Viewer};
use crate::participant::{Open, Opening, Output, Transmit};
use crate::signalling::{RelayServer, SignalInput};
use crate::webrtc::relay::{Frames, Relay, RelayAccount, RelayOutput, RelayTransport, TurnUri};

/// Addresses of the peer that are remembered for a relay that is not there yet.
const PEERS_MAX: usize = 32;

/// Where the use of a relay stands.
#[derive(Default)]
pub(super) enum Relaying {
    /// None was announced.
    #[default]
    None,
    /// The channel to it is being opened.
    Opening { account: RelayAccount, peers: Vec<SocketAddr> },
    /// TURN is spoken.
    Open { relay: Box<Relay>, frames: Frames, path: MediaPath },
    /// It failed, or was given back.
    Over,
}

impl Relaying {
    /// The relayed address, and ours toward the relay.
    pub(super) fn allocated(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Open { relay, .. } => Some((relay.relayed()?, relay.local())),
            _ => None,
        }
    }

    /// The way of media through it.
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

    /// Whether a candidate of ours may still come from it.
    fn is_pending(&self) -> bool {
        match self {
            Self::Opening { .. } => true,
            Self::Open { relay, .. } => relay.relayed().is_none(),
            Self::None | Self::Over => false,
        }
    }
}

impl Viewer {
    /// Opens the channel to a relay. A name is only followed when it is the signalling server's own, whose address is
    /// known: participants do not resolve, and a name that anybody could point anywhere is not for a guarded run.
    pub(super) fn relay_announced(&mut self, server: RelayServer) {
        let place = match TurnUri::parse(&server.url) {
            Ok(place) => place,
            Err(error) => return self.anomaly("relay", format!("{}: {error}", excerpt(&server.url))),
        };
        let named = self.server.filter(|_| server.is_signalling_host).map(|address| address.ip());
        let Some(address) = place.address(named) else {
            let what = "names another host than the signalling's, and relays are not looked up by name";
            return self.anomaly("relay", format!("{} {what}", excerpt(&server.url)));
        };
        if !(self.options.may_reach)(address.ip()) {
            return self.observe(Observation::Refused(RefusedDestination::IceServer, address));
        }
        if !matches!(self.relaying, Relaying::None) {
            return self
                .anomaly("relay", format!("{} is not used: one relay is enough", excerpt(&server.url)));
        }
        let open = match &place.transport {
            RelayTransport::Udp => Open::Datagrams { toward: vec![address], otherwise: None, gathers: false },
            RelayTransport::Tcp => Open::Stream { to: address, tls: None },
            RelayTransport::Tls(name) => Open::Stream { to: address, tls: Some(name.clone()) },
        };
        let RelayServer { username, credential, .. } = server;
        let account = RelayAccount { server: address, transport: place.transport, username, credential };
        self.relaying = Relaying::Opening { account, peers: Vec::new() };
        self.outputs.push_back(Output::Open(RELAY, open));
    }

    pub(super) fn relay_opened(&mut self, now: Instant, opening: &Opening) {
        let Relaying::Opening { account, peers } = &self.relaying else { return };
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
        self.relaying = Relaying::Open { relay: Box::new(relay), frames: Frames::default(), path };
        self.drain_relay(now);
    }

    /// Has the relay let through a peer that may be reached.
    pub(super) fn relay_toward(&mut self, now: Instant, peer: SocketAddr) {
        match &mut self.relaying {
            Relaying::Opening { peers, .. } if peers.len() < PEERS_MAX => peers.push(peer),
            Relaying::Open { relay, .. } => {
                relay.permit(now, peer);
                self.drain_relay(now);
            }
            _ => {}
        }
    }

    pub(super) fn relay_bytes(&mut self, now: Instant, bytes: &[u8]) {
        // The frames are out of the viewer while it looks at them, so that media is decrypted where it lies.
        let Relaying::Open { frames, .. } = &mut self.relaying else { return };
        let mut cut = std::mem::take(frames);
        cut.push(bytes);
        loop {
            match cut.next_frame() {
                Ok(Some(frame)) => self.relay_frame(now, now, frame),
                Ok(None) => break,
                Err(error) => return self.relay_closed(now, &error.to_string()),
            }
        }
        if let Relaying::Open { frames, .. } = &mut self.relaying {
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
        if let Relaying::Open { relay, .. } = &self.relaying
            && relay.server() == source
        {
            self.relay_frame(now, arrived_at, bytes);
        }
    }

    fn relay_frame(&mut self, now: Instant, arrived_at: Instant, frame: &mut [u8]) {
        let Relaying::Open { relay, .. } = &mut self.relaying else { return };
        let relayed = relay.relayed();
        let Some((peer, range)) = relay.receive(now, frame) else { return self.drain_relay(now) };
        if let (Some(local), Some(datagram)) = (relayed, frame.get_mut(range)) {
            self.datagram(now, (Via::Relay, Some(local)), peer, arrived_at, datagram);
        }
    }

    pub(super) fn send_relayed(&mut self, now: Instant, to: SocketAddr, bytes: &[u8]) {
        let Relaying::Open { relay, .. } = &mut self.relaying else { return };
        let server = relay.server();
        // Until the relay lets the peer through, ICE repeats what is dropped here.
        if let Some(bytes) = relay.wrap(now, to, bytes) {
            self.outputs.push_back(Output::Send(RELAY, Transmit { to: server, from: None, bytes }));
        }
    }

    pub(super) fn tick_relay(&mut self, now: Instant) {
        if let Relaying::Open { relay, .. } = &mut self.relaying
            && relay.next_timeout().is_some_and(|at| now >= at)
        {
            relay.timeout(now);
            self.drain_relay(now);
        }
    }

    fn drain_relay(&mut self, now: Instant) {
        while let Relaying::Open { relay, .. } = &mut self.relaying {
            let (server, local) = (relay.server(), relay.local());
            match relay.poll_output() {
                None => return,
                Some(RelayOutput::Send(bytes)) => {
                    self.outputs.push_back(Output::Send(RELAY, Transmit { to: server, from: None, bytes }));
                }
                Some(RelayOutput::Allocated(relayed)) => self.relay_allocated(now, relayed, local),
                Some(RelayOutput::Anomaly(detail)) => self.anomaly("relay", detail),
                Some(RelayOutput::Failed(why)) => {
                    self.outputs.push_back(Output::Close(RELAY));
                    self.relay_closed(now, &why);
                }
            }
        }
    }

    fn relay_allocated(&mut self, now: Instant, relayed: SocketAddr, local: SocketAddr) {
        // Before there is a session, the candidate waits for its description.
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else { return };
        match peer.session.add_relayed_candidate(relayed, local) {
            Ok(line) => {
                self.tell(now, SignalInput::Candidate(&line));
                self.no_more_candidates(now);
                self.drain_session(now);
            }
            Err(error) => self.anomaly("relay", error.to_string()),
        }
    }

    /// Tells signalling, once, that all our candidates are known to it.
    pub(super) fn no_more_candidates(&mut self, now: Instant) {
        let has_session = matches!(self.state, State::Connecting { .. } | State::Playing { .. });
        if has_session && !self.candidates_done && !self.relaying.is_pending() {
            self.candidates_done = true;
            self.tell(now, SignalInput::CandidatesDone);
        }
    }

    /// Goes on without the relay, unless the media came through it.
    pub(super) fn relay_closed(&mut self, now: Instant, why: &str) {
        if matches!(self.relaying, Relaying::None | Relaying::Over) {
            return;
        }
        self.relaying = Relaying::Over;
        if matches!(self.state, State::Playing { .. }) && matches!(self.remote, Some((Via::Relay, _))) {
            return self.fail(now, FailureReason::MediaLost, &format!("the relay is gone: {why}"));
        }
        if self.options.relay_only {
            return self.fail(now, FailureReason::Ice, &format!("the relay, the only way allowed: {why}"));
        }
        self.anomaly("relay", why);
        self.no_more_candidates(now);
    }

    /// Gives the allocation back.
    pub(super) fn leave_relay(&mut self, now: Instant) {
        let relaying = std::mem::replace(&mut self.relaying, Relaying::Over);
        if let Relaying::Open { mut relay, .. } = relaying {
            relay.close(now);
            let to = relay.server();
            while let Some(output) = relay.poll_output() {
                if let RelayOutput::Send(bytes) = output {
                    self.outputs.push_back(Output::Send(RELAY, Transmit { to, from: None, bytes }));
                }
            }
            self.outputs.push_back(Output::Close(RELAY));
        } else if matches!(relaying, Relaying::Opening { .. }) {
            self.outputs.push_back(Output::Close(RELAY));
        }
    }
}

/// What a server said, short enough to be told.
fn excerpt(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}
