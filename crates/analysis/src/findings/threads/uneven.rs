//! One thread of a pool is full and the others are not: the work is not shared evenly.

use super::super::CheckResult;
use super::{Shape, candidate, hot};
use crate::context::Context;

pub(in super::super) fn check(context: &Context<'_>) -> CheckResult {
    let hot = hot(context, Shape::Uneven)?;
    let (thread, count) = (hot.thread, hot.pool.len());
    let title = format!(
        "Of the {count} threads {} of {} one is full and the others are not",
        thread.group, thread.process
    );
    // More threads do not help if the work of one room, stream or socket cannot be shared.
    let change = format!(
        "Spread the work: more and smaller rooms or streams, or a socket for each thread \
         (SO_REUSEPORT); more threads {} do not help while one of them gets all the work",
        thread.group
    );
    Ok(candidate(context, &hot, "uneven_threads", title, change))
}
