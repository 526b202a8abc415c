//! The size of the picture that a received track shows, by its decodable key frames: a stream may
//! change it while it is watched.

use throng_media::codec::picture_size;
use throng_observation::Codec;

/// Pixels, width and height.
pub(crate) type Size = (u16, u16);

/// The size of one track's picture.
#[derive(Debug, Default)]
pub(crate) struct ShownSize {
    size: Option<Size>,
    /// A key frame of this timestamp and size is arriving.
    coming: Option<(u32, Size)>,
}

/// What a decodable key frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The size before; `None` for the first.
    pub(crate) before: Option<Size>,
    pub(crate) size: Size,
}

impl Shown {
    /// The sizes before and after, where they differ.
    pub(crate) fn change(self) -> Option<(Size, Size)> {
        let before = self.before.filter(|before| *before != self.size)?;
        Some((before, self.size))
    }
}

impl ShownSize {
    /// The size of the last decodable key frame whose size is known.
    pub(crate) fn size(&self) -> Option<Size> {
        self.size
    }

    /// The shorter side of it: 720 of 720p.
    pub(crate) fn lines(&self) -> Option<u16> {
        self.size.map(|(width, height)| width.min(height))
    }

    /// A packet arrived that may begin a key frame.
    pub(crate) fn packet(&mut self, codec: Codec, timestamp: u32, payload: &[u8]) {
        if let Some(size) = picture_size(codec, payload) {
            self.coming = Some((timestamp, size));
        }
    }

    /// Whether [`Self::shown`] must be called when key frames become decodable.
    pub(crate) fn awaits_key_frame(&self) -> bool {
        self.coming.is_some()
    }

    /// The last decodable key frame has `timestamp`; `None` if that is not the one that is awaited.
    pub(crate) fn shown(&mut self, timestamp: u32) -> Option<Shown> {
        let (_, size) = self.coming.take_if(|(coming, _)| *coming == timestamp)?;
        Some(Shown { before: self.size.replace(size), size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first packet of a VP8 key frame.
    fn key(width: u8) -> [u8; 11] {
        [0x10, 0, 0, 0, 0x9d, 1, 0x2a, width, 0, 90, 0]
    }

    #[test]
    fn a_stream_that_changes_its_size_in_the_middle_is_seen_to() {
        let mut picture = ShownSize::default();
        let mut shown = |timestamp, width| {
            picture.packet(Codec::Vp8, timestamp, &key(width));
            assert!(picture.awaits_key_frame());
            assert_eq!(picture.shown(timestamp + 1), None, "another key frame");
            picture.shown(timestamp).unwrap().change()
        };
        assert_eq!(shown(10, 100), None, "the first");
        assert_eq!(shown(20, 100), None, "the same once more");
        assert_eq!(shown(30, 200), Some(((100, 90), (200, 90))));
        assert_eq!(shown(40, 200), None);
        assert_eq!(picture.lines(), Some(90));
    }
}
