//! Media playlists (RFC 8216bis sections 4.4.3 to 4.4.5).

use std::borrow::Cow;
use std::sync::Arc;

use throng_observation::calendar;

use super::Start;
use super::attributes::{Attributes, range};
use super::lines::{Line, Lines, What};
use crate::manifest::{ByteRange, ManifestError, excerpt, seconds_us};

/// Segments and parts of a playlist: four days of two-second segments.
const SEGMENTS_MAX: usize = 200_000;

/// A media playlist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediaPlaylist {
    /// `EXT-X-VERSION`; 1 where the playlist does not say.
    pub version: u32,
    /// The longest duration of a segment, rounded to seconds; where the playlist says 0, as FFmpeg
    /// does for segments of less than half a second, that of the longest one in it.
    pub target_duration_us: u64,
    /// Number of the first segment, with those that are skipped.
    pub media_sequence: u64,
    /// Number of discontinuities before the first segment.
    pub discontinuity_sequence: u64,
    /// Whether it only grows or never changes; `None`: segments may leave it.
    pub kind: Option<PlaylistKind>,
    /// No segments will be added (`EXT-X-ENDLIST`).
    pub has_ended: bool,
    /// Every segment can be decoded without those before it.
    pub is_independent: bool,
    /// Every segment is one picture.
    pub is_i_frames_only: bool,
    /// Where playback should begin.
    pub start: Option<Start>,
    /// The segments.
    pub segments: Vec<Segment>,
    /// Parts of the segment that follows the last one and is not complete.
    pub parts: Vec<Part>,
    /// The longest duration of a part.
    pub part_target_us: Option<u64>,
    /// What the server can do.
    pub server_control: ServerControl,
    /// What will come next and can be requested already.
    pub preload_hints: Vec<PreloadHint>,
    /// Segments that a delta update leaves out (`EXT-X-SKIP`); they are before [`Self::segments`].
    pub skipped_segments: Option<u64>,
    /// How far other renditions are.
    pub rendition_reports: Vec<RenditionReport>,
}

/// `EXT-X-PLAYLIST-TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaylistKind {
    /// Never changes.
    Vod,
    /// Only grows.
    Event,
}

/// A segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// Its media sequence number.
    pub number: u64,
    /// Its file.
    pub uri: String,
    /// How long it is.
    pub duration_us: u64,
    /// The durations of the segments before it in this playlist.
    pub offset_us: u64,
    /// The part of the file, if it is not the whole.
    pub byte_range: Option<ByteRange>,
    /// What precedes it (`EXT-X-MAP`).
    pub init: Option<Arc<InitSection>>,
    /// How it is encrypted; empty: it is not.
    pub keys: Arc<[Key]>,
    /// Its times, or its format, do not continue those of the segment before.
    pub is_discontinuity: bool,
    /// Discontinuities up to and with its own, from the beginning of the stream.
    pub discontinuity_number: u64,
    /// When it begins, microseconds since 1970: its own date, or the nearest one of the playlist
    /// continued by durations.
    pub program_time_us: Option<i64>,
    /// It is missing and must not be loaded.
    pub is_gap: bool,
    /// Its parts.
    pub parts: Vec<Part>,
}

/// An initialisation segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitSection {
    /// Its file.
    pub uri: String,
    /// The part of the file, if it is not the whole.
    pub byte_range: Option<ByteRange>,
}

/// How segments are encrypted (`EXT-X-KEY`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// `AES-128`, `SAMPLE-AES` and others.
    pub method: String,
    /// Where the key is.
    pub uri: String,
    /// The initialisation vector; `None`: the media sequence number.
    pub iv: Option<u128>,
    /// The key system; `identity` where the playlist does not say.
    pub format: String,
}

/// A part of a segment (low latency).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its file.
    pub uri: String,
    /// How long it is.
    pub duration_us: u64,
    /// The part of the file, if it is not the whole.
    pub byte_range: Option<ByteRange>,
    /// It has a frame that a decoder can begin with.
    pub is_independent: bool,
    /// It is missing.
    pub is_gap: bool,
}

/// `EXT-X-SERVER-CONTROL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerControl {
    /// The server holds a request until a segment or part exists.
    pub can_block_reload: bool,
    /// Segments further than this from the end can be left out of updates.
    pub can_skip_until_us: Option<u64>,
    /// Old `EXT-X-DATERANGE` tags can be left out as well.
    pub can_skip_date_ranges: bool,
    /// Distance from the end at which to play.
    pub hold_back_us: Option<u64>,
    /// The same when parts are played.
    pub part_hold_back_us: Option<u64>,
}

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    /// The next part.
    Part,
    /// The next initialisation segment.
    Map,
}

