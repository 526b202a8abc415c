//! Which layer of a simulcast is wanted of every picture, and what Janus was asked for.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throng_observation::{Layer, MediaKind};

use crate::signalling::room::{PeerId, RoomStream};

/// What is wanted of all pictures, and what was asked of each.
#[derive(Debug, Default)]
pub(super) struct Layers {
    wanted: Option<Layer>,
    pictures: BTreeMap<PeerId, BTreeMap<String, Picture>>,
}

/// What comes in one media section.
#[derive(Debug, Default)]
struct Picture {
    from: Option<String>,
    asked: Option<Layer>,
}

impl Layers {
    /// This layer is wanted from here on.
    pub(super) fn want(&mut self, layer: Layer) {
        self.wanted = Some(layer);
    }

    /// A subscription carries these streams from here on. In a section that another sender took over, Janus begins with
    /// its preferred layer, whatever was asked for of the sender before.
    pub(super) fn streams(&mut self, peer: PeerId, streams: &[RoomStream]) {
        let mut before = self.pictures.remove(&peer).unwrap_or_default();
        let videos = streams.iter().filter(|stream| stream.kind == MediaKind::Video && stream.from.is_some());
        let pictures = videos.map(|stream| {
            let kept = before.remove(&stream.mid).filter(|picture| picture.from == stream.from);
            let asked = kept.and_then(|picture| picture.asked);
            (stream.mid.clone(), Picture { from: stream.from.clone(), asked })
        });
        self.pictures.insert(peer, pictures.collect());
    }

    /// The subscription is over.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.pictures.remove(&peer);
    }

    /// The request that a subscription needs now, if any; it counts as made.
    pub(super) fn request(&mut self, peer: PeerId) -> Option<Value> {
        let layer = self.wanted?;
        let pictures = self.pictures.get_mut(&peer)?.iter_mut();
        let streams: Vec<Value> = pictures
            .filter(|(_, picture)| picture.asked != Some(layer))
            .map(|(mid, picture)| {
                picture.asked = Some(layer);
                match substream(layer) {
                    Some(substream) => json!({ "mid": mid, "send": true, "substream": substream }),
                    None => json!({ "mid": mid, "send": false }),
                }
            })
            .collect();
        (!streams.is_empty()).then(|| json!({ "request": "configure", "streams": streams }))
    }
}

/// Janus counts layers from 0, the smallest.
fn substream(layer: Layer) -> Option<u8> {
    match layer {
        Layer::Off => None,
        Layer::Low => Some(0),
        Layer::Medium => Some(1),
        Layer::High => Some(2),
    }
}

/// The layer that Janus calls so.
pub(super) fn layer(substream: u64) -> Option<Layer> {
    match substream {
        0 => Some(Layer::Low),
        1 => Some(Layer::Medium),
        2 => Some(Layer::High),
        _ => None,
    }
}
