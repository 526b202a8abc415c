//! Movie fragments (`moof`, ISO/IEC 14496-12 section 8.8): the samples of a few seconds, of which
//! the data follow.

use std::ops::Range;

use throng_observation::MediaKind;

use super::boxes::{BoxError, Child, children};
use super::movie::{Defaults, Movie};
use super::track::{Sample, Track};
use crate::octets::{u32_at, u64_at};
use crate::timing::TimedFrame;

/// Samples of one fragment that all have the size of the track's defaults, so that its boxes do not
/// grow with them: more than a second of any audio.
const DEFAULT_SAMPLES_MAX: u32 = 1 << 16;

/// Runs of samples of one fragment.
const RUNS_MAX: usize = 4_096;

/// Not a sync sample, or depends on others (section 8.8.3.1).
const NOT_KEY: u32 = 0x0101_0000;

// Flags of `tfhd` (section 8.8.7).
const BASE_OFFSET: u32 = 0x01;
const DESCRIPTION: u32 = 0x02;
const DEFAULT_DURATION: u32 = 0x08;
const DEFAULT_SIZE: u32 = 0x10;
const DEFAULT_FLAGS: u32 = 0x20;
const BASE_IS_MOOF: u32 = 0x02_0000;

// Flags of `trun` (section 8.8.8).
const DATA_OFFSET: u32 = 0x01;
const FIRST_FLAGS: u32 = 0x04;
const DURATIONS: u32 = 0x100;
const SIZES: u32 = 0x200;
const FLAGS: u32 = 0x400;
const SHIFTS: u32 = 0x800;

/// A fragment of which frames are expected.
#[derive(Debug)]
pub(super) struct Fragment {
    /// The contents of `moof`.
    bytes: Vec<u8>,
    /// Of each track in it, the runs in decoding order and the next of them.
    tracks: Vec<Runs>,
    /// The first byte after its data.
    pub(super) end: u64,
}

/// How a track goes on after the fragments that were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Continues {
    /// The decoding time of the next sample, in ticks.
    decode: u64,
    /// Ticks by which decoding times are moved back, so that none is after its presentation.
    lead: i64,
}

#[derive(Debug)]
struct Runs {
    track: usize,
    lead: i64,
    runs: Vec<Run>,
    next: usize,
}

/// The rest of a run of samples.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The next entry in the contents of `moof`.
    at: usize,
    left: u32,
    /// Which fields an entry has.
    fields: u32,
    defaults: Defaults,
    /// Flags of the next sample, when the run has some for its first one.
    first_flags: Option<u32>,
    offset: u64,
    decode: u64,
}

impl Run {
    /// The next sample and the bytes of its entry; `None` after the last.
    #[inline]
    fn sample(&self, bytes: &[u8]) -> Option<(Sample, usize)> {
        if self.left == 0 {
            return None;
        }
        let mut at = self.at;
        let mut field = |flag: u32| {
            let value = (self.fields & flag != 0).then(|| u32_at(bytes, at)).flatten();
            at += if self.fields & flag == 0 { 0 } else { 4 };
            value
        };
        let ticks = field(DURATIONS).unwrap_or(self.defaults.duration);
        let size = field(SIZES).unwrap_or(self.defaults.size);
        let flags = field(FLAGS);
        let flags = self.first_flags.or(flags).unwrap_or(self.defaults.flags);
        let shift = field(SHIFTS).unwrap_or_default() as i32;
        let sample = Sample {
            offset: self.offset,
            size,
            decode: i64::try_from(self.decode).unwrap_or(i64::MAX),
            shift,
            ticks: ticks.into(),
            is_key: flags & NOT_KEY == 0,
        };
        Some((sample, at - self.at))
    }

    fn advance(&mut self, bytes: &[u8]) {
        let Some((sample, entry_len)) = self.sample(bytes) else { return };
        self.at += entry_len;
        self.left -= 1;
        self.first_flags = None;
        self.offset = sample.end();
        self.decode = self.decode.saturating_add(sample.ticks);
    }
}

