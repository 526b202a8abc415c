//! Packed audio (RFC 8216 section 3.4): frames of audio in no container. Segments of HLS begin with
//! an ID3 tag that has the time of their first frame.

use std::collections::VecDeque;

use throng_observation::MediaKind;

use super::audio::{AudioCoding, AudioEvent, AudioFrames};
use super::error::{Container, DAMAGED};
use super::{TimedFrame, TimingError, TrackInfo, Want, cut, scale};
use crate::octets::{chunk_at, u32_at, u64_at};

/// Ticks of time stamps a second: those of transport streams.
const HZ: u32 = 90_000;

/// Who has the time stamps in a private frame of the tag.
const OWNER: &[u8] = b"com.apple.streaming.transportStreamTimestamp\0";

/// Largest tags: pictures are in those of files.
const TAGS_LEN_MAX: usize = 4 << 20;

/// A tag begins like this.
const TAG: &[u8] = b"ID3";

/// The header of a tag, and its footer.
const TAG_HEADER_LEN: usize = 10;

/// The header of a frame of a tag.
const FRAME_HEADER_LEN: usize = 10;

/// Bytes that show the coding.
const CODING_LEN: usize = 4;

/// Media from which the rate is known.
const RATE_US_MIN: i64 = 1_000_000;

/// Whether a file begins like this.
pub(super) fn begins(first: &[u8]) -> bool {
    if first.starts_with(TAG) {
        return true;
    }
    let Some(coding) = coding(first) else { return false };
    let (mut frames, mut begun) = (AudioFrames::new(coding), false);
    frames.feed(first, |event| begun |= matches!(event, AudioEvent::Begins(_)));
    begun && frames.losses == 0
}

/// How a file is coded whose frames begin like this.
fn coding(first: &[u8]) -> Option<AudioCoding> {
    match *first {
        [0xff, second, ..] if second & 0xf6 == 0xf0 => Some(AudioCoding::Adts),
        [0xff, second, ..] if second & 0xe0 == 0xe0 => Some(AudioCoding::Mpeg),
        [0x0b, 0x77, ..] => Some(AudioCoding::Ac3),
        _ => None,
    }
}

/// Reads one file or segment.
#[derive(Debug)]
pub(super) struct Packed {
    total_bytes: Option<u64>,
    position: u64,
    /// The tags, until all of them are there.
    head: Vec<u8>,
    /// Where the frames begin.
    begins_at: u64,
    /// The time of the first frame, ticks.
    base: i64,
    sound: Option<Sound>,
    track: [TrackInfo; 1],
    frames: VecDeque<TimedFrame>,
}

/// The frames, once they have begun.
#[derive(Debug)]
struct Sound {
    frames: AudioFrames,
    /// When the frame that is being received begins, and the next one, from the first one on.
    at_us: i64,
    next: Clock,
}

/// Samples since a time: rounding does not add up.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    since_us: i64,
    samples: u64,
    hz: u32,
}

impl Clock {
    fn us(&self) -> i64 {
        let samples = i64::try_from(self.samples).unwrap_or(i64::MAX);
        self.since_us.saturating_add(scale::us(samples, self.hz))
    }
}