/// `EXT-X-PRELOAD-HINT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreloadHint {
    /// What it is about.
    pub kind: HintKind,
    /// Its file.
    pub uri: String,
    /// The first byte in it.
    pub offset: u64,
    /// Its length; `None`: to the end of the file.
    pub bytes: Option<u64>,
}

/// `EXT-X-RENDITION-REPORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenditionReport {
    /// The media playlist of the other rendition.
    pub uri: String,
    /// Number of its last segment.
    pub last_sequence: Option<u64>,
    /// Number of the last part in it.
    pub last_part: Option<u64>,
}

impl MediaPlaylist {
    /// How long its segments are together.
    #[must_use]
    pub fn duration_us(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.duration_us))
    }

    /// A delta update with the segments that it leaves out (`EXT-X-SKIP`), taken from the playlist
    /// `before` it; `None` when that one does not have them all (RFC 8216bis section 6.3.7: then
    /// the whole playlist is to be loaded).
    #[must_use]
    pub fn with_skipped(&self, before: &Self) -> Option<Self> {
        let skipped = self.skipped_segments.unwrap_or_default();
        let first = self.media_sequence.checked_sub(before.media_sequence)?;
        let end = first.checked_add(skipped)?;
        let taken =
            before.segments.get(usize::try_from(first).ok()?..usize::try_from(end).ok()?)?;
        let mut whole = Self { skipped_segments: None, ..self.clone() };
        whole.segments = taken.iter().chain(&self.segments).cloned().collect();
        // Discontinuities are counted from the first segment of an update, and an initialisation
        // segment is not repeated (section 4.4.5.2).
        if let Some(last) = taken.last() {
            let continued = last.discontinuity_number;
            let own = self.segments.first().map_or(continued, |first| {
                first.discontinuity_number.saturating_sub(u64::from(first.is_discontinuity))
            });
            for segment in whole.segments.iter_mut().skip(taken.len()) {
                segment.discontinuity_number =
                    segment.discontinuity_number.saturating_sub(own).saturating_add(continued);
                if segment.init.is_none() {
                    segment.init.clone_from(&last.init);
                }
            }
        }
        whole.place();
        Some(whole)
    }

    /// Where its segments are on the playlist's own axis of time.
    fn place(&mut self) {
        let mut offset_us = 0_u64;
        let mut continued_us = None;
        for segment in &mut self.segments {
            segment.offset_us = offset_us;
            segment.program_time_us = segment.program_time_us.or(continued_us);
            offset_us = offset_us.saturating_add(segment.duration_us);
            continued_us = segment
                .program_time_us
                .map(|us: i64| us.saturating_add_unsigned(segment.duration_us));
        }
        // Dates may begin later than the segments.
        let dated = self.segments.iter().position(|segment| segment.program_time_us.is_some());
        let Some((before, [first, ..])) =
            dated.and_then(|at| self.segments.split_at_mut_checked(at))
        else {
            return;
        };
        let zero_us =
            first.program_time_us.unwrap_or_default().saturating_sub_unsigned(first.offset_us);
        for segment in before {
            segment.program_time_us = Some(zero_us.saturating_add_unsigned(segment.offset_us));
        }
    }
}

pub(super) fn read(mut lines: Lines<'_>) -> Result<MediaPlaylist, ManifestError> {
    let mut reading = Reading {
        playlist: MediaPlaylist { version: 1, ..MediaPlaylist::default() },
        ..Reading::default()
    };
    let mut last = 1;
    while let Some(line) = lines.next()? {
        last = line.number;
        match &line.what {
            What::Uri(uri) => reading.segment(uri.clone().into_owned()),
            What::Tag(tag, value) => reading.tag(tag, value),
        }
        .map_err(|problem| line.error(problem))?;
        reading.check(&line)?;
    }
    reading.finish(last)
}

type Problem = Cow<'static, str>;

#[derive(Default)]
struct Reading {
    playlist: MediaPlaylist,
    /// What is known of the segment whose URI comes.
    next: Segment,
    has_duration: bool,
    /// Its byte range, as written.
    range: Option<String>,
    init: Option<Arc<InitSection>>,
    keys: Vec<Key>,
    /// The same, as segments share it.
    shared_keys: Option<Arc<[Key]>>,
    /// Discontinuities seen.
    discontinuities: u64,
    /// When the next segment begins.
    time_us: Option<i64>,
    target_us: Option<u64>,
    /// Parts of all segments.
    parts: usize,
}

