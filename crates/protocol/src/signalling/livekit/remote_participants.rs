//! The other participants of the room with their tracks, and the requests that lead from the
//! present subscriptions to the wanted ones.

use std::collections::{BTreeMap, BTreeSet};

use throng_observation::{Layer, MediaKind};

use super::wire::{
    DISCONNECTED, ParticipantInfo, Request, TrackInfo, TrackType, UpdateSubscription,
    UpdateTrackSettings, VideoQuality,
};
use crate::signalling::RunMark;
use crate::signalling::room::{RoomStream, Subscriptions};
use crate::signalling::sections::Section;

/// LiveKit limits identities to 256 bytes; participants and tracks with longer ids are ignored.
const ID_BYTES_MAX: usize = 512;
/// Simulcast has three layers.
const LAYERS_MAX: usize = 4;
/// More tracks than a room of any size has; further ones are ignored.
const TRACKS_MAX: usize = 16_384;

/// The tracks of all other participants.
#[derive(Default)]
pub(super) struct RemoteParticipants {
    subscriptions: Subscriptions,
    /// The server subscribes this participant to new tracks by itself.
    is_automatic: bool,
    layer: Option<Layer>,
    tracks: BTreeMap<String, Track>,
    /// The server's id of this participant, which is also in its participant updates.
    own_sid: String,
    mark: RunMark,
}

/// A published track.
#[derive(Debug)]
struct Track {
    participant: String,
    /// The name of its publisher.
    name: String,
    kind: MediaKind,
    is_subscribed: bool,
    /// The server has offered it; layer requests are possible.
    is_offered: bool,
    /// The layer that was requested last.
    requested: Option<Layer>,
    /// Its publisher has muted it.
    is_muted: bool,
    /// The layers that its publisher announced, with width and height.
    layers: Vec<(Layer, u16, u16)>,
}

impl RemoteParticipants {
    pub(super) fn new(subscriptions: Subscriptions, is_automatic: bool, mark: RunMark) -> Self {
        Self { subscriptions, is_automatic, mark, ..Self::default() }
    }

    /// The server's record of this participant.
    pub(super) fn joined(&mut self, ourselves: Option<&ParticipantInfo>) {
        self.own_sid = ourselves.map(|person| person.sid.clone()).unwrap_or_default();
    }

    pub(super) fn subscribe(&mut self, subscriptions: &Subscriptions) {
        self.subscriptions = subscriptions.clone();
    }

    pub(super) fn want_layer(&mut self, layer: Layer) {
        self.layer = Some(layer);
    }

    /// Handles an update of participants: of each its complete list of tracks, or that it left. One
    /// pass over the known tracks, however many participants a message names.
    pub(super) fn seen(&mut self, people: &[ParticipantInfo]) {
        // What is said last of each counts.
        let people: BTreeMap<&str, &ParticipantInfo> = people
            .iter()
            .filter(|person| self.own_sid.is_empty() || person.sid != self.own_sid)
            .map(|person| (person.sid.as_str(), person))
            .collect();
        let present = || people.values().copied().filter(|person| person.state != DISCONNECTED);
        let listed: BTreeSet<(&str, &str)> = present()
            .flat_map(|person| person.tracks.iter().map(move |track| (&*person.sid, &*track.sid)))
            .collect();
        self.tracks.retain(|sid, track| {
            let person = track.participant.as_str();
            !people.contains_key(person) || listed.contains(&(person, sid.as_str()))
        });
        present().for_each(|person| self.publishes(person));
    }