impl Packed {
    pub(super) fn new(total_bytes: Option<u64>) -> Self {
        let kind = MediaKind::Audio;
        Self {
            total_bytes,
            position: 0,
            head: Vec::new(),
            begins_at: 0,
            base: 0,
            sound: None,
            track: [TrackInfo { kind, codec: AudioCoding::Other.codec(), size: None }],
            frames: VecDeque::new(),
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn want(&self) -> Want {
        match self.total_bytes {
            Some(total) if self.position >= total => Want::Done,
            Some(total) => Want::Deliver(total - self.position),
            None => Want::Deliver(u64::MAX),
        }
    }

    pub(super) fn tracks(&self) -> Option<&[TrackInfo]> {
        self.sound.as_ref().map(|_| &self.track[..])
    }

    pub(super) fn next_frame(&mut self) -> Option<TimedFrame> {
        self.frames.pop_front()
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), TimingError> {
        self.position += bytes.len() as u64;
        if self.sound.is_some() {
            self.sound(bytes);
            return Ok(());
        }
        self.head.extend_from_slice(bytes);
        while let Some(len) = tag_len(&self.head) {
            if len > TAGS_LEN_MAX {
                return Err(self.error("tag (ID3)", "is larger than 4 MiB"));
            }
            let Some(tag) = self.head.get(..len) else { return Ok(()) };
            self.base = time(tag).unwrap_or(self.base);
            self.head.drain(..len);
        }
        let is_tag = self.head.starts_with(TAG);
        if self.head.len() < CODING_LEN || is_tag && self.head.len() < TAG_HEADER_LEN {
            return Ok(());
        }
        let Some(coding) = coding(&self.head) else {
            return Err(self.error("frame of audio", "is neither AAC (ADTS), MPEG audio nor AC-3"));
        };
        self.track[0].codec = coding.codec();
        self.begins_at = self.position - self.head.len() as u64;
        let frames = AudioFrames::new(coding);
        self.sound = Some(Sound { frames, at_us: 0, next: Clock::default() });
        let head = std::mem::take(&mut self.head);
        self.sound(&head);
        Ok(())
    }

    fn error(&self, place: &str, problem: &'static str) -> TimingError {
        TimingError {
            container: Container::PackedAudio,
            place: place.into(),
            offset: self.position - self.head.len() as u64,
            problem: problem.into(),
            hint: DAMAGED,
        }
    }

    /// Takes the next bytes of frames.
    fn sound(&mut self, bytes: &[u8]) {
        let (base_us, out) = (scale::us(self.base, HZ), &mut self.frames);
        let Some(Sound { frames, at_us, next }) = &mut self.sound else { return };
        frames.feed(bytes, |event| match event {
            AudioEvent::Begins(frame) if frame.is_played() => {
                let (samples, hz) = frame.samples();
                if next.hz != hz {
                    *next = Clock { since_us: next.us(), samples: 0, hz };
                }
                *at_us = next.us();
                next.samples += u64::from(samples);
            }
            AudioEvent::Ends(frame) if frame.is_played() => {
                let (samples, hz) = frame.samples();
                let starts_us = base_us.saturating_add(*at_us);
                out.push_back(TimedFrame {
                    track: 0,
                    decode_us: starts_us,
                    presentation_us: starts_us,
                    duration_us: scale::us(samples.into(), hz) as u32,
                    bytes: frame.bytes(),
                    is_key: true,
                });
            }
            AudioEvent::Begins(_) | AudioEvent::Ends(_) => {}
        });
    }

    /// Bytes of frames that were read, and for how much time.
    fn rate(&self) -> Option<(u64, i64)> {
        let us = self.sound.as_ref()?.next.us();
        let bytes = self.position.checked_sub(self.begins_at)?;
        (us >= RATE_US_MIN && bytes > 0).then_some((bytes, us))
    }

    /// Where this time is when the rest of the file has the rate of what was read.
    pub(super) fn offset_for(&self, time_us: u64) -> Option<(u64, u64)> {
        let (bytes, us) = self.rate()?;
        let offset = u128::from(time_us) * u128::from(bytes) / u128::from(us.unsigned_abs());
        let offset = self.begins_at.checked_add(u64::try_from(offset).ok()?)?;
        let last = self.total_bytes.map_or(u64::MAX, |total| total.saturating_sub(1));
        Some((offset.min(last), time_us))
    }

    pub(super) fn jumped(&mut self, offset: u64) {
        let rate = self.rate();
        self.position = offset;
        let Some(sound) = self.sound.as_mut().filter(|_| offset > self.begins_at) else {
            // The tags are read again.
            (self.sound, self.base) = (None, 0);
            return self.head.clear();
        };
        sound.frames.reset();
        let since_us = rate.map_or(0, |(bytes, us)| {
            let ahead = i128::from(offset - self.begins_at) * i128::from(us) / i128::from(bytes);
            i64::try_from(ahead).unwrap_or(i64::MAX)
        });
        sound.next = Clock { since_us, ..Clock::default() };
    }

    pub(super) fn finish(&mut self) -> Result<(), TimingError> {
        let cut = |place: &str| Err(cut(Container::PackedAudio, place, self.position));
        match &self.sound {
            None => cut("tag (ID3)"),
            Some(sound) if sound.frames.is_inside() => cut("frame of audio"),
            Some(_) => Ok(()),
        }
    }
}

/// The length of the tag that begins here; `None` when none does, or its header is not there yet.
fn tag_len(bytes: &[u8]) -> Option<usize> {
    let header: &[u8; TAG_HEADER_LEN] = chunk_at(bytes, 0)?;
    let footer_len = if header[5] & 0x10 == 0 { 0 } else { TAG_HEADER_LEN };
    header
        .starts_with(TAG)
        .then(|| TAG_HEADER_LEN + synchsafe(u32_at(header, 6).unwrap_or(0)) + footer_len)
}

/// A number of seven bits a byte (ID3v2.4 section 6.2).
fn synchsafe(number: u32) -> usize {
    number.to_be_bytes().iter().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f))
}

