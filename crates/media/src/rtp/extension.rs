//! The header extensions that throng reads and writes, by meaning, independent of the ids of a
//! session.

use super::NtpTime;
use super::header::RtpHeader;
use crate::octets::{u16_at, u24_at, u64_at};

/// A supported header extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extension {
    /// When the packet left its sender, 6.18 fixed-point seconds.
    AbsSendTime,
    /// When the frame was captured, NTP time of the source's clock.
    AbsCaptureTime,
    /// Transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    TransportSequence,
    /// The media section that the packet belongs to (RFC 9143).
    Mid,
    /// Simulcast layer (RFC 8852).
    Rid,
    /// Simulcast layer that an RTX packet repairs (RFC 8852).
    RepairedRid,
    /// Audio level (RFC 6464).
    AudioLevel,
    /// AV1 dependency descriptor.
    DependencyDescriptor,
    /// Coordination of video orientation (3GPP TS 26.114).
    VideoOrientation,
    /// The jitter buffer that the sender requests from the receiver.
    PlayoutDelay,
}

impl Extension {
    /// All of them.
    pub const ALL: [Extension; 10] = [
        Extension::AbsSendTime,
        Extension::AbsCaptureTime,
        Extension::TransportSequence,
        Extension::Mid,
        Extension::Rid,
        Extension::RepairedRid,
        Extension::AudioLevel,
        Extension::DependencyDescriptor,
        Extension::VideoOrientation,
        Extension::PlayoutDelay,
    ];

    /// Its URI in SDP's `a=extmap`.
    #[must_use]
    pub fn uri(self) -> &'static str {
        match self {
            Self::AbsSendTime => "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
            Self::AbsCaptureTime => "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
            Self::TransportSequence => {
                "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
            }
            Self::Mid => "urn:ietf:params:rtp-hdrext:sdes:mid",
            Self::Rid => "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
            Self::RepairedRid => "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id",
            Self::AudioLevel => "urn:ietf:params:rtp-hdrext:ssrc-audio-level",
            Self::DependencyDescriptor => {
                "https://aomediacodec.github.io/av1-rtp-spec/\
                 #dependency-descriptor-rtp-header-extension"
            }
            Self::VideoOrientation => "urn:3gpp:video-orientation",
            Self::PlayoutDelay => "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay",
        }
    }

    /// The extension with this URI, if it is supported.
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.uri() == uri)
    }
}

/// The id of each supported extension in a session (SDP `a=extmap:ID URI`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtensionIds {
    /// Id by extension; 0 where the session has none.
    ids: [u8; Extension::ALL.len()],
    /// Extension by id for the ids of the one-byte form, the only ones in practice.
    small: [Option<Extension>; 16],
}

impl ExtensionIds {
    /// The ids of a session from its (id, uri) pairs; unknown URIs and id 0 are left out, the last
    /// of a kind wins.
    #[must_use]
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (u8, &'a str)>) -> Self {
        let mut ids = Self::default();
        for (id, uri) in pairs {
            if let Some(extension) = Extension::from_uri(uri) {
                ids.set(extension, id);
            }
        }
        ids
    }

    /// Sets the id of `extension`, 1–255; 0 removes it.
    pub fn set(&mut self, extension: Extension, id: u8) {
        if let Some(slot) = self.ids.get_mut(extension as usize) {
            *slot = id;
        }
        self.small = [None; 16];
        for extension in Extension::ALL {
            if let Some(slot) =
                self.id(extension).and_then(|id| self.small.get_mut(usize::from(id)))
            {
                *slot = Some(extension);
            }
        }
    }

    /// The id of `extension`, if the session has it.
    #[inline]
    #[must_use]
    pub fn id(&self, extension: Extension) -> Option<u8> {
        self.ids.get(extension as usize).copied().filter(|&id| id != 0)
    }

    #[inline]
    fn extension(&self, id: u8) -> Option<Extension> {
        match self.small.get(usize::from(id)) {
            Some(&extension) => extension,
            None => Extension::ALL.into_iter().find(|&extension| self.id(extension) == Some(id)),
        }
    }

    /// Reads the supported extensions of `packet`, whose header is `header`, in one pass. An
    /// element of the wrong length for its kind is left out.
    #[inline]
    #[must_use]
    pub fn read<'a>(&self, header: &RtpHeader, packet: &'a [u8]) -> Extensions<'a> {
        let mut extensions = Extensions::default();
        if header.extension.is_none() {
            return extensions;
        }
        for (id, data) in header.elements(packet) {
            if let Some(extension) = self.extension(id) {
                extensions.take(extension, data);
            }
        }
        extensions
    }
}

