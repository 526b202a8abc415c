//! A track of a movie whose samples are all in its tables, and a place in it. A place is a few
//! counters, so that a viewer costs little next to the tables that all viewers share.

use std::ops::Range;

use throng_observation::{Codec, MediaKind};

use super::boxes::BoxError;
use super::edits::Edits;
use super::table::{Sizes, Table};
use crate::timing::{TimedFrame, scale};

/// Samples of uncompressed audio that count as one frame: each is a fraction of a millisecond, and
/// FFmpeg delivers as many in a packet.
const PCM_SAMPLES_PER_FRAME: u32 = 1_024;

/// A track and where its tables are in the contents of `moov`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) id: u32,
    pub(super) kind: MediaKind,
    pub(super) codec: Codec,
    /// Width and height of its pictures, pixels.
    pub(super) size: Option<(u16, u16)>,
    /// Ticks a second (`mdhd`).
    pub(super) hz: u32,
    pub(super) edits: Edits,
    pub(super) samples: Samples,
}

/// The tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Samples {
    /// Samples that all tables describe.
    pub(super) count: u32,
    pub(super) sizes: Sizes,
    /// `stco`, or `co64` where `is_long`.
    pub(super) chunks: Table,
    pub(super) is_long: bool,
    /// `stsc`: first chunk, samples a chunk.
    pub(super) chunk_runs: Table,
    /// `stts`: samples, ticks each.
    pub(super) time_runs: Table,
    /// `ctts`: samples, ticks from decoding to presentation.
    pub(super) shift_runs: Option<Table>,
    /// `stss`: numbers of the key frames, from 1; `None`: all are.
    pub(super) keys: Option<Table>,
    /// Ticks by which decoding times are moved back: with signed shifts (version 1 of `ctts`) a
    /// sample would otherwise be shown before it is decoded.
    pub(super) lead: i64,
    /// Uncompressed audio: samples of one tick.
    is_pcm: bool,
}

impl Samples {
    /// Where a chunk begins in the file.
    #[inline]
    fn chunk_at(&self, bytes: &[u8], chunk: u32) -> Option<u64> {
        if self.is_long {
            self.chunks.u64(bytes, chunk)
        } else {
            self.chunks.u32(bytes, chunk, 0).map(u64::from)
        }
    }

