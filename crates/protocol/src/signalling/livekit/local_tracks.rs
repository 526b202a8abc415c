//! The tracks that we publish, and which of them the server and the others take for mute.

use std::collections::{BTreeMap, BTreeSet};

use throng_observation::MediaKind;

use super::wire::{MuteTrack, TrackInfo, TrackType};

/// A participant publishes at most one audio and one video track; the bound leaves room.
const TRACKS_MAX: usize = 16;

/// What we publish.
#[derive(Debug, Default)]
pub(super) struct LocalTracks {
    /// By the server's ids.
    tracks: BTreeMap<String, Track>,
    /// What we want to be mute.
    mute: BTreeSet<MediaKind>,
}

#[derive(Debug)]
struct Track {
    kind: MediaKind,
    /// The server takes it for mute.
    is_muted: bool,
}

impl LocalTracks {
    /// The server took a track of ours.
    pub(super) fn published(&mut self, track: Option<TrackInfo>) {
        let Some(track) = track.filter(|_| self.tracks.len() < TRACKS_MAX) else { return };
        let kind = match track.kind() {
            TrackType::Audio => MediaKind::Audio,
            TrackType::Video => MediaKind::Video,
            TrackType::Data => return,
        };
        self.tracks.insert(track.sid, Track { kind, is_muted: false });
    }

    /// Ours of a kind is to be mute, or not any more.
    pub(super) fn mute(&mut self, kind: MediaKind, is_muted: bool) {
        if is_muted {
            self.mute.insert(kind);
        } else {
            self.mute.remove(&kind);
        }
    }

    /// The server mutes a track of ours, or lets it be heard again; its kind, if it is ours.
    pub(super) fn muted_by_server(&mut self, mute: &MuteTrack) -> Option<MediaKind> {
        let track = self.tracks.get_mut(&mute.sid)?;
        track.is_muted = mute.muted;
        Some(track.kind)
    }

    /// What has to be said so that the server takes for mute what is; it counts as said.
    pub(super) fn mutes(&mut self) -> Vec<MuteTrack> {
        let mute = &self.mute;
        let changed = self.tracks.iter_mut().filter_map(|(sid, track)| {
            let muted = mute.contains(&track.kind);
            let was_muted = std::mem::replace(&mut track.is_muted, muted);
            (muted != was_muted).then(|| MuteTrack { sid: sid.clone(), muted })
        });
        changed.collect()
    }
}
