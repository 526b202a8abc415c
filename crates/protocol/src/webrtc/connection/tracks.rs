//! The streams of a connection: the peer's, as the room signals them, and the local ones.

use std::time::Instant;

use throng_observation::{Layer, MediaKind, Observation, TrackId};

use super::{Connection, ConnectionOutput, State};
use crate::signalling::room::RoomStream;
use crate::webrtc::sender::{Ladder, Sender};

impl Connection {
    /// Sets the streams that the peer sends from now on.
    pub(in crate::webrtc) fn streams(&mut self, now: Instant, streams: Vec<RoomStream>) {
        let before = self.senders.replace(streams);
        let State::Playing { receiver, .. } = &mut self.state else { return };
        receiver.sent_in(self.senders.streams(), before.streams(), now);
        let known: Vec<_> = receiver.track_ids().collect();
        for track in &known {
            let Some(mid) = receiver.mid_of(*track) else { continue };
            let (was, is) = (before.of(mid), self.senders.of(mid));
            let (had_sender, is_taken) = (before.of_media(mid).is_some(), is.is_some());
            if was != is {
                receiver.sender_changed(*track, had_sender, is_taken, now);
            }
        }
        // Observations so far belong to the previous sender.
        self.transport.outputs.extend(receiver.take_observed().map(ConnectionOutput::Observed));
        known.into_iter().for_each(|track| self.report_sender_of(track));
    }

    /// Reports the sender of a track.
    fn report_sender_of(&mut self, track: TrackId) {
        let State::Playing { receiver, .. } = &mut self.state else { return };
        let Some(mid) = receiver.mid_of(track) else { return };
        let from = self.senders.of_media(mid).map(str::to_owned);
        if let Some(stream) = self.senders.stream(mid) {
            receiver.layers_of(track, &stream.layers, stream.tells_layers);
        }
        self.observe(Observation::TrackFrom { track, from });
    }

    /// Sets whether the participant talks.
    pub(in crate::webrtc) fn set_talking(&mut self, is_talking: bool) {
        if let State::Playing { sender: Some(sender), .. } = &mut self.state {
            sender.set_talking(is_talking);
        }
    }

    /// Mutes or unmutes the local tracks of a kind.
    pub(in crate::webrtc) fn set_muted(&mut self, kind: MediaKind, is_muted: bool) {
        if let State::Playing { sender: Some(sender), .. } = &mut self.state {
            sender.set_muted(kind, is_muted);
        }
    }

    /// Switches to another video.
    pub(in crate::webrtc) fn show(&mut self, ladder: &Ladder) {
        if let State::Playing { sender: Some(sender), .. } = &mut self.state {
            sender.show(ladder);
        }
    }

    /// Another layer of the received streams was requested.
    pub(in crate::webrtc) fn layer_asked(&mut self, now: Instant, layer: Layer) {
        self.wanted_layer = Some(layer);
        if let State::Playing { receiver, .. } = &mut self.state {
            receiver.layer_asked(now, layer);
        }
    }

    /// The server now forwards another layer of a section's stream.
    pub(in crate::webrtc) fn layer_sent(&mut self, now: Instant, mid: &str, layer: Layer) {
        if let State::Playing { receiver, .. } = &mut self.state {
            receiver.layer_sent(now, mid, layer);
        }
    }

    pub(super) fn take_observed(&mut self) {
        let State::Playing { receiver, .. } = &mut self.state else { return };
        if !receiver.has_observed() {
            return;
        }
        let observed: Vec<_> = receiver.take_observed().collect();
        for observation in observed {
            let opened = match &observation {
                Observation::TrackOpened { track, .. } if self.config.in_room => Some(*track),
                _ => None,
            };
            self.observe(observation);
            if let Some(track) = opened {
                self.report_sender_of(track);
            }
        }
    }
}

/// What the sender's streams did since the last call.
pub(super) fn sent(
    sender: &mut Sender,
    now: Instant,
) -> impl Iterator<Item = ConnectionOutput> + use<> {
    let intervals = sender.take_intervals(0, now).into_iter();
    intervals.map(|interval| ConnectionOutput::Observed(Observation::Sent(Box::new(interval))))
}