    /// Adds the tracks of a participant that are new.
    fn publishes(&mut self, person: &ParticipantInfo) {
        for track in &person.tracks {
            let kind = match track.kind() {
                TrackType::Audio => MediaKind::Audio,
                TrackType::Video => MediaKind::Video,
                TrackType::Data => continue,
            };
            let is_bearable = [&track.sid, &person.sid, &person.identity]
                .iter()
                .all(|id| id.len() <= ID_BYTES_MAX);
            if let Some(known) = self.tracks.get_mut(&track.sid) {
                known.is_muted = track.muted;
                continue;
            }
            if self.tracks.len() >= TRACKS_MAX || !is_bearable {
                continue;
            }
            self.tracks.insert(
                track.sid.clone(),
                Track {
                    participant: person.sid.clone(),
                    name: self.mark.take(&person.identity).to_owned(),
                    kind,
                    is_subscribed: self.is_automatic,
                    is_offered: false,
                    requested: None,
                    is_muted: track.muted,
                    layers: layers(track),
                },
            );
        }
    }

    /// The names of all publishers.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.tracks.values().map(|track| track.name.clone()).collect()
    }

    /// The streams in the sections of an offer.
    pub(super) fn streams(&mut self, sections: &[Section]) -> Vec<RoomStream> {
        self.tracks.values_mut().for_each(|track| track.is_offered = false);
        let streams = sections.iter().filter_map(|section| {
            let kind = section.kind?;
            let track = section.track.as_ref().and_then(|sid| self.tracks.get_mut(sid));
            let (from, is_muted, layers) = track
                .map(|track| {
                    track.is_offered = true;
                    (Some(track.name.clone()), track.is_muted, track.layers.clone())
                })
                .unwrap_or_default();
            Some(RoomStream {
                mid: section.mid.clone(),
                from,
                is_muted,
                kind,
                layers,
                tells_layers: false,
            })
        });
        streams.collect()
    }

    /// The requests that lead from the present subscriptions to the wanted ones.
    pub(super) fn update_subscriptions(&mut self) -> Vec<Request> {
        let (mut more, mut fewer, mut layered) = (Vec::new(), Vec::new(), Vec::new());
        for (sid, track) in &mut self.tracks {
            let is_wanted = self.subscriptions.wants(&track.name, track.kind);
            if is_wanted != track.is_subscribed {
                track.is_subscribed = is_wanted;
                if is_wanted { &mut more } else { &mut fewer }.push(sid.clone());
            }
            if !track.is_subscribed {
                track.requested = None;
            } else if track.is_offered
                && track.kind == MediaKind::Video
                && track.requested != self.layer
            {
                track.requested = self.layer;
                layered.push(sid.clone());
            }
        }
        let mut requests = Vec::new();
        for (track_sids, subscribe) in [(more, true), (fewer, false)] {
            if !track_sids.is_empty() {
                requests.push(Request::Subscription(UpdateSubscription { track_sids, subscribe }));
            }
        }
        if let Some(layer) = self.layer.filter(|_| !layered.is_empty()) {
            let mut settings =
                UpdateTrackSettings { track_sids: layered, ..UpdateTrackSettings::default() };
            settings.disabled = layer == Layer::Off;
            settings.set_quality(quality(layer));
            requests.push(Request::TrackSetting(settings));
        }
        requests
    }

    /// The name of a track's publisher, for messages.
    pub(super) fn whose(&self, sid: &str) -> &str {
        self.tracks.get(sid).map_or("a participant that left", |track| &track.name)
    }
}

/// The announced layers of a track; empty if it has only one.
fn layers(track: &TrackInfo) -> Vec<(Layer, u16, u16)> {
    let layers = track.layers.iter().take(LAYERS_MAX).filter_map(|layer| {
        let (width, height) = (u16::try_from(layer.width).ok()?, u16::try_from(layer.height).ok()?);
        let name = match layer.quality() {
            VideoQuality::Low => Layer::Low,
            VideoQuality::Medium => Layer::Medium,
            VideoQuality::High => Layer::High,
        };
        (width > 0 && height > 0).then_some((name, width, height))
    });
    layers.collect()
}

/// The value of `VideoQuality` for a layer; that a track is off is a separate field.
pub(super) fn quality(layer: Layer) -> VideoQuality {
    match layer {
        Layer::Off | Layer::Low => VideoQuality::Low,
        Layer::Medium => VideoQuality::Medium,
        Layer::High => VideoQuality::High,
    }
}
