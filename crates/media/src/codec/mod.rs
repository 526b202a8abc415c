//! What an RTP payload says about the frame it belongs to: one codec, one file. Headers only; nothing is decoded.

use crate::mark::Mark;

/// What one RTP payload says about its frame. The RTP marker and timestamp are the packet's own and not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadFacts {
    /// The payload begins a frame (first packet of an access unit, S bit of partition 0, B bit, N/start of a temporal unit).
    pub starts_frame: bool,
    /// The payload says that it ends its frame (VP9 E bit); codecs without such a bit leave it to the marker.
    pub ends_frame: bool,
    /// The frame can be decoded without any other (IDR/IRAP, VP8 key frame, VP9 non-inter-predicted base layer, AV1 key frame / new sequence).
    pub key_frame: bool,
    /// No later frame refers to this one (non-reference NAL, top temporal layer), so its loss breaks only itself.
    pub discardable: bool,
    /// The picture id, where the codec carries one (VP8, VP9), with its width in bits: 7 or 15.
    pub picture_id: Option<(u16, u8)>,
    /// Spatial layer, 0 where there is none.
    pub spatial_layer: u8,
    /// Temporal layer, 0 where there is none.
    pub temporal_layer: u8,
    /// An in-media mark found in the payload.
    pub mark: Option<Mark>,
}
