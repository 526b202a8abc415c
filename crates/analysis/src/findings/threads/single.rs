//! The process does all its work in one thread, and no setting is known that would share it.

use super::super::CheckResult;
use super::{Shape, candidate, change, hot};
use crate::context::Context;

pub(in super::super) fn check(context: &Context<'_>) -> CheckResult {
    let hot = hot(context, Shape::Single)?;
    let process = hot.thread.process;
    let title = format!("{process} works in a single thread, and its core is full");
    let otherwise = format!(
        "Use several processes of {process} with the users spread among them, a faster core, or \
         less work for each user: more cores alone do not help"
    );
    let change = change(context, hot.thread, &otherwise);
    Ok(candidate(context, &hot, "single_threaded", title, change))
}
