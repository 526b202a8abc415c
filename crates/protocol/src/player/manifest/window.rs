//! The segments of a live rendition that its playlist lists (RFC 8216 section 6.2.2), on the time
//! axis of the presentation.
//!
//! The axis is that of the program, microseconds since 1970, where the playlist has dates
//! (`EXT-X-PROGRAM-DATE-TIME`), for as long as these go on (`program_time`). Else it is the numbers
//! of the segments times the target duration at first, continued by durations; where the media of a
//! segment ends elsewhere than its duration says, what comes behind it follows the media, as by
//! hls.js (`updateFragPTSDTS` of `level-helper.ts`). Else a playlist whose durations are wrong
//! would run away from its media, and playback after it.

use std::sync::Arc;
use std::time::Instant;

use throng_media::manifest::hls::{HintKind, MediaPlaylist, Part, Segment as Listed};
use throng_observation::Url;

use super::hls;
use super::presentation::{Cursor, Found, LiveEdge, Resource, Segment};
use super::program_time::{JUMP_US, ProgramTime};

/// Media that ends so much earlier or later than its playlist says is where its time stamps are;
/// less is the rounding of durations, and the difference between tracks.
const ROUNDING_US: u64 = 100_000;

/// By how many of its said durations the media of a segment may end later or sooner than said;
/// beyond that its time stamps jumped.
const MOVED_MAX: u64 = 10;

/// The playlist as it was received last.
#[derive(Clone, Debug)]
pub(in crate::player) struct Window {
    /// Where the playlist came from: its URIs are relative to it.
    url: Url,
    playlist: Arc<MediaPlaylist>,
    /// Where its first segment begins.
    base_us: i64,
    has_program_time: bool,
    program_time: ProgramTime,
    /// Counts from 0 on how often the numbering began anew.
    restarts: u64,
    advanced_at: Instant,
}

/// What a newly received playlist is, compared with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) enum Change {
    /// It has more segments or parts.
    Advanced,
    /// It has the same ones.
    Unchanged,
    /// It ends earlier than the one before: an older one, which is not used.
    WentBack,
    /// Its numbers have nothing in common with those before: the stream began anew.
    Restarted,
}

impl Window {
    /// The window of a playlist that was received first. `answered_at`: when the response began.
    pub(in crate::player) fn new(
        url: Url,
        playlist: Arc<MediaPlaylist>,
        answered_at: Instant,
    ) -> Self {
        let dated_us = playlist.segments.first().and_then(|segment| segment.program_time_us);
        let base_us = playlist.media_sequence.saturating_mul(playlist.target_duration_us);
        let base_us = dated_us.unwrap_or(i64::try_from(base_us).unwrap_or(0));
        let has_program_time = dated_us.is_some();
        let program_time = ProgramTime::default();
        let mut window = Self {
            url,
            playlist,
            base_us,
            has_program_time,
            program_time,
            restarts: 0,
            advanced_at: answered_at,
        };
        if has_program_time {
            window.program_time.follow(base_us, &window.playlist.segments);
            // The axis is that of the latest dates, so that those of several renditions are the
            // same.
            window.move_axis(window.date_offset_us(i64::MAX).unwrap_or(0));
        }
        window
    }

    /// Moves the axis: dates are so much less ahead of it.
    fn move_axis(&mut self, by_us: i64) {
        self.program_time.shift(by_us.saturating_neg());
        self.base_us = self.base_us.saturating_add(by_us);
    }

    /// The media of a segment ends so much later than its playlist says, which says that it lasts
    /// for `said_us`. By how much all segments were moved for that: dates say themselves where
    /// theirs are, and a jump of time stamps is no duration that is wrong.
    pub(in crate::player) fn ends_later(&mut self, said_us: u64, by_us: i64) -> i64 {
        let may_be = ROUNDING_US + 1..=said_us.saturating_mul(MOVED_MAX);
        let is_moved = !self.has_program_time && may_be.contains(&by_us.unsigned_abs());
        let moved_us = if is_moved { by_us } else { 0 };
        self.base_us = self.base_us.saturating_add(moved_us);
        moved_us
    }

