//! Which of our own streams the room relays: Janus is told of each that is mute, and of it when it is not any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Value, json};
use throng_observation::MediaKind;

use super::{Ask, State, VideoRoom};
use crate::signalling::sections;

/// A participant publishes at most one audio and one video stream; the bound leaves room.
const STREAMS_MAX: usize = 16;

/// What we publish, and what of it is mute.
#[derive(Debug, Default)]
pub(super) struct Muting {
    /// The streams of our offer by mid, and whether Janus was told that they are mute.
    streams: BTreeMap<String, (MediaKind, bool)>,
    /// Janus knows the streams.
    is_published: bool,
    /// What we want to be mute.
    mute: BTreeSet<MediaKind>,
}

impl Muting {
    /// We offer to publish this.
    pub(super) fn offered(&mut self, sdp: &str) {
        let sections = sections::read(sdp).into_iter().take(STREAMS_MAX);
        self.streams = sections.filter_map(|section| Some((section.mid, (section.kind?, false)))).collect();
        self.is_published = false;
    }

    /// A request for each stream of which Janus does not know that it is mute, or that it is not any more; they count as made.
    fn requests(&mut self) -> Vec<Value> {
        if !self.is_published {
            return Vec::new();
        }
        let mute = &self.mute;
        let changed = self.streams.iter_mut().filter_map(|(mid, (kind, was_muted))| {
            let is_muted = mute.contains(kind);
            if std::mem::replace(was_muted, is_muted) == is_muted {
                return None;
            }
            let mut body = json!({ "request": "configure", "mid": mid, "send": !is_muted });
            // The picture's first frames may have come before this word, and were not relayed.
            if *kind == MediaKind::Video && !is_muted {
                body["keyframe"] = json!(true);
            }
            Some(body)
        });
        changed.collect()
    }
}

impl VideoRoom {
    /// Janus answered our offer: it knows what we publish.
    pub(super) fn published(&mut self, now: Instant) {
        self.muting.is_published = true;
        self.say_mute(now);
    }

    /// Ours of a kind is mute from here on, or not any more.
    pub(super) fn mute(&mut self, now: Instant, kind: MediaKind, is_muted: bool) {
        if is_muted {
            self.muting.mute.insert(kind);
        } else {
            self.muting.mute.remove(&kind);
        }
        self.say_mute(now);
    }

    fn say_mute(&mut self, now: Instant) {
        let Some(handle) = self.publisher.filter(|_| matches!(self.state, State::Present)) else { return };
        for body in self.muting.requests() {
            self.ask(now, handle, body, None, (Ask::Mute, "Janus: the event after configure"));
        }
    }
}
