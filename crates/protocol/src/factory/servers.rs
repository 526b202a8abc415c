//! The addresses of the server's name, which participants that do not resolve it take in turns.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The addresses of the server that may get load, when the host in its URL was resolved before.
/// Clones share their turns.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    addresses: Vec<SocketAddr>,
    /// Whether its name has others, which may get no load.
    has_others: bool,
    next: Arc<AtomicUsize>,
}

impl Servers {
    /// `addresses` in the resolver's order, for the worker with this number in a fleet: each begins
    /// its turns with another one.
    #[must_use]
    pub fn of_worker(worker: u16, addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, has_others: false, next: Arc::new(AtomicUsize::new(worker.into())) }
    }

    /// The same of a name that has so many addresses, with those that may get no load.
    #[must_use]
    pub fn of(self, addresses: usize) -> Self {
        Self { has_others: addresses > self.addresses.len(), ..self }
    }

    /// The first one.
    pub(super) fn first(&self) -> Option<SocketAddr> {
        self.addresses.first().copied()
    }

    /// The next one in turn; `None` where the name has one alone.
    pub(super) fn take_turn(&self) -> Option<IpAddr> {
        if self.addresses.len() < 2 && !self.has_others {
            return None;
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed).checked_rem(self.addresses.len())?;
        self.addresses.get(turn).map(SocketAddr::ip)
    }
}
