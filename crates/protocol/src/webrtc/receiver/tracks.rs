//! What signalling reports about received tracks: their senders and layers.

use std::time::Instant;

use throng_media::quality::TrackMeter;
use throng_observation::{Layer, MediaKind, Observation, TrackId};

use super::{Receiver, SenderState};

impl Receiver {
    /// Sets the layers in which a track is sent, with the size of each, and whether the server
    /// signals which it forwards.
    pub(in crate::webrtc) fn layers_of(
        &mut self,
        track: TrackId,
        layers: &[(Layer, u16, u16)],
        is_told: bool,
    ) {
        let at = track.0.checked_sub(self.first_track).map(usize::from);
        if let Some(track) = at.and_then(|at| self.tracks.get_mut(at)) {
            track.layer_switches.learn(layers, is_told);
        }
    }

    /// The server now forwards another layer of the stream in section `mid`.
    pub(in crate::webrtc) fn layer_sent(&mut self, now: Instant, mid: &str, layer: Layer) {
        let Some(id) = self.track_ids().filter(|track| self.mid_of(*track) == Some(mid)).last()
        else {
            return;
        };
        if let Some(track) = self.tracks.get_mut(usize::from(id.0 - self.first_track)) {
            track.layer_switches.sent(now, layer);
        }
    }

    /// Another layer of every simulcast video was requested at `now`.
    pub(in crate::webrtc) fn layer_asked(&mut self, now: Instant, layer: Layer) {
        let first = self.first_track;
        for (at, track) in
            self.tracks.iter_mut().enumerate().filter(|(_, t)| t.kind == MediaKind::Video)
        {
            let id = TrackId(first.saturating_add(at as u16));
            let unanswered = track.layer_switches.ask(now, id, layer);
            self.observed.extend(unanswered.map(Observation::LayerSwitched));
        }
        self.pictures_are_off(layer == Layer::Off, now);
    }

    /// A track now has another sender, or none: the previous sender's measurement ends, and the
    /// next packet begins a new one. A track whose first sender is reported keeps its measurement:
    /// packets may arrive before that report.
    pub(in crate::webrtc) fn sender_changed(
        &mut self,
        track: TrackId,
        had_sender: bool,
        is_taken: bool,
        now: Instant,
    ) {
        let at = track.0.checked_sub(self.first_track).map(usize::from);
        let Some(track) = at.and_then(|at| self.tracks.get_mut(at)) else { return };
        if !had_sender && track.has_sender() {
            return;
        }
        if track.has_sender() {
            self.observed.push(Observation::Interval(Box::new(track.meter.finish(now))));
        }
        track.meter = TrackMeter::new(track.config, self.clock, now);
        track.sender_state = if is_taken { SenderState::Awaited } else { SenderState::Absent };
        track.first_frame_told = false;
        track.layer_switches.sender_changed();
    }

    /// The tracks opened so far.
    pub(in crate::webrtc) fn track_ids(&self) -> impl Iterator<Item = TrackId> + '_ {
        (0..self.tracks.len()).map(|at| TrackId(self.first_track.saturating_add(at as u16)))
    }

    /// `a=mid` of a track's media section.
    pub(in crate::webrtc) fn mid_of(&self, track: TrackId) -> Option<&str> {
        let at = track.0.checked_sub(self.first_track)?;
        self.assignments.mid(self.tracks.get(usize::from(at))?.section)
    }
}
