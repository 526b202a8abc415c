//! One sender's position in a clip.

use std::sync::Arc;
use std::time::Duration;

use super::clip::{Clip, PlayedFrame};

/// A requested key frame is not played again at its own time if that is less than this later.
const BACK_MIN: Duration = Duration::from_millis(100);

/// Plays a clip in a loop: timestamps, frame numbers and picture ids continue from turn to turn,
/// and over jumps.
#[derive(Clone, Debug)]
pub struct Player {
    clip: Arc<Clip>,
    index: usize,
    /// After a requested key frame: when its own time in the loop comes, units since the start, and
    /// its index.
    back: Option<(u64, usize)>,
    /// Units of the clock from the start to the next frame.
    ticks: u64,
    /// The same as a duration: read several times a packet, and computing it takes three divisions.
    next_due: Duration,
    number: u32,
    base_layer_index: u8,
}

impl Player {
    /// A player at the start of `clip`.
    #[must_use]
    pub fn new(clip: Arc<Clip>) -> Self {
        Self {
            clip,
            index: 0,
            back: None,
            ticks: 0,
            next_due: Duration::ZERO,
            number: 0,
            base_layer_index: 0,
        }
    }

    /// The same, `offset` into the loop, at the next key frame: so that senders of one clip do not
    /// send their large frames all at once.
    #[must_use]
    pub fn starting_at(clip: Arc<Clip>, offset: Duration) -> Self {
        let ticks = ticks(offset, clip.clock_rate()) % clip.ticks();
        let index = clip.key_frame_from(clip.index_at(ticks));
        Self { index, ..Self::new(clip) }
    }

    /// The clip that it plays.
    #[must_use]
    pub fn clip(&self) -> &Arc<Clip> {
        &self.clip
    }

    /// Time of the next frame, after the start.
    #[must_use]
    pub fn next_due(&self) -> Duration {
        self.next_due
    }

    /// The next frame; advances to the one after it.
    pub fn advance(&mut self) -> PlayedFrame {
        if self.clip.is_base(self.index) {
            self.base_layer_index = self.base_layer_index.wrapping_add(1);
        }
        let frame = self.skip_to_next();
        self.number = self.number.wrapping_add(1);
        frame
    }

    /// Skips the next frame: time advances, numbers do not.
    pub fn skip(&mut self) {
        self.skip_to_next();
    }

    fn skip_to_next(&mut self) -> PlayedFrame {
        if let Some((_, index)) = self.back.take_if(|(due, _)| *due <= self.ticks) {
            self.index = index;
        }
        let frame = PlayedFrame {
            index: self.index as u32,
            number: self.number,
            base_layer_index: self.base_layer_index,
            timestamp: self.ticks as u32,
        };
        let (at, next) = (self.clip.at(self.index), self.index + 1);
        let step = if next < self.clip.frame_count() {
            self.index = next;
            self.clip.at(next).saturating_sub(at)
        } else {
            self.index = 0;
            self.clip.ticks().saturating_sub(at)
        };
        self.ticks += step.max(1);
        self.next_due = time(self.ticks, self.clip.clock_rate());
        frame
    }

    /// Makes the next frame a key frame, like an encoder after a request: the picture jumps to the
    /// loop's next key frame, the time does not. When the loop's time reaches that key frame, it is
    /// played again, from its place: video stays in step with audio, and senders that all receive a
    /// request at once do not send their key frames at the same time from then on.
    pub fn request_key_frame(&mut self) {
        let key = self.clip.key_frame_from(self.index);
        let round = if key < self.index { self.clip.ticks() } else { 0 };
        let early = (self.clip.at(key) + round).saturating_sub(self.clip.at(self.index));
        if self.back.is_none() && early >= ticks(BACK_MIN, self.clip.clock_rate()) {
            self.back = Some((self.ticks + early, key));
        }
        self.index = key;
    }

    /// Continues with another clip of the same codec, from the nearest key frame after the same
    /// position of its loop.
    pub fn switch_to(&mut self, clip: Arc<Clip>) {
        let (at, from, to) = (self.clip.at(self.index), self.clip.ticks(), clip.ticks());
        let ticks = (u128::from(at) * u128::from(to) / u128::from(from.max(1))) as u64;
        self.index = clip.key_frame_from(clip.index_at(ticks));
        self.back = None;
        self.clip = clip;
        self.next_due = time(self.ticks, self.clip.clock_rate());
    }
}

/// In two parts, so that no product overflows in a run of any length.
fn time(ticks: u64, clock_rate: u32) -> Duration {
    let rate = u64::from(clock_rate);
    Duration::from_secs(ticks / rate) + Duration::from_nanos(ticks % rate * 1_000_000_000 / rate)
}

