//! A presentation in segments, whatever its manifest: renditions, and the segments of each.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use throng_observation::{Failure, Url};

use super::dash_window::DashWindow;
use super::window::Window;

/// What a lane downloads.
#[derive(Clone, Debug)]
pub(in crate::player) enum LanePlan {
    /// One of these renditions at a time, in segments; they are sorted by bitrate.
    Segments(Vec<Rendition>),
    /// One of these files, progressively; they are sorted by bitrate. Each with the smaller of its
    /// width and height, pixels, where the manifest says them.
    File(Vec<(Url, Option<u32>)>),
}

/// A resource, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::player) struct Resource {
    pub(in crate::player) url: Url,
    /// First and last byte, inclusive; `None` for all of it.
    pub(in crate::player) range: Option<(u64, u64)>,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.url)?;
        match self.range {
            Some((first, last)) => write!(f, " (bytes {first} to {last})"),
            None => Ok(()),
        }
    }
}

/// A key with which a segment is encrypted, AES-128 in CBC mode (RFC 8216 section 4.3.2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::player) struct SegmentKey {
    pub(in crate::player) url: Url,
    pub(in crate::player) iv: u128,
}

/// A segment of media, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::player) struct Segment {
    pub(in crate::player) media: Resource,
    /// Where its media begins on the time axis of the presentation, microseconds.
    pub(in crate::player) starts_us: i64,
    pub(in crate::player) duration_us: u64,
    /// What must be read before it (`EXT-X-MAP`, `Initialization`).
    pub(in crate::player) init: Option<Arc<Resource>>,
    pub(in crate::player) key: Option<SegmentKey>,
    /// Time stamps go on from one segment to the next as long as this is the same.
    pub(in crate::player) discontinuity: u64,
    /// It comes as it is made, and each frame can be played when it is there.
    pub(in crate::player) is_progressive: bool,
}

/// The place of a piece of media in a rendition: a segment by its number, or a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::player) struct Cursor {
    pub(in crate::player) segment: u64,
    /// Parts of the segment that were downloaded.
    pub(in crate::player) part: usize,
}

impl Cursor {
    /// The beginning of segment `number`.
    pub(in crate::player) fn at(number: u64) -> Self {
        Self { segment: number, part: 0 }
    }
}

/// What is at a place of a rendition.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::player) enum Found {
    /// This, and the place behind it.
    Piece(Box<Segment>, Cursor),
    /// Nothing that may be loaded; the rendition goes on there.
    Gap(Cursor),
    /// It cannot be requested, for this reason; the rendition goes on there.
    Broken(Failure, Cursor),
    /// It is not there yet.
    Later,
    /// It is not there any more; the rendition begins there.
    Gone(Cursor),
    /// The rendition ends before it.
    End,
}

/// One encoding of the media.
#[derive(Clone, Debug)]
pub(in crate::player) struct Rendition {
    pub(in crate::player) bandwidth_bps: u64,
    /// Its place in the manifest, whose author would begin with the first; `None` where places have
    /// no meaning.
    pub(in crate::player) listed_at: Option<usize>,
    /// The smaller of width and height, pixels, where a playlist says them: 720 of 720p.
    pub(in crate::player) resolution: Option<u32>,
    /// The playlist with its segments (HLS).
    pub(in crate::player) playlist: Option<Url>,
    /// The variables of the master playlist, which its own may import.
    pub(in crate::player) variables: Arc<BTreeMap<String, String>>,
    /// `None` until its playlist was read.
    pub(in crate::player) segments: Option<Segments>,
}

/// The segments of a rendition.
#[derive(Clone, Debug)]
pub(in crate::player) enum Segments {
    /// All there are; numbered from 0 on.
    Recorded(Arc<[Segment]>),
    /// Those of a live stream that its playlist lists.
    Live(Box<Window>),
    /// Those of a live stream that exist by the clock (DASH).
    Dynamic(Box<DashWindow>),
}

/// What a player needs to know of the end of a live rendition in order to follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) struct LiveEdge {
    /// Where its first and its last media are on the time axis, microseconds.
    pub(in crate::player) starts_us: i64,
    pub(in crate::player) ends_us: i64,
    /// When the end was learnt: the beginning of the response that moved it.
    pub(in crate::player) advanced_at: Instant,
    pub(in crate::player) target_duration_us: u64,
    /// Longest part of a segment, where parts are played.
    pub(in crate::player) part_target_us: Option<u64>,
    /// The distance from the end that the server asks for.
    pub(in crate::player) hold_back_us: Option<u64>,
    /// How far the dates of the program are ahead of the time axis at its end; `None`: it has none.
    pub(in crate::player) date_offset_us: Option<i64>,
    /// Nothing will be added.
    pub(in crate::player) has_ended: bool,
}