    /// Runs of chunks with the same number of samples: the first of them, counted from 0, the one
    /// after them, and the number.
    fn runs<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (u32, u32, u32)> + 'a {
        (0..self.chunk_runs.count).map_while(|run| {
            let first = self.chunk_runs.u32(bytes, run, 0)?.saturating_sub(1);
            let next = self.chunk_runs.u32(bytes, run + 1, 0).map(|next| next.saturating_sub(1));
            let end = next.unwrap_or(u32::MAX).min(self.chunks.count);
            Some((first.min(end), end, self.chunk_runs.u32(bytes, run, 4)?))
        })
    }

    /// Checks the tables against each other and counts the samples; returns the bytes of the file
    /// that they are in.
    pub(super) fn check(
        &mut self,
        bytes: &[u8],
        kind: MediaKind,
    ) -> Result<Option<Range<u64>>, BoxError> {
        let run = |run: u32| self.chunk_runs.u32(bytes, run, 0);
        let ascends = (0..self.chunk_runs.count).all(|i| match (i, run(i)) {
            (0, first) => first == Some(1),
            (i, first) => first > run(i - 1),
        });
        if !ascends {
            return Err(BoxError::new(
                b"stsc",
                self.chunk_runs.at(),
                "has chunks that are not in ascending order",
            ));
        }
        self.is_pcm = kind == MediaKind::Audio
            && self.time_runs.count == 1
            && self.time_runs.u32(bytes, 0, 4) == Some(1)
            && matches!(self.sizes, Sizes::Same { .. });
        let shifts = self.shift_runs.unwrap_or_default();
        let lowest = (0..shifts.count)
            .filter_map(|run| shifts.u32(bytes, run, 4))
            .map(|shift| shift as i32)
            .min();
        self.lead = -i64::from(lowest.unwrap_or_default().min(0));
        let (mut count, mut extent) = (0, None::<Range<u64>>);
        for (first, end, per_chunk) in self.runs(bytes) {
            if per_chunk == 0 {
                return Err(BoxError::new(
                    b"stsc",
                    self.chunk_runs.at(),
                    "has chunks without samples",
                ));
            }
            for chunk in first..end {
                let samples = per_chunk.min(self.sizes.count() - count);
                let Some(at) = self.chunk_at(bytes, chunk).filter(|_| samples > 0) else { break };
                let chunk_end = at.checked_add(self.bytes_of(bytes, count, samples));
                let chunk_end = chunk_end.ok_or_else(|| {
                    BoxError::new(
                        b"co64",
                        self.chunks.at(),
                        format!("has a chunk at {at}, beyond any file"),
                    )
                })?;
                extent = Some(
                    extent.map_or(at..chunk_end, |all| all.start.min(at)..all.end.max(chunk_end)),
                );
                count += samples;
            }
        }
        self.count = count;
        Ok(extent)
    }

    /// Bytes of `count` samples from `first` on.
    fn bytes_of(&self, bytes: &[u8], first: u32, count: u32) -> u64 {
        match self.sizes {
            Sizes::Same { size, .. } => u64::from(size) * u64::from(count),
            _ => (first..first.saturating_add(count))
                .map(|i| u64::from(self.sizes.get(bytes, i)))
                .sum(),
        }
    }

    /// The sample whose decoding time is at or before `decode`.
    fn at_time(&self, bytes: &[u8], decode: i64) -> u32 {
        let (mut sample, mut time) = (0_u32, 0_u64);
        let wanted = decode.max(0).unsigned_abs();
        for run in 0..self.time_runs.count {
            let (Some(len), Some(delta)) =
                (self.time_runs.u32(bytes, run, 0), self.time_runs.u32(bytes, run, 4))
            else {
                break;
            };
            let end = time.saturating_add(u64::from(len) * u64::from(delta));
            if wanted < end {
                let into = (wanted - time) / u64::from(delta.max(1));
                sample = sample.saturating_add(u32::try_from(into).unwrap_or(u32::MAX));
                break;
            }
            (sample, time) = (sample.saturating_add(len), end);
        }
        sample.min(self.count.saturating_sub(1))
    }

    /// The entry of the last key frame at or before a sample, in the table of key frames.
    fn key_before(&self, bytes: &[u8], keys: &Table, sample: u32) -> u32 {
        let (mut low, mut high) = (0, keys.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if keys.u32(bytes, middle, 0).is_some_and(|key| key <= sample.saturating_add(1)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.saturating_sub(1)
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) offset: u64,
    pub(super) size: u32,
    /// In ticks of the track's own time.
    pub(super) decode: i64,
    pub(super) shift: i32,
    pub(super) ticks: u64,
    pub(super) is_key: bool,
}

impl Sample {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.size.into())
    }
}

impl Track {
    /// The sample as a frame of track number `number`, whose decoding times are moved back by
    /// `lead` ticks.
    pub(super) fn frame(&self, number: u16, sample: &Sample, lead: i64) -> TimedFrame {
        let shown = self.edits.shown(sample.decode.saturating_add(sample.shift.into()));
        let decode = shown.saturating_sub(sample.shift.into()).saturating_sub(lead);
        TimedFrame {
            track: number,
            decode_us: scale::us(decode, self.hz),
            presentation_us: scale::us(shown, self.hz),
            duration_us: u32::try_from(scale::duration_us(sample.ticks, self.hz))
                .unwrap_or(u32::MAX),
            bytes: sample.size,
            is_key: sample.is_key,
        }
    }

    /// When a sample is shown.
    fn shown_us(&self, sample: &Sample) -> i64 {
        scale::us(self.edits.shown(sample.decode.saturating_add(sample.shift.into())), self.hz)
    }

    /// The key frame that a decoder must begin with to show what is due at this time: its place in
    /// the file, and when it is shown.
    pub(super) fn key_frame_for(&self, bytes: &[u8], time_us: i64) -> Option<(u64, i64)> {
        let samples = &self.samples;
        let media = self.edits.media(scale::ticks(time_us, self.hz));
        let near = samples.at_time(bytes, media);
        let place = |sample: u32| {
            let sample = Cursor::at_sample(samples, bytes, sample)?.peek(samples, bytes)?;
            Some((sample.offset, self.shown_us(&sample)))
        };
        let Some(keys) = &samples.keys else { return place(near) };
        // Frames that are shown in another order than decoded: the key frame after may be shown
        // early enough, or the one before too late.
        let entry = samples.key_before(bytes, keys, near);
        let candidates = (entry.saturating_sub(1)..=entry.saturating_add(1)).rev();
        let places = candidates.filter_map(|key| place(keys.u32(bytes, key, 0)?.saturating_sub(1)));
        let places: Vec<_> = places.collect();
        places.iter().find(|(_, shown_us)| *shown_us <= time_us).or(places.last()).copied()
    }
}

