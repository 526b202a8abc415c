//! Which simulcast layer a received track shows, by the size of its key frames, and how long a
//! switch took.

use std::time::Instant;

use throng_observation::{Codec, Layer, LayerSwitch, TrackId};

use crate::shown_size::{ShownSize, Size};

/// The layers of one track.
#[derive(Debug, Default)]
pub(super) struct LayerSwitches {
    /// The size of the shown video.
    picture: ShownSize,
    /// A change of it that nobody asked for: before and after, and since when.
    changed: Option<(Size, Size, Instant)>,
    asked: Option<PendingSwitch>,
    /// The layer of the last request.
    wanted: Option<Layer>,
    /// The size of each layer, where the server signalled it.
    sizes: Vec<(Layer, u16, u16)>,
    /// Whether the server signals which layer it forwards, at each change.
    is_told: bool,
    /// The layer that it signalled last.
    sent: Option<Layer>,
}

#[derive(Debug)]
struct PendingSwitch {
    layer: Layer,
    at: Instant,
    /// The size before the switch; `None` when any picture will do.
    from: Option<Size>,
    /// The expected size, where known: servers pass through the layers between.
    to: Option<Size>,
    /// Changes of size since the request, in order.
    changes: Vec<(Instant, Size)>,
    /// Where the server signals the forwarded layer: since when it is the requested one.
    told_at: Option<Instant>,
}

/// More changes than a server makes on the way through all layers and back.
const CHANGES_MAX: usize = 16;

impl PendingSwitch {
    fn ended(&self, track: TrackId, shown: Option<(Instant, Size)>) -> LayerSwitch {
        let shown = shown.map(|(at, (width, height))| (at, width, height));
        LayerSwitch { track, layer: self.layer, requested_at: self.at, shown }
    }

    /// A decodable key frame of this size was complete at `at`.
    fn see(&mut self, at: Instant, size: Size) {
        let last = self.changes.last().map(|(_, size)| *size).or(self.from);
        if last != Some(size) && self.changes.len() < CHANGES_MAX {
            self.changes.push((at, size));
        }
    }

    /// When the requested layer was shown, and its size; `at` is when the last key frame was
    /// complete.
    ///
    /// The server's signal arrives some milliseconds before or after the picture, and pictures of a
    /// layer between may have been incomplete: so the last change counts that was seen by the first
    /// key frame after the signal.
    fn met(&self, is_told: bool, at: Instant) -> Option<(Instant, Size)> {
        match (self.to, is_told) {
            (Some(to), _) => self.changes.iter().find(|(_, size)| *size == to),
            (None, true) => {
                self.changes.last().filter(|_| self.told_at.is_some_and(|told_at| at >= told_at))
            }
            (None, false) => self.changes.first(),
        }
        .copied()
    }
}

impl LayerSwitches {
    /// Sets the sizes of the layers as signalled, and whether the server signals which of them it
    /// forwards.
    pub(super) fn learn(&mut self, sizes: &[(Layer, u16, u16)], is_told: bool) {
        self.sizes = sizes.to_vec();
        self.is_told = is_told;
    }

    /// The size of a layer; for one that is not sent, that of the largest below it.
    fn size_of(&self, layer: Layer) -> Option<Size> {
        let known = self
            .sizes
            .iter()
            .filter(|(known, ..)| *known <= layer)
            .max_by_key(|(known, ..)| *known);
        known.map(|(_, width, height)| (*width, *height))
    }

