//! The published tracks, and which of them the server shows as mute.

use std::collections::{BTreeMap, BTreeSet};

use throng_observation::MediaKind;

use super::wire::{MuteTrack, TrackInfo, TrackType};

/// A participant publishes at most one audio and one video track; the bound leaves room.
const TRACKS_MAX: usize = 16;

/// The published tracks.
#[derive(Debug, Default)]
pub(super) struct LocalTracks {
    /// By the ids that the server assigned.
    tracks: BTreeMap<String, Track>,
    /// The kinds that are to be mute.
    mute: BTreeSet<MediaKind>,
}

#[derive(Debug)]
struct Track {
    kind: MediaKind,
    /// Whether the server shows it as mute.
    is_muted: bool,
}

impl LocalTracks {
    /// The server accepted a published track.
    pub(super) fn published(&mut self, track: Option<TrackInfo>) {
        let Some(track) = track.filter(|_| self.tracks.len() < TRACKS_MAX) else { return };
        let kind = match track.kind() {
            TrackType::Audio => MediaKind::Audio,
            TrackType::Video => MediaKind::Video,
            TrackType::Data => return,
        };
        self.tracks.insert(track.sid, Track { kind, is_muted: false });
    }

    /// Sets whether the tracks of a kind are to be mute.
    pub(super) fn mute(&mut self, kind: MediaKind, is_muted: bool) {
        if is_muted {
            self.mute.insert(kind);
        } else {
            self.mute.remove(&kind);
        }
    }

    /// The server mutes or unmutes a track; returns its kind if it is a published one.
    pub(super) fn muted_by_server(&mut self, mute: &MuteTrack) -> Option<MediaKind> {
        let track = self.tracks.get_mut(&mute.sid)?;
        track.is_muted = mute.muted;
        Some(track.kind)
    }

    /// The messages that bring the server's mute states up to date; they count as sent.
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
