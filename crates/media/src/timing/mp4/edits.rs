//! Edit lists (`elst`, ISO/IEC 14496-12 section 8.6.6): which part of a track's own time is shown
//! when.

use std::ops::Range;

use super::boxes::BoxError;
use super::table::Table;
use crate::octets::{u32_at, u64_at};

/// Edits that are kept; muxers write one or two.
const EDITS_MAX: u32 = 64;

/// One part of a track that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edit {
    /// When it is shown, in ticks of the track.
    shown_at: i64,
    /// Where it begins in the track's own time.
    media_at: i64,
    /// How long it is; `i64::MAX`: to the end.
    len: i64,
}

/// The edits of a track, without the empty ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Edits(Vec<Edit>);

impl Edits {
    /// Reads the contents of an `elst` box. Lengths in it count in `movie_hz`, times in `track_hz`.
    pub(super) fn read(
        bytes: &[u8],
        body: &Range<usize>,
        movie_hz: u32,
        track_hz: u32,
    ) -> Result<Self, BoxError> {
        let is_long = bytes.get(body.start).is_some_and(|version| *version == 1);
        let table = Table::read(bytes, b"elst", body, if is_long { 20 } else { 12 })?;
        let (mut edits, mut shown_at) = (Vec::new(), 0_i64);
        for index in 0..table.count.min(EDITS_MAX) {
            let at = body.start + 8 + index as usize * if is_long { 20 } else { 12 };
            let (len, media_at) = if is_long {
                (u64_at(bytes, at), u64_at(bytes, at + 8).map(|at| at as i64))
            } else {
                (
                    u32_at(bytes, at).map(u64::from),
                    u32_at(bytes, at + 4).map(|at| i64::from(at as i32)),
                )
            };
            let (len, media_at) = (len.unwrap_or_default(), media_at.unwrap_or_default());
            let ticks = (u128::from(len) * u128::from(track_hz) + u128::from(movie_hz) / 2)
                / u128::from(movie_hz.max(1));
            let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
            if media_at >= 0 {
                // Fragmented files have a length of zero: up to the end (section 8.6.6.1).
                let len = if ticks == 0 { i64::MAX } else { ticks };
                edits.push(Edit { shown_at, media_at, len });
            }
            shown_at = shown_at.saturating_add(ticks);
        }
        Ok(Self(edits))
    }

    /// When what is at `media_at` in the track is shown, in ticks; negative, or after the end of
    /// the presentation, when it is only decoded.
    #[inline]
    pub(super) fn shown(&self, media_at: i64) -> i64 {
        let Some(first) = self.0.first() else { return media_at };
        let mut near = first;
        for edit in &self.0 {
            let within = media_at.saturating_sub(edit.media_at);
            if (0..edit.len).contains(&within) {
                near = edit;
                break;
            }
            if within >= 0 {
                near = edit;
            }
        }
        near.shown_at.saturating_add(media_at.saturating_sub(near.media_at))
    }

    /// What of the track is shown at this time: the inverse of [`Self::shown`].
    pub(super) fn media(&self, shown_at: i64) -> i64 {
        let started = self.0.iter().rev().find(|edit| edit.shown_at <= shown_at);
        let Some(edit) = started.or(self.0.first()) else { return shown_at };
        edit.media_at.saturating_add(shown_at.saturating_sub(edit.shown_at).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(version: u8, entries: &[(u64, i64)]) -> Edits {
        let mut bytes = vec![version, 0, 0, 0];
        bytes.extend((entries.len() as u32).to_be_bytes());
        for (len, media_at) in entries {
            if version == 1 {
                bytes.extend(len.to_be_bytes());
                bytes.extend(media_at.to_be_bytes());
            } else {
                bytes.extend((*len as u32).to_be_bytes());
                bytes.extend((*media_at as i32).to_be_bytes());
            }
            bytes.extend([0, 1, 0, 0]);
        }
        Edits::read(&bytes, &(0..bytes.len()), 1_000, 48_000).unwrap()
    }

    #[test]
    fn presentation_is_shifted_and_cut() {
        for version in [0, 1] {
            for (entries, media_at, shown) in [
                (&[][..], 7, 7),
                (&[(1_000, 1_024)], 1_024, 0),
                (&[(1_000, 1_024)], 0, -1_024), // primes the decoder
                (&[(1_000, 1_024)], 49_024, 48_000),
                (&[(500, -1), (1_000, 0)], 0, 24_000),
                (&[(500, -1), (0, 48)], 96, 24_048),
                // two parts, with what is between them left out
                (&[(1_000, 0), (1_000, 96_000)], 47_999, 47_999),
                (&[(1_000, 0), (1_000, 96_000)], 96_001, 48_001),
            ] {
                let edits = list(version, entries);
                assert_eq!(edits.shown(media_at), shown, "{entries:?}");
                if shown >= 0 {
                    assert_eq!(edits.media(shown), media_at, "{entries:?}");
                }
            }
        }
    }

    #[test]
    fn absurd_edits_do_not_overflow() {
        let edits = list(1, &[(u64::MAX, i64::MAX), (u64::MAX, i64::MIN), (u64::MAX, 5)]);
        for at in [i64::MIN, -1, 0, 1, i64::MAX] {
            let _ = (edits.shown(at), edits.media(at));
        }
    }
}