    /// Another layer is requested at `now`. Returns the previous request if it was not fulfilled.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        track: TrackId,
        layer: Layer,
    ) -> Option<LayerSwitch> {
        let before = self.give_up(track);
        let was_off = self.wanted.replace(layer) == Some(Layer::Off);
        let (from, to) = (self.picture.size().filter(|_| !was_off), self.size_of(layer));
        let is_sent = self.is_told && self.sent == Some(layer);
        // A layer that is shown already is no switch.
        let is_shown = if to.is_some() { to == from } else { is_sent && from.is_some() };
        if layer != Layer::Off && !is_shown {
            // A server that resumes the same layer does not signal it again.
            let told_at = (is_sent && was_off).then_some(now);
            self.asked =
                Some(PendingSwitch { layer, at: now, from, to, changes: Vec::new(), told_at });
        }
        before
    }

    /// Another sender is shown from now on: its first picture is no change.
    pub(super) fn sender_changed(&mut self) {
        self.picture = ShownSize::default();
    }

    /// The server signals that it forwards `layer` from now on.
    pub(super) fn sent(&mut self, now: Instant, layer: Layer) {
        self.sent = Some(layer);
        if let Some(asked) = &mut self.asked {
            asked.told_at = (layer == asked.layer).then_some(now);
        }
    }

    /// The shorter side of the picture that is shown, pixels.
    pub(super) fn lines(&self) -> Option<u16> {
        self.picture.lines()
    }

    /// A packet of a key frame arrived.
    pub(super) fn key_packet(&mut self, codec: Codec, timestamp: u32, payload: &[u8]) {
        self.picture.packet(codec, timestamp, payload);
    }

    /// Whether [`Self::shown`] must be called when key frames become decodable.
    pub(super) fn awaits_key_frame(&self) -> bool {
        self.picture.awaits_key_frame()
    }

    /// The last decodable key frame has `timestamp` and was complete at `at`. Returns the request
    /// that it completed, if any.
    pub(super) fn shown(
        &mut self,
        track: TrackId,
        timestamp: u32,
        at: Instant,
    ) -> Option<LayerSwitch> {
        let shown = self.picture.shown(timestamp)?;
        let size = shown.size;
        if self.asked.is_none() {
            self.changed = shown.change().map(|(from, to)| (from, to, at));
        }
        self.asked.as_mut().filter(|asked| at >= asked.at)?.see(at, size);
        let shown = self.asked.as_ref()?.met(self.is_told, at)?;
        self.asked.take().map(|asked| asked.ended(track, Some(shown)))
    }

    /// A change of the size that nobody asked for, once: before and after, and since when.
    pub(super) fn take_change(&mut self) -> Option<(Size, Size, Instant)> {
        self.changed.take()
    }

    /// The track ended. Returns the open request.
    pub(super) fn give_up(&mut self, track: TrackId) -> Option<LayerSwitch> {
        let asked = self.asked.take()?;
        let shown = asked.told_at.and_then(|told_at| asked.met(self.is_told, told_at));
        Some(asked.ended(track, shown))
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
        let mut layer_switches = LayerSwitches::default();
        layer_switches.key_packet(Codec::Vp8, 10, &key(100));
        assert!(layer_switches.awaits_key_frame());
        assert_eq!(layer_switches.shown(TRACK, 9, at(0)), None, "another key frame");
        assert_eq!(layer_switches.shown(TRACK, 10, at(0)), None, "nothing was asked for");
        assert_eq!(layer_switches.ask(at(100), TRACK, Layer::High), None);
        layer_switches.key_packet(Codec::Vp8, 20, &key(100));
        assert_eq!(layer_switches.shown(TRACK, 20, at(150)), None, "the old layer once more");
        layer_switches.key_packet(Codec::Vp8, 30, &key(200));
        let switch = layer_switches.shown(TRACK, 30, at(180));
        assert_eq!(layer_switches.take_change(), None, "it was asked for");
        layer_switches.key_packet(Codec::Vp8, 40, &key(100));
        assert_eq!(layer_switches.shown(TRACK, 40, at(900)), None);
        assert_eq!(layer_switches.take_change(), Some(((200, 90), (100, 90), at(900))));
        assert_eq!(layer_switches.take_change(), None, "told once");
        let shown = Some((at(180), 200, 90));
        assert_eq!(
            switch,
            Some(LayerSwitch { track: TRACK, layer: Layer::High, requested_at: at(100), shown })
        );
        assert_eq!(layer_switches.give_up(TRACK), None, "reported once");
    }

    #[test]
    fn the_size_of_another_sender_is_no_change() {
        let now = Instant::now();
        for is_other in [true, false] {
            let mut layer_switches = LayerSwitches::default();
            layer_switches.ask(now, TRACK, Layer::High);
            layer_switches.key_packet(Codec::Vp8, 10, &key(100));
            assert!(layer_switches.shown(TRACK, 10, now).is_some());
            if is_other {
                layer_switches.sender_changed();
            }
            layer_switches.key_packet(Codec::Vp8, 20, &key(200));
            layer_switches.shown(TRACK, 20, now);
            assert_eq!(layer_switches.take_change().is_none(), is_other);
            assert_eq!(layer_switches.wanted, Some(Layer::High));
        }
    }

    #[test]
    fn a_switch_that_never_shows_is_reported_by_the_next_request_or_the_end() {
        let start = Instant::now();
        let mut layer_switches = LayerSwitches::default();
        let none =
            |layer| Some(LayerSwitch { track: TRACK, layer, requested_at: start, shown: None });
        assert_eq!(layer_switches.ask(start, TRACK, Layer::Low), None);
        assert_eq!(layer_switches.ask(start, TRACK, Layer::Medium), none(Layer::Low));
        assert_eq!(layer_switches.give_up(TRACK), none(Layer::Medium));
    }

    #[test]
    fn where_sizes_are_known_the_layer_between_is_no_answer() {
        let start = Instant::now();
        let mut layer_switches = LayerSwitches::default();
        layer_switches.learn(
            &[(Layer::Low, 100, 90), (Layer::Medium, 150, 90), (Layer::High, 200, 90)],
            false,
        );
        layer_switches.key_packet(Codec::Vp8, 10, &key(100));
        layer_switches.shown(TRACK, 10, start);
        layer_switches.ask(start, TRACK, Layer::High);
        layer_switches.key_packet(Codec::Vp8, 20, &key(150));
        assert_eq!(layer_switches.shown(TRACK, 20, start), None);
        layer_switches.key_packet(Codec::Vp8, 30, &key(200));
        assert_eq!(layer_switches.shown(TRACK, 30, start).unwrap().shown, Some((start, 200, 90)));
        assert_eq!(layer_switches.ask(start, TRACK, Layer::High), None);
        assert_eq!(layer_switches.give_up(TRACK), None, "it is shown already");
    }

    #[test]
    fn where_the_server_says_what_it_forwards_its_word_decides_before_and_after_the_picture() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let shows = |layer_switches: &mut LayerSwitches, timestamp, width, ms| {
            layer_switches.key_packet(Codec::Vp8, timestamp, &key(width));
            layer_switches.shown(TRACK, timestamp, at(ms))
        };
        let reported = |layer, asked_ms, shown_ms, width| {
            let shown = Some((at(shown_ms), width, 90));
            Some(LayerSwitch { track: TRACK, layer, requested_at: at(asked_ms), shown })
        };
        let mut layer_switches = LayerSwitches::default();
        layer_switches.learn(&[], true);
        layer_switches.sent(at(0), Layer::Low);
        assert_eq!(shows(&mut layer_switches, 1, 100, 0), None);
        layer_switches.ask(at(100), TRACK, Layer::Low);
        assert_eq!(layer_switches.give_up(TRACK), None, "it is forwarded already");
        // The signal arrives first, also for the layer between, of which a picture arrives late.
        layer_switches.ask(at(100), TRACK, Layer::High);
        layer_switches.sent(at(105), Layer::Medium);
        layer_switches.sent(at(125), Layer::High);
        assert_eq!(shows(&mut layer_switches, 2, 150, 120), None);
        assert_eq!(shows(&mut layer_switches, 3, 200, 150), reported(Layer::High, 100, 150, 200));
        // The picture arrives first: the next key frame shows that the size did not change again.
        layer_switches.ask(at(200), TRACK, Layer::Low);
        assert_eq!(shows(&mut layer_switches, 4, 100, 230), None);
        layer_switches.sent(at(232), Layer::Low);
        assert_eq!(shows(&mut layer_switches, 5, 100, 290), reported(Layer::Low, 200, 230, 100));
        // Or the end of the track shows it.
        layer_switches.ask(at(300), TRACK, Layer::High);
        assert_eq!(shows(&mut layer_switches, 6, 200, 330), None);
        layer_switches.sent(at(331), Layer::High);
        assert_eq!(layer_switches.give_up(TRACK), reported(Layer::High, 300, 330, 200));
        // The same layer is resumed: no signal arrives.
        layer_switches.ask(at(400), TRACK, Layer::Off);
        layer_switches.ask(at(500), TRACK, Layer::High);
        assert_eq!(shows(&mut layer_switches, 7, 200, 530), reported(Layer::High, 500, 530, 200));
        // A signal for another layer does not fulfil the request.
        layer_switches.ask(at(600), TRACK, Layer::Low);
        layer_switches.sent(at(610), Layer::Medium);
        assert_eq!(shows(&mut layer_switches, 8, 150, 630), None);
        assert_eq!(layer_switches.give_up(TRACK).unwrap().shown, None);
    }

    #[test]
    fn after_off_any_picture_is_a_change() {
        let start = Instant::now();
        let mut layer_switches = LayerSwitches::default();
        layer_switches.key_packet(Codec::Vp8, 10, &key(100));
        layer_switches.shown(TRACK, 10, start);
        assert_eq!(layer_switches.ask(start, TRACK, Layer::Off), None);
        assert_eq!(
            layer_switches.ask(start, TRACK, Layer::Low),
            None,
            "off shows nothing, so nothing is reported"
        );
        layer_switches.key_packet(Codec::Vp8, 20, &key(100));
        assert_eq!(layer_switches.shown(TRACK, 20, start).unwrap().shown, Some((start, 100, 90)));
    }
}
