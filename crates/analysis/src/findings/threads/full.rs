//! One thread is full, and the server has a way to share its work among more.

use super::super::Seen;
use super::{Shape, candidate, change, hot};
use crate::scene::Scene;

pub(in super::super) fn check(scene: &Scene<'_>) -> Seen {
    let hot = match hot(scene) {
        Ok(hot) if hot.shape == Shape::Full => hot,
        Ok(_) => return Seen::Moot,
        Err(seen) => return seen,
    };
    let thread = hot.thread;
    let title = match hot.pool.len() {
        1 => format!("Thread {} of {} is full: it has one core and no more", thread.name, thread.process),
        n => format!("All {n} threads {} of {} are full", thread.group, thread.process),
    };
    let otherwise =
        format!("More threads {} (the server's setting for them), or several processes", thread.group);
    let change = change(scene, thread, &otherwise);
    candidate(scene, &hot, "one_thread_full", title, change).seen()
}
