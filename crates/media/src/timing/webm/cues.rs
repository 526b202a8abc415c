//! The index of a Matroska file (RFC 9559 section 5.1.5), read where it is kept.

use super::ebml::{children, unsigned};
use super::tracks::Tracks;

const CUE_POINT: u32 = 0xbb;
const CUE_TIME: u32 = 0xb3;
const CUE_TRACK_POSITIONS: u32 = 0xb7;
const CUE_CLUSTER_POSITION: u32 = 0xf1;

/// Marks the contents of `Cues` among the indexes that readers share; nothing else is read from
/// them.
#[derive(Debug)]
pub(in crate::timing) struct SharedCues;

/// The last cluster with a cue at or before this time, or the first: its offset, and the time of
/// the cue. Positions count from `start`.
pub(super) fn find(cues: &[u8], start: u64, tracks: &Tracks, time_us: u64) -> Option<(u64, u64)> {
    let points = children(cues).filter(|(id, _)| *id == CUE_POINT).filter_map(|(_, point)| {
        let (mut time, mut position) = (None, None);
        for (id, body) in children(point) {
            match id {
                CUE_TIME => time = Some(unsigned(body)),
                CUE_TRACK_POSITIONS => {
                    let here = children(body).find(|(id, _)| *id == CUE_CLUSTER_POSITION);
                    position = position.or(here.map(|(_, body)| unsigned(body)));
                }
                _ => {}
            }
        }
        let at_us = tracks.us(i64::try_from(time?).ok()?).unsigned_abs();
        Some((start.checked_add(position?)?, at_us))
    });
    let mut best: Option<(u64, u64)> = None;
    for point in points {
        let is_better = match best {
            None => true,
            Some((_, best_us)) => point.1 <= time_us && (point.1 >= best_us || best_us > time_us),
        };
        if is_better {
            best = Some(point);
        }
    }
    best
}