/// A place in the samples of a track: the next sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    sample: u32,
    chunk: u32,
    left_in_chunk: u32,
    offset: u64,
    chunk_run: u32,
    decode: u64,
    time_run: u32,
    left_in_time_run: u32,
    shift_run: u32,
    left_in_shift_run: u32,
    key: u32,
}

impl Cursor {
    /// The first sample; `None` when there is none.
    pub(super) fn first(samples: &Samples, bytes: &[u8]) -> Option<Self> {
        Self::at_sample(samples, bytes, 0)
    }

    /// The sample with this number, from 0; `None` when there is none.
    fn at_sample(samples: &Samples, bytes: &[u8], sample: u32) -> Option<Self> {
        if sample >= samples.count {
            return None;
        }
        let mut before = 0_u32;
        for (run, (first, end, per_chunk)) in (0..).zip(samples.runs(bytes)) {
            let within = u64::from(end - first) * u64::from(per_chunk);
            if u64::from(sample - before) < within {
                let (chunks, into) = ((sample - before) / per_chunk, (sample - before) % per_chunk);
                let chunk = first + chunks;
                return Some(
                    Self::in_chunk(samples, bytes, (run, chunk), sample - into)?
                        .forward(samples, bytes, into),
                );
            }
            before += within as u32;
        }
        None
    }

    /// The first sample of a chunk, which has this number.
    fn in_chunk(
        samples: &Samples,
        bytes: &[u8],
        (run, chunk): (u32, u32),
        sample: u32,
    ) -> Option<Self> {
        let mut cursor = Self { sample, chunk, chunk_run: run, ..Self::default() };
        cursor.left_in_chunk = samples.chunk_runs.u32(bytes, run, 4)?;
        cursor.offset = samples.chunk_at(bytes, chunk)?;
        cursor.time_run = u32::MAX;
        cursor.next_time_run(samples, bytes);
        cursor.pass_time(samples, bytes, sample);
        if let Some(shifts) = &samples.shift_runs {
            cursor.shift_run = u32::MAX;
            cursor.next_shift_run(shifts, bytes);
            cursor.pass_shift(shifts, bytes, sample);
        }
        if let Some(keys) = &samples.keys {
            cursor.key = samples.key_before(bytes, keys, sample);
        }
        Some(cursor)
    }

    fn forward(mut self, samples: &Samples, bytes: &[u8], count: u32) -> Self {
        self.offset = self.offset.saturating_add(samples.bytes_of(bytes, self.sample, count));
        self.pass(samples, bytes, count);
        self
    }

    /// The first sample, in decoding order, of which all bytes are at or after `offset`.
    pub(super) fn at_offset(samples: &Samples, bytes: &[u8], offset: u64) -> Option<Self> {
        let mut cursor = Self::first(samples, bytes)?;
        // The chunks before, but for the last of them, of which the end is not known without its
        // sizes.
        let before = samples.runs(bytes).flat_map(|(first, end, _)| first..end);
        let chunk = before
            .zip(1..)
            .find(|(chunk, next)| {
                !matches!(
                    (samples.chunk_at(bytes, *chunk), samples.chunk_at(bytes, *next)),
                    (Some(at), Some(next)) if at < offset && next <= offset
                )
            })
            .map_or(0, |(chunk, _)| chunk);
        let mut sample = 0_u32;
        for (run, (first, end, per_chunk)) in (0..).zip(samples.runs(bytes)) {
            if chunk < end {
                sample = sample.saturating_add((chunk - first).saturating_mul(per_chunk));
                if sample > 0 && sample < samples.count {
                    cursor = Self::in_chunk(samples, bytes, (run, chunk), sample)?;
                }
                break;
            }
            sample = sample.saturating_add((end - first).saturating_mul(per_chunk));
        }
        while cursor.peek(samples, bytes)?.offset < offset {
            cursor.advance(samples, bytes);
        }
        Some(cursor)
    }