    /// Puts it on the axis of another rendition's window.
    pub(in crate::player) fn align(&mut self, other: &Self) {
        match (self.has_program_time, other.has_program_time) {
            (true, true) => self.align_by_dates(other),
            (false, false) => self.align_by_numbers(other),
            _ => {}
        }
    }

    /// The same dates are played at the same time: that of the last segment that both have, else
    /// the ends are the same.
    fn align_by_dates(&mut self, other: &Self) {
        let mut segments = self.playlist.segments.iter().rev();
        let of_both = segments.find(|own| {
            let same = other.index(own.number).and_then(|at| other.playlist.segments.get(at));
            let dates = own.program_time_us.zip(same.and_then(|same| same.program_time_us));
            dates.is_some_and(|(own_us, same_us)| {
                own_us.saturating_sub(same_us).saturating_abs() <= JUMP_US
            })
        });
        let aheads = match of_both {
            Some(own) => {
                (self.program_time.ahead_us(own.number), other.program_time.ahead_us(own.number))
            }
            None => (self.program_time.ahead_us(u64::MAX), other.program_time.ahead_us(u64::MAX)),
        };
        self.move_axis(aheads.0.saturating_sub(aheads.1));
    }

    /// Without dates, segments of the same number are played at the same time.
    fn align_by_numbers(&mut self, other: &Self) {
        let first = self.playlist.media_sequence;
        let target_us = self.playlist.target_duration_us;
        self.base_us = match other.index(first).map(|at| other.playlist.segments.get(at)) {
            Some(Some(known)) => other.starts_us(known),
            Some(None) => {
                let later = first.saturating_sub(other.end());
                other.complete_us().saturating_add_unsigned(later.saturating_mul(target_us))
            }
            None => {
                let earlier = other.playlist.media_sequence.saturating_sub(first);
                other.base_us.saturating_sub_unsigned(earlier.saturating_mul(target_us))
            }
        };
    }

    /// Takes the next playlist, which came from `url`.
    pub(in crate::player) fn update(
        &mut self,
        url: &Url,
        playlist: Arc<MediaPlaylist>,
        answered_at: Instant,
    ) -> Change {
        let change = self.change(&playlist);
        match change {
            Change::WentBack => return change,
            Change::Restarted => {
                self.base_us = self.restarted_us(&playlist);
                self.restarts += 1;
            }
            Change::Advanced | Change::Unchanged => self.base_us = self.continued_us(&playlist),
        }
        if change != Change::Unchanged || playlist.has_ended != self.playlist.has_ended {
            self.advanced_at = answered_at;
        }
        self.playlist = playlist;
        // A balancer may answer each request by a redirect to another server.
        if self.url != *url {
            self.url = url.clone();
        }
        change
    }

    /// Where the first segment of the next playlist begins. Learns its dates.
    fn continued_us(&mut self, playlist: &MediaPlaylist) -> i64 {
        let first = playlist.media_sequence;
        let known = self.index(first).and_then(|at| self.playlist.segments.get(at));
        // Where it was, or would be if some before it were missed.
        let missed = first.saturating_sub(self.end());
        let missed_us = missed.saturating_mul(playlist.target_duration_us);
        let due_us = known.map_or_else(
            || self.complete_us().saturating_add_unsigned(missed_us),
            |known| self.starts_us(known),
        );
        let date_us = playlist.segments.first().and_then(|segment| segment.program_time_us);
        let Some(date_us) = date_us.filter(|_| self.has_program_time) else { return due_us };
        self.program_time.forget_before(first);
        let starts_us = date_us.saturating_sub(self.program_time.ahead_us(first));
        // How many segments were missed is known, and not how long each of them was.
        let tolerance_us = missed_us.saturating_add(JUMP_US.unsigned_abs());
        if starts_us.abs_diff(due_us) > tolerance_us {
            // The dates of what is known were changed, or have jumped in what was missed.
            self.program_time.begin(date_us.saturating_sub(due_us));
            self.program_time.follow(due_us, &playlist.segments);
            return due_us;
        }
        if known.is_none() {
            self.program_time.follow(starts_us, &playlist.segments);
            return starts_us;
        }
        let added = usize::try_from(self.end().saturating_sub(first)).unwrap_or(usize::MAX);
        let last = added.checked_sub(1).and_then(|at| playlist.segments.get(at));
        if let (Some(last), Some(added)) = (last, playlist.segments.get(added..)) {
            let last_us = last.program_time_us.unwrap_or(date_us);
            let starts_us = last_us.saturating_sub(self.program_time.ahead_us(last.number));
            self.program_time.follow(starts_us.saturating_add_unsigned(last.duration_us), added);
        }
        starts_us
    }

