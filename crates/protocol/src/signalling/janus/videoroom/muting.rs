//! Which local streams the room relays: Janus gets a request when one becomes mute, and when it is
//! unmuted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Value, json};
use throng_observation::MediaKind;

use super::{JanusRequest, State, VideoRoom};
use crate::signalling::sections;

/// A participant publishes at most one audio and one video stream; the bound leaves room.
const STREAMS_MAX: usize = 16;

/// The published streams, and which of them are mute.
#[derive(Debug, Default)]
pub(super) struct Muting {
    /// The streams of the local offer by mid, and whether Janus was asked to mute them.
    streams: BTreeMap<String, (MediaKind, bool)>,
    /// Janus has answered the offer.
    is_published: bool,
    /// The kinds that are to be mute.
    mute: BTreeSet<MediaKind>,
}

impl Muting {
    /// Registers the streams of the local offer.
    pub(super) fn offered(&mut self, sdp: &str) {
        let sections = sections::read(sdp).into_iter().take(STREAMS_MAX);
        self.streams =
            sections.filter_map(|section| Some((section.mid, (section.kind?, false)))).collect();
        self.is_published = false;
    }

    /// A request for each stream whose mute state differs from what Janus was asked for; the
    /// requests count as sent.
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
            // Janus did not relay video frames that it received before this request.
            if *kind == MediaKind::Video && !is_muted {
                body["keyframe"] = json!(true);
            }
            Some(body)
        });
        changed.collect()
    }
}

impl VideoRoom {
    /// Janus answered the offer; requests for its streams are possible now.
    pub(super) fn published(&mut self, now: Instant) {
        self.muting.is_published = true;
        self.say_mute(now);
    }

    /// Mutes or unmutes the local streams of a kind.
    pub(super) fn mute(&mut self, now: Instant, kind: MediaKind, is_muted: bool) {
        if is_muted {
            self.muting.mute.insert(kind);
        } else {
            self.muting.mute.remove(&kind);
        }
        self.say_mute(now);
    }

    fn say_mute(&mut self, now: Instant) {
        let Some(handle) = self.publisher.filter(|_| matches!(self.state, State::Present)) else {
            return;
        };
        for body in self.muting.requests() {
            self.ask(
                now,
                handle,
                body,
                None,
                (JanusRequest::Mute, "Janus: the event after configure"),
            );
        }
    }
}
