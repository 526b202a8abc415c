//! Admission control for connections that have not sent the token yet: their number and rate are bounded, and no
//! address can lock out others. When all slots are taken, the address that holds most loses its oldest. A flood from a
//! few addresses uses up the common rate, but not the rates reserved for new addresses and for addresses that
//! authenticated before.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// Maximum number of unauthenticated connections.
pub(super) const PENDING_MAX: usize = 16;
/// Slots reserved for addresses that authenticated before.
const KNOWN_PLACES_MAX: usize = 8;
/// Maximum number of connections from one address in a second. With this limit a new connection keeps its slot for most
/// of a second even when all others come from one address: enough for TLS and the token.
const PER_S_OF_ADDRESS_MAX: u32 = 20;
/// Maximum number of connections in a second in all; each costs a TLS handshake.
const PER_S_MAX: u32 = 60;
/// Additional connections in a second from addresses that had none in that second; three flooding addresses use up the
/// rest.
const NEW_PER_S_MAX: u32 = 20;
/// Additional connections in a second from addresses that authenticated before.
const KNOWN_PER_S_MAX: u32 = 40;
/// How many authenticated addresses are remembered.
const KNOWN_MAX: usize = 64;

/// Admits connections and evicts the oldest when there are too many.
#[derive(Clone, Debug, Default)]
pub(super) struct AdmissionControl(Arc<Mutex<AdmissionState>>);

#[derive(Debug, Default)]
struct AdmissionState {
    /// Oldest first.
    places: Vec<PendingConnection>,
    next: u64,
    /// Addresses that authenticated, most recent last.
    known: VecDeque<IpAddr>,
    second: Option<Instant>,
    /// Connections of this second by address; at most as many addresses as were admitted.
    came: HashMap<IpAddr, u32>,
    of_all: u32,
    of_new: u32,
    of_known: u32,
}

#[derive(Debug)]
struct PendingConnection {
    number: u64,
    from: IpAddr,
    is_known: bool,
    /// Dropping it evicts the connection.
    _stay: oneshot::Sender<()>,
}

/// The slot of an unauthenticated connection; freed when dropped.
#[derive(Debug)]
pub(super) struct PendingSlot {
    strangers: AdmissionControl,
    number: u64,
    from: IpAddr,
    taken: oneshot::Receiver<()>,
}

impl AdmissionControl {
    /// A slot for a connection from `from`; `None` when too many came in this second.
    pub(super) fn admit(&self, from: IpAddr, now: Instant) -> Option<PendingSlot> {
        let from = network(from);
        let mut there = self.there();
        let is_known = there.known.contains(&from);
        if !there.is_in_time(from, is_known, now) {
            return None;
        }
        there.make_room(is_known);
        let number = there.next;
        there.next += 1;
        let (stay, taken) = oneshot::channel();
        there.places.push(PendingConnection { number, from, is_known, _stay: stay });
        Some(PendingSlot { strangers: self.clone(), number, from, taken })
    }

    fn there(&self) -> MutexGuard<'_, AdmissionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionState {
    fn is_in_time(&mut self, from: IpAddr, is_known: bool, now: Instant) -> bool {
        if self.second.is_none_or(|second| now.duration_since(second) >= Duration::from_secs(1)) {
            self.second = Some(now);
            (self.of_all, self.of_new, self.of_known) = (0, 0, 0);
            self.came.clear();
        }
        let came = self.came.get(&from).copied().unwrap_or(0);
        // One address cannot use up the common rate.
        if came >= PER_S_OF_ADDRESS_MAX {
            return false;
        }
        let shares = [
            (is_known, &mut self.of_known, KNOWN_PER_S_MAX),
            (true, &mut self.of_all, PER_S_MAX),
            (came == 0, &mut self.of_new, NEW_PER_S_MAX),
        ];
        let Some((_, count, _)) =
            shares.into_iter().find(|(is_theirs, count, max)| *is_theirs && **count < *max)
        else {
            return false;
        };
        *count += 1;
        self.came.insert(from, came + 1);
        true
    }

    /// Evicts the oldest connection of the address that holds most slots, if all slots of its class (known addresses or
    /// others) are taken.
    fn make_room(&mut self, is_known: bool) {
        let alike = || self.places.iter().enumerate().filter(|(_, place)| place.is_known == is_known);
        if alike().count() < if is_known { KNOWN_PLACES_MAX } else { PENDING_MAX } {
            return;
        }
        let held = |from: IpAddr| alike().filter(|(_, other)| other.from == from).count();
        // Of equal addresses, the first connection is the oldest.
        let oldest = alike().max_by_key(|(index, place)| (held(place.from), std::cmp::Reverse(*index)));
        if let Some(index) = oldest.map(|(index, _)| index) {
            self.places.remove(index);
        }
    }
}