    /// The same for a playlist that began anew: what it adds comes behind all that was listed
    /// before, unless its dates say that it goes on in the middle of it, as those of another
    /// packager for the same program do.
    fn restarted_us(&mut self, playlist: &MediaPlaylist) -> i64 {
        let ends_us = self.ends_us();
        let (first, last) = (playlist.segments.first(), playlist.segments.last());
        let dates = first
            .and_then(|first| first.program_time_us)
            .zip(last.and_then(|last| last.program_time_us));
        let Some((first_us, last_us)) = dates.filter(|_| self.has_program_time) else {
            return ends_us;
        };
        let ahead_us = self.program_time.ahead_us(u64::MAX);
        let date_us = ends_us.saturating_add(ahead_us);
        let goes_on = first_us <= date_us.saturating_add(JUMP_US)
            && date_us <= last_us.saturating_add(JUMP_US);
        let starts_us = if goes_on { first_us.saturating_sub(ahead_us) } else { ends_us };
        self.program_time.begin(first_us.saturating_sub(starts_us));
        self.program_time.follow(starts_us, &playlist.segments);
        starts_us
    }

    fn change(&self, playlist: &MediaPlaylist) -> Change {
        let last = |playlist: &MediaPlaylist| {
            let listed = playlist.segments.last().map(|segment| segment.number.saturating_add(1));
            (listed.unwrap_or(playlist.media_sequence), playlist.parts.len())
        };
        let (end, parts) = last(playlist);
        if end <= self.playlist.media_sequence && !playlist.segments.is_empty() {
            return Change::Restarted;
        }
        match (end, parts).cmp(&last(&self.playlist)) {
            std::cmp::Ordering::Greater => Change::Advanced,
            std::cmp::Ordering::Equal => Change::Unchanged,
            std::cmp::Ordering::Less => Change::WentBack,
        }
    }

    pub(in crate::player) fn playlist(&self) -> &Arc<MediaPlaylist> {
        &self.playlist
    }

    pub(in crate::player) fn url(&self) -> &Url {
        &self.url
    }

    /// When its end was learnt.
    pub(in crate::player) fn advanced_at(&self) -> Instant {
        self.advanced_at
    }

