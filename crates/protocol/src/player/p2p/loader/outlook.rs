//! How far ahead a viewer looks: the windows of its engine, and the room that is left.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::super::policy::{Ahead, Urgent};
use super::{Loader, Queued, segments_before};

/// What may be loaded.
#[derive(Clone, Copy)]
pub(super) struct Outlook<'a> {
    /// What comes next, as far as it may come from neighbours.
    pub(super) queue: &'a [Queued],
    /// As much of it as may come from the server.
    pub(super) from_server: &'a [Queued],
    /// The player waits for it.
    pub(super) requested: Option<u64>,
    pub(super) position_us: i64,
}

/// How much room there is for what was not played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// A twentieth or less.
    None,
    /// A tenth or less: nothing is loaded by chance.
    Little,
    Enough,
}

impl Loader {
    /// What of the queue may be loaded.
    pub(super) fn outlook<'a>(
        &mut self,
        queue: &'a [Queued],
        requested: Option<u64>,
        position_us: i64,
    ) -> Outlook<'a> {
        if let Some(first) = queue.first() {
            // But for the one that is played.
            let before = segments_before(queue, first, position_us).saturating_add(1);
            self.played_before = first.number.saturating_sub(before);
        }
        let within = |window: Duration| {
            let until_us = position_us.saturating_add_unsigned(window.as_micros() as u64);
            queue.partition_point(|queued| queued.starts_us <= until_us)
        };
        let (server, all) = match (self.policy.ahead, self.policy.urgent, self.room()) {
            (Ahead::Segments(count), ..) => (count, count),
            (Ahead::Within { .. }, Urgent::Within(urgent), Room::None) => {
                (within(urgent), within(urgent))
            }
            (Ahead::Within { server, peers }, _, room) => {
                let peers = if room == Room::Enough { peers } else { server };
                (within(server), within(peers))
            }
        };
        let up_to = |count: usize| queue.get(..queue.len().min(count)).unwrap_or_default();
        Outlook { queue: up_to(all), from_server: up_to(server), requested, position_us }
    }

    /// How much room is left (`getAvailableStorageCapacityPercent`).
    pub(super) fn room(&self) -> Room {
        let share = |bytes: u64| bytes as f64 / self.policy.kept_bytes_max as f64;
        if share(self.held.bytes()) < 0.9 {
            return Room::Enough;
        }
        match share(self.held.bytes_from(self.played_before)) {
            used if used >= 0.95 => Room::None,
            used if used >= 0.9 => Room::Little,
            _ => Room::Enough,
        }
    }
}

/// The place of segment `number` in the queue, which is in order.
pub(super) fn place_in(queue: &[Queued], number: u64) -> Option<usize> {
    queue.binary_search_by_key(&number, |queued| queued.number).ok()
}

/// The first and the last number of the queue, and all between.
pub(super) fn numbers_of(queue: &[Queued]) -> Option<RangeInclusive<u64>> {
    Some(queue.first()?.number..=queue.last()?.number)
}
