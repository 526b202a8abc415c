//! The segments of a live DASH representation that exist by the clock (ISO/IEC 23009-1 section
//! A.3), on the time axis of the program: microseconds since 1970. A place in it is the time at
//! which a segment begins, because numbers may begin anew with each period.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::manifest::dash::{ContentKind, Manifest, Representation, Segment as DashSegment};
use throng_observation::Url;

use super::dash;
use super::presentation::{Cursor, Found, LiveEdge};
use crate::player::playback::timeline::as_us;

/// Times of neighbouring segments may differ by what rounding makes of them.
const ROUNDING_US: i64 = 5_000;

/// Segments behind the present at which a player begins when the manifest says nothing (dash.js
/// `FRAGMENT_DURATION_FACTOR` of its `PlaybackController`).
const DELAY_SEGMENTS: u64 = 4;

/// A representation of a live manifest at a moment.
#[derive(Clone, Debug)]
pub(in crate::player) struct DashWindow {
    /// Where the manifest came from.
    url: Url,
    manifest: Arc<Manifest>,
    kind: ContentKind,
    /// Its place among the representations by bitrate.
    rank: usize,
    /// The present, on both clocks.
    now: Option<(Instant, i64)>,
    /// First and last segment that can be requested, with the index of their periods, and when
    /// another one can.
    span: Option<[(usize, DashSegment); 2]>,
    changes_at_us: i64,
}

impl DashWindow {
    pub(in crate::player) fn new(
        url: Url,
        manifest: Arc<Manifest>,
        kind: ContentKind,
        rank: usize,
    ) -> Self {
        Self { url, manifest, kind, rank, now: None, span: None, changes_at_us: i64::MIN }
    }

    /// Takes the next version of the manifest.
    pub(in crate::player) fn update(&mut self, url: &Url, manifest: &Arc<Manifest>) {
        (self.url, self.manifest) = (url.clone(), Arc::clone(manifest));
        self.changes_at_us = i64::MIN;
        if let Some((now, unix_us)) = self.now {
            self.tick(now, unix_us);
        }
    }

    pub(in crate::player) fn bandwidth_bps(&self) -> u64 {
        self.representations()
            .next_back()
            .map_or(0, |(_, representation)| representation.bandwidth_bps)
    }

    /// See [`dash::resolution`].
    pub(in crate::player) fn resolution(&self) -> Option<u32> {
        let (_, representation) = self.representations().next_back()?;
        dash::resolution(representation)
    }

    fn representations(&self) -> impl DoubleEndedIterator<Item = (usize, &Representation)> {
        let periods = self.manifest.periods.iter().enumerate();
        periods.filter_map(|(at, period)| {
            let set = dash::set_of(period, self.kind)?;
            Some((at, *dash::sorted(set).get(self.rank)?))
        })
    }

    /// Time of the program at the beginning of the presentation.
    fn zero_us(&self) -> i64 {
        self.manifest.availability_start_us.unwrap_or(0)
    }

    /// The present is now this.
    pub(in crate::player) fn tick(&mut self, now: Instant, unix_us: i64) {
        self.now = Some((now, unix_us));
        if unix_us < self.changes_at_us {
            return;
        }
        let spans = || {
            self.representations().filter_map(|(period, representation)| {
                let (first, last) = representation.available_span(&self.manifest, unix_us)?;
                Some([(period, first), (period, last)])
            })
        };
        let first = spans().next().map(|[first, _]| first);
        let last = spans().next_back().map(|[_, last]| last);
        self.span = first.zip(last).map(|(first, last)| [first, last]);
        let duration_us = self.segment_duration_us();
        let ends_us = self.span.as_ref().map(|[_, (_, last)]| self.end_of(last));
        let next_us = ends_us
            .map(|us| us.saturating_add_unsigned(duration_us).saturating_sub(self.early_us()));
        // A timeline that ends before the present changes with the manifest only.
        let look_us = unix_us.saturating_add(as_us(LOOK));
        self.changes_at_us = next_us.filter(|us| *us > unix_us).unwrap_or(look_us);
    }

    fn end_of(&self, segment: &DashSegment) -> i64 {
        segment.time_us.saturating_add(self.zero_us()).saturating_add_unsigned(segment.duration_us)
    }

    /// How much before its end a segment can be requested.
    fn early_us(&self) -> i64 {
        let early_us =
            self.representations().next_back().map_or(0, |(_, last)| last.available_early_us());
        i64::try_from(early_us).unwrap_or(0)
    }

    pub(in crate::player) fn segment_duration_us(&self) -> u64 {
        self.span.as_ref().map_or(0, |[_, (_, last)]| last.duration_us)
    }

