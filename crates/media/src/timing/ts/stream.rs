//! One elementary stream: its PES packets (ISO/IEC 13818-1 section 2.4.3.6) and the frames in them.

use std::collections::VecDeque;

use throng_observation::{Codec, MediaKind};

use super::picture::{self, PictureType};
use super::timeline::Timeline;
use crate::codec::mp2t::TransportPacket;
use crate::codec::pes;
use crate::codec::program::{ElementaryStream, VideoCoding};
use crate::mark::MarkFinder;
use crate::octets::u16_at;
use crate::timing::audio::{AudioCoding, AudioEvent, AudioFrames};
use crate::timing::{MarkedFrame, TimedFrame, TrackInfo, scale};

/// Ticks of time stamps a second.
const HZ: u32 = 90_000;

/// A gap between frames that is no duration any more: 10 s.
const DURATION_MAX: i64 = 10 * HZ as i64;

/// How a stream is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Video(VideoCoding),
    Audio(AudioCoding),
}

impl Coding {
    /// The coding of a stream of a program; `None` when it is neither audio nor video.
    pub(super) fn of(stream: &ElementaryStream<'_>) -> Option<Self> {
        use AudioCoding::{Ac3, Adts, Loas, Mpeg, Other};
        if let Some(coding) = VideoCoding::of(stream.stream_type) {
            return Some(Self::Video(coding));
        }
        Some(match stream.stream_type {
            0x03 | 0x04 => Self::Audio(Mpeg),
            0x0f => Self::Audio(Adts),
            0x11 => Self::Audio(Loas),
            // Private data that descriptors name (DVB: ETSI EN 300 468; registered formats).
            0x06 => return private(stream.descriptors),
            // ATSC and Blu-ray.
            0x81 | 0x84 | 0x87 => Self::Audio(Ac3),
            0x80 | 0x82 | 0x83 | 0x85 | 0x86 | 0x88 => Self::Audio(Other),
            0x42 | 0xd2 | 0xea => Self::Video(VideoCoding::Other), // AVS, AVS3, VC-1
            _ => return None,
        })
    }

    pub(super) fn info(self) -> TrackInfo {
        match self {
            Self::Audio(coding) => {
                TrackInfo { kind: MediaKind::Audio, codec: coding.codec(), size: None }
            }
            Self::Video(coding) => TrackInfo {
                kind: MediaKind::Video,
                codec: match coding {
                    VideoCoding::Mpeg => Codec::MpegVideo,
                    VideoCoding::Mpeg4Visual => Codec::Mpeg4Visual,
                    VideoCoding::H264 => Codec::H264,
                    VideoCoding::H265 => Codec::H265,
                    VideoCoding::Other => Codec::Other,
                },
                size: None,
            },
        }
    }
}

/// What the descriptors of private data name.
fn private(mut descriptors: &[u8]) -> Option<Coding> {
    while let Some((&[tag, len], rest)) = descriptors.split_first_chunk::<2>() {
        let (body, after) = rest.split_at_checked(usize::from(len))?;
        match (tag, body) {
            (0x6a | 0x7a, _) | (0x05, b"AC-3" | b"EAC3") => {
                return Some(Coding::Audio(AudioCoding::Ac3));
            }
            (0x05, b"Opus") => return Some(Coding::Audio(AudioCoding::Opus)),
            (0x05, b"HEVC") => return Some(Coding::Video(VideoCoding::H265)),
            // DTS, AAC in private data.
            (0x7b | 0x7c, _) => return Some(Coding::Audio(AudioCoding::Other)),
            (0x05, b"AV01" | b"VC-1") => return Some(Coding::Video(VideoCoding::Other)),
            _ => descriptors = after,
        }
    }
    None
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) pid: u16,
    pub(super) coding: Coding,
    track: u16,
    continuity: Option<u8>,
    part: Part,
    /// Of the PES packet being received.
    random_access: bool,
    picture: Option<Picture>,
    /// Of the first picture.
    finder: MarkFinder,
    pub(super) marked: Option<MarkedFrame>,
    /// Of the first picture, until its track is told.
    size: Option<(u16, u16)>,
    /// Duration of the frame before, ticks.
    last_ticks: i64,
    audio: AudioFrames,
    sound: Sound,
}

/// Which part of a PES packet is being received.
#[derive(Debug)]
enum Part {
    /// None: its beginning has not been seen.
    Nothing,
    Header(Vec<u8>),
    /// The payload: bytes that are missing, where the packet says so.
    Payload(Option<usize>),
}

/// A frame of video that is being received.
#[derive(Clone, Copy, Debug)]
struct Picture {
    decode: i64,
    shown: i64,
    bytes: u32,
    kind: PictureType,
}

