//! What each picture has of what all of them may have together.

use std::time::Instant;

use throng_observation::MediaKind;

use super::estimate::BACK_OFF;
use super::stream::Stream;

/// A rung is sent up to so much above what is allowed: of a rung that arrives whole, what a queue that grew for other reasons
/// leaves of the rate ([`BACK_OFF`]) is enough for it. Clips come to an eighth more than the rate that they are named for, and
/// a limit of that rate has room for them.
const OVER: f64 = 1.02 / BACK_OFF;

/// Shares `bps` among the pictures that are not mute, alike. One of them goes up or down its ladder; of a simulcast, sizes
/// are left out from the largest down and come back (libwebrtc's `SimulcastRateAllocator`). The smallest is always sent.
/// Says whether all is as it is to be: a better picture may have to wait.
pub(super) fn allocate(streams: &mut [Stream], bps: f64, now: Instant) -> bool {
    // The streams of one section follow each other, and are one picture in several sizes.
    let is_same = |a: &Stream, b: &Stream| a.plan.mid == b.plan.mid;
    let pictures = streams.chunk_by(is_same).filter(|picture| is_shown(picture)).count().max(1);
    let each = OVER * bps.max(0.0) / pictures as f64;
    let pictures = streams.chunk_by_mut(is_same).filter(|picture| is_shown(picture));
    pictures.fold(true, |is_shared, picture| {
        let is_kept = match picture {
            [alone] if alone.plan.rid.is_none() => alone.keep_to(each, now),
            sizes => leave_out(sizes, each, now),
        };
        is_shared && is_kept
    })
}

fn is_shown(picture: &[Stream]) -> bool {
    picture.iter().any(|stream| stream.plan.kind == MediaKind::Video && !stream.is_muted())
}

/// Sends a size where it and all below it have room.
fn leave_out(sizes: &mut [Stream], bps: f64, now: Instant) -> bool {
    let mut is_kept = true;
    for at in 0..sizes.len() {
        let own = sizes.get(at).map_or(0.0, Stream::wanted_bps);
        let smaller = || sizes.iter().map(Stream::wanted_bps).filter(|other| *other < own);
        let has_room = smaller().next().is_none() || smaller().sum::<f64>() + own <= bps;
        if let Some(size) = sizes.get_mut(at) {
            is_kept &= size.leave_out(!has_room, now);
        }
    }
    is_kept
}
