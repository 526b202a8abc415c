//! Viewers that stay connected and receive nothing.

use std::collections::BTreeMap;

use throng_observation::run::{CohortId, CrowdRow};

use super::{How, Loss};
use crate::context::Context;
use crate::windows::second_range;

/// For so long before it, seconds, viewers may fall silent one after the other: each plays what its
/// buffer has.
const STAGGER_S: i64 = 8;
/// Share of them that must still be connected when none receives: who left, or was thrown out, is
/// no proof.
const CONNECTED_MIN: f64 = 0.5;

/// The first second near the failure from which a whole cohort receives nothing.
pub(super) fn find(context: &Context<'_>) -> Option<Loss> {
    let mut cohorts: BTreeMap<CohortId, BTreeMap<i64, &CrowdRow>> = BTreeMap::new();
    for row in &context.run.crowd {
        cohorts.entry(row.cohort).or_default().insert(row.second, row);
    }
    let seconds = second_range(context.onset);
    let of_cohort = |(cohort, rows): (&CohortId, &BTreeMap<i64, &CrowdRow>)| {
        rows.range(seconds.clone()).find_map(|(second, last)| {
            // A second after the last one with media, as that of the end may have some of it.
            let silent = [second + 1, second + 2].map(|second| rows.get(&second).copied());
            let before = rows.range(second - STAGGER_S..=*second);
            let (all_at, all) = before
                .map(|(second, row)| (*second, row.playing))
                .max_by_key(|(second, playing)| (*playing, *second))?;
            let stayed = f64::from(all) * CONNECTED_MIN;
            let is_silent = silent.iter().all(|row| {
                row.is_some_and(|row| row.playing == 0 && f64::from(row.connected) >= stayed)
            });
            let has_ended = last.playing > 0 && is_silent;
            let seconds = rows.range(second + 1..).take_while(|(_, row)| row.playing == 0).count();
            has_ended.then_some(Loss {
                second: second + 1,
                within_s: second + 1 - all_at,
                viewers: all,
                how: if is_chat(context, *cohort) {
                    How::Roomless { seconds }
                } else {
                    How::Silent { seconds }
                },
            })
        })
    };
    cohorts.iter().filter_map(of_cohort).min_by_key(|loss| loss.second)
}

/// Whether a cohort is in a chat and receives no media.
pub(super) fn is_chat(context: &Context<'_>, cohort: CohortId) -> bool {
    let run = context.run;
    let has_media = run.series.iter().any(|row| row.cohort == cohort)
        || run.playback.iter().any(|row| row.cohort == cohort);
    !has_media && run.chat.iter().any(|row| row.cohort == cohort)
}
