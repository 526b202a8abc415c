//! Admission control for connections that have not sent the token yet: their number and rate are
//! bounded, and no address can lock out others. When all slots are taken, the address that holds
//! most loses its oldest. A flood from a few addresses uses up the common rate, but not the rates
//! reserved for new addresses and for addresses that authenticated before.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// Maximum number of unauthenticated connections.
pub(super) const PENDING_MAX: usize = 16;
/// Slots reserved for addresses that authenticated before.
const KNOWN_SLOTS_MAX: usize = 8;
/// Maximum number of connections from one address in a second. With this limit a new connection
/// keeps its slot for most of a second even when all others come from one address: enough for TLS
/// and the token.
const ADDRESS_PER_S_MAX: u32 = 20;
/// Maximum number of connections in a second in all; each costs a TLS handshake.
const PER_S_MAX: u32 = 60;
/// Additional connections in a second from addresses that had none in that second; three flooding
/// addresses use up the rest.
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
    slots: Vec<PendingConnection>,
    next: u64,
    /// Addresses that authenticated, most recent last.
    known: VecDeque<IpAddr>,
    second: Option<Instant>,
    /// Connections of this second by address; at most as many addresses as were admitted.
    counts: HashMap<IpAddr, u32>,
    common: u32,
    new: u32,
    reserved: u32,
}

#[derive(Debug)]
struct PendingConnection {
    number: u64,
    from: IpAddr,
    is_known: bool,
    /// Dropping it evicts the connection.
    _evict: oneshot::Sender<()>,
}

/// The slot of an unauthenticated connection; freed when dropped.
#[derive(Debug)]
pub(super) struct PendingSlot {
    admission: AdmissionControl,
    number: u64,
    from: IpAddr,
    evicted: oneshot::Receiver<()>,
}

impl AdmissionControl {
    /// A slot for a connection from `from`; `None` when too many arrived in this second.
    pub(super) fn admit(&self, from: IpAddr, now: Instant) -> Option<PendingSlot> {
        let from = network(from);
        let mut state = self.state();
        let is_known = state.known.contains(&from);
        if !state.is_within_rate(from, is_known, now) {
            return None;
        }
        state.evict_if_full(is_known);
        let number = state.next;
        state.next += 1;
        let (evict, evicted) = oneshot::channel();
        state.slots.push(PendingConnection { number, from, is_known, _evict: evict });
        Some(PendingSlot { admission: self.clone(), number, from, evicted })
    }

    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionState {
    fn is_within_rate(&mut self, from: IpAddr, is_known: bool, now: Instant) -> bool {
        if self.second.is_none_or(|second| now.duration_since(second) >= Duration::from_secs(1)) {
            self.second = Some(now);
            (self.common, self.new, self.reserved) = (0, 0, 0);
            self.counts.clear();
        }
        let earlier = self.counts.get(&from).copied().unwrap_or(0);
        // One address cannot use up the common rate.
        if earlier >= ADDRESS_PER_S_MAX {
            return false;
        }
        let shares = [
            (is_known, &mut self.reserved, KNOWN_PER_S_MAX),
            (true, &mut self.common, PER_S_MAX),
            (earlier == 0, &mut self.new, NEW_PER_S_MAX),
        ];
        let Some((_, count, _)) =
            shares.into_iter().find(|(applies, count, max)| *applies && **count < *max)
        else {
            return false;
        };
        *count += 1;
        self.counts.insert(from, earlier + 1);
        true
    }

    /// Evicts the oldest connection of the address that holds most slots, if all slots of its class
    /// (known addresses or others) are taken.
    fn evict_if_full(&mut self, is_known: bool) {
        let same_class =
            || self.slots.iter().enumerate().filter(|(_, slot)| slot.is_known == is_known);
        if same_class().count() < if is_known { KNOWN_SLOTS_MAX } else { PENDING_MAX } {
            return;
        }
        let held = |from: IpAddr| same_class().filter(|(_, other)| other.from == from).count();
        // Of equal addresses, the first connection is the oldest.
        let oldest =
            same_class().max_by_key(|(index, slot)| (held(slot.from), std::cmp::Reverse(*index)));
        if let Some(index) = oldest.map(|(index, _)| index) {
            self.slots.remove(index);
        }
    }
}

impl PendingSlot {
    /// Waits until the slot is taken by another connection.
    pub(super) async fn evicted(&mut self) {
        let _ = (&mut self.evicted).await;
    }