/// The supported extensions of one packet, read or to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions<'a> {
    /// When the packet left its sender.
    pub abs_send_time: Option<AbsSendTime>,
    /// When the frame was captured.
    pub abs_capture_time: Option<AbsCaptureTime>,
    /// Transport-wide sequence number.
    pub transport_sequence: Option<u16>,
    /// The media section.
    pub mid: Option<&'a str>,
    /// The simulcast layer.
    pub rid: Option<&'a str>,
    /// The simulcast layer that this RTX packet repairs.
    pub repaired_rid: Option<&'a str>,
    /// The audio level of this packet.
    pub audio_level: Option<AudioLevel>,
    /// The AV1 dependency descriptor, not parsed: see [`crate::codec::DependencyReader`].
    pub dependency_descriptor: Option<&'a [u8]>,
    /// Clockwise rotation in quarter turns in the lowest two bits, then flip and camera.
    pub video_orientation: Option<u8>,
    /// The jitter buffer that the sender requests from the receiver.
    pub playout_delay: Option<PlayoutDelay>,
}

impl<'a> Extensions<'a> {
    #[inline]
    fn take(&mut self, extension: Extension, data: &'a [u8]) {
        let text = || std::str::from_utf8(data).ok().filter(|text| !text.is_empty());
        match extension {
            Extension::AbsSendTime if data.len() == 3 => {
                self.abs_send_time = u24_at(data, 0).map(AbsSendTime);
            }
            Extension::AbsCaptureTime => self.abs_capture_time = AbsCaptureTime::parse(data),
            // The second version of this extension (…-cc-02) appends two bytes of feedback request.
            Extension::TransportSequence => self.transport_sequence = u16_at(data, 0),
            Extension::Mid => self.mid = text(),
            Extension::Rid => self.rid = text(),
            Extension::RepairedRid => self.repaired_rid = text(),
            Extension::AudioLevel => {
                self.audio_level = data.first().copied().map(AudioLevel::from_byte);
            }
            Extension::DependencyDescriptor => self.dependency_descriptor = Some(data),
            Extension::VideoOrientation => self.video_orientation = data.first().copied(),
            Extension::PlayoutDelay if data.len() == 3 => {
                self.playout_delay = u24_at(data, 0).map(PlayoutDelay::from_bits);
            }
            Extension::AbsSendTime | Extension::PlayoutDelay => {}
        }
    }
}

/// abs-send-time: the low 24 bits of the sender's time in units of 2⁻¹⁸ s; wraps every 64 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsSendTime(pub u32);

impl AbsSendTime {
    /// Microseconds since the last multiple of 64 s of the sender's clock.
    #[inline]
    #[must_use]
    pub fn micros(self) -> u32 {
        // value < 2^24, times 10^6 < 2^44
        ((u64::from(self.0 & 0xff_ffff) * 1_000_000) >> 18) as u32
    }
}

/// abs-capture-time: when the first sample of the packet's frame was captured, on the clock of the
/// capturing system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsCaptureTime {
    /// The capture time, NTP.
    pub captured: NtpTime,
    /// Estimated offset from the sender's NTP clock to the capture clock, Q32.32 seconds: capture
    /// clock = sender clock
    /// + offset. Only in the extended, 16-byte form.
    pub clock_offset: Option<i64>,
}

impl AbsCaptureTime {
    fn parse(data: &[u8]) -> Option<Self> {
        let captured = NtpTime(u64_at(data, 0)?);
        match data.len() {
            8 => Some(Self { captured, clock_offset: None }),
            16 => Some(Self { captured, clock_offset: u64_at(data, 8).map(|bits| bits as i64) }),
            _ => None,
        }
    }

    /// The capture time in nanoseconds since the Unix epoch on the capture clock.
    #[inline]
    #[must_use]
    pub fn captured_unix_ns(&self) -> u64 {
        self.captured.to_unix_ns()
    }
}

/// ssrc-audio-level (RFC 6464).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioLevel {
    /// The sender detects speech (V bit).
    pub voice: bool,
    /// Level in −dBov: 0 is the loudest, 127 silence.
    pub minus_dbov: u8,
}