impl Fragment {
    /// Reads the contents of a `moof` box that begins at `start` in the file. `tracks` says how
    /// each track of the movie goes on, and is brought up to date.
    pub(super) fn read(
        bytes: Vec<u8>,
        start: u64,
        movie: &Movie,
        tracks: &mut [Continues],
    ) -> Result<Self, BoxError> {
        let mut reading = Reading {
            bytes: &bytes,
            start,
            movie,
            tracks: Vec::new(),
            runs: 0,
            defaulted: 0,
            end: start,
        };
        for child in children(&bytes, 0..bytes.len()) {
            let Child { kind, body } = child?;
            if kind.0 == *b"traf" {
                reading.track(&body, tracks)?;
            }
        }
        let (tracks, end) = (reading.tracks, reading.end);
        Ok(Self { bytes, tracks, end })
    }

    /// The next frame of it that lies between these offsets.
    pub(super) fn next_frame(
        &mut self,
        movie: &Movie,
        run_start: u64,
        position: u64,
    ) -> Option<TimedFrame> {
        let bytes = &self.bytes[..];
        let mut first: Option<(usize, Sample)> = None;
        for (number, runs) in self.tracks.iter_mut().enumerate() {
            let sample = loop {
                let Some(run) = runs.runs.get_mut(runs.next) else { break None };
                match run.sample(bytes) {
                    None => runs.next += 1,
                    Some((sample, _)) if sample.offset < run_start => run.advance(bytes),
                    Some((sample, _)) => break Some(sample),
                }
            };
            match sample {
                Some(sample)
                    if sample.end() <= position
                        && first.is_none_or(|(_, first)| sample.offset < first.offset) =>
                {
                    first = Some((number, sample));
                }
                _ => {}
            }
        }
        let (number, sample) = first?;
        let runs = self.tracks.get_mut(number)?;
        runs.runs.get_mut(runs.next)?.advance(bytes);
        let track: &Track = movie.tracks.get(runs.track)?;
        let sample = Sample { is_key: sample.is_key || track.kind == MediaKind::Audio, ..sample };
        Some(track.frame(runs.track as u16, &sample, runs.lead))
    }

    /// Whether all of its frames were told.
    pub(super) fn is_over(&self) -> bool {
        let is_over = |run: &Run| run.left == 0;
        self.tracks
            .iter()
            .all(|runs| runs.runs.get(runs.next..).unwrap_or_default().iter().all(is_over))
    }

    /// Bytes that it keeps.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

struct Reading<'a> {
    bytes: &'a [u8],
    /// Where `moof` begins, with its header.
    start: u64,
    movie: &'a Movie,
    tracks: Vec<Runs>,
    runs: usize,
    /// Samples without an entry of their own.
    defaulted: u32,
    /// The end of the data so far.
    end: u64,
}