    /// The token was right: remembers the address as known.
    pub(super) fn authenticated(&self) {
        let mut state = self.admission.state();
        state.known.retain(|known| *known != self.from);
        state.known.push_back(self.from);
        if state.known.len() > KNOWN_MAX {
            state.known.pop_front();
        }
    }
}

impl Drop for PendingSlot {
    fn drop(&mut self) {
        self.admission.state().slots.retain(|slot| slot.number != self.number);
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

    fn is_evicted(slot: &mut PendingSlot) -> bool {
        slot.evicted.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn the_address_with_most_slots_loses_its_oldest() {
        let (admission, now) = (AdmissionControl::default(), Instant::now());
        let mut quiet = admission.admit(address(1), now).unwrap();
        let mut many: Vec<_> =
            (1..PENDING_MAX).map(|_| admission.admit(address(2), now).unwrap()).collect();
        let mut right = admission.admit(address(3), now).unwrap();
        assert!(is_evicted(&mut many[0]), "the oldest of those that have most");
        assert!(!is_evicted(&mut quiet) && !is_evicted(&mut right) && !is_evicted(&mut many[1]));
        assert_eq!(admission.state().slots.len(), PENDING_MAX);
        drop((quiet, right, many));
        assert!(admission.state().slots.is_empty());
    }

    #[test]
    fn one_address_cannot_use_up_the_common_rate() {
        let (admission, now) = (AdmissionControl::default(), Instant::now());
        let admitted =
            |from: IpAddr, now| (0..200).filter(|_| admission.admit(from, now).is_some()).count();
        assert_eq!(admitted(address(2), now), ADDRESS_PER_S_MAX as usize);
        assert!(admission.admit(address(3), now).is_some());
        let all: usize = (4..8).map(|last| admitted(address(last), now)).sum();
        // The common rate, and one connection each of the two addresses that connected when it was
        // used up.
        assert_eq!(all, (PER_S_MAX - ADDRESS_PER_S_MAX - 1) as usize + 2);
        assert!(admission.admit(address(2), now + Duration::from_secs(1)).is_some());
    }

    #[test]
    fn three_flooding_addresses_do_not_lock_out_a_new_one() {
        let (admission, now) = (AdmissionControl::default(), Instant::now());
        let mut flood = Vec::new();
        for _ in 0..300 {
            flood.extend((2..5).filter_map(|last| admission.admit(address(last), now)));
        }
        assert_eq!(flood.len(), PER_S_MAX as usize);
        let mut right = admission.admit(address(1), now).expect("the first of its address");
        assert!(
            admission.admit(address(1), now).is_none(),
            "its second has to wait for the next second"
        );
        let new = (10..200).filter(|last| admission.admit(address(*last), now).is_some()).count();
        assert_eq!(new, NEW_PER_S_MAX as usize - 1, "a flood from many addresses ends too");
        // All slots belong to the flood and to the new addresses, and the authenticated one keeps
        // its slot.
        let later = now + Duration::from_secs(1);
        flood.extend((0..60).filter_map(|n| admission.admit(address(2 + n % 3), later)));
        assert!(!is_evicted(&mut right));
    }

    #[test]
    fn an_authenticated_address_is_admitted_during_a_flood() {
        let (admission, now) = (AdmissionControl::default(), Instant::now());
        let known = admission.admit(address(1), now).unwrap();
        known.authenticated();
        drop(known);
        let _flood: Vec<_> =
            (2..=250).filter_map(|last| admission.admit(address(last), now)).collect();
        let mut right: Vec<_> = (0..4).map(|_| admission.admit(address(1), now).unwrap()).collect();
        // Unknown addresses take none of these slots, whatever their number.
        let later = now + Duration::from_secs(1);
        let _flood: Vec<_> =
            (2..=250).filter_map(|last| admission.admit(address(last), later)).collect();
        assert!(right.iter_mut().all(|slot| !is_evicted(slot)));
        let strange = admission.state().slots.iter().filter(|slot| !slot.is_known).count();
        assert_eq!(strange, PENDING_MAX);
        for last in 0..=255_u8 {
            let state = PendingSlot {
                admission: admission.clone(),
                number: 0,
                from: address(last),
                evicted: oneshot::channel().1,
            };
            state.authenticated();
        }
        assert_eq!(admission.state().known.len(), KNOWN_MAX);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:192.0.2.7"), address(7));
    }
}
