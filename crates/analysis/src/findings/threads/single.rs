//! The process does all its work in one thread, and no setting is known that would share it.

use super::super::Seen;
use super::{Shape, candidate, change, hot};
use crate::scene::Scene;

pub(in super::super) fn check(scene: &Scene<'_>) -> Seen {
    let hot = match hot(scene) {
        Ok(hot) if hot.shape == Shape::Single => hot,
        Ok(_) => return Seen::Moot,
        Err(seen) => return seen,
    };
    let process = hot.thread.process;
    let title = format!("{process} works in a single thread, and its core is full");
    let otherwise = format!(
        "Several processes of {process} with the users spread among them, a faster core, or less work for each user: more cores alone do not help"
    );
    let change = change(scene, hot.thread, &otherwise);
    candidate(scene, &hot, "single_threaded", title, change).seen()
}
