//! Distributes the target bitrate among the video streams.

use std::time::Instant;

use throng_observation::MediaKind;

use super::estimate::BACK_OFF;
use super::stream::Stream;

/// The factor by which a rung may exceed the allowed rate: enough that a rung which arrives
/// completely still fits after a back-off ([`BACK_OFF`]) with another cause. Clips exceed their
/// nominal rate by up to an eighth, and a limit at the nominal rate has room for them.
const OVER: f64 = 1.02 / BACK_OFF;

/// Distributes `bps` equally among the videos that are not mute. A single encoding moves up or down
/// its ladder; simulcast layers are dropped from the largest down, and resumed (libwebrtc's
/// `SimulcastRateAllocator`). The smallest is always sent. Returns whether the distribution is
/// complete: an upgrade may have to wait.
pub(super) fn allocate(streams: &mut [Stream], bps: f64, now: Instant) -> bool {
    // The streams of one section are adjacent, and are the layers of one video.
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

/// Sends a layer if it and all smaller ones fit.
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
