//! A thread is full, and the server can share its work among more threads.

use super::super::CheckResult;
use super::{Shape, candidate, change, hot};
use crate::context::Context;

pub(in super::super) fn check(context: &Context<'_>) -> CheckResult {
    let hot = hot(context, Shape::Full)?;
    let thread = hot.thread;
    let title = match hot.pool.len() {
        1 => format!(
            "Thread {} of {} is full: it has one core and no more",
            thread.name, thread.process
        ),
        n => format!("All {n} threads {} of {} are full", thread.group, thread.process),
    };
    let otherwise = format!(
        "Use more threads {} (the server's setting for them), or several processes",
        thread.group
    );
    let change = change(context, thread, &otherwise);
    Ok(candidate(context, &hot, "one_thread_full", title, change))
}
