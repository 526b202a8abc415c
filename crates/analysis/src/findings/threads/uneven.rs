//! One of several threads is full while its like have room: the work is there and is not shared.

use super::super::CheckResult;
use super::{Shape, candidate, hot};
use crate::context::Context;

pub(in super::super) fn check(context: &Context<'_>) -> CheckResult {
    let hot = match hot(context) {
        Ok(hot) if hot.shape == Shape::Uneven => hot,
        Ok(_) => {
            return CheckResult::NotApplicable;
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
    candidate(context, &hot, "uneven_threads", title, change).suspect()
}
