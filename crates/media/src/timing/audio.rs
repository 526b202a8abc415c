//! Frames of audio that follow each other, in a PES stream or in no container: PES packets of audio
//! have several, and a frame may go on in the next one. Each frame begins with a header from which
//! its length follows, so that only the headers are looked at.

use throng_observation::Codec;

use crate::codec::{OpusPacket, mpeg_audio};
use crate::octets::{chunk_at, u16_at};

/// How audio is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AudioCoding {
    /// MPEG-1 and MPEG-2 audio, all layers.
    Mpeg,
    /// AAC with ADTS headers (ISO/IEC 13818-7 section 6.2).
    Adts,
    /// AAC in LOAS (ISO/IEC 14496-3 section 1.7.2).
    Loas,
    /// AC-3 and E-AC-3 (ETSI TS 102 366).
    Ac3,
    /// Opus (the Opus in MPEG-TS draft of Xiph).
    Opus,
    /// One whose frames are not told apart: a PES packet counts as one.
    Other,
}

impl AudioCoding {
    pub(super) fn codec(self) -> Codec {
        match self {
            Self::Mpeg => Codec::MpegAudio,
            Self::Adts | Self::Loas => Codec::Aac,
            Self::Opus => Codec::Opus,
            Self::Ac3 | Self::Other => Codec::Other,
        }
    }
}

/// The longest header: that of Opus, whose length has a byte for every 255 bytes.
const HEAD_LEN_MAX: usize = 32;

/// What the first bytes of a frame show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// They are too few.
    More,
    /// A frame.
    Frame(Frame),
    /// No frame begins here.
    Bad,
}

/// A frame by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Its bytes, with the header.
    len: usize,
    /// Those of them that only serve the transport.
    overhead: usize,
    /// Its samples and how many there are in a second; no samples: it extends the frame before.
    samples: u32,
    hz: u32,
}

impl Frame {
    /// Coded bytes.
    pub(super) fn bytes(&self) -> u32 {
        (self.len - self.overhead) as u32
    }

    /// Whether it stands for time of its own.
    pub(super) fn is_played(&self) -> bool {
        self.samples > 0
    }

    pub(super) fn samples(&self) -> (u32, u32) {
        (self.samples, self.hz)
    }
}

/// Finds the frames.
#[derive(Clone, Debug)]
pub(super) struct AudioFrames {
    coding: AudioCoding,
    head: [u8; HEAD_LEN_MAX],
    head_len: usize,
    /// The frame that is being received, and the bytes that it misses.
    frame: Option<(Frame, usize)>,
    /// Bytes that were no frame follow each other.
    lost: bool,
    /// How often the frames were lost.
    pub(super) losses: u64,
    /// Sampling rate that LOAS told.
    hz: u32,
}

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AudioEvent {
    /// It begins with these bytes.
    Begins(Frame),
    /// Its last byte was received.
    Ends(Frame),
}

impl AudioFrames {
    pub(super) fn new(coding: AudioCoding) -> Self {
        let (head, frame) = ([0; HEAD_LEN_MAX], None);
        Self { coding, head, head_len: 0, frame, lost: false, losses: 0, hz: 48_000 }
    }

    /// Whether a frame is incomplete.
    pub(super) fn is_inside(&self) -> bool {
        self.frame.is_some() || self.head_len > 0
    }

    /// Bytes are missing: looks for the next frame.
    pub(super) fn reset(&mut self) {
        (self.head_len, self.frame) = (0, None);
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut tell: impl FnMut(AudioEvent)) {
        while !bytes.is_empty() {
            if let Some((frame, left)) = &mut self.frame {
                let taken = (*left).min(bytes.len());
                (*left, bytes) = (*left - taken, bytes.get(taken..).unwrap_or_default());
                if *left == 0 {
                    tell(AudioEvent::Ends(*frame));
                    self.frame = None;
                }
                continue;
            }
            let (byte, rest) = (bytes[0], &bytes[1..]);
            self.head[self.head_len.min(HEAD_LEN_MAX - 1)] = byte;
            self.head_len += 1;
            bytes = rest;
            self.begin(&mut tell);
        }
    }

    /// Reads what was gathered of a header.
    fn begin(&mut self, tell: &mut impl FnMut(AudioEvent)) {
        loop {
            match self.read() {
                Head::More if self.head_len < HEAD_LEN_MAX => return,
                Head::Frame(frame) if frame.len >= self.head_len => {
                    let left = frame.len - self.head_len;
                    (self.head_len, self.lost) = (0, false);
                    tell(AudioEvent::Begins(frame));
                    if left == 0 {
                        tell(AudioEvent::Ends(frame));
                    } else {
                        self.frame = Some((frame, left));
                    }
                    return;
                }
                _ => {
                    self.losses += u64::from(!self.lost);
                    self.lost = true;
                    self.head.copy_within(1.., 0);
                    self.head_len -= 1;
                    if self.head_len == 0 {
                        return;
                    }
                }
            }
        }
    }

