//! Which simulcast layer is wanted of every video stream, and which was requested from Janus.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throng_observation::{Layer, MediaKind};

use crate::signalling::room::{PeerId, RoomStream};

/// The wanted layer of all video streams, and the requested layer of each.
#[derive(Debug, Default)]
pub(super) struct Layers {
    wanted: Option<Layer>,
    pictures: BTreeMap<PeerId, BTreeMap<String, Picture>>,
}

/// The stream in one media section.
#[derive(Debug, Default)]
struct Picture {
    from: Option<String>,
    asked: Option<Layer>,
}

impl Layers {
    /// Sets the wanted layer.
    pub(super) fn want(&mut self, layer: Layer) {
        self.wanted = Some(layer);
    }

    /// Sets the streams of a subscription. In a section that another sender took over, Janus begins
    /// with its preferred layer, whatever was requested of the sender before.
    pub(super) fn streams(&mut self, peer: PeerId, streams: &[RoomStream]) {
        let mut before = self.pictures.remove(&peer).unwrap_or_default();
        let videos = streams
            .iter()
            .filter(|stream| stream.kind == MediaKind::Video && stream.from.is_some());
        let pictures = videos.map(|stream| {
            let kept = before.remove(&stream.mid).filter(|picture| picture.from == stream.from);
            let asked = kept.and_then(|picture| picture.asked);
            (stream.mid.clone(), Picture { from: stream.from.clone(), asked })
        });
        self.pictures.insert(peer, pictures.collect());
    }

    /// The subscription ended.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.pictures.remove(&peer);
    }

    /// The request that a subscription needs now, if any; it counts as sent.
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

/// Janus numbers layers from 0, the smallest.
fn substream(layer: Layer) -> Option<u8> {
    match layer {
        Layer::Off => None,
        Layer::Low => Some(0),
        Layer::Medium => Some(1),
        Layer::High => Some(2),
    }
}

/// The layer with this number in Janus.
pub(super) fn layer(substream: u64) -> Option<Layer> {
    match substream {
        0 => Some(Layer::Low),
        1 => Some(Layer::Medium),
        2 => Some(Layer::High),
        _ => None,
    }
}
