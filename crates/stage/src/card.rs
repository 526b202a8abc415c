//! The test card: clips that `media/make.sh` encoded, cut into frames, and the clock that plays them in a loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use throng_media::container::{annexb, ivf::IvfReader, ogg::OggReader};
use throng_media::mark::Mark;
use throng_media::packetise;
use throng_media::rtp::NtpTime;

use crate::source::{Audience, Burst, Source};

/// Longest RTP payload. With header, extensions and tag below the 1 200 bytes that every path is known to carry.
const PAYLOAD_MAX: usize = 1_140;

static H264: &[u8] = include_bytes!("../media/card-640x360-30.h264");
static VP8: &[u8] = include_bytes!("../media/card-640x360-30.ivf");
static LOW_H264: &[u8] = include_bytes!("../media/card-320x180-15.h264");
static LOW_VP8: &[u8] = include_bytes!("../media/card-320x180-15.ivf");
static OPUS: &[u8] = include_bytes!("../media/card.opus.ogg");

/// Frames of one clip and how fast they are played.
pub(crate) struct Track {
    source: Source,
    frames: Vec<Frame>,
    /// Frames in a second.
    rate: u32,
    clock_rate: u32,
}

enum Frame {
    H264 { nals: Vec<&'static [u8]>, key: bool },
    Vp8 { data: &'static [u8], key: bool },
    Opus(Vec<u8>),
}

impl Frame {
    fn is_key(&self) -> bool {
        match self {
            Frame::H264 { key, .. } | Frame::Vp8 { key, .. } => *key,
            Frame::Opus(_) => true,
        }
    }
}

/// All tracks of the card.
///
/// # Errors
/// What is wrong with a clip.
pub(crate) fn tracks() -> Result<Vec<Track>, String> {
    let tracks = vec![
        h264(Source::CardH264, H264, 30),
        vp8(Source::CardVp8, VP8, 30)?,
        h264(Source::CardLowH264, LOW_H264, 15),
        vp8(Source::CardLowVp8, LOW_VP8, 15)?,
        opus(OPUS)?,
    ];
    match tracks.iter().find(|track| !track.frames.first().is_some_and(Frame::is_key)) {
        Some(track) => Err(format!("{:?} does not begin with a key frame", track.source)),
        None => Ok(tracks),
    }
}

fn h264(source: Source, clip: &'static [u8], rate: u32) -> Track {
    let units = annexb::h264_access_units(clip);
    let frames = units.map(|unit| Frame::H264 { nals: unit.nals, key: unit.key_frame }).collect();
    Track { source, frames, rate, clock_rate: 90_000 }
}

fn vp8(source: Source, clip: &'static [u8], rate: u32) -> Result<Track, String> {
    let reader = IvfReader::new(clip).map_err(|error| format!("{source:?}: {error}"))?;
    let frames = reader
        .map(|frame| {
            frame.map(|frame| Frame::Vp8 { data: frame.data, key: packetise::vp8::is_key_frame(frame.data) })
        })
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{source:?}: {error}"))?;
    Ok(Track { source, frames, rate, clock_rate: 90_000 })
}

fn opus(clip: &'static [u8]) -> Result<Track, String> {
    // Head and tags come first; after three seconds comes what only flushes the encoder.
    let packets: Vec<Vec<u8>> = OggReader::new(clip)
        .skip(2)
        .take(150)
        .map(|packet| packet.map(std::borrow::Cow::into_owned))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("Opus: {error}"))?;
    if packets.iter().any(|packet| packetise::opus::duration_samples(packet) != Some(960)) {
        return Err("Opus: a packet is not 20 ms long".into());
    }
    let frames = packets.into_iter().map(Frame::Opus).collect();
    Ok(Track { source: Source::CardOpus, frames, rate: 50, clock_rate: 48_000 })
}

/// A track that is playing.
struct Playing {
    track: Track,
    /// Number of the next frame since the stage began.
    frame: u64,
    /// Number of the next packet.
    packet: u64,
    timestamp_base: u32,
}

impl Playing {
    /// When the next frame is due, after the start.
    fn due(&self) -> Duration {
        Duration::from_nanos(self.frame * 1_000_000_000 / u64::from(self.track.rate))
    }

    /// The next frame's packets, captured now.
    fn next_burst(&mut self, now: Instant, wall_clock_ns: u64) -> Option<Burst> {
        let place = (self.frame % self.track.frames.len().max(1) as u64) as usize;
        let frame = self.track.frames.get(place)?;
        let mut payloads = Vec::with_capacity(4);
        match frame {
            Frame::H264 { nals, .. } => {
                let mut mark = Vec::with_capacity(Mark::H264_NAL_LEN);
                Mark { frame: self.frame as u32, captured_unix_ns: wall_clock_ns }.write_h264(&mut mark);
                packetise::h264::packetise(&with_mark(nals, &mark), PAYLOAD_MAX, &mut payloads);
            }
            Frame::Vp8 { data, .. } => {
                packetise::vp8::packetise(data, self.frame as u16, PAYLOAD_MAX, &mut payloads);
            }
            Frame::Opus(packet) => payloads.push(packet.clone()),
        }
        let ticks = self.frame * u64::from(self.track.clock_rate) / u64::from(self.track.rate);
        let burst = Burst {
            source: self.track.source,
            first_packet: self.packet,
            timestamp: self.timestamp_base.wrapping_add(ticks as u32),
            key_frame: frame.is_key(),
            marker: !matches!(frame, Frame::Opus(_)),
            payloads,
            captured: NtpTime::from_unix_ns(wall_clock_ns),
            captured_at: now,
        };
        self.packet += burst.payloads.len() as u64;
        self.frame += 1;
        Some(burst)
    }