impl Reading<'_> {
    /// Reads `traf`.
    fn track(&mut self, body: &Range<usize>, tracks: &mut [Continues]) -> Result<(), BoxError> {
        let header = children(self.bytes, body.clone()).next().transpose()?;
        let header = header.filter(|child| child.kind.0 == *b"tfhd");
        let header = header
            .ok_or_else(|| BoxError::new(b"traf", body.start, "does not begin with `tfhd`"))?;
        let (defaults, base) = self.header(&header.body)?;
        let track = self.movie.tracks.iter().position(|track| track.id == defaults.track_id);
        let (mut data, mut runs) = (base, Vec::new());
        let Continues { decode: mut time, mut lead } =
            track.and_then(|track| tracks.get(track).copied()).unwrap_or_default();
        for child in children(self.bytes, body.clone()) {
            let Child { kind, body } = child?;
            match &kind.0 {
                b"tfdt" => time = self.decode_time(&body)?,
                b"trun" => {
                    let mut run = self.run(&body, defaults, base, data)?;
                    run.decode = time;
                    let after = self.after(run);
                    (data, time, lead) =
                        (after.offset, after.decode, lead.max(-i64::from(after.shift_min)));
                    runs.push(run);
                    self.runs += 1;
                    if self.runs > RUNS_MAX {
                        let problem = format!("is one of more than {RUNS_MAX} of a fragment");
                        return Err(BoxError::new(b"trun", body.start, problem));
                    }
                }
                _ => {}
            }
        }
        self.end = self.end.max(data);
        let Some(track) = track else { return Ok(()) }; // neither audio nor video
        if let Some(continues) = tracks.get_mut(track) {
            *continues = Continues { decode: time, lead };
        }
        match self.tracks.iter_mut().find(|known| known.track == track) {
            Some(known) => known.runs.extend(runs),
            None => self.tracks.push(Runs { track, lead, runs, next: 0 }),
        }
        Ok(())
    }

    /// The defaults of a track in this fragment, and from where its data are counted.
    fn header(&self, body: &Range<usize>) -> Result<(Defaults, u64), BoxError> {
        let short = || BoxError::new(b"tfhd", body.start, "ends inside its fields");
        let bytes = self.bytes.get(body.clone()).unwrap_or_default();
        let flags = u32_at(bytes, 0).ok_or_else(short)? & 0x00ff_ffff;
        let track_id = u32_at(bytes, 4).ok_or_else(short)?;
        let known = self.movie.defaults.iter().find(|defaults| defaults.track_id == track_id);
        let mut defaults = known.copied().unwrap_or(Defaults { track_id, ..Defaults::default() });
        let mut at = 8;
        let mut base = if flags & BASE_IS_MOOF != 0 { self.start } else { self.end };
        if flags & BASE_OFFSET != 0 {
            base = u64_at(bytes, at).ok_or_else(short)?;
            at += 8;
        }
        at += if flags & DESCRIPTION == 0 { 0 } else { 4 };
        for (flag, value) in [
            (DEFAULT_DURATION, &mut defaults.duration),
            (DEFAULT_SIZE, &mut defaults.size),
            (DEFAULT_FLAGS, &mut defaults.flags),
        ] {
            if flags & flag != 0 {
                *value = u32_at(bytes, at).ok_or_else(short)?;
                at += 4;
            }
        }
        Ok((defaults, base))
    }

    fn decode_time(&self, body: &Range<usize>) -> Result<u64, BoxError> {
        let bytes = self.bytes.get(body.clone()).unwrap_or_default();
        let is_long = bytes.first().is_some_and(|version| *version == 1);
        let time = if is_long { u64_at(bytes, 4) } else { u32_at(bytes, 4).map(u64::from) };
        time.ok_or_else(|| BoxError::new(b"tfdt", body.start, "ends inside its fields"))
    }

    /// Reads `trun`; its data begin at `data` unless it says otherwise.
    fn run(
        &mut self,
        body: &Range<usize>,
        defaults: Defaults,
        base: u64,
        data: u64,
    ) -> Result<Run, BoxError> {
        let error = |problem: String| BoxError::new(b"trun", body.start, problem);
        let short = || error("ends inside its fields".into());
        let bytes = self.bytes.get(..body.end).unwrap_or_default();
        let flags = u32_at(bytes, body.start).ok_or_else(short)?;
        let left = u32_at(bytes, body.start + 4).ok_or_else(short)?;
        let mut at = body.start + 8;
        let mut offset = data;
        if flags & DATA_OFFSET != 0 {
            let from_base = u32_at(bytes, at).ok_or_else(short)? as i32;
            offset = base.saturating_add_signed(from_base.into());
            at += 4;
        }
        if offset < self.start {
            return Err(error(format!("has data at {offset}, before its own fragment")));
        }
        let mut first_flags = None;
        if flags & FIRST_FLAGS != 0 {
            first_flags = Some(u32_at(bytes, at).ok_or_else(short)?);
            at += 4;
        }
        let entry_len = 4 * (flags & (DURATIONS | SIZES | FLAGS | SHIFTS)).count_ones() as usize;
        let room = bytes.len().saturating_sub(at);
        if entry_len > 0 && left as usize > room / entry_len {
            return Err(error(format!(
                "announces {left} samples and has room for {}",
                room / entry_len
            )));
        }
        if entry_len == 0 {
            self.defaulted = self.defaulted.saturating_add(left);
            if self.defaulted > DEFAULT_SAMPLES_MAX {
                return Err(error(format!("announces {left} samples without an entry for each")));
            }
        }
        Ok(Run { at, left, fields: flags, defaults, first_flags, offset, decode: 0 })
    }

    /// Where and when a run ends.
    fn after(&self, mut run: Run) -> After {
        let mut shift_min = 0;
        while let Some((sample, _)) = run.sample(self.bytes) {
            shift_min = shift_min.min(sample.shift);
            run.advance(self.bytes);
        }
        After { offset: run.offset, decode: run.decode, shift_min }
    }
}

struct After {
    offset: u64,
    decode: u64,
    shift_min: i32,
}
