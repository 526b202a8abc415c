//! Viewers that the server disconnects when their source ends, as MediaMTX and SRS do.
//!
//! A server that crashes or is started again disconnects all as well. So it counts only where its
//! processes are watched, and all of them live on.

use std::collections::BTreeMap;

use throng_observation::RunTime;
use throng_observation::host::Life;
use throng_observation::run::{CohortId, ParticipantRow};

use super::silence::is_chat;
use super::{How, Loss};
use crate::context::Context;

/// The time within which all are disconnected.
const WITHIN_US: i64 = 2_000_000;
/// Of a single viewer nothing shows that it was all of them.
const VIEWERS_MIN: usize = 2;
/// A process that ends or is found so long before or after may be the server's restart: the watcher
/// sees both within a second or two.
const RESTART_US: i64 = 3_000_000;

/// The first cohort near the failure whose viewers were all disconnected at once.
pub(super) fn find(context: &Context<'_>) -> Option<Loss> {
    let mut cohorts: BTreeMap<CohortId, Vec<&ParticipantRow>> = BTreeMap::new();
    for row in context.run.participants.iter().filter(|row| row.was_playing()) {
        cohorts.entry(row.cohort).or_default().push(row);
    }
    // Who sends, as in a conference, has the others as its source.
    cohorts.retain(|cohort, _| {
        let sends = context.run.sent.iter().any(|row| row.cohort == *cohort);
        !sends && !is_chat(context, *cohort)
    });
    cohorts.values().filter_map(|rows| of_cohort(context, rows)).min_by_key(|loss| loss.second)
}

fn of_cohort(context: &Context<'_>, rows: &[&ParticipantRow]) -> Option<Loss> {
    let ends: Vec<Option<RunTime>> = rows.iter().map(|row| cut_off_at(row)).collect();
    let last = ends.iter().flatten().copied().filter(|at| context.is_near_failure(*at)).max()?;
    let from = RunTime(last.0.saturating_sub(WITHIN_US));
    let was_there = |row: &ParticipantRow| {
        row.intended_at < from && row.ended_at.is_none_or(|ended| ended >= from)
    };
    let there = rows.iter().zip(&ends).filter(|(row, _)| was_there(row));
    // One that plays on, or left by itself, is `None`.
    let ends: Vec<RunTime> =
        there.map(|(_, end)| end.filter(|at| *at <= last)).collect::<Option<_>>()?;
    // A server that ends one after the other ends the last ones, too.
    let before = |at: &&RunTime| at.0 < from.0;
    if rows.iter().filter_map(|row| cut_off_at(row)).filter(|at| before(&at)).count() > ends.len() {
        return None;
    }
    let first = ends.iter().min()?;
    let is_all = ends.len() >= VIEWERS_MIN && has_lived_on(context, *first, last);
    is_all.then(|| Loss {
        second: last.second() + 1,
        within_s: last.second() - first.second(),
        viewers: u32::try_from(ends.len()).unwrap_or(u32::MAX),
        how: How::CutOff,
    })
}

/// When the server or the path ended a participant.
fn cut_off_at(row: &ParticipantRow) -> Option<RunTime> {
    row.ended_at.filter(|_| row.failure().is_some_and(|why| !why.is_ours()))
}

/// Whether processes of the server are known, and none of them ended or came then.
fn has_lived_on(context: &Context<'_>, first: RunTime, last: RunTime) -> bool {
    let then = first.0.saturating_sub(RESTART_US)..=last.0.saturating_add(RESTART_US);
    let is_then = |at: Option<RunTime>| at.is_some_and(|at| then.contains(&at.0));
    let stays = |life: &Life| !is_then(life.ended) && !is_then(life.found);
    let lives = |life: &Life| life.ended.is_none_or(|ended| ended > last);
    context.lives.own().all(stays) && context.lives.own().any(lives)
}