fn ticks(duration: Duration, clock_rate: u32) -> u64 {
    u64::try_from(duration.as_nanos() * u128::from(clock_rate) / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::clip::ClipBuilder;
    use super::*;
    use throng_observation::Codec;

    /// VP8 payloads of four bytes: descriptor with a wide picture id, and a byte of the frame.
    fn clip(keys: &[bool], step: u64) -> Arc<Clip> {
        let mut builder = ClipBuilder::new(Codec::Vp8, 90_000);
        for (index, key) in keys.iter().enumerate() {
            let payloads = [[0x90, 0x80, 0x80, 0, u8::from(!key)], [0x80, 0x80, 0x80, 0, 9]];
            let payloads = payloads.iter().map(|payload| &payload[..]);
            builder.frame(1_000 + index as u64 * step, *key, true, payloads).unwrap();
        }
        Arc::new(builder.finish(step).unwrap())
    }

    #[test]
    fn loops_go_on_in_time_and_in_picture_ids() {
        let clip = clip(&[true, false, false], 3_000);
        let mut player = Player::new(Arc::clone(&clip));
        let mut payload = Vec::new();
        for number in 0..70_000_u32 {
            assert_eq!(
                player.next_due(),
                Duration::from_nanos(u64::from(number) * 100_000_000 / 3)
            );
            let frame = player.advance();
            assert_eq!((frame.number(), frame.timestamp), (number, number * 3_000));
            assert_eq!(clip.is_key(&frame), number % 3 == 0);
            payload.clear();
            assert!(clip.write_payload(&frame, 1, 0, &mut payload));
            let [high, low] = (number as u16 & 0x7fff).to_be_bytes();
            assert_eq!(payload, [0x80, 0x80, 0x80 | high, low, 9]);
            assert!(!clip.write_payload(&frame, 2, 0, &mut payload));
        }
    }

    #[test]
    fn a_key_frame_comes_at_once_when_asked_for() {
        let clip = clip(&[true, false, false, true, false], 3_000);
        let mut player = Player::new(Arc::clone(&clip));
        player.advance();
        player.request_key_frame();
        let frame = player.advance();
        assert!(clip.is_key(&frame));
        assert_eq!((frame.number(), frame.timestamp), (1, 3_000));
        // The second key frame was played early: next is the last frame of the loop, then the loop
        // starts again.
        assert!(!clip.is_key(&player.advance()));
        assert!(clip.is_key(&player.advance()));
    }

    #[test]
    fn what_was_asked_for_early_is_back_in_its_place_when_it_is_due() {
        let keys: Vec<bool> = (0..60).map(|frame| frame % 20 == 0).collect();
        // At 20 fps.
        let clip = clip(&keys, 4_500);
        let mut player = Player::new(Arc::clone(&clip));
        let mut asked = Player::new(Arc::clone(&clip));
        for turn in 0..240_usize {
            // Once, twice within one stretch, and so shortly before a key frame that it is not
            // played again.
            let is_asked = [25, 87, 94, 139].contains(&turn);
            if is_asked {
                asked.request_key_frame();
            }
            let (own, other) = (player.advance(), asked.advance());
            assert_eq!(own.timestamp, other.timestamp);
            assert!(!is_asked || clip.is_key(&other), "{turn}");
            let is_away = (25..40).contains(&turn) || (87..100).contains(&turn);
            if turn < 139 {
                assert_eq!(own.index == other.index, !is_away, "{turn}");
            }
        }
        assert_eq!(asked.index, (player.index + 1) % 60);
    }

    #[test]
    fn a_switch_begins_with_a_key_frame_and_keeps_the_time() {
        let (low, high) =
            (clip(&[true, false, true, false], 6_000), clip(&[true, false, false, true], 6_000));
        let mut player = Player::new(low);
        player.advance();
        player.switch_to(Arc::clone(&high));
        let frame = player.advance();
        assert!(high.is_key(&frame));
        assert_eq!((frame.timestamp, frame.number()), (6_000, 1));
    }

    #[test]
    fn skipped_frames_leave_no_gap_in_numbers() {
        let clip = clip(&[true, false], 3_000);
        let mut player = Player::new(clip);
        player.advance();
        (0..7).for_each(|_| player.skip());
        let frame = player.advance();
        assert_eq!((frame.number(), frame.timestamp), (1, 8 * 3_000));
    }

    #[test]
    fn starting_elsewhere_begins_with_a_key_frame_at_time_zero() {
        let clip = clip(&[true, false, false, true, false, false], 3_000);
        for (ms, second_key) in [(0, false), (20, true), (90, true), (150, false), (100_020, true)]
        {
            let mut player = Player::starting_at(Arc::clone(&clip), Duration::from_millis(ms));
            let frame = player.advance();
            assert!(clip.is_key(&frame) && frame.timestamp == 0, "{ms}");
            assert_eq!(frame.index == 3, second_key, "{ms}");
        }
    }
}
