//! How much of a body its participant wants to have read: the event loop adds to it, the download's
//! task takes from it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use throng_protocol::participant::Demand;
use tokio::sync::Notify;

/// The open demand of one download, in order.
#[derive(Debug, Default)]
pub(crate) struct Demands {
    due: Mutex<VecDeque<Demand>>,
    added: Notify,
}

impl Demands {
    /// Adds to the end. Neighbours of a kind are one: what a participant demands in small steps
    /// takes no more memory.
    pub(crate) fn push(&self, demand: Demand) {
        if bytes(demand) == 0 {
            return;
        }
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        match (due.back_mut(), demand) {
            (Some(Demand::Deliver(last)), Demand::Deliver(more))
            | (Some(Demand::Ignore(last)), Demand::Ignore(more)) => {
                *last = last.saturating_add(more);
            }
            _ => due.push_back(demand),
        }
        drop(due);
        self.added.notify_one();
    }

    /// What is due first; never of no bytes.
    pub(super) fn first(&self) -> Option<Demand> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).front().copied()
    }

    /// Takes `taken` bytes from what is due first.
    pub(super) fn take(&self, taken: u64) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Demand::Deliver(left) | Demand::Ignore(left)) = due.front_mut() {
            *left = left.saturating_sub(taken);
            if *left == 0 {
                due.pop_front();
            }
        }
    }

    /// Waits until there is some.
    pub(super) async fn some(&self) {
        while self.first().is_none() {
            self.added.notified().await;
        }
    }
}

/// The bytes of a demand.
pub(super) fn bytes(demand: Demand) -> u64 {
    match demand {
        Demand::Deliver(bytes) | Demand::Ignore(bytes) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_met_in_order_and_neighbours_of_a_kind_are_one() {
        let demands = Demands::default();
        for demand in [
            Demand::Deliver(0),
            Demand::Deliver(3),
            Demand::Deliver(4),
            Demand::Ignore(u64::MAX),
            Demand::Ignore(5),
            Demand::Deliver(1),
        ] {
            demands.push(demand);
        }
        assert_eq!(demands.first(), Some(Demand::Deliver(7)));
        demands.take(6);
        assert_eq!(demands.first(), Some(Demand::Deliver(1)));
        demands.take(1);
        assert_eq!(demands.first(), Some(Demand::Ignore(u64::MAX)));
        demands.take(u64::MAX);
        demands.take(1);
        assert_eq!(demands.first(), None);
        demands.take(1);
    }
}
