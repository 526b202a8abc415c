//! A loop of coded media as RTP payloads.

use throng_observation::{Codec, MediaKind};

use crate::container::adts::{AdtsError, AudioConfig};
use crate::container::ivf::IvfError;
use crate::container::mjr::MjrError;
use crate::container::ogg::OggError;
use crate::container::pcap::PcapError;
use crate::mark::{MARK_UUID, Mark};

/// Longest RTP payload. With header, extensions and tag it stays below the 1,200 bytes that every
/// path carries (RFC 8834 and the minimum of QUIC, RFC 9000 section 14).
pub const PAYLOAD_MAX: usize = 1_140;

/// Longest pause between two frames of a loop. A longer one is a hole in a recording, or damage.
const PAUSE_MAX_S: u32 = 10;

/// Most bytes of a clip; a loop needs no more.
const CLIP_BYTES_MAX: usize = 256 << 20;

/// Why a file does not become a clip.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClipError {
    /// The format is not supported.
    #[error(
        "no media file that throng reads: it is neither IVF, Ogg, ADTS, Janus .mjr, pcap nor an \
         Annex-B byte stream"
    )]
    Unknown,
    /// The file is damaged.
    #[error("{0}")]
    Damaged(String),
    /// The codec is known but cannot be sent from this format.
    #[error("{codec} from {format} cannot be sent")]
    Codec {
        /// The codec's name in the file.
        codec: String,
        /// The format.
        format: &'static str,
    },
    /// No frame can be decoded without others, so that no viewer could start.
    #[error("it holds no key frame: encode it with one at its start at least")]
    NoKeyFrame,
    /// There is nothing to send.
    #[error("it holds no frame")]
    Empty,
    /// It has more bytes than a clip may have.
    #[error("it is longer than {} MB: cut a loop of some seconds from it", CLIP_BYTES_MAX >> 20)]
    TooLong,
    /// A capture contains no stream, or several that could be played.
    #[error("{0}")]
    Stream(String),
}

macro_rules! damaged {
    ($($error:ty),+) => {
        $(impl From<$error> for ClipError {
            fn from(error: $error) -> Self {
                Self::Damaged(error.to_string())
            }
        })+
    };
}

damaged!(AdtsError, IvfError, MjrError, OggError, PcapError);

/// A loop of coded media, packetised.
#[derive(Debug)]
pub struct Clip {
    codec: Codec,
    clock_rate: u32,
    /// Of AAC.
    audio_config: Option<AudioConfig>,
    bytes: Vec<u8>,
    packets: Vec<Packet>,
    frames: Vec<Frame>,
    /// Length of the loop in units of the clock.
    ticks: u64,
    /// Frames of the file that are left out: before the first key frame, or incomplete in a
    /// recording.
    skipped_frames: u32,
    frame_bytes_max: u32,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    start: u32,
    len: u16,
    patch: Patch,
}

/// The fields that are filled in when a payload is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Patch {
    /// Offset of the picture id, and whether it has 15 bits rather than 7.
    picture_id: Option<(u8, bool)>,
    /// Offset of TL0PICIDX.
    base_layer_index: Option<u8>,
    /// Offset of the numbers of an in-media mark.
    mark: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    first_packet: u32,
    packets: u16,
    /// Units of the clock since the loop began.
    at: u64,
    is_key: bool,
    /// It belongs to the lowest temporal layer.
    is_base: bool,
}

/// A frame of one sender at one time: enough to write its packets, for the first time or as a
/// retransmission. Small, so that a sender can keep the frames that it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayedFrame {
    /// Index of the frame in the loop.
    pub(super) index: u32,
    pub(super) number: u32,
    /// TL0PICIDX of VP8 and VP9.
    pub(super) base_layer_index: u8,
    /// RTP timestamp, counted from 0 at the start.
    pub timestamp: u32,
}

