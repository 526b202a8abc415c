//! Facts about a frame from the headers of its RTP payloads: one codec, one file. Nothing is
//! decoded.

use throng_observation::Codec;

use crate::mark::Mark;

mod aac;
mod h264;
mod h265;
mod jpeg;
pub(crate) mod mp2t;
pub(crate) mod mpeg4_visual;
pub(crate) mod mpeg_audio;
pub(crate) mod mpeg_video;
mod nal;
pub(crate) mod pes;
pub(crate) mod program;
pub(crate) mod vp8;
pub(crate) mod vp9;

mod av1;

mod dependency;
pub use dependency::{DependencyDescriptor, DependencyReader, FrameTemplate};

mod opus;
pub use opus::OpusPacket;

mod size;
pub use size::{picture_size, sps_size};

/// Facts from one RTP payload about its frame. RTP marker and timestamp are the packet's own and
/// not here.
///
/// A packet from the middle of a frame has fewer facts than the first one: a frame is a key frame
/// if `key_frame` is set in any of its packets, and discardable if `discardable` is set in all that
/// arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadFacts {
    /// The payload begins a frame (H.264 and H.265: first packet of an access unit; VP8: S bit of
    /// partition 0; VP9: B bit; AV1: an OBU that may begin a frame, or the dependency descriptor's
    /// bit).
    ///
    /// In H.264 and H.265 parameter sets, SEI and the first slice may come in packets of their own;
    /// it is set for each of them. With spatial layers (VP9, AV1) only the base layer of a picture
    /// begins it.
    pub starts_frame: bool,
    /// The payload has only what may come before the first slice of a picture (parameter sets, SEI,
    /// delimiters of H.264 and H.265): the picture itself is still to come.
    pub precedes_picture: bool,
    /// The payload has a bit that ends its frame (VP9 E bit, AV1 dependency descriptor); codecs
    /// without such a bit use the marker. With spatial layers it ends one layer's frame, and the
    /// marker ends the picture.
    pub ends_frame: bool,
    /// The frame can be decoded without any other (IDR/IRAP, VP8 key frame, VP9 non-inter-predicted
    /// base layer, AV1 key frame / new sequence).
    pub key_frame: bool,
    /// No later frame refers to this one (non-reference NAL, top temporal layer), so its loss
    /// affects no other.
    pub discardable: bool,
    /// The picture id, where the codec has one (VP8, VP9), with its width in bits: 7 or 15; the
    /// frame number of the AV1 dependency descriptor, with 16.
    pub picture_id: Option<(u16, u8)>,
    /// TL0PICIDX (VP8, VP9 non-flexible): number of the last frame of the lowest temporal layer, 8
    /// bits with wrap.
    pub base_layer_index: Option<u8>,
    /// Spatial layer, 0 where there is none.
    pub spatial_layer: u8,
    /// Temporal layer, 0 where there is none.
    pub temporal_layer: u8,
    /// An in-media mark found in the payload.
    pub mark: Option<Mark>,
}

/// Why a payload violates its codec's RTP format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The payload ends inside a header that it announces.
    #[error("{} payload of {len} bytes ends inside its {what}", codec.name())]
    Truncated {
        /// The codec.
        codec: Codec,
        /// Which header.
        what: &'static str,
        /// Length of the payload in bytes.
        len: usize,
    },
    /// The payload has a value that its format forbids.
    #[error("{} payload has a bad {what}", codec.name())]
    Malformed {
        /// The codec.
        codec: Codec,
        /// Which part of it.
        what: &'static str,
    },
    /// The payload uses a part of its format that WebRTC does not use and that is not implemented.
    #[error("{} payload uses {what}, which is not read", codec.name())]
    Unsupported {
        /// The codec.
        codec: Codec,
        /// Which part of the format.
        what: &'static str,
    },
}

/// Reads the payloads of one RTP stream. Keeps state of earlier packets: the highest temporal layer
/// seen, the AV1 template structure.
#[derive(Clone, Debug)]
pub struct PayloadReader {
    codec: Reader,
}

#[derive(Clone, Debug)]
enum Reader {
    H264,
    H265(h265::Reader),
    Vp8(vp8::Reader),
    Vp9(vp9::Reader),
    Av1(Box<av1::Reader>),
    Opus,
    /// Every packet is a frame of its own.
    G711,
    MpegVideo,
    Mpeg4Visual,
    Jpeg,
    Mp2t,
    Aac(aac::Reader),
    MpegAudio,
    Other,
}

