//! The joins of a cohort: arrivals, stays, reconnects, local addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use throng_observation::run::{CohortId, ParticipantId};

use super::Join;
use crate::arrival::{Arrival as _, Jitter, Ramp};
use crate::churn::Reconnect;
use crate::role::Role;
use crate::scenario::Cohort;

/// The visits of one cohort, without ids: the first participants fill the first room.
pub(super) fn joins_of(
    cohort: &Cohort,
    (rooms, of_room): (u32, &dyn Fn(u32) -> CohortId),
    duration: Duration,
    joins: &mut Vec<Join>,
) {
    let first = joins.len();
    let size = cohort.size.max(1);
    let arrivals = cohort.joins(cohort.size.saturating_mul(rooms), duration);
    for (member, arrives_at) in (0_u32..).zip(arrivals) {
        let cohort_id = of_room(member / size);
        let mut visit = |at: Duration, stay: Option<Duration>| {
            let leave_at =
                stay.and_then(|stay| at.checked_add(stay)).filter(|leave_at| *leave_at < duration);
            joins.push(Join {
                participant: ParticipantId(0),
                cohort: cohort_id,
                place: member % size,
                at,
                leave_at,
                others_follow: false,
                source_ip: None,
            });
            leave_at
        };
        let Some(stay) = &cohort.stay else {
            visit(arrives_at, None);
            continue;
        };
        let mut at = arrives_at;
        for time in stay.times(member) {
            match visit(at, Some(time)) {
                Some(left_at) if stay.rejoin => at = left_at,
                _ => break,
            }
        }
    }
    if let Some(reconnect) = cohort.reconnect {
        reconnect_at(reconnect, cohort.arrival.jitter(), duration, joins, first);
    }
    let addresses: u128 =
        cohort.source_ips.iter().map(crate::AddressRange::len).fold(0, u128::saturating_add);
    if let Some(own) = joins.get_mut(first..).filter(|_| addresses > 0) {
        own.sort_by_key(|join| join.at);
        for (index, join) in (0_u64..).zip(own) {
            join.source_ip = dealt(cohort, u128::from(index) % addresses);
        }
    }
}

/// Splits the visits from `first` on that last beyond the reconnect: they end there, and a second
/// visit follows each.
fn reconnect_at(
    reconnect: Reconnect,
    jitter: Option<Jitter>,
    duration: Duration,
    joins: &mut Vec<Join>,
    first: usize,
) {
    let is_there = |join: &&mut Join| {
        join.at < reconnect.at
            && join.leave_at.unwrap_or(duration) > reconnect.at.saturating_add(reconnect.within)
    };
    let mut back: Vec<Join> = Vec::new();
    for join in joins.iter_mut().skip(first).filter(is_there) {
        back.push(*join);
        join.leave_at = Some(reconnect.at);
    }
    let count = u32::try_from(back.len()).unwrap_or(u32::MAX);
    let ramp = Ramp { over: reconnect.within, jitter };
    for (join, offset) in back.iter_mut().zip(ramp.offsets(count)) {
        join.at = reconnect.at.saturating_add(offset);
    }
    joins.extend(back);
}

/// The longest time that a join may take.
const JOINING: Duration = Duration::from_secs(10);

/// Sets [`Join::others_follow`] of participants that leave before the end. `joins` are in the order
/// of their times.
pub(super) fn mark_followed(roles: &[Role], duration: Duration, joins: &mut [Join]) {
    let room_of = |join: &Join| roles.get(usize::from(join.cohort.0)).map(|role| role.room);
    // For each room, in reverse order: from this join on, a participant stays until then.
    let mut stays: HashMap<_, Vec<(Duration, Duration)>> = HashMap::new();
    for join in joins.iter().rev() {
        let of_room = stays.entry(room_of(join)).or_default();
        let longest = of_room.last().map_or(Duration::ZERO, |(_, until)| *until);
        of_room.push((join.at, longest.max(join.leave_at.unwrap_or(duration))));
    }
    for join in joins {
        let Some(leave_at) = join.leave_at else { continue };
        let of_room = stays.get(&room_of(join)).map_or(&[][..], Vec::as_slice);
        let late = of_room.partition_point(|(at, _)| at.saturating_add(JOINING) > leave_at);
        let others = late.checked_sub(1).and_then(|last| of_room.get(last));
        join.others_follow = others.is_some_and(|(_, until)| *until > leave_at);
    }
}

/// Address number `index` of the cohort's concatenated ranges.
fn dealt(cohort: &Cohort, mut index: u128) -> Option<IpAddr> {
    for range in &cohort.source_ips {
        if index < range.len() {
            return u64::try_from(index).ok().map(|index| range.nth(index));
        }
        index -= range.len();
    }
    None
}