impl Segments {
    /// What is at `cursor`. `low_latency`: segments that are not complete are played in parts.
    pub(in crate::player) fn find(&self, cursor: Cursor, low_latency: bool) -> Found {
        match self {
            Self::Live(window) => window.find(cursor, low_latency),
            Self::Dynamic(window) => window.find(cursor),
            Self::Recorded(segments) => {
                let segment =
                    usize::try_from(cursor.segment).ok().and_then(|number| segments.get(number));
                let next = Cursor::at(cursor.segment.saturating_add(1));
                segment.map_or(Found::End, |segment| Found::Piece(Box::new(segment.clone()), next))
            }
        }
    }

    /// The segment that covers `position_us`, or the one before it; the part of it where parts are
    /// played.
    pub(in crate::player) fn at(&self, position_us: i64, low_latency: bool) -> Cursor {
        match self {
            Self::Live(window) => window.at(position_us, low_latency),
            Self::Dynamic(window) => window.at(position_us),
            Self::Recorded(segments) => {
                let after = segments.partition_point(|segment| segment.starts_us <= position_us);
                Cursor::at(after.saturating_sub(1) as u64)
            }
        }
    }

    /// Segment `number`, all of it, and the place behind it.
    pub(in crate::player) fn whole(&self, number: u64) -> Option<(Box<Segment>, Cursor)> {
        match self.find(Cursor::at(number), false) {
            Found::Piece(segment, after) => Some((segment, after)),
            _ => None,
        }
    }

    /// Passes the segments that may be loaded and their numbers to `take`, from this number on,
    /// until it has enough.
    pub(in crate::player) fn each_from(
        &self,
        number: u64,
        take: &mut dyn FnMut(u64, &Segment) -> bool,
    ) {
        if let Self::Recorded(segments) = self {
            // There may be thousands, of which no copies are made.
            let from = usize::try_from(number).unwrap_or(usize::MAX);
            let mut rest = segments.iter().zip(0..).skip(from);
            while rest.next().is_some_and(|(segment, number)| take(number, segment)) {}
            return;
        }
        let mut next = Cursor::at(number);
        loop {
            match self.find(next, false) {
                Found::Piece(segment, after) if take(next.segment, &segment) => next = after,
                Found::Gap(after) | Found::Broken(_, after) => next = after,
                Found::Piece(..) | Found::Later | Found::Gone(_) | Found::End => return,
            }
        }
    }

    pub(in crate::player) fn window(&self) -> Option<&Window> {
        match self {
            Self::Live(window) => Some(window),
            Self::Recorded(_) | Self::Dynamic(_) => None,
        }
    }

    /// The media of a segment ends so much later than its playlist says. By how much all segments
    /// were moved for that.
    pub(in crate::player) fn ends_later(&mut self, said_us: u64, by_us: i64) -> i64 {
        match self {
            Self::Live(window) => window.ends_later(said_us, by_us),
            Self::Recorded(_) | Self::Dynamic(_) => 0,
        }
    }

    pub(in crate::player) fn is_live(&self) -> bool {
        !matches!(self, Self::Recorded(_))
    }

    /// The end of the stream, where it is live.
    pub(in crate::player) fn edge(&self, low_latency: bool) -> Option<LiveEdge> {
        match self {
            Self::Live(window) => Some(window.edge(low_latency)),
            Self::Dynamic(window) => window.edge(),
            Self::Recorded(_) => None,
        }
    }

    /// The date of what is played at `position_us`, microseconds since 1970, where the stream has
    /// dates.
    pub(in crate::player) fn date_us(&self, position_us: i64) -> Option<i64> {
        match self {
            Self::Live(window) => {
                Some(position_us.saturating_add(window.date_offset_us(position_us)?))
            }
            Self::Dynamic(_) => Some(position_us),
            Self::Recorded(_) => None,
        }
    }

    /// Length of the media; a live stream has none.
    pub(in crate::player) fn duration_us(&self) -> Option<u64> {
        match self {
            Self::Recorded(segments) => Some(duration_us(segments)),
            Self::Live(_) | Self::Dynamic(_) => None,
        }
    }
}

/// Length of the media in all segments, microseconds.
pub(in crate::player) fn duration_us(segments: &[Segment]) -> u64 {
    let end = |segment: &Segment| segment.starts_us.saturating_add_unsigned(segment.duration_us);
    segments.iter().map(end).max().and_then(|end_us| u64::try_from(end_us).ok()).unwrap_or(0)
}
