//! The contents of a `moov` box (ISO/IEC 14496-12 section 8.2): the tracks and their tables, and
//! the defaults of fragments.

use std::ops::Range;

use throng_observation::MediaKind;

use super::boxes::{BoxError, Child, children};
use super::codec;
use super::edits::Edits;
use super::table::{Sizes, Table};
use super::track::{Samples, Track};
use crate::octets::{chunk_at, u32_at, u64_at};
use crate::timing::error::Container;
use crate::timing::{TrackInfo, scale};

/// Tracks of audio and video that are read; films with many languages have some tens.
const TRACKS_MAX: usize = 64;

/// What fragments of a track have unless they say otherwise (`trex`, section 8.8.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Defaults {
    pub(super) track_id: u32,
    pub(super) duration: u32,
    pub(super) size: u32,
    pub(super) flags: u32,
}

/// A movie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Movie {
    pub(super) tracks: Vec<Track>,
    pub(super) defaults: Vec<Defaults>,
    /// Its samples, or more of them, are in fragments (`mvex`).
    pub(super) is_fragmented: bool,
    pub(super) duration_us: Option<u64>,
    /// The bytes of the file with the samples of its tables; empty when they have none.
    pub(super) media: Range<u64>,
}

impl Movie {
    /// Reads the contents of a `moov` box.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, BoxError> {
        let all = 0..bytes.len();
        let header = find(bytes, &all, b"mvhd")?
            .ok_or_else(|| BoxError::new(b"moov", 0, "has no `mvhd`"))?;
        let (hz, duration) = times(bytes, b"mvhd", &header)?;
        let mut movie = Self::default();
        for child in children(bytes, all) {
            let Child { kind, body } = child?;
            match &kind.0 {
                b"trak" => movie.track(bytes, &body, hz)?,
                b"mvex" => movie.extends(bytes, &body, hz)?,
                b"cmov" => {
                    let problem = "is compressed, which is not read";
                    let hint = "remux the file with a current muxer, for example `ffmpeg -c copy`";
                    return Err(BoxError {
                        hint,
                        container: Container::Other("QuickTime with a compressed header"),
                        ..BoxError::new(b"cmov", body.start, problem)
                    });
                }
                _ => {}
            }
        }
        if movie.tracks.is_empty() {
            let hint = "a file of text, timed metadata or nothing; players show no video for it";
            return Err(BoxError {
                hint,
                ..BoxError::new(b"moov", 0, "has no track of audio or video")
            });
        }
        movie.duration_us =
            movie.duration_us.or(duration.map(|ticks| scale::duration_us(ticks, hz)));
        Ok(movie)
    }

    /// What each track is.
    pub(super) fn infos(&self) -> Vec<TrackInfo> {
        let info =
            |track: &Track| TrackInfo { kind: track.kind, codec: track.codec, size: track.size };
        self.tracks.iter().map(info).collect()
    }

    /// The lowest offset from which all tracks can be played at this time, and when the video's key
    /// frame there is shown.
    pub(super) fn offset_for(&self, bytes: &[u8], time_us: u64) -> Option<(u64, u64)> {
        let time_us = i64::try_from(time_us).ok()?;
        let video = self.tracks.iter().find(|track| track.kind == MediaKind::Video);
        let leader = video.or(self.tracks.first())?;
        let (mut offset, shown_us) = leader.key_frame_for(bytes, time_us)?;
        for track in self.tracks.iter().filter(|track| !std::ptr::eq(*track, leader)) {
            if let Some((at, _)) = track.key_frame_for(bytes, shown_us) {
                offset = offset.min(at);
            }
        }
        Some((offset, shown_us.max(0).unsigned_abs()))
    }

    fn track(&mut self, bytes: &[u8], body: &Range<usize>, movie_hz: u32) -> Result<(), BoxError> {
        let Some(media) = find(bytes, body, b"mdia")? else { return Ok(()) };
        let handler =
            find(bytes, &media, b"hdlr")?.and_then(|body| chunk_at(bytes, body.start + 8));
        let kind = match handler {
            Some(b"vide") => MediaKind::Video,
            Some(b"soun") => MediaKind::Audio,
            _ => return Ok(()),
        };
        let missing = |kind: &[u8; 4], child: &str| {
            BoxError::new(kind, media.start, format!("has no `{child}` box"))
        };
        let header = find(bytes, &media, b"mdhd")?.ok_or_else(|| missing(b"mdia", "mdhd"))?;
        let (hz, _) = times(bytes, b"mdhd", &header)?;
        let information = find(bytes, &media, b"minf")?.ok_or_else(|| missing(b"mdia", "minf"))?;
        let tables = find(bytes, &information, b"stbl")?.ok_or_else(|| missing(b"minf", "stbl"))?;
        let edits = match find(bytes, body, b"edts")? {
            Some(edits) => find(bytes, &edits, b"elst")?,
            None => None,
        };
        let edits = edits
            .map(|list| Edits::read(bytes, &list, movie_hz, hz))
            .transpose()?
            .unwrap_or_default();
        let description = find(bytes, &tables, b"stsd")?.ok_or_else(|| missing(b"stbl", "stsd"))?;
        let description = bytes.get(description).unwrap_or_default();
        let codec = codec::of(description, kind);
        let size = codec::size(description).filter(|_| kind == MediaKind::Video);
        let mut samples = samples(bytes, &tables)?;
        if let Some(extent) = samples.check(bytes, kind)? {
            let media = &self.media;
            self.media = if media.is_empty() {
                extent
            } else {
                media.start.min(extent.start)..media.end.max(extent.end)
            };
        }
        if self.tracks.len() >= TRACKS_MAX {
            return Err(BoxError::new(
                b"trak",
                body.start,
                format!("is one of more than {TRACKS_MAX}"),
            ));
        }
        let id = track_id(bytes, body)?;
        self.tracks.push(Track { id, kind, codec, size, hz, edits, samples });
        Ok(())
    }

    fn extends(&mut self, bytes: &[u8], body: &Range<usize>, hz: u32) -> Result<(), BoxError> {
        self.is_fragmented = true;
        for child in children(bytes, body.clone()) {
            let Child { kind, body } = child?;
            let at = body.start;
            match &kind.0 {
                b"mehd" => {
                    let is_long = bytes.get(at).is_some_and(|version| *version == 1);
                    let ticks = if is_long {
                        u64_at(bytes, at + 4)
                    } else {
                        u32_at(bytes, at + 4).map(u64::from)
                    };
                    let ticks = ticks.filter(|ticks| *ticks > 0 && body.len() >= 8);
                    self.duration_us = ticks.map(|ticks| scale::duration_us(ticks, hz));
                }
                b"trex" => {
                    let field = |index: usize| {
                        let field =
                            body.len().checked_sub(24).and_then(|_| u32_at(bytes, at + 4 * index));
                        field.ok_or_else(|| BoxError::new(b"trex", at, "ends inside its fields"))
                    };
                    let (track_id, duration, size, flags) =
                        (field(1)?, field(3)?, field(4)?, field(5)?);
                    self.defaults.push(Defaults { track_id, duration, size, flags });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The first box of this type.
fn find(
    bytes: &[u8],
    within: &Range<usize>,
    kind: &[u8; 4],
) -> Result<Option<Range<usize>>, BoxError> {
    for child in children(bytes, within.clone()) {
        let child = child?;
        if child.kind.0 == *kind {
            return Ok(Some(child.body));
        }
    }
    Ok(None)
}

/// Timescale and duration of `mvhd` and `mdhd`. Version 1 has times of 64 bits. A duration of all
/// ones is unknown, one of zero is that of a file that is still written.
fn times(
    bytes: &[u8],
    kind: &[u8; 4],
    body: &Range<usize>,
) -> Result<(u32, Option<u64>), BoxError> {
    let at = body.start;
    let is_long = bytes.get(at).is_some_and(|version| *version == 1);
    let needed = if is_long { 32 } else { 20 };
    if body.len() < needed {
        return Err(BoxError::new(kind, at, "ends inside its fields"));
    }
    let (hz, duration) = if is_long {
        (u32_at(bytes, at + 20), u64_at(bytes, at + 24).filter(|ticks| *ticks < u64::MAX))
    } else {
        (
            u32_at(bytes, at + 12),
            u32_at(bytes, at + 16).filter(|ticks| *ticks < u32::MAX).map(u64::from),
        )
    };
    let hz =
        hz.filter(|hz| *hz > 0).ok_or_else(|| BoxError::new(kind, at, "has a timescale of 0"))?;
    Ok((hz, duration.filter(|ticks| *ticks > 0)))
}

fn track_id(bytes: &[u8], body: &Range<usize>) -> Result<u32, BoxError> {
    let header = find(bytes, body, b"tkhd")?;
    let header = header.ok_or_else(|| BoxError::new(b"trak", body.start, "has no `tkhd` box"))?;
    let is_long = bytes.get(header.start).is_some_and(|version| *version == 1);
    let at = if is_long { 20 } else { 12 };
    let id = header.len().checked_sub(at + 4).and_then(|_| u32_at(bytes, header.start + at));
    id.ok_or_else(|| BoxError::new(b"tkhd", header.start, "ends inside its fields"))
}

fn samples(bytes: &[u8], body: &Range<usize>) -> Result<Samples, BoxError> {
    let mut samples = Samples::default();
    for child in children(bytes, body.clone()) {
        let Child { kind, body } = child?;
        let table = |width: usize| Table::read(bytes, &kind.0, &body, width);
        match &kind.0 {
            b"stts" => samples.time_runs = table(8)?,
            b"ctts" => samples.shift_runs = Some(table(8)?),
            b"stsc" => samples.chunk_runs = table(12)?,
            b"stss" => samples.keys = Some(table(4)?),
            b"stco" => samples.chunks = table(4)?,
            b"co64" => (samples.chunks, samples.is_long) = (table(8)?, true),
            b"stsz" => samples.sizes = Sizes::stsz(bytes, &body)?,
            b"stz2" => samples.sizes = Sizes::stz2(bytes, &body)?,
            _ => {}
        }
    }
    Ok(samples)
}