    fn read(&mut self) -> Head {
        let head = self.head.get(..self.head_len).unwrap_or_default();
        match self.coding {
            AudioCoding::Mpeg => mpeg(head),
            AudioCoding::Adts => adts(head),
            AudioCoding::Loas => loas(head, &mut self.hz),
            AudioCoding::Ac3 => ac3(head),
            AudioCoding::Opus => opus(head),
            AudioCoding::Other => Head::Bad,
        }
    }
}

fn mpeg(head: &[u8]) -> Head {
    if u16_at(head, 0).is_some_and(|sync| sync < 0xffe0)
        || head.first().is_some_and(|byte| *byte != 0xff)
    {
        return Head::Bad;
    }
    let Some(header) = chunk_at(head, 0) else { return Head::More };
    match mpeg_audio::frame(*header) {
        Some(frame) if frame.len > 4 => {
            Head::Frame(Frame { len: frame.len, overhead: 0, samples: frame.samples, hz: frame.hz })
        }
        _ => Head::Bad,
    }
}

/// Sampling rates by their index (ISO/IEC 14496-3 table 1.18).
const AAC_HZ: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

fn adts(head: &[u8]) -> Head {
    if head.first().is_some_and(|byte| *byte != 0xff)
        || head.get(1).is_some_and(|byte| byte & 0xf6 != 0xf0)
    {
        return Head::Bad;
    }
    let Some(&[_, _, rate, high, middle, low, blocks]) = chunk_at(head, 0) else {
        return Head::More;
    };
    let len = usize::from(high & 3) << 11 | usize::from(middle) << 3 | usize::from(low >> 5);
    let hz = AAC_HZ.get(usize::from(rate >> 2 & 0x0f));
    match hz {
        // FFmpeg removes the header only when it writes another container, so it counts.
        Some(&hz) if len >= 7 => Head::Frame(Frame {
            len,
            overhead: 0,
            samples: 1_024 * (1 + u32::from(blocks & 3)),
            hz,
        }),
        _ => Head::Bad,
    }
}

/// A length of 13 bits after a sync word of 11; then the configuration, where it is not that of the
/// frame before: StreamMuxConfig of version 0, and in it the sampling rate.
fn loas(head: &[u8], known_hz: &mut u32) -> Head {
    if head.first().is_some_and(|byte| *byte != 0x56)
        || head.get(1).is_some_and(|byte| byte & 0xe0 != 0xe0)
    {
        return Head::Bad;
    }
    let Some(&[_, high, low, a, b, c, d]) = chunk_at(head, 0) else { return Head::More };
    let len = 3 + (usize::from(high & 0x1f) << 8 | usize::from(low));
    let bits = u32::from_be_bytes([a, b, c, d]);
    if bits >> 30 == 0 {
        // 2 + 14 bits, an object type of 5, then the index of the rate.
        if let Some(hz) = AAC_HZ.get((bits >> 7 & 0x0f) as usize) {
            *known_hz = *hz;
        }
    }
    if len < 7 {
        return Head::Bad;
    }
    Head::Frame(Frame { len, overhead: 0, samples: 1_024, hz: *known_hz })
}

/// Bit rates of AC-3 by the upper bits of `frmsizecod` (TS 102 366 table 4.13), kbit/s.
const AC3_KBPS: [usize; 19] =
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
const AC3_HZ: [u32; 3] = [48_000, 44_100, 32_000];

fn ac3(head: &[u8]) -> Head {
    if head.first().is_some_and(|byte| *byte != 0x0b)
        || head.get(1).is_some_and(|byte| *byte != 0x77)
    {
        return Head::Bad;
    }
    let Some(&[_, _, first, second, sizes, version]) = chunk_at(head, 0) else { return Head::More };
    let rate = usize::from(sizes >> 6);
    if version >> 3 <= 10 {
        let (Some(&hz), Some(&kbps)) =
            (AC3_HZ.get(rate), AC3_KBPS.get(usize::from(sizes >> 1 & 0x1f)))
        else {
            return Head::Bad;
        };
        // 1536 samples; only at 44.1 kHz it is not a whole number of words of 16 bits.
        let words = kbps * 96_000 / hz as usize + usize::from(rate == 1) * usize::from(sizes & 1);
        return Head::Frame(Frame { len: 2 * words, overhead: 0, samples: 1_536, hz });
    }
    // E-AC-3 (annex E): strmtyp, substreamid, frmsiz; fscod, then numblkscod or fscod2.
    let len = 2 * (usize::from(first & 7) << 8 | usize::from(second)) + 2;
    let blocks = [1, 2, 3, 6][usize::from(sizes >> 4 & 3)];
    let (hz, blocks) = match AC3_HZ.get(rate) {
        Some(hz) => (*hz, blocks),
        None => (AC3_HZ.get(usize::from(sizes >> 4 & 3)).map_or(48_000, |hz| hz / 2), 6),
    };
    // A dependent or additional substream has the time of the first.
    let is_first = first >> 6 != 1 && first >> 3 & 7 == 0;
    if len < 6 {
        return Head::Bad;
    }
    Head::Frame(Frame { len, overhead: 0, samples: if is_first { 256 * blocks } else { 0 }, hz })
}

