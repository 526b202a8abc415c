//! Which layer of a simulcast a received track shows, by the size of its key frames, and how long a change took.

use std::time::Instant;

use throng_media::codec::picture_size;
use throng_observation::{Codec, Layer, LayerSwitch, TrackId};

/// Pixels, width and height.
type Size = (u16, u16);

/// The layers of one track.
#[derive(Debug, Default)]
pub(super) struct Layering {
    /// Of what is shown.
    size: Option<Size>,
    /// A key frame of this timestamp and size is on its way.
    coming: Option<(u32, Size)>,
    asked: Option<Asked>,
    /// The layer of the last request.
    wanted: Option<Layer>,
    /// The size of each layer, where the server told.
    sizes: Vec<(Layer, u16, u16)>,
}

#[derive(Debug)]
struct Asked {
    layer: Layer,
    at: Instant,
    /// The size from which it is to change; `None` when any picture will do.
    from: Option<Size>,
    /// The size to which it is to change, where that is known: servers pass through the layers between.
    to: Option<Size>,
}

impl Asked {
    fn is_met_by(&self, size: Size) -> bool {
        match self.to {
            Some(to) => to == size,
            None => self.from != Some(size),
        }
    }
}

impl Layering {
    /// The sizes of the layers, as the server told.
    pub(super) fn learn(&mut self, sizes: &[(Layer, u16, u16)]) {
        self.sizes = sizes.to_vec();
    }

    /// The size of a layer; one that is not sent is answered with the largest below it.
    fn size_of(&self, layer: Layer) -> Option<Size> {
        let known = self.sizes.iter().filter(|(known, ..)| *known <= layer).max_by_key(|(known, ..)| *known);
        known.map(|(_, width, height)| (*width, *height))
    }

    /// Another layer is asked for at `now`. Returns the request before it when nothing came of that.
    pub(super) fn ask(&mut self, now: Instant, track: TrackId, layer: Layer) -> Option<LayerSwitch> {
        let before = self.give_up(track);
        let was_off = self.wanted.replace(layer) == Some(Layer::Off);
        let (from, to) = (self.size.filter(|_| !was_off), self.size_of(layer));
        // What is shown already is no change.
        if layer != Layer::Off && (to.is_none() || to != from) {
            self.asked = Some(Asked { layer, at: now, from, to });
        }
        before
    }

    /// A packet of a key frame came.
    pub(super) fn key_packet(&mut self, codec: Codec, timestamp: u32, payload: &[u8]) {
        if let Some(size) = picture_size(codec, payload) {
            self.coming = Some((timestamp, size));
        }
    }

    /// Whether [`Self::shown`] is to be called when key frames become decodable.
    pub(super) fn awaits_key_frame(&self) -> bool {
        self.coming.is_some()
    }

    /// The last decodable key frame has `timestamp` and was complete at `at`. Returns what it changed.
    pub(super) fn shown(&mut self, track: TrackId, timestamp: u32, at: Instant) -> Option<LayerSwitch> {
        let (_, size) = self.coming.take_if(|(coming, _)| *coming == timestamp)?;
        self.size = Some(size);
        let asked = self.asked.take_if(|asked| asked.is_met_by(size) && at >= asked.at)?;
        let Asked { layer, at: requested_at, .. } = asked;
        Some(LayerSwitch { track, layer, requested_at, shown: Some((at, size.0, size.1)) })
    }

    /// Nothing more will come. Returns the request that is open.
    pub(super) fn give_up(&mut self, track: TrackId) -> Option<LayerSwitch> {
        let Asked { layer, at: requested_at, .. } = self.asked.take()?;
        Some(LayerSwitch { track, layer, requested_at, shown: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TRACK: TrackId = TrackId(3);

    /// The first packet of a VP8 key frame.
    fn key(width: u8) -> [u8; 11] {
        [0x10, 0, 0, 0, 0x9d, 1, 0x2a, width, 0, 90, 0]
    }

    #[test]
    fn a_change_is_the_first_decodable_key_frame_of_another_size() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut layering = Layering::default();
        layering.key_packet(Codec::Vp8, 10, &key(100));
        assert!(layering.awaits_key_frame());
        assert_eq!(layering.shown(TRACK, 9, at(0)), None, "another key frame");
        assert_eq!(layering.shown(TRACK, 10, at(0)), None, "nothing was asked for");
        assert_eq!(layering.ask(at(100), TRACK, Layer::High), None);
        layering.key_packet(Codec::Vp8, 20, &key(100));
        assert_eq!(layering.shown(TRACK, 20, at(150)), None, "the old layer once more");
        layering.key_packet(Codec::Vp8, 30, &key(200));
        let switch = layering.shown(TRACK, 30, at(180));
        let shown = Some((at(180), 200, 90));
        assert_eq!(
            switch,
            Some(LayerSwitch { track: TRACK, layer: Layer::High, requested_at: at(100), shown })
        );
        assert_eq!(layering.give_up(TRACK), None, "told once");
    }

    #[test]
    fn what_never_shows_is_told_by_the_next_request_or_the_end() {
        let start = Instant::now();
        let mut layering = Layering::default();
        let none = |layer| Some(LayerSwitch { track: TRACK, layer, requested_at: start, shown: None });
        assert_eq!(layering.ask(start, TRACK, Layer::Low), None);
        assert_eq!(layering.ask(start, TRACK, Layer::Medium), none(Layer::Low));
        assert_eq!(layering.give_up(TRACK), none(Layer::Medium));
    }

    #[test]
    fn where_sizes_are_known_the_layer_between_is_no_answer() {
        let start = Instant::now();
        let mut layering = Layering::default();
        layering.learn(&[(Layer::Low, 100, 90), (Layer::Medium, 150, 90), (Layer::High, 200, 90)]);
        layering.key_packet(Codec::Vp8, 10, &key(100));
        layering.shown(TRACK, 10, start);
        layering.ask(start, TRACK, Layer::High);
        layering.key_packet(Codec::Vp8, 20, &key(150));
        assert_eq!(layering.shown(TRACK, 20, start), None);
        layering.key_packet(Codec::Vp8, 30, &key(200));
        assert_eq!(layering.shown(TRACK, 30, start).unwrap().shown, Some((start, 200, 90)));
        assert_eq!(layering.ask(start, TRACK, Layer::High), None);
        assert_eq!(layering.give_up(TRACK), None, "it is shown already");
    }

    #[test]
    fn after_off_any_picture_is_a_change() {
        let start = Instant::now();
        let mut layering = Layering::default();
        layering.key_packet(Codec::Vp8, 10, &key(100));
        layering.shown(TRACK, 10, start);
        assert_eq!(layering.ask(start, TRACK, Layer::Off), None);
        assert_eq!(
            layering.ask(start, TRACK, Layer::Low),
            None,
            "off shows nothing, so nothing is told of it"
        );
        layering.key_packet(Codec::Vp8, 20, &key(100));
        assert_eq!(layering.shown(TRACK, 20, start).unwrap().shown, Some((start, 100, 90)));
    }
}
