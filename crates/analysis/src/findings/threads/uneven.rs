//! One of several threads is full while its like have room: the work is there and is not shared.

use super::super::Seen;
use super::{Shape, candidate, hot};
use crate::scene::Scene;

pub(in super::super) fn check(scene: &Scene<'_>) -> Seen {
    let hot = match hot(scene) {
        Ok(hot) if hot.shape == Shape::Uneven => hot,
        Ok(_) => {
            return Seen::Moot;
        }
        Err(seen) => return seen,
    };
    let (thread, count) = (hot.thread, hot.pool.len());
    let title = format!(
        "Of the {count} threads {} of {} one is full and the others are not",
        thread.group, thread.process
    );
    // More of them do not help where the work of one room, stream or socket cannot be shared.
    let change = format!(
        "Spread the work: more and smaller rooms or streams, or a socket for each thread (SO_REUSEPORT); more threads {} do not help while one of them gets it all",
        thread.group
    );
    candidate(scene, &hot, "uneven_threads", title, change).seen()
}
