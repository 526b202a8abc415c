//! What a participant reports to its driver.

use crate::{
    CaptureBasis, ChatInterval, Codec, Detail, IceState, LayerSwitch, MediaKind, Phase,
    PlaybackInterval, SentInterval, TrackId, TrackInterval,
};
use std::net::SocketAddr;
use std::time::Instant;

/// Something that a participant measured or did. Has no participant id: the driver knows which
/// participant's output it reads.
#[derive(Clone, Debug)]
pub enum Observation {
    /// A phase was reached.
    Reached(Phase, Instant),
    /// The state of its ICE transport changed.
    Ice(IceState),
    /// Its media transport is up, on this path.
    Path(MediaPath),
    /// A track was announced; later observations use its id.
    TrackOpened {
        /// Id within the participant.
        track: TrackId,
        /// Audio or video.
        kind: MediaKind,
        /// Its codec.
        codec: Codec,
        /// Whether it is of a recording: its viewers play it from a buffer, and wait for nobody's
        /// answer.
        is_recording: bool,
    },
    /// The sender of a received track from now on, by its name in the conference; `None` while the
    /// track has no sender.
    TrackFrom {
        /// Id within the participant.
        track: TrackId,
        /// The sender's name.
        from: Option<String>,
    },
    /// It muted or unmuted a kind of media.
    Mutes {
        /// Audio or video.
        kind: MediaKind,
        /// Whether it is muted.
        is_muted: bool,
        /// Since when.
        at: Instant,
    },
    /// The first complete and decodable frame of a track (packet of audio) arrived.
    TrackFirstFrame {
        /// Id within the participant.
        track: TrackId,
        /// When it was complete.
        at: Instant,
    },
    /// The picture of a track changed its size without a request for another layer or rendition:
    /// the first decodable key frame of the new size.
    SizeChanged {
        /// Id within the participant.
        track: TrackId,
        /// Width and height before, pixels.
        from: (u16, u16),
        /// Width and height from then on, pixels.
        to: (u16, u16),
        /// When that key frame was complete; of what is played from a buffer, the end of the second
        /// in which it was shown.
        at: Instant,
    },
    /// Another layer of a simulcast was requested; shown or not.
    LayerSwitched(LayerSwitch),
    /// The counters of a sent track over the interval that just ended.
    Sent(Box<SentInterval>),
    /// The counters of a received track over the interval that just ended.
    Interval(Box<TrackInterval>),
    /// The counters of its player over the interval that just ended; from participants that play
    /// from a buffer.
    Playback(Box<PlaybackInterval>),
    /// What it got and said in a chat over the interval that just ended.
    Chat(Box<ChatInterval>),
    /// A complete coded frame; only from a tapped participant.
    Frame(Box<CodedFrame>),
    /// It sent its leave request, and the server did not answer in time.
    LeaveUnanswered,
    /// The server sent an address that the consent guard does not allow; nothing was sent there.
    Refused(RefusedDestination, SocketAddr),
    /// A message of the server broke the protocol but could be ignored: where, and what.
    ProtocolAnomaly {
        /// The message or packet kind, a stable key such as `rtcp`, `sdp`, `janus`.
        place: &'static str,
        /// What was wrong with it.
        detail: Detail,
    },
}

/// A coded frame that a tapped participant received, ready for a decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodedFrame {
    /// The track within the participant.
    pub track: TrackId,
    /// Its codec.
    pub codec: Codec,
    /// Whether it can be decoded without other frames.
    pub key_frame: bool,
    /// Whether incomplete frames before it were left out.
    pub after_break: bool,
    /// When its last packet arrived, on the wall clock, nanoseconds since the Unix epoch.
    pub arrived_unix_ns: u64,
    /// When it was captured by the sender's clock, nanoseconds since the Unix epoch, and the basis
    /// of that time.
    pub captured: Option<(u64, CaptureBasis)>,
    /// Annex B (H.264, H.265), a bare frame (VP8, VP9), or a temporal unit (AV1).
    pub bytes: Vec<u8>,
}

