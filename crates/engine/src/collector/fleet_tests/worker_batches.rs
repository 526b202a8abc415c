//! The batches of the workers: packed, delivered in another order and more than once, and merged
//! into the rows of one run.

use throng_fleet::inbox::{Arrival, Inbox};
use throng_fleet::merge::{Counts, MergeLimits, Merger, PlannedJoin, Taken, WorkerId, WorkerName};
use throng_fleet::spool::BatchKind;
use throng_fleet::wire::{self, WireLimits};
use throng_observation::run::Row;

use super::crowd::{COHORTS, ENDS_AT, PEOPLE, join, worker_of};
use crate::config::Join;

/// The batches of a worker, packed as it packs them: what is replaced first, what is said once,
/// what closes a second.
pub(super) fn batches(by_second: Vec<Vec<Row>>) -> Vec<(BatchKind, Vec<u8>)> {
    let mut batches = Vec::new();
    for mut rows in by_second {
        for kind in [BatchKind::Interim, BatchKind::Lasting, BatchKind::Second] {
            let of_kind: Vec<Row> = rows.extract_if(.., |row| BatchKind::of(row) == kind).collect();
            if !of_kind.is_empty() {
                batches.push((kind, wire::encode(&of_kind, WireLimits::default()).unwrap()));
            }
        }
    }
    batches
}

/// An order in which batches arrive: each two of them exchanged, many twice, and the first and a
/// middle one once more at the end.
fn deliveries(count: usize) -> Vec<usize> {
    let numbers: Vec<usize> = (0..count).collect();
    let mut order: Vec<usize> = Vec::new();
    for pair in numbers.chunks(2) {
        order.extend(pair.iter().rev());
        order.extend(pair.first().filter(|first| **first % 3 == 0));
    }
    order.extend([0, count / 2]);
    order
}

/// A join as the coordinator knows it.
fn planned(number: u32) -> PlannedJoin {
    let Join { participant, cohort, at: intended_at, leave_at, .. } = join(number);
    PlannedJoin { participant, cohort, intended_at, leave_at }
}

/// The rows of the fleet. Nothing of the last worker comes before all of the others has. `given_up`
/// is a batch, by worker and number, for which that worker had no room: it sends the number alone.
pub(super) fn merged(
    shares: &[Vec<(BatchKind, Vec<u8>)>],
    given_up: Option<(usize, usize)>,
) -> Vec<Row> {
    let names: Vec<WorkerName> =
        (0..shares.len()).map(|worker| WorkerName(format!("w{worker}"))).collect();
    let limits = MergeLimits {
        cohorts: COHORTS.len() as u16,
        second_max: ENDS_AT.second() + 60,
        participants: PEOPLE,
    };
    let mut merger = Merger::new(&names, limits);
    let mut inboxes = vec![Inbox::new(1 << 20); shares.len()];
    let mut arrivals: Vec<(bool, usize, usize, usize)> = Vec::new();
    for (worker, batches) in shares.iter().enumerate() {
        let is_late = worker == shares.len() - 1;
        let places = deliveries(batches.len()).into_iter().enumerate();
        arrivals.extend(places.map(|(place, number)| (is_late, place, worker, number)));
    }
    arrivals.sort_unstable();
    let mut out = Vec::new();
    for (_, _, worker, number) in arrivals {
        let (inbox, id) = (&mut inboxes[worker], WorkerId(worker as u16));
        let is_given_up = given_up == Some((worker, number));
        let bytes = if is_given_up { Vec::new() } else { shares[worker][number].1.clone() };
        assert_ne!(inbox.take(number as u64, bytes), Arrival::NoRoom);
        while let Some((_, bytes)) = inbox.pop() {
            for row in wire::decode(&bytes, WireLimits::default()).unwrap() {
                assert_eq!(merger.take(id, row, &mut out), Taken::Yes);
            }
        }
        if inbox.confirmed() == shares[worker].len() as u64 {
            merger.finished(
                id,
                (0..PEOPLE).filter(|number| worker_of(*number) == worker).map(planned),
                &mut out,
            );
        }
    }
    assert!(inboxes.iter().all(|inbox| inbox.duplicates() > 10));
    assert_eq!(merger.seconds_kept(), 0);
    for worker in (0..shares.len() as u16).map(WorkerId).filter(|_| given_up.is_none()) {
        assert_eq!(merger.counts(worker), Counts::default());
    }
    out
}
