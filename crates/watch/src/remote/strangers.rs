//! Connections that have not shown the token yet: bounded, and so that none of them can keep another out. When all places
//! are taken, the address that has most gives up its oldest.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// How many there may be at a time.
pub(super) const STRANGERS_MAX: usize = 16;
/// How many one address may send in a second. With this, who has just come keeps a place for most of a second even where
/// all others come from the same address: time enough for TLS and a token.
const PER_S_OF_ADDRESS_MAX: u32 = 20;
/// How many may come in a second in all: each costs a TLS handshake.
const PER_S_MAX: u32 = 60;

/// Those that are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Strangers(Arc<Mutex<There>>);

#[derive(Debug, Default)]
struct There {
    /// The oldest first.
    places: Vec<(u64, IpAddr, oneshot::Sender<()>)>,
    next: u64,
    second: Option<Instant>,
    /// Who came how often in this second; at most [`PER_S_MAX`] addresses.
    came: HashMap<IpAddr, u32>,
    in_second: u32,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    strangers: Strangers,
    number: u64,
    taken: oneshot::Receiver<()>,
}

impl Strangers {
    /// A place for a connection from `from`; `None` when too many came in this second.
    pub(super) fn admit(&self, from: IpAddr, now: Instant) -> Option<Place> {
        let from = network(from);
        let mut there = self.there();
        if !there.is_in_time(from, now) {
            return None;
        }
        if there.places.len() >= STRANGERS_MAX {
            there.make_room();
        }
        let number = there.next;
        there.next += 1;
        let (stay, taken) = oneshot::channel();
        there.places.push((number, from, stay));
        Some(Place { strangers: self.clone(), number, taken })
    }

    fn there(&self) -> MutexGuard<'_, There> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl There {
    fn is_in_time(&mut self, from: IpAddr, now: Instant) -> bool {
        if self.second.is_none_or(|second| now.duration_since(second) >= Duration::from_secs(1)) {
            (self.second, self.in_second) = (Some(now), 0);
            self.came.clear();
        }
        if self.in_second >= PER_S_MAX {
            return false;
        }
        let came = self.came.entry(from).or_default();
        // One address does not use up what is for all.
        if *came >= PER_S_OF_ADDRESS_MAX {
            return false;
        }
        *came += 1;
        self.in_second += 1;
        true
    }

    /// The oldest of the address that has most places loses its own.
    fn make_room(&mut self) {
        let held = |address: &IpAddr| self.places.iter().filter(|(_, other, _)| other == address).count();
        let oldest = self.places.iter().enumerate().max_by_key(|(index, (_, address, _))| {
            // The first of equals is the oldest.
            (held(address), std::cmp::Reverse(*index))
        });
        if let Some(index) = oldest.map(|(index, _)| index) {
            self.places.remove(index);
        }
    }
}

impl Place {
    /// Waits until another needs the place.
    pub(super) async fn lost(&mut self) {
        let _ = (&mut self.taken).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.there().places.retain(|(number, _, _)| *number != self.number);
    }
}

/// Whom an address belongs to: of IPv6 a host has 2^64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn has_lost(place: &mut Place) -> bool {
        place.taken.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_holds_most_places_gives_up_the_oldest() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        let mut quiet = strangers.admit(address(1), now).unwrap();
        let mut many: Vec<_> =
            (1..STRANGERS_MAX).map(|_| strangers.admit(address(2), now).unwrap()).collect();
        let mut right = strangers.admit(address(3), now).unwrap();
        assert!(has_lost(&mut many[0]), "the oldest of those that have most");
        assert!(!has_lost(&mut quiet) && !has_lost(&mut right) && !has_lost(&mut many[1]));
        assert_eq!(strangers.there().places.len(), STRANGERS_MAX);
        drop((quiet, right, many));
        assert!(strangers.there().places.is_empty());
    }

    #[test]
    fn one_address_does_not_use_up_the_second_of_all() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        let admitted = |from: IpAddr, now| (0..200).filter(|_| strangers.admit(from, now).is_some()).count();
        assert_eq!(admitted(address(2), now), PER_S_OF_ADDRESS_MAX as usize);
        assert!(strangers.admit(address(3), now).is_some());
        let all: usize = (4..20).map(|last| admitted(address(last), now)).sum();
        assert_eq!(all, (PER_S_MAX - PER_S_OF_ADDRESS_MAX - 1) as usize);
        assert!(strangers.admit(address(2), now + Duration::from_secs(1)).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:192.0.2.7"), address(7));
    }
}