    /// The next sample; `None` after the last.
    #[inline]
    pub(super) fn peek(&self, samples: &Samples, bytes: &[u8]) -> Option<Sample> {
        if self.sample >= samples.count {
            return None;
        }
        let count = self.step(samples);
        let size = match samples.sizes {
            Sizes::Same { size, .. } => size.saturating_mul(count),
            _ => samples.sizes.get(bytes, self.sample),
        };
        let delta = samples.time_runs.u32(bytes, self.time_run, 4).unwrap_or_default();
        let shift = samples.shift_runs.and_then(|shifts| shifts.u32(bytes, self.shift_run, 4));
        let is_key =
            samples.keys.is_none_or(|keys| keys.u32(bytes, self.key, 0) == Some(self.sample + 1));
        Some(Sample {
            offset: self.offset,
            size,
            decode: i64::try_from(self.decode).unwrap_or(i64::MAX),
            shift: shift.unwrap_or_default() as i32,
            ticks: u64::from(delta) * u64::from(count),
            is_key,
        })
    }

    /// Moves to the sample after the next.
    #[inline]
    pub(super) fn advance(&mut self, samples: &Samples, bytes: &[u8]) {
        let Some(sample) = self.peek(samples, bytes) else { return };
        self.offset = sample.end();
        self.pass(samples, bytes, self.step(samples));
        if self.left_in_chunk == 0 {
            self.next_chunk(samples, bytes);
        }
    }

    /// How many samples make the next frame.
    #[inline]
    fn step(&self, samples: &Samples) -> u32 {
        if !samples.is_pcm {
            return 1;
        }
        PCM_SAMPLES_PER_FRAME.min(self.left_in_chunk).min(samples.count - self.sample).max(1)
    }

    /// Counts samples of the same chunk; their bytes are counted by the caller.
    #[inline]
    fn pass(&mut self, samples: &Samples, bytes: &[u8], count: u32) {
        self.sample = self.sample.saturating_add(count);
        self.left_in_chunk = self.left_in_chunk.saturating_sub(count);
        self.pass_time(samples, bytes, count);
        if let Some(shifts) = &samples.shift_runs {
            self.pass_shift(shifts, bytes, count);
        }
        if let Some(keys) = &samples.keys {
            while keys.u32(bytes, self.key, 0).is_some_and(|key| key <= self.sample) {
                self.key += 1;
            }
        }
    }

    fn next_chunk(&mut self, samples: &Samples, bytes: &[u8]) {
        self.chunk += 1;
        let next_run = samples.chunk_runs.u32(bytes, self.chunk_run + 1, 0);
        if next_run.is_some_and(|first| first <= self.chunk + 1) {
            self.chunk_run += 1;
        }
        self.left_in_chunk = samples.chunk_runs.u32(bytes, self.chunk_run, 4).unwrap_or_default();
        self.offset = samples.chunk_at(bytes, self.chunk).unwrap_or(self.offset);
    }

    #[inline]
    fn pass_time(&mut self, samples: &Samples, bytes: &[u8], mut count: u32) {
        loop {
            let delta = samples.time_runs.u32(bytes, self.time_run, 4).unwrap_or_default();
            let is_last = self.time_run.saturating_add(1) >= samples.time_runs.count;
            // Samples that the table leaves out are as long as the last one.
            let passed = if is_last { count } else { count.min(self.left_in_time_run) };
            self.decode = self.decode.saturating_add(u64::from(passed) * u64::from(delta));
            self.left_in_time_run = self.left_in_time_run.saturating_sub(passed);
            count -= passed;
            if is_last || self.left_in_time_run > 0 {
                return;
            }
            self.next_time_run(samples, bytes);
        }
    }

    fn next_time_run(&mut self, samples: &Samples, bytes: &[u8]) {
        self.time_run = self.time_run.wrapping_add(1);
        self.left_in_time_run = samples.time_runs.u32(bytes, self.time_run, 0).unwrap_or_default();
    }

    #[inline]
    fn pass_shift(&mut self, shifts: &Table, bytes: &[u8], mut count: u32) {
        while self.shift_run < shifts.count {
            let passed = count.min(self.left_in_shift_run);
            self.left_in_shift_run -= passed;
            count -= passed;
            if self.left_in_shift_run > 0 {
                return;
            }
            self.next_shift_run(shifts, bytes);
        }
    }

    fn next_shift_run(&mut self, shifts: &Table, bytes: &[u8]) {
        self.shift_run = self.shift_run.wrapping_add(1);
        self.left_in_shift_run = shifts.u32(bytes, self.shift_run, 0).unwrap_or_default();
    }
}