/// The time stamp in a tag, ticks.
fn time(tag: &[u8]) -> Option<i64> {
    let has_long_sizes = tag.get(3) == Some(&3);
    let mut rest = tag.get(TAG_HEADER_LEN..)?;
    loop {
        let (name, len) = (rest.get(..4)?, u32_at(rest, 4)?);
        let len = if has_long_sizes { usize::try_from(len).ok()? } else { synchsafe(len) };
        let (body, after) = rest.get(FRAME_HEADER_LEN..)?.split_at_checked(len)?;
        if name == b"PRIV"
            && let Some(stamp) = body.strip_prefix(OWNER)
        {
            // 33 bits of eight bytes.
            return i64::try_from(u64_at(stamp, 0)? & ((1 << 33) - 1)).ok();
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tag with a frame of no interest and a time stamp.
    fn tag(stamp: u64) -> Vec<u8> {
        let frame = |name: &[u8], body: &[u8]| {
            [name, &[0, 0, 0, body.len() as u8, 0, 0][..], body].concat()
        };
        let frames = [
            frame(b"TXXX", b"\x03key\0value"),
            frame(b"PRIV", &[OWNER, &stamp.to_be_bytes()[..]].concat()),
        ]
        .concat();
        [&b"ID3\x04\0\0\0\0"[..], &[(frames.len() >> 7) as u8, frames.len() as u8 & 0x7f], &frames]
            .concat()
    }

    /// Frames of AAC of 100 bytes at 48 kHz.
    fn frames(count: usize) -> Vec<u8> {
        let frame = [&[0xff, 0xf1, 0x4c, 0x80, 0x0c, 0x9f, 0xfc][..], &[0; 93]].concat();
        frame.repeat(count)
    }

    fn read(file: &[u8], piece: usize) -> (Vec<i64>, Result<(), TimingError>) {
        let mut reader = Packed::new(Some(file.len() as u64));
        let fed = file.chunks(piece).try_for_each(|piece| reader.feed(piece));
        let result = fed.and_then(|()| reader.finish());
        let frames = std::iter::from_fn(|| reader.next_frame());
        (frames.map(|frame| frame.decode_us).collect(), result)
    }

    #[test]
    fn frames_follow_the_time_stamp_of_their_tag() {
        for (what, head, expect_us) in [
            ("a time stamp", tag(900_000), 10_000_000),
            ("more than 33 bits", tag(1 << 40 | 90_000), 1_000_000),
            ("two tags", [tag(90_000), tag(180_000)].concat(), 2_000_000),
            ("no tag", Vec::new(), 0),
        ] {
            let file = [head, frames(3)].concat();
            assert!(begins(&file), "{what}");
            for piece in [1, 7, 10_000] {
                let (starts_us, result) = read(&file, piece);
                let expect = [0, 21_333, 42_667].map(|us| expect_us + us);
                assert_eq!((starts_us, result), (expect.to_vec(), Ok(())), "{what} {piece}");
            }
        }
    }

    #[test]
    fn what_is_no_audio_or_ends_early_is_named() {
        for (file, expect) in [
            ([tag(0), b"<html>".to_vec()].concat(), "neither AAC (ADTS), MPEG audio nor AC-3"),
            (tag(0), "tag (ID3) at offset"),
            ([tag(0), frames(2)[..150].to_vec()].concat(), "frame of audio at offset"),
            (b"ID3\x04\0\0\x7f\x7f\x7f\x7f".to_vec(), "is larger than 4 MiB"),
        ] {
            let error = read(&file, 64).1.unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
        for file in [&b"<html>"[..], b"\xff\xfe<\0h\0t\0m\0l\0", b"", b"ID"] {
            assert!(!begins(file), "{file:?}");
        }
    }

    #[test]
    fn a_file_is_sought_in_by_its_rate() {
        let mut reader = Packed::new(Some(1_000_000));
        reader.feed(&frames(100)).unwrap();
        // 100 bytes last 21.333 ms.
        let (offset, _) = reader.offset_for(21_333_333).unwrap();
        assert!((99_999..=100_001).contains(&offset), "{offset}");
        while reader.next_frame().is_some() {}
        reader.jumped(100_050);
        reader.feed(&frames(3)[50..]).unwrap();
        let next = reader.next_frame().unwrap();
        assert!((21_343_000..21_345_000).contains(&next.decode_us), "{next:?}");
        while reader.next_frame().is_some() {}
        reader.jumped(0);
        reader.feed(&frames(1)).unwrap();
        assert_eq!(reader.next_frame().map(|frame| frame.decode_us), Some(0));
    }
}