impl PlayedFrame {
    /// Its number since the start, wrapping at 2^32.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Clip {
    /// Its codec.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Audio or video.
    #[must_use]
    pub fn kind(&self) -> MediaKind {
        match self.codec {
            Codec::Opus | Codec::Pcmu | Codec::Pcma | Codec::Aac | Codec::MpegAudio => {
                MediaKind::Audio
            }
            _ => MediaKind::Video,
        }
    }

    /// Units of its RTP clock in a second.
    #[must_use]
    pub fn clock_rate(&self) -> u32 {
        self.clock_rate
    }

    /// What a decoder of AAC has to know; `None` for other codecs.
    #[must_use]
    pub fn audio_config(&self) -> Option<AudioConfig> {
        self.audio_config
    }

    /// Frames (or audio packets) of the loop.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Frames of the file that are not in the loop: before the first key frame, or incomplete in a
    /// recording.
    #[must_use]
    pub fn skipped_frames(&self) -> u32 {
        self.skipped_frames
    }

    /// Duration of a turn of the loop, seconds.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        self.ticks as f64 / f64::from(self.clock_rate)
    }

    /// Mean payload bits per second.
    #[must_use]
    pub fn bitrate_bps(&self) -> f64 {
        self.bytes.len() as f64 * 8.0 / self.duration_s()
    }

    fn largest_frame(&self) -> u32 {
        let bytes = |frame: &Frame| {
            let first = frame.first_packet as usize;
            let packets =
                self.packets.get(first..first + usize::from(frame.packets)).unwrap_or_default();
            packets.iter().map(|packet| u32::from(packet.len)).sum::<u32>()
        };
        self.frames.iter().map(bytes).max().unwrap_or(0)
    }

    /// The payloads of each frame, in order.
    pub(super) fn frames(&self) -> impl Iterator<Item = impl Iterator<Item = &[u8]>> {
        self.frames.iter().map(|frame| {
            let first = frame.first_packet as usize;
            let packets =
                self.packets.get(first..first + usize::from(frame.packets)).unwrap_or_default();
            packets.iter().filter_map(|packet| {
                let start = packet.start as usize;
                self.bytes.get(start..start + usize::from(packet.len))
            })
        })
    }

    /// Payload bytes of its largest frame.
    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max as usize
    }

    /// Length of the loop in units of the clock; at least 1.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Time of frame `index` within the loop, units of the clock.
    pub(super) fn at(&self, index: usize) -> u64 {
        self.frames.get(index).map_or(0, |frame| frame.at)
    }

    pub(super) fn is_base(&self, index: usize) -> bool {
        self.frames.get(index).is_none_or(|frame| frame.is_base)
    }

    /// The first key frame at or after frame `index`, around the loop.
    pub(super) fn key_frame_from(&self, index: usize) -> usize {
        let is_key = |index: &usize| self.frames.get(*index).is_some_and(|frame| frame.is_key);
        (index..self.frames.len()).chain(0..index).find(is_key).unwrap_or(0)
    }

    /// The first frame at or after `ticks` within the loop.
    pub(super) fn index_at(&self, ticks: u64) -> usize {
        self.frames.partition_point(|frame| frame.at < ticks) % self.frames.len().max(1)
    }

    /// Whether a viewer can start with this frame.
    #[must_use]
    pub fn is_key(&self, frame: &PlayedFrame) -> bool {
        self.frames.get(frame.index as usize).is_some_and(|frame| frame.is_key)
    }

    /// Number of packets of the frame; at least one.
    #[must_use]
    pub fn packet_count(&self, frame: &PlayedFrame) -> usize {
        self.frames.get(frame.index as usize).map_or(0, |frame| usize::from(frame.packets))
    }

    /// Length of one of the frame's payloads, bytes; 0 for a packet that it does not have.
    #[must_use]
    pub fn payload_len(&self, frame: &PlayedFrame, packet: usize) -> usize {
        self.packet(frame, packet).map_or(0, |packet| usize::from(packet.len))
    }

    /// Appends a payload of the frame to `out`, with a mark of its capture time where the codec
    /// supports one. Returns false for a packet that the frame does not have.
    pub fn write_payload(
        &self,
        frame: &PlayedFrame,
        packet: usize,
        captured_unix_ns: u64,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(packet) = self.packet(frame, packet) else { return false };
        let start = packet.start as usize;
        let Some(bytes) = self.bytes.get(start..start + usize::from(packet.len)) else {
            return false;
        };
        let at = out.len();
        out.extend_from_slice(bytes);
        if packet.patch != Patch::default()
            && let Some(written) = out.get_mut(at..)
        {
            packet.patch.apply(written, frame, captured_unix_ns);
        }
        true
    }

    fn packet(&self, frame: &PlayedFrame, packet: usize) -> Option<&Packet> {
        let of = self.frames.get(frame.index as usize)?;
        (packet < usize::from(of.packets))
            .then(|| self.packets.get(of.first_packet as usize + packet))?
    }
}