    /// Lets a frame pass that nobody watches.
    fn skip(&mut self) {
        self.frame += 1;
    }
}

/// The access unit with an SEI unit before its first slice.
fn with_mark<'a>(nals: &[&'a [u8]], mark: &'a [u8]) -> Vec<&'a [u8]> {
    let is_slice = |nal: &&&[u8]| nal.first().is_some_and(|head| matches!(head & 0x1f, 1..=5));
    let before = nals.iter().take_while(|nal| !is_slice(nal)).count();
    let mut marked = nals.to_vec();
    marked.insert(before, mark);
    marked
}

/// Plays `tracks` in a loop, in their time, until `stop`; `deliver` gets each frame that has an audience.
pub(crate) fn play(tracks: Vec<Track>, audience: &Audience, stop: &AtomicBool, deliver: impl Fn(Arc<Burst>)) {
    let start = Instant::now();
    let mut playing: Vec<Playing> = tracks
        .into_iter()
        .map(|track| Playing { track, frame: 0, packet: 0, timestamp_base: fastrand::u32(..) })
        .collect();
    while !stop.load(Relaxed) {
        let Some(next) = playing.iter_mut().min_by_key(|track| track.due()) else { return };
        let due = start + next.due();
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            std::thread::sleep(early);
        }
        if audience[next.track.source as usize].load(Relaxed) == 0 {
            next.skip();
        } else if let Some(burst) = next.next_burst(Instant::now(), wall_clock_ns()) {
            deliver(Arc::new(burst));
        }
    }
}

/// Nanoseconds since the Unix epoch.
pub(crate) fn wall_clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clips_are_three_seconds_with_a_key_frame_each() {
        for track in tracks().unwrap() {
            assert_eq!(track.frames.len(), 3 * track.rate as usize, "{:?}", track.source);
            if track.source != Source::CardOpus {
                let keys = track.frames.iter().positions_of_keys();
                assert_eq!(keys, [0, track.rate as usize, 2 * track.rate as usize], "{:?}", track.source);
            }
        }
    }

    trait KeyPositions {
        fn positions_of_keys(self) -> Vec<usize>;
    }

    impl<'a, I: Iterator<Item = &'a Frame>> KeyPositions for I {
        fn positions_of_keys(self) -> Vec<usize> {
            self.enumerate().filter(|(_, frame)| frame.is_key()).map(|(place, _)| place).collect()
        }
    }

    #[test]
    fn loops_go_on_in_packets_and_timestamps() {
        for track in tracks().unwrap() {
            let (frames, step) = (track.frames.len() as u32, track.clock_rate / track.rate);
            let mut playing = Playing { track, frame: 0, packet: 0, timestamp_base: u32::MAX - 1_000 };
            let mut last: Option<Burst> = None;
            for _ in 0..2 * frames + 1 {
                let burst = playing.next_burst(Instant::now(), 1).unwrap();
                assert!(burst.payloads.iter().all(|payload| (1..=PAYLOAD_MAX).contains(&payload.len())));
                if let Some(last) = last {
                    assert_eq!(burst.timestamp.wrapping_sub(last.timestamp), step);
                    assert_eq!(burst.first_packet, last.first_packet + last.payloads.len() as u64);
                }
                last = Some(burst);
            }
            assert!(last.unwrap().key_frame, "the loop begins with a key frame");
        }
    }

    #[test]
    fn each_picture_of_h264_carries_its_mark_before_the_slice() {
        let mut playing =
            Playing { track: h264(Source::CardH264, H264, 30), frame: 0, packet: 0, timestamp_base: 0 };
        for frame in 0..35 {
            let captured_unix_ns = 1_700_000_000_000_000_000 + frame;
            let burst = playing.next_burst(Instant::now(), captured_unix_ns).unwrap();
            let first = &burst.payloads[0];
            assert_eq!(first[0] & 0x1f, if first[0] & 0x1f == 6 { 6 } else { 24 }, "frame {frame}");
            let mut nal = Vec::new();
            Mark { frame: frame as u32, captured_unix_ns }.write_h264(&mut nal);
            assert!(first.windows(nal.len()).any(|window| window == nal), "frame {frame}");
        }
    }

    #[test]
    fn unwatched_frames_leave_no_gap_in_packets() {
        let mut playing =
            Playing { track: h264(Source::CardH264, H264, 30), frame: 0, packet: 0, timestamp_base: 0 };
        let first = playing.next_burst(Instant::now(), 1).unwrap();
        (0..7).for_each(|_| playing.skip());
        let next = playing.next_burst(Instant::now(), 1).unwrap();
        assert_eq!(next.first_packet, first.payloads.len() as u64);
        assert_eq!(next.timestamp, 8 * 3_000);
    }
}