/// Where a codec is in this list is its number in a ring, so new ones come last.
const CODECS: [Codec; 15] = [
    Codec::Other,
    Codec::Vp8,
    Codec::H264,
    Codec::Vp9,
    Codec::Av1,
    Codec::H265,
    Codec::Opus,
    Codec::Pcmu,
    Codec::Pcma,
    Codec::MpegVideo,
    Codec::Mpeg4Visual,
    Codec::Jpeg,
    Codec::Mp2t,
    Codec::Aac,
    Codec::MpegAudio,
];

/// Codec and capture basis in the sixteen bits that a ring has for the kind of a frame: the codec
/// in the lower byte, the basis in the upper one (0: none).
#[must_use]
pub fn tap_kind(codec: Codec, basis: Option<CaptureBasis>) -> u16 {
    let codec = CODECS.iter().position(|known| *known == codec).unwrap_or(0);
    let basis = basis.and_then(|basis| CaptureBasis::ALL.iter().position(|known| *known == basis));
    codec as u16 | (basis.map_or(0, |at| at as u16 + 1) << 8)
}

/// The inverse of [`tap_kind`]; an unknown codec reads as [`Codec::Other`], an unknown basis as
/// `None`.
#[must_use]
pub fn from_tap_kind(kind: u16) -> (Codec, Option<CaptureBasis>) {
    let codec = CODECS.get(usize::from(kind & 0xff)).copied().unwrap_or(Codec::Other);
    let basis = usize::from(kind >> 8).checked_sub(1).and_then(|at| CaptureBasis::ALL.get(at));
    (codec, basis.copied())
}

/// The path between a participant and its server: with ICE by the local candidate of the pair that
/// it chose (RFC 8445 section 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MediaPath {
    /// From an address of this host, as the server sees it.
    Host,
    /// From an address of this host that a NAT maps to another one (server-reflexive candidate).
    Reflexive,
    /// Through a TURN relay, over UDP.
    RelayUdp,
    /// Through a TURN relay, over TCP.
    RelayTcp,
    /// Through a TURN relay, over TLS.
    RelayTls,
    /// RTP over UDP, without ICE (RTSP).
    RtpUdp,
    /// RTP on the RTSP connection (interleaved).
    RtpTcp,
    /// RTP on the RTSP connection, over TLS.
    RtpTls,
    /// RTMP.
    Rtmp,
    /// RTMP over TLS.
    RtmpTls,
    /// A process of this machine publishes (FFmpeg).
    Process,
    /// HTTP/1.1 (or 1.0).
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

impl MediaPath {
    /// Its stable key.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Reflexive => "srflx",
            Self::RelayUdp => "relay_udp",
            Self::RelayTcp => "relay_tcp",
            Self::RelayTls => "relay_tls",
            Self::RtpUdp => "rtp_udp",
            Self::RtpTcp => "rtp_tcp",
            Self::RtpTls => "rtp_tls",
            Self::Rtmp => "rtmp",
            Self::RtmpTls => "rtmp_tls",
            Self::Process => "process",
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::Http3 => "http3",
        }
    }

    /// The prefix of the event kinds that count participants by path.
    pub const EVENT: &'static str = "path_";
}

/// A destination that the consent guard refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedDestination {
    /// An ICE candidate.
    IceCandidate,
    /// An HTTP redirect or Location.
    Redirect,
    /// A TURN or STUN server.
    IceServer,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_frame_is_survives_the_ring() {
        for codec in CODECS {
            for basis in CaptureBasis::ALL.map(Some).into_iter().chain([None]) {
                assert_eq!(from_tap_kind(tap_kind(codec, basis)), (codec, basis));
            }
        }
        assert_eq!(from_tap_kind(0xffff), (Codec::Other, None));
        assert!(Codec::ALL.iter().all(|codec| CODECS.contains(codec)));
    }
}