impl Patch {
    /// The fields to fill in when a payload of `codec` is sent.
    fn of(codec: Codec, payload: &[u8]) -> Self {
        let mark = |payload: &[u8]| {
            let at = payload.windows(MARK_UUID.len()).position(|window| window == MARK_UUID)?;
            let numbers = at + MARK_UUID.len();
            (numbers + Mark::NUMBERS_LEN <= payload.len()).then(|| u16::try_from(numbers).ok())?
        };
        match codec {
            Codec::H264 | Codec::H265 => Self { mark: mark(payload), ..Self::default() },
            Codec::Vp8 => Self::of_vp8(payload).unwrap_or_default(),
            Codec::Vp9 => Self::of_vp9(payload).unwrap_or_default(),
            _ => Self::default(),
        }
    }

    /// RFC 7741 section 4.2: X, then I, L; the picture id, then TL0PICIDX.
    fn of_vp8(payload: &[u8]) -> Option<Self> {
        let present = (payload.first()? & 0x80 != 0).then(|| payload.get(1).copied())??;
        let mut at = 2;
        let mut patch = Self::default();
        if present & 0x80 != 0 {
            let is_wide = payload.get(2)? & 0x80 != 0;
            patch.picture_id = Some((2, is_wide));
            at += 1 + u8::from(is_wide);
        }
        patch.base_layer_index = (present & 0x40 != 0).then_some(at);
        Some(patch)
    }

    /// RFC 9628 section 4.2: I, then L, F; the picture id, the layer indices, then TL0PICIDX in
    /// non-flexible mode.
    fn of_vp9(payload: &[u8]) -> Option<Self> {
        let flags = *payload.first()?;
        let mut at = 1;
        let mut patch = Self::default();
        if flags & 0x80 != 0 {
            let is_wide = payload.get(1)? & 0x80 != 0;
            patch.picture_id = Some((1, is_wide));
            at += 1 + u8::from(is_wide);
        }
        patch.base_layer_index = (flags & 0x30 == 0x20).then_some(at + 1);
        Some(patch)
    }

    fn apply(self, payload: &mut [u8], frame: &PlayedFrame, captured_unix_ns: u64) {
        if let Some((at, is_wide)) = self.picture_id {
            let [high, low] = (frame.number() as u16 & 0x7fff).to_be_bytes();
            let at = usize::from(at);
            if is_wide && let Some(id) = payload.get_mut(at..at + 2) {
                id.copy_from_slice(&[0x80 | high, low]);
            } else if let Some(id) = payload.get_mut(at) {
                *id = low & 0x7f;
            }
        }
        if let Some(index) = self.base_layer_index.and_then(|at| payload.get_mut(usize::from(at))) {
            *index = frame.base_layer_index;
        }
        if let Some(at) = self.mark.map(usize::from)
            && let Some(numbers) = payload.get_mut(at..at + Mark::NUMBERS_LEN)
        {
            let mark = Mark { frame: frame.number(), captured_unix_ns };
            numbers.copy_from_slice(&mark.numbers());
        }
    }
}