/// A control header, then an Opus packet.
fn opus(head: &[u8]) -> Head {
    if head.first().is_some_and(|byte| *byte != 0x7f)
        || head.get(1).is_some_and(|byte| byte & 0xe0 != 0xe0)
    {
        return Head::Bad;
    }
    let Some(&flags) = head.get(1) else { return Head::More };
    let sizes = head.get(2..).unwrap_or_default();
    let full = sizes.iter().take_while(|byte| **byte == 0xff).count();
    let Some(&last) = sizes.get(full) else { return Head::More };
    let packet_len = 255 * full + usize::from(last);
    let mut overhead = 3
        + full
        + [0x10, 0x08].map(|flag| if flags & flag == 0 { 0 } else { 2 }).iter().sum::<usize>();
    if flags & 0x04 != 0 {
        let Some(&extension_len) = head.get(overhead) else { return Head::More };
        overhead += 1 + usize::from(extension_len);
    }
    if packet_len == 0 || overhead + 2 > HEAD_LEN_MAX {
        return Head::Bad;
    }
    let Some(first) = head.get(overhead..overhead + packet_len.min(2)) else { return Head::More };
    match OpusPacket::parse(first) {
        Ok(packet) => Head::Frame(Frame {
            len: overhead + packet_len,
            overhead,
            samples: packet.duration_samples,
            hz: 48_000,
        }),
        Err(_) => Head::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(coding: AudioCoding, bytes: &[u8], piece: usize) -> (Vec<(usize, u32, u32)>, u64) {
        let mut reader = AudioFrames::new(coding);
        let mut ended = Vec::new();
        for piece in bytes.chunks(piece) {
            reader.feed(piece, |event| {
                if let AudioEvent::Ends(frame) = event {
                    ended.push((frame.len, frame.samples, frame.hz));
                }
            });
        }
        (ended, reader.losses)
    }

    fn frame(head: &[u8], len: usize) -> Vec<u8> {
        let mut frame = head.to_vec();
        frame.resize(len, 0);
        frame
    }

    #[test]
    fn frames_are_found_in_pieces_of_any_size_and_after_garbage() {
        for (coding, frame, expect) in [
            (AudioCoding::Mpeg, frame(&[0xff, 0xfd, 0xe0, 0xc4], 1253), (1253, 1152, 44_100)),
            (AudioCoding::Mpeg, frame(&[0xff, 0xf3, 0x84, 0xc4], 192), (192, 576, 24_000)),
            (
                AudioCoding::Adts,
                frame(&[0xff, 0xf1, 0x50, 0x80, 0x25, 0x7f, 0xfc], 299),
                (299, 1024, 44_100),
            ),
            (
                AudioCoding::Loas,
                frame(&[0x56, 0xe0, 0x40, 0x20, 0x00, 0x11, 0x90], 67),
                (67, 1024, 48_000),
            ),
            (AudioCoding::Ac3, frame(&[0x0b, 0x77, 1, 2, 0x14, 0x40], 768), (768, 1536, 48_000)),
            (AudioCoding::Ac3, frame(&[0x0b, 0x77, 1, 2, 0x55, 0x40], 836), (836, 1536, 44_100)),
            (AudioCoding::Ac3, frame(&[0x0b, 0x77, 0, 0x7f, 0x30, 0x80], 256), (256, 1536, 48_000)),
            (AudioCoding::Opus, frame(&[0x7f, 0xe0, 0xff, 2, 0xfc], 4 + 257), (261, 960, 48_000)),
            (AudioCoding::Opus, frame(&[0x7f, 0xf0, 3, 0, 9, 0xf8], 8), (8, 960, 48_000)),
        ] {
            let two = [&frame[..], &frame].concat();
            let garbage = [&[0xff, 0x0b, 0x7f, 0x56, 1, 2][..], &two].concat();
            for piece in [1, 2, 3, 7, 184, 10_000] {
                assert_eq!(self::frames(coding, &two, piece), (vec![expect; 2], 0), "{coding:?}");
                assert_eq!(
                    self::frames(coding, &garbage, piece),
                    (vec![expect; 2], 1),
                    "{coding:?}"
                );
            }
        }
    }

    #[test]
    fn substreams_of_eac3_have_no_time_of_their_own() {
        let dependent = frame(&[0x0b, 0x77, 0x40, 0x7f, 0x30, 0x80], 256);
        assert_eq!(frames(AudioCoding::Ac3, &dependent, 99).0, [(256, 0, 48_000)]);
    }
}