impl Reading {
    fn tag(&mut self, tag: &str, value: &str) -> Result<(), Problem> {
        let playlist = &mut self.playlist;
        match tag {
            "EXTINF" => {
                let seconds = value.split_once(',').map_or(value, |(seconds, _)| seconds).trim();
                let read = seconds.parse().ok().and_then(seconds_us);
                let no_duration =
                    || format!("has the duration \"{}\", not seconds", excerpt(seconds));
                self.next.duration_us = read.ok_or_else(no_duration)?;
                self.has_duration = true;
            }
            "EXT-X-BYTERANGE" => self.range = Some(value.to_owned()),
            "EXT-X-DISCONTINUITY" => {
                self.next.is_discontinuity = true;
                self.discontinuities += 1;
            }
            "EXT-X-GAP" => self.next.is_gap = true,
            "EXT-X-PROGRAM-DATE-TIME" => self.time_us = calendar::iso_us(value).or(self.time_us),
            "EXT-X-MAP" => self.init = Some(Arc::new(map(value)?)),
            "EXT-X-KEY" => self.key(value)?,
            "EXT-X-TARGETDURATION" => {
                let read = value.trim().parse().ok().and_then(seconds_us);
                self.target_us =
                    Some(read.ok_or_else(|| format!("has \"{}\", not seconds", excerpt(value)))?);
            }
            "EXT-X-VERSION" => playlist.version = number(value)?,
            "EXT-X-MEDIA-SEQUENCE" => playlist.media_sequence = number(value)?,
            "EXT-X-DISCONTINUITY-SEQUENCE" => playlist.discontinuity_sequence = number(value)?,
            "EXT-X-ENDLIST" => playlist.has_ended = true,
            "EXT-X-I-FRAMES-ONLY" => playlist.is_i_frames_only = true,
            "EXT-X-INDEPENDENT-SEGMENTS" => playlist.is_independent = true,
            "EXT-X-PLAYLIST-TYPE" => {
                playlist.kind = match value.trim() {
                    "VOD" => Some(PlaylistKind::Vod),
                    "EVENT" => Some(PlaylistKind::Event),
                    other => {
                        return Err(
                            format!("is \"{}\", neither VOD nor EVENT", excerpt(other)).into()
                        );
                    }
                }
            }
            "EXT-X-START" => playlist.start = Some(start(value)?),
            _ => self.low_latency(tag, value)?,
        }
        Ok(())
    }

    fn low_latency(&mut self, tag: &str, value: &str) -> Result<(), Problem> {
        let playlist = &mut self.playlist;
        match tag {
            "EXT-X-PART-INF" => {
                playlist.part_target_us =
                    Some(Attributes::parse(value)?.required_time_us("PART-TARGET")?);
            }
            "EXT-X-PART" => {
                let part = part(&Attributes::parse(value)?, &self.next.parts)?;
                self.next.parts.push(part);
                self.parts += 1;
            }
            "EXT-X-SERVER-CONTROL" => {
                let attributes = Attributes::parse(value)?;
                playlist.server_control = ServerControl {
                    can_block_reload: attributes.is_yes("CAN-BLOCK-RELOAD"),
                    can_skip_until_us: attributes.time_us("CAN-SKIP-UNTIL")?,
                    can_skip_date_ranges: attributes.is_yes("CAN-SKIP-DATERANGES"),
                    hold_back_us: attributes.time_us("HOLD-BACK")?,
                    part_hold_back_us: attributes.time_us("PART-HOLD-BACK")?,
                };
            }
            "EXT-X-PRELOAD-HINT" => {
                let attributes = Attributes::parse(value)?;
                let kind = match attributes.required("TYPE")? {
                    "PART" => HintKind::Part,
                    "MAP" => HintKind::Map,
                    _ => return Ok(()), // of a later version
                };
                playlist.preload_hints.push(PreloadHint {
                    kind,
                    uri: attributes.required("URI")?.to_owned(),
                    offset: attributes.number("BYTERANGE-START")?.unwrap_or_default(),
                    bytes: attributes.number("BYTERANGE-LENGTH")?,
                });
            }
            "EXT-X-SKIP" => {
                let skipped = Attributes::parse(value)?.number("SKIPPED-SEGMENTS")?;
                playlist.skipped_segments = Some(skipped.ok_or("has no SKIPPED-SEGMENTS")?);
            }
            "EXT-X-RENDITION-REPORT" => {
                // It is a hint: a playlist is of use without it, and hls.js plays on as well.
                let attributes = Attributes::parse(value).ok();
                playlist.rendition_reports.extend(attributes.as_ref().and_then(rendition_report));
            }
            _ => {}
        }
        Ok(())
    }

    /// `EXT-X-KEY`: in force until the next one of the same key system, or `NONE`.
    fn key(&mut self, value: &str) -> Result<(), Problem> {
        let attributes = Attributes::parse(value)?;
        let method = attributes.required("METHOD")?;
        self.shared_keys = None;
        if method == "NONE" {
            self.keys.clear();
            return Ok(());
        }
        let iv = attributes.get("IV").map(|text| {
            let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
            let read = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
            read.ok_or_else(|| format!("has IV=\"{}\", not 0x and 32 digits", excerpt(text)))
        });
        let key = Key {
            method: method.to_owned(),
            uri: attributes.required("URI")?.to_owned(),
            iv: iv.transpose()?,
            format: attributes.get("KEYFORMAT").unwrap_or("identity").to_owned(),
        };
        self.keys.retain(|known| known.format != key.format);
        if self.keys.len() < 32 {
            self.keys.push(key);
        }
        Ok(())
    }