    /// The number after that of the last complete segment.
    pub(in crate::player) fn end(&self) -> u64 {
        self.playlist.media_sequence.saturating_add(self.playlist.segments.len() as u64)
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.playlist.media_sequence)?).ok()
    }

    fn starts_us(&self, segment: &Listed) -> i64 {
        match segment.program_time_us.filter(|_| self.has_program_time) {
            Some(time_us) => time_us.saturating_sub(self.program_time.ahead_us(segment.number)),
            None => self.base_us.saturating_add_unsigned(segment.offset_us),
        }
    }

    /// The end of the last complete segment.
    fn complete_us(&self) -> i64 {
        let last = self.playlist.segments.last();
        last.map_or(self.base_us, |last| {
            self.starts_us(last).saturating_add_unsigned(last.duration_us)
        })
    }

    /// The end of all that is listed.
    fn ends_us(&self) -> i64 {
        let parts_us = self
            .playlist
            .parts
            .iter()
            .fold(0_u64, |sum, part| sum.saturating_add(part.duration_us));
        self.complete_us().saturating_add_unsigned(parts_us)
    }

    /// What a player follows.
    pub(in crate::player) fn edge(&self, low_latency: bool) -> LiveEdge {
        let playlist = &self.playlist;
        let control = &playlist.server_control;
        let parts_back_us = control.part_hold_back_us.filter(|_| low_latency);
        LiveEdge {
            starts_us: playlist
                .segments
                .first()
                .map_or(self.base_us, |first| self.starts_us(first)),
            ends_us: if low_latency { self.ends_us() } else { self.complete_us() },
            advanced_at: self.advanced_at,
            target_duration_us: playlist.target_duration_us,
            part_target_us: playlist.part_target_us.filter(|_| low_latency),
            hold_back_us: parts_back_us.or(control.hold_back_us),
            date_offset_us: self.date_offset_us(i64::MAX),
            has_ended: playlist.has_ended,
        }
    }

    /// How far the dates are ahead of the axis at `position_us`, where there are some.
    pub(in crate::player) fn date_offset_us(&self, position_us: i64) -> Option<i64> {
        let segments = &self.playlist.segments;
        let after = segments.partition_point(|segment| self.starts_us(segment) <= position_us);
        let number =
            segments.get(after.saturating_sub(1)).map_or(u64::MAX, |segment| segment.number);
        self.has_program_time.then(|| self.program_time.ahead_us(number))
    }

    /// Takes the last jump of the dates that was not reported: its segment, and by how much they
    /// went ahead.
    pub(in crate::player) fn take_date_jump(&mut self) -> Option<(u64, i64)> {
        self.program_time.take_jump()
    }

    /// The segment that covers `position_us`, behind the last one that which is not complete; where
    /// parts are played, the part of it.
    pub(in crate::player) fn at(&self, position_us: i64, low_latency: bool) -> Cursor {
        let segments = &self.playlist.segments;
        let after = segments.partition_point(|segment| self.starts_us(segment) <= position_us);
        let is_behind = after == segments.len() && position_us >= self.complete_us();
        let index = if is_behind { after } else { after.saturating_sub(1) };
        let cursor = Cursor::at(self.playlist.media_sequence.saturating_add(index as u64));
        let (parts, starts_us) = match segments.get(index) {
            Some(segment) => (&segment.parts, self.starts_us(segment)),
            None => (&self.playlist.parts, self.complete_us()),
        };
        if !low_latency {
            return cursor;
        }
        let mut ends_us = starts_us;
        let ended = parts.iter().take_while(|part| {
            ends_us = ends_us.saturating_add_unsigned(part.duration_us);
            ends_us <= position_us
        });
        Cursor { part: ended.count(), ..cursor }
    }

    /// What is at `cursor`. `low_latency`: parts are played where they are listed.
    pub(in crate::player) fn find(&self, cursor: Cursor, low_latency: bool) -> Found {
        let Some(index) = self.index(cursor.segment) else {
            return Found::Gone(Cursor::at(self.playlist.media_sequence));
        };
        let next = Cursor::at(cursor.segment.saturating_add(1));
        let Some(listed) = self.playlist.segments.get(index) else {
            if cursor.segment > self.end() || !low_latency {
                return if self.playlist.has_ended { Found::End } else { Found::Later };
            }
            return self.part(None, &self.playlist.parts, cursor);
        };
        let is_played_in_parts = low_latency && !listed.parts.is_empty() && {
            // hls.js begins with a whole segment where the list of parts begins.
            let is_first = index == 0 || self.playlist.segments[index - 1].parts.is_empty();
            cursor.part > 0 || !is_first
        };
        if is_played_in_parts {
            return match self.part(Some(listed), &listed.parts, cursor) {
                Found::Later => self.find(next, low_latency),
                found => found,
            };
        }
        if listed.is_gap {
            return Found::Gap(next);
        }
        match hls::live_segment(self, listed) {
            Ok(segment) => Found::Piece(Box::new(segment), next),
            Err(failure) => Found::Broken(failure, next),
        }
    }

    /// The part at `cursor` of a segment, `None` for the one that is not complete.
    fn part(&self, listed: Option<&Listed>, parts: &[Part], cursor: Cursor) -> Found {
        let Some(part) = parts.get(cursor.part) else {
            let is_over = listed.is_none() && self.playlist.has_ended;
            return if is_over { Found::End } else { Found::Later };
        };
        let next = Cursor { part: cursor.part + 1, ..cursor };
        if part.is_gap {
            return Found::Gap(next);
        }
        let before_us = parts[..cursor.part]
            .iter()
            .fold(0_u64, |sum, part| sum.saturating_add(part.duration_us));
        let starts_us = listed.map_or(self.complete_us(), |listed| self.starts_us(listed));
        // The segment that is not complete goes on like the last one.
        let Some(like) = listed.or(self.playlist.segments.last()) else { return Found::Later };
        let mut whole = like.clone();
        (whole.uri, whole.byte_range) = (part.uri.clone(), part.byte_range);
        (whole.number, whole.duration_us) = (cursor.segment, part.duration_us);
        match hls::live_segment(self, &whole) {
            Ok(segment) => {
                let starts_us = starts_us.saturating_add_unsigned(before_us);
                Found::Piece(Box::new(Segment { starts_us, ..segment }), next)
            }
            Err(failure) => Found::Broken(failure, next),
        }
    }

    /// The part that will come next at `cursor`, which the server lets be requested before it
    /// exists (`EXT-X-PRELOAD-HINT`).
    pub(in crate::player) fn hinted(&self, cursor: Cursor) -> Option<(Segment, Cursor)> {
        let playlist = &self.playlist;
        if cursor.segment != self.end() || cursor.part != playlist.parts.len() {
            return None;
        }
        let hint = playlist.preload_hints.iter().find(|hint| hint.kind == HintKind::Part)?;
        let like = playlist.segments.last()?;
        let url = self.url.join(&hint.uri).ok()?;
        let end = hint.bytes.map(|bytes| hint.offset.saturating_add(bytes).saturating_sub(1));
        let range = end
            .map(|end| (hint.offset, end))
            .or((hint.offset > 0).then_some((hint.offset, u64::MAX)));
        let segment = hls::live_segment(self, like).ok()?;
        let segment = Segment {
            media: Resource { url, range },
            starts_us: self.ends_us(),
            duration_us: playlist.part_target_us.unwrap_or_default(),
            ..segment
        };
        Some((segment, Cursor { part: cursor.part + 1, ..cursor }))
    }

    /// Where a listed segment is on the time axis, and its discontinuity, restarts included.
    pub(in crate::player) fn place(&self, segment: &Listed) -> (i64, u64) {
        (
            self.starts_us(segment),
            (self.restarts << 32) | (segment.discontinuity_number & 0xffff_ffff),
        )
    }
}