/// Time of audio: frames after the first of a PES packet follow each other.
#[derive(Clone, Copy, Debug, Default)]
struct Sound {
    /// The time stamp of the next frame that begins.
    stamp: Option<i64>,
    /// The last stamp, and the samples since it.
    base: Option<i64>,
    samples: u64,
    /// When the current frame begins.
    at_us: i64,
}

/// The longest header: nine bytes, and as many as one byte can announce.
const HEADER_LEN_MAX: usize = pes::HEADER_LEN + 255;

impl Stream {
    pub(super) fn new(pid: u16, coding: Coding, track: u16) -> Self {
        let framing = if let Coding::Audio(coding) = coding { coding } else { AudioCoding::Other };
        Self {
            pid,
            coding,
            track,
            continuity: None,
            part: Part::Nothing,
            random_access: false,
            picture: None,
            finder: MarkFinder::default(),
            marked: None,
            size: None,
            last_ticks: 0,
            audio: AudioFrames::new(framing),
            sound: Sound::default(),
        }
    }

    /// How often frames of audio were lost.
    pub(super) fn audio_losses(&self) -> u64 {
        if self.audio_coding() == Some(AudioCoding::Other) { 0 } else { self.audio.losses }
    }

    fn audio_coding(&self) -> Option<AudioCoding> {
        if let Coding::Audio(coding) = self.coding { Some(coding) } else { None }
    }

    /// Tells its track how large the first picture is, when that is known.
    pub(super) fn tell_size(&mut self, tracks: &mut [TrackInfo]) {
        if let Some(size) = self.size.take()
            && let Some(track) = tracks.get_mut(usize::from(self.track))
        {
            track.size = Some(size);
        }
    }

    /// What is received next does not continue what was received before.
    pub(super) fn restart(&mut self) {
        (self.part, self.continuity, self.picture) = (Part::Nothing, None, None);
        self.sound = Sound::default();
        self.audio.reset();
    }

    /// Takes a transport packet of this stream; returns the packets that are missing before it.
    pub(super) fn packet(
        &mut self,
        packet: &TransportPacket<'_>,
        timeline: &mut Timeline,
        frames: &mut VecDeque<TimedFrame>,
    ) -> u8 {
        let before = self.continuity.replace(packet.continuity);
        let step = before.map_or(1, |before| packet.continuity.wrapping_sub(before) & 0x0f);
        if step == 0 && !packet.is_discontinuity {
            return 0; // section 2.4.3.3 allows a packet to be repeated once
        }
        let missing = if packet.is_discontinuity { 0 } else { step - 1 };
        if missing > 0 {
            self.audio.reset();
            self.part = match self.part {
                Part::Payload(_) => Part::Payload(None),
                _ => Part::Nothing,
            };
        }
        if packet.starts_unit {
            self.random_access = packet.random_access;
            self.part = Part::Header(Vec::new());
        }
        self.data(packet.data, timeline, frames);
        missing
    }

    fn data(
        &mut self,
        mut data: &[u8],
        timeline: &mut Timeline,
        frames: &mut VecDeque<TimedFrame>,
    ) {
        if let Part::Header(header) = &mut self.part {
            let had = header.len();
            header.extend_from_slice(
                data.get(..data.len().min(HEADER_LEN_MAX - had)).unwrap_or_default(),
            );
            let Some(len) = header_len(header) else {
                // Not the beginning of a PES packet, or the rest of it is in the next transport
                // packet.
                if header.len() >= 3 && !header.starts_with(&[0, 0, 1]) {
                    self.part = Part::Nothing;
                }
                return;
            };
            if header.len() < len {
                return;
            }
            let header = std::mem::take(header);
            self.begin(&header, timeline, frames);
            data = data.get(len.saturating_sub(had)..).unwrap_or_default();
        }
        let Part::Payload(left) = &mut self.part else { return };
        if let Some(left) = left {
            data = data.get(..data.len().min(*left)).unwrap_or_default();
            *left -= data.len();
        }
        self.payload(data, frames);
    }

    /// A PES packet with this header begins.
    fn begin(&mut self, header: &[u8], timeline: &mut Timeline, frames: &mut VecDeque<TimedFrame>) {
        let packet_len = usize::from(u16_at(header, 4).unwrap_or_default());
        let flags = header.get(7).copied().unwrap_or_default();
        let fields_len = header.get(8).copied().unwrap_or_default();
        let left = packet_len.checked_sub(3 + usize::from(fields_len)).filter(|_| packet_len > 0);
        self.part = Part::Payload(left);
        let shown = if flags & 0x80 != 0 { pes::time(header, pes::HEADER_LEN) } else { None };
        // Without time it is the second field of a picture, or continues it.
        let Some(shown) = shown else { return };
        let decode = if flags & 0x40 != 0 { pes::time(header, pes::HEADER_LEN + 5) } else { None };
        let decode = timeline.unwrap(decode.unwrap_or(shown));
        let shown = timeline.near(shown, decode);
        match self.coding {
            Coding::Audio(AudioCoding::Other) => {
                self.picture(decode, shown, VideoCoding::Other, frames);
            }
            Coding::Audio(_) => self.sound.stamp = Some(shown),
            Coding::Video(coding) => self.picture(decode, shown, coding, frames),
        }
    }