impl AudioLevel {
    pub(super) fn from_byte(byte: u8) -> Self {
        Self { voice: byte & 0x80 != 0, minus_dbov: byte & 0x7f }
    }

    pub(super) fn to_byte(self) -> u8 {
        u8::from(self.voice) << 7 | (self.minus_dbov & 0x7f)
    }
}

/// playout-delay: bounds of the jitter buffer that the sender requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayoutDelay {
    /// Least delay, milliseconds, in steps of 10, at most 40 950.
    pub min_ms: u16,
    /// Greatest delay, milliseconds, in steps of 10, at most 40 950.
    pub max_ms: u16,
}

impl PlayoutDelay {
    pub(super) fn from_bits(bits: u32) -> Self {
        Self { min_ms: (bits >> 12 & 0xfff) as u16 * 10, max_ms: (bits & 0xfff) as u16 * 10 }
    }

    pub(super) fn to_bits(self) -> u32 {
        let steps = |ms: u16| u32::from(ms / 10).min(0xfff);
        steps(self.min_ms) << 12 | steps(self.max_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_name_their_extension() {
        for extension in Extension::ALL {
            assert_eq!(Extension::from_uri(extension.uri()), Some(extension));
        }
        assert_eq!(Extension::from_uri("urn:ietf:params:rtp-hdrext:toffset"), None);
    }

    #[test]
    fn ids_follow_the_session() {
        let mut ids = ExtensionIds::from_pairs([
            (3, Extension::Mid.uri()),
            (200, Extension::Rid.uri()),
            (5, "urn:unknown"),
            (0, Extension::AudioLevel.uri()),
        ]);
        assert_eq!(ids.id(Extension::Mid), Some(3));
        assert_eq!(ids.id(Extension::AudioLevel), None);
        for (id, extension) in [
            (3, Some(Extension::Mid)),
            (200, Some(Extension::Rid)),
            (5, None),
            (0, None),
            (255, None),
        ] {
            assert_eq!(ids.extension(id), extension, "{id}");
        }
        ids.set(Extension::Mid, 0);
        assert_eq!((ids.id(Extension::Mid), ids.extension(3)), (None, None));
    }

    #[test]
    fn elements_of_the_wrong_length_are_left_out() {
        for (extension, data) in [
            (Extension::AbsSendTime, &[1, 2][..]),
            (Extension::AbsCaptureTime, &[0; 7]),
            (Extension::AbsCaptureTime, &[0; 9]),
            (Extension::TransportSequence, &[1]),
            (Extension::Mid, &[0xff]),
            (Extension::Mid, &[]),
            (Extension::AudioLevel, &[]),
            (Extension::PlayoutDelay, &[0; 4]),
        ] {
            let mut extensions = Extensions::default();
            extensions.take(extension, data);
            assert_eq!(extensions, Extensions::default(), "{extension:?}");
        }
    }

    #[test]
    fn send_times_wrap_every_64_seconds() {
        let second = 1 << 18;
        assert_eq!(AbsSendTime(second).micros(), 1_000_000);
        assert_eq!(AbsSendTime(65 * second).micros(), 1_000_000);
    }

    #[test]
    fn capture_clock_offsets_are_signed() {
        let mut data = [0; 16];
        data[..8]
            .copy_from_slice(&NtpTime::from_unix_ns(1_700_000_000_123_456_789).0.to_be_bytes());
        data[8..].copy_from_slice(&(-1_i64 << 31).to_be_bytes()); // −0.5 s
        let time = AbsCaptureTime::parse(&data).unwrap();
        assert_eq!(time.captured_unix_ns(), 1_700_000_000_123_456_789);
        assert_eq!(time.clock_offset, Some(-1 << 31));
        assert_eq!(AbsCaptureTime::parse(&data[..8]).unwrap().clock_offset, None);
    }

    #[test]
    fn small_values_keep_their_bits() {
        assert_eq!(AudioLevel::from_byte(0x8a), AudioLevel { voice: true, minus_dbov: 10 });
        assert_eq!(AudioLevel::from_byte(0x8a).to_byte(), 0x8a);
        assert_eq!(PlayoutDelay::from_bits(0x00a_014), PlayoutDelay { min_ms: 100, max_ms: 200 });
        assert_eq!(PlayoutDelay { min_ms: 0, max_ms: u16::MAX }.to_bits(), 0xfff);
    }
}
