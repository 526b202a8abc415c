//! Playback on a real clock: what is buffered, where the position is, and what the user does.
//!
//! `timeline` has the frames that were received; `playout` moves the position over them: startup,
//! playback, stalls. `live` keeps it near the live edge, `user` seeks and pauses, `meter` makes the
//! seconds.

pub(super) mod live;
pub(super) mod meter;
pub(super) mod playout;
pub(super) mod timeline;
pub(super) mod user;