impl PendingSlot {
    /// Waits until the slot is taken by another connection.
    pub(super) async fn lost(&mut self) {
        let _ = (&mut self.taken).await;
    }

    /// The token was right: remembers the address as known.
    pub(super) fn authenticated(&self) {
        let mut there = self.strangers.there();
        there.known.retain(|known| *known != self.from);
        there.known.push_back(self.from);
        if there.known.len() > KNOWN_MAX {
            there.known.pop_front();
        }
    }
}

impl Drop for PendingSlot {
    fn drop(&mut self) {
        self.strangers.there().places.retain(|place| place.number != self.number);
    }
}

/// The network that counts as one address: an IPv6 host usually has a /64.
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

    fn has_lost(place: &mut PendingSlot) -> bool {
        place.taken.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_holds_most_places_gives_up_the_oldest() {
        let (strangers, now) = (AdmissionControl::default(), Instant::now());
        let mut quiet = strangers.admit(address(1), now).unwrap();
        let mut many: Vec<_> = (1..PENDING_MAX).map(|_| strangers.admit(address(2), now).unwrap()).collect();
        let mut right = strangers.admit(address(3), now).unwrap();
        assert!(has_lost(&mut many[0]), "the oldest of those that have most");
        assert!(!has_lost(&mut quiet) && !has_lost(&mut right) && !has_lost(&mut many[1]));
        assert_eq!(strangers.there().places.len(), PENDING_MAX);
        drop((quiet, right, many));
        assert!(strangers.there().places.is_empty());
    }

    #[test]
    fn one_address_does_not_use_up_the_second_of_all() {
        let (strangers, now) = (AdmissionControl::default(), Instant::now());
        let admitted = |from: IpAddr, now| (0..200).filter(|_| strangers.admit(from, now).is_some()).count();
        assert_eq!(admitted(address(2), now), PER_S_OF_ADDRESS_MAX as usize);
        assert!(strangers.admit(address(3), now).is_some());
        let all: usize = (4..8).map(|last| admitted(address(last), now)).sum();
        // What is for all, and one each of the two who came when that was used up.
        assert_eq!(all, (PER_S_MAX - PER_S_OF_ADDRESS_MAX - 1) as usize + 2);
        assert!(strangers.admit(address(2), now + Duration::from_secs(1)).is_some());
    }

    #[test]
    fn three_that_flood_keep_nobody_out_who_comes_for_the_first_time() {
        let (strangers, now) = (AdmissionControl::default(), Instant::now());
        let mut flood = Vec::new();
        for _ in 0..300 {
            flood.extend((2..5).filter_map(|last| strangers.admit(address(last), now)));
        }
        assert_eq!(flood.len(), PER_S_MAX as usize);
        let mut right = strangers.admit(address(1), now).expect("the first of its address");
        assert!(strangers.admit(address(1), now).is_none(), "its second has to wait for the next second");
        let new = (10..200).filter(|last| strangers.admit(address(*last), now).is_some()).count();
        assert_eq!(new, NEW_PER_S_MAX as usize - 1, "a flood from many addresses ends too");
        // All places are the flood's and those of the new ones, and the right one's is kept.
        let later = now + Duration::from_secs(1);
        flood.extend((0..60).filter_map(|n| strangers.admit(address(2 + n % 3), later)));
        assert!(!has_lost(&mut right));
    }

    #[test]
    fn who_showed_the_token_gets_in_however_many_strangers_come() {
        let (strangers, now) = (AdmissionControl::default(), Instant::now());
        let known = strangers.admit(address(1), now).unwrap();
        known.authenticated();
        drop(known);
        let _flood: Vec<_> = (2..=250).filter_map(|last| strangers.admit(address(last), now)).collect();
        let mut right: Vec<_> = (0..4).map(|_| strangers.admit(address(1), now).unwrap()).collect();
        // Strangers take no place of theirs, in whatever number they come.
        let later = now + Duration::from_secs(1);
        let _flood: Vec<_> = (2..=250).filter_map(|last| strangers.admit(address(last), later)).collect();
        assert!(right.iter_mut().all(|place| !has_lost(place)));
        let strange = strangers.there().places.iter().filter(|place| !place.is_known).count();
        assert_eq!(strange, PENDING_MAX);
        for last in 0..=255_u8 {
            let there = PendingSlot {
                strangers: strangers.clone(),
                number: 0,
                from: address(last),
                taken: oneshot::channel().1,
            };
            there.authenticated();
        }
        assert_eq!(strangers.there().known.len(), KNOWN_MAX);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:192.0.2.7"), address(7));
    }
}