#[cfg(test)]
mod tests {
    use throng_media::manifest::hls::Playlist;

    use super::*;

    /// Segments of four seconds, with a date if `dated`.
    fn window(dated: bool) -> Window {
        let date = if dated { "#EXT-X-PROGRAM-DATE-TIME:2026-11-28T12:00:00Z\n" } else { "" };
        let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{date}#EXTINF:4,\n0.ts\n");
        let Playlist::Media(media) = Playlist::parse(text.as_bytes()).unwrap() else {
            panic!("a master playlist")
        };
        Window::new(Url::parse("http://10.0.0.1/live.m3u8").unwrap(), media, Instant::now())
    }

    #[test]
    fn segments_are_moved_for_a_duration_that_is_wrong_and_not_for_a_jump() {
        let said_us = 4_000_000;
        for (later_us, expect_us) in [
            (-3_000_000, -3_000_000),
            (30_000_000, 30_000_000),
            (100_000, 0), // the rounding of durations
            (-60_000_000, 0),
            (60_000_000, 0),
            (i64::MIN, 0),
        ] {
            let mut window = window(false);
            let began_us = window.base_us;
            assert_eq!(window.ends_later(said_us, later_us), expect_us, "{later_us}");
            assert_eq!(window.base_us - began_us, expect_us, "{later_us}");
        }
        assert_eq!(window(true).ends_later(said_us, -3_000_000), 0, "dates say it themselves");
    }
}