/// Builds a clip, frame by frame.
pub(super) struct ClipBuilder {
    clip: Clip,
    /// Time of the last frame of the loop: in the input, and as stored.
    last: Option<(u64, u64)>,
}

impl ClipBuilder {
    pub(super) fn new(codec: Codec, clock_rate: u32) -> Self {
        let (bytes, packets, frames) = (Vec::new(), Vec::new(), Vec::new());
        let clip = Clip {
            codec,
            clock_rate,
            audio_config: None,
            bytes,
            packets,
            frames,
            ticks: 0,
            skipped_frames: 0,
            frame_bytes_max: 0,
        };
        Self { clip, last: None }
    }

    /// A builder of a clip of AAC.
    pub(super) fn aac(config: AudioConfig) -> Self {
        let mut builder = Self::new(Codec::Aac, config.sample_rate_hz);
        builder.clip.audio_config = Some(config);
        builder
    }

    /// Appends a frame at `at` units of the clock after an arbitrary origin; times must grow.
    /// Frames before the first key frame are left out.
    pub(super) fn frame<'a>(
        &mut self,
        at: u64,
        is_key: bool,
        is_base: bool,
        payloads: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), ClipError> {
        let clip = &mut self.clip;
        if clip.frames.is_empty() && !is_key {
            return self.skip_frame();
        }
        let first_packet = clip.packets.len();
        for payload in payloads {
            let start = u32::try_from(clip.bytes.len()).map_err(|_| ClipError::TooLong)?;
            let len = u16::try_from(payload.len()).map_err(|_| ClipError::TooLong)?;
            clip.bytes.extend_from_slice(payload);
            clip.packets.push(Packet { start, len, patch: Patch::of(clip.codec, payload) });
        }
        if clip.bytes.len() > CLIP_BYTES_MAX {
            return Err(ClipError::TooLong);
        }
        let packets =
            u16::try_from(clip.packets.len() - first_packet).map_err(|_| ClipError::TooLong)?;
        if packets == 0 {
            return self.skip_frame();
        }
        let kept = self.last.map_or(0, |(last, kept)| {
            kept + at.saturating_sub(last).min(u64::from(PAUSE_MAX_S * clip.clock_rate))
        });
        self.last = Some((at, kept));
        clip.frames.push(Frame {
            first_packet: first_packet as u32,
            packets,
            at: kept,
            is_key,
            is_base,
        });
        Ok(())
    }

    /// Counts a frame that is not part of the loop.
    #[expect(clippy::unnecessary_wraps, reason = "the tail of Self::frame")]
    pub(super) fn skip_frame(&mut self) -> Result<(), ClipError> {
        self.clip.skipped_frames = self.clip.skipped_frames.saturating_add(1);
        Ok(())
    }

    /// The clip. The duration of its last frame is the median of the others, or `last_ticks` when
    /// it is the only one.
    pub(super) fn finish(mut self, last_ticks: u64) -> Result<Clip, ClipError> {
        let frames = &self.clip.frames;
        if frames.is_empty() {
            return Err(if self.clip.skipped_frames > 0 {
                ClipError::NoKeyFrame
            } else {
                ClipError::Empty
            });
        }
        let mut steps: Vec<u64> = frames
            .windows(2)
            .filter_map(|pair| Some(pair.get(1)?.at.saturating_sub(pair.first()?.at)))
            .collect();
        steps.sort_unstable();
        let last = steps
            .get(steps.len() / 2)
            .copied()
            .unwrap_or(last_ticks)
            .clamp(1, u64::from(PAUSE_MAX_S * self.clip.clock_rate));
        self.clip.ticks = frames.last().map_or(0, |frame| frame.at) + last;
        self.clip.bytes.shrink_to_fit();
        self.clip.frame_bytes_max = self.clip.largest_frame();
        Ok(self.clip)
    }
}
