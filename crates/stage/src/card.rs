//! The media clock: plays each track of the test card in a loop, frame by frame in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use throng_media::card::{Rung, picture, tone};
use throng_media::rtp::NtpTime;
use throng_media::source::{Clip, ClipError, Player};
use throng_observation::{Codec, MediaKind};

use crate::source::{Audience, Burst, Source};

/// A track of the card.
pub(crate) struct Track {
    source: Source,
    clip: Arc<Clip>,
}

/// All tracks of the card.
///
/// # Errors
/// What is wrong with a clip.
pub(crate) fn tracks() -> Result<Vec<Track>, ClipError> {
    let track = |source, clip| Ok(Track { source, clip });
    [
        track(Source::CardH264, picture(Rung::P360, Codec::H264)?),
        track(Source::CardVp8, picture(Rung::P360, Codec::Vp8)?),
        track(Source::CardLowH264, picture(Rung::P180, Codec::H264)?),
        track(Source::CardLowVp8, picture(Rung::P180, Codec::Vp8)?),
        track(Source::CardOpus, tone()?),
    ]
    .into_iter()
    .collect()
}

/// A track that is playing.
struct Playing {
    source: Source,
    player: Player,
    /// Number of the next packet.
    packet: u64,
    timestamp_base: u32,
}

impl Playing {
    fn new(track: Track, timestamp_base: u32) -> Self {
        Self { source: track.source, player: Player::new(track.clip), packet: 0, timestamp_base }
    }

    /// Time of the next frame after the start.
    fn due(&self) -> Duration {
        self.player.next_due()
    }

    /// The next frame's packets, captured now.
    fn next_burst(&mut self, now: Instant, wall_clock_ns: u64) -> Burst {
        let frame = self.player.advance();
        let clip = self.player.clip();
        let payloads: Vec<Vec<u8>> = (0..clip.packet_count(&frame))
            .map(|packet| {
                let mut payload = Vec::with_capacity(clip.payload_len(&frame, packet));
                clip.write_payload(&frame, packet, wall_clock_ns, &mut payload);
                payload
            })
            .collect();
        let burst = Burst {
            source: self.source,
            first_packet: self.packet,
            timestamp: self.timestamp_base.wrapping_add(frame.timestamp),
            key_frame: clip.is_key(&frame),
            marker: clip.kind() == MediaKind::Video,
            payloads,
            captured: NtpTime::from_unix_ns(wall_clock_ns),
            captured_at: now,
        };
        self.packet += burst.payloads.len() as u64;
        burst
    }

    /// Skips a frame without viewers.
    fn skip(&mut self) {
        self.player.skip();
    }
}

/// Plays `tracks` in a loop in real time until `stop`; `deliver` gets each frame that has viewers.
pub(crate) fn play(
    tracks: Vec<Track>,
    audience: &Audience,
    stop: &AtomicBool,
    deliver: impl Fn(Arc<Burst>),
) {
    let start = Instant::now();
    let mut playing: Vec<Playing> =
        tracks.into_iter().map(|track| Playing::new(track, fastrand::u32(..))).collect();
    while !stop.load(Relaxed) {
        let Some(next) = playing.iter_mut().min_by_key(|track| track.due()) else { return };
        let due = start + next.due();
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            std::thread::sleep(early);
        }
        if audience[next.source.place()].load(Relaxed) == 0 {
            next.skip();
        } else {
            deliver(Arc::new(next.next_burst(Instant::now(), wall_clock_ns())));
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
    use throng_media::mark::Mark;

    #[test]
    fn bursts_go_on_in_packets_and_timestamps() {
        for track in tracks().unwrap() {
            let frames = track.clip.frame_count();
            let mut playing = Playing::new(track, u32::MAX - 1_000);
            let first = playing.next_burst(Instant::now(), 1);
            assert_eq!(
                (first.first_packet, first.timestamp, first.key_frame),
                (0, u32::MAX - 1_000, true)
            );
            let mut expect = first.payloads.len() as u64;
            for _ in 0..2 * frames - 1 {
                let burst = playing.next_burst(Instant::now(), 1);
                assert_eq!(burst.first_packet, expect);
                expect += burst.payloads.len() as u64;
            }
            assert!(
                playing.next_burst(Instant::now(), 1).key_frame,
                "the loop begins with a key frame"
            );
        }
    }

    #[test]
    fn each_picture_of_h264_carries_its_mark() {
        let track =
            Track { source: Source::CardH264, clip: picture(Rung::P360, Codec::H264).unwrap() };
        let mut playing = Playing::new(track, 0);
        for frame in 0..100 {
            let captured_unix_ns = 1_700_000_000_000_000_000 + frame;
            let burst = playing.next_burst(Instant::now(), captured_unix_ns);
            let mut nal = Vec::new();
            Mark { frame: frame as u32, captured_unix_ns }.write_h264(&mut nal);
            assert!(
                burst.payloads[0].windows(nal.len()).any(|window| window == nal),
                "frame {frame}"
            );
        }
    }

    #[test]
    fn unwatched_frames_leave_no_gap_in_packets() {
        let track =
            Track { source: Source::CardH264, clip: picture(Rung::P360, Codec::H264).unwrap() };
        let mut playing = Playing::new(track, 0);
        let first = playing.next_burst(Instant::now(), 1);
        (0..7).for_each(|_| playing.skip());
        let next = playing.next_burst(Instant::now(), 1);
        assert_eq!(next.first_packet, first.payloads.len() as u64);
        assert_eq!(next.timestamp, 8 * 3_000);
    }
}
