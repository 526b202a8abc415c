//! The peers of a viewer: the tracker by which it finds them, over a WebSocket of its own, and the
//! socket of its data channels, where it has some.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::Viewer;
use crate::participant::{Channel, ChannelError, Message, Open, Opening, Output};
use crate::player::lane::Lane;
use crate::player::p2p::{Describe, Described, Id, PEERS, PeerOptions, Tracker, TrackerOutput};

/// The channel of the tracker.
pub(super) const TRACKER: Channel = Channel(1);

/// The socket of data channels.
#[derive(Debug, Default)]
pub(super) enum PeerSocket {
    /// The viewer's peers are those of this process.
    #[default]
    None,
    /// It is opened when the tracker is reached, whose address says where peers may be.
    Wanted,
    /// The tracker waits for it.
    Opening,
    /// It has these addresses.
    Open(Vec<SocketAddr>),
}

/// Describes connections by the lane that has peers.
struct ByLanes<'a>(&'a mut [Lane]);

impl Describe for ByLanes<'_> {
    fn offer(&mut self, now: Instant, swarm: usize, offer: Id) -> Option<String> {
        self.0.iter_mut().find_map(|lane| lane.peers_mut()?.offer(now, swarm, offer))
    }

    fn answer(&mut self, now: Instant, swarm: usize, peer: Id, offer: &str) -> Described {
        let answer =
            self.0.iter_mut().find_map(|lane| lane.peers_mut()?.answer(now, swarm, peer, offer));
        answer.unwrap_or(Described::Invented)
    }

    fn wants_peers(&mut self, now: Instant, swarm: usize) -> bool {
        self.0.iter_mut().find_map(|lane| lane.peers_mut()?.wants_peers(now, swarm)).unwrap_or(true)
    }
}

impl Viewer {
    pub(super) fn peer_options(&self) -> Option<PeerOptions> {
        let config = self.config.player.peers.clone()?;
        Some(PeerOptions {
            stream: config.swarm.clone().unwrap_or_else(|| self.config.url.in_clear().to_string()),
            config: Arc::new(config),
            swarms: self.config.swarms.clone(),
            number: self.config.number,
            run_began_at: self.config.clock.at,
            may_reach: self.config.may_reach.clone(),
        })
    }

    /// The tracker is reached. What it is told needs the addresses of the socket, where there is to
    /// be one.
    pub(super) fn tracker_opened(&mut self, now: Instant, opening: &Opening) {
        if let (PeerSocket::Wanted, Some(remote)) = (&self.peer_socket, opening.remote) {
            self.peer_socket = PeerSocket::Opening;
            let open = Open::Datagrams { toward: vec![remote], otherwise: None, gathers: true };
            return self.client.life.push(Output::Open(PEERS, open));
        }
        self.tracker.iter_mut().for_each(|tracker| tracker.opened(now));
    }

    /// The socket is open.
    pub(super) fn peer_socket_opened(&mut self, now: Instant, opening: &Opening) {
        let locals = opening.addresses();
        self.lanes.iter_mut().filter_map(Lane::peers_mut).for_each(|peers| peers.opened(&locals));
        self.peer_socket = PeerSocket::Open(locals);
        self.tracker.iter_mut().for_each(|tracker| tracker.opened(now));
    }

    /// There is no socket: its peers are those of this process.
    pub(super) fn peer_socket_closed(&mut self, now: Instant, why: &ChannelError) {
        let was_awaited = matches!(self.peer_socket, PeerSocket::Opening);
        self.peer_socket = PeerSocket::None;
        self.client.anomaly(format!("no socket for data channels: {why}"));
        if was_awaited {
            self.tracker.iter_mut().for_each(|tracker| tracker.opened(now));
        }
    }

    /// The lanes are known.
    pub(super) fn lend_peer_socket(&mut self) {
        if let PeerSocket::Open(locals) = &self.peer_socket {
            self.lanes
                .iter_mut()
                .filter_map(Lane::peers_mut)
                .for_each(|peers| peers.opened(locals));
        }
    }

    /// The tracker said something.
    pub(super) fn tracker_said(&mut self, now: Instant, message: &Message) {
        let text = match message {
            Message::Text(text) => text.as_str(),
            // Node's trackers may send text as binary messages.
            Message::Binary(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
        };
        let describe = &mut ByLanes(&mut self.lanes);
        let found = self.tracker.as_mut().and_then(|tracker| tracker.message(now, text, describe));
        if let Some(found) = found {
            self.lanes.iter_mut().for_each(|lane| lane.found(now, &found));
        }
    }

    /// Goes on with the tracker.
    pub(super) fn pump_tracker(&mut self, now: Instant) {
        let Some(tracker) = &mut self.tracker else { return };
        tracker.tick(now, &mut ByLanes(&mut self.lanes));
        self.put_tracker_outputs();
    }

    /// Leaves the swarms for good.
    pub(super) fn leave_peers(&mut self, now: Instant) {
        for at in 0..self.lanes.len() {
            let left = self.with_lane(at, |lane, context| {
                lane.peers_mut().into_iter().for_each(|peers| peers.close(now, context));
                Ok(())
            });
            // Leaving cannot fail.
            let _ = left;
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.close();
        }
        self.put_tracker_outputs();
    }

    fn put_tracker_outputs(&mut self) {
        let outputs = self.tracker.as_mut().map(Tracker::take_outputs).unwrap_or_default();
        for output in outputs {
            let output = match output {
                TrackerOutput::Open(url) => {
                    let headers = vec![("Origin".to_owned(), self.client.origin())];
                    Output::Open(TRACKER, Open::WebSocket { url, protocols: Vec::new(), headers })
                }
                TrackerOutput::Send(text) => Output::Signal(TRACKER, Message::Text(text)),
                TrackerOutput::Close => Output::Close(TRACKER),
                TrackerOutput::Anomaly(detail) => {
                    self.client.anomaly(detail);
                    continue;
                }
            };
            self.client.life.push(output);
        }
    }
}