    /// When another segment can be requested, if the manifest says so.
    pub(in crate::player) fn next_at(&self) -> Option<Instant> {
        let (now, unix_us) = self.now?;
        let wait_us = u64::try_from(self.changes_at_us.saturating_sub(unix_us)).ok()?;
        self.manifest.is_dynamic.then(|| now + Duration::from_micros(wait_us))
    }

    /// What a player follows; `None` before the present is known, or when nothing can be requested.
    pub(in crate::player) fn edge(&self) -> Option<LiveEdge> {
        let (now, unix_us) = self.now?;
        let [(_, first), (_, last)] = self.span.as_ref()?;
        let manifest = &self.manifest;
        let ends_us = self.end_of(last);
        // The stream moves on with the clock since its last segment was complete.
        let age_us = u64::try_from(unix_us.saturating_sub(ends_us)).unwrap_or(0);
        let advanced_at = now.checked_sub(Duration::from_micros(age_us)).unwrap_or(now);
        let usual_us = last.duration_us.saturating_mul(DELAY_SEGMENTS);
        let chosen_us = manifest.latency_target_us.or(manifest.suggested_presentation_delay_us);
        Some(LiveEdge {
            starts_us: first.time_us.saturating_add(self.zero_us()),
            ends_us: ends_us.min(unix_us),
            advanced_at,
            target_duration_us: last.duration_us,
            part_target_us: (self.early_us() > 0)
                .then(|| last.duration_us.saturating_sub(self.early_us().unsigned_abs()).max(1)),
            hold_back_us: Some(chosen_us.unwrap_or(usual_us)),
            date_offset_us: Some(0),
            has_ended: !manifest.is_dynamic,
        })
    }

    /// The segment that covers `position_us`.
    pub(in crate::player) fn at(&self, position_us: i64) -> Cursor {
        let found = self.segment_at(position_us);
        let starts_us = found
            .map_or(position_us, |(_, segment)| segment.time_us.saturating_add(self.zero_us()));
        Cursor::at(u64::try_from(starts_us).unwrap_or(0))
    }

    /// The segment that contains this time, or the one before it, and the index of its period.
    fn segment_at(&self, position_us: i64) -> Option<(usize, DashSegment)> {
        let time_us = position_us.saturating_sub(self.zero_us());
        let starts = |period: usize| {
            i64::try_from(self.manifest.periods[period].start_us).unwrap_or(i64::MAX)
        };
        let mut of_period = self.representations().filter(|(period, _)| starts(*period) <= time_us);
        let (period, representation) =
            of_period.next_back().or_else(|| self.representations().next())?;
        representation.segment_at(time_us).map(|segment| (period, segment))
    }

    /// What is at `cursor`, the time at which a segment begins.
    pub(in crate::player) fn find(&self, cursor: Cursor) -> Found {
        let wanted_us = i64::try_from(cursor.segment).unwrap_or(i64::MAX);
        let Some([(_, first), (_, last)]) = &self.span else { return Found::Later };
        let starts_us = |segment: &DashSegment| segment.time_us.saturating_add(self.zero_us());
        if wanted_us.saturating_add(ROUNDING_US) < starts_us(first) {
            return Found::Gone(Cursor::at(u64::try_from(starts_us(first)).unwrap_or(0)));
        }
        if wanted_us.saturating_add(ROUNDING_US) > starts_us(last).saturating_add(2 * ROUNDING_US) {
            let is_behind = wanted_us.saturating_add(ROUNDING_US) >= self.end_of(last);
            return if self.manifest.is_dynamic || !is_behind { Found::Later } else { Found::End };
        }
        let Some((period, segment)) = self.segment_at(wanted_us.saturating_add(ROUNDING_US)) else {
            return Found::Later;
        };
        let next = Cursor::at(
            u64::try_from(self.end_of(&segment)).unwrap_or(0).max(cursor.segment.saturating_add(1)),
        );
        if self.end_of(&segment) <= wanted_us {
            // Periods may leave a time without segments between them.
            return Found::Gap(next);
        }
        let representation = self.representations().find(|(at, _)| *at == period);
        let Some((_, representation)) = representation else { return Found::Later };
        match dash::live_segment(
            &self.url,
            representation,
            (&segment, self.zero_us()),
            period as u64,
        ) {
            Ok(segment) => Found::Piece(Box::new(segment), next),
            Err(failure) => Found::Broken(failure, next),
        }
    }
}

/// After how long the present is looked at again where nothing says when something changes.
const LOOK: Duration = Duration::from_secs(1);
