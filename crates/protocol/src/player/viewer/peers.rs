//! The peers of a viewer: the tracker by which it finds them, over a WebSocket of its own.

use std::sync::Arc;
use std::time::Instant;

use super::Viewer;
use crate::participant::{Channel, Message, Open, Output};
use crate::player::p2p::{PeerCounters, PeerOptions, Tracker, TrackerOutput};

/// The channel of the tracker.
pub(super) const TRACKER: Channel = Channel(1);

impl Viewer {
    pub(super) fn peer_options(&self) -> Option<PeerOptions> {
        let config = self.config.player.peers.clone()?;
        Some(PeerOptions {
            stream: config.swarm.clone().unwrap_or_else(|| self.config.url.to_string()),
            config: Arc::new(config),
            swarms: self.config.swarms.clone(),
            number: self.config.number,
            run_began_at: self.config.clock.at,
        })
    }

    /// The tracker said something.
    pub(super) fn tracker_said(&mut self, now: Instant, message: &Message) {
        let text = match message {
            Message::Text(text) => text.as_str(),
            // Node's trackers may send text as binary messages.
            Message::Binary(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
        };
        let found = self.tracker.as_mut().and_then(|tracker| tracker.message(now, text));
        if let Some(found) = found {
            self.lanes.iter().for_each(|lane| lane.found(now, found));
        }
    }

    /// Goes on with the tracker.
    pub(super) fn pump_tracker(&mut self, now: Instant) {
        let Some(tracker) = &mut self.tracker else { return };
        tracker.tick(now);
        self.put_tracker_outputs();
    }

    /// Leaves the swarms.
    pub(super) fn leave_peers(&mut self) {
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
            self.client.output(output);
        }
    }

    /// What was exchanged with peers since the last call.
    pub(super) fn take_peer_counters(&mut self, now: Instant) -> PeerCounters {
        let mut sum = PeerCounters::default();
        for lane in &mut self.lanes {
            sum += lane.take_peer_counters(now);
        }
        sum
    }
}