    fn segment(&mut self, uri: String) -> Result<(), Problem> {
        let mut segment = std::mem::take(&mut self.next);
        if !std::mem::take(&mut self.has_duration) {
            // A discontinuity stays with the segment that follows.
            self.next.is_discontinuity = segment.is_discontinuity;
            return Ok(());
        }
        let before = self.playlist.segments.last().filter(|before| before.uri == uri);
        let next = before.and_then(|before| before.byte_range).map_or(0, |range| range.end());
        segment.byte_range = self.range.take().map(|text| range(&text, next)).transpose()?;
        segment.uri = uri;
        segment.init.clone_from(&self.init);
        segment.keys = Arc::clone(self.shared_keys.get_or_insert_with(|| self.keys.clone().into()));
        segment.discontinuity_number = self.discontinuities;
        segment.program_time_us = self.time_us;
        let duration_us = i64::try_from(segment.duration_us).unwrap_or(i64::MAX);
        self.time_us = self.time_us.map(|time_us| time_us.saturating_add(duration_us));
        self.playlist.segments.push(segment);
        Ok(())
    }

    fn check(&self, line: &Line<'_>) -> Result<(), ManifestError> {
        let playlist = &self.playlist;
        let count = playlist.segments.len() + self.parts;
        if count + playlist.preload_hints.len() + playlist.rendition_reports.len() > SEGMENTS_MAX {
            return Err(line.error(format!("is one of more than {SEGMENTS_MAX}")));
        }
        Ok(())
    }

    fn finish(self, last: u32) -> Result<MediaPlaylist, ManifestError> {
        let mut playlist = self.playlist;
        let missing = || ManifestError::new(last, "#EXT-X-TARGETDURATION", "is missing");
        let target_us = self.target_us.ok_or_else(missing)?;
        let longest_us = playlist.segments.iter().map(|segment| segment.duration_us).max();
        playlist.target_duration_us =
            Some(target_us).filter(|us| *us > 0).or(longest_us).unwrap_or_default();
        playlist.parts = self.next.parts;
        // Their own tags may come after the segments.
        let first =
            playlist.media_sequence.saturating_add(playlist.skipped_segments.unwrap_or_default());
        for (index, segment) in (0..).zip(&mut playlist.segments) {
            segment.number = first.saturating_add(index);
            segment.discontinuity_number =
                segment.discontinuity_number.saturating_add(playlist.discontinuity_sequence);
        }
        playlist.place();
        Ok(playlist)
    }
}

fn part(attributes: &Attributes<'_>, before: &[Part]) -> Result<Part, Problem> {
    let uri = attributes.required("URI")?;
    let before = before.last().filter(|before| before.uri == uri);
    let next = before.and_then(|before| before.byte_range).map_or(0, |range| range.end());
    Ok(Part {
        uri: uri.to_owned(),
        duration_us: attributes.required_time_us("DURATION")?,
        byte_range: attributes.range(next)?,
        is_independent: attributes.is_yes("INDEPENDENT"),
        is_gap: attributes.is_yes("GAP"),
    })
}

/// `None` without a URI; numbers that cannot be read are missing.
fn rendition_report(attributes: &Attributes<'_>) -> Option<RenditionReport> {
    Some(RenditionReport {
        uri: attributes.text("URI")?,
        last_sequence: attributes.number("LAST-MSN").ok().flatten(),
        last_part: attributes.number("LAST-PART").ok().flatten(),
    })
}

fn map(value: &str) -> Result<InitSection, Problem> {
    let attributes = Attributes::parse(value)?;
    Ok(InitSection {
        uri: attributes.required("URI")?.to_owned(),
        byte_range: attributes.range(0)?,
    })
}

/// `EXT-X-START`, of both kinds of playlists.
pub(super) fn start(value: &str) -> Result<Start, Problem> {
    let attributes = Attributes::parse(value)?;
    let seconds: f64 = attributes.number("TIME-OFFSET")?.ok_or("has no TIME-OFFSET")?;
    let time_us = seconds_us(seconds.abs()).and_then(|time_us| i64::try_from(time_us).ok());
    let time_us = time_us.ok_or("has a TIME-OFFSET that is no time")?;
    let time_offset_us = if seconds < 0.0 { -time_us } else { time_us };
    Ok(Start { time_offset_us, is_precise: attributes.is_yes("PRECISE") })
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, Problem> {
    value.trim().parse().map_err(|_| format!("has \"{}\", not a number", excerpt(value)).into())
}
