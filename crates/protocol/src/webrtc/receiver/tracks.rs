//! What a receiver is told of its tracks: whose they are, and in which layers they come.

use std::time::Instant;

use throng_media::quality::TrackMeter;
use throng_observation::{Layer, MediaKind, Observation, TrackId};

use super::{Receiver, SenderState};

impl Receiver {
    /// In which layers a track is sent, and how large each is; whether the server says which it forwards.
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

    /// The server forwards another layer of what the section `mid` brings.
    pub(in crate::webrtc) fn layer_sent(&mut self, now: Instant, mid: &str, layer: Layer) {
        let Some(id) = self.track_ids().filter(|track| self.mid_of(*track) == Some(mid)).last() else {
            return;
        };
        if let Some(track) = self.tracks.get_mut(usize::from(id.0 - self.first_track)) {
            track.layer_switches.sent(now, layer);
        }
    }

    /// Another layer of every simulcast picture was asked for at `now`.
    pub(in crate::webrtc) fn layer_asked(&mut self, now: Instant, layer: Layer) {
        let first = self.first_track;
        for (at, track) in self.tracks.iter_mut().enumerate().filter(|(_, t)| t.kind == MediaKind::Video) {
            let id = TrackId(first.saturating_add(at as u16));
            let unanswered = track.layer_switches.ask(now, id, layer);
            self.observed.extend(unanswered.map(Observation::LayerSwitched));
        }
        self.pictures_are_off(layer == Layer::Off, now);
    }

    /// Another sender, or none, has a track from here on: what the one before sent is over, and the next packet begins a
    /// measurement of its own. That nobody was known of before means nothing while somebody sends: packets may come before
    /// the word whose they are.
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
    }

    /// The tracks that were opened.
    pub(in crate::webrtc) fn track_ids(&self) -> impl Iterator<Item = TrackId> + '_ {
        (0..self.tracks.len()).map(|at| TrackId(self.first_track.saturating_add(at as u16)))
    }

    /// `a=mid` of a track's media section.
    pub(in crate::webrtc) fn mid_of(&self, track: TrackId) -> Option<&str> {
        let at = track.0.checked_sub(self.first_track)?;
        self.assignments.mid(self.tracks.get(usize::from(at))?.section)
    }

    /// How many tracks were opened.
    #[must_use]
    pub fn track_count(&self) -> usize {
        self.tracks.len()
    }
}