impl PayloadReader {
    /// A reader for a stream of `codec`.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        let codec = match codec {
            Codec::H264 => Reader::H264,
            Codec::H265 => Reader::H265(h265::Reader::default()),
            Codec::Vp8 => Reader::Vp8(vp8::Reader::default()),
            Codec::Vp9 => Reader::Vp9(vp9::Reader::default()),
            Codec::Av1 => Reader::Av1(Box::default()),
            Codec::Opus => Reader::Opus,
            Codec::Pcmu | Codec::Pcma => Reader::G711,
            Codec::MpegVideo => Reader::MpegVideo,
            Codec::Mpeg4Visual => Reader::Mpeg4Visual,
            Codec::Jpeg => Reader::Jpeg,
            Codec::Mp2t => Reader::Mp2t,
            Codec::Aac => Reader::Aac(aac::Reader::default()),
            Codec::MpegAudio => Reader::MpegAudio,
            Codec::Other => Reader::Other,
        };
        Self { codec }
    }

    /// Reads one payload (padding stripped). An empty one is a bandwidth probe and has no facts.
    ///
    /// # Errors
    /// Every [`CodecError`]; the reader stays usable.
    #[inline]
    pub fn read(&mut self, payload: &[u8]) -> Result<PayloadFacts, CodecError> {
        self.read_described(payload, None)
    }

    /// As [`Self::read`], with the AV1 dependency descriptor of the packet's header extension,
    /// which has more information than the payload and is in every packet. Ignored for other
    /// codecs.
    ///
    /// # Errors
    /// As [`Self::read`].
    #[inline]
    pub fn read_described(
        &mut self,
        payload: &[u8],
        dependency_descriptor: Option<&[u8]>,
    ) -> Result<PayloadFacts, CodecError> {
        if payload.is_empty() {
            return Ok(PayloadFacts::default());
        }
        match &mut self.codec {
            Reader::H264 => h264::read(payload),
            Reader::H265(reader) => reader.read(payload),
            Reader::Vp8(reader) => reader.read(payload),
            Reader::Vp9(reader) => reader.read(payload),
            Reader::Av1(reader) => reader.read(payload, dependency_descriptor),
            Reader::Opus => OpusPacket::parse(payload).map(|_| WHOLE_AUDIO_FRAME),
            Reader::G711 => Ok(WHOLE_AUDIO_FRAME),
            Reader::MpegVideo => mpeg_video::read(payload),
            Reader::Mpeg4Visual => mpeg4_visual::read(payload),
            Reader::Jpeg => jpeg::read(payload),
            Reader::Mp2t => mp2t::read(payload),
            Reader::Aac(reader) => reader.read(payload),
            Reader::MpegAudio => mpeg_audio::read(payload),
            Reader::Other => Ok(PayloadFacts::default()),
        }
    }
}

/// The facts of every packet of a codec whose packets can be decoded one by one.
const WHOLE_AUDIO_FRAME: PayloadFacts = PayloadFacts {
    starts_frame: true,
    precedes_picture: false,
    ends_frame: true,
    key_frame: true,
    discardable: true,
    picture_id: None,
    base_layer_index: None,
    spatial_layer: 0,
    temporal_layer: 0,
    mark: None,
};

/// Whether a layer is the highest of several seen so far, so that nothing refers to its frames.
///
/// Before a second layer is seen there is no top: a stream with one layer refers to all its frames.
#[derive(Clone, Copy, Debug, Default)]
struct TopLayer {
    highest: u8,
}

impl TopLayer {
    fn is_top(&mut self, layer: u8) -> bool {
        self.highest = self.highest.max(layer);
        layer > 0 && layer == self.highest
    }
}

/// The facts as letters (start, end, key, discardable), or the error.
#[cfg(test)]
fn letters(facts: Result<PayloadFacts, CodecError>) -> String {
    match facts {
        Ok(f) => {
            [(f.starts_frame, 's'), (f.ends_frame, 'e'), (f.key_frame, 'k'), (f.discardable, 'd')]
                .iter()
                .filter_map(|&(is, letter)| is.then_some(letter))
                .collect()
        }
        Err(error) => error.to_string(),
    }
}

/// The [`letters`] of a payload in hexadecimal digits.
#[cfg(test)]
fn brief(codec: Codec, hex: &str) -> String {
    let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let payload: Vec<_> = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    letters(PayloadReader::new(codec).read(&payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_say_nothing_and_are_no_error() {
        for codec in Codec::ALL {
            assert_eq!(
                PayloadReader::new(codec).read(&[]),
                Ok(PayloadFacts::default()),
                "{codec:?}"
            );
        }
    }

    #[test]
    fn audio_packets_are_whole_frames() {
        for codec in [Codec::Opus, Codec::Pcmu, Codec::Pcma] {
            let facts = PayloadReader::new(codec).read(&[0x78; 160]).unwrap();
            assert!(facts.starts_frame && facts.ends_frame && facts.key_frame, "{codec:?}");
        }
    }

    #[test]
    fn errors_lead_to_the_codec() {
        let error = PayloadReader::new(Codec::Vp8).read(&[0x80]).unwrap_err();
        assert_eq!(error.to_string(), "VP8 payload of 1 bytes ends inside its payload descriptor");
    }
}
