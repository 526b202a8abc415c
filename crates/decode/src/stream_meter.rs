//! The meter of one stream: compares the pictures of a decoder with the frames that it received.

use std::collections::VecDeque;
use std::time::Instant;

use throng_media::quality::FreezeMeter;
use throng_observation::run::{DecodedRow, ParticipantId};
use throng_observation::{CaptureBasis, Codec, Distribution, OneWayDelay, TrackId};

use crate::ffmpeg::Picture;
use crate::number::CardNumbers;

/// Most frames whose pictures are outstanding; a decoder delays a few.
const GIVEN_MAX: usize = 1_024;

/// A coded frame sent to the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FedFrame {
    /// Its index.
    pub index: u64,
    /// When its last packet arrived, nanoseconds since the Unix epoch.
    pub arrived_unix_ns: u64,
    /// Its capture time in the same unit, and the source of that time.
    pub captured: Option<(u64, CaptureBasis)>,
}

/// Measures one stream.
#[derive(Debug)]
pub struct StreamMeter {
    given: VecDeque<FedFrame>,
    numbers: CardNumbers,
    freezes: FreezeMeter,
    ssim_sum: f64,
    row: DecodedRow,
}

impl StreamMeter {
    /// A meter of a participant's track.
    #[must_use]
    pub fn new(participant: ParticipantId, track: TrackId, codec: Codec) -> Self {
        Self {
            given: VecDeque::new(),
            numbers: CardNumbers::default(),
            freezes: FreezeMeter::default(),
            ssim_sum: 0.0,
            row: empty_row(participant, track, codec),
        }
    }

    /// A frame was sent to the decoder.
    pub fn given(&mut self, given: FedFrame) {
        if self.given.len() == GIVEN_MAX {
            self.given.pop_front();
        }
        self.given.push_back(given);
        self.row.frames_fed += 1;
    }

    /// Frames were dropped before the decoder.
    pub fn dropped(&mut self, frames: u64) {
        self.row.frames_dropped += frames;
    }

    /// Frames before the next one were incomplete.
    pub fn broke(&mut self) {
        self.row.breaks += 1;
    }

    /// A picture was decoded at `unix_ns`; `compare` returns its SSIM to the source, from the
    /// number on it.
    pub fn picture(
        &mut self,
        picture: &Picture,
        unix_ns: u64,
        compare: impl FnOnce(u8) -> Option<f64>,
    ) {
        self.row.pictures += 1;
        (self.row.width, self.row.height) = (picture.width, picture.height);
        self.freezes.frame(picture.decoded_at);
        // Frames before it produced no picture.
        while self.given.front().is_some_and(|given| given.index < picture.index) {
            self.given.pop_front();
        }
        if let Some(given) = self.given.pop_front_if(|given| given.index == picture.index) {
            let delay_us = unix_ns.saturating_sub(given.arrived_unix_ns) / 1_000;
            self.row.decode_delay_us.record(delay_us);
            if let Some((captured_ns, basis)) = given.captured {
                let delay_us = (i128::from(unix_ns) - i128::from(captured_ns)) / 1_000;
                let delay_us = delay_us.clamp(i128::from(i32::MIN), i128::from(i32::MAX));
                self.row.glass_delay.record(basis, delay_us as i32);
            }
        }
        if let Some(number) = self.numbers.picture(picture)
            && let Some(alike) = compare(number)
        {
            self.ssim_sum += alike;
            self.row.ssim_pictures += 1;
            self.row.ssim_min = Some(self.row.ssim_min.map_or(alike, |least| least.min(alike)));
        }
    }

    /// The figures since the last call, as the row of `second`; `None` if all are 0.
    pub fn take(&mut self, now: Instant, second: i64) -> Option<DecodedRow> {
        let (frozen, numbers) = (self.freezes.take(now), self.numbers.take());
        let next = empty_row(self.row.participant, self.row.track, self.row.codec);
        let next = DecodedRow { width: self.row.width, height: self.row.height, ..next };
        let row = std::mem::replace(&mut self.row, next);
        let ssim_sum = std::mem::take(&mut self.ssim_sum);
        let row = DecodedRow {
            second,
            freeze_count: frozen.count,
            freeze_us: u64::try_from(frozen.time.as_micros()).unwrap_or(u64::MAX),
            numbers_read: numbers.read,
            numbers_next: numbers.next,
            numbers_repeated: numbers.repeated,
            numbers_skipped: numbers.skipped,
            ssim_mean: (row.ssim_pictures > 0).then(|| ssim_sum / row.ssim_pictures as f64),
            ..row
        };
        let counts = [
            row.frames_fed,
            row.frames_dropped,
            row.breaks,
            row.pictures,
            row.freeze_count,
            row.freeze_us,
        ];
        counts.iter().any(|count| *count > 0).then_some(row)
    }
}

/// The row of a track without figures.
#[must_use]
pub fn empty_row(participant: ParticipantId, track: TrackId, codec: Codec) -> DecodedRow {
    DecodedRow {
        second: 0,
        participant,
        track,
        codec,
        width: 0,
        height: 0,
        frames_fed: 0,
        frames_dropped: 0,
        breaks: 0,
        pictures: 0,
        numbers_read: 0,
        numbers_next: 0,
        numbers_repeated: 0,
        numbers_skipped: 0,
        freeze_count: 0,
        freeze_us: 0,
        decode_delay_us: Distribution::new(),
        glass_delay: OneWayDelay::default(),
        ssim_mean: None,
        ssim_min: None,
        ssim_pictures: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    #[test]
    fn pictures_are_held_against_their_own_frames() {
        let start = Instant::now();
        let mut meter = StreamMeter::new(ParticipantId(2), TrackId(1), Codec::Vp8);
        let picture = |index: u64, at_ms: u64| Picture {
            index,
            width: 16,
            height: 16,
            luma: vec![0; 256],
            decoded_at: start + Duration::from_millis(at_ms),
        };
        for index in 0..40 {
            let arrived_unix_ns = (1_000 + index * 40) * MS;
            let captured = Some((arrived_unix_ns - 30 * MS, CaptureBasis::Mark));
            meter.given(FedFrame { index, arrived_unix_ns, captured });
        }
        // The decoder could not use frame 7; frames 20 to 29 are late.
        for index in (0..40).filter(|index| *index != 7) {
            let late = if (20..30).contains(&index) { 1_000 } else { 10 };
            let at_ms = 1_000 + index * 40 + late;
            meter.picture(&picture(index, at_ms), at_ms * MS, |_| None);
        }
        meter.dropped(3);
        meter.broke();
        let row = meter.take(start + Duration::from_secs(5), 4).unwrap();
        assert_eq!((row.second, row.frames_fed, row.pictures), (4, 40, 39));
        assert_eq!((row.frames_dropped, row.breaks, row.numbers_read), (3, 1, 0));
        assert_eq!(row.decode_delay_us.count(), 39);
        assert!(row.decode_delay_us.quantile(0.5).unwrap().abs_diff(10_000) < 200);
        assert!(row.glass_delay.quantile_us(0.5).unwrap().abs_diff(40_000) < 400);
        assert!(row.freeze_count >= 1, "nothing for a second");
        assert!(meter.take(start + Duration::from_secs(5), 5).is_none());
    }
}