    /// A picture begins: the one before is complete.
    fn picture(
        &mut self,
        decode: i64,
        shown: i64,
        coding: VideoCoding,
        frames: &mut VecDeque<TimedFrame>,
    ) {
        if let Some(before) = &self.picture {
            let ticks = decode - before.decode;
            self.last_ticks =
                if (1..DURATION_MAX).contains(&ticks) { ticks } else { self.last_ticks };
        }
        self.end_picture(frames);
        let kind = PictureType::new(coding, self.random_access);
        self.picture = Some(Picture { decode, shown, bytes: 0, kind });
    }

    fn end_picture(&mut self, frames: &mut VecDeque<TimedFrame>) {
        let Some(picture) = self.picture.take() else { return };
        if !self.finder.is_over() {
            let decode_us = scale::us(picture.decode, HZ);
            if self.coding == Coding::Video(VideoCoding::H264) {
                self.size = picture::size(self.finder.bytes());
            }
            self.marked = self.finder.finish().map(|mark| MarkedFrame { decode_us, mark });
        }
        frames.push_back(TimedFrame {
            track: self.track,
            decode_us: scale::us(picture.decode, HZ),
            presentation_us: scale::us(picture.shown, HZ),
            duration_us: scale::us(self.last_ticks, HZ) as u32,
            bytes: picture.bytes,
            is_key: picture.kind.is_key() || matches!(self.coding, Coding::Audio(_)),
        });
    }

    fn payload(&mut self, data: &[u8], frames: &mut VecDeque<TimedFrame>) {
        let (track, sound) = (self.track, &mut self.sound);
        match self.coding {
            Coding::Video(coding) => {
                if let Some(picture) = &mut self.picture {
                    picture.bytes = picture.bytes.saturating_add(data.len() as u32);
                    picture.kind.feed(data, coding);
                    if matches!(coding, VideoCoding::H264 | VideoCoding::H265) {
                        self.finder.feed(data);
                    }
                }
            }
            Coding::Audio(AudioCoding::Other) => {
                if let Some(picture) = &mut self.picture {
                    picture.bytes = picture.bytes.saturating_add(data.len() as u32);
                }
            }
            Coding::Audio(_) => self.audio.feed(data, |event| match event {
                AudioEvent::Begins(frame) if frame.is_played() => sound.begin(frame.samples()),
                AudioEvent::Ends(frame) if frame.is_played() && sound.base.is_some() => {
                    let (samples, hz) = frame.samples();
                    frames.push_back(TimedFrame {
                        track,
                        decode_us: sound.at_us,
                        presentation_us: sound.at_us,
                        duration_us: scale::us(samples.into(), hz) as u32,
                        bytes: frame.bytes(),
                        is_key: true,
                    });
                }
                _ => {}
            }),
        }
    }

    /// The stream ends; `false` when it ends inside a frame.
    pub(super) fn finish(&mut self, frames: &mut VecDeque<TimedFrame>) -> bool {
        let is_whole = !matches!(self.part, Part::Payload(Some(1..)) | Part::Header(_));
        let is_whole = is_whole && (self.audio_coding().is_none() || !self.audio.is_inside());
        if is_whole {
            self.end_picture(frames);
        }
        self.restart();
        is_whole
    }
}

/// The length of a PES header; `None` when the byte that says so is missing, or it is none.
fn header_len(header: &[u8]) -> Option<usize> {
    if !header.starts_with(&[0, 0, 1]) {
        return None;
    }
    header.get(8).map(|fields_len| pes::HEADER_LEN + usize::from(*fields_len))
}

impl Sound {
    fn begin(&mut self, (samples, hz): (u32, u32)) {
        if let Some(stamp) = self.stamp.take() {
            (self.base, self.samples) = (Some(stamp), 0);
        }
        let Some(base) = self.base else { return };
        // Counted from the stamp, so that rounding does not add up.
        let since = i64::try_from(self.samples).unwrap_or(i64::MAX);
        self.at_us = scale::us(base, HZ).saturating_add(scale::us(since, hz));
        self.samples = self.samples.saturating_add(samples.into());
    }
}
